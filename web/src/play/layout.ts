// Where nodes lie: levels above each other, hosts below. Switches without levels lie on a ring.
import type { LinkInfo, NodeInfo } from "./abi.mjs";

export interface Place { x: number; y: number; r: number }
/** A cable, drawn once: its two directions, from its first end and from the other. */
export interface Cable { name: string; a: number; b: number; links: [number, number]; rate_bps: number }
export interface Layout { width: number; height: number; places: Place[]; cables: Cable[]; cableOf: Int32Array; hostsInRow: boolean }

export function cablesOf(links: LinkInfo[]): { cables: Cable[]; cableOf: Int32Array } {
  const cables = new Map<number, Cable>(), cableOf = new Int32Array(links.length);
  links.forEach((link, i) => {
    const known = cables.get(link.cable);
    if (known) known.links[1] = i;
    else cables.set(link.cable, { name: link.name, a: link.from, b: link.to, links: [i, i], rate_bps: link.rate_bps });
  });
  const order = [...cables.keys()], list = [...cables.values()];
  const at = new Map(order.map((cable, i) => [cable, i]));
  links.forEach((link, i) => { cableOf[i] = at.get(link.cable)!; });
  return { cables: list, cableOf };
}

export function layout(nodes: NodeInfo[], links: LinkInfo[], width: number): Layout {
  const levels = nodes.reduce((most, n) => Math.max(most, n.level), 0);
  const between = links.some((l) => nodes[l.from].level > 0 && nodes[l.from].level === nodes[l.to].level);
  const places = levels > 1 || !between ? rows(nodes, levels, width) : ring(nodes, links, width);
  const height = Math.max(...places.map((p) => p.y)) + 30;
  return { width, height, places, ...cablesOf(links), hostsInRow: levels > 1 || !between };
}

function rows(nodes: NodeInfo[], levels: number, width: number): Place[] {
  const narrow = width < 500, high = levels > 2 ? (narrow ? 78 : 96) : (narrow ? 105 : 140);
  const margin = 14, of: number[][] = Array.from({ length: levels + 1 }, () => []);
  nodes.forEach((n, i) => of[n.level].push(i));
  const places: Place[] = new Array(nodes.length);
  of.forEach((row, level) => {
    const step = (width - 2 * margin) / row.length;
    // The lowest row is lower, for the receivers' marks.
    const y = 26 + (levels - level) * high - (level === 0 ? (levels > 2 ? 26 : 34) : 0);
    row.forEach((n, i) => {
      places[n] = { x: margin + (i + 0.5) * step, y, r: level === 0 ? Math.max(1.2, Math.min(5, step * 0.32)) : Math.max(2.5, Math.min(9, step * 0.3)) };
    });
  });
  return places;
}

function ring(nodes: NodeInfo[], links: LinkInfo[], width: number): Place[] {
  const switches = nodes.flatMap((n, i) => (n.level > 0 ? [i] : [])), at = new Map(switches.map((n, i) => [n, i]));
  const outer = Math.min(width, 430) / 2 - 16, inner = outer - 34, middle = { x: width / 2, y: outer + 16 };
  const places: Place[] = new Array(nodes.length), hosts = switches.map((): number[] => []);
  for (const l of links) if (nodes[l.from].level === 0 && at.has(l.to)) hosts[at.get(l.to)!].push(l.from);
  const point = (turn: number, radius: number) => ({ x: middle.x + radius * Math.sin(turn), y: middle.y - radius * Math.cos(turn) });
  const step = (2 * Math.PI) / switches.length;
  switches.forEach((n, i) => {
    places[n] = { ...point(i * step, inner), r: Math.max(2.5, Math.min(8, inner * step * 0.3)) };
    hosts[i].forEach((h, k) => { places[h] = { ...point((i + (k + 0.5) / hosts[i].length - 0.5) * step, outer), r: 2.5 }; });
  });
  nodes.forEach((_, i) => { places[i] ??= { ...middle, r: 2 }; });
  return places;
}
