// A table of coloured cells over one axis or two, which keys and pointer can choose from.
import { element, tip } from "../dom";
import { exported } from "../export";
import { axes, nameOf, type Where } from "./places";

export interface Square {
  words: string;
  colour: string;
  /** Half as strong: what it says is not certain. */
  faint?: boolean;
  tip: string;
  /** What is saved as a number. */
  value: number | string;
}

// Dark or light writing, whichever is read better on `colour`, "rgb(r,g,b)" or "#rrggbb": WCAG's relative luminance.
export function ink(colour: string): string {
  const channels = colour.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16))
    : colour.match(/\d+/g)!.map(Number);
  const [r, g, b] = channels.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (light + 0.05) >= (light + 0.05) / 0.05 ? "#ffffff" : "#000000";
}

/** A grid: its title, which files have too, the heading of its values with their unit, and its axes. */
export interface GridLook { label: string; value: string; x: number; y: number }

/** Draws places of `x` from left to right and those of `y` (-1: none) from top to bottom. */
export function grid(parent: HTMLElement, { label, value, x, y }: GridLook, square: (where: Where) => Square | undefined, choose: (where: Where) => void): void {
  const rows = y < 0 ? [undefined] : axes[y].names.map((_, j) => j);
  const places: HTMLElement[][] = [];
  const body = element("tbody");
  const saved: (string | number)[][] = [];
  rows.forEach((j, line) => {
    const row = element("tr", {}, element("th", { scope: "row" }, j === undefined ? "" : axes[y].names[j]));
    places.push(axes[x].names.map((_, i) => {
      const where: Where = j === undefined ? [[x, i]] : [[x, i], [y, j]];
      const got = square(where);
      if (got) saved.push([...where.map(([axis, place]) => axes[axis].names[place]), got.value]);
      const cell = element("td", { tabindex: line + i === 0 ? 0 : -1 }, got?.words ?? "-");
      const told = `${nameOf(where)}\n${got?.tip ?? "nothing"}`;
      cell.setAttribute("aria-label", told.replaceAll("\n", ": "));
      if (got) {
        // Paler by mixing, so that the words keep their strength.
        cell.style.background = got.faint ? `color-mix(in srgb, ${got.colour} 30%, var(--card))` : got.colour;
        cell.style.color = got.faint ? "var(--text)" : ink(got.colour);
        cell.addEventListener("click", () => choose(where));
        cell.classList.add("choosable");
      }
      tip(cell, () => told);
      row.append(cell);
      return cell;
    }));
    body.append(row);
  });
  body.addEventListener("keydown", (event) => {
    const at = document.activeElement as HTMLElement;
    const line = places.findIndex((row) => row.includes(at));
    if (line < 0) return;
    const column = places[line].indexOf(at);
    if (event.key === "Enter" || event.key === " ") at.click();
    const step = ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] } as Record<string, [number, number]>)[event.key];
    if (event.key === " " || step) event.preventDefault();
    const next = step && places[line + step[0]]?.[column + step[1]];
    if (!next) return;
    at.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  const corner = y < 0 ? "" : `${axes[y].axis.key} \\ ${axes[x].axis.key}`;
  const head = element("tr", {}, element("th", {}, corner), ...axes[x].names.map((name) => element("th", { scope: "col" }, name)));
  const all = element("table", { "aria-label": label }, element("thead", {}, head), body);
  const box = element("div", { class: "squares" }, all);
  parent.append(box);
  exported(parent, all, { name: label, numbers: () => ({ head: [...(y < 0 ? [x] : [x, y]).map((a) => axes[a].axis.key), value], rows: saved }) });
  if (y < 0) parent.append(element("p", { class: "note" }, axes[x].axis.key));
}
