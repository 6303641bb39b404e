// Reports in headless Chromium: samples of crates/report/examples/sample_reports.rs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REPORTS, looksRight, open as openFile, openNarrow } from "./browser.mjs";

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

const SERVERS = ["servers-8", "servers-32", "servers-1024", "servers-131072"];

for (const name of ["small", "hosts-320", "large", "four", "empty", ...SERVERS]) {
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
      const row = page.locator("#summary table tr", { has: page.locator("th", { hasText: new RegExp(`^${label}$`) }) }).first();
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
  assert.equal(await chosen(page), "tor1 (switch, tier 0)");
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
  assert.equal(await chosen(page), "spine2 (switch, tier 1)");
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

test("a large fabric is drawn in blocks that can be chosen, and says that it is aggregated", async (t) => {
  const page = await open(t, "large");
  assert.match(await page.locator("#topology .note").first().textContent(), /^Aggregated: 1,104 nodes in 48 blocks, 4,096 links in 544 lines\./);
  const find = async (name) => { await page.locator("#find").fill(name); await page.locator("#find").press("Enter"); await page.locator("#find").blur(); };
  await find("tor0 to tor3 > spine0");
  assert.equal(await chosen(page), "tor0 to tor3 > spine0");
  const facts = await page.locator("#chosen dl").innerText();
  const [mean, most] = ["busy, mean", "busy, the busiest"].map((what) => parseFloat(new RegExp(`${what}\\s+([\\d.]+) %`).exec(facts)[1]));
  assert.match(facts, /links\s+4\n/);
  assert.ok(mean < most, facts);
  await find("tor0 to tor3");
  assert.equal(await chosen(page), "tor0 to tor3 (4 switches, tier 0)");
  // By the busiest link, lines are as strong or stronger, and it has a picture over time, too.
  const before = await pixels(page);
  await page.getByLabel("Colour by").selectOption("busiest");
  assert.ok(difference(await pixels(page), before) > 1);
  assert.match(await page.locator("#over-time .card .note").first().textContent(), /busiest link, .* lines between blocks \(aggregated\)/);
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

test("the first screen names the scenario, says what came out, and has three pictures", async (t) => {
  for (const [name, heading, verdict] of [
    ["small", /^small completed/, /^1,998 of 2,000 flows finished\. Their slowdown, .* has median [\d.]+ and P99 [\d.]+\. What limited the run: 2 flows did not finish: .*\. Faults: 1 began, the first at 1\.000 ms: on tor1 to spine2\.$/],
    ["four", /^web & search: 4 runs side by side$/, /^no scheme finishes its jobs, so none has a job time\.$/],
  ]) {
    const page = await open(t, name);
    assert.match((await page.locator("h1").innerText()).trim(), heading);
    assert.match(await page.title(), name === "four" ? /^web & search: ecmp \/ rps \/ qp16 \/ udmp - pathweave$/ : /^small - pathweave$/);
    assert.match(await page.locator("p.verdict").innerText(), verdict);
    const bottoms = await page.locator("#first .panes > *").evaluateAll((panes) => panes.map((p) => p.getBoundingClientRect().bottom));
    assert.equal(bottoms.length, 3);
    bottoms.forEach((bottom) => assert.ok(bottom < 900, `${name}: ${bottoms}`));
    assert.equal(await page.locator("#first svg, #first canvas").count(), name === "small" ? 3 : 2);
  }
});

test("ratios say which run is better", async (t) => {
  const page = await open(t, "four");
  const all = summaries("four");
  const row = page.locator("#summary table tr", { has: page.locator("th", { hasText: /^FCT P99$/ }) }).first();
  const moods = await row.locator("td.ratio").evaluateAll((cells) => cells.map((c) => c.title));
  const p99 = all.map((s) => s.overall.fct_ns.p99);
  assert.deepEqual(moods, p99.slice(1).map((v) => (v < p99[0] ? "better" : "worse")));
  assert.equal(await page.locator("#summary tr", { hasText: "Simulated time" }).locator("td.good, td.bad").count(), 0);
});

// The address as soon as it holds `part`.
const address = (page, part) => page.waitForFunction((p) => location.hash.includes(p), part).then(() => page.evaluate(() => location.hash));

test("what is chosen is in the address, and the address brings it back", async (t) => {
  const page = await open(t, "four");
  await page.getByLabel("Run", { exact: true }).selectOption("2");
  await page.getByLabel("Colour by").selectOption("queue");
  await page.locator("#instant").fill("40");
  await page.locator("#find").fill("tor1");
  await page.locator("#find").press("Enter");
  const hash = await address(page, "chosen=node");
  for (const part of ["run=2", "colour=queue", "at=40"]) assert.ok(hash.includes(part), hash);
  await page.locator("nav a", { hasText: "Over time" }).click();
  assert.match(await address(page, "#over-time?"), /run=2/);
  await page.reload();
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await page.getByLabel("Run", { exact: true }).inputValue(), "2");
  assert.equal(await page.getByLabel("Colour by").inputValue(), "queue");
  assert.equal(await page.locator("#instant").inputValue(), "40");
  assert.equal(await chosen(page), "tor1 (switch, tier 0)");
  assert.ok(await page.evaluate(() => document.getElementById("over-time").getBoundingClientRect().top < 200), "it is at its section");
  // What a page does not have is not asked of it.
  await page.evaluate(() => { location.hash = "#?run=99&colour=no&at=-7&chosen=flow:x&time=9-1"; });
  await page.waitForFunction(() => document.querySelector("#instant").value === "-1");
  assert.equal(await page.locator("#chosen h4").count(), 0);
});

test("charts over time share cursor and zoom, and mark faults", async (t) => {
  const page = await open(t, "small");
  const charts = page.locator("#over-time .chart");
  const [one, other] = [charts.nth(0), charts.nth(1)];
  await one.scrollIntoViewIfNeeded();
  const box = await one.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  const time = (chart) => chart.locator(".u-legend .u-value").first().textContent();
  assert.match(await time(one), /ms$/);
  assert.equal(await time(other), await time(one));
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
  await page.mouse.up();
  const part = /time=(\d+)-(\d+)/.exec(await address(page, "time=")).slice(1).map(Number);
  assert.ok(part[0] > 1e6 && part[1] < 2.8e6, String(part));
  // The other's first instant is now in the part.
  const second = await other.locator(".u-over").boundingBox();
  await page.mouse.move(second.x + 2, second.y + 20);
  const [value, unit] = (await time(other)).split(" ");
  const ns = Number(value) * { us: 1e3, ms: 1e6 }[unit];
  assert.ok(ns > part[0] - 1e5 && ns < part[0] + 2e5, `${ns} of ${part}`);
  await one.locator(".u-over").dblclick();
  await page.waitForFunction(() => !location.hash.includes("time="));
  assert.match(await page.locator("#over-time .note").first().innerText(), /1 ms fault on .*; 2.5 ms repair of/);
});

test("the timeline has a row a host, and a bar tells what it is and leads to its flows", async (t) => {
  const page = await open(t, "small");
  const canvas = page.locator("#timeline canvas");
  const data = await page.evaluate(() => JSON.parse(document.getElementById("picture-data").textContent)[0].hosts);
  assert.equal(data.host.length, data.of);
  await canvas.scrollIntoViewIfNeeded();
  await canvas.focus();
  const title = () => page.locator("#activity h4").textContent();
  await page.keyboard.press("ArrowRight");
  assert.equal(await title(), "forward");
  await page.keyboard.press("ArrowRight");
  assert.equal(await title(), "backward, layer 1");
  await page.keyboard.press("ArrowRight");
  assert.equal(await title(), "all-reduce, bucket 0");
  assert.match(await page.locator("#activity dl").innerText(), /collective[^]*ranks\s+\d+[^]*1 MB/);
  assert.match(await page.locator("#activity .note").textContent(), /of its \d+ messages are in this page/);
  const hash = await address(page, "activity=2");
  // Its first flow, and the same with the pointer.
  await page.locator("#activity button.link").first().click();
  assert.match(await chosen(page), /^flow \d+$/);
  await page.reload();
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await title(), "all-reduce, bucket 0", hash);
  await canvas.press("Escape");
  assert.equal(await page.locator("#activity h4").count(), 0);
  // The first bar of the first host begins at 0 and takes a 32nd of 4 ms, beyond the names.
  await canvas.click({ position: { x: 114, y: 28 } });
  assert.equal(await title(), "forward");
});

test("the timeline and the curves share the zoom", async (t) => {
  const page = await open(t, "small");
  const canvas = page.locator("#timeline canvas");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 200, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + 400, box.y + 60, { steps: 4 });
  await page.mouse.up();
  const part = /time=(\d+)-(\d+)/.exec(await address(page, "time=")).slice(1).map(Number);
  const over = page.locator("#over-time .chart .u-over").first();
  await over.scrollIntoViewIfNeeded();
  const curve = await over.boundingBox();
  await page.mouse.move(curve.x + curve.width - 2, curve.y + 20);
  const [value, unit] = (await page.locator("#over-time .chart .u-value").first().textContent()).split(" ");
  const ns = Number(value) * { us: 1e3, ms: 1e6 }[unit];
  assert.ok(Math.abs(ns - part[1]) < 0.05 * (part[1] - part[0]), `${ns} of ${part}`);
});

