// Jobs and events over time.
import { card, element, svg, tip } from "./dom";
import { exported } from "./export";
import { later } from "./chart";
import { anchor, instants, show, wide } from "./format";
import { groupColour, run, select } from "./state";
import { colour, css } from "./theme";
import { flowEnds } from "./topology/names";


// As much of a name as there is room for.
const cut = (name: string, room: number): string => {
  const most = Math.floor(room / 7);
  return name.length > most ? name.slice(0, most - 1) + "…" : name;
};

// A picture with a time axis below it; `x` of nanoseconds.
interface Frame { picture: SVGElement; x: (ns: number) => number; text: (x: number, y: number, content: string, anchor?: string) => SVGElement; width: number; left: number }
function frame(box: HTMLElement, height: number, end: number, label: string): Frame {
  const width = Math.max(280, box.clientWidth - 30), left = width < 520 ? 130 : 170;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height + 30}`, role: "img", "aria-label": label });
  const x = (ns: number) => left + (ns / (end || 1)) * (width - left - 10);
  const text = (at: number, y: number, content: string, anchor = "start") => {
    const t = svg("text", { x: at, y, "text-anchor": anchor });
    t.textContent = content;
    picture.append(t);
    return t;
  };
  for (const { at, label } of instants(0, end, (width - left) / 80)) {
    picture.append(svg("line", { x1: x(at), y1: 0, x2: x(at), y2: height, stroke: css("--grid") }));
    const side = anchor(x(at), wide(label), 0, width);
    text(side === "end" ? width : x(at), height + 20, label, side);
  }
  box.append(picture);
  return { picture, x, text, width, left };
}

export function jobs(cards: HTMLElement): void {
  const r = run(), { of, rows } = r.jobs;
  if (!rows.length) return;
  const part = rows.length < of ? `The ${rows.length} longest of ${show("count", of)} jobs, by start.` : `${show("count", of)} ${of === 1 ? "job" : "jobs"}, by start.`;
  const box = card(cards, "Jobs", `${part} A bar is from when its first task could start to when its last was over; striped ones did not finish. Below a job: those of its flows that are in this page.`, true);
  later(() => {
    // Few jobs are shown with their flows.
    const f = r.flows, flowsOf = (job: number) => (rows.length <= 6 ? f.flow.map((_, i) => i).filter((i) => f.job[i] === job && f.fct_ns[i] != null).slice(0, 160) : []);
    const high = rows.length <= 40 ? 18 : Math.max(2, Math.floor(720 / rows.length));
    const lanes = rows.map((job) => flowsOf(job.job).sort((a, b) => f.start_ns[a] - f.start_ns[b]));
    const height = lanes.reduce((sum, lane) => sum + high + (lane.length ? Math.min(lane.length, 80) * 2 + 6 : 0), 0);
    const { picture, x, text, left } = frame(box, height, r.simulated_ns, "Jobs over time");
    let y = 0;
    rows.forEach((job, i) => {
      const until = job.finish_ns ?? r.simulated_ns;
      const bar = svg("rect", { x: x(job.start_ns), y: y + 1, width: Math.max(1, x(until) - x(job.start_ns)), height: Math.max(1, high - 2), fill: groupColour(r, job.group), class: job.finish_ns == null ? "unfinished" : "" });
      if (job.finish_ns == null) bar.setAttribute("stroke-dasharray", "3 3"), bar.setAttribute("stroke", css("--text")), bar.setAttribute("fill-opacity", "0.35");
      const took = job.time_ns ?? until - job.start_ns, overlap = until - job.start_ns - took;
      tip(bar, () => `${job.name}: ${show("time_ns", job.start_ns)} to ${job.finish_ns == null ? "beyond the end" : show("time_ns", job.finish_ns)}\ntook ${show("time_ns", took)}`
        + (overlap > 1e-4 * took ? ` and ${show("time_ns", overlap)} beside the one before it` : "")
        + (job.exposed_ns == null ? "" : `, ${show("time_ns", job.exposed_ns)} of it communication that no computation hid`));
      picture.append(bar);
      if (high >= 12) text(0, y + high / 2 + 4, cut(job.name, left));
      y += high;
      const lane = lanes[i];
      if (!lane.length) return;
      const each = Math.min(2, (Math.min(lane.length, 80) * 2) / lane.length);
      lane.forEach((flow, k) => {
        const thin = svg("rect", { x: x(f.start_ns[flow]), y: y + k * each, width: Math.max(1, x(f.start_ns[flow] + f.fct_ns[flow]!) - x(f.start_ns[flow])), height: Math.max(0.6, each * 0.8), fill: css("--soft"), class: "choosable" });
        tip(thin, () => `flow ${f.flow[flow]}: ${flowEnds(run().fabric, f.src_host[flow], f.dst_host[flow])}, ${show("time_ns", f.fct_ns[flow])}`);
        thin.addEventListener("click", () => select({ kind: "flow", index: flow }));
        picture.append(thin);
      });
      y += Math.min(lane.length, 80) * 2 + 6;
    });
    exported(box, picture, { name: "Jobs over time", numbers: () => ({
      head: ["job", "group", "start (ns)", "finish (ns)", "time (ns)"],
      rows: rows.map((job) => [job.name, r.groups[job.group], job.start_ns, job.finish_ns, job.time_ns]),
    }) });
  });
}

const names: Record<string, string> = { drop: "Drops", pfc_pause: "PFC pauses", retransmit: "Retransmissions",
  timeout: "Timeouts", fault: "Faults", repair: "Repairs" };

/** Drops, pauses, retransmissions, timeouts and faults: a strip of bars for each kind. */
export function events(cards: HTMLElement): void {
  const { rows, interval_ns, not_recorded } = run().timeline;
  const note = rows.length
    ? `Events in intervals of ${show("time_ns", interval_ns)}. Each strip has its own scale; the largest interval is named beside it.`
    : "No drops, pauses, retransmissions, timeouts or faults were recorded.";
  const box = card(cards, "Events", note, true);
  if (not_recorded > 0) {
    box.append(element("p", { class: "note" }, `${show("count", not_recorded)} more events were beyond the recording limit and are missing here; the totals of the summary count them.`));
  }
  if (!rows.length) return;
  later(() => {
    const strip = 40, gap = 12, intervals = rows[0].counts.length;
    const { picture, x, text, width, left } = frame(box, rows.length * (strip + gap), intervals * interval_ns, "Events over time");
    rows.forEach((row, r) => {
      const base = r * (strip + gap) + strip, most = Math.max(...row.counts);
      text(0, base - 22, names[row.kind] ?? row.kind).setAttribute("class", "strong");
      text(0, base - 6, cut(`${show("count", row.total)}, at most ${show("count", most)}`, left));
      picture.append(svg("line", { x1: left, y1: base, x2: width - 10, y2: base, stroke: css("--line") }));
      row.counts.forEach((n, i) => {
        if (!n) return;
        const h = Math.max(2, (n / most) * strip);
        const bar = svg("rect", { x: x(i * interval_ns), y: base - h, width: Math.max(1, x(interval_ns) - left - 0.6), height: h, fill: colour(r) });
        tip(bar, () => `${show("count", n)} from ${show("time_ns", i * interval_ns)}`);
        picture.append(bar);
      });
    });
    exported(box, picture, { name: "Events over time", numbers: () => ({
      head: ["kind", "from (ns)", "until (ns)", "events"],
      rows: rows.flatMap((row) => row.counts.map((n, i) => [row.kind, i * interval_ns, (i + 1) * interval_ns, n])),
    }) });
  });
}
