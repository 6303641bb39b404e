// The numbers behind the pictures of a run, up to an instant.
import type { Numbers } from "../export";
import { INSTANTS, type Film } from "./film";

const ns = (ps: number): number => ps / 1e3;
const LATE = 4, TRIMMED = 1;

export const numbersOf = {
  network: (film: Film, t: number): Numbers => {
    const queues = film.queues(t);
    return { head: ["link", "queue (bytes)"], rows: film.links.map((link, i) => [link.name, queues.get(i) ?? 0]) };
  },
  race: (film: Film): Numbers => ({
    head: ["source", "destination", "size (bytes)", "start (ns)", "finish (ns)"],
    rows: film.flows.map((f) => [f.src, f.dst, f.bytes, ns(f.start), Number.isNaN(f.finish) ? null : ns(f.finish)]),
  }),
  order: ({ arrivals: { at, pair, number, kind } }: Film, t: number, [from, to]: [number, number]): Numbers => ({
    head: ["time (ns)", "packet", "late"],
    rows: Array.from(at, (_, i) => i).filter((i) => pair[i] === from * 65_536 + to && at[i] <= t && !(kind[i] & TRIMMED))
      .map((i) => [ns(at[i]), number[i], kind[i] & LATE ? 1 : 0]),
  }),
  loads: (film: Film, t: number): Numbers => ({ head: ["rank", "sent (bytes)"], rows: Array.from(film.loads(t), (bytes, rank) => [rank + 1, bytes]) }),
  queue: (film: Film, t: number): Numbers => ({
    head: ["time (ns)", "longest queue (bytes)"],
    rows: Array.from(film.peaks, (bytes, k): [number, number] => [ns((k * film.end) / INSTANTS), bytes]).filter(([at]) => at <= ns(t)),
  }),
};
