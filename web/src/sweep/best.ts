// Which value of the compared axis is best, at each place of two others.
import { card, element } from "../dom";
import { colour } from "../theme";
import { opening, sweep } from "./data";
import { grid } from "./grid";
import { axes, cellsAt, colourOf, elsewhere, meanOf, metric, state, type Where } from "./places";

interface Winner { place: number; tied: boolean }

export function bestOf(cards: HTMLElement, choose: (where: Where, cells: ReturnType<typeof cellsAt>) => void): void {
  const m = metric(), c = state.compare;
  const free = [state.x, state.y].filter((a) => a >= 0 && a !== c), rest = axes.map((a) => a.number).filter((a) => a !== c);
  const x = free[0] ?? rest[0] ?? -1, y = free[1] ?? rest.find((a) => a !== x) ?? -1;
  if (x < 0 || m.better === "neither") return;
  const box = card(cards, `Best ${axes[c].axis.key} by ${m.label}`,
    "Over all settings at a place; \u201c?\u201d and a pale colour: the seeds do not tell the best from another one.", true);
  grid(box, { label: `Best ${axes[c].axis.key}`, value: `best ${axes[c].axis.key}`, x, y }, (where) => {
    const found = c === opening.compare ? bySeeds(where) : byMeans(where);
    if (!found.length) return undefined;
    const wins = new Map<number, { all: number; tied: number }>();
    for (const { place, tied } of found) {
      const so = wins.get(place) ?? { all: 0, tied: 0 };
      wins.set(place, { all: so.all + 1, tied: so.tied + (tied ? 1 : 0) });
    }
    const ranked = [...wins].sort(([, a], [, b]) => b.all - a.all), [first, score] = ranked[0];
    return {
      words: axes[c].names[first] + (score.tied ? " ?" : ""), colour: colour(colourOf(c, first)), faint: score.tied === score.all,
      value: axes[c].names[first],
      tip: ranked.map(([k, s]) => `${axes[c].names[k]}: best in ${s.all} of ${found.length}${s.tied ? `, ${s.tied} of them undecided` : ""}`).join("\n"),
    };
  }, (where) => choose(where, cellsAt(where, rest.concat(c))));
  box.append(element("div", { class: "keys" }, ...axes[c].names.map((name, k) => {
    const mark = element("i");
    mark.style.background = colour(colourOf(c, k));
    return element("span", {}, mark, name);
  })));
  if (c !== opening.compare) {
    box.append(element("p", { class: "note" }, `By means alone (${elsewhere([x, y, c]) || "all settings"}): seeds are compared for ${axes[opening.compare].axis.key}.`));
  }
}

// As the summary judges: seed by seed.
function bySeeds(where: Where): Winner[] {
  const here = sweep.best.filter((b) => b.metric === state.metric && where.every(([a, p]) => axes[a].slot[b.at[a]!] === p));
  return here.map((b) => ({ place: axes[state.compare].slot[b.value], tied: b.tied.length > 0 }));
}

function byMeans(where: Where): Winner[] {
  const c = state.compare, sign = metric().better === "higher" ? -1 : 1;
  const there = axes[c].names.flatMap((_, k) => {
    const f = meanOf(cellsAt([...where, [c, k]]));
    return f ? [{ place: k, value: sign * f.mean }] : [];
  });
  const [first] = there.sort((a, b) => a.value - b.value);
  return there.length > 1 ? [{ place: first.place, tied: false }] : [];
}
