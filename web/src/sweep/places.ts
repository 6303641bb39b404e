// Places of an axis: its values in order, or bins of them; and figures of the cells that are at some places.
import { digits, show as showQuantity } from "../format";
import { sweep, opening, type Axis, type Cell, type Metric } from "./data";

// A sampled axis has a value a cell; beyond this many, values are put into bins of equal width.
const MOST = 16;
const BINS = 8;

/** An axis as pictures use it. */
export interface Places {
  number: number;
  axis: Axis;
  names: string[];
  /** Where the places are, if values are numbers. */
  at: number[] | undefined;
  /** For each value of the axis its place. */
  slot: number[];
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

function places(axis: Axis, number: number): Places {
  const { numbers, values, quantity } = axis;
  if (!numbers) return { number, axis, names: values, at: undefined, slot: range(values.length) };
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  if (sorted.length <= MOST) {
    return { number, axis, at: sorted, names: sorted.map((v) => values[numbers.indexOf(v)]), slot: numbers.map((v) => sorted.indexOf(v)) };
  }
  const low = sorted[0], high = sorted[sorted.length - 1], log = isWide(low, high);
  const share = (v: number) => (log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
  const middle = (i: number) => {
    const u = (i + 0.5) / BINS;
    return log ? low * (high / low) ** u : low + (high - low) * u;
  };
  const at = range(BINS).map(middle);
  return {
    number, axis, at, names: at.map((v) => `~${showQuantity(quantity, Number(v.toPrecision(2)))}`),
    slot: numbers.map((v) => Math.min(BINS - 1, Math.floor(BINS * share(v)))),
  };
}

/** Whether numbers are so far apart that they belong on a logarithmic axis. */
export const isWide = (low: number, high: number, factor = 8): boolean => low > 0 && high / low > factor;

export const axes: Places[] = sweep.axes.map(places);

const others = axes.map((a) => a.number).filter((a) => a !== opening.compare);
const x = others[0] ?? opening.compare;

/** The number of the colour of a place: schemes have their own, others that of their order. */
export const colourOf = (axis: number, place: number): number => opening.colours[axis]?.[place] ?? place;

/** What is chosen. `fixed` has for each axis a place, or null for the mean over all. */
export const state = {
  metric: opening.metric,
  compare: opening.compare,
  x,
  y: others[1] ?? (others.length ? opening.compare : -1),
  // Each place of a picture is one cell to begin with; points of a hypercube have no others like them.
  fixed: sweep.axes.map((axis, a) => (a === x || axis.kind === "sampled" ? null : 0)) as (number | null)[],
  /** Cells that are told about one by one, and where they are. */
  chosen: null as { where: string; cells: Cell[] } | null,
};

/** What is not as the page opens, for its address. */
const opened = JSON.stringify(state);
export function written(): [string, string][] {
  const usual = JSON.parse(opened) as typeof state;
  const plain = (["metric", "compare", "x", "y"] as const).flatMap((key): [string, string][] => (state[key] === usual[key] ? [] : [[key, String(state[key])]]));
  const fixed = (of: typeof state) => of.fixed.map((place) => place ?? "all").join(",");
  return fixed(state) === fixed(usual) ? plain : [...plain, ["fixed", fixed(state)]];
}

/** The other way round. What this page does not have is left as the page opens. */
export function readIn(choices: URLSearchParams): void {
  const usual = JSON.parse(opened) as typeof state;
  const axis = (key: "compare" | "x" | "y") => {
    const n = choices.has(key) ? Number(choices.get(key)) : usual[key];
    return Number.isInteger(n) && (axes[n] || (key === "y" && n === -1)) ? n : usual[key];
  };
  const name = choices.get("metric");
  state.metric = sweep.metrics.some((m) => m.name === name) ? name! : usual.metric;
  for (const key of ["compare", "x", "y"] as const) state[key] = axis(key);
  const places = choices.get("fixed")?.split(",") ?? [];
  state.fixed = usual.fixed.map((place, a) => {
    const text = places[a], n = Number(text);
    return text === "all" ? null : text && axes[a].names[n] !== undefined ? n : place;
  });
}

export const metric = (): Metric => sweep.metrics.find((m) => m.name === state.metric)!;

export const show = (m: Metric, v: number | null | undefined): string =>
  (v == null ? "-" : m.quantity === "count" ? digits(v, 6) : showQuantity(m.quantity, v));

/** A place on some axes. */
export type Where = [axis: number, place: number][];

export const nameOf = (where: Where): string => where.map(([a, p]) => `${axes[a].axis.key} ${axes[a].names[p]}`).join(", ");

/** Cells at a place; on other axes where these are fixed. Axes in `free` are not. */
export function cellsAt(where: Where, free: number[] = []): Cell[] {
  const fits = (cell: Cell, a: number, place: number) => axes[a].slot[cell.at[a]] === place;
  const bound = new Set([...where.map(([a]) => a), ...free]);
  return sweep.cells.filter((cell) => where.every(([a, p]) => fits(cell, a, p))
    && axes.every((_, a) => bound.has(a) || state.fixed[a] == null || fits(cell, a, state.fixed[a]!)));
}

/** Mean over cells; with the half width of its interval where it is of one cell. */
export interface Mean { mean: number; half: number | null; cells: number }

export function meanOf(cells: Cell[], name = state.metric): Mean | undefined {
  const found = cells.flatMap((cell) => cell.metrics[name] ?? []);
  if (!found.length) return undefined;
  const mean = found.reduce((sum, f) => sum + f.mean, 0) / found.length;
  return { mean, half: found.length === 1 ? found[0].ci95 : null, cells: found.length };
}

/** With its interval, for people. */
export const told = (m: Metric, f: Mean): string =>
  show(m, f.mean) + (f.half == null ? "" : ` \u00b1 ${show(m, f.half)}`) + (f.cells > 1 ? ` (mean of ${f.cells} cells)` : "");

/** Where a picture is on the axes it does not show. */
export const elsewhere = (shown: number[]): string => axes.filter((a) => !shown.includes(a.number)).map((a) => {
  const at = state.fixed[a.number];
  return at == null ? `mean over ${a.axis.key}` : `${a.axis.key} ${a.names[at]}`;
}).join(", ");
