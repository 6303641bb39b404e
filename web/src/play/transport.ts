// Time: play, pause, step, and how slowly.
import { button, choice, element } from "../dom";
import { digits, show } from "../format";
import { pace, span, state } from "./state";

const STEPS = 1000;

export class Transport {
  private readonly toggle = button("Play", () => this.play(!state.playing), { class: "main", id: "play" });
  private readonly range = element("input", { type: "range", min: 0, max: STEPS, value: 0, "aria-label": "Time" });
  private readonly time = element("span", { class: "time" });
  private readonly slow = element("span", { class: "slow" });
  private last = 0;

  constructor(parent: HTMLElement, private readonly draw: (all: boolean) => void) {
    const speeds: [string, string][] = [["0.01", "1/100"], ["0.1", "1/10"], ["0.25", "1/4"], ["0.5", "1/2"], ["1", "1"], ["2", "2"], ["5", "5"]];
    parent.replaceChildren(
      this.toggle, button("Start", () => this.go(0), { "aria-label": "To the start" }), this.range, this.time,
      choice("Speed", speeds, "1", (value) => { state.speed = Number(value); this.tell(); }), this.slow,
    );
    this.range.addEventListener("input", () => { this.play(false); this.go((Number(this.range.value) / STEPS) * span()); });
    document.addEventListener("keydown", (e) => this.key(e));
  }

  private key(e: KeyboardEvent): void {
    const at = e.target as HTMLElement;
    if (e.ctrlKey || e.metaKey || e.altKey || /^(SELECT|TEXTAREA|INPUT)$/.test(at.tagName)) return;
    const step = (pace() / 24) * (e.shiftKey ? 10 : 1);
    if (e.key === " " && at.tagName !== "BUTTON" && at.tagName !== "SUMMARY") this.play(!state.playing);
    else if (e.key === "ArrowRight") { this.play(false); this.go(state.t + step); }
    else if (e.key === "ArrowLeft") { this.play(false); this.go(state.t - step); }
    else if (e.key === "Home") this.go(0);
    else if (e.key === "End") { this.play(false); this.go(span()); }
    else return;
    e.preventDefault();
  }

  go(t: number): void {
    state.t = Math.min(Math.max(0, t), span());
    this.tell();
    this.draw(true);
  }

  play(on: boolean): void {
    if (on === state.playing) return;
    if (on && state.t >= span()) state.t = 0;
    state.playing = on;
    this.toggle.textContent = on ? "Pause" : "Play";
    this.last = performance.now();
    if (on) requestAnimationFrame((now) => this.frame(now));
    else this.draw(true);
  }

  private frame(now: number): void {
    if (!state.playing) return;
    // A page that was hidden goes on where it was.
    state.t += pace() * Math.min(0.1, Math.max(0, now - this.last) / 1e3);
    this.last = now;
    if (state.t >= span()) {
      state.t = span();
      this.play(false);
    }
    this.tell();
    this.draw(false);
    requestAnimationFrame((next) => this.frame(next));
  }

  tell(): void {
    this.range.value = String(Math.round((state.t / span()) * STEPS));
    this.range.setAttribute("aria-valuetext", show("time_ns", state.t / 1e3));
    this.time.textContent = show("time_ns", state.t / 1e3);
    const slower = 1e12 / pace();
    this.slow.replaceChildren(`A second shows ${show("time_ns", Number(digits(pace() / 1e3, 2)))}: slowed down ${Number(digits(slower, 2)).toLocaleString("en")} times.`,
      element("span", { class: "keys" }, " Space plays, arrows step."));
  }
}
