export interface Request { text: string; scheme?: string; set?: string[]; most_hops?: number }

export interface Situation { scenario: string; title: string; says: string; schemes: string[]; text: string }
export interface Catalogue { version: string; schemes: { name: string; help: string; colour: number }[]; demo: Situation[] }

export interface Size { name: string; hosts: number; switches: number; links: number; messages: number; bytes: number; notes: string[] }

export interface NodeInfo { name: string; level: number; group: number | null }
export interface LinkInfo {
  from: number; to: number; cable: number; name: string; rate_bps: number; delay_ps: number;
  tx_bytes: number; max_queue_bytes: number; dropped: number;
}
export interface Ran {
  name: string; digest: string; scheme: string; notes: string[]; simulated_ps: number; ended: string; ended_detail: string;
  /** Time from which packets are not kept; null if all are. */
  film_ends_ps: number | null;
  hosts: number; nodes: NodeInfo[]; links: LinkInfo[]; columns: string[];
}
export interface Instant {
  source: "packets" | "samples";
  links: Record<string, { queue_bytes: number; utilisation: number; drops: number }>;
  flows_done: number; arrived: [number, number, number][];
}
export interface Module {
  catalogue(): Catalogue;
  check(request: Request): Size;
  run(request: Request): Ran;
  instant(request: { time_ps: number; window_ps: number }): Instant;
  column(number: number): Float64Array;
}
export function open(module: WebAssembly.Module, progress?: (share: number) => void): Promise<Module>;
