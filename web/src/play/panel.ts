// A run: its figures, its network, and charts of it.
import { element, tip } from "../dom";
import { show } from "../format";
import { css } from "../theme";
import { loads, order, queue, race } from "./charts";
import { exported, type Numbers } from "../export";
import type { Film } from "./film";
import { numbersOf } from "./numbers";
import { span, state } from "./state";
import type { Harm } from "./scenario";
import { Stage, type Broken } from "./stage";

const DRAG = 34;

const KEYS: [string, string][] = [
  ["width:8px;height:8px;background:VAR", "packet"],
  ["width:8px;height:8px;border-radius:4px;background:var(--text)", "packet of the message that is followed"],
  ["width:22px;height:6px;background:var(--mark)", "queue"],
];

/** One of the two runs. */
export class Panel {
  readonly root: HTMLElement;
  readonly stage: Stage;
  private readonly title = element("h2");
  private readonly facts = element("dl", { class: "facts" });
  private readonly keys = element("p", { class: "key", "aria-hidden": "true" });
  private readonly canvases: Record<"race" | "order" | "loads" | "queue", HTMLCanvasElement>;
  private readonly orderNote = element("small");
  private readonly loadNote = element("small");
  private readonly digest = element("p", { class: "digest" });
  private pulled: { cable: string; x: number; y: number; from: [number, number] } | undefined;
  private chartsAt = 0;

  constructor(private readonly at: 0 | 1, private readonly choose: (cable: string) => void, private readonly snap: (cable: string) => void, private readonly follow: (host: number) => void) {
    const network = element("canvas", { class: "network", role: "img" });
    this.stage = new Stage(network);
    const chart = (label: string) => element("canvas", { role: "img", "aria-label": label });
    this.canvases = {
      race: chart("Messages: a row each, from start to finish"),
      order: chart("Packets of the followed message at its receiver, by time and number"),
      loads: chart("Bytes that each link between switches has carried, most first"),
      queue: chart("Longest queue over time"),
    };
    const box = (title: string, note: HTMLElement | string, canvas: HTMLCanvasElement, numbers: (film: Film, t: number) => Numbers) =>
      [element("h3", {}, title, " ", note), this.saved(title, canvas, numbers)];
    this.root = element("section", { class: "stage" }, this.title, this.facts, this.keys, this.saved("Network", network, numbersOf.network),
      ...box("Messages until they finish", "", this.canvases.race, numbersOf.race),
      ...box("Order at the receiver", this.orderNote, this.canvases.order, (film, t) => numbersOf.order(film, t, state.pair)),
      ...box("Load of the links between switches", this.loadNote, this.canvases.loads, numbersOf.loads),
      ...box("Longest queue", "", this.canvases.queue, numbersOf.queue), this.digest);
    this.listen(network);
  }

  /** A picture with what saves it, as it is at the instant that is shown. */
  private saved(title: string, canvas: HTMLCanvasElement, numbers: (film: Film, t: number) => Numbers): HTMLElement {
    const place = element("div", {}, canvas), { at } = this;
    exported(place, canvas, {
      get name() { return `${title}, ${state.schemes[at]}`; },
      draw: () => this.draw(true), numbers: () => numbers(this.film, state.t),
    });
    return place;
  }

  private get film() { return state.films[this.at]; }
  private get colour() { return css(state.colours[this.at]); }

