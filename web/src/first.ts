// The middle picture of the first screen of one run: what arrived over time, or slowdowns by size where nothing was sampled.
import { chart, overTime } from "./chart";
import { runs } from "./data";
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
