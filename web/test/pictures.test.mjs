// Every kind of page that the program writes, with its pictures held to what they are of: samples, and runs made here.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { REPORTS, openAt } from "./browser.mjs";
import { filesAreRight, linkedFilesAreRight, saved, withoutFiles } from "./saved.mjs";
import { faultsOf, tellsTheTruth, watchCanvases } from "./pictures.mjs";

const made = mkdtempSync(join(tmpdir(), "pathweave-pictures-"));
after(() => rmSync(made, { recursive: true }));
const run = (...words) => execFileSync(resolve(process.env.PATHWEAVE), [...words, "--quiet"], { cwd: made, stdio: ["ignore", "pipe", "pipe"] });
const read = (...path) => JSON.parse(readFileSync(join(made, ...path), "utf8"));

const FABRIC = 'topology = { kind = "leaf-spine", leaves = 4, spines = 4, hosts_per_leaf = 4 }';
const RING = `name = "ring"\n${FABRIC}\n[[workload]]\nkind = "ring-all-reduce"\ngroup_size = 8\nplacement = "strided"\nsize = "2MB"\ncompute = "20us"\n`;
const SEARCH = `name = "search"\nscheme = "ecmp"\n${FABRIC}\n[[workload]]\nkind = "poisson"\nsizes = "websearch"\nload = 0.6\nduration = "1ms"\n`
  + '[[fault]]\nkind = "link-down"\nlink = "leaf0-spine0"\nat = "100us"\nup_at = "400us"\n';
const TRAINING = `name = "training"\nscheme = "rps"\n${FABRIC}\n[[workload]]\nkind = "transformer"\nlayers = 4\nhidden = 512\nfeed_forward_hidden = 2048\nheads = 8\n`
  + 'vocabulary = 8000\nsequence = 256\npp = 2\ntflops = 20.0\nmicrobatches = 4\niterations = 3\nscale = 0.02\n';
// Links up of 400 and 100 Gb/s: used evenly, the wide ones carry four fifths of the bytes.
const WIDE = 'name = "wide"\nscheme = "weave"\ntopology = { kind = "file", path = "wide.net" }\n[[workload]]\nkind = "flows"\nflows = [\n'
  + Array.from({ length: 8 }, (_, host) => `{ src = ${host}, dst = ${(host + 4) % 8}, size = "20MB", start = "0s" },\n`).join("") + "]\n";
const NET = `hosts = 8\ndelay = "1us"\nswitch = [{ name = "a" }, { name = "b" }, { name = "wide", tier = 1 }, { name = "thin", tier = 1 }]\nlink = [\n`
  + Array.from({ length: 8 }, (_, host) => `{ a = "host${host}", b = "${host < 4 ? "a" : "b"}", rate = "100Gbps" },\n`).join("")
  + ["a", "b"].map((leaf) => `{ a = "${leaf}", b = "wide", rate = "400Gbps" }, { a = "${leaf}", b = "thin", rate = "100Gbps" },\n`).join("") + "]\n";
const ONE = 'name = "one"\ntopology = { kind = "star", hosts = 2 }\n[[workload]]\nkind = "flows"\nflows = [{ src = 0, dst = 1, size = "100KB" }]\n';
const JOBS = `name = "jobs"\n${FABRIC.replace("leaf = 4", "leaf = 16")}\n[[workload]]\nkind = "ring-all-reduce"\ngroup = "a-group-with-${"a-very-".repeat(20)}long-name"\ngroup_size = 2\nsize = "20KB"\ncompute = "20us"\n`;
const PLAN = `schemes = ["ecmp", "rps"]\n[[scenario.workload]]\nkind = "collective"\noperation = "all-to-all"\nsize = "64KB"\n`
  + '[[fabric]]\nname = "four spines"\ntopology = { kind = "leaf-spine", leaves = 2, spines = 4, hosts_per_leaf = 4 }\nrates = ["100Gbps", "200Gbps"]\n'
  + '[[fabric]]\nname = "one spine"\ntopology = { kind = "leaf-spine", leaves = 2, spines = 1, hosts_per_leaf = 4, host_rate = "100Gbps" }\n'
  + '[[prices.of]]\nrate = "100Gbps"\nswitch_port = 1100\noptics = 450\n[[prices.of]]\nrate = "200Gbps"\nswitch_port = 2300\noptics = 890\n';

