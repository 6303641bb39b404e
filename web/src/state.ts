// What is chosen on the page. Parts that depend on it ask to be told.
import { save } from "./address";
import { zoom } from "./chart";
import { Plane, runs, type Fabric, type Outage, type Run, type Servers } from "./data";
import type { Quantity } from "./data";
import { show } from "./format";
import { colour, diverging, heat } from "./theme";

export type Metric = "utilisation" | "busiest" | "queue" | "dropped" | "paused";
export type Selection =
  | { kind: "row"; row: number }
  | { kind: "node"; node: number }
  /** A node and a link of a large fabric, which are drawn as parts of a block and of a cell. */
  | { kind: "member"; node: number }
  | { kind: "link"; link: number }
  | { kind: "server"; server: number }
  | { kind: "flow"; index: number };

export const state = {
  run: 0,
  group: "",
  measure: "fct_ns",
  metric: "utilisation" as Metric,
  /** The run that the topology is compared with; -1: none. */
  against: -1,
  /** -1 is the whole run. */
  instant: -1,
  selected: null as Selection | null,
  /** The server that is drawn by itself. */
  server: 0,
  /** Servers are drawn without their GPUs. */
  folded: false,
  /** A bar of the timeline of hosts. */
  activity: null as number | null,
};

type Topic = "look" | "selected";
let listeners: { topic: Topic; tell: () => void }[] = [];
/** Forgets who listened: the page is drawn anew. */
export const forget = (): void => { listeners = []; };
export const on = (topic: Topic, tell: () => void): void => { listeners.push({ topic, tell }); };
/** The metric or the instant has changed, or what is selected. */
export const changed = (topic: Topic): void => {
  listeners.filter((l) => l.topic === topic).forEach((l) => l.tell());
  save();
};

export const run = (): Run => runs[state.run];

/** The colour of a workload group: the only one has that of its scheme, as its curves do. */
export const groupColour = (r: Run, group: number): string => colour((r.colour + (r.groups.length > 1 ? group + 1 : 0)) % 8);

/** What is not as the page opens, for its address. */
export function written(): [string, string][] {
  const s = state.selected;
  const chosen = s?.kind === "flow" ? `flow:${run().flows.flow[s.index]}` : s?.kind === "node" || s?.kind === "member" ? `${s.kind}:${s.node}`
    : s?.kind === "link" ? `link:${s.link}` : s?.kind === "server" ? `server:${s.server}` : s ? `row:${s.row}` : "";
  const all: [string, string, string][] = [
    ["run", String(state.run), "0"], ["group", state.group, ""], ["of", state.measure, "fct_ns"], ["against", String(state.against), "-1"], ["colour", state.metric, "utilisation"],
    ["at", String(state.instant), "-1"], ["chosen", chosen, ""], ["server", String(state.server), "0"], ["servers", state.folded ? "folded" : "", ""], ["activity", state.activity == null ? "" : String(state.activity), ""], ["time", zoom.part?.map((t) => Math.round(t)).join("-") ?? "", ""],
  ];
  return all.flatMap(([key, value, usual]): [string, string][] => (value === usual ? [] : [[key, value]]));
}

/** The other way round. What this page does not have is left as the page opens. */
export function readIn(choices: URLSearchParams): void {
  const number = (key: string, below: number, usual: number) => {
    const n = Number(choices.get(key) ?? usual);
    return Number.isInteger(n) && n >= 0 && n < below ? n : usual;
  };
  state.run = number("run", runs.length, 0);
  state.against = number("against", runs.length, -1);
  const r = run();
  const group = choices.get("group") ?? "", measure = choices.get("of") ?? "", metric = choices.get("colour") ?? "";
  state.group = r.cdfs.some((c) => c.group === group) ? group : "";
  state.measure = r.cdfs.some((c) => c.measure === measure) ? measure : "fct_ns";
  state.metric = metricsOf(r).find((m) => m === metric) ?? "utilisation";
  state.instant = number("at", r.frames.time_ns.length, -1);
  const [kind, text] = (choices.get("chosen") ?? "").split(":"), n = text ? Number(text) : -1, index = r.flows.flow.indexOf(n);
  const exists = (most: number) => Number.isInteger(n) && n >= 0 && n < most;
  state.selected = kind === "flow" && index >= 0 ? { kind, index }
    : kind === "node" && exists(r.fabric.nodes.length) ? { kind, node: n }
    : kind === "member" && exists(r.fabric.blocks?.index?.block.length ?? 0) ? { kind, node: n }
    : kind === "link" && exists(r.fabric.blocks?.index?.row.length ?? 0) ? { kind, link: n }
    : kind === "server" && exists(r.fabric.servers?.servers ?? 0) ? { kind, server: n }
    : kind === "row" && exists(rows(r.fabric)) ? { kind, row: n } : null;
  state.server = number("server", r.fabric.servers?.servers ?? 0, 0);
  state.folded = choices.get("servers") === "folded";
  const bar = number("activity", r.hosts.bars.row.length, -1);
  state.activity = bar < 0 ? null : bar;
  const [from, to] = (choices.get("time") ?? "").split("-").map(Number);
  zoom.part = from >= 0 && to > from ? [from, to] : undefined;
}

