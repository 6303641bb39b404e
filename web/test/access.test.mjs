// Every page in light and dark, on a wide screen and on a phone: contrast, no sideways scroll, and the keyboard.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { byKeyboard, faint, isForEverybody } from "./access.mjs";
import { REPORTS, openAt } from "./browser.mjs";

const pages = {
  "a report": "small.html", "a report of a large fabric": "large.html", "a comparison": "four.html", "an empty report": "empty.html",
  "a sweep": "sweep-grid/report.html", "a sweep with failures": "sweep-named/report.html", "a landing page": "index.html",
};
const open = (t, file, scheme, width) => openAt(t, pathToFileURL(join(REPORTS, file)).href, scheme, width, /^(file|data):/);

for (const [name, file] of Object.entries(pages)) {
  for (const scheme of ["light", "dark"]) {
    for (const width of [1400, 390]) {
      test(`${name}, ${scheme}, ${width} px: contrast and width`, async (t) => {
        const page = await open(t, file, scheme, width);
        await isForEverybody(page, name);
        // Also with what is chosen, where something can be.
        const choose = page.locator("button.link").first();
        if (!await choose.count()) return;
        await choose.click();
        await isForEverybody(page, `${name}, with a choice`);
      });
    }
  }
  test(`${name}: all of it by keyboard`, async (t) => {
    assert.deepEqual(await byKeyboard(await open(t, file, "light", 1400)), []);
  });
}

test("what is hard to read is found", async (t) => {
  const page = await open(t, "empty.html", "light", 1400);
  await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", '<p id="faint" style="color: #999; background: #fff">faint</p>'));
  assert.match((await faint(page)).join(), /^p\. rgb\(153, 153, 153\): 2\.8\d: "faint"$/);
});
