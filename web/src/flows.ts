// Flows: slowdown by size, distributions, single flows.
import { runs, summaries, type Cdf, type FlowSummary } from "./data";
import { card, choice } from "./dom";
import { chart } from "./chart";
import { show } from "./format";
import { state } from "./state";
import { colour } from "./theme";

interface Set { label: string; index: number; colour: string; summary: FlowSummary; cdf: Cdf | undefined }

export const comparing = runs.length > 1;
const groupNames = (): string[] => {
  const names = summaries[0].groups.map((g) => g.group);
  return names.length > 1 ? names : [];
};

// What is drawn in one colour: a run (of the chosen group), or a group of the only run and all its flows.
export function sets(): Set[] {
  const of = (r: number, group: string, label: string, index: number): Set[] => {
    const measured = summaries[r].foreground ?? summaries[r].overall;
    const summary = group ? summaries[r].groups.find((g) => g.group === group) : measured;
    return summary
      ? [{ label, index, colour: colour(comparing ? runs[r].colour : (runs[r].colour + index) % 8), summary, cdf: runs[r].cdfs.find((c) => c.group === group && c.measure === state.measure) }]
      : [];
  };
  if (comparing) return runs.flatMap((run, r) => of(r, state.group, run.name, r));
  const all = summaries[0].foreground ? "foreground" : "all flows";
  return ["", ...groupNames()].flatMap((g, i) => of(0, g, g || all, i));
}

export function flows(cards: HTMLElement, redraw: () => void): void {
  if (comparing && groupNames().length) {
    const options: [string, string][] = [["", "all"], ...groupNames().map((g): [string, string] => [g, g])];
    cards.before(choice("Workload group", options, state.group, (v) => { state.group = v; redraw(); }));
  }
  const shown = sets().filter((s) => s.summary.finished > 0);
  if (!shown.length) {
    card(cards, "No flow finished");
    return;
  }
  slowdown(cards, shown);
  distribution(cards, redraw);
}

function slowdown(cards: HTMLElement, shown: Set[]): void {
  slowdownChart(card(cards, "Slowdown by size", "Completion time over that on an idle network; P99 is solid with full points, P50 dashed with hollow ones. A size is above the first bound, and at most the second."), shown);
}

export function slowdownChart(box: HTMLElement, shown: Set[], height?: number): void {
  const edges = new Map(shown.flatMap((s) => s.summary.by_size.map((b): [number, number] => [b.up_to_bytes, b.above_bytes])));
  const tops = [...edges.keys()].sort((a, b) => a - b);
  const size = (bytes: number) => show("bytes", bytes).replace(" ", "");
  const categories = tops.map((top) => {
    const above = edges.get(top)!;
    return above === 0 ? `to ${size(top)}` : `${size(above)}-${size(top)}`.replace(/^(\d+)([A-Z]+)-(\d+\2)$/, "$1-$3");
  });
  const lines = shown.flatMap((s) => (["p99", "p50"] as const).map((p, dash) => ({
    label: `${s.label} ${p.toUpperCase()}`,
    x: tops.map((_, i) => i),
    y: tops.map((top) => s.summary.by_size.find((b) => b.up_to_bytes === top)?.slowdown[p] ?? null),
    colour: s.colour, dash, points: true, width: dash ? 1.4 : 2,
  })));
  const values = lines.flatMap((l) => l.y).filter((v): v is number => v != null && v > 0);
  chart(box, {
    x: { label: "Message size", quantity: "plain", categories },
    y: { label: "Slowdown", quantity: "plain", log: Math.max(...values) / Math.min(...values) > 20 },
    lines, height,
  });
}

function distribution(cards: HTMLElement, redraw: () => void): void {
  const shown = sets().filter((s) => s.cdf);
  const measures = [...new Map(runs.flatMap((r) => r.cdfs.map((c): [string, string] => [c.measure, c.title])))];
  const title = measures.find(([m]) => m === state.measure)?.[1] ?? "Distribution";
  const box = card(cards, title, "Fraction of flows that have at most this. The points shown are exact.");
  box.append(choice("Distribution of", measures, state.measure, (v) => { state.measure = v; redraw(); }));
  if (!shown.length) return;
  const quantity = shown[0].cdf!.quantity;
  const values = shown.flatMap((s) => s.cdf!.value);
  const low = Math.min(...values), high = Math.max(...values), log = low > 0;
  // No flow has less than the least, and all have at most the most: each curve goes from 0 to 1, over the same values.
  const beyond = high / low < 1.5 ? 2 : 1.05, [from, to] = log ? [low / beyond, high * beyond] : [Math.min(low, 0) - (high - low || 1) / 20, high + (high - low || 1) / 20];
  chart(box, {
    x: { label: title, quantity, log },
    y: { label: "Fraction of flows", quantity: "plain", max: 1.02 },
    lines: shown.map((s) => ({ label: s.label, x: [from, ...s.cdf!.value, to], y: [0, ...s.cdf!.fraction, 1], colour: s.colour,
      dash: Math.floor(s.index / 8), holds: "after" as const, width: 2 })),
  });
}
