// The report of a sweep: choices on top, then a heat map, lines with error bands, and who is best where.
(() => {
  "use strict";
  const sweep = JSON.parse(document.getElementById("sweep").textContent);
  const opening = JSON.parse(document.getElementById("opening").textContent);
  const place = document.getElementById("pictures");
  place.replaceChildren();
  // A sampled axis has a value a cell; beyond this many, values are put into bins of equal width.
  const MOST = 16;

  // Axes as the pictures use them: places in order of their value, and for each value number its place.
  const axes = sweep.axes.map((axis, number) => {
    const shown = (v) => pw.show(axis.quantity, v);
    const plain = { key: axis.key, number, quantity: axis.quantity, numbers: axis.numbers };
    if (!axis.numbers) return { ...plain, names: axis.values, slot: axis.values.map((_, i) => i) };
    const sorted = [...new Set(axis.numbers)].sort((a, b) => a - b);
    if (sorted.length <= MOST) {
      const names = sorted.map((v) => axis.values[axis.numbers.indexOf(v)]);
      return { ...plain, names, at: sorted, slot: axis.numbers.map((v) => sorted.indexOf(v)) };
    }
    const [low, high] = [sorted[0], sorted[sorted.length - 1]];
    const bins = 8;
    const log = low > 0 && high / low > 50;
    const edge = (i) => (log ? low * Math.pow(high / low, i / bins) : low + ((high - low) * i) / bins);
    const bin = (v) => Math.min(bins - 1, Math.floor(log ? (bins * Math.log(v / low)) / Math.log(high / low) : (bins * (v - low)) / (high - low)));
    const middle = (i) => (log ? Math.sqrt(edge(i) * edge(i + 1)) : (edge(i) + edge(i + 1)) / 2);
    const range = [...Array(bins).keys()];
    return { ...plain, names: range.map((i) => `~${pw.show(axis.quantity, Number(middle(i).toPrecision(2)))}`), at: range.map(middle), slot: axis.numbers.map(bin) };
  });
  const metric = (name) => sweep.metrics.find((m) => m.name === name);
  const show = (m, v) => (v == null ? "-" : m.quantity === "count" ? pw.number(v, 6) : pw.show(m.quantity, v));

  // What is chosen. `fixed[a]` is a place of axis a, or null for the mean over all.
  const others = axes.map((a) => a.number).filter((a) => a !== opening.compare);
  const state = {
    metric: opening.metric,
    compare: opening.compare,
    x: others[0] ?? opening.compare,
    y: others[1] ?? (others.length ? opening.compare : -1),
    fixed: [],
  };
  // Each place of a picture is one cell to begin with; points of a hypercube have no others like them.
  state.fixed = axes.map((a) => (a.number === state.x || sweep.axes[a.number].kind === "sampled" ? null : 0));
  const rest = (free) => axes.filter((a) => !free.includes(a.number)).map((a) => {
    const at = state.fixed[a.number];
    return at == null ? `mean over ${a.key}` : `${a.key} ${a.names[at]}`;
  }).join(", ");

  // Mean over the cells that `keep`s, and the half width of its interval where it is of one cell.
  function figure(keep) {
    const found = sweep.cells.filter((cell) => keep(cell.at)).map((cell) => cell.metrics[state.metric]).filter((f) => f);
    if (!found.length) return null;
    const mean = found.reduce((sum, f) => sum + f.mean, 0) / found.length;
    return { mean, half: found.length === 1 ? found[0].ci95 : null, n: found.length };
  }
  const slot = (at, a) => axes[a].slot[at[a]];
  const fits = (at, free) => axes.every((a) => free.includes(a.number) || state.fixed[a.number] == null || slot(at, a.number) === state.fixed[a.number]);

  function select(parent, label, options, value, change) {
    const box = pw.element("label", "", label);
    const list = pw.element("select");
    for (const [v, text] of options) {
      const option = pw.element("option", "", text);
      option.value = v;
      list.append(option);
    }
    list.value = value;
    list.addEventListener("change", () => { change(list.value); draw(); });
    box.append(list);
    parent.append(box);
  }

  function controls() {
    const bar = pw.element("div", "choice");
    const names = sweep.metrics.filter((m) => sweep.cells.some((cell) => cell.metrics[m.name])).map((m) => [m.name, m.label]);
    const keys = axes.map((a) => [a.number, a.key]);
    select(bar, "Figure", names, state.metric, (v) => { state.metric = v; });
    select(bar, "Across", keys, state.x, (v) => { state.x = Number(v); });
    if (axes.length > 1) {
      select(bar, "Down", keys, state.y, (v) => { state.y = Number(v); });
      select(bar, "Compare", keys, state.compare, (v) => { state.compare = Number(v); });
      for (const a of axes) {
        const all = [["", "mean of all"], ...a.names.map((name, i) => [i, name])];
        select(bar, a.key, all, state.fixed[a.number] ?? "", (v) => { state.fixed[a.number] = v === "" ? null : Number(v); });
      }
    }
    place.append(bar);
  }

  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  const text = (svg, x, y, content, className) => {
    const e = pw.svg("text", { x, y, class: className || "" });
    e.textContent = content;
    svg.append(e);
    return e;
  };

  // Rectangles of two axes; `fill` answers the colour, the words in the cell and those of the tip.
  function grid(parent, x, y, fill) {
    const rows = y < 0 ? [""] : axes[y].names;
    const left = Math.min(190, 20 + 7 * Math.max(...rows.map((r) => Math.min(r.length, 24))));
    const width = Math.max(46, Math.min(110, 640 / axes[x].names.length));
    const height = 32;
    const W = left + width * axes[x].names.length + 12;
    const H = height * rows.length + 44;
    const svg = pw.svg("svg", { viewBox: `0 0 ${W} ${H}`, style: `max-width:${Math.round(W * 1.25)}px` });
    axes[x].names.forEach((name, i) => text(svg, left + width * (i + 0.5), 14, short(name, Math.floor(width / 6.2)), "middle"));
    rows.forEach((name, j) => {
      if (y >= 0) text(svg, left - 8, 24 + height * (j + 0.5) + 4, short(name, 24), "end");
      axes[x].names.forEach((_, i) => {
        const got = fill(i, j);
        const rect = pw.svg("rect", { x: left + width * i + 1, y: 24 + height * j + 1, width: width - 2, height: height - 2, rx: 3, fill: got.colour, opacity: got.faint ? 0.3 : 1 });
        const words = pw.svg("text", { x: left + width * (i + 0.5), y: 24 + height * (j + 0.5), class: "cell-text", style: `fill:${got.ink}` });
        words.textContent = short(got.words, Math.floor(width / 6));
        pw.tip(rect, () => got.tip);
        pw.tip(words, () => got.tip);
        svg.append(rect, words);
      });
    });
    text(svg, left, H - 6, axes[x].key + (y >= 0 ? `, by ${axes[y].key}` : ""), "");
    parent.append(svg);
  }

  function heat() {
    const m = metric(state.metric);
    const y = state.y === state.x ? -1 : state.y;
    const free = y < 0 ? [state.x] : [state.x, y];
    const card = pw.card(place, m.label, rest(free), true);
    const at = (i, j) => figure((c) => slot(c, state.x) === i && (y < 0 || slot(c, y) === j) && fits(c, free));
    const all = [];
    axes[state.x].names.forEach((_, i) => (y < 0 ? [0] : axes[y].names).forEach((_, j) => { const f = at(i, j); if (f) all.push(f.mean); }));
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const log = low > 0 && high / low > 20;
    const scale = (v) => (high === low ? 0.5 : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
    grid(card, state.x, y, (i, j) => {
      const f = at(i, j);
      const where = `${axes[state.x].key} ${axes[state.x].names[i]}` + (y < 0 ? "" : `, ${axes[y].key} ${axes[y].names[j]}`);
      if (!f) return { colour: pw.css("--empty"), ink: pw.css("--soft"), words: "-", tip: `${where}\nnothing` };
      const u = scale(f.mean);
      const light = pw.dark() ? u > 0.55 : u < 0.45;
      const tail = f.n > 1 ? `\nmean of ${f.n} cells` : f.half == null ? "" : ` \u00b1 ${show(m, f.half)}`;
      return { colour: pw.heat(u), ink: light ? "#111" : "#fff", words: show(m, f.mean), tip: `${where}\n${show(m, f.mean)}${tail}` };
    });
    if (all.length) card.append(pw.element("p", "note", `${show(m, low)} to ${show(m, high)}${log ? ", logarithmic colours" : ""}`));
  }

  function lines() {
    const m = metric(state.metric);
    const [x, c] = [state.x, state.compare];
    const card = pw.card(place, `${m.label} over ${axes[x].key}`, rest([x, c]), true);
    const series = (c === x ? [null] : axes[c].names).map((name, k) => {
      const keep = (at, i) => slot(at, x) === i && (name == null || slot(at, c) === k) && fits(at, name == null ? [x] : [x, c]);
      const points = axes[x].names.map((_, i) => ({ i, f: figure((at) => keep(at, i)) })).filter((p) => p.f);
      return { name: name ?? axes[x].key, points, colour: pw.colour(k) };
    }).filter((s) => s.points.length);
    const values = series.flatMap((s) => s.points.flatMap((p) => [p.f.mean + (p.f.half || 0), p.f.mean - (p.f.half || 0)]));
    if (!values.length) { card.append(pw.element("p", "note", "Nothing to show.")); return; }
    const [W, H, left, bottom] = [860, 320, 78, 42];
    const numbers = axes[x].at;
    const logX = numbers && numbers[0] > 0 && numbers[numbers.length - 1] / numbers[0] > 8;
    const unit = (v) => (logX ? Math.log(v) : v);
    const px = (i) => {
      const span = W - left - 30;
      if (!numbers || numbers.length < 2) return left + 15 + (span * (i + 0.5)) / axes[x].names.length;
      const [a, b] = [unit(numbers[0]), unit(numbers[numbers.length - 1])];
      return left + 15 + (span * (unit(numbers[i]) - a)) / (b - a);
    };
    const [min, max] = [Math.min(...values), Math.max(...values)];
    const logY = min > 0 && max / min > 50;
    const low = logY ? min / 1.1 : Math.min(0, min);
    const high = max > low ? (logY ? max * 1.1 : max + 0.05 * (max - low)) : low + 1;
    const py = (v) => {
      const u = logY ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low);
      return 10 + (H - bottom - 10) * (1 - u);
    };
    const svg = pw.svg("svg", { viewBox: `0 0 ${W} ${H}`, style: "max-width:960px" });
    const ticks = logY ? decades(low, high) : even(low, high);
    for (const v of ticks) {
      svg.append(pw.svg("line", { x1: left, x2: W - 15, y1: py(v), y2: py(v), class: "rule" }));
      text(svg, left - 6, py(v) + 4, show(m, v), "end");
    }
    svg.append(pw.svg("line", { x1: left, x2: W - 15, y1: H - bottom, y2: H - bottom, class: "axis" }));
    let last = -Infinity;
    axes[x].names.forEach((name, i) => {
      const label = short(name, 18);
      const half = 3.2 * label.length;
      if (px(i) - half < last + 6) return;
      last = px(i) + half;
      text(svg, px(i), H - bottom + 16, label, "middle");
    });
    text(svg, (left + W) / 2, H - 4, axes[x].key + (logX ? " (logarithmic)" : ""), "middle");
    for (const s of series) {
      const banded = s.points.filter((p) => p.f.half != null);
      if (banded.length > 1) {
        const up = banded.map((p) => `${px(p.i)},${py(p.f.mean + p.f.half)}`);
        const down = banded.map((p) => `${px(p.i)},${py(p.f.mean - p.f.half)}`).reverse();
        svg.append(pw.svg("polygon", { points: up.concat(down).join(" "), fill: s.colour, opacity: 0.18 }));
      }
      if (axes[x].numbers) {
        const path = s.points.map((p) => `${px(p.i)},${py(p.f.mean)}`).join(" ");
        svg.append(pw.svg("polyline", { points: path, fill: "none", stroke: s.colour, "stroke-width": 2 }));
      }
      for (const p of s.points) {
        if (p.f.half != null) {
          svg.append(pw.svg("line", { x1: px(p.i), x2: px(p.i), y1: py(p.f.mean - p.f.half), y2: py(p.f.mean + p.f.half), stroke: s.colour, "stroke-width": 1.5 }));
        }
        const dot = pw.svg("circle", { cx: px(p.i), cy: py(p.f.mean), r: 4, fill: s.colour });
        const half = p.f.half == null ? "" : ` \u00b1 ${show(m, p.f.half)}`;
        pw.tip(dot, () => `${s.name}\n${axes[x].key} ${axes[x].names[p.i]}\n${show(m, p.f.mean)}${half}`);
        svg.append(dot);
      }
    }
    card.append(svg);
    if (c !== x) legend(card, series.map((s) => [s.colour, s.name]));
  }

  function even(low, high) {
    const rough = (high - low) / 5;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
    const out = [];
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) out.push(Math.abs(v) < step / 1e6 ? 0 : v);
    return out;
  }
  function decades(low, high) {
    const out = [];
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const lead of [1, 2, 5]) {
        const v = lead * Math.pow(10, e);
        if (v >= low && v <= high) out.push(v);
      }
    }
    return out;
  }

  function legend(parent, entries) {
    const box = pw.element("div", "legend");
    for (const [colour, name] of entries) {
      const one = pw.element("span");
      const mark = pw.element("i");
      mark.style.background = colour;
      one.append(mark, name);
      box.append(one);
    }
    parent.append(box);
  }

  // Who is best of the compared axis, at each place of the two others.
  function best() {
    const m = metric(state.metric);
    const c = state.compare;
    const free = [state.x, state.y].filter((a) => a >= 0 && a !== c);
    const rest = axes.map((a) => a.number).filter((a) => a !== c);
    const [x, y] = [free[0] ?? rest[0] ?? -1, free[1] ?? rest.find((a) => a !== (free[0] ?? rest[0])) ?? -1];
    if (x < 0 || m.better === "neither") return;
    const card = pw.card(place, `Best ${axes[c].key} by ${m.label}`, "Over all settings at a place. \u201c?\u201d: the seeds do not tell the best from another one.", true);
    const list = sweep.best.filter((b) => b.metric === state.metric);
    // The summary compares by the axis of the sweep file; another one is compared here by means alone.
    const decide = c === opening.compare
      ? (i, j) => list.filter((b) => axes[x].slot[b.at[x]] === i && (y < 0 || axes[y].slot[b.at[y]] === j)).map((b) => ({ value: b.value, tied: b.tied.length > 0 }))
      : (i, j) => {
        const of = axes[c].names.map((_, k) => figure((at) => slot(at, x) === i && (y < 0 || slot(at, y) === j) && slot(at, c) === k));
        const there = of.map((f, k) => [f, k]).filter(([f]) => f);
        const sign = m.better === "higher" ? -1 : 1;
        there.sort(([f], [g]) => sign * (f.mean - g.mean));
        return there.length > 1 ? [{ value: there[0][1], tied: false, place: true }] : [];
      };
    grid(card, x, y, (i, j) => {
      const found = decide(i, j);
      const where = `${axes[x].key} ${axes[x].names[i]}` + (y < 0 ? "" : `, ${axes[y].key} ${axes[y].names[j]}`);
      if (!found.length) return { colour: pw.css("--empty"), ink: pw.css("--soft"), words: "-", tip: `${where}\nnothing to compare` };
      const counts = new Map();
      for (const b of found) {
        const k = b.place ? b.value : axes[c].slot[b.value];
        const one = counts.get(k) || { wins: 0, open: 0 };
        counts.set(k, { wins: one.wins + 1, open: one.open + (b.tied ? 1 : 0) });
      }
      const [first, score] = [...counts].sort((a, b) => b[1].wins - a[1].wins)[0];
      const tip = [...counts].map(([k, s]) => `${axes[c].names[k]}: best in ${s.wins} of ${found.length}${s.open ? `, ${s.open} of them undecided` : ""}`);
      // Pale where no setting is decided.
      const faint = score.open === score.wins;
      return { colour: pw.colour(first), faint, ink: faint ? pw.css("--text") : "#fff", words: axes[c].names[first] + (score.open ? " ?" : ""), tip: `${where}\n${tip.join("\n")}` };
    });
    legend(card, axes[c].names.map((name, k) => [pw.colour(k), name]));
  }

  function draw() {
    place.replaceChildren();
    controls();
    const cards = pw.element("div", "cards");
    heat(); lines(); best();
    cards.append(...place.querySelectorAll(":scope > .card"));
    place.append(cards);
    document.documentElement.dataset.drawn = cards.childElementCount;
  }
  draw();
})();
