// Every picture of a report can be saved as SVG, PNG and CSV, with what it shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPORTS, open as openFile } from "./browser.mjs";
import { filesAreRight, saved, text, withoutFiles } from "./saved.mjs";

const open = (t, name) => openFile(t, `${name}.html`);

for (const name of ["small", "hosts-320", "large", "four", "servers-8", "servers-1024"]) {
  test(`${name}: every picture is saved as SVG, PNG and CSV`, async (t) => {
    const page = await open(t, name);
    assert.deepEqual(await withoutFiles(page), []);
    const files = await saved(page);
    assert.ok(files.length >= 5, `${files.length} pictures`);
    await filesAreRight(page, files);
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
