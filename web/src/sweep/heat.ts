// The chosen figure at every place of two axes.
import { canvas, card, element } from "../dom";
import { column } from "../export";
import { heat } from "../theme";
import { grid } from "./grid";
import { axes, cellsAt, elsewhere, isWide, meanOf, metric, show, state, told, type Where } from "./places";

export function heatOf(cards: HTMLElement, choose: (where: Where, cells: ReturnType<typeof cellsAt>) => void): void {
  const m = metric(), { x } = state, y = state.y === x ? -1 : state.y;
  const shown = y < 0 ? [x] : [x, y];
  const box = card(cards, m.label, elsewhere(shown), true);
  box.id = "heat";
  const at = (where: Where) => meanOf(cellsAt(where));
  const all = axes[x].names.flatMap((_, i) =>
    (y < 0 ? [at([[x, i]])] : axes[y].names.map((_, j) => at([[x, i], [y, j]])))).flatMap((f) => (f ? [f.mean] : []));
  if (!all.length) {
    box.append(element("p", { class: "note" }, "Nothing to show."));
    return;
  }
  const low = Math.min(...all), high = Math.max(...all), log = isWide(low, high, 20);
  const strength = (v: number) => (high === low ? 0.5 : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  const label = `${m.label} by ${shown.map((a) => axes[a].axis.key).join(" and ")}`;
  grid(box, { label, value: column(m.label, m.quantity), x, y }, (where) => {
    const f = at(where);
    return f && { words: show(m, f.mean), colour: heat(strength(f.mean)), tip: told(m, f), value: f.mean };
  }, (where) => choose(where, cellsAt(where)));
  const [ramp, g] = canvas(160, 12, "From little to much");
  for (let i = 0; i < 160; i++) { g.fillStyle = heat(i / 159); g.fillRect(i, 0, 1, 12); }
  const better = m.better === "neither" ? "" : `, ${m.better} is better`;
  box.append(element("div", { class: "scale" }, show(m, low), ramp, `${show(m, high)}${log ? " (logarithmic)" : ""}${better}`));
}