/** What of the picture is chosen: of a node, a server and a link of a large fabric the block and the cell. */
export function drawn(): Selection | null {
  const s = state.selected, index = run().fabric.blocks?.index;
  if (s?.kind === "server" && index) return { kind: "node", node: index.block[s.server * run().fabric.servers!.gpus] };
  if (s?.kind === "member" && index) return { kind: "node", node: index.block[s.node] };
  if (s?.kind === "link" && index) return { kind: "row", row: index.row[s.link] };
  return s;
}

export function select(selection: Selection | null): void {
  state.selected = selection;
  const server = serverOf(selection);
  if (server !== undefined) state.server = server;
  changed("selected");
}

/** The server that something belongs to. */
function serverOf(s: Selection | null): number | undefined {
  const { servers, blocks } = run().fabric;
  if (!servers || !s) return undefined;
  if (s.kind === "server") return s.server;
  // Hosts come first among nodes.
  const isGpu = (s.kind === "member" || (s.kind === "node" && !blocks)) && s.node < servers.servers * servers.gpus;
  return isGpu ? Math.floor(s.node / servers.gpus) : undefined;
}

export const metrics: Record<Metric, { title: string; scale: string; quantity: Quantity }> = {
  utilisation: { title: "Utilisation", scale: "busy", quantity: "percent" },
  busiest: { title: "Utilisation of the busiest link", scale: "busy", quantity: "percent" },
  queue: { title: "Largest queue", scale: "queued", quantity: "bytes" },
  dropped: { title: "Drops", scale: "packets dropped", quantity: "count" },
  paused: { title: "Time paused", scale: "of the time paused", quantity: "percent" },
};

/** What the links of a run can be coloured by: where each is drawn by itself, the busiest is that one. */
export const metricsOf = (r: Run): Metric[] => (Object.keys(metrics) as Metric[]).filter((m) => m !== "busiest" || r.fabric.totals.busiest);

export function planeOf(r: Run, metric: Metric): Plane | undefined {
  const f = r.frames;
  const packed = { utilisation: f.utilisation, busiest: f.busiest, queue: f.queue_bytes, dropped: f.dropped, paused: f.paused }[metric];
  return Plane.of(packed, f.time_ns.length);
}

function totalsOf(r: Run, metric: Metric): number[] {
  const t = r.fabric.totals;
  if (metric === "paused") return t.paused_ns.map((ns) => ns / (r.simulated_ns || 1));
  return { utilisation: t.utilisation, busiest: t.busiest ?? t.utilisation, queue: t.max_queue_bytes, dropped: t.dropped }[metric];
}

/** The value of each row, as it is coloured, and the value that has the strongest colour. */
export function values(r: Run, metric = state.metric, instant = state.instant): { at: (row: number) => number; top: number } {
  const totals = totalsOf(r, metric);
  const whole = metric === "utilisation" || metric === "busiest";
  if (instant < 0) return { at: (row) => totals[row], top: whole ? 1 : totals.reduce((a, b) => Math.max(a, b), 0) };
  const plane = planeOf(r, metric);
  return { at: (row) => plane?.at(row, instant) ?? 0, top: whole ? 1 : plane?.top ?? 0 };
}

