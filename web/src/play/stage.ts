// The network of a run at an instant: links, queues before them, packets on them.
import { resize } from "../dom";
import { css, heat } from "../theme";
import type { Film } from "./film";
import { layout, type Layout } from "./layout";
import type { Harm } from "./scenario";

export interface Broken { cable: string; at: number; kind: Harm }
const DASHES: Record<Harm, number[]> = { down: [3, 4], slow: [9, 3], lossy: [2, 2, 8, 2] };
export interface View {
  film: Film;
  colour: string;
  /** Queue that is drawn as long as can be, in bytes; the same for both runs. */
  most: number;
  /** Sender and receiver whose packets stand out. */
  pair: [number, number];
  broken: Broken[];
  chosen: string;
  /** A link that the pointer pulls, and where to. */
  pulled?: { cable: string; x: number; y: number };
}

const pairOf = (pair: [number, number]): number => pair[0] * 65_536 + pair[1];

export class Stage {
  readonly canvas: HTMLCanvasElement;
  private g!: CanvasRenderingContext2D;
  private placed!: Layout;
  private drawnFor = "";

  constructor(canvas: HTMLCanvasElement) { this.canvas = canvas; }

  /** The cable nearest to a point of the canvas, if one is near. */
  cableAt(x: number, y: number, reach = 9): string | undefined {
    let best = reach, name: string | undefined;
    for (const cable of this.placed?.cables ?? []) {
      const a = this.placed.places[cable.a], b = this.placed.places[cable.b];
      const length = (b.x - a.x) ** 2 + (b.y - a.y) ** 2;
      const way = Math.min(1, Math.max(0, ((x - a.x) * (b.x - a.x) + (y - a.y) * (b.y - a.y)) / length));
      const off = Math.hypot(a.x + way * (b.x - a.x) - x, a.y + way * (b.y - a.y) - y);
      if (off < best) [best, name] = [off, cable.name];
    }
    return name;
  }

  /** The host at a point of the canvas, if there is one. */
  hostAt(x: number, y: number, hosts: number): number | undefined {
    const places = this.placed?.places.slice(0, hosts) ?? [];
    const off = (n: number) => Math.hypot(places[n].x - x, places[n].y - y) - places[n].r;
    const nearest = places.reduce((best, _, n) => (off(n) < off(best) ? n : best), 0);
    return places.length && off(nearest) < 6 ? nearest : undefined;
  }

  /** Makes the canvas fit its place. */
  fit(film: Film): void {
    const width = Math.max(280, this.canvas.parentElement!.clientWidth);
    const wanted = `${width} ${film.nodes.length} ${film.links.length} ${globalThis.devicePixelRatio}`;
    if (wanted === this.drawnFor) return;
    this.drawnFor = wanted;
    this.placed = layout(film.nodes, film.links, width);
    this.g = resize(this.canvas, width, this.placed.height);
  }

  draw(view: View, t: number): void {
    this.fit(view.film);
    const { g, placed } = this;
    g.clearRect(0, 0, placed.width, placed.height);
    this.cables(view, t);
    this.queues(view, t);
    if (view.film.hasPackets(t)) this.packets(view, t);
    this.losses(view, t);
    this.nodes(view, t);
  }

  private cables(view: View, t: number): void {
    const { g, placed } = this, use = view.film.hasPackets(t) ? undefined : view.film.use(t), grid = css("--line");
    const bad = css("--bad"), accent = css("--accent"), dense = placed.cables.length > 200;
    for (const cable of placed.cables) {
      const a = placed.places[cable.a], b = placed.places[cable.b];
      const harm = view.broken.find((f) => f.cable === cable.name && f.at <= t), chosen = view.chosen === cable.name;
      const busy = use ? Math.max(...cable.links.map((l) => use.get(l) ?? 0)) : 0;
      g.strokeStyle = harm ? bad : chosen ? accent : busy > 0.02 ? heat(busy) : grid;
      g.lineWidth = chosen || harm ? 2.2 : busy > 0.02 ? 1.6 : dense ? 0.7 : 1.2;
      g.setLineDash(harm ? DASHES[harm.kind] : []);
      g.beginPath();
      g.moveTo(a.x, a.y);
      if (view.pulled?.cable === cable.name) g.quadraticCurveTo(2 * view.pulled.x - (a.x + b.x) / 2, 2 * view.pulled.y - (a.y + b.y) / 2, b.x, b.y);
      else g.lineTo(b.x, b.y);
      g.stroke();
      if (harm?.kind === "down") this.cross((a.x + b.x) / 2, (a.y + b.y) / 2, 6, bad);
    }
    g.setLineDash([]);
  }

  private cross(x: number, y: number, r: number, colour: string): void {
    const { g } = this;
    g.strokeStyle = colour;
    g.lineWidth = 2.2;
    g.beginPath();
    g.moveTo(x - r, y - r); g.lineTo(x + r, y + r);
    g.moveTo(x - r, y + r); g.lineTo(x + r, y - r);
    g.stroke();
  }

  // A direction of a link: where it begins, its unit vector, and its length; the two directions lie beside each other.
  private way(view: View, link: number): { x: number; y: number; dx: number; dy: number; length: number } {
    const { from, to } = view.film.links[link], a = this.placed.places[from], b = this.placed.places[to];
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1, dx = (b.x - a.x) / length, dy = (b.y - a.y) / length;
    return { x: a.x - dy * 1.8, y: a.y + dx * 1.8, dx, dy, length };
  }

