// What goes on: how far it is, and its curves so far.
import { chart, type Line } from "../chart";
import { card, element } from "../dom";
import { show } from "../format";
import { colour } from "../theme";
import type { Live, LiveRun } from "./data";

const span = (seconds: number): string => {
  const s = Math.round(seconds), two = (n: number) => String(n).padStart(2, "0");
  return s >= 3600 ? `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}` : `${Math.floor(s / 60)}:${two(s % 60)}`;
};

/** "3 of 12 runs, 41 %, 0:12, 0:17 left". */
export function words(l: Live): string {
  const left = l.done > 0.001 ? `, ${span((l.wall_s * (1 - l.done)) / l.done)} left` : "";
  const runs = l.of > 1 ? `${l.finished} of ${l.of} runs, ` : "";
  return `${runs}${Math.floor(l.done * 100)} % after ${span(l.wall_s)}${l.alive ? left : "; its process is gone, nothing more comes"}`;
}

// Differences of sums over time: a rate an interval.
const rates = (time: number[], sums: number[], factor: number): (number | null)[] =>
  sums.map((sum, i) => {
    const before = i ? sums[i - 1] : 0, since = time[i] - (i ? time[i - 1] : 0);
    return since > 0 ? ((sum - before) / since) * factor : null;
  });

/** A card a command that goes on. */
export function live(cards: HTMLElement, all: Live[]): void {
  for (const l of all) {
    const box = card(cards, l.name, `${l.kind} into ${l.path || "this folder"}${l.seed == null ? "" : `, seed ${l.seed}`}: ${words(l)}`, true);
    box.classList.add("live");
    box.append(element("progress", { max: 1, value: l.done, "aria-label": `${l.name}: part that is done` }));
    const shown = l.runs.filter((r) => r.time_ns.length > 1).slice(0, 16);
    if (!shown.length) {
      box.append(element("p", { class: "note" }, "No curves yet."));
      continue;
    }
    const grid = element("div", { class: "cards small" });
    box.append(grid);
    const line = (r: LiveRun, i: number, y: (number | null)[], holds?: "before"): Line =>
      ({ label: shown.length > 1 ? `${r.name}${r.over ? "" : ` (${Math.floor(r.done * 100)} %)`}` : r.name, x: [0, ...r.time_ns], y: [holds ? null : 0, ...y], holds, colour: colour(r.colour), dash: Math.floor(i / 8), width: 2 });
    chart(card(grid, "Payload of finished messages so far", "all flows together"), {
      x: { label: "Time", quantity: "time_ns" }, y: { label: "Rate", quantity: "rate_bps" }, height: 200,
      lines: shown.map((r, i) => line(r, i, rates(r.time_ns, r.bytes, 8e9), "before")),
    });
    chart(card(grid, "Flows finished so far", `of ${show("count", Math.max(...shown.map((r) => r.flows)))}`), {
      x: { label: "Time", quantity: "time_ns" }, y: { label: "Flows", quantity: "count" }, height: 200,
      lines: shown.map((r, i) => line(r, i, r.finished)),
    });
  }
}
