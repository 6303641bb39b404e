// The chosen link and the faults that the reader adds.
import { button, choice, element } from "../dom";
import { show } from "../format";
import { cablesOf } from "./layout";
import type { Fault } from "./scenario";
import { span, state } from "./state";

const DOES: Record<Fault["kind"], string> = { down: "breaks", slow: "slows down", lossy: "loses 1 %" };

export class Links {
  private readonly now = element("p", { class: "now" });
  private asked = 0;

  constructor(private readonly parent: HTMLElement, private readonly draw: () => void, private readonly changed: () => void) {}

  choose(cable: string): void {
    state.chosen = cable;
    this.show();
    this.draw();
  }

  /** Follows a message from a host, or to it. */
  follow(host: number): void {
    const flows = state.films[0].byFinish, flow = flows.findLast((f) => f.src === host) ?? flows.findLast((f) => f.dst === host);
    if (flow) state.pair = [flow.src, flow.dst];
    this.show();
    this.draw();
  }

  /** A fault from this instant on. What was before stays as it was, for the run is repeated. */
  harm(cable: string, kind: Fault["kind"]): void {
    const rate = state.films[0].links.find((l) => l.name === cable)?.rate_bps ?? 100e9;
    state.faults = state.faults.filter((f) => f.link !== cable);
    state.faults.push({ link: cable, at: Math.max(1e3, Math.round(state.t / 1e3) * 1e3), kind, rate_bps: rate / 4 });
    state.chosen = cable;
    this.changed();
  }

  show(): void {
    const [film] = state.films;
    if (!film) return;
    const between = (c: { a: number; b: number }) => film.nodes[c.a].level > 0 && film.nodes[c.b].level > 0;
    const { cables } = cablesOf(film.links), names = [...cables.filter(between), ...cables.filter((c) => !between(c))].map((c) => c.name);
    const chosen = names.includes(state.chosen) ? state.chosen : names[0];
    const bar = element("div", { class: "bar" },
      choice("Link", names.map((n): [string, string] => [n, n]), chosen, (name) => this.choose(name)),
      button("Break it now", () => this.harm(state.chosen || chosen, "down"), { id: "break" }),
      button("Slow it to a quarter", () => this.harm(state.chosen || chosen, "slow")),
      button("Lose 1 % on it", () => this.harm(state.chosen || chosen, "lossy")),
      followed(this.draw));
    const list = element("ul", { "aria-label": "Faults that you added" }, ...state.faults.map((f) => element("li", {},
      `${f.link} ${DOES[f.kind]} at ${show("time_ns", f.at / 1e3)}`,
      button("Repair", () => { state.faults = state.faults.filter((other) => other !== f); this.changed(); }, { "aria-label": `Repair ${f.link}` }))));
    this.parent.replaceChildren(element("h2", {}, "Break something"),
      element("p", { class: "note" }, "Choose a link, or drag one in a picture until it snaps. Choose a host to follow its message. Both runs are repeated with the fault from this instant on; all before stays the same."),
      bar, list, this.now);
    void this.ask();
  }

  /** Asks both runs for the state of the chosen link. */
  async ask(): Promise<void> {
    const turn = ++this.asked, window = span() / 50;
    if (!state.chosen) { this.now.textContent = ""; return; }
    try {
      const answers = await Promise.all(state.engines.map((e) => e.instant(state.t, window)));
      if (turn !== this.asked) return;
      const said = answers.map((answer, i) => {
        const links = state.films[i].links.flatMap((l, k) => (l.name === state.chosen ? [{ l, state: answer.links[k] }] : []));
        const ways = links.map(({ l, state: s }) => `to ${state.films[i].nodes[l.to].name} ${Math.round((s?.utilisation ?? 0) * 100)} % busy, ${show("bytes", s?.queue_bytes ?? 0)} wait, ${s?.drops ?? 0} lost`);
        return `${state.films[i].name}: ${ways.join("; ")}.`;
      });
      this.now.textContent = `${state.chosen} at ${show("time_ns", state.t / 1e3)}. ${said.join(" ")}`;
    } catch { /* A new run has begun. */ }
  }
}

// The message whose packets stand out: the slowest of the left run and some others.
function followed(draw: () => void): HTMLLabelElement {
  const [film] = state.films, most = film.byFinish.length;
  const places = [...new Set([...Array.from({ length: 8 }, (_, i) => most - 1 - i), Math.floor(most / 2), 0])].filter((i) => i >= 0);
  const name = (i: number) => (i === most - 1 ? " (the slowest)" : i === 0 ? " (the fastest)" : "");
  if (!places.some((i) => film.byFinish[i].src === state.pair[0] && film.byFinish[i].dst === state.pair[1])) {
    places.unshift(film.byFinish.findIndex((f) => f.src === state.pair[0] && f.dst === state.pair[1]));
  }
  const options = places.filter((i) => i >= 0).map((i): [string, string] => [`${film.byFinish[i].src},${film.byFinish[i].dst}`, `host ${film.byFinish[i].src} to ${film.byFinish[i].dst}${name(i)}`]);
  return choice("Follow the message of", options, state.pair.join(","), (value) => { state.pair = value.split(",").map(Number) as [number, number]; draw(); });
}
