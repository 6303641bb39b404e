// What the time of an iteration went to, what it waited for, and what bandwidth its collectives had.
import { summaries } from "./data";
import { later, logSplits } from "./chart";
import { canvas, card, choice, element, svg, table, tip } from "./dom";
import { exported } from "./export";
import { anchor, digits, instants, show, ticks, unitOf, wide } from "./format";
import { run, select, state } from "./state";
import { activityColours, kinds } from "./colours";
import { areaColour, css } from "./theme";
import { flowEnds, hostName } from "./topology/names";

const BAR = 20, GAP = 6;
// Usual width of a letter.
const LETTER = 7;
// Collectives in the table.
const MOST = 12;

const summary = () => summaries[state.run];

// A name of at most so many letters: its middle is left out, as many names differ in their ends alone, others in their beginnings.
function cut(name: string, most: number): string {
  const end = Math.floor((most - 1) / 2);
  return name.length > most ? `${name.slice(0, most - 1 - end)}\u2026${name.slice(-end)}` : name;
}

// Opens the panel of a flow, if the page has it.
function openFlow(flow: number): boolean {
  const index = run().flows.flow.indexOf(flow);
  if (index < 0) return false;
  select({ kind: "flow", index });
  document.getElementById("chosen")?.scrollIntoView();
  return true;
}