test("the heat map of links shares cursor and zoom with the curves, and its choices are in the address", async (t) => {
  const page = await open(t, "small");
  const canvas = page.locator("#over-time .strip canvas");
  await canvas.scrollIntoViewIfNeeded();
  assert.ok(Number(await canvas.getAttribute("data-named")) > 5, "rows have names");
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  const pointer = page.locator("#over-time .pointer");
  assert.ok(Math.abs((await pointer.boundingBox()).x - (box.x + box.width / 2)) < 2);
  const value = () => page.locator("#over-time .chart .u-value").first().textContent();
  const before = await value();
  assert.match(before, /^[\d.]+ [mu]s$/);
  // The other way round: over a curve, the heat map and the timeline have the line.
  const over = page.locator("#over-time .chart .u-over").first();
  await over.hover({ position: { x: 90, y: 30 } });
  assert.ok(await page.locator("#timeline .pointer").isVisible() && await pointer.isVisible());
  await canvas.scrollIntoViewIfNeeded();
  const now = await canvas.boundingBox();
  await page.mouse.move(now.x + 300, now.y + 40);
  await page.mouse.down();
  await page.mouse.move(now.x + 500, now.y + 40, { steps: 4 });
  await page.mouse.up();
  const part = /time=(\d+)-(\d+)/.exec(await address(page, "time=")).slice(1).map(Number);
  assert.ok(part[1] > part[0]);
  const x = await over.evaluate((e) => e.getBoundingClientRect().width);
  await over.hover({ position: { x: x - 2, y: 30 } });
  const [number, unit] = (await value()).split(" ");
  assert.ok(Math.abs(Number(number) * { us: 1e3, ms: 1e6 }[unit] - part[1]) < 0.05 * (part[1] - part[0]));
  await canvas.dblclick({ position: { x: 300, y: 30 } });
  await page.waitForFunction(() => !location.hash.includes("time="));
});

