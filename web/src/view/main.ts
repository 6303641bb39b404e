// The index of a folder of results, as `pathweave view` serves it. It asks again while it is looked at.
import { remember } from "../address";
import { drawWaiting } from "../chart";
import { element } from "../dom";
import { themeButton } from "../theme";
import { ask, type Index } from "./data";
import { live } from "./live";
import { drawRows, readIn, state, written } from "./rows";
// Last, so that it has the last word on the charts' style.
import "../style.css";

// How long until it asks again, while something goes on and else.
const OFTEN = 1000, SELDOM = 4000;
const at = (id: string): HTMLElement => document.getElementById(id)!;
let known: Index = { title: "", rows: [], live: [], all: true }, shown = "", failed = "", seen = false;

function drawLive(): void {
  const place = at("pictures"), focused = document.activeElement, controls = () => [...place.querySelectorAll("button")];
  // Who is about to save a picture stays there.
  const held = controls().findIndex((control) => control === focused);
  place.replaceChildren();
  if (!known.live.length) return;
  const cards = element("div", { class: "cards" });
  place.append(element("section", { id: "under-way" }, element("h2", {}, "Under way"), cards));
  live(cards, known.live);
  drawWaiting();
  controls()[held]?.focus({ preventScroll: true });
}

function draw(): void {
  drawLive();
  drawRows(at("rows"), known.rows);
}

function tell(): void {
  const goes = known.live.filter((l) => l.alive).length;
  at("told").textContent = failed ? `Not up to date: ${failed}. Is pathweave view still running?`
    : `${goes ? `${goes} under way. ` : ""}The page follows what happens in the folder.${known.all ? "" : " There are more folders than are looked into."}`;
  at("told").classList.toggle("bad", failed !== "");
}

async function follow(): Promise<void> {
  if (!document.hidden || !seen) {
    try {
      const now = await ask(), text = JSON.stringify(now.live), rows = JSON.stringify(now.rows) !== JSON.stringify(known.rows);
      known = now;
      failed = "";
      document.title = `${now.live.some((l) => l.alive) ? `${Math.floor(Math.min(...now.live.filter((l) => l.alive).map((l) => l.done)) * 100)} % - ` : ""}${now.title} - pathweave`;
      at("title").textContent = now.title;
      if (text !== shown) drawLive();
      // A table that is being read stays as it is.
      if (rows || !seen) drawRows(at("rows"), known.rows);
      shown = text;
      seen = true;
    } catch (why) {
      failed = why instanceof Error ? why.message : String(why);
    }
    tell();
    document.documentElement.dataset.drawn = String(known.rows.length);
  }
  setTimeout(() => { void follow(); }, known.live.some((l) => l.alive) ? OFTEN : SELDOM);
}

const search = element("input", { type: "search", id: "find", placeholder: "name, scheme, seed, state ...", "aria-label": "Search results" });
const toField = () => { search.value = state.search; };
remember(written, readIn, () => { toField(); draw(); });
toField();
search.addEventListener("input", () => {
  state.search = search.value;
  drawRows(at("rows"), known.rows);
  history.replaceState(null, "", `#?${new URLSearchParams(written())}`);
});
at("search").append(element("label", { class: "choice" }, "Search", search));
at("contents").append(themeButton(draw));
addEventListener("resize", () => drawLive());
void follow();
