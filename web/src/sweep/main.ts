// The report of a sweep: choices on top, then a heat map, lines with bands, who is best where and by how much, and the cells.
import { remember, toSection } from "../address";
import { choice, element } from "../dom";
import { drawnBy, root, section } from "../page";
import { bestOf } from "./best";
import { allCells, chosenCells } from "./cells";
import { changesOf } from "./changes";
import { sweep, type Cell } from "./data";
import { heatOf } from "./heat";
import { linesOf } from "./lines";
import { axes, nameOf, readIn, state, written, type Where } from "./places";

function controls(): void {
  const pick = (label: string, options: [string | number, string][], current: string | number, take: (v: string) => void) =>
    choice(label, options, current, (v) => { take(v); draw(); });
  const figures = sweep.metrics.filter((m) => sweep.cells.some((cell) => cell.metrics[m.name])).map((m): [string, string] => [m.name, m.label]);
  const keys = axes.map((a): [number, string] => [a.number, a.axis.key]);
  const bar = element("div", { class: "bar", id: "choices" },
    pick("Figure", figures, state.metric, (v) => { state.metric = v; }),
    pick("Across", keys, state.x, (v) => { state.x = Number(v); }));
  root.append(bar);
  if (axes.length === 1) return;
  bar.append(
    pick("Down", keys, state.y, (v) => { state.y = Number(v); }),
    pick("Compare", keys, state.compare, (v) => { state.compare = Number(v); }));
  root.append(element("div", { class: "bar" }, element("span", { class: "note" }, "Where a picture does not show an axis:"),
    ...axes.map((a) => pick(a.axis.key, [["", "mean of all"], ...a.names.map((name, i): [number, string] => [i, name])],
      state.fixed[a.number] ?? "", (v) => { state.fixed[a.number] = v === "" ? null : Number(v); }))));
}

let tell = (): void => {};

// Only what is told changes, so that whoever chooses with keys stays where they are.
function choose(where: string, cells: Cell[]): void {
  state.chosen = cells.length ? { where, cells } : null;
  tell();
  if (cells.length) document.getElementById("chosen")?.scrollIntoView({ block: "nearest" });
}

remember(written, readIn, () => draw());
const draw = drawnBy(() => {
  controls();
  const chooseAt = (where: Where, cells: Cell[]) => choose(nameOf(where), cells);
  section("Heat map", (cards) => heatOf(cards, chooseAt));
  section("Lines", linesOf);
  section("Best", (cards) => bestOf(cards, chooseAt));
  section("Changes", (cards) => changesOf(cards, chooseAt));
  section("Cells", (cards) => {
    tell = chosenCells(cards, choose);
    allCells(cards, choose);
  });
});
toSection();
