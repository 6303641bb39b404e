// The page: reads the embedded data and draws; draws again when the colour scheme or the width changes.
(() => {
  "use strict";
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const summaries = read("summaries"), runs = read("picture-data");
  const comparing = runs.length > 1;
  const root = document.getElementById("pictures");
  const chosen = { group: "", run: 0 };

  const groupNames = () => {
    const names = summaries[0].groups.map((g) => g.group);
    return names.length > 1 ? names : [];
  };
  // What is drawn in one colour: a run (of the chosen group), or a group of the only run and all its flows.
  function sets() {
    const find = (r, group) => ({
      summary: group ? summaries[r].groups.find((g) => g.group === group) : summaries[r].overall,
      cdf: runs[r].cdfs.find((c) => c.group === group),
    });
    const all = comparing
      ? runs.map((run, r) => ({ label: run.name, ...find(r, chosen.group) }))
      : ["", ...groupNames()].map((g) => ({ label: g || "all flows", ...find(0, g) }));
    all.forEach((s, i) => { s.index = i; });
    return all.filter((s) => s.summary && s.cdf);
  }

  const section = (title) => {
    root.append(pw.element("h2", "", title));
    const cards = pw.element("div", "cards");
    root.append(cards);
    return cards;
  };
  function choice(label, options, current, onChange) {
    const row = pw.element("label", "choice", label + " ");
    const select = pw.element("select");
    for (const [value, text] of options) {
      const option = pw.element("option", "", text);
      option.value = value;
      option.selected = String(value) === String(current);
      select.append(option);
    }
    select.addEventListener("change", () => { onChange(select.value); draw(); });
    row.append(select);
    return row;
  }

  function flows() {
    const cards = section("Flows");
    if (comparing && groupNames().length) {
      const options = [["", "all flows"], ...groupNames().map((g) => [g, g])];
      cards.before(choice("Workload group", options, chosen.group, (v) => { chosen.group = v; }));
    }
    const shown = sets();
    if (!shown.length) { pw.card(cards, "No flow finished"); return; }
    slowdown(cards, shown);
    const cdf = pw.card(cards, "Flow completion time", "Fraction of finished flows that took at most this long.");
    pw.chart(cdf, {
      x: { label: "Flow completion time", quantity: "time_ns", log: true },
      y: { label: "Fraction of flows", quantity: "plain", max: 1.02 },
      curves: shown.map((s) => ({ label: s.label, x: s.cdf.fct_ns, y: s.cdf.fraction, colour: pw.colour(s.index),
        dash: Math.floor(s.index / 8) || 0, stepped: true, width: 2 })),
    });
  }

  function slowdown(cards, shown) {
    const card = pw.card(cards, "Slowdown by size", "Completion time over that on an idle network; solid P99, dashed P50.");
    const edges = new Map();
    for (const s of shown) for (const b of s.summary.by_size) edges.set(b.up_to_bytes, b.above_bytes);
    const tops = [...edges.keys()].sort((a, b) => a - b);
    const size = (bytes) => pw.show("bytes", bytes).replace(" ", "");
    const categories = tops.map((top) => {
      const above = edges.get(top);
      return above === 0 ? `to ${size(top)}` : `${size(above)}-${size(top)}`.replace(/^(\d+)([A-Z]+)-(\d+\2)$/, "$1-$3");
    });
    const curve = (s, p, dash) => ({
      label: `${s.label} ${p.toUpperCase()}`,
      x: s.summary.by_size.map((b) => tops.indexOf(b.up_to_bytes)),
      y: s.summary.by_size.map((b) => b.slowdown[p]),
      colour: pw.colour(s.index), dash, points: true, width: dash ? 1.4 : 2,
    });
    const curves = shown.flatMap((s) => [curve(s, "p99", 0), curve(s, "p50", 1)]);
    const values = curves.flatMap((c) => c.y).filter((v) => v > 0);
    const log = Math.max(...values) / Math.min(...values) > 20;
    pw.chart(card, {
      x: { label: "Message size", quantity: "plain", categories },
      y: { label: "Slowdown", quantity: "plain", log },
      curves,
    });
  }

  // In a comparison, each run's aggregate of each kind of sample.
  function overlays() {
    const kinds = [...new Map(runs.flatMap((r) => r.charts.map((c) => [c.kind, c]))).values()];
    if (!kinds.length) return;
    const cards = section("Over time");
    for (const kind of kinds) {
      const curves = runs.flatMap((run, r) => {
        const c = run.charts.find((c) => c.kind === kind.kind);
        const a = c && c.curves.find((curve) => curve.aggregate);
        return a ? [{ label: `${run.name}: ${a.label}`, x: c.time_ns, y: a.value, colour: pw.colour(r), dash: Math.floor(r / 8) }] : [];
      });
      const card = pw.card(cards, kind.title);
      pw.chart(card, { x: { label: "Time", quantity: "time_ns" }, y: yAxis(kind), curves });
    }
  }
  const yAxis = (chart) => ({ label: chart.axis, quantity: chart.quantity });

  function details() {
    const cards = section(comparing ? "One run in detail" : "Fabric");
    if (comparing) {
      const options = runs.map((run, r) => [r, run.name]);
      cards.before(choice("Run", options, chosen.run, (v) => { chosen.run = Number(v); }));
    }
    const run = runs[chosen.run];
    if (!run.charts.length) {
      pw.card(cards, "Over time", "No time series were sampled; the scenario sets what is sampled and how often.", true);
    }
    for (const chart of run.charts) {
      const card = pw.card(cards, chart.title);
      // The aggregate goes on top, thicker and in the text's colour.
      const curves = chart.curves.map((c, i) => ({ label: c.label, x: chart.time_ns, y: c.value, width: c.aggregate ? 2.2 : 1.3,
        colour: c.aggregate ? pw.css("--text") : pw.colour(i - 1) }));
      if (curves.length > 1) curves.push(curves.shift());
      pw.chart(card, { x: { label: "Time", quantity: "time_ns" }, y: yAxis(chart), curves });
    }
    pw.topology(cards, run.topology);
    pw.timeline(cards, run.timeline);
  }

  function draw() {
    const scroll = window.scrollY;
    root.textContent = "";
    flows();
    if (comparing) overlays();
    details();
    pw.drawCharts();
    window.scrollTo(0, scroll);
    document.documentElement.dataset.drawn = String(document.querySelectorAll(".card").length);
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let drawnWidth = innerWidth, waiting;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; draw(); }
    }, 150);
  });
})();
