// Names of nodes, where there is room: no two lie over each other.
import type { Fabric } from "../data";
import { isHost, serverOf, type Layout } from "./layout";

interface Rect { x: number; y: number; width: number; height: number }
export interface Box extends Rect { text: string; node: number }

const HEIGHT = 14;

/** The names to draw, the more important first: those in `first`, then switches from the top, then hosts. */
export function labels(
  g: Fabric, layout: Layout, first: number[], measure: (text: string) => number,
  toScreen: (x: number, y: number) => [number, number], size: { width: number; height: number }, scale: number,
): Box[] {
  const switches = g.nodes.map((_, n) => n).filter((n) => !isHost(g, n)).sort((a, b) => g.nodes[b].tier - g.nodes[a].tier || a - b);
  const hosts = g.nodes.map((_, n) => n).filter((n) => isHost(g, n));
  const boxes: Box[] = [];
  const cross = (a: Rect, b: Rect) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
  // Squares of switches, which names keep clear of where they can.
  const squares = switches.flatMap((n): (Rect & { node: number })[] => {
    const place = layout.places[n];
    if (!place || place.r === 0) return [];
    const [x, y] = toScreen(place.x, place.y), r = place.r * scale;
    return [{ x: x - r, y: y - r, width: 2 * r, height: 2 * r, node: n }];
  });
  // Names of rows are written where nothing is zoomed.
  const rows: Rect[] = scale === 1 ? layout.names.map((name) => ({ x: 0, y: name.y - HEIGHT / 2, width: measure(name.text) + 2, height: HEIGHT })) : [];
  for (const node of [...new Set([...first, ...switches, ...hosts])]) {
    const place = layout.places[node];
    if (!place || place.r === 0) continue;
    const [x, y] = toScreen(place.x, place.y);
    if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
    const text = g.nodes[node].name, width = measure(text) + 4, r = place.r * scale;
    const [above, beside, below] = [
      { x: x - width / 2, y: y - r - HEIGHT - 1 }, { x: x + r + 4, y: y - HEIGHT / 2 }, { x: x - width / 2, y: y + r + 1 },
    ];
    const tile = (layout.tiles.length > 0 && isHost(g, node)) || (layout.boxes.length > 0 && serverOf(g, node) !== undefined);
    // The name of a tile, or of what is inside a server, fits inside it or is left out, unless it was asked for.
    if (tile && !first.includes(node) && width > 2 * r) continue;
    const inside = { x: x - width / 2, y: y - HEIGHT / 2 };
    const order = g.servers && g.blocks && isHost(g, node) ? [below] : tile ? (width <= 2 * r ? [inside] : [above, below]) : place.row === 0 && layout.names.length > 2 ? [above, beside]
      : layout.tiles.length > 0 && layout.bottom === place.row ? [below, beside, above] : [beside, below, above];
    const fits = order.map((at) => ({ ...at, width, height: HEIGHT, text, node })).filter((box) =>
      box.x >= 0 && box.x + box.width <= size.width && box.y >= 0 && box.y + box.height <= size.height && ![...boxes, ...rows].some((b) => cross(box, b)));
    const free = fits.find((box) => !squares.some((s) => s.node !== node && cross(box, s))) ?? (first.includes(node) ? fits[0] : undefined);
    if (free) boxes.push(free);
  }
  return boxes;
}
