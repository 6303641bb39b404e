// What every page of ours has: sections with cards, links to them, and a new drawing when theme or width change.
import { save } from "./address";
import { drawWaiting } from "./chart";
import { element } from "./dom";
import { themeButton } from "./theme";
// Last, so that it has the last word on the charts' style.
import "./style.css";

export const root = document.getElementById("pictures")!;
const contents = document.getElementById("contents")!;

/** A section with cards, if `fill` makes any. */
export function section(title: string, fill: (cards: HTMLElement) => void): void {
  const cards = element("div", { class: "cards" });
  const place = element("section", { id: title.toLowerCase().replaceAll(" ", "-") }, element("h2", {}, title), cards);
  root.append(place);
  fill(cards);
  if (!cards.childElementCount) place.remove();
}

/** Draws the page with `fill`, now and whenever it looks otherwise; returns how to draw it again. */
export function drawnBy(fill: () => void): () => void {
  const draw = (): void => {
    const scroll = scrollY;
    root.textContent = "";
    fill();
    drawWaiting();
    const links = [...document.querySelectorAll<HTMLElement>("main section[id]")].map((s) =>
      element("a", { href: "#" + s.id }, s.querySelector("h2")!.textContent!));
    contents.replaceChildren(...links, theme);
    scrollTo(0, scroll);
    save();
    document.documentElement.dataset.drawn = String(document.querySelectorAll(".card").length);
  };
  const theme = themeButton(draw);
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
  return draw;
}
