// Curves: a thin layer over uPlot with our axes, colours and legends.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { save } from "./address";
import type { Mark, Quantity, Span } from "./data";
import { element } from "./dom";
import { column, exported, type Numbers } from "./export";
import { digits, show, ticks, unitOf } from "./format";
import { colour, css } from "./theme";

export interface Axis {
  label: string; quantity: Quantity; log?: boolean; categories?: string[];
  /** The end of the axis; of a horizontal one, unless a part is zoomed into. */
  max?: number;
}
export interface Line {
  label: string; x: number[]; y: (number | null)[]; colour?: string; dash?: number; width?: number; points?: boolean;
  /** A value holds from its point to the next one, or in the interval that ends at its point. Without, points are joined. */
  holds?: "after" | "before";
  /** How far the truth may be from each value, up and down: a band. */
  spread?: (number | null)[];
  /** Points that nothing lies between. */
  loose?: boolean;
}
interface Spec { x: Axis; y: Axis; lines: Line[]; height?: number; marker?: () => number | undefined;
  /** What broke when; of a time axis. */
  faults?: Mark[];
  /** Title of its files; that of its card where it has none. */
  name?: string;
}

/** The part of time that is shown, of every chart that has a time axis; undefined is all of it. */
export const zoom: { part: [number, number] | undefined } = { part: undefined };
const isTime = (spec: Spec): boolean => spec.x.quantity === "time_ns" && spec.x.label === "Time";

/** A series over time: what is of the interval that ends at an instant is drawn as such, from the start of the run on. */
export const overTime = (times: number[], values: (number | null)[], span: Span): Pick<Line, "x" | "y" | "holds"> =>
  ({ x: [0, ...times], y: [null, ...values], holds: span === "interval" ? "before" : undefined });

const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
// The same in a legend: as a border, and in words beside a colour.
const marks = ["solid", "dashed", "dotted", "double"], dashWords = ["", " (dashed)", " (dotted)", " (dashes and dots)"];
const dashOf = (line: Line): number => (line.dash ?? 0) % dashes.length;
// What needs the width of its card is drawn once every card has found its place.
let waiting: (() => void)[] = [];
export const later = (draw: () => void): void => { waiting.push(draw); };
export function drawWaiting(): void {
  waiting.forEach((draw) => draw());
  waiting = [];
}

export const chart = (parent: HTMLElement, spec: Spec): void => later(() => { chartNow(parent, spec); });

const largest = (lists: (number | null)[][]): number =>
  lists.reduce((most, list) => list.reduce<number>((m, v) => (v == null ? m : Math.max(m, Math.abs(v))), most), 0);

