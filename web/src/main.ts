// The page: reads the data the program put into it and draws; draws again when the theme or the width changes.
import { runs } from "./data";
import { drawWaiting } from "./chart";
import { choice, element } from "./dom";
import { comparing, flows } from "./flows";
import { inspector } from "./inspector";
import { events, jobs } from "./jobs";
import { overlays, overTime } from "./overtime";
import { evenness, paths } from "./paths";
import { pauses } from "./pauses";
import { scatter } from "./scatter";
import { forget, state } from "./state";
import { themeButton } from "./theme";
import { topology } from "./topology/view";
// Last, so that it has the last word on the charts' style.
import "./style.css";

const root = document.getElementById("pictures")!;
const contents = document.getElementById("contents")!;

function section(title: string, fill: (cards: HTMLElement) => void): void {
  const cards = element("div", { class: "cards" });
  const place = element("section", { id: title.toLowerCase().replaceAll(" ", "-") }, element("h2", {}, title), cards);
  root.append(place);
  fill(cards);
  if (!cards.childElementCount) place.remove();
}

function draw(): void {
  const scroll = scrollY;
  forget();
  root.textContent = "";
  section("Flows", (cards) => {
    flows(cards, draw);
    if (!comparing) scatter(cards);
  });
  if (comparing) {
    section("Side by side", (cards) => {
      evenness(cards);
      overlays(cards);
    });
    const options = runs.map((r, i): [number, string] => [i, r.name]);
    root.append(element("h2", { id: "one" }, "One run in detail"),
      choice("Run", options, state.run, (v) => { state.run = Number(v); state.selected = null; draw(); }));
  }
  section("Fabric", (cards) => {
    topology(cards);
    inspector(cards);
  });
  if (comparing) section("Single flows", scatter);
  section("Paths", (cards) => { paths(cards); });
  section("Over time", overTime);
  section("Pauses", pauses);
  section("Jobs", jobs);
  section("Events", events);
  drawWaiting();
  list();
  scrollTo(0, scroll);
  document.documentElement.dataset.drawn = String(document.querySelectorAll(".card").length);
}

// Links to the sections, and the theme.
const theme = themeButton(() => draw());
function list(): void {
  const links = [...document.querySelectorAll<HTMLElement>("main section[id]")].map((s) =>
    element("a", { href: "#" + s.id }, s.querySelector("h2")!.textContent!));
  contents.replaceChildren(...links, theme);
}

draw();
let drawnWidth = innerWidth, waiting: ReturnType<typeof setTimeout> | undefined;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (innerWidth !== drawnWidth) {
      drawnWidth = innerWidth;
      draw();
    }
  }, 150);
});
