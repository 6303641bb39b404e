// What `pathweave view` tells: the fields are those of `crates/cli/src/view/index.rs` and `crates/report/src/progress.rs`.

export interface Row {
  path: string; kind: "run" | "comparison" | "sweep" | "plan" | "page"; name: string; schemes: string[]; seed: number | null;
  modified_unix_s: number; flows: number | null; slowdown_mean: number | null; slowdown_p99: number | null;
  state: string; good: boolean; page: string | null;
}
/** Sums at some instants, from which rates follow. */
export interface LiveRun {
  name: string; colour: number; over: boolean; done: number; flows: number; time_ns: number[]; bytes: number[]; finished: number[]; packet_hops: number[];
}
export interface Live {
  path: string; kind: string; name: string; seed: number | null; alive: boolean; written_unix_s: number; wall_s: number;
  done: number; finished: number; of: number; runs: LiveRun[];
}
export interface Index { title: string; rows: Row[]; live: Live[]; all: boolean }

/** The index as it is now. */
export async function ask(): Promise<Index> {
  const answer = await fetch("/.index.json", { cache: "no-store" });
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  return await answer.json() as Index;
}