test("iterations, their critical path, and collectives are drawn from what the run recorded", async (t) => {
  const page = await open(t, "small");
  const bars = page.locator("#iterations svg rect");
  const summary = await page.evaluate(() => JSON.parse(document.getElementById("summaries").textContent)[0]);
  // A bar for computation, for exposed all-reduces and for idle time of each.
  const parts = summary.iterations.map((i) => 1 + Object.keys(i.exposed_ns).length + (i.idle_ns > 0 ? 1 : 0));
  assert.equal(await bars.count(), parts.reduce((a, b) => a + b));
  await bars.first().hover();
  assert.match(await page.locator("#tip").textContent(), /allreduce 0.*computation: /s);
  assert.equal(await page.locator("#critical-words").textContent(), `${summary.critical_paths[0].words}.`);
  assert.equal(await page.locator("#critical svg rect").count(), 4);
  // An activity has one colour in the chart of iterations, on the critical path and in the timeline.
  const colours = await page.evaluate(() => ["iterations", "critical", "timeline"].map((id) => Object.fromEntries(
    [...document.querySelectorAll(`#${id} .keys span`)].map((key) => [key.textContent.replace("exposed ", ""), key.querySelector("i").style.background]))));
  const names = new Set(colours.flatMap((of) => Object.keys(of)));
  for (const name of names) assert.equal(new Set(colours.map((of) => of[name]).filter(Boolean)).size, 1, `${name}: ${JSON.stringify(colours)}`);
  assert.ok(colours.every((of) => of["DP all-reduce"]), JSON.stringify(colours));
  await page.locator("#critical svg rect.choosable").click();
  assert.match(await chosen(page), /^flow 3$/);
  assert.match(await page.locator("#jobs").innerText(), /Bus bandwidth of collectives/);
  assert.match(await page.locator("#jobs").innerText(), /DP all-reduce, bucket \d/);
});

