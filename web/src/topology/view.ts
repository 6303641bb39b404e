// The fabric: what is coloured, at which instant, and what is chosen.
import { button, canvas, card, choice, element } from "../dom";
import { show } from "../format";
import { later } from "../chart";
import { runs } from "../data";
import { against, alike, changed, metrics, metricsOf, on, planeOf, rows, run, select, shown, state, type Metric } from "../state";
import { graph } from "./graph";
import { matrices } from "./matrices";
import { finderOf } from "./names";
import { serverGrid } from "./servers";

// Frames a second while it plays.
const SPEED = 12;

export function topology(cards: HTMLElement, again: () => void): void {
  const r = run(), fabric = r.fabric;
  const halves = "Half a line beside a node is the link that leaves it; the two halves of a host's tile are its links up (left) and down (right).";
  const { blocks } = fabric, links = blocks?.links.slice(0, fabric.from.length).reduce((a, b) => a + b, 0) ?? 0;
  const note = blocks
    ? `Aggregated: ${show("count", blocks.nodes.reduce((a, b) => a + b, 0))} nodes in ${fabric.nodes.length} blocks, ${show("count", links)} links in ${fabric.from.length} lines. `
      + `A block is ${fabric.servers ? "the leaves of a rail or plane, or neighbouring servers or switches" : "the nodes of one tier and pod, or neighbours"}; a line is all links from one block to another, in the colour of their mean or of the busiest of them. ${halves} Choose a line or a block.`
    : `${halves}${fabric.outages.length ? " Red: a fault was on the link." : ""} Choose a link, a switch or a host.`;
  const box = card(cards, "Topology", note, true);
  box.id = "topology";
  if (rows(fabric) === 0) {
    box.append(element("p", { class: "note" }, "No links were recorded."));
    return;
  }
  controls(box, again);
  later(() => {
    const width = Math.max(320, box.clientWidth - 30);
    const folded = graph(box, fabric, width), fold = box.querySelector<HTMLButtonElement>("#fold");
    if (fold && folded && !state.folded) {
      fold.disabled = true;
      fold.title = "There is no room for the GPUs of so many servers.";
    }
    if (fabric.servers) serverGrid(box, fabric, fabric.servers, width);
    const panels = blocks?.panels.filter((panel) => !panel.of_servers) ?? [];
    if (!panels.length) return;
    box.append(element("p", { class: "note" }, "Finer: a matrix a tier and direction, where a cell is a link or some neighbouring ones. Choose a cell."));
    matrices(box, panels, width);
  });
}

function controls(box: HTMLElement, again: () => void): void {
  const r = run(), times = r.frames.time_ns;
  if (state.instant >= times.length) state.instant = -1;
  const legend = element("span", { class: "scale" });
  const moment = element("output", { class: "moment" });
  const slider = element("input", { type: "range", min: -1, max: times.length - 1, value: state.instant, "aria-label": "Instant", id: "instant" });
  const tell = () => {
    const { top, colour } = shown(), other = against(), { quantity, scale } = metrics[state.metric];
    const [ramp, g] = canvas(160, 12, other ? "From less to more" : "From little to much");
    for (let x = 0; x < 160; x++) { g.fillStyle = colour(other ? x / 79.5 - 1 : x / 159); g.fillRect(x, 0, 1, 12); }
    const least = other ? `${show(quantity, -top)} ${scale}` : show(quantity, 0);
    const most = other ? `+${show(quantity, top)}, ${r.name} compared with ${other.name}` : `${show(quantity, top)} ${scale}`;
    legend.replaceChildren(top > 0 ? least : "", top > 0 ? ramp : "", top > 0 ? most : other ? "no difference" : "none recorded");
    const whole = state.instant < 0 || other !== undefined;
    const late = !whole && (state.metric === "dropped" || state.metric === "paused") && r.frames.events_until_ns != null
      && times[state.instant] > r.frames.events_until_ns;
    moment.textContent = whole ? "the whole run" : `at ${show("time_ns", times[state.instant])}${late ? " (no longer recorded)" : ""}`;
    slider.value = String(state.instant);
  };
  const options = metricsOf(r).map((m): [string, string] => [m, metrics[m].title]);
  const bar = element("div", { class: "bar" },
    choice("Colour by", options, state.metric, (m) => { state.metric = m as Metric; changed("look"); }));
  const others = runs.map((other, i): [number, string] => [i, other.name]).filter(([i]) => i !== state.run && alike(runs[i].fabric, r.fabric));
  if (others.length) {
    bar.append(choice("Difference to", [[-1, "nothing: this run alone"], ...others], state.against, (v) => { state.against = Number(v); changed("look"); }));
  }
  bar.append(legend);
  if (times.length > 1 && planeOf(r, "utilisation")) {
    let timer: ReturnType<typeof setInterval> | undefined;
    const stop = () => { clearInterval(timer); timer = undefined; play.textContent = "Play"; };
    const play: HTMLButtonElement = button("Play", () => {
      if (timer) return stop();
      play.textContent = "Stop";
      timer = setInterval(() => {
        if (!play.isConnected || state.instant + 1 >= times.length) return stop();
        state.instant++;
        changed("look");
      }, 1000 / SPEED);
      if (state.instant + 1 >= times.length) state.instant = -1;
    }, { id: "play" });
    slider.addEventListener("input", () => { state.instant = Number(slider.value); changed("look"); });
    bar.append(play, slider, moment, button("Whole run", () => { state.instant = -1; changed("look"); }));
  } else {
    bar.append(element("span", { class: "note" }, "No samples over time: `observe.interval` sets how often they are taken."));
  }
  if (r.fabric.servers && !r.fabric.blocks) {
    bar.append(button(state.folded ? "Show GPUs" : "Servers as one", () => { state.folded = !state.folded; again(); }, { id: "fold", "aria-pressed": String(state.folded) }));
  }
  bar.append(finder());
  box.append(bar);
  on("look", tell);
  tell();
}

// A field in which a name can be typed.
function finder(): HTMLElement {
  const { names, find, near, missing } = finderOf(run().fabric);
  const list = element("datalist", { id: "names" }, ...names.map((value) => element("option", { value })));
  const input = element("input", { list: "names", placeholder: "node, or node > node", id: "find" });
  const answer = element("output", { class: "note", id: "find-answer" });
  input.addEventListener("change", () => {
    const typed = input.value.trim(), found = typed ? find(typed) : undefined, others = near(typed);
    answer.textContent = found || !typed ? "" : missing(typed) ?? `No node or link is named ${typed}.${others.length ? ` There is ${others.join(", ")}.` : ""}`;
    if (found) select(found);
  });
  return element("span", {}, element("label", { class: "choice" }, "Find", input, list), answer);
}
