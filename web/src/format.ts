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