before(() => {
  for (const [name, text] of Object.entries({ "ring.toml": RING, "search.toml": SEARCH, "training.toml": TRAINING, "one.toml": ONE, "jobs.toml": JOBS, "plan.toml": PLAN, "wide.toml": WIDE, "wide.net": NET })) writeFileSync(join(made, name), text);
  run("compare", "ring.toml", "--schemes", "ecmp,rps,weave", "--out", "ring");
  run("compare", "search.toml", "--schemes", "weave,ecmp", "--out", "search");
  run("compare", "ring.toml", "search.toml", "--schemes", "ecmp,udmp", "--out", "two");
  run("run", "search.toml", "--out", "alone");
  run("run", "training.toml", "--out", "training");
  run("run", "wide.toml", "--out", "wide");
  run("run", "one.toml", "--out", "one");
  run("run", "jobs.toml", "--out", "jobs");
  run("plan", "plan.toml", "--out", "plan");
  try { run("plan", "plan.toml", "--out", "part", "--most", "2"); } catch { /* it is not complete, and says so */ }
  run("validate", "law-ring", "roce-ring", "--out", "validate");
  run("paper", "tiny", "--seeds", "2", "--out", "paper", "--papers", resolve("../crates/cli/tests/data/papers"));
});

const sample = (file) => join(REPORTS, file), own = (...path) => join(made, ...path);
const pages = {
  "a report": () => sample("small.html"), "a report of 320 hosts": () => sample("hosts-320.html"), "a report of 1,024 hosts": () => sample("large.html"),
  "a report of servers": () => sample("servers-32.html"), "a report of 131,072 GPUs": () => sample("servers-131072.html"),
  "a comparison": () => sample("four.html"), "an empty report": () => sample("empty.html"), "a landing page": () => sample("index.html"),
  "a sweep": () => sample("sweep-grid/report.html"), "a sweep of a cube": () => sample("sweep-cube/report.html"), "a sweep with failures": () => sample("sweep-named/report.html"),
  "a comparison of jobs": () => own("ring", "report.html"), "a comparison of flows": () => own("search", "report.html"),
  "a page of two comparisons": () => own("two", "index.html"), "a run with a fault": () => own("alone", "report.html"), "a training job": () => own("training", "report.html"),
  "one flow": () => own("one", "report.html"), "many jobs of a long name": () => own("jobs", "report.html"),
  "a plan": () => own("plan", "plan.html"), "half a plan": () => own("part", "plan.html"), "a plan's sweep": () => own("plan", "report.html"),
  "a paper": () => own("paper", "tiny", "index.html"), "a validation": () => own("validate", "index.html"),
};
const open = async (t, file, scheme, width) => openAt(t, pathToFileURL(file).href, scheme, width, /^(file|data):/, watchCanvases);

for (const [name, file] of Object.entries(pages)) {
  for (const [width, scheme] of [[1400, "light"], [1400, "dark"], [390, "light"]]) {
    test(`${name}, ${scheme}, ${width} px: nothing empty, cut off, or over something else`, async (t) => {
      const page = await open(t, file(), scheme, width);
      mkdirSync(join(REPORTS, "pictures"), { recursive: true });
      await page.screenshot({ fullPage: true, path: join(REPORTS, "pictures", `${name.replaceAll(/[^a-z0-9]+/g, "-")}-${scheme}-${width}.png`) });
      await tellsTheTruth(page, name);
    });
  }
}

