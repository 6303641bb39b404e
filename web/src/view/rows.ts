// The results: a table that can be searched and sorted.
import { button, element } from "../dom";
import { digits } from "../format";
import { save } from "../address";
import type { Row } from "./data";

type Key = "name" | "kind" | "schemes" | "seed" | "date" | "flows" | "mean" | "p99" | "state";
const columns: { key: Key; title: string; of: (r: Row) => string | number | null }[] = [
  { key: "name", title: "Name", of: (r) => r.name },
  { key: "kind", title: "Kind", of: (r) => r.kind },
  { key: "schemes", title: "Schemes", of: (r) => r.schemes.join(", ") },
  { key: "seed", title: "Seed", of: (r) => r.seed },
  { key: "date", title: "Date", of: (r) => r.modified_unix_s },
  { key: "flows", title: "Flows", of: (r) => r.flows },
  { key: "mean", title: "Slowdown mean", of: (r) => r.slowdown_mean },
  { key: "p99", title: "Slowdown P99", of: (r) => r.slowdown_p99 },
  { key: "state", title: "State", of: (r) => r.state },
];
const words = new Set<Key>(["name", "kind", "schemes", "state"]);
// Rows in the page.
const MOST = 1000;

export const state = { search: "", sort: "date" as Key, down: true };

export const written = (): [string, string][] => [
  ...(state.search ? [["search", state.search] as [string, string]] : []),
  ...(state.sort !== "date" || !state.down ? [["sort", `${state.sort}${state.down ? "-down" : ""}`] as [string, string]] : []),
];
export function readIn(choices: URLSearchParams): void {
  state.search = choices.get("search") ?? "";
  const [key, down] = (choices.get("sort") ?? "date-down").split("-");
  const known = columns.find((c) => c.key === key);
  state.sort = known?.key ?? "date";
  state.down = known ? down === "down" : true;
}

const date = (unix_s: number): string => {
  const two = (n: number) => String(n).padStart(2, "0"), d = new Date(unix_s * 1000);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}`;
};
/** Where a path below the served folder is. */
export const link = (path: string): string => "/" + path.split("/").map(encodeURIComponent).join("/");

/** All words are in the row. */
export function fits(r: Row, search: string): boolean {
  const text = [r.path, r.name, r.kind, r.schemes.join(" "), r.seed === null ? "" : `seed${r.seed}`, r.state, date(r.modified_unix_s)].join(" ").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Numbers by size, words by letters; what is missing comes last either way. */
export function sorted(rows: Row[], key: Key, down: boolean): Row[] {
  const { of } = columns.find((c) => c.key === key)!, sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x == null || y == null) return Number(x == null) - Number(y == null);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
    return sign * order || a.path.localeCompare(b.path, "en", { numeric: true });
  });
}

/** Draws the table of `rows` into `place`. */
export function drawRows(place: HTMLElement, rows: Row[]): void {
  const found = sorted(rows.filter((r) => fits(r, state.search)), state.sort, state.down);
  const sortBy = (key: Key) => {
    state.down = state.sort === key ? !state.down : key === "date";
    state.sort = key;
    drawRows(place, rows);
    place.querySelector<HTMLElement>(`button[data-key="${key}"]`)?.focus();
    save();
  };
  const head = element("tr", {}, ...columns.map(({ key, title }) => {
    const on = state.sort === key;
    return element("th", { scope: "col", ...(words.has(key) ? { class: "text" } : {}), "aria-sort": on ? (state.down ? "descending" : "ascending") : "none" },
      button(title + (on ? (state.down ? " ▾" : " ▴") : ""), () => sortBy(key), { class: "link", "data-key": key }));
  }));
  const number = (v: number | null) => (v == null ? "-" : digits(v));
  const body = found.slice(0, MOST).map((r) => element("tr", {},
    element("th", { scope: "row" }, r.page ? element("a", { href: link(r.page) }, r.name) : r.name,
      ...(r.path && r.path !== r.name ? [element("span", { class: "path" }, r.path)] : [])),
    element("td", { class: "text" }, r.kind), element("td", { class: "text" }, element("span", { class: "clip", title: r.schemes.join(", ") }, r.schemes.join(", "))),
    element("td", {}, r.seed == null ? "-" : String(r.seed)), element("td", {}, date(r.modified_unix_s)),
    element("td", {}, r.flows == null ? "-" : r.flows.toLocaleString("en")),
    element("td", {}, number(r.slowdown_mean)), element("td", {}, number(r.slowdown_p99)),
    element("td", { class: r.good ? "text good" : "text bad" }, r.state)));
  const note = !rows.length ? "Nothing yet: results appear here when a run, comparison or sweep is done."
    : found.length < rows.length ? `${found.length} of ${rows.length} results.` : `${rows.length} results.`;
  const more = found.length > MOST ? ` The first ${MOST} are shown; search for others.` : "";
  const scroll = place.querySelector(".scroll")?.scrollLeft ?? 0;
  place.replaceChildren(element("p", { class: "note", role: "status" }, note + more));
  if (!found.length) return;
  const box = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of results" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...body)));
  place.append(element("div", { class: "tables" }, box));
  box.scrollLeft = scroll;
}
