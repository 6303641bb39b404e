// The files that pictures of a page are saved as.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The content of a data URL of text. */
export const text = (href) => decodeURIComponent(href.slice(href.indexOf(",") + 1));

/** Visible pictures that nothing saves. */
export const withoutFiles = (page) => page.evaluate(() => [...document.querySelectorAll("main canvas, main svg, main .squares table, .panes svg, body > .scroll svg, body > svg")]
  .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 20 && !e.dataset.exported && !e.parentElement.closest("svg"))
  .filter((e) => {
    // A link beside it, or beside the box that it scrolls in.
    const places = [e.parentElement, e.nextElementSibling, e.closest(".scroll")?.nextElementSibling];
    return !places.some((place) => place?.matches(".export") || place?.querySelector(":scope > .export"));
  })
  .map((e) => e.getAttribute("aria-label") ?? e.outerHTML.slice(0, 80)));

/** Saves each picture, and returns the names and addresses of the files, by kind. */
export const saved = (page) => page.evaluate(async () => {
  const files = [];
  const { click } = HTMLAnchorElement.prototype;
  let landed;
  HTMLAnchorElement.prototype.click = function () { landed({ name: this.download, href: this.href }); };
  for (const place of document.querySelectorAll(".export")) {
    const own = {};
    for (const control of place.querySelectorAll("button, a")) {
      if (control.matches("a[href^='data:']")) {
        own[control.textContent] = { name: control.download, href: control.href };
        continue;
      }
      const file = new Promise((done) => { landed = done; });
      control.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
      own[control.textContent] = await file;
    }
    files.push(own);
  }
  HTMLAnchorElement.prototype.click = click;
  return files;
});

/** Each picture has three files of one name: an SVG that is drawn, a PNG that is not blank, numbers with headings. */
export async function filesAreRight(page, files) {
  const faults = await page.evaluate((pictures) => pictures.flatMap(({ name, content }) => {
    const root = new DOMParser().parseFromString(content, "image/svg+xml");
    const wrong = root.querySelector("parsererror") ? ["is no SVG"] : [];
    if (root.querySelectorAll("path, rect, circle, line").length < 3) wrong.push("is empty");
    if (/NaN|undefined|Infinity/.test(content)) wrong.push("has a number that is none");
    return wrong.map((what) => `${name} ${what}`);
  }), files.map((f) => ({ name: f.SVG.name, content: text(f.SVG.href) })));
  assert.deepEqual(faults, []);
  for (const { SVG, PNG, CSV } of files) {
    pngIsDrawn(Buffer.from(PNG.href.split(",")[1], "base64"), PNG.name);
    csvHasRows(text(CSV.href), CSV.name);
    assert.deepEqual([SVG, PNG, CSV].map((f) => f.name.replace(/\.\w+$/, "")), Array(3).fill(SVG.name.slice(0, -4)));
  }
}

function pngIsDrawn(png, name) {
  assert.equal(png.subarray(1, 4).toString(), "PNG", name);
  // A picture of one colour compresses to almost nothing.
  assert.ok(png.readUInt32BE(16) > 200 && png.length > 1_500, `${name}: ${png.length} bytes`);
}

function csvHasRows(content, name) {
  const lines = content.trimEnd().split("\n");
  assert.ok(lines.length >= 2 && lines[0].split(",").length >= 2, `${name}: ${lines[0]}`);
}

/** Files that a page links beside its pictures, of which each kind is right. Returns how many pictures have them. */
export async function linkedFilesAreRight(page, path) {
  const links = await page.locator("a").evaluateAll((all) => all.filter((a) => ["SVG", "PNG", "CSV"].includes(a.textContent) && !a.getAttribute("href").startsWith("data:") && a.getAttribute("href") !== "#")
    .map((a) => ({ kind: a.textContent, file: a.getAttribute("href") })));
  for (const { kind, file } of links) {
    const at = join(dirname(path), file);
    assert.ok(existsSync(at), file);
    if (kind === "PNG") pngIsDrawn(readFileSync(at), file);
    if (kind === "CSV") csvHasRows(readFileSync(at, "utf8"), file);
    if (kind === "SVG") assert.match(readFileSync(at, "utf8"), /^<svg[^>]*>[^]*<\/svg>\s*$/, file);
  }
  const count = (kind) => links.filter((link) => link.kind === kind).length;
  assert.deepEqual([count("PNG"), count("CSV")], [count("SVG"), count("SVG")], path);
  return count("SVG");
}