/** A bar an iteration: computation, exposed communication by kind, and what is left. */
export function waterfall(cards: HTMLElement): void {
  const { iterations, jobs } = summary();
  if (!iterations.length) return;
  const which = iterations.length < jobs.count ? `The ${iterations.length} longest of ${show("count", jobs.count)} jobs` : "All jobs";
  const box = card(cards, "Where the time of an iteration goes", `${which}, by start; means over ranks. Exposed communication is that during which a rank computed nothing for the job; where several kinds are under way they share it. Idle: neither, such as a stage of a pipeline that waits for its turn. layers.parquet has the same by layer.`, true);
  box.id = "iterations";
  const names = kinds(), parts = ["computation", ...names, "idle"];
  const hue = activityColours();
  box.append(element("p", { class: "keys" }, ...parts.map((part) => {
    const square = element("i");
    square.style.background = hue(part);
    return element("span", {}, square, names.includes(part) ? `exposed ${part}` : part);
  })));
  later(() => {
    const width = Math.max(280, box.clientWidth - 30), high = iterations.length <= 24 ? BAR : 8;
    const longest = Math.max(...iterations.map((i) => i.name.length)), left = Math.min(Math.max(80, longest * LETTER + 10), width * 0.45);
    const height = iterations.length * (high + GAP);
    const most = Math.max(...iterations.map((i) => i.time_ns), 1);
    const x = (ns: number) => left + (ns / most) * (width - left - 10);
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 24}`, role: "img", "aria-label": "Time of iterations by what it went to" });
    const text = (at: number, y: number, words: string, anchor: string) => {
      const t = svg("text", { x: at, y, "text-anchor": anchor });
      t.textContent = words;
      picture.append(t);
    };
    for (const { at, label } of instants(0, most, (width - left) / 80)) {
      picture.append(svg("line", { x1: x(at), y1: 0, x2: x(at), y2: height, stroke: css("--grid") }));
      const side = anchor(x(at), wide(label), 0, width);
      text(side === "end" ? width : x(at), height + 18, label, side);
    }
    iterations.forEach((iteration, i) => {
      const y = GAP / 2 + i * (high + GAP);
      text(0, y + high / 2 + 4, cut(iteration.name, Math.floor((left - 6) / LETTER)), "start");
      let from = 0;
      const add = (part: string, ns: number) => {
        if (ns <= 0) return;
        const bar = svg("rect", { x: x(from), y, width: Math.max(0.5, x(from + ns) - x(from)), height: high, fill: hue(part) });
        tip(bar, () => `${iteration.name}, ${show("time_ns", iteration.time_ns)}\n${names.includes(part) ? `exposed ${part}` : part}: ${show("time_ns", ns)}, ${digits((100 * ns) / iteration.time_ns, 3)} %`
          + (part === "computation" ? `\nlongest at ${hostName(run().fabric, iteration.longest_computation_host)}: ${show("time_ns", iteration.longest_computation_ns)}` : ""));
        picture.append(bar);
        from += ns;
      };
      add("computation", iteration.computation_ns);
      names.forEach((kind) => add(kind, iteration.exposed_ns[kind] ?? 0));
      add("idle", iteration.idle_ns);
    });
    box.append(picture);
    exported(box, picture, { name: "Iterations", legend: () => parts.map((label) => ({ label, colour: hue(label) })), numbers: () => ({
      head: ["iteration", "time (ns)", ...parts.map((part) => `${part} (ns)`)],
      rows: iterations.map((i) => [i.name, i.time_ns, i.computation_ns, ...names.map((kind) => i.exposed_ns[kind] ?? 0), i.idle_ns]),
    }) });
  });
}

/** The chain of tasks that an iteration waited for, over time, and in words. */
export function criticalPath(cards: HTMLElement): void {
  const paths = summary().critical_paths;
  if (!paths.length) return;
  const r = run();
  const box = card(cards, "Critical path", "Each task begins when the one before it ends; the last one ends the job. Choose a message to see its flow. critical.parquet has all steps of all jobs.", true);
  box.id = "critical";
  const longest = paths.reduce((best, path, i) => (path.time_ns > paths[best].time_ns ? i : best), 0);
  const body = element("div");
  const draw = (at: number) => {
    const path = paths[at], steps = r.critical_paths.steps.filter((step) => step.job === path.job);
    const words = element("p", { id: "critical-words" }, `${path.words}.`);
    body.replaceChildren(words);
    if (!steps.length) return;
    const names = [...new Set(steps.map((step) => step.activity))];
    const hue = activityColours(), left = r.critical_paths.left_out.find((of) => of.job === path.job);
    const from = steps[0].start_ns, to = Math.max(...steps.map((step) => step.finish_ns), from + 1);
    const width = Math.max(280, box.clientWidth - 30), x = (ns: number) => 4 + ((ns - from) / (to - from)) * (width - 8);
    const picture = svg("svg", { viewBox: `0 0 ${width} 84`, role: "img", "aria-label": "Critical path over time" });
    for (const { at, label } of instants(from, to, width / 90)) {
      const side = anchor(x(at), wide(label), 0, width);
      const text = svg("text", { x: side === "start" ? 0 : side === "end" ? width : x(at), y: 80, "text-anchor": side });
      text.textContent = label;
      picture.append(svg("line", { x1: x(at), y1: 0, x2: x(at), y2: 64, stroke: css("--grid") }), text);
    }
    const said = element("p", { class: "note", "aria-live": "polite" });
    for (const step of steps) {
      const y = step.kind === "computation" ? 2 : step.kind === "message" ? 34 : 26;
      const bar = svg("rect", { x: x(step.start_ns), y, width: Math.max(1, x(step.finish_ns) - x(step.start_ns)), height: step.kind === "wait" ? 12 : 28, fill: hue(step.activity), class: step.flow == null ? "" : "choosable" });
      const where = step.peer_host == null ? hostName(run().fabric, step.host) : `${flowEnds(run().fabric, step.host, step.peer_host)}, flow ${step.flow}`;
      tip(bar, () => `${step.words}\n${where}\n${show("time_ns", step.start_ns)} to ${show("time_ns", step.finish_ns)}, ${show("time_ns", step.finish_ns - step.start_ns)}`);
      if (step.flow != null) bar.addEventListener("click", () => {
        if (!openFlow(step.flow!)) said.textContent = `Flow ${step.flow} is not in this page; it is the row of flows.parquet with flow = ${step.flow}.`;
      });
      picture.append(bar);
    }
    body.append(picture, element("p", { class: "keys" }, ...names.map((name) => {
      const square = element("i");
      square.style.background = hue(name);
      return element("span", {}, square, name);
    })), element("p", { class: "note" }, `Above: computations. Below: messages.${left ? ` ${show("count", left.steps)} more steps of at most ${show("time_ns", left.longest_ns)}, ${show("time_ns", left.time_ns)} in all, are left out, evenly over time: where the picture is empty, there are some.` : ""}`), said);
    exported(body, picture, { name: "Critical path", legend: () => names.map((label) => ({ label, colour: hue(label) })), numbers: () => ({
      head: ["job", "kind", "activity", "host", "peer host", "flow", "start (ns)", "finish (ns)"],
      rows: steps.map((s) => [path.name, s.kind, s.activity, s.host, s.peer_host, s.flow, s.start_ns, s.finish_ns]),
    }) });
  };
  if (paths.length > 1) box.append(choice("Job", paths.map((path, i): [number, string] => [i, `${path.name}, ${show("time_ns", path.time_ns)}`]), longest, (v) => draw(Number(v))));
  box.append(body);
  later(() => draw(longest));
}

/** Bus bandwidth of collectives by their size, and those that were exposed longest in a table. */
export function collectives(cards: HTMLElement): void {
  const c = run().collectives;
  if (!c.of) return;
  const part = c.kind.length < c.of ? `The ${show("count", c.kind.length)} of ${show("count", c.of)} that were exposed longest` : `All ${show("count", c.of)}`;
  const shown = c.kind.map((_, i) => i).filter((i) => c.size_bytes[i] && c.bus_bandwidth_bps[i]);
  if (shown.length) {
    const box = card(cards, "Bus bandwidth of collectives", `${part}. Size and bus bandwidth as nccl-tests define them, over the mean time of the ranks, so that it can be held against the rate of a host's link.`);
    later(() => scatterOf(box, shown));
  }
  const box = card(cards, "Exposed collectives", `${part}; here the first ${Math.min(MOST, c.kind.length)}. Exposed is the mean over ranks. collectives.parquet has all.`, true);
  const rows = c.kind.slice(0, MOST).map((kind, i) => ({
    cells: [c.layer[i] ? `${kind}, ${c.layer[i]}` : kind, show("count", c.ranks[i]), c.size_bytes[i] == null ? "-" : show("bytes", c.size_bytes[i]!), show("time_ns", c.exposed_ns[i]),
      `${c.last_to_start[i]}, ${show("time_ns", c.spread_ns[i])} after the first`, c.slowest_flow[i] == null ? "-" : `flow ${c.slowest_flow[i]}`],
    choose: c.slowest_flow[i] != null && run().flows.flow.includes(c.slowest_flow[i]!) ? () => { openFlow(c.slowest_flow[i]!); } : undefined,
  }));
  box.append(table(["Collective", "Ranks", "Size", "Exposed", "Began last", "Slowest"], rows));
}

