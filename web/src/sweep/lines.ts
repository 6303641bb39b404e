// The chosen figure over one axis: a line a value of the compared one, with bands of 95 % confidence.
import { chart, type Line } from "../chart";
import { card, element } from "../dom";
import { colour } from "../theme";
import { axes, cellsAt, colourOf, elsewhere, isWide, meanOf, metric, state } from "./places";

export function linesOf(cards: HTMLElement): void {
  const m = metric(), { x } = state, c = state.compare === x ? -1 : state.compare;
  const across = axes[x], shown = c < 0 ? [x] : [x, c];
  const box = card(cards, `${m.label} over ${across.axis.key}`, elsewhere(shown), true);
  const lines = (c < 0 ? [undefined] : axes[c].names.map((_, k) => k)).flatMap((k): Line[] => {
    // A cell without a figure is a gap.
    const points = across.names.map((_, i) => {
      const f = meanOf(cellsAt(k === undefined ? [[x, i]] : [[x, i], [c, k]]));
      return { x: across.at?.[i] ?? i, mean: f?.mean ?? null, half: f?.half ?? null };
    });
    if (points.every((p) => p.mean === null)) return [];
    return [{
      label: k === undefined ? m.label : axes[c].names[k], x: points.map((p) => p.x), y: points.map((p) => p.mean),
      spread: points.map((p) => p.half), colour: colour(k === undefined ? 0 : colourOf(c, k)), dash: Math.floor((k ?? 0) / 8), points: true, width: 2,
      // Between values that are names there is nothing.
      loose: !across.at,
    }];
  });
  if (!lines.length) {
    box.append(element("p", { class: "note" }, "Nothing to show."));
    return;
  }
  const values = lines.flatMap((l) => l.y).filter((v): v is number => v != null);
  const at = across.at;
  chart(box, {
    x: { label: across.axis.key, quantity: across.axis.quantity, categories: at ? undefined : across.names, log: at && isWide(at[0], at[at.length - 1]) },
    y: { label: m.label, quantity: m.quantity === "count" ? "plain" : m.quantity, log: isWide(Math.min(...values), Math.max(...values), 50) },
    lines, height: 320,
  });
}
