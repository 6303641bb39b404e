// Drops, pauses, retransmissions and faults over time: a strip of bars for each kind.
(() => {
  "use strict";
  const names = { drop: "Drops", pfc_pause: "PFC pauses", ecn_mark: "ECN marks", retransmit: "Retransmissions",
    timeout: "Timeouts", fault: "Faults", repair: "Repairs" };

  pw.timeline = (parent, timeline) => {
    const every = pw.show("time_ns", timeline.interval_ns);
    const note = timeline.rows.length
      ? `Events in intervals of ${every}. Each strip has its own scale; the largest interval is named beside it.`
      : "No drops, pauses, marks, retransmissions or faults were recorded.";
    const card = pw.card(parent, "Events", note, true);
    if (timeline.not_recorded > 0) {
      card.append(pw.element("p", "note", `${pw.show("count", timeline.not_recorded)} more events were beyond the `
        + "recording limit and are missing here; the totals of the summary count them."));
    }
    if (!timeline.rows.length) return;
    const intervals = timeline.rows[0].counts.length;
    const W = Math.max(560, card.clientWidth - 30), left = 150, strip = 40, gap = 12;
    const H = timeline.rows.length * (strip + gap) + 40;
    const svg = pw.svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Events over time" });
    const x = (i) => left + (i * (W - left - 10)) / intervals;
    const text = (x, y, content, anchor, strong) => {
      const t = pw.svg("text", { x, y, "text-anchor": anchor });
      if (strong) t.style.cssText = "fill: var(--text); font-weight: 600";
      t.textContent = content;
      svg.append(t);
    };
    timeline.rows.forEach((row, r) => {
      const base = r * (strip + gap) + strip;
      const most = Math.max(...row.counts);
      text(0, base - 22, names[row.kind] || row.kind, "start", true);
      text(0, base - 6, `${pw.show("count", row.total)}, at most ${pw.show("count", most)}`, "start");
      svg.append(pw.svg("line", { x1: left, y1: base, x2: W - 10, y2: base, stroke: pw.css("--line") }));
      row.counts.forEach((n, i) => {
        if (!n) return;
        const h = Math.max(2, (n / most) * strip);
        const bar = pw.svg("rect", { x: x(i), y: base - h, width: Math.max(1, x(1) - x(0) - 0.6), height: h, fill: pw.colour(r) });
        pw.tip(bar, () => `${pw.show("count", n)} from ${pw.show("time_ns", i * timeline.interval_ns)}`);
        svg.append(bar);
      });
    });
    const end = intervals * timeline.interval_ns, unit = pw.unit("time_ns", end);
    const bottom = H - 22;
    for (let k = 0; k <= 4; k++) {
      const at = left + (k * (W - left - 10)) / 4;
      svg.append(pw.svg("line", { x1: at, y1: 0, x2: at, y2: bottom - 8, stroke: pw.css("--grid") }));
      text(at, bottom + 6, `${pw.number((k * end) / 4 / unit.scale, 3)} ${unit.name}`, k === 4 ? "end" : "middle");
    }
    svg.prepend(...[...svg.querySelectorAll("line")]);
    card.append(svg);
  };
})();