for (const [name, file] of Object.entries(pages)) {
  test(`${name}: every picture has its SVG, PNG and CSV`, async (t) => {
    const page = await open(t, file(), "light", 1400);
    const linked = await linkedFilesAreRight(page, file());
    if (!linked) assert.deepEqual(await withoutFiles(page), []);
    const files = await saved(page);
    await filesAreRight(page, files);
    if (name !== "an empty report") assert.ok(linked + files.length > 0, "it has a picture");
  });
}

test("a distribution of one flow goes from 0 to 1", async (t) => {
  const page = await open(t, own("one", "report.html"), "light", 1400);
  const card = page.locator(".card", { has: page.locator("h3", { hasText: "Flow completion time" }) });
  assert.equal(await card.locator(".chart").getAttribute("data-points"), "3");
  // The flow took as long as on an idle network, so that there is the step from all to none alone.
  assert.ok(await page.locator("path.curve").first().evaluate((path) => path.getBBox().height > 50));
});

test("each iteration has its name, and a long name leaves the numbers of the summary in sight", async (t) => {
  const page = await open(t, own("jobs", "report.html"), "light", 1400);
  const { iterations } = read("jobs", "summary.json");
  const bars = await page.locator("#iterations svg rect").evaluateAll((all) => new Set(all.map((bar) => bar.getAttribute("y"))).size);
  const names = await page.locator("#iterations svg text[x='0'][text-anchor='start']").evaluateAll((all) => all.filter((name) => name.textContent.startsWith("a-group")).length);
  assert.ok(iterations.length > 24 && names === bars && bars === iterations.length, `${names} names, ${bars} bars, ${iterations.length} iterations`);
  const cells = await page.locator(".tables .scroll").first().evaluate((box) => {
    const edge = box.getBoundingClientRect().right;
    return [...box.querySelectorAll("td")].filter((cell) => cell.getBoundingClientRect().right > edge + 1).length;
  });
  assert.equal(cells, 0);
});

test("without script, a page still has the SVG and the numbers of its pictures", async (t) => {
  const page = await open(t, own("plan", "plan.html"), "light", 1400);
  const plain = await page.context().browser().newContext({ javaScriptEnabled: false });
  t.after(() => plain.close());
  for (const file of [own("plan", "plan.html"), own("two", "index.html"), own("validate", "index.html")]) {
    const still = await plain.newPage();
    await still.goto(pathToFileURL(file).href);
    const links = await still.locator(".export a").evaluateAll((all) => all.map((a) => [a.textContent, a.hidden, a.href.slice(0, 19)]));
    assert.ok(links.length > 0 && links.length % 3 === 0, file);
    links.forEach(([kind, hidden, href]) => assert.ok(kind === "PNG" ? hidden : !hidden && href.startsWith("data:"), `${file}: ${kind}`));
  }
});

test("headline figures are those of the tables", async (t) => {
  for (const [folder, figure] of [["ring", (s) => s.jobs.time_ns], ["search", (s) => s.overall.slowdown.p99]]) {
    const page = await open(t, own(folder, "report.html"), "light", 1400);
    const all = read(folder, "summary.json").runs.map((run) => ({ name: run.run.name, value: figure(run) }));
    // Best first.
    all.sort((a, b) => a.value - b.value);
    const most = Math.max(...all.map((run) => run.value));
    const bars = await page.locator("#first .bars tr").evaluateAll((rows) => rows.map((row) => ({
      name: row.querySelector("th").textContent, wide: parseFloat(row.querySelector("i").style.width), text: row.lastElementChild.textContent, colour: row.querySelector("i").style.background,
    })));
    assert.deepEqual(bars.map((bar) => bar.name), all.map((run) => run.name));
    const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };
    bars.forEach((bar, i) => {
      const [number, unit] = bar.text.split(" "), shown = Number(number) * (units[unit] ?? 1);
      assert.ok(Math.abs(shown / all[i].value - 1) < 0.006, `${folder}: ${bar.text} of ${all[i].value}`);
      assert.ok(Math.abs(bar.wide - (100 * all[i].value) / most) < 0.1, `${folder}: a bar of ${bar.wide} %`);
    });
    // A curve a run, in the colour of its bar; that of arrivals ends where the figure is.
    const curves = await page.locator("#first svg .curve").evaluateAll((paths) => paths.map((path) => ({ colour: path.style.stroke, box: (({ x, width, height }) => ({ x, width, height }))(path.getBBox()) })));
    const place = (curve) => bars.findIndex((bar) => bar.colour === curve.colour);
    curves.sort((a, b) => place(a) - place(b));
    assert.deepEqual(curves.map((curve) => curve.colour), bars.map((bar) => bar.colour));
    curves.forEach((curve) => assert.ok(curve.box.width > 20 && curve.box.height > 50, `${folder}: a curve of ${curve.box.width} to ${curve.box.height}`));
    if (folder !== "ring") continue;
    const ends = curves.map((curve) => curve.box.x + curve.box.width), least = Math.min(...curves.map((curve) => curve.box.x));
    const furthest = Math.max(...ends);
    all.forEach((run, i) => assert.ok(Math.abs((ends[i] - least) / (furthest - least) - run.value / most) < 0.03, `${run.name} ends at ${ends[i]} of ${furthest}`));
  }
});

