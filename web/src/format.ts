// Numbers with units, as the terminal shows them or shorter.
import type { Quantity } from "./data";

const ladders: Record<Quantity, [number, string][]> = {
  time_ns: [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]],
  rate_bps: [[1, "bps"], [1e3, "Kbps"], [1e6, "Mbps"], [1e9, "Gbps"], [1e12, "Tbps"]],
  bytes: [[1, "B"], [1e3, "KB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]],
  count: [[1, ""]],
  plain: [[1, ""]],
  percent: [[0.01, "%"]],
};

/** The unit in which `largest` has one to three digits before the point. */
export function unitOf(quantity: Quantity, largest: number): { scale: number; name: string } {
  let [scale, name] = ladders[quantity][0];
  for (const step of ladders[quantity]) if (Math.abs(largest) >= step[0]) [scale, name] = step;
  return { scale, name };
}

export const digits = (v: number, count = 4): string => (v === 0 ? "0" : String(Number(v.toPrecision(count))));

export function show(quantity: Quantity, v: number | null | undefined): string {
  if (v == null) return "-";
  if (quantity === "count") return v.toLocaleString("en", { maximumFractionDigits: 1 });
  const unit = unitOf(quantity, v);
  return (digits(v / unit.scale) + " " + unit.name).trim();
}

/** Round values from `from` to `to`, `most` at most: 1, 2 or 5 times a power of ten apart. */
export function ticks(from: number, to: number, most: number): number[] {
  const raw = (to - from) / Math.max(1, most);
  if (!(raw > 0)) return [];
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((lead) => lead * unit).find((s) => s >= raw * 0.999)!;
  const first = Math.ceil(from / step - 1e-6), last = Math.floor(to / step + 1e-6);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => (first + i) * step);
}

/** Round instants with their labels, for a picture with room for so many. */
export function instants(from: number, to: number, most: number): { at: number; label: string }[] {
  const unit = unitOf("time_ns", to);
  return ticks(from, to, most).map((at) => ({ at, label: `${digits(at / unit.scale, 6)} ${unit.name}` }));
}

/** How a label of this width is set at a place so that it stays between two others. */
export const anchor = (at: number, width: number, low: number, high: number): "start" | "middle" | "end" =>
  (at - width / 2 < low ? "start" : at + width / 2 > high ? "end" : "middle");
/** The same for a canvas. */
export const canvasAnchor = (side: "start" | "middle" | "end"): CanvasTextAlign => (side === "middle" ? "center" : side);
/** Width of a label of an SVG, about. */
export const wide = (text: string): number => 6.8 * text.length;
