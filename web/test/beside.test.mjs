// Two runs beside each other, as `pathweave view A B` serves them.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { isForEverybody } from "./access.mjs";
import { looksRight, openAt } from "./browser.mjs";
import { filesAreRight, saved, text, withoutFiles } from "./saved.mjs";

const made = mkdtempSync(join(tmpdir(), "pathweave-beside-")), program = resolve(process.env.PATHWEAVE);
// Two flows of 4 MB to one host, one to another, which are followed; without marks nobody slows down.
const SCENARIO = `name = "shared"
topology = { kind = "star", hosts = 5, rate = "100Gbps" }
switch = { ecn = { enabled = false } }
observe = { interval = "10us", flows = 3 }
[[workload]]
kind = "flows"
flows = [
  { src = 0, dst = 2, size = "4MB", start = "0s" },
  { src = 1, dst = 2, size = "4MB", start = "0s" },
  { src = 3, dst = 4, size = "4MB", start = "0s" },
]
`;
let server, address;

before(async () => {
  writeFileSync(join(made, "shared.toml"), SCENARIO);
  const run = (out, ...words) => execFileSync(program, ["run", "shared.toml", "--quiet", "--out", out, ...words], { cwd: made });
  run("a", "--set", "scheme=ecmp");
  run("b", "--set", "scheme=weave", "--set", 'topology.rate="50Gbps"');
  server = spawn(program, ["view", "a", "b", "--port", "0"], { cwd: made, stdio: ["ignore", "pipe", "ignore"] });
  [address] = await Promise.race([
    createInterface({ input: server.stdout })[Symbol.asyncIterator]().next().then((line) => [line.value]),
    new Promise((_, no) => { setTimeout(() => no(new Error("pathweave view does not say its address")), 30_000).unref(); }),
  ]);
});
after(() => { server?.kill("SIGKILL"); rmSync(made, { recursive: true }); });

const open = (t, scheme = "light", width = 1400) => openAt(t, address, scheme, width, new RegExp(`^(data:|${address})`));

for (const scheme of ["light", "dark"]) {
  for (const width of [1400, 390]) {
    test(`${width} px, ${scheme}: no sideways scroll, enough contrast`, async (t) => {
      const page = await open(t, scheme, width);
      await looksRight(page, `beside-${width}`, scheme, 60_000);
      await isForEverybody(page, `beside, ${width} px, ${scheme}`);
    });
  }
}

test("a sentence says how they differ, and tables have both", async (t) => {
  const page = await open(t);
  assert.equal(await page.locator("h1").textContent(), "A: shared (ecmp) beside B: shared (weave)");
  const verdict = await page.locator(".verdict").textContent();
  // Half the rate takes about twice as long.
  assert.match(verdict, /^B has a longer job time: [\d.]+ ms, A has [\d.]+ us \((1\.9|2\.\d)x|^B has a longer job time: [\d.]+ ms, A has [\d.]+ us \(\+(8\d|9\d|100) %/);
  assert.match(verdict, /\d+ settings differ\.$/);
  const heads = await page.locator("#summary table").first().locator("thead th").allTextContents();
  assert.deepEqual(heads.slice(1), ["A: shared (ecmp)", "B: shared (weave)", "ratio"]);
  assert.match(await page.locator("#summary").textContent(), /topology\.rate100Gbps50Gbps/);
});

test("both are on one chart in the colours of their schemes, and one at a time has the axes of both", async (t) => {
  const page = await open(t);
  const colours = await page.locator("#side-by-side .chart").first().locator(".u-marker").evaluateAll((marks) => marks.map((m) => getComputedStyle(m).borderTopColor));
  assert.deepEqual(colours.slice(-2), ["rgb(107, 114, 128)", "rgb(0, 158, 115)"], "grey ecmp, green weave, as on every page");
  const spans = () => page.locator("#over-time .card:has(h3) .chart").evaluateAll((charts) => Object.fromEntries(charts.map((c) => [c.closest(".card").querySelector("h3").textContent, c.dataset.span])));
  const first = await spans();
  assert.ok(Object.keys(first).includes("Throughput of flows") && Object.keys(first).includes("Bytes of unfinished flows"), Object.keys(first).join());
  await page.getByLabel("Run", { exact: true }).selectOption({ label: "B: shared (weave)" });
  const second = await spans();
  assert.deepEqual(second, first);
});

test("throughput and bytes that are left are those of the links", async (t) => {
  const page = await open(t);
  assert.deepEqual(await withoutFiles(page), []);
  const files = await saved(page);
  await filesAreRight(page, files);
  const csv = (name) => {
    const lines = text(files.filter((f) => f.CSV.name === name).at(-1).CSV.href).trimEnd().split("\n").map((line) => line.split(","));
    return { head: lines[0], rows: lines.slice(1).map((row) => row.map((cell) => (cell === "" ? null : Number(cell)))) };
  };
  const rates = csv("throughput-of-flows.csv"), left = csv("bytes-of-unfinished-flows.csv");
  assert.equal(rates.head[0], "Time (ns)");
  const column = (table, flow) => table.head.findIndex((name) => name.startsWith(`flow ${flow} `));
  // Flow 2 is alone on its links of 100 Gb/s: 96 % and more of it are payload. Flows 0 and 1 share a link: half each.
  const at = (table, flow, time) => table.rows.find((row) => row[0] === time)[column(table, flow)];
  for (const time of [100e3, 200e3]) {
    const [a, b, alone] = [0, 1, 2].map((flow) => at(rates, flow, time));
    assert.ok(alone > 96e9 && alone < 100e9, `${alone} at ${time}`);
    assert.ok(Math.abs((a + b) / alone - 1) < 0.05, `${a} and ${b} of ${alone}`);
    // What is left has not arrived: 4 MB less the rate over time.
    const bytes = 4e6 - (alone * time) / 8e9;
    assert.ok(Math.abs(at(left, 2, time) / bytes - 1) < 0.05, `${at(left, 2, time)}, about ${bytes}`);
  }
  // Flow 2 ends early, and has one more sample.
  assert.equal(left.rows.map((row) => row[column(left, 2)]).filter((bytes) => bytes != null).at(-1), 0);
});
