// What the program puts into the page. The fields are those of `crates/report/src/report` and of summary.json.
import { read } from "./dom";

export type Quantity = "time_ns" | "rate_bps" | "bytes" | "count" | "plain" | "percent";

/** What a value over time is of: its instant, or the interval that ends there. */
export type Span = "instant" | "interval";

export interface Distribution { count: number; mean: number; min: number; p50: number; p95: number; p99: number; p999: number; max: number }
export interface SizeBin { above_bytes: number; up_to_bytes: number; fct_ns: Distribution; slowdown: Distribution }
export interface FlowSummary { count: number; finished: number; by_size: SizeBin[]; ooo_degree_packets: Distribution }
export interface Summary {
  run: { fidelity: "packet" | "flow" };
  overall: FlowSummary;
  foreground: FlowSummary | null;
  groups: (FlowSummary & { group: string })[];
  jobs: { count: number };
  iterations: Iteration[];
  critical_paths: { job: number; name: string; words: string; time_ns: number }[];
}
/** What the time of a job went to; means over its ranks. */
export interface Iteration {
  job: number; name: string; start_ns: number; time_ns: number; ranks: number; computation_ns: number;
  longest_computation_ns: number; longest_computation_host: number; exposed_ns: Record<string, number>; idle_ns: number;
}

export interface Cdf { group: string; measure: string; title: string; quantity: Quantity; value: number[]; fraction: number[] }
export interface Curve { label: string; aggregate: boolean; value: (number | null)[] }
export interface Chart { kind: string; title: string; axis: string; quantity: Quantity; span: Span; time_ns: number[]; curves: Curve[] }

export interface Node { name: string; kind: "host" | "switch" | "middlebox"; tier: number }
/** What the links of each row did in the whole run. A row is a link, or links that are drawn as one. */
export interface Totals {
  utilisation: number[]; busiest: number[] | null; rate_bps: number[]; tx_bytes: number[]; dropped: number[]; marked: number[]; pauses: number[]; paused_ns: number[];
  max_queue_bytes: number[];
}
export interface Panel {
  tier: number; direction: string; owners: number; ports: number; first_row: number; owner_nodes: number; links: number;
  first_owner: string; last_owner: string;
  /** Owners are servers, and the links of one are its lanes. */
  of_servers: boolean;
}
/** A large fabric: how many nodes each node and how many links each row stands for. Behind the rows of `from` and `to` come the cells. */
export interface Blocks { nodes: number[]; links: number[]; panels: Panel[]; index: Index | null }
/** Every node of it by name, and links, of too many the busiest: a list a figure. `names` are runs of a text with a number behind, of all
 *  but the GPUs of servers; `row` is the cell of a link. */
export interface Index {
  names: [string, number | null, number][]; block: number[]; of_links: number; from: number[]; to: number[]; row: number[];
  rate_bps: number[]; utilisation: number[]; tx_bytes: number[]; max_queue_bytes: number[]; dropped: number[]; marked: number[];
  pauses: number[]; paused_ns: number[];
}
/** A fault on a link, and when it was over. */
export interface Outage { row: number; from_ns: number; until_ns: number | null }
/** Servers whose GPUs are the hosts. A lane is a port of a NIC with one number: a rail of a plane. Cells are of consecutive servers, column after
 *  column with a cell for each lane. */
export interface Servers {
  servers: number; gpus: number; nics: number; nic_ports: number; planes: number; parts: number; domain: number | null; scale_up_bps: number;
  columns: number; lanes: string[]; lanes_of_plane: number;
  up: (number | null)[]; down: (number | null)[]; leaves: string[];
  scale_up: number[] | null; scale_up_of_gpu: number[] | null;
}
export interface Fabric {
  nodes: Node[]; totals: Totals; from: number[]; to: number[]; outages: Outage[]; blocks: Blocks | null; servers: Servers | null;
}

