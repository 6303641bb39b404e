// The film of a run: packets by time, and figures of an instant.
import type { LinkInfo, NodeInfo } from "./abi.mjs";
import type { Result } from "./engine";

const BUCKETS = 512;
/** Instants at which charts know the queues. */
export const INSTANTS = 400;
const CONTROL = 2, LATE = 4;

export interface Flow { src: number; dst: number; bytes: number; start: number; finish: number }

/** A run as the page plays it. Times are picoseconds. */
export class Film {
  readonly name: string;
  readonly digest: string;
  readonly end: number;
  /** Time up to which packets are known; later there are samples of links. */
  readonly filmed: number;
  readonly hosts: number;
  readonly nodes: NodeInfo[];
  readonly links: LinkInfo[];
  readonly flows: Flow[];
  /** Flows by finish; unfinished ones last. */
  readonly byFinish: Flow[];
  readonly finish: number;
  readonly drops: Float64Array;
  readonly dropLink: Float64Array;
  readonly peaks: Float32Array;
  /** Links between switches. */
  readonly between: number[];
  private readonly sent: Float32Array[];
  readonly arrivals: { at: Float64Array; pair: Float64Array; number: Float64Array; kind: Float64Array };
  readonly wall_ms: number;
  private readonly lateAt: Float64Array;
  private readonly first: Uint32Array;
  private readonly hops: Uint32Array;
  private readonly bucket: number;
  private readonly h: { entered: Float64Array; start: Float64Array; arrival: Float64Array; link: Float64Array; pair: Float64Array; kind: Float64Array; packet: Float64Array };
  private readonly samples: { at: Float64Array; queue: [number, number][]; use: [number, number][] };
  private readonly c: Record<string, Float64Array>;

  constructor({ ran, columns: c, wall_ms }: Result) {
    this.c = c;
    this.name = ran.scheme;
    this.digest = ran.digest;
    this.wall_ms = wall_ms;
    this.hosts = ran.hosts;
    this.nodes = ran.nodes;
    this.links = ran.links;
    this.flows = Array.from(c.flow_src, (src, i) => ({ src, dst: c.flow_dst[i], bytes: c.flow_bytes[i], start: c.flow_start_ps[i], finish: c.flow_finish_ps[i] }));
    this.byFinish = [...this.flows].sort((a, b) => (Number.isNaN(a.finish) ? Infinity : a.finish) - (Number.isNaN(b.finish) ? Infinity : b.finish) || a.start - b.start);
    this.finish = this.flows.reduce((last, f) => (f.finish > last ? f.finish : last), 0);
    this.end = Math.max(ran.simulated_ps, this.finish);
    this.filmed = ran.film_ends_ps ?? Infinity;
    this.drops = c.drop_ps;
    this.dropLink = c.drop_link;
    this.h = { entered: c.hop_entered_ps, start: c.hop_start_ps, arrival: c.hop_arrival_ps, link: c.hop_link, pair: c.hop_pair, kind: c.hop_kind, packet: c.hop_packet };
    this.arrivals = { at: c.arrival_ps, pair: c.arrival_pair, number: c.arrival_number, kind: c.arrival_kind };
    this.lateAt = this.arrivals.at.filter((_, i) => (this.arrivals.kind[i] & LATE) !== 0);
    this.bucket = Math.max(1, Math.min(this.end, this.filmed) / BUCKETS);
    [this.first, this.hops] = this.index();
    this.samples = samplesOf(c);
    this.peaks = this.longestQueues();
    this.between = this.links.flatMap((l, i) => (this.nodes[l.from].level > 0 && this.nodes[l.to].level > 0 ? [i] : []));
    this.sent = this.sentBytes();
  }

  /** Bytes that each link has sent, by the instants of the charts: from packets, or from samples where those end early. */
  private sentBytes(): Float32Array[] {
    const sent = this.links.map(() => new Float32Array(INSTANTS + 1)), step = this.end / INSTANTS;
    const add = (link: number, at: number, bytes: number) => { sent[link][Math.min(INSTANTS, Math.ceil(at / step))] += bytes; };
    if (Number.isFinite(this.filmed)) {
      const { use_ps, use_link, use_share } = this.c, before = new Map<number, number>();
      this.samples.at.forEach((at, j) => before.set(at, j ? this.samples.at[j - 1] : 0));
      for (let i = 0; i < use_ps.length; i++) {
        add(use_link[i], use_ps[i], (use_share[i] * this.links[use_link[i]].rate_bps * (use_ps[i] - before.get(use_ps[i])!)) / 8e12);
      }
    } else {
      const { start, link, kind } = this.h;
      for (let i = 0; i < start.length; i++) add(link[i], start[i], kind[i] >>> 8);
    }
    for (const line of sent) for (let k = 1; k <= INSTANTS; k++) line[k] += line[k - 1];
    return sent;
  }

  /** Bytes that links between switches have sent so far, most first. */
  loads(t: number): Float32Array {
    const k = Math.min(INSTANTS, Math.floor((t / this.end) * INSTANTS));
    return Float32Array.from(this.between, (link) => this.sent[link][k]).sort().reverse();
  }

