// What is chosen - a link, a host, a switch, a flow - with its figures and its series.
import { Plane } from "./data";
import { chartNow, overTime, type Line } from "./chart";
import { button, card, element, table } from "./dom";
import { digits, show } from "./format";
import { linksOf, metrics, metricsOf, on, planeOf, rowName, run, select, serversOf, state, values } from "./state";
import { colour } from "./theme";
import { flowEnds, hostName, linkName, namesOf } from "./topology/names";
import type uPlot from "uplot";

let plots: uPlot[] = [];

export function inspector(cards: HTMLElement): void {
  const box = card(cards, "Chosen", "", true);
  box.id = "chosen";
  box.setAttribute("aria-live", "polite");
  const body = element("div");
  box.append(body);
  const draw = () => {
    plots.forEach((plot) => plot.destroy());
    plots = [];
    body.replaceChildren();
    const s = state.selected;
    if (!s) body.append(element("p", { class: "note" }, "Nothing yet: choose a link, a node or a flow in a picture, or find a name above the topology."));
    else if (s.kind === "row") row(body, s.row);
    else if (s.kind === "link") link(body, s.link);
    else if (s.kind === "member") member(body, s.node);
    else if (s.kind === "node") node(body, s.node);
    else if (s.kind === "server") server(body, s.server);
    else flow(body, s.index);
    if (s) body.prepend(button("Choose nothing", () => select(null), { class: "close" }));
  };
  on("selected", draw);
  on("look", () => plots.forEach((plot) => plot.redraw(false)));
  draw();
}

const title = (body: HTMLElement, text: string): void => body.append(element("h4", {}, text));

function facts(body: HTMLElement, list: [string, string][]): void {
  body.append(element("dl", { class: "facts" }, ...list.map(([k, v]) => element("div", {}, element("dt", {}, k), element("dd", {}, v)))));
}

function series(body: HTMLElement, charts: { label: string; axis?: string; quantity: "percent" | "bytes" | "count" | "rate_bps"; lines: Line[]; max?: number }[]): void {
  const grid = element("div", { class: "cards small" });
  body.append(grid);
  const boxes = charts.map(({ label }) => card(grid, label));
  const marker = () => (state.instant < 0 ? undefined : run().frames.time_ns[state.instant]);
  charts.forEach(({ label, axis, quantity, lines, max }, i) => {
    plots.push(chartNow(boxes[i], { x: { label: "Time", quantity: "time_ns" }, y: { label: axis ?? label, quantity, max }, lines, height: 190, marker, faults: run().faults }));
  });
}

function row(body: HTMLElement, row: number): void {
  const r = run(), t = r.fabric.totals;
  title(body, rowName(r.fabric, row));
  const busy: [string, string][] = t.busiest
    ? [["links", show("count", linksOf(r.fabric, row))], ["busy, mean", show("percent", t.utilisation[row])], ["busy, the busiest", show("percent", t.busiest[row])]]
    : [["busy", show("percent", t.utilisation[row])]];
  facts(body, [
    ...busy, [t.busiest ? "rate, together" : "rate", show("rate_bps", t.rate_bps[row])], ["sent", show("bytes", t.tx_bytes[row])],
    ["largest queue", show("bytes", t.max_queue_bytes[row])], ["drops", show("count", t.dropped[row])],
    ["ECN marks", show("count", t.marked[row])], ["pauses", show("count", t.pauses[row])], ["paused for", show("time_ns", t.paused_ns[row])],
  ]);
  if (row < r.fabric.from.length) {
    const [from, to] = [r.fabric.from[row], r.fabric.to[row]];
    body.append(element("p", {}, ...[from, to].map((n) => button(r.fabric.nodes[n].name, () => select({ kind: "node", node: n }), { class: "link" }))));
  }
  const time = r.frames.time_ns;
  const charts = metricsOf(r).flatMap((m) => {
    const y = planeOf(r, m)?.row(row);
    if (!y || ((m === "dropped" || m === "paused") && !y.some((v) => v > 0))) return [];
    const q = metrics[m].quantity as "percent" | "bytes" | "count";
    return [{ label: metrics[m].title, quantity: q, max: m === "utilisation" || m === "busiest" ? 1 : undefined, lines: [{ label: metrics[m].title, ...overTime(time, y, m === "queue" ? "instant" : "interval") }] }];
  });
  if (charts.length) series(body, charts);
  else body.append(element("p", { class: "note" }, "No series of it was recorded."));
}