export interface PackedPlane { top: number; data: string }
export interface WatchedCurve { kind: string; quantity: Quantity; span: Span; index: number; value: (number | null)[] }
export interface Frames {
  time_ns: number[];
  utilisation: PackedPlane | null; busiest: PackedPlane | null; queue_bytes: PackedPlane | null; dropped: PackedPlane | null; paused: PackedPlane | null;
  host_rate_bps: PackedPlane | null;
  events_until_ns: number | null;
  flows: { flow: number; curves: WatchedCurve[] }[];
}

export interface Flows {
  of: number; slowest: number;
  flow: number[]; group: number[]; scheme: number[]; job: (number | null)[]; label: (number | null)[]; src_host: number[]; dst_host: number[];
  size_bytes: number[]; start_ns: number[]; fct_ns: (number | null)[]; slowdown: (number | null)[];
  retransmitted: number[]; dropped: number[]; ooo_degree: number[]; timeouts: number[]; status: string[];
}
export interface PausedLink {
  link: number; name: string; paused: string; by: string; pauses: number; paused_ns: number;
  passed_on: { link: number; pauses: number }[];
}
/** Something broke or was repaired, with the first of what was concerned. */
export interface Mark { time_ns: number; repair: boolean; on: string; count: number }
export interface Job { job: number; name: string; group: number; start_ns: number; finish_ns: number | null; time_ns: number | null; exposed_ns: number | null }

/** What hosts did: a list a figure; `row` is a place in `host`, `label` one in `labels`. */
export interface Hosts {
  of: number; host: number[]; name: string[];
  labels: { activity: string; part: string | null; kind: string; ranks: number | null; size_bytes: number | null }[];
  bars: {
    row: number[]; label: number[]; communicates: number[]; job: (number | null)[]; start_ns: number[]; finish_ns: (number | null)[];
    flows: number[]; bytes: number[];
  };
  times_recorded: number; left_out: number; left_out_up_to_ns: number;
}

/** Collectives, the most exposed first: a list a figure. */
export interface Collectives {
  of: number; kind: string[]; layer: string[]; job: (number | null)[]; ranks: number[]; size_bytes: (number | null)[];
  bus_bandwidth_bps: (number | null)[]; start_ns: number[]; finish_ns: (number | null)[]; spread_ns: number[]; exposed_ns: number[];
  last_to_start: string[]; slowest_flow: (number | null)[];
}
/** A step of the critical path of a job. */
export interface Step {
  job: number; kind: "computation" | "message" | "wait"; words: string; activity: string; host: number; peer_host: number | null;
  flow: number | null; start_ns: number; finish_ns: number;
}

export interface Run {
  name: string; colour: number; simulated_ns: number; groups: string[]; schemes: string[];
  cdfs: Cdf[]; charts: Chart[]; fabric: Fabric; frames: Frames; flows: Flows;
  pauses: { of: number; links: PausedLink[]; until_ns: number | null };
  jobs: { of: number; rows: Job[] };
  hosts: Hosts;
  collectives: Collectives;
  critical_paths: { steps: Step[]; left_out: { job: number; steps: number; time_ns: number; longest_ns: number }[] };
  timeline: { interval_ns: number; rows: { kind: string; total: number; counts: number[] }[]; not_recorded: number };
  faults: Mark[];
}

export const summaries = read("summaries") as Summary[];
export const runs = read("picture-data") as Run[];

/** Values of rows over instants, unpacked when first asked for. */
export class Plane {
  private constructor(readonly top: number, private readonly bytes: Uint8Array, readonly instants: number) {}

  private static unpacked = new WeakMap<PackedPlane, Plane>();
  static of(packed: PackedPlane | null, instants: number): Plane | undefined {
    if (!packed) return undefined;
    let plane = Plane.unpacked.get(packed);
    if (!plane) {
      const text = atob(packed.data);
      plane = new Plane(packed.top, Uint8Array.from(text, (c) => c.charCodeAt(0)), instants);
      Plane.unpacked.set(packed, plane);
    }
    return plane;
  }
  at(row: number, instant: number): number {
    const step = this.bytes[row * this.instants + instant] / 255;
    return this.top * step * step;
  }
  row(row: number): number[] {
    return Array.from({ length: this.instants }, (_, i) => this.at(row, i));
  }
}