/** The run the topology is compared with, if it has the same links. */
export function against(): Run | undefined {
  const other = runs[state.against], own = run();
  return other && other !== own && alike(other.fabric, own.fabric) ? other : undefined;
}

/** What the topology is coloured by: the values of the run, or how much they are above those of another, over the whole run. */
export function shown(): { at: (row: number) => number; top: number; colour: (part: number) => string } {
  const other = against(), own = values(run(), state.metric, other ? -1 : state.instant);
  if (!other) return { ...own, colour: heat };
  const theirs = values(other, state.metric, -1);
  const at = (row: number) => own.at(row) - theirs.at(row);
  const top = Array.from({ length: rows(other.fabric) }, (_, row) => Math.abs(at(row))).reduce((a, b) => Math.max(a, b), 0);
  return { at, top, colour: diverging };
}

/** Faults on a row at the instant that is shown, or in the whole run. */
export function outages(row: number): Outage[] {
  const r = run(), at = state.instant < 0 || against() ? undefined : r.frames.time_ns[state.instant];
  return r.fabric.outages.filter((o) => o.row === row && (at === undefined || (o.from_ns <= at && (o.until_ns == null || o.until_ns > at))));
}
const outageWords = (row: number): string => outages(row).slice(0, 3).map((o) =>
  `; a fault on it from ${show("time_ns", o.from_ns)} ${o.until_ns == null ? "on" : `to ${show("time_ns", o.until_ns)}`}`).join("");

/** The value of a row in words; of several links their mean and the busiest. */
export const told = (row: number): string => figureOf(row) + outageWords(row);

function figureOf(row: number): string {
  const { fabric } = run(), links = linksOf(fabric, row), own = said(shown().at(row));
  if (links === 1 || against() || (state.metric !== "utilisation" && state.metric !== "busiest")) return links === 1 ? own : `${own} (${show("count", links)} links)`;
  const [mean, most] = (["utilisation", "busiest"] as const).map((m) => show("percent", values(run(), m).at(row)));
  return `mean ${mean}, busiest ${most} busy (${show("count", links)} links)`;
}

/** A value as the topology shows it. */
export function said(value: number): string {
  const { quantity, scale } = metrics[state.metric], other = against();
  return other ? `${value > 0 ? "+" : ""}${show(quantity, value)} ${scale}, compared with ${other.name}` : `${show(quantity, value)} ${scale}`;
}

export const rows = (fabric: Fabric): number => fabric.totals.utilisation.length;
/** Whether two fabrics have the same links, drawn alike. */
export const alike = (a: Fabric, b: Fabric): boolean => rows(a) === rows(b) && !a.blocks === !b.blocks;
/** Links that a row stands for. */
export const linksOf = (fabric: Fabric, row: number): number => fabric.blocks?.links[row] ?? 1;

export function rowName(fabric: Fabric, row: number): string {
  const panel = fabric.blocks?.panels.findLast((p) => p.first_row <= row);
  if (!panel) return `${fabric.nodes[fabric.from[row]]?.name} > ${fabric.nodes[fabric.to[row]]?.name}`;
  const cell = row - panel.first_row;
  if (panel.of_servers) {
    const [column, lane] = [Math.floor(cell / panel.ports), cell % panel.ports];
    return `${serversOf(fabric.servers!, column)}, ${fabric.servers!.lanes[lane]} ${panel.direction}`;
  }
  return `${panelName(panel)}, ${Math.floor(cell / panel.ports) + 1} of ${panel.owners}, link ${(cell % panel.ports) + 1}`;
}
/** The servers of a column, in words. */
export function serversOf(s: Servers, column: number): string {
  const first = Math.ceil((column * s.servers) / s.columns), last = Math.ceil(((column + 1) * s.servers) / s.columns) - 1;
  return first === last ? `srv${first}` : `srv${first} to srv${last}`;
}
/** Links of hosts are those of the lowest tier that lead up or down. */
export function panelName(p: { tier: number; direction: string }): string {
  if (p.direction === "level") return `within tier ${p.tier}`;
  return `${p.tier === 0 ? "host links" : `tier ${p.tier - 1} to ${p.tier}`} ${p.direction}`;
}
