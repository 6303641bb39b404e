// Reports in headless Chromium: samples of crates/results/examples/sample_reports.rs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPORTS, looksRight, open as openFile } from "./browser.mjs";

const open = (t, name, scheme) => openFile(t, `${name}.html`, scheme);
const summaries = (name) => JSON.parse(readFileSync(join(REPORTS, `${name}.json`), "utf8"));
const chosen = (page) => page.locator("#chosen h4").textContent();
// The topology in few pixels: not every browser, nor one browser at every time, smooths an edge in the same way.
const pixels = (page) => page.locator(".stage canvas").evaluate((c) => {
  const small = document.createElement("canvas");
  [small.width, small.height] = [48, 12];
  const g = small.getContext("2d");
  g.imageSmoothingQuality = "high";
  g.drawImage(c, 0, 0, 48, 12);
  return [...g.getImageData(0, 0, 48, 12).data];
});
const difference = (a, b) => a.reduce((sum, v, i) => sum + Math.abs(v - b[i]), 0) / a.length;

for (const name of ["small", "hosts-320", "large", "four", "empty"]) {
  for (const scheme of ["light", "dark"]) {
    test(`${name}, ${scheme}: drawn without an error, nothing wider than its card`, async (t) => {
      const page = await open(t, name, scheme);
      // A blank page of this size compresses to a few kilobytes.
      await looksRight(page, name, scheme, name === "empty" ? 20_000 : 100_000);
    });
  }
}

test("sections of a run and of a comparison", async (t) => {
  const titles = async (name) => (await open(t, name)).locator("nav a").allTextContents();
  assert.deepEqual(await titles("small"), ["Summary", "Flows", "Fabric", "Paths", "Over time", "Pauses", "Jobs", "Events", "Scenario"]);
  assert.deepEqual(await titles("four"),
    ["Summary", "Flows", "Side by side", "Fabric", "Single flows", "Paths", "Over time", "Pauses", "Jobs", "Events", "Scenario"]);
});

test("figures are those of the summary", async (t) => {
  for (const name of ["small", "four"]) {
    const page = await open(t, name);
    const all = summaries(name);
    // Of a single run the last column is of all flows.
    const figures = async (label) => {
      const row = page.locator("#summary table").first().locator("tr", { has: page.locator("th", { hasText: new RegExp(`^${label}$`) }) });
      const values = await row.locator("td[data-value]").evaluateAll((cells) => cells.map((c) => Number(c.dataset.value)));
      return all.length === 1 ? values.slice(-1) : values;
    };
    assert.deepEqual(await figures("FCT P99"), all.map((s) => s.overall.fct_ns.p99));
    assert.deepEqual(await figures("Slowdown mean"), all.map((s) => s.overall.slowdown.mean));
    assert.deepEqual(await figures("Goodput aggregate"), all.map((s) => s.overall.aggregate_goodput_bps));
    assert.deepEqual(await figures("Retransmissions"), all.map((s) => s.overall.retransmitted_packets));
    // What the curves are drawn from, to the five digits they have.
    const curves = await page.evaluate(() => JSON.parse(document.getElementById("picture-data").textContent).map((run) => {
      const cdf = run.cdfs.find((c) => c.measure === "slowdown" && c.group === "");
      return cdf.value[cdf.fraction.findIndex((f) => f >= 0.99)];
    }));
    all.forEach((s, i) => assert.ok(Math.abs(curves[i] / s.overall.slowdown.p99 - 1) < 1e-3, `${curves[i]} ${s.overall.slowdown.p99}`));
  }
});

