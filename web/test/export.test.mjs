// Every picture of a report can be saved as SVG, PNG and CSV, with what it shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPORTS, open as openFile } from "./browser.mjs";

const open = (t, name) => openFile(t, `${name}.html`);

// Clicks what saves a picture, and returns the content of the files.
const saved = (page) => page.evaluate(async () => {
  const files = [];
  const { click } = HTMLAnchorElement.prototype;
  let landed;
  HTMLAnchorElement.prototype.click = function () { landed({ name: this.download, href: this.href }); };
  for (const place of document.querySelectorAll(".export")) {
    const own = {};
    for (const button of place.querySelectorAll("button")) {
      const file = new Promise((done) => { landed = done; });
      button.click();
      own[button.textContent] = await file;
    }
    files.push(own);
  }
  HTMLAnchorElement.prototype.click = click;
  return files;
});
const text = (href) => decodeURIComponent(href.slice(href.indexOf(",") + 1));

for (const name of ["small", "hosts-320", "large", "four", "servers-8", "servers-1024"]) {
  test(`${name}: every picture is saved as SVG, PNG and CSV`, async (t) => {
    const page = await open(t, name);
    const without = await page.evaluate(() => [...document.querySelectorAll("main canvas, main svg, .panes svg")]
      .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 20 && !e.dataset.exported).map((e) => e.getAttribute("aria-label") ?? e.outerHTML.slice(0, 80)));
    assert.deepEqual(without, []);
    const files = await saved(page);
    assert.ok(files.length >= 5, `${files.length} pictures`);
    const faults = await page.evaluate((pictures) => pictures.flatMap(({ name, content }) => {
      const root = new DOMParser().parseFromString(content, "image/svg+xml");
      const wrong = root.querySelector("parsererror") ? ["is no SVG"] : [];
      if (root.querySelectorAll("path, rect, circle, line").length < 3) wrong.push("is empty");
      if (/NaN|undefined|Infinity/.test(content)) wrong.push("has a number that is none");
      return wrong.map((what) => `${name} ${what}`);
    }), files.map((f) => ({ name: f.SVG.name, content: text(f.SVG.href) })));
    assert.deepEqual(faults, []);
    for (const { SVG, PNG, CSV } of files) {
      const png = Buffer.from(PNG.href.split(",")[1], "base64");
      assert.equal(png.subarray(1, 4).toString(), "PNG", PNG.name);
      // A picture of one colour compresses to almost nothing.
      assert.ok(png.readUInt32BE(16) > 200 && png.length > 1_500, `${PNG.name}: ${png.length} bytes`);
      const lines = text(CSV.href).trimEnd().split("\n");
      assert.ok(lines.length >= 2 && lines[0].split(",").length >= 2, `${CSV.name}: ${lines[0]}`);
      assert.deepEqual([SVG, PNG, CSV].map((f) => f.name.replace(/\.\w+$/, "")), Array(3).fill(SVG.name.slice(0, -4)));
    }
  });
}

test("numbers in CSV files are those of the summary, with units in the headings", async (t) => {
  const page = await open(t, "four");
  const files = (await saved(page)).map((f) => ({ name: f.CSV.name, lines: text(f.CSV.href).trimEnd().split("\n") }));
  const all = JSON.parse(readFileSync(join(REPORTS, "four.json"), "utf8"));
  const sizes = files.find((f) => f.name === "slowdown-by-size.csv");
  // A column for P99 and one for P50 of each run.
  assert.equal(sizes.lines[0].split(",").length, 1 + 2 * all.length);
  const last = sizes.lines.at(-1).split(","), bin = all[0].overall.by_size.at(-1);
  assert.equal(Number(last[1]), bin.slowdown.p99);
  assert.equal(Number(last[2]), bin.slowdown.p50);
  // Texts with a halo stay in front of it.
  const halo = (await saved(page)).map((f) => text(f.SVG.href)).filter((svg) => svg.includes("Flows that have arrived"));
  assert.match(halo[0], /paint-order: ?stroke/);
  const flows = files.find((f) => f.name === "single-flows.csv");
  assert.equal(flows.lines[0], "flow,group,size (bytes),completion time (ns),slowdown");
  assert.ok(files.some((f) => f.lines[0].startsWith("Time (ns),")));
});

test("a scheme has one colour in bars, curves, charts and their legends", async (t) => {
  const page = await open(t, "four");
  const files = await saved(page);
  const colours = await page.evaluate(() => {
    const hex = (css) => { const g = document.createElement("canvas").getContext("2d"); g.fillStyle = css; return g.fillStyle; };
    const bars = [...document.querySelectorAll(".bars tr")].map((row) => [row.querySelector("th").textContent, hex(getComputedStyle(row.querySelector("i")).backgroundColor)]);
    return { bars: Object.fromEntries(bars), hex: null };
  });
  assert.ok(Object.keys(colours.bars).length === 4 && new Set(Object.values(colours.bars)).size === 4);
  const legends = await page.evaluate((contents) => {
    const hex = (css) => { const g = document.createElement("canvas").getContext("2d"); g.fillStyle = css; return g.fillStyle; };
    return contents.map((content) => {
      const root = new DOMParser().parseFromString(content, "image/svg+xml").documentElement;
      const own = [...root.children], rects = own.filter((e) => e.tagName === "rect").slice(1), texts = own.filter((e) => e.tagName === "text").slice(1);
      return texts.map((e, i) => [e.textContent, hex(rects[i].getAttribute("fill"))]);
    });
  }, files.map((f) => text(f.SVG.href)));
  let compared = 0;
  for (const [label, colour] of legends.flat()) {
    // "ecmp", "ecmp P99" or "ecmp: mean of all links"
    const scheme = Object.keys(colours.bars).find((name) => label === name || label.startsWith(`${name} P`) || label.startsWith(`${name}: `));
    if (!scheme) continue;
    assert.equal(colour, colours.bars[scheme], label);
    compared++;
  }
  assert.ok(compared >= 12, `${compared} entries of legends`);
});