test("a large run shows some hosts, and says which", async (t) => {
  const page = await open(t, "large");
  assert.match(await page.locator("#timeline .note").first().textContent(), /64 of 1,024 hosts, evenly spaced/);
});

test("on a phone nothing makes the page scroll sideways", async (t) => {
  for (const name of ["small", "large", "four"]) {
    const page = await openNarrow(t, `${name}.html`);
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide[0] <= wide[1], `${name}: ${wide}`);
  }
});

test("the topology shows the difference of two runs, and the address has it", async (t) => {
  const page = await open(t, "four");
  const alone = await pixels(page);
  await page.getByLabel("Difference to").selectOption("3");
  assert.ok(difference(await pixels(page), alone) > 1);
  assert.match(await page.locator("#topology .scale").textContent(), /^-[\d.]+ % busy\+[\d.]+ %, ecmp compared with udmp$/);
  assert.match(await address(page, "against=3"), /against=3/);
  await page.reload();
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await page.getByLabel("Difference to").inputValue(), "3");
  // Of largest queues, too; and back to the run alone.
  await page.getByLabel("Colour by").selectOption("queue");
  assert.match(await page.locator("#topology .scale").textContent(), /compared with udmp|no difference/);
  await page.getByLabel("Colour by").selectOption("utilisation");
  await page.getByLabel("Difference to").selectOption("-1");
  assert.ok(difference(await pixels(page), alone) < 1);
});

test("any flow can be asked for: the page has it, or says where it is", async (t) => {
  const page = await open(t, "large");
  const flows = await page.evaluate(() => JSON.parse(document.getElementById("picture-data").textContent)[0].flows);
  const ask = async (number) => { await page.locator("#flow").fill(String(number)); await page.locator("#flow").press("Enter"); };
  await ask(flows.flow[17]);
  assert.equal(await chosen(page), `flow ${flows.flow[17]}`);
  const missing = [...Array(flows.of).keys()].find((flow) => !flows.flow.includes(flow));
  await ask(missing);
  assert.match(await page.locator("#flow-answer").textContent(), new RegExp(`^Flow ${missing} is not in this page.*flow = ${missing}\\. .*--set 'observe\\.follow=\\[${missing}\\]'`));
  await ask(flows.of);
  assert.match(await page.locator("#flow-answer").textContent(), /There is no flow/);
});

// The colour of the left half (up) of a cell of the grid of servers, as one number for how far it is from the page's emptiest.
const cellColour = (page, column, lane) => page.locator("#servers").evaluate((c, [column, lane]) => {
  const data = JSON.parse(document.getElementById("picture-data").textContent)[0].fabric.servers;
  const { cells } = window.pathweave, at = cells(column, lane), ratio = c.width / c.clientWidth;
  const [r, g, b] = c.getContext("2d").getImageData(Math.round((at.x + 1) * ratio), Math.round((at.y + 2) * ratio), 1, 1).data;
  return { name: data.lanes[lane], colour: [r, g, b].join(",") };
}, [column, lane]);

test("servers: lanes of rails and planes have the colours of their links, at every size", async (t) => {
  for (const [name, lanes, columns] of [["servers-8", 8, 1], ["servers-32", 16, 4], ["servers-1024", 8, 128], ["servers-131072", 16, null]]) {
    const page = await open(t, name);
    const servers = await page.evaluate(() => JSON.parse(document.getElementById("picture-data").textContent)[0].fabric.servers);
    assert.equal(servers.lanes.length, lanes, name);
    if (columns) assert.equal(servers.columns, columns, name);
    assert.ok((await page.locator("#servers").getAttribute("aria-label")).includes(servers.lanes.join("; ")));
    // Rail 3 is the busiest by far; the first plane is busier than the second.
    const [two, three] = [await cellColour(page, 0, 2), await cellColour(page, 0, 3)];
    assert.notEqual(two.colour, three.colour, name);
    if (lanes === 16) assert.notEqual((await cellColour(page, 0, 10)).colour, two.colour, "the planes differ");
  }
});