function scatterOf(box: HTMLElement, shown: number[]): void {
  const c = run().collectives, names = kinds();
  const height = 300, left = 70, bottom = 34, top = 10, right = 12, width = Math.max(260, box.clientWidth - 30);
  const [image, g] = canvas(width, height, "Size and bus bandwidth of collectives");
  const sizes = shown.map((i) => c.size_bytes[i]!), rates = shown.map((i) => c.bus_bandwidth_bps[i]!);
  const extent = (of: number[]): [number, number] => [of.reduce((a, b) => Math.min(a, b)) / 1.5, of.reduce((a, b) => Math.max(a, b)) * 1.5];
  const [x0, x1] = extent(sizes), most = rates.reduce((a, b) => Math.max(a, b)) * 1.05, unit = unitOf("rate_bps", most);
  const x = (v: number) => left + (Math.log(v / x0) / Math.log(x1 / x0)) * (width - left - right);
  const y = (v: number) => height - bottom - (v / most) * (height - bottom - top);
  const draw = () => {
  g.clearRect(0, 0, width, height);
  g.font = "12px system-ui, sans-serif";
  g.strokeStyle = css("--grid");
  g.fillStyle = css("--soft");
  const line = (a: number, b: number, d: number, e: number) => { g.beginPath(); g.moveTo(a, b); g.lineTo(d, e); g.stroke(); };
  g.textAlign = "center";
  let free = 0;
  for (const v of logSplits(x0, x1)) {
    line(x(v), top, x(v), height - bottom);
    const text = show("bytes", v), half = g.measureText(text).width / 2 + 6;
    if (x(v) - half < free || x(v) + half > width) continue;
    g.fillText(text, x(v), height - bottom + 16);
    free = x(v) + half;
  }
  g.textAlign = "right";
  for (const rate of ticks(0, most, 5)) {
    line(left, y(rate), width - right, y(rate));
    g.fillText(`${digits(rate / unit.scale, 6)} ${unit.name}`, left - 6, y(rate) + 4);
  }
  g.fillText("Size of the collective", width - right, height - 4);
  for (const i of shown) {
    g.fillStyle = areaColour(names.indexOf(c.kind[i]));
    g.beginPath();
    g.arc(x(c.size_bytes[i]!), y(c.bus_bandwidth_bps[i]!), 3.5, 0, 7);
    g.fill();
  }
  };
  draw();
  const nearest = (e: MouseEvent): number | undefined => {
    const rect = image.getBoundingClientRect(), [px, py] = [e.clientX - rect.left, e.clientY - rect.top];
    const distance = (i: number) => (x(c.size_bytes[i]!) - px) ** 2 + (y(c.bus_bandwidth_bps[i]!) - py) ** 2;
    const best = shown.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    return distance(best) < 144 ? best : undefined;
  };
  tip(image, (e) => {
    const i = nearest(e);
    return i === undefined ? "" : `${c.kind[i]}${c.layer[i] ? `, ${c.layer[i]}` : ""}, ${show("count", c.ranks[i])} ranks\n${show("bytes", c.size_bytes[i]!)} at ${show("rate_bps", c.bus_bandwidth_bps[i]!)}`;
  });
  box.append(image, element("p", { class: "keys" }, ...[...new Set(shown.map((i) => c.kind[i]))].map((kind) => {
    const square = element("i");
    square.style.background = areaColour(names.indexOf(kind));
    return element("span", {}, square, kind);
  })));
  exported(box, image, { name: "Bus bandwidth of collectives", draw, legend: () => names.map((label, i) => ({ label, colour: areaColour(i) })), numbers: () => ({
    head: ["collective", "layer", "ranks", "size (bytes)", "bus bandwidth (bit/s)"],
    rows: shown.map((i) => [c.kind[i], c.layer[i], c.ranks[i], c.size_bytes[i], c.bus_bandwidth_bps[i]]),
  }) });
}
