// The index of `pathweave view` in headless Chromium, served by the program itself over a folder made here.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { isForEverybody } from "./access.mjs";
import { REPORTS, looksRight, openAt } from "./browser.mjs";
import { filesAreRight, saved, text, withoutFiles } from "./saved.mjs";

const folder = join(REPORTS, "view"), program = process.env.PATHWEAVE;
const file = (name, content) => {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
};
const run = (name, scheme, seed, p99, finished = 64) => ({
  schema: "pathweave.summary",
  run: { name, seed, ended: finished < 64 ? "time_limit" : "completed", partial: finished < 64 },
  overall: { count: 64, finished, slowdown: { mean: p99 / 2, p99 } },
  foreground: null,
  groups: [{ schemes: [scheme] }],
});
// Name of the folder, summary, hours since it was written.
const results = [
  ["incast-ecmp-seed1", run("incast", "ecmp", 1, 31.25), 5],
  ["incast-udmp-seed1", run("incast", "udmp", 1, 2.5), 4],
  ["incast-laps-seed12", run("incast", "laps", 12, 9.75, 60), 3],
  ["all schemes", { schema: "pathweave.comparison", runs: ["ecmp", "rps", "reps", "udmp", "laps", "dlbf", "erd", "reflex", "weave"].map((s, i) => run(s, s, 7, 4 + i)) }, 2],
  ["studies/loads", { schema: "pathweave.sweep", name: "load-of-websearch", runs: 24, finished_runs: 24, failed_runs: 1, open_runs: 0, partial: false }, 1],
];
const points = Array.from({ length: 80 }, (_, i) => i + 1);
const under = (process, done) => ({
  schema: "pathweave.progress", kind: "comparison", name: "permutation-with-a-slow-link", seed: 7, process, written_unix_s: 0,
  wall_s: 12, done, finished: 0, of: 2,
  runs: ["ecmp", "udmp"].map((name, r) => ({
    name, over: false, done: done + r * 0.1, flows: 512, time_ns: points.map((i) => i * 1e5),
    bytes: points.map((i) => Math.round((i * (r + 2) + Math.sin(i / 3) * 2) * 1e6)), finished: points.map((i) => i * (r + 2)), packet_hops: points.map((i) => i * 1e4),
  })),
});
const progress = ".permutation.partial-1/progress.json";
let server, address;

before(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, summary, hours] of results) {
    file(`${name}/summary.json`, summary);
    const at = Date.UTC(2026, 0, 10, 12 - hours) / 1000;
    utimesSync(join(folder, name, "summary.json"), at, at);
  }
  cpSync(join(REPORTS, "small.html"), join(folder, "incast-udmp-seed1", "report.html"));
  file(progress, under(process.pid, 0.4));
  server = spawn(program, ["view", folder, "--port", "0"], { stdio: ["ignore", "pipe", "ignore"] });
  const [line] = await Promise.race([
    createInterface({ input: server.stdout })[Symbol.asyncIterator]().next().then((l) => [l.value]),
    new Promise((_, no) => { setTimeout(() => no(new Error("pathweave view does not say its address")), 30_000).unref(); }),
  ]);
  address = line;
});
after(() => { server?.kill("SIGKILL"); });

const open = (t, scheme = "light", width = 1400) => openAt(t, address, scheme, width, new RegExp(`^(data:|${address})`));
const names = (page) => page.locator("#rows tbody th").evaluateAll((cells) => cells.map((c) => (c.querySelector(".path") ?? c).textContent));

for (const scheme of ["light", "dark"]) {
  for (const width of [1400, 390]) {
    test(`${width} px, ${scheme}: no sideways scroll, enough contrast`, async (t) => {
      const page = await open(t, scheme, width);
      await looksRight(page, `view-${width}`, scheme, 20_000);
      await isForEverybody(page, `view, ${width} px, ${scheme}`);
    });
  }
}

test("newest first; columns sort both ways, by size or by letters, and what is missing comes last", async (t) => {
  const page = await open(t);
  const newest = ["studies/loads", "all schemes", "incast-laps-seed12", "incast-udmp-seed1", "incast-ecmp-seed1"];
  assert.deepEqual(await names(page), newest);
  const by = (title) => page.locator("#rows thead button", { hasText: title }).click();
  await by("Slowdown P99");
  const p99 = ["incast-udmp-seed1", "all schemes", "incast-laps-seed12", "incast-ecmp-seed1", "studies/loads"];
  assert.deepEqual(await names(page), p99);
  assert.equal(await page.locator("#rows th[aria-sort=ascending]").innerText(), "Slowdown P99 ▴");
  await by("Slowdown P99");
  assert.deepEqual(await names(page), [...p99.slice(0, 4).reverse(), p99[4]]);
  await by("Seed");
  assert.deepEqual((await names(page)).slice(2, 4), ["all schemes", "incast-laps-seed12"], "7 before 12");
  await page.waitForFunction(() => location.hash.includes("sort=seed"));
  await page.reload();
  await page.waitForSelector("html[data-drawn]");
  assert.deepEqual((await names(page)).slice(2, 4), ["all schemes", "incast-laps-seed12"]);
});

test("search finds all words in name, scheme, seed and state", async (t) => {
  const page = await open(t);
  const found = async (words) => { await page.getByLabel("Search results").fill(words); return (await names(page)).sort(); };
  assert.deepEqual(await found("INCAST udmp"), ["incast-udmp-seed1"]);
  assert.deepEqual(await found("udmp"), ["all schemes", "incast-udmp-seed1"]);
  assert.deepEqual(await found("unfinished"), ["incast-laps-seed12"]);
  assert.deepEqual(await found("seed7"), ["all schemes"]);
  assert.deepEqual(await found("no such thing"), []);
  assert.equal(await page.locator("#rows [role=status]").innerText(), "0 of 5 results.");
  assert.equal((await found("")).length, 5);
  await page.locator("#rows a").first().click();
  await page.waitForURL(/\/incast-udmp-seed1\/report\.html$/);
  await page.waitForSelector("html[data-drawn]");
});

