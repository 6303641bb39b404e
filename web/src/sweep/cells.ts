// Cells one by one: those of a chosen place with all their figures, and a table of all.
import { button, card, element, table } from "../dom";
import { changeHead, toldChange } from "./changes";
import { opening, sweep, type Cell } from "./data";
import { metric, show, state } from "./places";

/** Cells to tell about; none takes the choice back. */
export type Choose = (where: string, cells: Cell[]) => void;

// Rows of the table.
const MOST = 300;

/** What is known of the chosen cells; returns how to tell it anew. */
export function chosenCells(cards: HTMLElement, choose: Choose): () => void {
  const box = card(cards, "Chosen", "", true);
  box.id = "chosen";
  box.setAttribute("aria-live", "polite");
  const body = element("div");
  box.append(body);
  const tell = () => {
    body.replaceChildren();
    const { chosen } = state;
    if (!chosen) {
      body.append(element("p", { class: "note" }, "Nothing yet: choose a place in a picture or a cell in the table."));
      return;
    }
    body.append(button("Choose nothing", () => choose("", []), { class: "close" }), element("h4", {}, chosen.where));
    if (chosen.cells.length === 1) cell(body, chosen.cells[0]);
    else list(body, chosen.cells, choose);
  };
  tell();
  return tell;
}

function cell(box: HTMLElement, of: Cell): void {
  const open = of.open_flows ? `${of.open_flows} flows did not finish. ` : "";
  box.append(element("p", { class: "note" }, open, "Reports of its runs: ", reports(of)));
  if (!opens) box.append(element("p", { class: "note" }, "This sweep keeps no reports of its runs. ", element("code", {}, "pathweave view"),
    " makes one when its link is followed; ", element("code", {}, '[report] runs = "kept"'), " in the sweep file keeps all of them."));
  of.failed.forEach((why) => box.append(element("pre", {}, why)));
  box.append(table(["Figure", "Mean", "\u00b1", "Least", "Largest", "Seeds"], sweep.metrics.flatMap((m) => {
    const f = of.metrics[m.name];
    return f ? [{ cells: [m.label, show(m, f.mean), show(m, f.ci95), show(m, f.min), show(m, f.max), String(f.n)] }] : [];
  })));
}

// Whether a link to a run leads to its report: one is kept, or `pathweave view` makes it.
const opens = opening.runs === "kept" || location.protocol.startsWith("http");

/** A link a seed to the report of the run; where none would open, the folder of the run. */
function reports(of: Cell): HTMLElement {
  const all = of.runs.flatMap((key, i) => {
    const seed = sweep.seeds[i], folder = `runs/run=${key}`;
    if (!of.finished_seeds.includes(seed)) return [];
    return [opens ? element("a", { href: `${folder}/report.html`, title: `${of.label}, seed ${seed}` }, `seed ${seed}`) : element("span", {}, `seed ${seed} in ${folder}`)];
  });
  const list = element("span", { class: "reports" });
  all.forEach((link, i) => list.append(...(i ? [", ", link] : [link])));
  if (!all.length) list.append("none");
  return list;
}

/** Every cell, the best first. */
export function allCells(cards: HTMLElement, choose: Choose): void {
  const box = card(cards, `Cells by ${metric().label}`, "", true);
  list(box, sweep.cells, choose);
}

function list(box: HTMLElement, cells: Cell[], choose: Choose): void {
  const m = metric(), sign = m.better === "higher" ? -1 : 1;
  const rank = (c: Cell) => (c.metrics[m.name] ? sign * c.metrics[m.name]!.mean : Infinity);
  const sorted = [...cells].sort((a, b) => rank(a) - rank(b) || 0);
  const head = changeHead();
  box.append(table(["Cell", ...(head ? [head] : []), m.label, "\u00b1", "Least", "Largest", "Seeds", "Unfinished flows", ...(opens ? ["Reports"] : [])], sorted.slice(0, MOST).map((c) => {
    const f = c.metrics[m.name];
    return {
      cells: [c.label, ...(head ? [toldChange(c.change)] : []), show(m, f?.mean), show(m, f?.ci95), show(m, f?.min), show(m, f?.max),
        c.failed.length ? `${f?.n ?? 0}, ${c.failed.length} failed` : String(f?.n ?? 0), String(c.open_flows), ...(opens ? [reports(c)] : [])],
      choose: () => choose(c.label, [c]),
    };
  })));
  if (sorted.length > MOST) box.append(element("p", { class: "note" }, `${sorted.length - MOST} more are in summary.parquet.`));
}
