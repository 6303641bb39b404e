// What the program puts into the page of a sweep: summary.json as `crates/study/src/sweep/summary.rs` writes it.
import type { Quantity } from "../data";
import { read } from "../dom";

export interface Axis {
  key: string; kind: "list" | "grid" | "sampled"; values: string[]; numbers: number[] | null; quantity: Quantity;
}
export interface Metric { name: string; label: string; quantity: Quantity; better: "lower" | "higher" | "neither" }
/** A figure over the seeds of a cell; `ci95` is half the width of the interval of its mean. */
export interface Figures { mean: number; ci95: number | null; n: number; min: number; max: number }
/** Relative change from the first value of the compared axis, of the seeds that both have. */
export interface Change { mean: number; ci95: number | null; n: number }
export interface Cell {
  label: string; at: number[]; runs: string[]; finished_seeds: number[]; open_flows: number; failed: string[]; metrics: Record<string, Figures | undefined>; change?: Change;
}
/** The best value of the compared axis; `at` has null for that axis. */
export interface Best { metric: string; at: (number | null)[]; value: number; tied: number[] }
interface Sweep { axes: Axis[]; metrics: Metric[]; cells: Cell[]; best: Best[]; seeds: number[] }

export const sweep = read("sweep") as Sweep;
/** What the page opens with. */
export const opening = read("opening") as { metric: string; compare: number; runs: "figures" | "kept"; colours: number[][] };
