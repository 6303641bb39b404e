// Relative change of the figure that decides, from the first value of the compared axis, seed by seed.
import { card } from "../dom";
import { diverging } from "../theme";
import { opening, sweep, type Change } from "./data";
import { grid } from "./grid";
import { axes, cellsAt, elsewhere, metric, state, type Where } from "./places";

const signed = (ratio: number): string => `${ratio < 0 ? "\u2212" : "+"}${Math.abs(ratio * 100).toFixed(1)} %`;

/** Mean and interval as the terminal prints them. */
export const toldChange = (c: Change | undefined): string =>
  c ? signed(c.mean) + (c.ci95 == null ? "" : ` \u00b1 ${(c.ci95 * 100).toFixed(1)}`) : "-";

/** Heading of a column of changes, or nothing if the page shows another figure than the one that decides. */
export const changeHead = (): string | undefined =>
  (state.metric === opening.metric && sweep.cells.some((cell) => cell.change) ? `from ${axes[opening.compare].names[0]}` : undefined);

export function changesOf(cards: HTMLElement, choose: (where: Where, cells: ReturnType<typeof cellsAt>) => void): void {
  const c = opening.compare, x = [state.x, state.y].find((a) => a >= 0 && a !== c) ?? c, y = x === c ? -1 : c;
  const head = changeHead();
  if (!head) return;
  const at = (where: Where) => {
    const found = cellsAt(where).flatMap((cell) => cell.change ?? []);
    if (found.length < 2) return found[0];
    return { mean: found.reduce((sum, change) => sum + change.mean, 0) / found.length, ci95: null, n: found[0].n };
  };
  const all = axes[c].names.flatMap((_, k) => (y < 0 ? [at([[c, k]])] : axes[x].names.map((_, i) => at([[x, i], [c, k]])))).flatMap((found) => found ?? []);
  if (!all.length) return;
  const largest = Math.max(...all.map((change) => Math.abs(change.mean)));
  const place = elsewhere(y < 0 ? [x] : [x, y]);
  const box = card(cards, `Change of ${metric().label} ${head}`,
    `${place ? `${place}. ` : ""}Seed by seed; pale: the interval of 95 % includes no change.`, true);
  grid(box, { label: `Change of ${metric().label} ${head}`, value: "change", x, y }, (where) => {
    const change = at(where), first = where.some(([a, k]) => a === c && k === 0);
    if (first) return { words: "0 %", colour: diverging(0), tip: "Changes count from here.", value: 0 };
    return change && {
      words: signed(change.mean), colour: diverging(largest ? change.mean / largest : 0),
      faint: change.ci95 == null || Math.abs(change.mean) <= change.ci95, tip: toldChange(change), value: change.mean,
    };
  }, (where) => choose(where, cellsAt(where)));
}