  private listen(canvas: HTMLCanvasElement): void {
    const place = (e: PointerEvent): [number, number] => {
      const box = canvas.getBoundingClientRect();
      return [e.clientX - box.left, e.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (e) => {
      const [x, y] = place(e), host = this.film && this.stage.hostAt(x, y, this.film.hosts);
      if (host !== undefined) return this.follow(host);
      const cable = this.stage.cableAt(x, y, e.pointerType === "mouse" ? 9 : 18);
      if (!cable) return;
      this.choose(cable);
      this.pulled = { cable, x, y, from: [x, y] };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => {
      if (!this.pulled) return;
      [this.pulled.x, this.pulled.y] = place(e);
      const { cable, x, y, from } = this.pulled;
      if (Math.hypot(x - from[0], y - from[1]) > DRAG) {
        this.pulled = undefined;
        this.snap(cable);
      } else {
        this.draw(true);
      }
    });
    const release = () => { this.pulled = undefined; this.draw(true); };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    tip(canvas, (e) => {
      const box = canvas.getBoundingClientRect(), cable = this.stage.cableAt(e.clientX - box.left, e.clientY - box.top);
      if (!cable || !this.film || this.pulled) return "";
      const queued = this.film.queues(state.t), links = this.film.links.flatMap((l, i) => (l.name === cable ? [i] : []));
      const bytes = links.reduce((sum, l) => sum + (queued.get(l) ?? 0), 0);
      return `${cable}: ${bytes ? `${show("bytes", bytes)} wait` : "nobody waits"}. Drag to break it.`;
    });
  }

  /** Shows the figures of a new run. */
  load(): void {
    const { film } = this, help = state.catalogue.schemes.find((s) => s.name === state.schemes[this.at])?.help ?? "";
    this.title.replaceChildren(element("i", { style: `background:var(${state.colours[this.at]})` }), film.name, element("small", {}, help));
    this.keys.replaceChildren(...KEYS.map(([style, text]) => element("span", {}, element("i", { style: style.replace("VAR", `var(${state.colours[this.at]})`) }), text)));
    this.digest.replaceChildren("Digest ", element("code", { class: "value" }, film.digest), `, as the program prints it. Simulated here in ${show("time_ns", film.wall_ms * 1e6)}.`);
  }

  private tell(): void {
    const { film } = this, t = state.t, done = film.done(t), all = film.flows.length;
    const queued = Math.max(0, ...film.queues(t).values());
    const facts: [string, string][] = [
      ["done", `${done.toLocaleString("en")} of ${all.toLocaleString("en")}`],
      ["queue now", show("bytes", queued)],
      ["longest so far", show("bytes", film.longest(t))],
      ...(film.hasPackets(t) ? [["late packets", film.late(t).toLocaleString("en")] as [string, string]] : []),
      ["lost", film.dropped(t).toLocaleString("en")],
      ...(done === all ? [["all done after", show("time_ns", film.finish / 1e3)] as [string, string]] : []),
    ];
    this.facts.replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    this.stage.canvas.setAttribute("aria-label", `The network under ${film.name} at ${show("time_ns", t / 1e3)}: ${facts.map(([n, v]) => `${n}: ${v}`).join(", ")}`);
  }

  /** Draws the instant; charts and figures a few times a second unless `all`. */
  draw(all: boolean): void {
    const { film } = this;
    if (!film) return;
    const most = Math.max(20_000, ...state.films.map((f) => f.longest(f.end)));
    const broken = state.films.length ? brokenNow() : [];
    this.stage.draw({ film, colour: this.colour, most, pair: state.pair, broken, chosen: state.chosen, pulled: this.pulled }, state.t);
    const now = performance.now();
    if (!all && now - this.chartsAt < 120) return;
    this.chartsAt = now;
    this.tell();
    const other = state.films[1 - this.at];
    race(this.canvases.race, film, other, this.colour, css(state.colours[1 - this.at]), span(), state.t);
    const { late, all: seen } = order(this.canvases.order, film, this.colour, state.pair, Math.min(span(), film.filmed), state.t);
    this.orderNote.textContent = !seen && state.t >= film.filmed ? "packets are known for the beginning only" : film.arrivals.at.length ? `host ${state.pair[0]} to ${state.pair[1]}: ${late} of ${seen} packets came after a later one` : "";
    const heaviest = Math.max(...state.films.map((f) => f.loads(f.end)[0] ?? 0)), uneven = loads(this.canvases.loads, film, this.colour, heaviest, state.t);
    this.loadNote.textContent = uneven ? `the busiest carries ${uneven.toFixed(1)} times the mean` : "";
    queue(this.canvases.queue, film, this.colour, most, span(), state.t);
  }
}

const FAULT = /\[\[fault\]\]([^[]*)/g;
const KINDS: Record<string, Harm> = { "link-down": "down", "link-rate": "slow", "link-loss": "lossy" };
const unit: Record<string, number> = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 };

/** Links that the scenario breaks or slows down, from its text, with those that the reader added. */
function brokenNow(): Broken[] {
  const found: Broken[] = state.faults.map((f) => ({ cable: f.link, at: f.at, kind: f.kind }));
  for (const [, table] of state.text.matchAll(FAULT)) {
    const value = (name: string) => new RegExp(`^${name}\\s*=\\s*"([^"]*)"`, "m").exec(table)?.[1] ?? "";
    const kind = value("kind"), [, number, name] = /^([\d.]+)\s*([a-z]+)$/.exec(value("at")) ?? ["", "0", "s"];
    if (kind in KINDS) found.push({ cable: value("link"), at: Number(number) * unit[name], kind: KINDS[kind] });
  }
  return found;
}
