// What the tests share: a browser, and pages on which nothing may go wrong.
// REPORTS names the folder of samples, CHROMIUM the browser; `make test-web` sets both.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const { REPORTS, CHROMIUM } = process.env;
let browser;
before(async () => { browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] }); });
after(async () => { await browser?.close(); });

/** Opens a page of the folder; whatever goes wrong on it by the end of the test fails it. */
export const open = (t, file, colorScheme = "light") =>
  openAt(t, pathToFileURL(join(REPORTS, file)).href, colorScheme, 1400, /^(file|data):/);

/** The same on a screen as narrow as a phone's. */
export const openNarrow = (t, file) => openAt(t, pathToFileURL(join(REPORTS, file)).href, "light", 390, /^(file|data):/);

/** Opens the page at `url`, which may ask for what `allowed` fits; `first` runs before anything of the page does. */
export async function openAt(t, url, colorScheme, width, allowed, first) {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 1000 } });
  const page = await context.newPage();
  if (first) await page.addInitScript(first);
  const faults = [];
  page.on("pageerror", (e) => faults.push(e.message));
  page.on("console", (m) => { if (m.type() === "error") faults.push(m.text()); });
  page.on("request", (r) => { if (!allowed.test(r.url())) faults.push(`asks the network for ${r.url()}`); });
  t.after(async () => {
    const shown = await page.evaluate(() => document.documentElement.dataset.scriptError);
    await context.close();
    assert.deepEqual([...faults, ...(shown ? [shown] : [])], []);
  });
  await page.goto(url);
  // A landing page has no script.
  await page.waitForSelector("html[data-drawn], .landing, main.plan, body > h1");
  return page;
}

/** The page is drawn in `scheme`, nothing is wider than its card, and it is no blank; leaves a picture of it. */
export async function looksRight(page, name, scheme, leastBytes) {
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), scheme);
  assert.ok(!(await page.locator("body").innerText()).includes("NaN"));
  const wide = await page.evaluate(() => [...document.querySelectorAll(".card")].flatMap((card) => {
    const edge = card.getBoundingClientRect().right + 1;
    return [...card.querySelectorAll("canvas, svg, .chart")].filter((e) => e.getBoundingClientRect().right > edge).map(() => card.innerText.slice(0, 40));
  }));
  assert.deepEqual(wide, []);
  mkdirSync(join(REPORTS, "pictures"), { recursive: true });
  const picture = await page.screenshot({ fullPage: true, path: join(REPORTS, "pictures", `${name}-${scheme}.png`) });
  assert.ok(picture.length > leastBytes, `${picture.length} bytes: blank?`);
}
