// The scenario as a file: to read, to change, to keep.
import { button, element } from "../dom";
import { withScheme } from "./scenario";
import { scenario, state } from "./state";

function download(name: string, text: string): void {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "application/toml" })) });
  link.click();
  URL.revokeObjectURL(link.href);
}

export function files(parent: HTMLElement, take: (text: string) => void): void {
  const name = /^name\s*=\s*"([^"]*)"/m.exec(state.text)?.[1] ?? "scenario", file = `${name}.toml`;
  const text = element("textarea", { spellcheck: "false", "aria-label": "Scenario, TOML" });
  text.value = scenario();
  const save = (at: 0 | 1) => button(`Download with ${state.schemes[at]}`, () => download(file, withScheme(scenario(), state.schemes[at])), { "data-save": at });
  parent.replaceChildren(
    element("h2", {}, "Take it with you"),
    element("p", { class: "note" }, "The scenario is a file that the program runs, with the same digest. Change it here or there: everything that a scenario can say runs in this page, but for files that it names."),
    element("div", { class: "bar" }, save(0), save(1)),
    element("pre", {}, `pathweave run ${file}\npathweave compare ${file} --schemes ${state.schemes.join(",")}`),
    element("details", {}, element("summary", {}, "Read and change the scenario"), text,
      element("div", { class: "bar" }, button("Run this", () => take(text.value), { id: "run-text" }))),
  );
}