test("a scheme has one colour, whatever it is compared with", async (t) => {
  const colours = async (file, rows) => {
    const page = await open(t, file, "light", 1400);
    return Object.fromEntries(await page.locator(rows).evaluateAll((all) => all.map((row) => [row.querySelector("th").textContent, row.querySelector("i").style.background])));
  };
  const found = [await colours(own("ring", "report.html"), "#first .bars tr"), await colours(own("search", "report.html"), "#first .bars tr"), await colours(own("two", "index.html"), ".bars tr")];
  const all = new Map();
  for (const [scheme, colour] of found.flatMap(Object.entries)) assert.equal(all.get(scheme) ?? colour, colour, scheme), all.set(scheme, colour);
  assert.equal(new Set(all.values()).size, all.size, [...all].join());
  // Charts have them, too.
  const page = await open(t, own("ring", "report.html"), "light", 1400);
  const [drawn, wanted] = await page.evaluate(() => [JSON.parse(document.getElementById("picture-data").textContent).map((run) => `var(--c${run.colour})`),
    [...document.querySelectorAll("#first .bars i")].map((bar) => bar.style.background)]);
  assert.deepEqual(drawn.sort(), wanted.sort());
});

test("links are even that carry as much for what they can", async (t) => {
  const page = await open(t, own("wide", "report.html"), "light", 1400);
  const [, switchName, worst] = (await page.locator("body").textContent()).match(/Least even: (\S+), whose busiest link was ([\d.]+) times/);
  assert.ok(worst >= 1 && worst < 1.3, `bytes alone are 1.6 times even: ${switchName}, ${worst}`);
});

test("a plan has a point for each choice that ended, where its figures are", async (t) => {
  for (const folder of ["plan", "part"]) {
    const page = await open(t, own(folder, "plan.html"), "light", 1400);
    const { choices } = read(folder, "plan.json"), ended = choices.filter((choice) => choice.time_ns != null);
    const points = await page.locator("circle").evaluateAll((all) => all.map((c) => ({ x: Number(c.getAttribute("cx")), y: Number(c.getAttribute("cy")), title: c.textContent })));
    points.sort((a, b) => parseInt(a.title) - parseInt(b.title));
    assert.equal(points.length, ended.length);
    // Places are linear in figures, from zero.
    const [first, last] = [0, points.length - 1], slope = (points[last].x - points[first].x) / (ended[last].cost - ended[first].cost || 1);
    points.forEach((point, i) => assert.ok(Math.abs(point.x - points[first].x - slope * (ended[i].cost - ended[first].cost)) < 0.2, point.title));
    const rows = await page.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(rows.map((row) => row[1]), choices.map((choice) => choice.fabric));
    const times = rows.map((row) => row[4]);
    choices.forEach((choice, i) => assert.equal(/^[\d.]+ [mun]?s/.test(times[i]), choice.time_ns != null, times[i]));
    if (folder === "part") assert.equal(times.filter((time) => time === "not run yet").length, 4);
  }
});

