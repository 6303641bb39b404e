// Every page in light and dark, on a wide screen and on a phone: contrast, no sideways scroll, and the keyboard.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { byKeyboard, faint, isForEverybody } from "./access.mjs";
import { REPORTS, openAt } from "./browser.mjs";

const pages = {
  "a report": "small.html", "a report of a large fabric": "large.html", "a report of servers": "servers-32.html", "a report of many servers": "servers-1024.html", "a comparison": "four.html", "an empty report": "empty.html",
  "a sweep": "sweep-grid/report.html", "a sweep with failures": "sweep-named/report.html", "a landing page": "index.html",
};
const open = (t, file, scheme, width) => openAt(t, pathToFileURL(join(REPORTS, file)).href, scheme, width, /^(file|data):/);

for (const [name, file] of Object.entries(pages)) {
  for (const scheme of ["light", "dark"]) {
    test(`${name}, ${scheme}: contrast and width`, async (t) => {
      const page = await open(t, file, scheme, 1400);
      await isForEverybody(page, name);
      // Also with what is chosen, where something can be.
      const choose = page.locator("button.link").first();
      if (await choose.count()) await choose.click();
      await page.setViewportSize({ width: 390, height: 844 });
      // Pages are drawn anew a little after they have got another width.
      await page.waitForFunction(() => ![...document.querySelectorAll("canvas, svg, .uplot")].some((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .squares, .tables")));
      await isForEverybody(page, `${name}, on a phone`);
    });
  }
}

for (const name of ["a report", "a comparison", "a sweep", "a landing page"]) {
  test(`${name}: all of it by keyboard`, async (t) => {
    assert.deepEqual(await byKeyboard(await open(t, pages[name], "light", 1400)), []);
  });
}

test("what is hard to read is found", async (t) => {
  const page = await open(t, "empty.html", "light", 1400);
  await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", '<p id="faint" style="color: #999; background: #fff">faint</p>'));
  assert.match((await faint(page)).join(), /^p\. rgb\(153, 153, 153\): 2\.8\d: "faint"$/);
});
