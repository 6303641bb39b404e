// What a picture must be: filled, with axes that span something, with labels that are whole, round and apart.
import assert from "node:assert/strict";

/** Records what is written on each canvas, for `faultsOf`: to be run before any script of the page. */
export const watchCanvases = () => {
  const proto = CanvasRenderingContext2D.prototype, written = new WeakMap();
  const { fillText, clearRect } = proto;
  globalThis.writtenOn = (canvas) => written.get(canvas)?.texts ?? [];
  const of = (canvas) => {
    let own = written.get(canvas);
    // A new size clears it.
    if (!own || own.width !== canvas.width || own.height !== canvas.height) written.set(canvas, own = { width: canvas.width, height: canvas.height, texts: [] });
    return own;
  };
  proto.clearRect = function (x, y, w, h) {
    const own = of(this.canvas), { a, e, f } = this.getTransform();
    const inside = (t) => t.x + t.width / 2 >= x * a + e && t.x + t.width / 2 <= (x + w) * a + e && t.y >= y * a + f - 1 && t.y <= (y + h) * a + f + 1;
    own.texts = own.texts.filter((t) => !inside(t));
    return clearRect.call(this, x, y, w, h);
  };
  proto.fillText = function (text, x, y, most) {
    const m = this.measureText(text), at = this.getTransform();
    const scale = Math.hypot(at.a, at.b), squeezed = most !== undefined && m.width > most ? most / m.width : 1;
    // Corners in pixels of the canvas, of whatever is turned, too.
    const [left, right] = [-m.actualBoundingBoxLeft * squeezed, m.actualBoundingBoxRight * squeezed], [top, bottom] = [-m.actualBoundingBoxAscent, m.actualBoundingBoxDescent];
    const corners = [[left, top], [right, top], [left, bottom], [right, bottom]].map(([dx, dy]) => ({ x: at.a * (x + dx) + at.c * (y + dy) + at.e, y: at.b * (x + dx) + at.d * (y + dy) + at.f }));
    const [xs, ys] = [corners.map((c) => c.x), corners.map((c) => c.y)];
    const own = of(this.canvas);
    const box = { text: String(text), x: Math.min(...xs), y: Math.min(...ys), width: Math.max(...xs) - Math.min(...xs), height: Math.max(...ys) - Math.min(...ys), scale, squeezed };
    // The same once more, as when a picture is drawn anew over itself.
    own.texts = own.texts.filter((t) => !(t.text === box.text && Math.abs(t.x - box.x) < 1 && Math.abs(t.y - box.y) < 1));
    if (box.text.trim() && this.globalAlpha > 0) own.texts.push(box);
    return most === undefined ? fillText.call(this, text, x, y) : fillText.call(this, text, x, y, most);
  };
};

/** What is wrong with the pictures of the page that is open. */
export const faultsOf = (page) => page.evaluate(() => {
  const faults = [];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 0;
  const named = (e) => (e.getAttribute("aria-label") || e.closest("figure, .card")?.querySelector("figcaption, h3")?.textContent || e.tagName).slice(0, 60);
  // Boxes with texts in one picture: none over the edge, none over another.
  const check = (name, texts, size, slack) => {
    for (const t of texts) {
      const over = [-t.x, -t.y, t.x + t.width - size.width, t.y + t.height - size.height].map((d) => Math.round(10 * d) / 10);
      if (Math.max(...over) > slack) faults.push(`${name}: "${t.text}" is cut off by ${Math.max(...over)} px`);
      if (t.squeezed < 0.7) faults.push(`${name}: "${t.text}" is squeezed to ${Math.round(100 * t.squeezed)} %`);
      if (/NaN|undefined|Infinity/.test(t.text)) faults.push(`${name}: "${t.text}"`);
      // 1,230,336 or 148.1 ms on an axis; what is no number is a name.
      const number = /^-?([\d,]*\.?\d+)(?: ?[A-Za-z%]+)?$/.exec(t.text);
      const digits = number?.[1].replaceAll(",", "").replace(".", "").replace(/^0+/, "").replace(/0+$/, "");
      if (digits !== undefined && digits.length > 3 && t.tick !== false) faults.push(`${name}: the tick "${t.text}" is not round`);
    }
    for (const [i, a] of texts.entries()) {
      for (const b of texts.slice(i + 1)) {
        const [w, h] = [Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x), Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y)];
        if (w > slack && h > slack) faults.push(`${name}: "${a.text}" and "${b.text}" lie over each other`);
      }
    }
  };
  for (const canvas of [...document.querySelectorAll("canvas")].filter(seen)) {
    const texts = globalThis.writtenOn(canvas), ratio = texts[0]?.scale > 1 ? texts[0].scale : canvas.width / Math.max(1, canvas.getBoundingClientRect().width);
    const scaled = texts.map((t) => ({ ...t, x: t.x / ratio, y: t.y / ratio, width: t.width / ratio, height: t.height / ratio }));
    check(named(canvas), scaled, { width: canvas.width / ratio, height: canvas.height / ratio }, 1.5);
    const g = canvas.getContext("2d"), data = canvas.width && canvas.height ? new Uint32Array(g.getImageData(0, 0, canvas.width, canvas.height).data.buffer) : [];
    if (data.length && data.every((v) => v === data[0])) faults.push(`${named(canvas)}: of one colour`);
  }
  for (const picture of [...document.querySelectorAll("svg")].filter(seen)) {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].map((t) => {
      const box = t.getBoundingClientRect();
      return { text: t.textContent, x: box.x - frame.x, y: box.y - frame.y, width: box.width, height: box.height * 0.72, tick: !t.classList.contains("point") };
    }).filter((t) => t.text.trim());
    check(named(picture), texts, frame, 1.5);
    const drawn = picture.querySelectorAll("path:not(.grid):not(.level), rect, circle, polyline");
    if (!drawn.length) faults.push(`${named(picture)}: nothing is drawn`);
    for (const curve of picture.querySelectorAll("path.curve, polyline")) {
      const box = curve.getBBox();
      if (box.width <= 0 && box.height <= 0) faults.push(`${named(picture)}: a curve without a point`);
    }
  }
  // Charts say how many points each of their lines has, and what their axes span.
  for (const chart of document.querySelectorAll(".chart")) {
    const name = named(chart), points = (chart.dataset.points ?? "").split(" ").map(Number), span = (chart.dataset.span ?? "").split(" ").map(Number);
    if (!chart.dataset.points || points.some((n) => !(n > 0))) faults.push(`${name}: a line without a point (${chart.dataset.points})`);
    if (span.length !== 4 || !(span[1] > span[0]) || !(span[3] > span[2])) faults.push(`${name}: an axis without a span (${chart.dataset.span})`);
  }
  const [wide, most] = [document.documentElement.scrollWidth, document.documentElement.clientWidth];
  if (wide > most) faults.push(`the page is ${wide} px wide in a window of ${most}`);
  return faults;
});

export async function tellsTheTruth(page, name) {
  assert.deepEqual(await faultsOf(page), [], name);
}
