// What hosts did over time: a row a host, computation above communication, as Nsight Systems draws it.
import { save } from "./address";
import { onZoom, pointAt, pointerLine, setZoom, zoom } from "./chart";
import { button, card, element, resize, table, tip } from "./dom";
import { later } from "./chart";
import { exported } from "./export";
import { anchor, canvasAnchor, digits, instants, show } from "./format";
import { run, select, state } from "./state";
import { activityColours } from "./colours";
import { css } from "./theme";
import { flowEnds } from "./topology/names";

// Lanes of one host for what it exchanges at the same time; what does not fit is drawn over the last.
const LANES = 3;
// Flows in the table below.
const MOST = 12;

export function hostTimeline(cards: HTMLElement): void {
  const r = run(), h = r.hosts, b = h.bars;
  if (!h.host.length) return;
  const which = h.host.length < h.of
    ? `${h.host.length} of ${show("count", h.of)} hosts, evenly spaced, with the one that is busy last among them`
    : `all ${show("count", h.of)} hosts that did something the workload has a word for`;
  const stands = h.times_recorded > 1 ? ` Each stands for ${show("count", h.times_recorded)} that are alike.` : "";
  const left = h.left_out ? ` ${show("count", h.left_out)} activities of at most ${show("time_ns", h.left_out_up_to_ns)} are left out, an even part of those of each host: where a row is empty, there may be some.` : "";
  const box = card(cards, "Timeline", `A row a host: ${which}.${stands} The upper half of a row is computation, the lower half communication; a bar of a collective is from the first message that the host posted or was sent to the last that arrived. Bars with a dashed edge did not end.${left} Choose a bar to see what it is and its flows; drag to zoom, double-click to see everything. activities.parquet has all hosts.`, true);
  box.id = "timeline";
  const names = [...new Set(h.labels.map((l) => l.kind))], colour = activityColours();
  const hue = (bar: number) => colour(h.labels[b.label[bar]].kind);
  const keys = element("p", { class: "keys" }, ...names.map((name) => {
    const square = element("i");
    square.style.background = colour(name);
    return element("span", {}, square, name);
  }));
  const stage = element("div", { class: "hosts" }), details = element("div", { id: "activity", "aria-live": "polite" });
  box.append(keys, stage, details);
  const end = (bar: number) => b.finish_ns[bar] ?? r.simulated_ns;

  // Bars of each row, and the lane of each: 0 is computation.
  const rows: number[][] = h.host.map(() => []);
  const lane = new Array<number>(b.row.length).fill(0), depth = h.host.map(() => 1);
  b.row.forEach((row, bar) => rows[row].push(bar));
  rows.forEach((bars, row) => {
    const free: number[] = [];
    for (const bar of bars) {
      if (!b.communicates[bar]) continue;
      let at = free.findIndex((until) => until <= b.start_ns[bar]);
      if (at < 0) at = Math.min(free.length, LANES - 1);
      free[at] = Math.max(free[at] ?? 0, end(bar));
      lane[bar] = at + 1;
      depth[row] = Math.max(depth[row], at + 1);
    }
  });
  const computes = b.communicates.some((c) => !c);
  const words = (bar: number) => {
    const l = h.labels[b.label[bar]];
    return l.part ? `${l.activity}, ${l.part}` : l.activity;
  };
  const jobName = (bar: number) => r.jobs.rows.find((j) => j.job === b.job[bar])?.name ?? (b.job[bar] == null ? "" : `job ${b.job[bar]}`);

  later(() => {
    const width = Math.max(280, box.clientWidth - 30), gutter = width < 600 ? 56 : 110;
    const [own, each, gap] = rows.length <= 20 ? [14, 11, 6] : [9, 8, 4];
    const tops: number[] = [];
    let height = 22;
    rows.forEach((_, row) => {
      tops.push(height);
      height += (computes ? own : 0) + depth[row] * each + gap;
    });
    const picture = element("canvas", { tabindex: 0, role: "application", "aria-label":
      "Timeline of hosts. Arrow keys go from bar to bar and from host to host, plus and minus zoom, escape takes the choice back." });
    const g = resize(picture, width, height);
    const whole: [number, number] = [0, Math.max(r.simulated_ns, 1)];
    const part = () => zoom.part ?? whole;
    const x = (ns: number) => gutter + ((ns - part()[0]) / (part()[1] - part()[0])) * (width - gutter - 4);
    const time = (px: number) => part()[0] + ((px - gutter) / (width - gutter - 4)) * (part()[1] - part()[0]);
    const top = (bar: number) => tops[b.row[bar]] + (lane[bar] === 0 ? 0 : (computes ? own : 0) + (lane[bar] - 1) * each);
    const high = (bar: number) => (lane[bar] === 0 ? own : each) - 1;
    let dragged: [number, number] | null = null;
    const draw = () => {
      g.clearRect(0, 0, width, height);
      g.font = "11px system-ui, sans-serif";
      g.textBaseline = "middle";
      const [from, to] = part();
      for (const { at, label } of instants(from, to, (width - gutter) / 110)) {
        g.strokeStyle = css("--grid");
        g.beginPath(); g.moveTo(x(at), 16); g.lineTo(x(at), height); g.stroke();
        g.fillStyle = css("--soft");
        g.textAlign = canvasAnchor(anchor(x(at), g.measureText(label).width, gutter, width));
        g.fillText(label, x(at), 8);
      }
      g.textAlign = "left";
      h.name.forEach((name, row) => {
        g.fillStyle = css("--soft");
        g.fillText(name, 0, tops[row] + ((computes ? own : 0) + depth[row] * each) / 2, gutter - 6);
      });
      g.save();
      g.beginPath(); g.rect(gutter, 16, width - gutter, height); g.clip();
      for (let bar = 0; bar < b.row.length; bar++) {
        if (b.start_ns[bar] > to || end(bar) < from) continue;
        const [left, right] = [x(b.start_ns[bar]), x(end(bar))], wide = Math.max(1, right - left - 0.5);
        g.fillStyle = hue(bar);
        g.globalAlpha = b.finish_ns[bar] == null ? 0.4 : 1;
        g.fillRect(left, top(bar), wide, high(bar));
        g.globalAlpha = 1;
        if (b.finish_ns[bar] == null && wide > 3) {
          g.setLineDash([3, 3]);
          g.strokeStyle = css("--text");
          g.strokeRect(left + 0.5, top(bar) + 0.5, wide - 1, high(bar) - 1);
          g.setLineDash([]);
        }
        // A name where it fits.
        const shown = Math.min(right, width) - Math.max(left, gutter);
        if (high(bar) >= 10 && shown > 40 && g.measureText(words(bar)).width + 6 < shown) {
          g.fillStyle = css("--card");
          g.fillText(words(bar), Math.max(left, gutter) + 3, top(bar) + high(bar) / 2 + 0.5);
        }
      }
      const s = state.activity;
      if (s != null) {
        g.strokeStyle = css("--mark");
        g.lineWidth = 2;
        g.strokeRect(x(b.start_ns[s]) - 1, top(s) - 1, Math.max(3, x(end(s)) - x(b.start_ns[s]) + 1), high(s) + 2);
        g.lineWidth = 1;
      }
      for (const fault of r.faults) {
        g.strokeStyle = css(fault.repair ? "--good" : "--bad");
        g.setLineDash(fault.repair ? [6, 4] : []);
        g.beginPath(); g.moveTo(x(fault.time_ns), 16); g.lineTo(x(fault.time_ns), height); g.stroke();
      }
      g.setLineDash([]);
      g.restore();
      if (dragged) {
        g.fillStyle = css("--accent");
        g.globalAlpha = 0.2;
        g.fillRect(Math.min(...dragged), 16, Math.abs(dragged[1] - dragged[0]), height);
        g.globalAlpha = 1;
      }
    };
    const offset = (e: MouseEvent): [number, number] => {
      const rect = picture.getBoundingClientRect();
      return [e.clientX - rect.left, e.clientY - rect.top];
    };
    const find = (e: MouseEvent): number | undefined => {
      const [px, py] = offset(e);
      const row = tops.findLastIndex((y) => y <= py);
      if (row < 0 || px < gutter) return undefined;
      // A bar may be thinner than a pointer is sure.
      return rows[row].findLast((bar) => py >= top(bar) && py < top(bar) + high(bar) + 1 && px >= x(b.start_ns[bar]) - 1 && px <= Math.max(x(end(bar)), x(b.start_ns[bar]) + 2));
    };
    tip(picture, (e) => {
      const bar = dragged ? undefined : find(e);
      return bar === undefined ? "" : `${words(bar)}\n${h.name[b.row[bar]]}, ${b.communicates[bar] ? "communication" : "computation"}\n`
        + `${show("time_ns", b.start_ns[bar])} to ${b.finish_ns[bar] == null ? "beyond the end" : show("time_ns", end(bar))}, ${show("time_ns", end(bar) - b.start_ns[bar])}`;
    });
    const choose = (bar: number | null) => {
      state.activity = bar;
      draw();
      tell();
      save();
    };
    const tell = () => {
      const bar = state.activity;
      details.replaceChildren();
      if (bar == null) return;
      const l = h.labels[b.label[bar]];
      const facts: [string, string][] = [
        ["host", h.name[b.row[bar]]], ["job", jobName(bar) || "-"], ["kind", b.communicates[bar] ? (l.ranks ? "collective" : "communication") : "computation"],
        ["begins", show("time_ns", b.start_ns[bar])], ["ends", b.finish_ns[bar] == null ? "not before the run did" : show("time_ns", end(bar))],
        ["takes", show("time_ns", end(bar) - b.start_ns[bar])],
      ];
      if (l.ranks) facts.push(["ranks", show("count", l.ranks)]);
      if (l.size_bytes != null) facts.push(["size of the collective", show("bytes", l.size_bytes)]);
      if (b.communicates[bar]) facts.push(["sent and received", show("bytes", b.bytes[bar])], ["messages", show("count", b.flows[bar])]);
      details.append(button("Choose nothing", () => choose(null), { class: "close" }), element("h4", {}, words(bar)),
        element("dl", { class: "facts" }, ...facts.map(([k, v]) => element("div", {}, element("dt", {}, k), element("dd", {}, v)))));
      if (b.communicates[bar]) flowsOf(details, bar);
    };
    const flowsOf = (parent: HTMLElement, bar: number) => {
      const f = r.flows, host = h.host[b.row[bar]];
      const found = f.flow.map((_, i) => i).filter((i) => f.label[i] === b.label[bar] && f.job[i] === b.job[bar] && (f.src_host[i] === host || f.dst_host[i] === host)
        // Times of flows have five digits.
        && f.start_ns[i] * 0.9999 <= end(bar) && f.start_ns[i] * 1.0001 >= b.start_ns[bar] - 1);
      const late = (i: number) => (f.fct_ns[i] == null ? Infinity : f.start_ns[i] + f.fct_ns[i]!);
      const shown = found.sort((p, q) => late(q) - late(p)).slice(0, MOST);
      parent.append(element("p", { class: "note" }, `${show("count", found.length)} of its ${show("count", b.flows[bar])} messages are in this page, the last to arrive first. flows.parquet has all: column activity is "${words(bar)}".`));
      if (!shown.length) return;
      parent.append(table(["Flow", "Hosts", "Size", "Posted", "Arrived", "Slowdown"], shown.map((i) => ({
        cells: [`flow ${f.flow[i]}`, flowEnds(run().fabric, f.src_host[i], f.dst_host[i]), show("bytes", f.size_bytes[i]), show("time_ns", f.start_ns[i]),
          f.fct_ns[i] == null ? f.status[i] : show("time_ns", late(i)), f.slowdown[i] == null ? "-" : digits(f.slowdown[i]!)],
        choose: () => {
          select({ kind: "flow", index: i });
          document.getElementById("chosen")?.scrollIntoView();
        },
      }))));
    };
    picture.addEventListener("pointerdown", (e) => { dragged = [offset(e)[0], offset(e)[0]]; });
    picture.addEventListener("pointerleave", () => pointAt(undefined));
    picture.addEventListener("pointermove", (e) => {
      pointAt(offset(e)[0] < gutter ? undefined : time(offset(e)[0]));
      if (!dragged || !e.buttons) { dragged = null; return; }
      dragged[1] = Math.max(gutter, offset(e)[0]);
      draw();
    });
    picture.addEventListener("pointerup", (e) => {
      const ends = dragged;
      dragged = null;
      if (ends && Math.abs(ends[1] - ends[0]) > 6) return setZoom([Math.max(0, time(Math.min(...ends))), time(Math.max(...ends))]);
      choose(find(e) ?? null);
    });
    picture.addEventListener("dblclick", () => setZoom(undefined));
    picture.addEventListener("keydown", (e) => {
      const s = state.activity, bars = s == null ? rows[0] : rows[b.row[s]], at = s == null ? -1 : bars.indexOf(s);
      const [from, to] = part(), middle = s == null ? (from + to) / 2 : (b.start_ns[s] + end(s)) / 2;
      const zoomBy = (by: number) => setZoom([Math.max(0, middle - ((to - from) * by) / 2), middle + ((to - from) * by) / 2]);
      if (e.key === "ArrowRight") choose(bars[Math.min(bars.length - 1, at + 1)]);
      else if (e.key === "ArrowLeft") choose(bars[Math.max(0, at - 1)]);
      else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
        const row = s == null ? 0 : Math.max(0, Math.min(rows.length - 1, b.row[s] + (e.key === "ArrowDown" ? 1 : -1)));
        const near = (bar: number) => Math.abs(b.start_ns[bar] - (s == null ? 0 : b.start_ns[s])) + (s != null && lane[bar] !== lane[s] ? r.simulated_ns : 0);
        choose(rows[row].reduce((best, bar) => (near(bar) < near(best) ? bar : best)));
      } else if (e.key === "+" || e.key === "=") zoomBy(0.5);
      else if (e.key === "-") (to - from) * 2 >= whole[1] ? setZoom(undefined) : zoomBy(2);
      else if (e.key === "Escape") choose(null);
      else return;
      e.preventDefault();
    });
    onZoom(draw, picture);
    stage.append(picture);
    pointerLine(stage, (at) => (at >= part()[0] && at <= part()[1] ? x(at) : undefined));
    draw();
    tell();
    exported(stage, picture, { name: "Timeline of hosts", draw, legend: () => names.map((label) => ({ label, colour: colour(label) })), numbers: () => ({
      head: ["host", "kind", "activity", "start (ns)", "finish (ns)", "sent and received (bytes)"],
      rows: b.row.map((row, bar) => [h.name[row], b.communicates[bar] ? "communication" : "computation", words(bar), b.start_ns[bar], b.finish_ns[bar], b.bytes[bar]]),
    }) });
  });
}