export function chartNow(parent: HTMLElement, spec: Spec): uPlot {
  const place = element("div", { class: "chart" });
  parent.append(place);
  const tables = spec.lines.map((l) => [l.x, l.y] as uPlot.AlignedData);
  // Lines with x values of their own share an axis; null where one has no point.
  const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
  const ys = spec.lines.map((l) => l.y);
  // What there is to see, for tests: canvases tell nothing.
  place.dataset.points = ys.map((y) => y.filter((v) => v != null).length).join(" ");
  const tops = spec.lines.map((l) => l.y.map((v, i) => (v == null ? null : v + (l.spread?.[i] ?? 0))));
  const plot = new uPlot({
    width: Math.max(260, parent.clientWidth - 30),
    height: spec.height ?? 270,
    scales: {
      x: { time: false, distr: spec.x.log ? 3 : 1, log: 10, range: xRange(spec) },
      y: { distr: spec.y.log ? 3 : 1, log: 10, range: yRange(spec, largest(tops)) },
    },
    axes: [axis(spec.x, spec.lines.map((l) => l.x)), { ...axis(spec.y, ys), size: 56 }],
    // Charts over time share the cursor and what is zoomed into.
    cursor: { points: { size: 6 }, drag: { x: true, y: false }, sync: isTime(spec) ? { key: "time", setSeries: false } : undefined },
    hooks: {
      setCursor: [(u) => {
        if (!isTime(spec)) return;
        const { left } = u.cursor;
        pointer.at = left === undefined || left < 0 ? undefined : u.posToVal(left, "x");
        showPointer();
      }],
      setSelect: [(u) => { if (isTime(spec) && u.select.width > 0) zoomed([u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")]); }], drawAxes: [(u) => spec.lines.forEach((l, i) => drawSpread(u, l, l.colour ?? colour(i)))], draw: [(u) => { place.dataset.span = [u.scales.x, u.scales.y].flatMap(({ min, max }) => [min, max]).join(" "); drawFaults(u, spec.faults ?? []); drawMarker(u, spec.marker?.()); }] },
    legend: { markers: { dash: (_, s) => (s ? marks[dashOf(spec.lines[s - 1])] : "solid") } },
    series: [
      {
        label: spec.x.label,
        value: (_, v: number | null) => (v == null ? "" : spec.x.categories ? spec.x.categories[v] : show(spec.x.quantity, v)),
      },
      ...spec.lines.map((l, i): uPlot.Series => ({
        label: l.label,
        stroke: l.colour ?? colour(i),
        width: l.width ?? 1.6,
        dash: dashes[dashOf(l)],
        // Where a line has no value there is nothing. Points of other lines (undefined) are no gaps.
        spanGaps: false,
        points: { show: (l.points ?? false) && l.x.length <= 40, size: l.points ? 6 : 4, fill: dashOf(l) ? css("--card") : undefined, filter: (u, s, show) => (show || l.holds ? null : alone(u.data[s])) },
        paths: l.loose ? () => null : l.holds === "after" ? uPlot.paths.stepped!({ align: 1 }) : l.holds === "before" ? intervals : undefined,
        value: (_, v: number | null, __, at) => (v == null ? "" : show(spec.y.quantity, v) + spreadAt(l, data[0][at ?? -1], spec.y.quantity)),
      })),
    ],
  }, data, place);
  if (isTime(spec)) {
    plots.push(plot);
    plot.over.addEventListener("dblclick", () => zoomed(undefined));
    if (zoom.part) plot.setScale("x", { min: zoom.part[0], max: zoom.part[1] });
  }
  exported(place, plot.ctx.canvas, {
    name: spec.name ?? titleOf(parent) ?? spec.y.label,
    numbers: () => numbersOf(spec, data),
    // It draws when the script that asked for it is over.
    draw: () => new Promise((done) => { plot.redraw(true); setTimeout(done); }),
    legend: () => spec.lines.map((l, i) => ({ label: l.label + dashWords[dashOf(l)], colour: l.colour ?? colour(i) })),
  });
  return plot;
}

const titleOf = (parent: Element): string | undefined => parent.closest(".card, figure")?.querySelector("h3, figcaption")?.textContent ?? undefined;

// A column a line, and one more for how far the truth may be from it.
function numbersOf(spec: Spec, data: uPlot.AlignedData): Numbers {
  const heads = spec.lines.flatMap((l) => [column(l.label, spec.y.quantity), ...(l.spread ? [column(`${l.label} half width`, spec.y.quantity)] : [])]);
  const rows = Array.from(data[0], (x, at) => [
    spec.x.categories ? spec.x.categories[x] : x,
    ...spec.lines.flatMap((l, i) => [data[i + 1][at], ...(l.spread ? [l.spread[l.x.indexOf(x)]] : [])]),
  ]);
  return { head: [column(spec.x.label, spec.x.quantity), ...heads], rows };
}

function zoomed(part: [number, number] | undefined): void {
  zoom.part = part;
  followers = followers.filter(({ place }) => place.isConnected);
  followers.forEach(({ draw }) => draw());
  save();
}

/** The instant under the pointer, which every picture over time shows. */
export const pointer: { at: number | undefined } = { at: undefined };
let pointed: { show: () => void; place: Element }[] = [];
function showPointer(): void {
  pointed = pointed.filter(({ place }) => place.isConnected);
  pointed.forEach(({ show }) => show());
}

/** The pointer is at an instant of a picture that is no chart; undefined is nowhere. */
export function pointAt(at: number | undefined): void {
  pointer.at = at;
  plots = plots.filter((plot) => plot.root.isConnected);
  for (const plot of plots) {
    const left = at === undefined ? -10 : plot.valToPos(at, "x");
    plot.setCursor({ left, top: left < 0 ? -10 : plot.over.clientHeight / 2 }, false);
  }
  showPointer();
}

/** An upright line over `stage` where the pointer's instant is, as long as `x` says where that is. */
export function pointerLine(stage: HTMLElement, x: (at: number) => number | undefined): void {
  const line = element("div", { class: "pointer", hidden: true });
  stage.append(line);
  pointed.push({ place: stage, show: () => {
    const at = pointer.at === undefined ? undefined : x(pointer.at);
    line.hidden = at === undefined;
    if (at !== undefined) line.style.left = at + "px";
  } });
}

let followers: { draw: () => void; place: Element }[] = [];
/** `draw` is called when another part of time is shown, for as long as `place` is in the page. */
export const onZoom = (draw: () => void, place: Element): void => { followers.push({ draw, place }); };

/** Shows a part of time, or all of it, in every chart. */
export function setZoom(part: [number, number] | undefined): void {
  plots = plots.filter((plot) => plot.root.isConnected);
  for (const plot of plots) {
    const xs = plot.data[0];
    plot.setScale("x", part ? { min: part[0], max: part[1] } : { min: xs[0], max: xs[xs.length - 1] });
  }
  zoomed(part);
}
// Charts over time.
let plots: uPlot[] = [];

// Values between gaps, of which a line would show nothing.
function alone(values: ArrayLike<number | null | undefined>): number[] {
  const own = Array.from(values, (v, i) => ({ v, i })).filter(({ v }) => v !== undefined);
  return own.filter(({ v }, k) => v !== null && own[k - 1]?.v == null && own[k + 1]?.v == null).map(({ i }) => i);
}

// Values of intervals: level from the point before to their own.
const intervals: uPlot.Series.PathBuilder = (u, s) => {
  const stroke = new Path2D(), xs = u.data[0], ys = u.data[s];
  const x = (v: number) => u.valToPos(v, "x", true), y = (v: number) => u.valToPos(v, "y", true);
  let from: number | undefined, drawing = false;
  for (let i = 0; i < xs.length; i++) {
    const value = ys[i];
    if (value === undefined) continue;
    if (value !== null) {
      const start = x(from ?? xs[i]);
      if (drawing) stroke.lineTo(start, y(value));
      else stroke.moveTo(start, y(value));
      stroke.lineTo(x(xs[i]), y(value));
    }
    drawing = value !== null;
    from = xs[i];
  }
  return { stroke, fill: null, clip: null, flags: 0 };
};

function spreadAt(line: Line, x: number | undefined, quantity: Axis["quantity"]): string {
  const half = x === undefined ? undefined : line.spread?.[line.x.indexOf(x)];
  return half == null ? "" : ` \u00b1 ${show(quantity, half)}`;
}

// A band along the line, and a whisker at each point, which is all there is where points are loose.
function drawSpread(u: uPlot, line: Line, stroke: string): void {
  const known = line.x.flatMap((x, i) => {
    const y = line.y[i], half = line.spread?.[i];
    if (y == null || half == null) return [];
    const lowest = u.scales.y.min ?? 0;
    const at = (v: number) => u.valToPos(Math.max(v, lowest), "y", true);
    return [{ x: u.valToPos(x, "x", true), up: at(y + half), down: at(y - half) }];
  });
  if (!known.length) return;
  const { ctx } = u;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = stroke;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { x, up, down } of known) {
    ctx.beginPath();
    ctx.moveTo(x, up);
    ctx.lineTo(x, down);
    ctx.stroke();
  }
  if (!line.loose && known.length > 1) {
    ctx.globalAlpha = 0.18;
    ctx.beginPath();
    known.forEach(({ x, up }) => ctx.lineTo(x, up));
    [...known].reverse().forEach(({ x, down }) => ctx.lineTo(x, down));
    ctx.fill();
  }
  ctx.restore();
}

// Solid where something breaks, dashed where it is whole again.
function drawFaults(u: uPlot, faults: Mark[]): void {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { time_ns, repair } of faults) {
    const x = Math.round(u.valToPos(time_ns, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = css(repair ? "--good" : "--bad");
    ctx.setLineDash(repair ? [6, 4] : []);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// The instant that is shown elsewhere on the page.
function drawMarker(u: uPlot, at: number | undefined): void {
  if (at === undefined) return;
  const x = Math.round(u.valToPos(at, "x", true));
  const { ctx, bbox } = u;
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  ctx.save();
  ctx.strokeStyle = css("--text");
  ctx.setLineDash([4, 4]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function axis(side: Axis, values: (number | null)[][]): uPlot.Axis {
  const unit = unitOf(side.quantity, largest(values));
  const common: uPlot.Axis = {
    label: side.label,
    stroke: css("--soft"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    labelGap: 2,
    size: 34,
  };
  const { categories } = side;
  if (categories) {
    return { ...common, splits: () => categories.map((_, i) => i), values: (u, splits) => thinned(u, categories, splits) };
  }
  if (side.log) {
    // Each label has its own unit.
    return { ...common, splits: (_u, _a, min, max) => logSplits(min, max), filter: (_, splits) => splits,
      values: (u, splits, at) => roomy(u, at, splits, splits.map((v) => show(side.quantity, v))) };
  }
  const label = unit.name ? `${side.label} (${unit.name})` : side.label;
  return { ...common, label, values: (_, splits) => splits.map((v) => digits(v / unit.scale, 6)) };
}

function xRange(spec: Spec): uPlot.Scale.Range | undefined {
  if (spec.x.categories) return [-0.5, spec.x.categories.length - 0.5];
  // A curve of a single value still needs an axis with a width.
  if (!spec.x.log) return (u, min, max) => {
    if (min == null) return [0, 1];
    const xs = u.data[0], end = min === xs[0] && max === xs[xs.length - 1] ? Math.max(max, spec.x.max ?? max) : max;
    return min === end ? [min - 1, end + 1] : [min, end];
  };
  return (_, min, max) => (min == null ? [1, 10] : max / min < 1.5 ? [min / 2, max * 2] : [min / 1.05, max * 1.05]);
}

function yRange(spec: Spec, most: number): uPlot.Scale.Range {
  if (spec.y.log) return (_, min, max) => [10 ** Math.floor(Math.log10(min || 1)), Math.max((max || 1) * 1.3, 2)];
  return [0, spec.y.max ?? (most > 0 ? most * 1.08 : 1)];
}

// Powers of ten, and 2 and 5 times them where there is room.
export function logSplits(min: number, max: number): number[] {
  const leads = Math.log10(max / min) > 3.2 ? [1] : [1, 2, 5];
  const out: number[] = [];
  for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); e++) {
    for (const lead of leads) {
      const v = lead * 10 ** e;
      if (v >= min && v <= max) out.push(v);
    }
  }
  // An axis of less than a factor of two has other values.
  return out.length > 1 ? out : ticks(min, max, 4);
}

// Labels of categories, every n-th where they would touch.
function thinned(u: uPlot, categories: string[], splits: number[]): string[] {
  const longest = categories.reduce((most, name) => Math.max(most, name.length), 0);
  const room = Math.max(1, Math.floor((u.width - 56) / Math.max(60, 6.8 * longest + 10)));
  const every = Math.ceil(categories.length / room);
  return splits.map((v) => (v % every === 0 ? categories[v] : ""));
}

// Labels of the horizontal axis that do not touch the one before.
function roomy(u: uPlot, axis: number, splits: number[], texts: string[]): string[] {
  if (axis !== 0) return texts;
  let free = -Infinity;
  return splits.map((v, i) => {
    const at = u.valToPos(v, "x"), half = 3.6 * texts[i].length + 4;
    if (at - half < free) return "";
    free = at + half;
    return texts[i];
  });
}
