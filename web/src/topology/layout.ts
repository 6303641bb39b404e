// Where nodes and links of a small topology are drawn.
import type { Fabric } from "../data";

export interface Place { x: number; y: number; /** Half the side of what is drawn. */ r: number; /** Row from the top, for the keys. */ row: number }
export interface Half { row: number; x1: number; y1: number; x2: number; y2: number }
export interface Layout {
  height: number;
  places: Place[];
  /** Halves of links that are drawn as lines, each beside the node the link leaves. */
  halves: Half[];
  /** Hosts drawn as tiles below their switch: their links up and down are the two halves of the tile. */
  tiles: { host: number; up: number; down: number }[];
  /** For a block of switches the row of the links within it. */
  within: Map<number, number>;
  /** Names of the rows, where there are rows. */
  names: { text: string; y: number }[];
  /** The last row of switches. */
  bottom: number;
  /** Servers, each around its GPUs; folded, their GPUs are not drawn. */
  boxes: ServerBox[];
  folded: boolean;
}
export interface ServerBox { server: number; x: number; y: number; width: number; height: number; /** Middle and height of each GPU's part of NVLink. */ links: { gpu: number; x: number; width: number }[] }

export const isHost = (g: Fabric, n: number): boolean => g.nodes[n].kind === "host";

const within = (g: Fabric): Map<number, number> => new Map(g.from.flatMap((from, row): [number, number][] => (from === g.to[row] ? [[from, row]] : [])));
// How many nodes a row of nodes stands for, and in how many blocks.
const counted = (g: Fabric, members: number[]): string => {
  const { blocks } = g;
  const all = blocks ? members.reduce((sum, n) => sum + blocks.nodes[n], 0) : members.length;
  return all === members.length ? String(all) : `${all} in ${members.length}`;
};

interface Attached { hosts: Map<number, number[]>; up: Map<number, number>; down: Map<number, number>; single: boolean }

// Which hosts hang on each switch, and their links, where each has only one pair of them.
function attached(g: Fabric): Attached {
  const out: Attached = { hosts: new Map(), up: new Map(), down: new Map(), single: true };
  g.from.forEach((from, link) => {
    const to = g.to[link];
    if (isHost(g, from)) {
      if (out.up.has(from) || isHost(g, to)) out.single = false;
      out.up.set(from, link);
      out.hosts.set(to, [...(out.hosts.get(to) ?? []), from]);
    } else if (isHost(g, to)) {
      if (out.down.has(to)) out.single = false;
      out.down.set(to, link);
    }
  });
  out.single &&= g.nodes.every((n, i) => n.kind !== "host" || (out.up.has(i) && out.down.has(i)));
  return out;
}

/** The server of a GPU or of a part of a server. */
export function serverOf(g: Fabric, n: number): number | undefined {
  const s = g.servers;
  if (!s || g.blocks) return undefined;
  const gpus = s.servers * s.gpus;
  if (n < gpus) return Math.floor(n / s.gpus);
  return n < gpus + s.parts ? Math.floor(((n - gpus) * s.servers) / s.parts) : undefined;
}

export function layout(g: Fabric, width: number, folded: boolean): Layout {
  const on = attached(g);
  const switches = g.nodes.map((_, n) => n).filter((n) => !isHost(g, n) && serverOf(g, n) === undefined);
  const tiers = new Set(switches.map((n) => g.nodes[n].tier));
  const among = new Set(switches);
  const level = g.from.some((from, l) => among.has(from) && among.has(g.to[l]));
  return tiers.size === 1 && level && !(g.servers && !g.blocks) ? ring(g, width, switches, on) : tiered(g, width, switches, on, folded);
}

function halves(g: Fabric, places: Place[], skip: (link: number) => boolean): Half[] {
  return g.from.flatMap((from, row) => {
    const [a, b] = [places[from], places[g.to[row]]];
    if (!a || !b || a === b || skip(row)) return [];
    // Links within a row bow out below it.
    const bow = a.y === b.y ? Math.min(44, Math.abs(a.x - b.x) / 4) : 0;
    return [{ row, x1: a.x, y1: a.y, x2: (a.x + b.x) / 2, y2: (a.y + b.y) / 2 + bow }];
  });
}

