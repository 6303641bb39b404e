// Shared by the pictures: numbers with units, colours, small helpers. Everything hangs off one object.
const pw = {};
(() => {
  "use strict";
  const ladders = {
    time_ns: [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]],
    rate_bps: [[1, "bps"], [1e3, "Kbps"], [1e6, "Mbps"], [1e9, "Gbps"], [1e12, "Tbps"]],
    bytes: [[1, "B"], [1e3, "KB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"]],
    count: [[1, ""]],
    plain: [[1, ""]],
    percent: [[0.01, "%"]],
  };

  // The unit in which `largest` has one to three digits before the point.
  pw.unit = (quantity, largest) => {
    const ladder = ladders[quantity];
    let best = ladder[0];
    for (const step of ladder) if (Math.abs(largest) >= step[0]) best = step;
    return { scale: best[0], name: best[1] };
  };
  pw.number = (v, digits = 4) => (v === 0 ? "0" : String(Number(v.toPrecision(digits))));
  pw.show = (quantity, v) => {
    if (v == null) return "-";
    if (quantity === "count") return v.toLocaleString("en");
    const unit = pw.unit(quantity, v);
    return (pw.number(v / unit.scale) + " " + unit.name).trim();
  };

  pw.css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  pw.colour = (i) => pw.css("--c" + (i % 8));

  // Utilisation to colour, after viridis: even in brightness for every kind of colour vision. Turned round on a light
  // page, so that what is busy stands out from the background on either.
  const anchors = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  pw.dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  pw.heat = (u) => {
    const inside = Math.min(Math.max(u, 0), 1);
    const x = (pw.dark() ? inside : 1 - inside) * (anchors.length - 1);
    const i = Math.min(Math.floor(x), anchors.length - 2);
    const mix = anchors[i].map((a, k) => Math.round(a + (anchors[i + 1][k] - a) * (x - i)));
    return `rgb(${mix.join(",")})`;
  };

  pw.element = (tag, className, text) => {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text != null) e.textContent = text;
    return e;
  };
  pw.svg = (tag, attributes) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    return e;
  };
  pw.card = (parent, title, note, wide) => {
    const card = pw.element("div", wide ? "card wide" : "card");
    card.append(pw.element("h3", "", title));
    if (note) card.append(pw.element("p", "note", note));
    parent.append(card);
    return card;
  };

  const tip = pw.element("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  // `text` of the pointer event, or nothing.
  pw.tip = (target, text) => {
    target.addEventListener("pointermove", (e) => {
      const t = text(e);
      tip.hidden = !t;
      if (!t) return;
      tip.textContent = t;
      tip.style.left = Math.min(e.clientX + 12, innerWidth - tip.offsetWidth - 8) + "px";
      tip.style.top = Math.min(e.clientY + 12, innerHeight - tip.offsetHeight - 8) + "px";
    });
    target.addEventListener("pointerleave", () => { tip.hidden = true; });
  };
})();