test("names of the topology never lie over each other, whatever the zoom, and every switch has one", async (t) => {
  const page = await open(t, "hosts-320");
  const canvas = page.locator(".stage canvas");
  for (let zoom = 0; zoom < 5; zoom++) {
    const boxes = await page.evaluate(() => window.pathweave.labels());
    for (const [i, a] of boxes.entries()) {
      for (const b of boxes.slice(i + 1)) {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        assert.ok(apart, `${a.text} and ${b.text} at zoom ${zoom}`);
      }
    }
    if (zoom === 0) assert.equal(boxes.filter((b) => /^(tor|spine)/.test(b.text)).length, 30);
    if (zoom === 4) assert.ok(boxes.some((b) => /^h\d/.test(b.text)), "zoomed in, hosts have names");
    if (zoom === 0) await page.locator("#find").fill("h200");
    await canvas.press("+");
  }
});

test("the slider shows an instant, play goes on, and the metric changes what is shown", async (t) => {
  const page = await open(t, "small");
  const moment = () => page.locator(".moment").textContent();
  const whole = await pixels(page);
  assert.equal(await moment(), "the whole run");
  await page.locator("#instant").fill("60");
  assert.match(await moment(), /^at [\d.]+ [um]s$/);
  assert.ok(difference(await pixels(page), whole) > 1);
  await page.locator("#play").click();
  await page.waitForFunction((before) => document.querySelector(".moment").textContent !== before, await moment());
  await page.locator("#play").click();
  await page.getByRole("button", { name: "Whole run" }).click();
  assert.ok(difference(await pixels(page), whole) < 1);
  for (const metric of ["queue", "dropped", "paused"]) {
    await page.locator("#topology select").selectOption(metric);
    assert.ok(difference(await pixels(page), whole) > 1, metric);
  }
});

test("a link, a node and a flow can be chosen, with the pointer and without", async (t) => {
  const page = await open(t, "small");
  const find = async (name) => { await page.locator("#find").fill(name); await page.locator("#find").press("Enter"); await page.locator("#find").blur(); };
  await find("tor1");
  assert.equal(await chosen(page), "tor1 (switch, tier 1)");
  await page.locator("#chosen button.link").first().click();
  assert.match(await chosen(page), /tor1/);
  assert.ok(await page.locator("#chosen .chart").count() >= 2, "its utilisation and its queue over time");
  await find("h3");
  assert.equal(await chosen(page), "h3 (host)");
  assert.equal(await page.locator("#chosen .chart").count(), 1);
  await page.locator(".stage canvas").press("ArrowRight");
  assert.equal(await chosen(page), "h4 (host)");
  await page.locator(".stage canvas").press("Escape");
  assert.equal(await page.locator("#chosen h4").count(), 0);
  await page.locator("button.link", { hasText: /^flow 0$/ }).click();
  assert.equal(await chosen(page), "flow 0");
  assert.ok(await page.locator("#chosen .chart").count() >= 2, "its rate and its shares of paths");
  // Where the middle of a label's node is.
  await page.locator(".stage canvas").scrollIntoViewIfNeeded();
  const spine = await page.evaluate(() => window.pathweave.labels().find((b) => b.text === "spine2"));
  await page.locator(".stage canvas").click({ position: { x: spine.x + spine.width / 2, y: spine.y + spine.height + 8 } });
  assert.equal(await chosen(page), "spine2 (switch, tier 2)");
});

test("cells of a large fabric can be chosen, with the pointer and the keys", async (t) => {
  const page = await open(t, "large");
  const matrix = page.locator("canvas.matrix").first();
  await matrix.click({ position: { x: 2, y: 2 } });
  const first = await chosen(page);
  assert.match(first, /host links up, 1 of \d+, link 1$/);
  await matrix.press("ArrowDown");
  assert.notEqual(await chosen(page), first);
});

test("choices redraw: distribution, run, theme", async (t) => {
  const page = await open(t, "four");
  await page.getByLabel("Distribution of").selectOption("ooo_degree_packets");
  assert.ok(await page.locator("h3", { hasText: "Out-of-order degree" }).isVisible());
  await page.getByLabel("Run", { exact: true }).selectOption("2");
  assert.equal(await page.getByLabel("Run", { exact: true }).inputValue(), "2");
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.locator("#theme").click();
  await page.locator("#theme").click();
  assert.equal(await theme(), "dark");
});
