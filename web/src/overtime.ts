// Series: of the whole fabric, and of single links as a heat map.
import { runs, summaries, type Chart, type Mark, type Run } from "./data";
import { card, element } from "./dom";
import { chart, later, overTime as along } from "./chart";
import { column } from "./export";
import { show } from "./format";
import { heatmap } from "./heatmap";
import { metrics, on, planeOf, rowName, run, select, state } from "./state";
import { colour, css } from "./theme";

// Rows of the heat map.
const MOST = 120;

/** In a comparison, each run's aggregate of each kind of sample. */
export function overlays(cards: HTMLElement): void {
  const kinds = [...new Map(runs.flatMap((r) => r.charts.map((c) => [c.kind, c] as const))).values()];
  for (const kind of kinds) {
    const lines = runs.flatMap((r, i) => {
      const c = r.charts.find((other) => other.kind === kind.kind);
      const a = c?.curves.find((curve) => curve.aggregate);
      return c && a ? [{ label: `${r.name}: ${a.label}`, ...along(c.time_ns, a.value, c.span), colour: colour(r.colour), dash: Math.floor(i / 8) }] : [];
    });
    chart(card(cards, kind.title), { x: { label: "Time", quantity: "time_ns" }, y: { label: kind.axis, quantity: kind.quantity }, lines });
  }
}

export function overTime(cards: HTMLElement): void {
  const r = run();
  if (!r.charts.length) {
    const why = summaries[state.run].run.fidelity === "flow"
      ? "A run of flows has no time series: those of observe.interval are sampled from packets."
      : "No time series were sampled: observe.interval is 0, or the run was over before it.";
    card(cards, "Over time", why, true);
    return;
  }
  faultNote(cards);
  linkHeat(cards);
  const marker = () => (state.instant < 0 ? undefined : r.frames.time_ns[state.instant]);
  for (const c of r.charts) {
    const { x, y } = extent(c);
    // The aggregate goes on top, thicker and in the text's colour.
    const lines = c.curves.map((curve, i) => ({ label: curve.label, ...along(c.time_ns, curve.value, c.span), width: curve.aggregate ? 2.2 : 1.3,
      colour: curve.aggregate ? css("--text") : colour(i - 1) }));
    if (lines.length > 1) lines.push(lines.shift()!);
    chart(card(cards, c.title), { x: { label: "Time", quantity: "time_ns", max: x }, y: { label: c.axis, quantity: c.quantity, max: y }, lines, marker, faults: r.faults });
  }
}

// Runs that are compared have the same axes: the ends of those of a kind of chart.
function extent({ kind }: Chart): { x?: number; y?: number } {
  const same = runs.flatMap((r) => r.charts.filter((c) => c.kind === kind));
  if (runs.length < 2) return {};
  const most = (values: (number | null)[]) => values.reduce<number>((m, v) => Math.max(m, v ?? 0), 0);
  const top = most(same.flatMap((c) => c.curves.map((curve) => most(curve.value))));
  return { x: most(same.map((c) => most(c.time_ns))), y: top > 0 ? top * 1.08 : 1 };
}

// Faults named by their times.
const NAMED = 8;
export const faultWords = (r: Run): string => {
  const word = (m: Mark) => `${show("time_ns", m.time_ns)} ${m.repair ? "repair of" : "fault on"} ${m.on}${m.count > 1 ? ` and ${m.count - 1} more` : ""}`;
  const rest = r.faults.length - NAMED;
  return r.faults.slice(0, NAMED).map(word).join("; ") + (rest > 0 ? `; and ${rest} more instants` : "");
};

function faultNote(cards: HTMLElement): void {
  const r = run();
  const drag = "Drag across a chart to zoom all of them, double-click to see everything.";
  const faults = r.faults.length ? ` Upright lines are faults (solid) and repairs (dashed): ${faultWords(r)}.` : "";
  cards.append(element("p", { class: "note wide" }, drag + faults));
}

function linkHeat(cards: HTMLElement): void {
  const r = run();
  if (!planeOf(r, "utilisation")) return;
  const box = card(cards, "Links over time", "", true);
  const body = element("div");
  box.append(body);
  let metric: string | undefined, redraw = () => {};
  const draw = () => {
    if (metric === state.metric) return redraw();
    metric = state.metric;
    const plane = planeOf(r, state.metric), { title, quantity, scale } = metrics[state.metric];
    body.replaceChildren();
    if (!plane) {
      body.append(element("p", { class: "note" }, `${title}: none recorded.`));
      return;
    }
    const all = Array.from({ length: r.fabric.from.length }, (_, row) => ({ row, values: plane.row(row) }))
      .map((x) => ({ ...x, weight: x.values.reduce((a, b) => a + b, 0) }));
    const shown = all.sort((a, b) => b.weight - a.weight).slice(0, MOST).filter((x) => x.weight > 0);
    const of = r.fabric.blocks ? "lines between blocks (aggregated)" : "links";
    const which = shown.length < all.length ? `the ${shown.length} with the most, of ${show("count", all.length)} ${of}` : `all ${of}`;
    body.append(element("p", { class: "note" }, `${title}, ${which}; the strongest colour is ${show(quantity, plane.top)} ${scale}. "Colour by" above chooses what is shown.`));
    redraw = heatmap(body, Math.max(320, box.clientWidth - 30), {
      label: title, column: column(title, quantity), times: r.frames.time_ns, top: plane.top,
      rows: shown.map((x) => ({ name: rowName(r.fabric, x.row), values: x.values })),
      say: (row, i) => `${rowName(r.fabric, shown[row].row)}\n${show("time_ns", r.frames.time_ns[i])}: ${show(quantity, shown[row].values[i])} ${scale}`,
      choose: (row) => select({ kind: "row", row: shown[row].row }),
      marker: () => state.instant,
      faults: r.faults,
    });
  };
  on("look", draw);
  later(draw);
}