test("any node or link of a large fabric is found by any of its names", async (t) => {
  const page = await open(t, sample("large.html"), "light", 1400);
  const { names, from, to } = await page.evaluate(() => {
    const { index } = JSON.parse(document.getElementById("picture-data").textContent)[0].fabric.blocks;
    return { names: index.names.flatMap(([text, first, count]) => (first == null ? [text] : Array.from({ length: count }, (_, i) => text + (first + i)))), from: index.from, to: index.to };
  });
  assert.ok(names.length > 1000 && from.length > 2000);
  const find = async (text) => {
    await page.locator("#find").fill(text);
    await page.locator("#find").press("Enter");
    return (await page.locator("#chosen h4").count()) ? page.locator("#chosen h4").textContent() : "";
  };
  for (const node of [0, 511, 1023, names.length - 1]) assert.ok((await find(names[node])).startsWith(`${names[node]} (`), names[node]);
  for (const link of [0, 777, from.length - 1]) {
    const [a, b] = [names[from[link]], names[to[link]]];
    for (const name of [`${a} > ${b}`, `${a}>${b}`, `${a}-${b}`, ` ${a.toUpperCase()} -> ${b}`]) assert.equal(await find(name), `${a} > ${b}`, name);
  }
  await find("nobody99");
  assert.match(await page.locator("#find-answer").textContent(), /^No node or link is named nobody99\.$/);
  await find(`${names[0].replace(/\d+$/, "")}99999`);
  assert.match(await page.locator("#find-answer").textContent(), /There is .*\.$/);
  // The address brings it back, and its links lead on.
  // It is written a little after a choice: what is to be written of those before is written first.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
  const before = await page.evaluate(() => location.hash);
  await find(`${names[from[5]]} > ${names[to[5]]}`);
  await page.waitForFunction((hash) => location.hash !== hash && location.hash.includes("chosen=link"), before);
  await page.reload();
  await page.waitForSelector("html[data-drawn]");
  assert.equal(await page.locator("#chosen h4").textContent(), `${names[from[5]]} > ${names[to[5]]}`);
  await page.locator("#chosen button.link").first().click();
  assert.ok((await page.locator("#chosen h4").textContent()).startsWith(`${names[from[5]]} (`));
});

test("a small fabric's links are found as tables and scenarios call them", async (t) => {
  const page = await open(t, own("alone", "report.html"), "light", 1400);
  for (const name of ["leaf0 > spine1", "leaf0>spine1", "leaf0-spine1"]) {
    await page.locator("#find").fill(name);
    await page.locator("#find").press("Enter");
    assert.equal(await page.locator("#chosen h4").textContent(), "leaf0 > spine1");
    await page.locator("#chosen button.close").click();
  }
});

test("what is wrong with a picture is found", async (t) => {
  const page = await open(t, own("ring", "report.html"), "light", 1400);
  await page.evaluate(() => {
    const figure = document.querySelector("#first figure");
    figure.insertAdjacentHTML("beforeend", '<svg viewBox="0 0 440 100" aria-label="bad"><text x="10" y="50">1,230,336</text><text x="14" y="52">over</text><text x="436" y="90">cut off</text></svg>');
    const canvas = document.createElement("canvas");
    canvas.setAttribute("aria-label", "blank");
    figure.append(canvas);
    canvas.getContext("2d").fillText("beyond the edge of the picture", 280, 20);
    document.querySelector(".chart").dataset.points = "12 0";
  });
  const found = (await faultsOf(page)).join("\n");
  for (const fault of ['bad: the tick "1,230,336" is not round', "lie over each other", 'bad: "cut off" is cut off', "bad: nothing is drawn", 'blank: "beyond the edge of the picture" is cut off', "a line without a point (12 0)"]) {
    assert.ok(found.includes(fault), `${fault}: ${found}`);
  }
});