// A link of a large fabric: its figures; series there are of its cell.
function link(body: HTMLElement, link: number): void {
  const r = run(), index = r.fabric.blocks!.index!, cell = index.row[link], many = linksOf(r.fabric, cell);
  title(body, linkName(r.fabric, link));
  facts(body, [
    ["busy", show("percent", index.utilisation[link])], ["rate", show("rate_bps", index.rate_bps[link])], ["sent", show("bytes", index.tx_bytes[link])],
    ["largest queue", show("bytes", index.max_queue_bytes[link])], ["drops", show("count", index.dropped[link])],
    ["ECN marks", show("count", index.marked[link])], ["pauses", show("count", index.pauses[link])], ["paused for", show("time_ns", index.paused_ns[link])],
  ]);
  body.append(element("p", {}, ...[index.from[link], index.to[link]].map((n) => button(namesOf(r.fabric)[n], () => select({ kind: "member", node: n }), { class: "link" }))));
  const what = many > 1 ? `Over time there are values of its cell only, which it shares with ${many - 1} others: ` : "Over time: ";
  body.append(element("p", { class: "note" }, what, button(rowName(r.fabric, cell), () => select({ kind: "row", row: cell }), { class: "link" })));
}

// A node of a large fabric, with all its links.
function member(body: HTMLElement, node: number): void {
  const r = run(), index = r.fabric.blocks!.index!, block = r.fabric.nodes[index.block[node]];
  title(body, `${namesOf(r.fabric)[node]} (${block.kind === "host" ? "host" : `${block.kind}, tier ${block.tier}`})`);
  body.append(element("p", { class: "note" }, "In the picture it is in ", button(block.name, () => select({ kind: "node", node: index.block[node] }), { class: "link" }), "."));
  const links = index.from.map((_, l) => l).filter((l) => index.from[l] === node || index.to[l] === node);
  const most = links.sort((a, b) => index.utilisation[b] - index.utilisation[a]).slice(0, 64);
  body.append(table(["Link", "Busy", "Largest queue", "Drops", "Pauses"], most.map((l) => ({
    cells: [linkName(r.fabric, l), show("percent", index.utilisation[l]), show("bytes", index.max_queue_bytes[l]), show("count", index.dropped[l]), show("count", index.pauses[l])],
    choose: () => select({ kind: "link", link: l }),
  }))));
  if (links.length > most.length) body.append(element("p", { class: "note" }, `${links.length - most.length} more links.`));
  if (index.of_links > index.from.length) {
    body.append(element("p", { class: "note" }, `The page has figures of the ${show("count", index.from.length)} busiest of ${show("count", index.of_links)} links; links.parquet has all.`));
  }
  toServer(body, node);
  if (block.kind === "host") flowsOf(body, node);
}

function node(body: HTMLElement, node: number): void {
  const r = run();
  const g = r.fabric, info = g.nodes[node], many = g.blocks?.nodes[node];
  const what = many && many > 1 ? `${show("count", many)} ${info.kind === "host" ? "hosts" : `${info.kind}es`}` : info.kind;
  title(body, `${info.name} (${info.kind === "host" ? what : `${what}, tier ${info.tier}`})`);
  const links = g.from.map((_, l) => l).filter((l) => g.from[l] === node || g.to[l] === node);
  const { at } = values(r), { title: figure, quantity } = metrics[state.metric];
  const most = [...links].sort((a, b) => at(b) - at(a)).slice(0, 24);
  const rate = info.kind === "host" && !g.blocks ? Plane.of(r.frames.host_rate_bps, r.frames.time_ns.length)?.row(node) : undefined;
  if (rate) series(body, [{ label: "Payload received", quantity: "rate_bps", lines: [{ label: info.name, ...overTime(r.frames.time_ns, rate, "interval") }] }]);
  else if (r.frames.time_ns.length) {
    const use = planeOf(r, "utilisation"), lines = most.filter((l) => g.from[l] === node).slice(0, 6);
    if (use && lines.length) {
      series(body, [{ label: "Its busiest links out", axis: "Utilisation", quantity: "percent", max: 1,
        lines: lines.map((l) => ({ label: rowName(g, l), ...overTime(r.frames.time_ns, use.row(l), "interval") })) }]);
    }
  }
  body.append(table(["Link", figure, "Drops", "Pauses"], most.map((l) => ({
    cells: [rowName(g, l), show(quantity, at(l)), show("count", g.totals.dropped[l]), show("count", g.totals.pauses[l])],
    choose: () => select({ kind: "row", row: l }),
  }))));
  if (links.length > most.length) body.append(element("p", { class: "note" }, `${links.length - most.length} more links.`));
  if (!g.blocks) toServer(body, node);
  if (info.kind === "host" && !g.blocks) flowsOf(body, node);
}

// The server of a GPU.
function toServer(body: HTMLElement, node: number): void {
  const { servers } = run().fabric;
  if (!servers || node >= servers.servers * servers.gpus) return;
  const server = Math.floor(node / servers.gpus);
  body.append(element("p", {}, button(`srv${server}`, () => select({ kind: "server", server }), { class: "link" })));
}

