// Curves: a thin layer over uPlot with our axes, colours and legends.
(() => {
  "use strict";
  const HEIGHT = 270;
  const dashes = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

  // spec: { x: {label, quantity, log, categories}, y: {label, quantity, log, max, min},
  //         curves: [{label, x: [], y: [], colour, dash, width, stepped, points}] }
  // Drawn by `pw.drawCharts`, once every card has found its place and with it its width.
  const waiting = [];
  pw.chart = (parent, spec) => waiting.push(() => draw(parent, spec));
  pw.drawCharts = () => waiting.splice(0).forEach((one) => one());

  function draw(parent, spec) {
    const place = pw.element("div");
    parent.append(place);
    const tables = spec.curves.map((c) => [c.x, c.y]);
    // Curves with their own x values share one axis; null where a curve has no point.
    const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const largest = (arrays) => arrays.reduce((m, a) => a.reduce((n, v) => (v == null ? n : Math.max(n, Math.abs(v))), m), 0);
    const axis = (side, values) => {
      const unit = pw.unit(side.quantity, largest(values));
      const common = {
        stroke: pw.css("--soft"),
        grid: { stroke: pw.css("--grid"), width: 1 },
        ticks: { stroke: pw.css("--line"), width: 1 },
        font: "12px system-ui, sans-serif",
        labelFont: "12px system-ui, sans-serif",
        labelSize: 18,
        labelGap: 2,
        size: 34,
      };
      if (side.categories) {
        return { ...common, label: side.label, splits: () => side.categories.map((_, i) => i),
          values: (u, splits) => thinned(u, side.categories, splits) };
      }
      if (side.log) {
        // Each label has its own unit.
        return { ...common, label: side.label, splits: (u, a, min, max) => logSplits(min, max),
          filter: (u, splits) => splits, values: (u, splits) => splits.map((v) => pw.show(side.quantity, v)) };
      }
      const label = unit.name ? `${side.label} (${unit.name})` : side.label;
      return { ...common, label, values: (u, splits) => splits.map((v) => pw.number(v / unit.scale, 6)) };
    };
    const ys = spec.curves.map((c) => c.y);
    const y = axis(spec.y, ys);
    const options = {
      width: Math.max(280, parent.clientWidth - 30),
      height: HEIGHT,
      scales: {
        x: { time: false, distr: spec.x.log ? 3 : 1, log: 10, range: xRange(spec) },
        y: { distr: spec.y.log ? 3 : 1, log: 10, range: yRange(spec, largest(ys)) },
      },
      axes: [axis(spec.x, spec.curves.map((c) => c.x)), { ...y, size: 56 }],
      legend: { live: true },
      cursor: { points: { size: 6 }, drag: { x: true, y: false } },
      series: [{
        label: spec.x.label,
        value: (u, v) => (v == null ? "" : spec.x.categories ? spec.x.categories[v] : pw.show(spec.x.quantity, v)),
      }],
    };
    for (const [i, c] of spec.curves.entries()) {
      const few = c.x.length <= 40;
      options.series.push({
        label: c.label,
        stroke: c.colour || pw.colour(i),
        width: c.width || 1.6,
        dash: dashes[c.dash || 0],
        spanGaps: true,
        points: { show: c.points && few, size: 6 },
        paths: c.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
        value: (u, v) => (v == null ? "" : pw.show(spec.y.quantity, v)),
      });
    }
    new uPlot(options, data, place);
  }

  function xRange(spec) {
    if (spec.x.categories) return [-0.5, spec.x.categories.length - 0.5];
    if (!spec.x.log) return undefined;
    // A curve of a single value still needs an axis with a width.
    return (u, min, max) => (min == null ? [1, 10] : max / min < 1.5 ? [min / 2, max * 2] : [min / 1.05, max * 1.05]);
  }
  function yRange(spec, largest) {
    if (spec.y.log) return (u, min, max) => [Math.pow(10, Math.floor(Math.log10(min || 1))), Math.max(max * 1.3, 2)];
    const top = spec.y.max || (largest > 0 ? largest * 1.08 : 1);
    return [spec.y.min || 0, top];
  }
  // Powers of ten, and 2 and 5 times them where there is room.
  function logSplits(min, max) {
    const leads = Math.log10(max / min) > 3.2 ? [1] : [1, 2, 5];
    const out = [];
    for (let e = Math.floor(Math.log10(min)); e <= Math.log10(max); e++) {
      for (const lead of leads) {
        const v = lead * Math.pow(10, e);
        if (v >= min && v <= max) out.push(v);
      }
    }
    return out;
  }
  // Category labels, every n-th where they would touch.
  function thinned(u, categories, splits) {
    const room = Math.max(1, Math.floor(u.width / 80));
    const every = Math.ceil(categories.length / room);
    return splits.map((v) => (v % every === 0 ? categories[v] : ""));
  }
})();
