// Reports of sweeps in headless Chromium: samples of crates/study/examples/sample_sweeps.rs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPORTS, looksRight, open as openFile } from "./browser.mjs";

const open = (t, name, scheme) => openFile(t, join(name, "report.html"), scheme);
const summary = (name) => JSON.parse(readFileSync(join(REPORTS, name, "summary.json"), "utf8"));
const texts = (page, box) => page.locator(`${box} .squares tbody tr`).evaluateAll((rows) =>
  rows.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
// As the page shows a time, worked out from the summary.
const time = (ns) => {
  const [scale, unit] = ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${Number((ns / scale).toPrecision(4))} ${unit}`;
};

for (const name of ["sweep-grid", "sweep-cube", "sweep-named"]) {
  for (const scheme of ["light", "dark"]) {
    test(`${name}, ${scheme}: drawn without an error, nothing wider than its card`, async (t) => {
      await looksRight(await open(t, name, scheme), name, scheme, 30_000);
    });
  }
}

test("sections, and what failed", async (t) => {
  const titles = async (name) => (await open(t, name)).locator("nav a").allTextContents();
  assert.deepEqual(await titles("sweep-grid"), ["Heat map", "Lines", "Best", "Changes", "Cells"]);
  assert.deepEqual(await titles("sweep-named"), ["Failed", "Heat map", "Lines", "Best", "Changes", "Cells"]);
});

test("the first screen says who is best how often", async (t) => {
  const page = await open(t, "sweep-grid");
  const { axes, best } = summary("sweep-grid");
  const verdict = await page.locator(".verdict").textContent();
  assert.match(verdict, /^FCT max, best of 12 settings: .+\.$/);
  const alone = (name) => best.filter((b) => b.metric === "fct_max_ns" && axes[0].values[b.value] === name && !b.tied.length).length;
  for (const name of axes[0].values) assert.equal(verdict.match(new RegExp(`${name} in (\\d+)`))?.[1] ?? "0", String(alone(name)), name);
});

test("the heat map has the means of the summary, of the other axes' chosen place", async (t) => {
  const page = await open(t, "sweep-grid");
  const { axes, cells } = summary("sweep-grid");
  const mean = (at) => cells.find((c) => c.at.every((v, a) => v === at[a])).metrics.fct_max_ns.mean;
  // It opens with the axes that are not compared, at the first scheme.
  const expected = (scheme) => axes[2].values.map((_, spines) => axes[1].values.map((_, size) => time(mean([scheme, size, spines]))));
  assert.deepEqual(await texts(page, "#heat"), expected(0));
  await page.getByLabel("scheme", { exact: true }).selectOption("2");
  assert.deepEqual(await texts(page, "#heat"), expected(2));
  await page.getByLabel("Figure").selectOption("slowdown_p99");
  assert.match(await page.locator("#heat h3").textContent(), /^Slowdown P99/);
});

test("the best is whom the summary names, pale where seeds do not decide", async (t) => {
  const page = await open(t, "sweep-grid");
  const { axes, best } = summary("sweep-grid");
  const expected = axes[2].values.map((_, spines) => axes[1].values.map((_, size) => {
    const b = best.find((b) => b.metric === "fct_max_ns" && b.at[1] === size && b.at[2] === spines);
    return axes[0].values[b.value] + (b.tied.length ? " ?" : "");
  }));
  assert.deepEqual(await texts(page, "#best"), expected);
  // By another axis the means decide: more spines are never worse for the longest flow of all.
  await page.getByLabel("Compare").selectOption("2");
  assert.match(await page.locator("#best").textContent(), /By means alone/);
});

test("changes are those of the summary, seed by seed, pale where they may be none", async (t) => {
  const page = await open(t, "sweep-grid");
  const { axes, cells, seeds } = summary("sweep-grid");
  const of = (scheme, size) => cells.find((c) => c.at[0] === scheme && c.at[1] === size && c.at[2] === 0);
  const words = (ratio) => `${ratio < 0 ? "\u2212" : "+"}${Math.abs(100 * ratio).toFixed(1)} %`;
  const expected = axes[0].values.map((_, scheme) => axes[1].values.map((_, size) => (scheme ? words(of(scheme, size).change.mean) : "0 %")));
  assert.deepEqual(await texts(page, "#changes"), expected);
  // Without the summary's help: the mean of the differences over the mean of the first.
  const ratio = of(2, 3).metrics.fct_max_ns.mean / of(0, 3).metrics.fct_max_ns.mean - 1;
  assert.equal(expected[2][3], words(ratio));
  assert.equal(of(2, 3).change.n, seeds.length);
  const column = await page.locator("#cells .card:last-child thead th").nth(1).textContent();
  assert.equal(column, `from ${axes[0].values[0]}`);
  // Of another figure there are none.
  await page.getByLabel("Figure").selectOption("slowdown_p99");
  assert.equal(await page.locator("#changes").count(), 0);
});

test("a place can be chosen with the pointer and with keys, and tells its figures", async (t) => {
  const page = await open(t, "sweep-grid");
  const { cells, metrics } = summary("sweep-grid");
  const title = () => page.locator("#chosen h4").textContent();
  await page.locator("#heat td").nth(1).click();
  assert.equal(await title(), "workload[0].size 64KB, topology.spines 1");
  const of = cells.find((c) => c.at[0] === 0 && c.at[1] === 1 && c.at[2] === 0);
  const row = page.locator("#chosen tr", { has: page.locator("th", { hasText: new RegExp(`^${metrics.find((m) => m.name === "fct_max_ns").label}$`) }) });
  const f = of.metrics.fct_max_ns;
  assert.deepEqual(await row.locator("td").allTextContents(), [time(f.mean), time(f.ci95), time(f.min), time(f.max), "3"]);
  await page.locator("#heat td").nth(1).press("ArrowDown");
  await page.keyboard.press("Enter");
  assert.equal(await title(), "workload[0].size 64KB, topology.spines 2");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TD", "who chose with keys stays there");
  // Of several cells, a list of them.
  await page.getByLabel("scheme", { exact: true }).selectOption("");
  await page.locator("#heat td").first().click();
  assert.equal(await page.locator("#chosen tbody tr").count(), 3);
  await page.locator("#chosen button.link").first().click();
  assert.match(await title(), /^scheme=.*size=16KB, topology.spines=1$/);
});

test("each cell leads to the reports of its runs, where there are some", async (t) => {
  const page = await open(t, "sweep-named");
  const { cells } = summary("sweep-named");
  const links = page.locator("#cells .card:last-child .reports a");
  assert.deepEqual((await links.evaluateAll((all) => all.map((a) => a.getAttribute("href")))).sort(),
    cells.flatMap((c) => (c.finished_seeds.length ? c.runs : [])).map((key) => `runs/run=${key}/report.html`).sort());
  await links.first().click();
  await page.waitForSelector("html[data-drawn]");
  assert.ok(await page.locator("#topology").count());
  // A sweep that keeps none says how to get one.
  const grid = await open(t, "sweep-grid");
  assert.equal(await grid.locator("#cells .reports a").count(), 0);
  await grid.locator("#heat td").first().click();
  assert.match(await grid.locator("#chosen").textContent(), /pathweave view makes one/);
  assert.equal(await grid.locator("#chosen .reports > span").count(), 3);
});

test("lines have a band of the confidence interval", async (t) => {
  const page = await open(t, "sweep-grid");
  const lines = page.locator("#lines");
  assert.deepEqual(await lines.locator(".u-legend th .u-label").allTextContents(), ["workload[0].size", "ecmp", "qp16", "rps"]);
  const over = lines.locator(".u-over");
  const box = await over.boundingBox();
  await over.hover({ position: { x: box.width - 2, y: box.height / 2 } });
  assert.match(await lines.locator(".u-legend .u-value").nth(1).textContent(), /^[\d.]+ [mu]s \u00b1 [\d.]+ [mun]+s$/);
});

test("points of a hypercube are put into bins, and every cell is in the table", async (t) => {
  const page = await open(t, "sweep-cube");
  assert.equal(await page.locator("#heat thead th").count(), 1 + 8);
  assert.equal(await page.locator("#cells .card:last-child tbody tr").count(), 40);
});

test("what cannot run says why, and names are only names", async (t) => {
  const page = await open(t, "sweep-named");
  await page.locator("#cells button.link", { hasText: "quoted" }).last().click();
  assert.match(await page.locator("#chosen h4").textContent(), /^long & "quoted", topology.hosts_per_leaf=1$/);
  assert.match(await page.locator("#chosen pre").textContent(), /flows/);
  assert.equal(await page.locator("#heat tbody th").first().textContent(), "<plain>");
});
