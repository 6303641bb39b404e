// The middle picture of the first screen of one run: what arrived over time, or slowdowns by size where nothing was sampled.
import { chart, overTime } from "./chart";
import { runs } from "./data";
import { exported, type Numbers } from "./export";
import { comparing, sets, slowdownChart } from "./flows";
import { element } from "./dom";
import { faultWords } from "./overtime";
import { colour } from "./theme";

const KINDS = ["host_rate_bps", "link_utilisation_ratio", "queue_bytes"];

export function firstCurve(): void {
  const figure = document.getElementById("first-curve");
  if (!figure || comparing) return;
  const r = runs[0];
  const found = KINDS.flatMap((kind) => r.charts.find((c) => c.kind === kind) ?? [])[0] ?? r.charts[0];
  const line = found?.curves.find((c) => c.aggregate);
  if (found && line) {
    figure.replaceChildren(element("figcaption", {}, found.title));
    chart(figure, {
      x: { label: "Time", quantity: "time_ns" }, y: { label: found.axis, quantity: found.quantity }, height: 250, faults: r.faults,
      lines: [{ label: line.label, ...overTime(found.time_ns, line.value, found.span), colour: colour(r.colour), width: 2.2 }],
    });
    if (r.faults.length) figure.append(element("p", { class: "note" }, `Upright lines: ${faultWords(r)}.`));
    return;
  }
  const shown = sets().filter((s) => s.summary.finished > 0).slice(0, 1);
  figure.replaceChildren(...(shown.length ? [element("figcaption", {}, "Slowdown by size")] : []));
  if (shown.length) slowdownChart(figure, shown, 250);
}

/** Makes the pictures that the program drew exportable: curves have their numbers in the page, maps those of links. */
export function firstPictures(): void {
  document.querySelectorAll<SVGElement>(".panes figure > svg").forEach((picture) => {
    const figure = picture.parentElement!;
    figure.querySelector(":scope > .export")?.remove();
    const own = picture.dataset.numbers;
    const name = figure.querySelector("figcaption")?.textContent ?? "Picture";
    exported(figure, picture, { name, numbers: () => (own ? (JSON.parse(own) as Numbers) : ofLinks()),
      legend: () => (own ? runs.map((r) => ({ label: r.name, colour: colour(r.colour) })) : []) });
  });
}

function ofLinks(): Numbers {
  const first = runs[0].fabric, heads = runs.flatMap((r) => [`busy ${r.name} (ratio)`, `sent ${r.name} (bytes)`]);
  const rows = first.from.map((from, l) => [first.nodes[from].name, first.nodes[first.to[l]].name,
    ...runs.flatMap(({ fabric }) => [fabric.totals.utilisation[l], fabric.totals.tx_bytes[l]])]);
  return { head: ["from", "to", ...heads], rows };
}
