// What every page must be for everybody: readable, no wider than the screen, and to be used without a mouse.
import assert from "node:assert/strict";

/** Texts whose contrast with what is behind them is below WCAG 2.2's level AA (success criteria 1.4.3 and 1.4.11). */
export const faint = (page) => page.evaluate(() => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  // Any CSS colour as red, green, blue and opacity, 0 to 1.
  const parse = (text) => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = text;
    probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data].map((v) => v / 255);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => v * a + under[i] * (1 - a));
  const background = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e), colour = parse(style.backgroundColor);
      if (style.backgroundImage !== "none") return undefined;
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reduceRight((under, layer) => over(layer, under), [1, 1, 1]);
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest("[disabled], script, style, noscript")) continue;
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (box.width < 2 || box.height < 2) continue;
    const drawn = element instanceof SVGElement;
    const behind = background(drawn ? element.closest("svg").parentElement : element);
    if (!behind) continue;
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
    const own = parse(drawn ? style.fill : style.color);
    const [a, b] = [light(over([own[0], own[1], own[2], own[3] * opacity], behind)), light(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    // A sign beside a name is a graphical object (1.4.11).
    const sign = element.getAttribute("aria-hidden") === "true";
    if (ratio < (large || sign ? 3 : 4.5)) found.set(`${element.tagName.toLowerCase()}.${element.className?.baseVal ?? element.className} ${style.color}`, `${ratio.toFixed(2)}: "${text.slice(0, 40)}"`);
  }
  return [...found].map(([where, what]) => `${where}: ${what}`);
});

/** What the page's width is beyond the screen's, and what makes it so. */
export const sideways = (page) => page.evaluate(() => {
  const most = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= most) return [];
  return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1)
    .map((e) => `${e.tagName.toLowerCase()}#${e.id}.${e.className?.baseVal ?? e.className} ends at ${Math.round(e.getBoundingClientRect().right)} of ${most}`).slice(0, 8);
});

/** Goes through the page with the tab key and says what cannot be reached, has no name, or does not show that it has the focus. */
export async function byKeyboard(page) {
  const wanted = await page.evaluate(() => {
    const can = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
      .filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({ visibilityProperty: true }));
    can.forEach((e, i) => { e.dataset.keyboard = String(i); });
    document.activeElement?.blur();
    return can.length;
  });
  const reached = new Set(), faults = [];
  for (let step = 0; step < wanted + 5; step++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement;
      if (!e || e === document.body) return null;
      const style = getComputedStyle(e);
      const name = e.getAttribute("aria-label") ?? e.getAttribute("title") ?? e.labels?.[0]?.textContent ?? e.textContent ?? "";
      return { number: e.dataset.keyboard, what: `${e.tagName.toLowerCase()}#${e.id}.${e.className}`, named: name.trim() !== "" || e.placeholder,
        shown: style.outlineStyle !== "none" || style.boxShadow !== "none" };
    });
    if (!at?.number) continue;
    if (!reached.has(at.number) && !at.named) faults.push(`${at.what} has no name`);
    if (!reached.has(at.number) && !at.shown) faults.push(`${at.what} does not show the focus`);
    reached.add(at.number);
  }
  if (reached.size < wanted) faults.push(`${reached.size} of ${wanted} reached`);
  return faults;
}

/** All of it, on a page that is open. */
export async function isForEverybody(page, name) {
  assert.deepEqual(await faint(page), [], `${name}: contrast`);
  assert.deepEqual(await sideways(page), [], `${name}: wider than the screen`);
}