test("servers: one is drawn with leaves, NICs, GPUs and NVLink, and can be folded and chosen", async (t) => {
  const page = await open(t, "servers-1024");
  const one = page.locator("#one-server");
  assert.match(await one.locator("summary").textContent(), /^srv0: 8 GPUs, 8 NICs; a scale-up network of 2\.95\d* Tbps a GPU joins 8 GPUs$/);
  assert.deepEqual(await one.locator("text.strong").allTextContents(),
    [...Array.from({ length: 8 }, (_, i) => `leaf${i}`), ...Array.from({ length: 8 }, (_, i) => `gpu${i}`)]);
  assert.deepEqual([await one.locator("rect.nic").count(), await one.locator("line.lane").count(), await one.locator("rect.scale-up").count()], [8, 16, 1]);
  const scaleUp = await page.evaluate(() => JSON.parse(document.getElementById("picture-data").textContent)[0].fabric.servers.scale_up[0]);
  assert.ok((await one.locator("text").last().textContent()).endsWith(`${(100 * scaleUp).toPrecision(3).replace(/\.?0+$/, "")} % busy`), await one.locator("text").last().textContent());
  await one.locator("summary").click();
  assert.equal(await one.locator("rect.gpu").first().isVisible(), false);
  await one.locator("summary").click();
  await page.locator("#server").fill("77");
  await page.locator("#server").blur();
  assert.equal(await chosen(page), "srv77 (GPUs: 8, NICs: 8)");
  assert.equal(await page.locator("#chosen tbody tr").nth(3).locator("td").first().textContent(), "leaf19");
  await page.locator("#chosen button.link", { hasText: "rail 3" }).click();
  assert.equal(await chosen(page), "srv77, rail 3 up");
  await page.locator("#servers").press("ArrowRight");
  assert.equal(await chosen(page), "srv78, rail 3 up");
  assert.match(await one.locator("summary").textContent(), /^srv78:/);
});

test("servers: flows are from and to GPUs by name", async (t) => {
  const page = await open(t, "servers-32");
  const hosts = await page.locator("table", { hasText: "Slowdown" }).filter({ hasText: "Again" }).first().locator("tbody tr td:nth-child(2)").allTextContents();
  assert.ok(hosts.length > 0);
  // Four GPUs and eight servers.
  for (const ends of hosts) assert.match(ends, /^srv[0-7]\.gpu[0-7] > srv[0-7]\.gpu[0-7]$/);
});

test("servers of a small network are frames around their GPUs, drawn as one if wanted", async (t) => {
  const page = await open(t, "servers-32");
  const whole = await pixels(page);
  await page.locator("#fold").click();
  assert.ok(difference(await pixels(page), whole) > 0.5);
  assert.equal(await page.locator("#fold").textContent(), "Show GPUs");
  await page.locator("#find").fill("srv3.gpu7");
  await page.locator("#find").blur();
  assert.equal(await chosen(page), "srv3.gpu7 (host)");
  assert.match(await page.locator("#one-server summary").textContent(), /^srv3: 8 GPUs, 8 NICs of 2 ports, each in its plane/);
  await page.locator("#fold").click();
  assert.equal(await page.locator("#fold").textContent(), "Servers as one");
});

test("any server, GPU and switch of 131,072 GPUs is found by name", async (t) => {
  const page = await open(t, "servers-131072");
  const find = async (name) => { await page.locator("#find").fill(name); await page.locator("#find").blur(); };
  for (const [name, what] of [["srv16000.gpu7", "srv16000.gpu7 (host)"], ["p1.leaf255", "p1.leaf255 (switch, tier 0)"], ["srv9999", "srv9999 (GPUs: 8, NICs: 8)"]]) {
    await find(name);
    assert.equal(await chosen(page), what);
  }
  assert.match(await page.locator("#one-server summary").textContent(), /^srv9999:/);
  await find("srv0.gpu0 > p0.leaf0");
  assert.match(await page.locator("#find-answer").textContent(), /busiest of 540672 links only/);
  await find("srv16384.gpu0");
  assert.match(await page.locator("#find-answer").textContent(), /^No node or link is named srv16384\.gpu0/);
});
