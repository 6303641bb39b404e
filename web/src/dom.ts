// Small helpers to make a page.

type Attributes = Record<string, string | number | boolean | undefined>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: (globalThis.Node | string)[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) e.setAttribute(key, "");
    else if (value !== undefined && value !== false) e.setAttribute(key, String(value));
  }
  e.append(...children);
  return e;
}

export function svg(tag: string, attributes: Attributes = {}): SVGElement {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, String(value));
  return e;
}

/** Data that the program put into the page. */
export const read = (id: string): unknown => JSON.parse(document.getElementById(id)!.textContent!);

/** A box with a title; wide ones take the whole row. */
export function card(parent: Element, title: string, note = "", wide = false): HTMLElement {
  const box = element("div", { class: wide ? "card wide" : "card" }, element("h3", {}, title));
  if (note) box.append(element("p", { class: "note" }, note));
  parent.append(box);
  return box;
}

export function choice(label: string, options: [string | number, string][], current: string | number, onChange: (value: string) => void): HTMLLabelElement {
  const select = element("select", { "aria-label": label });
  for (const [value, text] of options) {
    select.append(element("option", { value, selected: String(value) === String(current) }, text));
  }
  select.addEventListener("change", () => onChange(select.value));
  return element("label", { class: "choice" }, label, select);
}

export function button(text: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const b = element("button", { type: "button", ...attributes }, text);
  b.addEventListener("click", onClick);
  return b;
}

/** A table; each row may have something to do when chosen. */
export function table(head: string[], rows: { cells: (string | HTMLElement)[]; choose?: () => void }[]): HTMLElement {
  const body = element("tbody");
  for (const { cells, choose } of rows) {
    const row = element("tr");
    cells.forEach((cell, i) => {
      const inside = i === 0 && choose && typeof cell === "string" ? button(cell, choose, { class: "link" }) : cell;
      row.append(element(i === 0 ? "th" : "td", {}, inside));
    });
    body.append(row);
  }
  const header = element("tr", {}, ...head.map((h) => element("th", {}, h)));
  return element("div", { class: "tables" }, element("div", { class: "scroll", tabindex: 0 }, element("table", {}, element("thead", {}, header), body)));
}

const bubble = element("div", { id: "tip", role: "status", hidden: true });
document.body.append(bubble);

/** Shows `text` beside the pointer while it is over `target`. */
export function tip(target: Element, text: (event: PointerEvent) => string): void {
  target.addEventListener("pointermove", (event) => {
    const e = event as PointerEvent;
    const content = text(e);
    bubble.hidden = !content;
    if (!content) return;
    bubble.textContent = content;
    bubble.style.left = Math.max(4, Math.min(e.clientX + 12, innerWidth - bubble.offsetWidth - 8)) + "px";
    bubble.style.top = Math.max(4, Math.min(e.clientY + 12, innerHeight - bubble.offsetHeight - 8)) + "px";
  });
  target.addEventListener("pointerleave", () => { bubble.hidden = true; });
}

/** A canvas of `width` times `height` CSS pixels, sharp on any screen, and its context in those pixels. */
export function canvas(width: number, height: number, label: string): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const c = element("canvas", { role: "img", "aria-label": label });
  return [c, resize(c, width, height)];
}

export function resize(c: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
  c.width = Math.round(width * ratio);
  c.height = Math.round(height * ratio);
  c.style.width = width + "px";
  c.style.height = height + "px";
  const g = c.getContext("2d")!;
  g.scale(ratio, ratio);
  return g;
}

/** As much of a name as has room on a canvas. */
export function shortened(g: CanvasRenderingContext2D, name: string, room: number): string {
  let text = name;
  while (text.length > 2 && g.measureText(text).width > room) text = `${text.slice(0, -2)}\u2026`;
  return text;
}