  // Queues as bars that grow from the switch along the link for which the packets wait.
  private queues(view: View, t: number): void {
    const { g } = this;
    g.fillStyle = css("--mark");
    for (const [link, bytes] of view.film.queues(t)) {
      if (bytes < view.most * 0.004) continue;
      const way = this.way(view, link), r = this.placed.places[view.film.links[link].from].r;
      const long = Math.max(2, (way.length - r - 6) * Math.min(1, bytes / view.most)), wide = this.placed.cables.length > 200 ? 3.6 : 9;
      g.save();
      g.translate(way.x + way.dx * r, way.y + way.dy * r);
      g.rotate(Math.atan2(way.dy, way.dx));
      g.globalAlpha = 0.8;
      g.fillRect(0, -wide / 2, long, wide);
      g.restore();
    }
  }

  private packets(view: View, t: number): void {
    const { g, placed } = this, chosen = pairOf(view.pair), ours: [number, number, number][] = [];
    const size = placed.cables.length > 200 ? 1.7 : placed.cables.length > 60 ? 2.6 : 4, soft = css("--soft");
    view.film.packets(t, (link, way, before, pair, control) => {
      const { x, y, dx, dy, length } = this.way(view, link);
      const r = placed.places[view.film.links[link].from].r;
      const along = way < 0 ? r + (length - r - 6) * Math.min(1, before / view.most) : way * length;
      const at: [number, number] = [x + dx * along, y + dy * along];
      if (control) {
        g.globalAlpha = 0.45;
        g.fillStyle = soft;
        g.fillRect(at[0] - 0.6, at[1] - 0.6, 1.2, 1.2);
      } else if (pair === chosen) {
        ours.push([...at, way < 0 ? 1.3 : Math.max(2.2, size * 0.72)]);
      } else if (way >= 0) {
        g.globalAlpha = 0.9;
        g.fillStyle = view.colour;
        g.fillRect(at[0] - size / 2, at[1] - size / 2, size, size);
      }
    });
    g.globalAlpha = 1;
    g.fillStyle = css("--text");
    for (const [x, y, r] of ours) {
      g.beginPath();
      g.arc(x, y, r, 0, 2 * Math.PI);
      g.fill();
    }
  }

  // Packets lost shortly before: crosses where they were lost, which rise and fade.
  private losses(view: View, t: number): void {
    const { film } = view, span = film.end / 60;
    for (let i = film.dropped(t) - 1; i >= 0 && i > film.dropped(t) - 40 && t - film.drops[i] < span; i--) {
      if (Number.isNaN(film.dropLink[i])) continue;
      const way = this.way(view, film.dropLink[i]), age = (t - film.drops[i]) / span;
      this.g.globalAlpha = 1 - age;
      this.cross(way.x + way.dx * way.length * 0.3, way.y + way.dy * way.length * 0.3 - 14 * age, 3.2, css("--bad"));
    }
    this.g.globalAlpha = 1;
  }

  private nodes(view: View, t: number): void {
    const { g, placed } = this, { film } = view;
    g.fillStyle = css("--soft");
    g.font = "11px system-ui, sans-serif";
    placed.places.forEach((p, n) => {
      g.fillStyle = film.nodes[n].level > 0 ? css("--soft") : view.colour;
      g.globalAlpha = film.nodes[n].level > 0 ? 0.9 : 0.75;
      g.beginPath();
      if (film.nodes[n].level > 0) g.rect(p.x - p.r, p.y - p.r * 0.7, 2 * p.r, 1.4 * p.r);
      else g.arc(p.x, p.y, p.r, 0, 2 * Math.PI);
      g.fill();
    });
    g.globalAlpha = 1;
    if (film.nodes.length - film.hosts <= 14 && placed.hostsInRow) this.names(view);
    if (placed.hostsInRow) this.progress(view, t);
    view.pair.forEach((n, end) => {
      const p = placed.places[n];
      g.strokeStyle = css("--text");
      g.lineWidth = 1.6;
      g.beginPath();
      g.arc(p.x, p.y, p.r + 3, 0, 2 * Math.PI);
      g.stroke();
      g.fillStyle = css("--text");
      g.textAlign = p.x < 30 ? "left" : p.x > placed.width - 30 ? "right" : "center";
      g.fillText(end ? "to" : "from", p.x, p.y + p.r + (placed.cables.length > 200 ? 20 : 15));
    });
  }

  private names(view: View): void {
    const { g, placed } = this;
    g.fillStyle = css("--soft");
    placed.places.forEach((p, n) => {
      if (view.film.nodes[n].level === 0) return;
      const top = p.y < 40;
      g.textAlign = top ? "center" : "left";
      g.fillText(view.film.nodes[n].name, top ? p.x : p.x + p.r + 5, top ? p.y - p.r - 3 : p.y + 4);
    });
  }

  // Receivers whose messages have all arrived.
  private progress(view: View, t: number): void {
    const { g, placed } = this, open = new Set<number>(), known = new Set<number>();
    for (const f of view.film.flows) {
      known.add(f.dst);
      if (!(f.finish <= t)) open.add(f.dst);
    }
    g.strokeStyle = css("--good");
    g.lineWidth = 1.6;
    for (const n of known) {
      if (open.has(n) || view.pair.includes(n)) continue;
      const p = placed.places[n], s = Math.max(2, Math.min(5, p.r));
      g.beginPath();
      g.moveTo(p.x - s, p.y + p.r + 5); g.lineTo(p.x - s * 0.2, p.y + p.r + 5 + s * 0.8); g.lineTo(p.x + s * 1.2, p.y + p.r + 5 - s);
      g.stroke();
    }
  }
}