function tiered(g: Fabric, width: number, switches: number[], on: Attached, folded: boolean): Layout {
  const left = 92, rowHeight = 128;
  const tiers = [...new Set(switches.map((n) => g.nodes[n].tier))].sort((a, b) => b - a);
  const rows = tiers.map((tier) => switches.filter((n) => g.nodes[n].tier === tier));
  // Tiles need room below the last row, and all hosts there.
  const inServers = g.servers !== null && !g.blocks;
  const tiled = !inServers && on.single && [...on.hosts.keys()].every((n) => g.nodes[n].tier === tiers.at(-1));
  if (!tiled && !inServers) rows.push(g.nodes.map((_, n) => n).filter((n) => isHost(g, n)));
  const places: Place[] = new Array(g.nodes.length);
  const names: Layout["names"] = [];
  rows.forEach((members, row) => {
    const room = (width - left) / Math.max(1, members.length), y = 36 + row * rowHeight;
    members.forEach((n, i) => { places[n] = { x: left + (i + 0.5) * room, y, r: Math.max(1.5, Math.min(9, room * 0.36)), row }; });
    const what = row < tiers.length ? `tier ${tiers[row]}` : g.servers ? "GPUs" : "hosts";
    names.push({ text: `${what} (${counted(g, members)})`, y });
  });
  let height = 36 + (rows.length - 1) * rowHeight + 60;
  const tiles: Layout["tiles"] = [];
  if (tiled) {
    const last = rows.at(-1)!, room = (width - left) / Math.max(1, last.length), top = height - 24;
    const most = Math.max(0, ...[...on.hosts.values()].map((h) => h.length));
    // The largest tiles that leave the block lower than a row.
    let side = 22;
    const columns = () => Math.max(1, Math.floor((room * 0.9) / side));
    while (side > 3 && Math.ceil(most / columns()) * side > rowHeight) side -= 0.5;
    for (const n of last) {
      const hosts = on.hosts.get(n) ?? [], across = Math.min(columns(), hosts.length);
      hosts.forEach((host, i) => {
        const [column, line] = [i % across, Math.floor(i / across)];
        const x = places[n].x + (column - (across - 1) / 2) * side, y = top + (line + 0.5) * side;
        places[host] = { x, y, r: side / 2 - Math.min(1, side / 8), row: rows.length + line };
        tiles.push({ host, up: on.up.get(host)!, down: on.down.get(host)! });
      });
    }
    names.push({ text: `hosts (${counted(g, tiles.map((t) => t.host))})`, y: top + side / 2 });
    height = top + Math.ceil(most / columns()) * side + 26;
  }
  const boxes = inServers ? placed(g, width, left, rows.length, rowHeight, places, folded) : [];
  if (boxes.length) {
    names.push({ text: `servers (${boxes.length})`, y: boxes[0].y + 14 });
    height = Math.max(...boxes.map((box) => box.y + box.height)) + 26;
  }
  const skip = (link: number) => tiled && (isHost(g, g.from[link]) || isHost(g, g.to[link]));
  return { height, places, halves: halves(g, places, skip), tiles, names, within: within(g), bottom: tiers.length - 1, boxes, folded: inServers && (folded || tooNarrow(g, width, left)) };
}

// Pixels a GPU needs.
const GPU = 7;
const tooNarrow = (g: Fabric, width: number, left: number): boolean => ((width - left) / g.servers!.servers) * 0.9 < GPU * Math.min(4, g.servers!.gpus);

// Servers side by side below the switches: GPUs in one row, or in as many as it takes, shared NICs above them, NVLink below.
function placed(g: Fabric, width: number, left: number, row: number, rowHeight: number, places: Place[], folded: boolean): ServerBox[] {
  const s = g.servers!, room = (width - left) / s.servers, wide = Math.min(room * 0.9, 40 * s.gpus), top = 36 + row * rowHeight - 14;
  const one = folded || tooNarrow(g, width, left);
  const across = one ? 1 : Math.max(1, Math.min(s.gpus, Math.floor(wide / GPU))), lines = one ? 1 : Math.ceil(s.gpus / across);
  const parts = s.parts / s.servers, gpus = s.servers * s.gpus, side = Math.min(22, wide / across);
  const nics = !one && parts > 0 ? 24 : 0;
  return Array.from({ length: s.servers }, (_, server) => {
    const x = left + (server + 0.5) * room - wide / 2, middle = left + (server + 0.5) * room;
    const height = one ? 22 : nics + lines * (side + 2) + (s.domain ? 12 : 4) + 4;
    for (let part = 0; part < parts; part++) {
      const at = one ? middle : x + ((part + 0.5) / parts) * wide;
      places[gpus + server * parts + part] = { x: at, y: top + (one ? 4 : 11), r: one ? 0 : Math.min(6, side / 2), row };
    }
    const links: ServerBox["links"] = [];
    for (let gpu = 0; gpu < s.gpus; gpu++) {
      const [column, line] = [gpu % across, Math.floor(gpu / across)];
      const at = one ? middle : x + ((column + 0.5) / across) * wide;
      places[server * s.gpus + gpu] = { x: at, y: one ? top + 4 : top + nics + 4 + (line + 0.5) * (side + 2), r: one ? 0 : side * 0.36, row: row + 1 + line };
      links.push({ gpu: server * s.gpus + gpu, x: x + (gpu / s.gpus) * wide, width: wide / s.gpus });
    }
    return { server, x, y: top, width: wide, height, links };
  });
}

// A network without tiers: its switches on a ring in their order, so that groups stay together, hosts outside.
function ring(g: Fabric, width: number, switches: number[], on: Attached): Layout {
  const height = Math.min(width, 760), outer = height / 2 - 40, inner = outer - 46;
  const at = (angle: number, radius: number) => ({ x: width / 2 + radius * Math.sin(angle), y: height / 2 - radius * Math.cos(angle) });
  const step = (2 * Math.PI) / switches.length;
  const places: Place[] = new Array(g.nodes.length);
  const r = Math.max(2, Math.min(8, inner * step * 0.3));
  switches.forEach((n, i) => {
    places[n] = { ...at(i * step, inner), r, row: 0 };
    const hosts = on.hosts.get(n) ?? [];
    hosts.forEach((h, k) => {
      places[h] = { ...at(i * step + ((k + 0.5) / hosts.length - 0.5) * step * 0.8, outer), r: Math.max(1.5, r / 2), row: 1 };
    });
  });
  return { height, places, halves: halves(g, places, () => false), tiles: [], names: [], within: within(g), bottom: 0, boxes: [], folded: false };
}