test("everything can be reached with the keyboard, and the focus shows", async (t) => {
  const page = await open(t, "dark", 390);
  const seen = [];
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
      return e === document.body ? null : { name: e.getAttribute("aria-label") ?? e.textContent.trim(), style: s.outlineStyle, width: parseFloat(s.outlineWidth), there: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth };
    });
    if (!now) break;
    assert.ok(now.style === "solid" && now.width >= 2 && now.there, JSON.stringify(now));
    seen.push(now.name);
  }
  assert.equal(seen[0], "To the results");
  for (const name of ["Search results", "Name", "Slowdown P99", "incast"]) assert.ok(seen.includes(name), `${name} in ${seen}`);
  // Who sorts with a key stays on the column.
  await page.locator("#rows button[data-key=flows]").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.key), "flows");
});

test("curves of what goes on show its data", async (t) => {
  const page = await open(t);
  const [rate, flows] = await page.locator("#under-way .chart").evaluateAll((charts) => charts.map((c) => {
    const [from, to, low, high] = c.dataset.span.split(" ").map(Number);
    return { points: c.dataset.points, from, to, low, high };
  }));
  // A rate for each interval, and a sum at each instant and at none.
  assert.deepEqual([rate.points, flows.points], ["80 80", "81 81"]);
  // 80 instants, 0.1 ms apart; the second scheme has 3 flows more at each. In 0.1 ms it moves 3 MB and 2 MB of the sine's steepest.
  assert.ok(rate.from === 0 && flows.to === 8e6, JSON.stringify(flows));
  assert.ok(flows.low <= 0 && flows.high >= 240 && flows.high < 300, JSON.stringify(flows));
  const steepest = Math.max(...points.map((i) => 3 + 2 * (Math.sin(i / 3) - Math.sin((i - 1) / 3)))) * 1e6 * 8 / 1e-4;
  assert.ok(rate.high >= steepest && rate.high < 1.3 * steepest, `${rate.high} of ${steepest}`);
  const colours = await page.locator("#under-way .chart").first().locator(".u-marker").evaluateAll((marks) => marks.map((m) => getComputedStyle(m).borderTopColor));
  assert.deepEqual(colours.slice(-2), ["rgb(107, 114, 128)", "rgb(0, 114, 178)"], "grey ecmp, blue udmp, as in reports");
});

test("curves of what goes on are saved as SVG, PNG and CSV, also from the keyboard while they grow", async (t) => {
  t.after(() => file(progress, under(process.pid, 0.4)));
  const page = await open(t);
  assert.deepEqual(await withoutFiles(page), []);
  const files = await saved(page);
  assert.equal(files.length, 2);
  await filesAreRight(page, files);
  const csv = text(files[1].CSV.href).trimEnd().split("\n");
  assert.equal(csv[0], "Time (ns),ecmp (40 %),udmp (50 %)");
  // At the last instant, 80 times 2 and 3 flows.
  assert.equal(csv.at(-1), "8000000,160,240");
  const control = page.locator("#under-way .export button").nth(4);
  const name = await control.getAttribute("aria-label");
  await control.focus();
  file(progress, under(process.pid, 0.75));
  await page.waitForFunction(() => document.querySelector(".live")?.innerText.includes("75 % after"));
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), name);
  const landed = page.waitForEvent("download");
  await page.keyboard.press("Enter");
  assert.match((await landed).suggestedFilename(), /^flows-finished-so-far\.png$/);
});

test("a plan leads to its choices", async (t) => {
  t.after(() => rmSync(join(folder, "fabrics"), { recursive: true, force: true }));
  file("fabrics/summary.json", { schema: "pathweave.sweep", name: "which-fabric", runs: 6, finished_runs: 6, failed_runs: 0, open_runs: 0, partial: false });
  file("fabrics/plan.json", {});
  for (const name of ["plan.html", "report.html"]) file(`fabrics/${name}`, "<!doctype html><title>of a plan</title>");
  const page = await open(t);
  const row = page.locator("#rows tbody tr", { hasText: "which-fabric" });
  assert.equal(await row.locator("td").first().innerText(), "plan");
  assert.equal(await row.locator("a").getAttribute("href"), "/fabrics/plan.html");
});

test("what goes on is followed, and results appear when they are there", async (t) => {
  t.after(() => { rmSync(join(folder, "late"), { recursive: true, force: true }); file(progress, under(process.pid, 0.4)); });
  const page = await open(t);
  const card = page.locator("#under-way .live");
  assert.match(await card.innerText(), /comparison into permutation, seed 7: 0 of 2 runs, 40 % after 0:12, 0:18 left/);
  assert.equal(await card.locator("canvas").count(), 2);
  assert.match(await page.title(), /^40 % - view - pathweave$/);
  file(progress, under(process.pid, 0.75));
  await page.waitForFunction(() => document.querySelector(".live")?.innerText.includes("75 % after"));
  // No process has the largest number.
  file(progress, under(2 ** 31 - 1, 0.75));
  await page.waitForFunction(() => document.querySelector(".live")?.innerText.includes("its process is gone"));
  rmSync(join(folder, progress));
  file("late/summary.json", run("late", "erd", 3, 1.5));
  await page.waitForFunction(() => document.querySelector("#rows tbody th")?.textContent.startsWith("late"));
  assert.equal(await page.locator("#under-way").count(), 0);
});
