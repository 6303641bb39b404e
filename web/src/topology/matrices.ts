// A large topology: a matrix for each tier and direction, a cell a link or the links of neighbours.
import type { Panel } from "../data";
import { element, tip } from "../dom";
import { column, exported } from "../export";
import { show } from "../format";
import { drawn, metrics, on, panelName, select, shown, state, told } from "../state";
import { css } from "../theme";

export function matrices(parent: HTMLElement, panels: Panel[], width: number): void {
  const box = element("div", { class: "heat" });
  panels.forEach((panel) => box.append(matrix(panel, width)));
  parent.append(box);
}

function matrix(p: Panel, width: number): HTMLElement {
  const transposed = p.ports > p.owners;
  const [columns, lines] = transposed ? [p.ports, p.owners] : [p.owners, p.ports];
  const side = Math.max(3, Math.min(14, Math.floor(Math.min(width, 620) / columns), Math.floor(280 / lines)));
  const owners = `${p.first_owner} to ${p.last_owner}` + (p.owner_nodes > p.owners ? `, ${p.owner_nodes} in ${p.owners}` : "");
  const caption = `${panelName(p)}: ${show("count", p.links)} links. `
    + (transposed ? `Rows: ${owners}; columns: their links.` : `Columns: ${owners}; rows: their links.`);
  const picture = element("canvas", { class: "matrix", tabindex: 0, role: "application",
    "aria-label": `${caption} Arrow keys go from cell to cell.` });
  [picture.width, picture.height] = [columns * side, lines * side];
  const g = picture.getContext("2d")!;
  const rowOf = (c: number, l: number) => p.first_row + (transposed ? l * p.ports + c : c * p.ports + l);
  const cellOf = (row: number): [number, number] => {
    const [owner, port] = [Math.floor((row - p.first_row) / p.ports), (row - p.first_row) % p.ports];
    return transposed ? [port, owner] : [owner, port];
  };
  const inside = (row: number) => row >= p.first_row && row < p.first_row + p.owners * p.ports;
  const draw = () => {
    const { at, top, colour } = shown();
    g.clearRect(0, 0, picture.width, picture.height);
    for (let l = 0; l < lines; l++) {
      for (let c = 0; c < columns; c++) {
        g.fillStyle = colour(top > 0 ? at(rowOf(c, l)) / top : 0);
        g.fillRect(c * side, l * side, side, side);
      }
    }
    const s = drawn();
    if (s?.kind === "row" && inside(s.row)) {
      const [c, l] = cellOf(s.row);
      g.strokeStyle = css("--mark");
      g.lineWidth = 2;
      g.strokeRect(c * side - 1, l * side - 1, side + 2, side + 2);
    }
  };
  const find = (e: MouseEvent): number | undefined => {
    const rect = picture.getBoundingClientRect();
    const c = Math.floor(((e.clientX - rect.left) / rect.width) * columns), l = Math.floor(((e.clientY - rect.top) / rect.height) * lines);
    return c >= 0 && l >= 0 && c < columns && l < lines ? rowOf(c, l) : undefined;
  };
  tip(picture, (e) => {
    const row = find(e);
    if (row === undefined) return "";
    const [c, l] = cellOf(row);
    return `column ${c + 1}, row ${l + 1}: ${told(row)}`;
  });
  picture.addEventListener("click", (e) => {
    const row = find(e);
    if (row !== undefined) select({ kind: "row", row });
  });
  picture.addEventListener("keydown", (e) => {
    const [dc, dl] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key] ?? [0, 0];
    if (!dc && !dl) return;
    e.preventDefault();
    const s = drawn();
    const [c, l] = s?.kind === "row" && inside(s.row) ? cellOf(s.row) : [-dc, -dl];
    select({ kind: "row", row: rowOf(Math.max(0, Math.min(columns - 1, c + dc)), Math.max(0, Math.min(lines - 1, l + dl))) });
  });
  on("look", draw);
  on("selected", draw);
  draw();
  const figure = element("figure", {}, element("figcaption", {}, caption), picture);
  exported(figure, picture, { name: panelName(p), draw, numbers: () => {
    const { at } = shown(), { title, quantity } = metrics[state.metric];
    const cells = Array.from({ length: columns * lines }, (_, i) => [i % columns, Math.floor(i / columns)]);
    return { head: ["column", "row", column(title, quantity)], rows: cells.map(([c, l]) => [c + 1, l + 1, at(rowOf(c, l))]) };
  } });
  return figure;
}
