// PFC: who paused whom, as trees whose roots are what was really congested.
import type { PausedLink } from "./data";
import { button, card, element } from "./dom";
import { show } from "./format";
import { run, select } from "./state";

// Lines of the tree.
const MOST = 200;
const ROOTS = 40;

export function pauses(cards: HTMLElement): void {
  const { of, links, until_ns } = run().pauses;
  if (!of) {
    card(cards, "PFC pauses", "No pause was recorded.", true);
    return;
  }
  const box = card(cards, "PFC: who paused whom",
    "Each root is a node without room that was not paused itself when it paused others; below it, those it paused, and whom they paused in turn because of it. The bar is the time a link was paused.", true);
  if (until_ns != null) box.append(element("p", { class: "note" }, `Single pauses were recorded until ${show("time_ns", until_ns)}; later ones are only in the totals.`));
  if (links.length < of) box.append(element("p", { class: "note" }, `The ${links.length} most paused of ${of} paused links.`));

  // A link hangs below the one that most of its pauses were passed on from, unless most began without one.
  const known = new Map(links.map((l) => [l.link, l]));
  const parent = (l: PausedLink): PausedLink | undefined => {
    const cause = l.passed_on[0];
    return cause && cause.pauses * 2 > l.pauses ? known.get(cause.link) : undefined;
  };
  const inCycle = (l: PausedLink): boolean => {
    const seen = new Set<PausedLink>();
    for (let at: PausedLink | undefined = parent(l); at && !seen.has(at); at = parent(at)) {
      if (at === l) return true;
      seen.add(at);
    }
    return false;
  };
  const children = new Map<PausedLink | string, PausedLink[]>();
  for (const l of links) {
    const cycle = inCycle(l);
    const above = cycle ? `${l.by} (in a cycle of pauses)` : parent(l) ?? l.by;
    children.set(above, [...(children.get(above) ?? []), l]);
  }
  const longest = Math.max(...links.map((l) => l.paused_ns));
  let lines = 0;
  const item = (l: PausedLink): HTMLElement => {
    const bar = element("span", { class: "bar-time", style: `width:${Math.max(1, (l.paused_ns / longest) * 120)}px` });
    const line = element("span", { class: "pause" }, button(l.paused, () => choose(l), { class: "link", title: l.name }), " ", bar,
      ` ${show("time_ns", l.paused_ns)} in ${show("count", l.pauses)} pauses`);
    return branch(line, children.get(l) ?? []);
  };
  const branch = (head: HTMLElement, below: PausedLink[]): HTMLElement => {
    lines++;
    const shown = [...below].sort((a, b) => b.paused_ns - a.paused_ns).slice(0, Math.max(0, MOST - lines));
    if (!shown.length) return element("li", {}, head);
    const rest = below.length - shown.length;
    return element("li", {}, element("details", { open: lines < 40 }, element("summary", {}, head),
      element("ul", { class: "tree" }, ...shown.map(item), ...(rest > 0 ? [element("li", { class: "note" }, `${rest} more`)] : []))));
  };
  const roots = [...children].filter((entry): entry is [string, PausedLink[]] => typeof entry[0] === "string");
  const weight = (list: PausedLink[]) => list.reduce((sum, l) => sum + l.paused_ns, 0);
  roots.sort((a, b) => weight(b[1]) - weight(a[1]));
  // The heaviest open, the rest folded; as many as are worth reading.
  const shown = roots.slice(0, ROOTS);
  if (shown.length < roots.length) {
    box.append(element("p", { class: "note" }, `The ${ROOTS} roots with the longest pauses of ${roots.length}.`));
  }
  box.append(element("ul", { class: "tree forest", tabindex: 0 }, ...shown.map(([name, below]) =>
    branch(element("span", {}, element("strong", {}, name), ` paused ${below.length} ${below.length === 1 ? "link" : "links"}`), below))));
}

function choose(l: PausedLink): void {
  // Rows are links where every link is drawn.
  if (!run().fabric.blocks) select({ kind: "row", row: l.link });
}
