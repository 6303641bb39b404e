// What is chosen: situation, network, traffic, schemes.
import { button, choice, element } from "../dom";
import type { Lesson } from "./lessons";
import { FABRICS, SIZES, TRAFFIC, compose } from "./scenario";
import { state } from "./state";

export function lessonButtons(parent: HTMLElement, all: Lesson[], start: (lesson: Lesson) => void): void {
  const own = all.filter((l) => !l.big), demo = all.filter((l) => l.big);
  const make = (lesson: Lesson) => button(lesson.title, () => start(lesson), { "data-lesson": lesson.key, "aria-pressed": "false" });
  parent.replaceChildren(...own.map(make), element("span", {}, "the demo's five:"), ...demo.map(make));
}

export function markLesson(parent: HTMLElement): void {
  for (const b of parent.querySelectorAll("button")) {
    const chosen = b.dataset.lesson === state.lesson?.key;
    b.setAttribute("aria-pressed", String(chosen));
    if (chosen) parent.scrollLeft = b.offsetLeft - (parent.clientWidth - b.offsetWidth) / 2;
  }
}

const built = { fabric: "16", traffic: "permutation", size: "1MB", seed: 1 };

/** Selects of network, traffic and schemes; a change runs at once. */
export function choices(parent: HTMLElement, rerun: (what: "schemes" | "built") => void): void {
  const names = state.catalogue.schemes.map((s): [string, string] => [s.name, s.name]);
  const scheme = (at: 0 | 1, label: string) => choice(label, names, state.schemes[at], (name) => { state.schemes[at] = name; rerun("schemes"); });
  const build = (key: "fabric" | "traffic" | "size", label: string, options: [string, string][]) => {
    const shown: [string, string][] = state.composed ? options : [["", state.lesson ? "as above" : "as written"], ...options];
    return choice(label, shown, state.composed ? built[key] : "", (value) => { built[key] = value || built[key]; take(); });
  };
  const take = () => {
    state.lesson = undefined;
    state.text = compose("mine", built.fabric, built.traffic, built.size, built.seed);
    rerun("built");
  };
  const seed = element("input", { type: "number", min: 1, max: 9999, value: built.seed, "aria-label": "Seed" });
  seed.addEventListener("change", () => { built.seed = Math.max(1, Math.round(Number(seed.value)) || 1); take(); });
  parent.replaceChildren(
    scheme(0, "Left"), scheme(1, "Right"),
    build("fabric", "Network", FABRICS.map((f) => [f.key, f.name])),
    build("traffic", "Traffic", TRAFFIC.map((f) => [f.key, f.name])),
    build("size", "Message", SIZES.map((s) => [s, s])),
    element("label", { class: "choice" }, "Seed", seed),
  );
}
