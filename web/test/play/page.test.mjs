// The page with the simulator in it, in Chromium: it runs, draws, breaks links, and gives scenarios with the program's digests.
// PLAY names the page, CHROMIUM the browser, PATHWEAVE the program.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { openAt } from "../browser.mjs";
import * as access from "../access.mjs";
import { filesAreRight, saved, text, withoutFiles } from "../saved.mjs";
import { ofProgram } from "./program.mjs";

const { PLAY } = process.env;
const url = pathToFileURL(PLAY).href;
const still = () => { matchMedia = ((ask) => (query) => (query.includes("reduced-motion") ? { matches: true, addEventListener() {} } : ask(query)))(matchMedia.bind(globalThis)); };

async function opened(t, lesson, width = 1400, scheme = "light") {
  const page = await openAt(t, `${url}#${lesson}`, scheme, width, /^(file|data|blob):/, still);
  await drawn(page);
  return page;
}
const drawn = (page) => page.waitForSelector("html[data-drawn]", { timeout: 120_000 });
const digests = (page) => page.locator(".digest .value").allInnerTexts();
const go = (page, share) => page.evaluate((at) => {
  const range = document.querySelector("#transport input[type=range]");
  range.value = String(at * 1000);
  range.dispatchEvent(new Event("input"));
}, share);
/** Pixels of the picture of the network that are not empty, and of these in the colour of queues. */
const painted = (page, at) => page.evaluate((place) => {
  const canvas = document.querySelectorAll("canvas.network")[place], { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let all = 0, queue = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 40) all++;
    if (data[i + 3] > 120 && data[i] > 170 && data[i + 1] < 110 && data[i + 2] < 60) queue++;
  }
  return { all, queue };
}, at);

test("a situation runs, and draws queues where one path is shared", async (t) => {
  const page = await opened(t, "collide");
  await go(page, 0.4);
  const [ecmp, rps] = [await painted(page, 0), await painted(page, 1)];
  assert.ok(ecmp.all > 2000 && rps.all > 2000, JSON.stringify([ecmp, rps]));
  assert.ok(ecmp.queue > 1.5 * rps.queue, JSON.stringify([ecmp, rps]));
  await go(page, 1);
  assert.match(await page.locator("#verdict").innerText(), /^ecmp takes 1\.\d times as long as rps/);
  assert.match(await page.locator(".stage .facts").first().innerText(), /8 of 8/);
});

test("every picture is saved as SVG, PNG and CSV, with what has happened so far", async (t) => {
  const page = await opened(t, "collide");
  await go(page, 1);
  assert.deepEqual(await withoutFiles(page), []);
  const files = await saved(page);
  assert.equal(files.length, 10, "five of each run");
  await filesAreRight(page, files);
  const rows = text(files.find((f) => f.CSV.name === "messages-until-they-finish-ecmp.csv").CSV.href).trimEnd().split("\n");
  assert.deepEqual([rows.length, rows[0]], [1 + 8, "source,destination,size (bytes),start (ns),finish (ns)"]);
});

test("a link that is broken changes the future only, and the file for download has the program's digest", async (t) => {
  const page = await opened(t, "collide"), before = await digests(page);
  await go(page, 0.3);
  await page.getByLabel("Link", { exact: true }).selectOption("leaf0-spine2");
  await page.locator("#break").click();
  await page.waitForSelector("#link li");
  await drawn(page);
  const after = await digests(page);
  assert.notEqual(after[0] + after[1], before[0] + before[1]);
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("[data-save='1']").click()]);
  const folder = mkdtempSync(join(tmpdir(), "pathweave-"));
  try {
    const path = join(folder, "collide.toml");
    await file.saveAs(path);
    assert.match(readFileSync(path, "utf8"), /scheme = "rps"[\s\S]*link = "leaf0-spine2"/);
    assert.equal(ofProgram(path, []), after[1]);
  } finally {
    rmSync(folder, { recursive: true });
  }
  await page.getByRole("button", { name: "Repair leaf0-spine2" }).click();
  await page.waitForSelector("#link li", { state: "detached" });
  await drawn(page);
  assert.deepEqual(await digests(page), before);
});

test("a link snaps when it is dragged", async (t) => {
  const page = await opened(t, "collide");
  await go(page, 0.2);
  const box = await page.locator("canvas.network").first().boundingBox();
  // Along the lowest row of links, until one is under the pointer.
  for (let x = 20; x < box.width && !(await page.locator("#link li").count()); x += 9) {
    await page.mouse.move(box.x + x, box.y + box.height * 0.3);
    await page.mouse.down();
    await page.mouse.move(box.x + x, box.y + box.height * 0.3 + 60, { steps: 4 });
    await page.mouse.up();
    await drawn(page);
  }
  assert.match(await page.locator("#link li").first().innerText(), /breaks at/);
});

test("one plays, steps and goes to the ends by keys", async (t) => {
  const page = await opened(t, "collide"), time = () => page.locator("#transport .time").innerText();
  await page.keyboard.press("End");
  const end = await time();
  await page.keyboard.press("ArrowLeft");
  assert.notEqual(await time(), end);
  await page.keyboard.press("Home");
  assert.equal(await time(), "0 ns");
  await page.keyboard.press("Space");
  await page.waitForFunction(() => document.querySelector("#transport .time").textContent !== "0 ns");
  assert.equal(await page.locator("#play").innerText(), "Pause");
});

test("a mistake in the scenario is told as the program tells it", async (t) => {
  const page = await opened(t, "collide");
  await page.locator("#files summary").click();
  await page.locator("#files textarea").fill('[topology]\nkind = "star"\nhost = 2\n');
  await page.locator("#run-text").click();
  await page.waitForSelector("#told.bad");
  assert.match(await page.locator("#told").innerText(), /unknown field `host`/);
});

for (const scheme of ["light", "dark"]) {
  test(`contrast, width and keyboard, ${scheme}`, async (t) => {
    const page = await opened(t, "128", 1400, scheme);
    await go(page, 0.3);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
    await access.isForEverybody(page, "wide");
    assert.deepEqual(await access.byKeyboard(page), []);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForFunction(() => ![...document.querySelectorAll("canvas")].some((e) => e.getBoundingClientRect().right > innerWidth));
    await access.isForEverybody(page, "on a phone");
  });
}
