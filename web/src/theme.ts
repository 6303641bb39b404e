// Colours: light, dark, and safe for every kind of colour vision.
import { button } from "./dom";

type Theme = "auto" | "light" | "dark";
const KEY = "pathweave-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  // Pages from a file may have no storage.
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

let theme = stored();
export const dark = (): boolean => (theme === "auto" ? system.matches : theme === "dark");
const apply = (): void => { document.documentElement.dataset.theme = dark() ? "dark" : "light"; };
apply();

/** A button that goes through automatic, light and dark. */
export function themeButton(redraw: () => void): HTMLButtonElement {
  const text = () => `Theme: ${theme}`;
  const b = button(text(), () => {
    theme = theme === "auto" ? "light" : theme === "light" ? "dark" : "auto";
    try { localStorage.setItem(KEY, theme); } catch { /* for this visit only, then */ }
    b.textContent = text();
    apply();
    redraw();
  }, { id: "theme" });
  system.addEventListener("change", () => { apply(); redraw(); });
  return b;
}

export const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (i: number): string => css("--c" + (i % 8));

// A colour on its way to another, `part` of 1.
const between = (from: string, to: string, part: number): string =>
  `rgb(${[1, 3, 5].map((i) => { const [a, b] = [from, to].map((hex) => parseInt(hex.slice(i, i + 2), 16)); return Math.round(a + (b - a) * part); }).join(",")})`;

/** The colour of an area, of up to 24 that differ: where a curve would be dashed, an area is darker, then paler. */
export const areaColour = (i: number): string => {
  const round = Math.floor(i / 8) % 3;
  return round ? between(colour(i), css(round === 1 ? "--text" : "--card"), 0.5) : colour(i);
};

// Even steps in brightness, for every kind of colour vision; what is busy stands out from the background. Dark pages have
// viridis, light ones a way from pale green to deep blue.
const anchors = {
  dark: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  light: [[224, 230, 208], [166, 214, 181], [86, 184, 190], [36, 132, 184], [34, 82, 150], [22, 32, 92]],
};
const ramps = new Map<boolean, string[]>();

function ramp(isDark: boolean): string[] {
  let made = ramps.get(isDark);
  if (!made) {
    made = Array.from({ length: 256 }, (_, step) => {
      const stops = anchors[isDark ? "dark" : "light"], x = (step / 255) * (stops.length - 1);
      const i = Math.min(Math.floor(x), stops.length - 2);
      return `rgb(${stops[i].map((a, k) => Math.round(a + (stops[i + 1][k] - a) * (x - i))).join(",")})`;
    });
    ramps.set(isDark, made);
  }
  return made;
}

/** The colour of 0 to 1. */
export const heat = (value: number): string => ramp(dark())[Math.round(Math.min(Math.max(value, 0), 1) * 255)];

/** The colour of -1 (less) to 1 (more), over that of nothing. */
export function diverging(value: number): string {
  const part = Math.round(Math.sqrt(Math.min(Math.abs(value), 1)) * 100);
  const mixed = (end: string) => [1, 3, 5].map((i) => {
    const [from, to] = [css("--empty"), css(end)].map((hex) => parseInt(hex.slice(i, i + 2), 16));
    return Math.round(from + ((to - from) * part) / 100);
  });
  return `rgb(${mixed(value < 0 ? "--c0" : "--c1").join(",")})`;
}