// A server: each of its lanes, both ways.
function server(body: HTMLElement, server: number): void {
  const r = run(), s = r.fabric.servers!, { at } = values(r), { title: figure, quantity } = metrics[state.metric];
  const column = Math.floor((server * s.columns) / s.servers), several = s.columns < s.servers;
  title(body, `srv${server} (GPUs: ${s.gpus}, NICs: ${s.nics})`);
  if (several) body.append(element("p", { class: "note" }, `Figures are of ${serversOf(s, column)}, which share a column.`));
  const value = (row: number | null) => (row == null ? "-" : show(quantity, at(row)));
  body.append(table(["Lane", "Leaf", `${figure}, up`, `${figure}, down`], s.lanes.map((lane, i) => {
    const cell = column * s.lanes.length + i, up = s.up[cell];
    return { cells: [lane, s.leaves[cell], value(up), value(s.down[cell])], choose: up == null ? undefined : () => select({ kind: "row", row: up }) };
  })));
}

function flowsOf(body: HTMLElement, host: number): void {
  const f = run().flows;
  const found = f.flow.map((_, i) => i).filter((i) => f.src_host[i] === host || f.dst_host[i] === host);
  if (!found.length) return;
  const slow = (i: number) => f.slowdown[i] ?? Infinity;
  const rows = found.sort((a, b) => slow(b) - slow(a)).slice(0, 12).map((i) => ({
    cells: [`flow ${f.flow[i]}`, flowEnds(run().fabric, f.src_host[i], f.dst_host[i]), show("bytes", f.size_bytes[i]), show("time_ns", f.fct_ns[i]),
      f.slowdown[i] == null ? f.status[i] : digits(f.slowdown[i]!)],
    choose: () => select({ kind: "flow", index: i }),
  }));
  body.append(element("p", { class: "note" }, `Slowest of the ${found.length} flows from or to it that are in this page.`),
    table(["Flow", "Hosts", "Size", "Time", "Slowdown"], rows));
}

function flow(body: HTMLElement, i: number): void {
  const r = run(), f = r.flows;
  title(body, `flow ${f.flow[i]}`);
  const name = (host: number) => (r.fabric.blocks ? undefined : r.fabric.nodes[host]?.name) ?? hostName(r.fabric, host);
  const job = f.job[i] == null ? [] : [["job", r.jobs.rows.find((j) => j.job === f.job[i])?.name ?? String(f.job[i])] as [string, string]];
  facts(body, [
    ["from", name(f.src_host[i])], ["to", name(f.dst_host[i])], ["size", show("bytes", f.size_bytes[i])],
    ["posted", show("time_ns", f.start_ns[i])], ["completion time", show("time_ns", f.fct_ns[i])],
    ["slowdown", f.slowdown[i] == null ? "-" : digits(f.slowdown[i]!)], ["status", f.status[i].replaceAll("_", " ")],
    ["group", r.groups[f.group[i]]], ["scheme", r.schemes[f.scheme[i]]], ...job,
    ["drops", show("count", f.dropped[i])], ["sent again", show("count", f.retransmitted[i])],
    ["out-of-order degree", show("count", f.ooo_degree[i])], ["timeouts", show("count", f.timeouts[i])],
  ]);
  const watched = r.frames.flows.find((w) => w.flow === f.flow[i]);
  if (!watched) {
    const others = r.frames.flows.length
      ? ` ${r.frames.flows.length} others were (see "Paths").` : "";
    body.append(element("p", { class: "note" }, `It was not followed over time.${others} To record its rate and paths, run the scenario again: `,
      element("code", {}, `pathweave run scenario.toml --set 'observe.follow=[${f.flow[i]}]'`)));
    return;
  }
  const kinds = new Map<string, typeof watched.curves>();
  watched.curves.forEach((c) => kinds.set(c.kind, [...(kinds.get(c.kind) ?? []), c]));
  const names: Record<string, string> = { policy_rate_bps: "Rate allowed", goodput_bps: "Throughput", unfinished_bytes: "Still to arrive", inflight_bytes: "In flight", inflight_paths_count: "Different paths in flight", path_share_ratio: "Share of each path" };
  series(body, [...kinds].map(([kind, curves]) => ({
    label: names[kind] ?? kind,
    quantity: curves[0].quantity as "percent",
    lines: curves.slice(0, 16).map((c, k) => ({
      label: kind === "path_share_ratio" ? `path ${c.index}` : names[kind], ...overTime(r.frames.time_ns, c.value, c.span), colour: colour(k), dash: Math.floor(k / 8),
    })),
  })));
}