  /** For each slice of time the hops that overlap it. */
  private index(): [Uint32Array, Uint32Array] {
    const { entered, arrival } = this.h, first = new Uint32Array(BUCKETS + 2);
    const slice = (at: number) => Math.min(BUCKETS, Math.floor(at / this.bucket));
    const each = (to: (bucket: number, hop: number) => void) => {
      for (let i = 0; i < entered.length; i++) for (let b = slice(entered[i]); b <= slice(arrival[i]); b++) to(b, i);
    };
    each((b) => { first[b + 1]++; });
    for (let b = 1; b < first.length; b++) first[b] += first[b - 1];
    const next = first.slice(), hops = new Uint32Array(first[BUCKETS + 1]);
    each((b, i) => { hops[next[b]++] = i; });
    return [first, hops];
  }

  /** The longest queue at each of the instants of the charts. */
  private longestQueues(): Float32Array {
    const peaks = new Float32Array(INSTANTS + 1), step = this.end / INSTANTS;
    const { entered, start, link, kind } = this.h, queued = new Float32Array(this.links.length * (INSTANTS + 1));
    for (let i = 0; i < entered.length; i++) {
      const to = start[i] / step;
      for (let k = Math.ceil(entered[i] / step); k < to; k++) {
        const bytes = queued[link[i] * (INSTANTS + 1) + k] += kind[i] >>> 8;
        if (bytes > peaks[k]) peaks[k] = bytes;
      }
    }
    const most = this.samples.queue.map(([from, to]) => this.c.queue_bytes.subarray(from, to).reduce((a, b) => Math.max(a, b), 0));
    for (let k = Math.ceil(this.filmed / step); k <= INSTANTS; k++) peaks[k] = most[this.sample(k * step)] ?? 0;
    return peaks;
  }

  /** True if packets of an instant are known. */
  hasPackets(t: number): boolean { return t < this.filmed && this.h.link.length > 0; }

  /** Calls `draw` for each packet in the network: its link, its share of the way (below 0 while it waits), bytes before it in the queue. */
  packets(t: number, draw: (link: number, way: number, before: number, pair: number, control: boolean) => void): void {
    const { entered, start, arrival, link, pair, kind } = this.h, b = Math.min(BUCKETS, Math.floor(t / this.bucket));
    const before = new Map<number, number>();
    for (let k = this.first[b]; k < this.first[b + 1]; k++) {
      const i = this.hops[k];
      if (entered[i] > t || arrival[i] <= t) continue;
      const control = (kind[i] & CONTROL) !== 0, l = link[i];
      if (start[i] > t) {
        const ahead = before.get(l) ?? 0;
        before.set(l, ahead + (kind[i] >>> 8));
        draw(l, -1, ahead, pair[i], control);
      } else {
        draw(l, (t - start[i]) / (arrival[i] - start[i]), 0, pair[i], control);
      }
    }
  }

  /** Bytes in the queue of each link that has one. */
  queues(t: number): Map<number, number> {
    const queued = new Map<number, number>();
    if (!this.hasPackets(t)) {
      const k = this.sample(t);
      if (k >= 0) for (let i = this.samples.queue[k][0]; i < this.samples.queue[k][1]; i++) queued.set(this.c.queue_link[i], this.c.queue_bytes[i]);
      return queued;
    }
    const { entered, start, link, kind } = this.h, b = Math.min(BUCKETS, Math.floor(t / this.bucket));
    for (let k = this.first[b]; k < this.first[b + 1]; k++) {
      const i = this.hops[k];
      if (entered[i] <= t && start[i] > t) queued.set(link[i], (queued.get(link[i]) ?? 0) + (kind[i] >>> 8));
    }
    return queued;
  }

  /** Share of time in which each link is sending, from samples. */
  use(t: number): Map<number, number> {
    const k = this.sample(t), use = new Map<number, number>();
    if (k >= 0) for (let i = this.samples.use[k][0]; i < this.samples.use[k][1]; i++) use.set(this.c.use_link[i], this.c.use_share[i]);
    return use;
  }

  private sample(t: number): number { return count(this.samples.at, t) - 1; }

  done(t: number): number {
    let low = 0, high = this.byFinish.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.byFinish[middle].finish <= t) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  late(t: number): number { return count(this.lateAt, t); }
  dropped(t: number): number { return count(this.drops, t); }
  longest(t: number): number {
    let most = 0;
    for (let k = 0; k <= Math.min(INSTANTS, Math.floor((t / this.end) * INSTANTS)); k++) most = Math.max(most, this.peaks[k]);
    return most;
  }
}

/** How many of ascending times have come. */
function count(times: Float64Array, t: number): number {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Samples by instant: where those of queues and of use lie in their columns.
function samplesOf(c: Record<string, Float64Array>): { at: Float64Array; queue: [number, number][]; use: [number, number][] } {
  const at = [...new Set([...c.queue_ps, ...c.use_ps])].sort((a, b) => a - b);
  const ranges = (times: Float64Array) => {
    let from = 0;
    return at.map((t): [number, number] => {
      const begin = from;
      while (from < times.length && times[from] === t) from++;
      return [begin, from];
    });
  };
  return { at: Float64Array.from(at), queue: ranges(c.queue_ps), use: ranges(c.use_ps) };
}
