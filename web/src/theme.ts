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

// After viridis: even in brightness for every kind of colour vision. Turned round on a light page, so that what is busy
// stands out from the background on either.
const anchors = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const ramps = new Map<boolean, string[]>();

function ramp(isDark: boolean): string[] {
  let made = ramps.get(isDark);
  if (!made) {
    made = Array.from({ length: 256 }, (_, step) => {
      const x = (isDark ? step / 255 : 1 - step / 255) * (anchors.length - 1);
      const i = Math.min(Math.floor(x), anchors.length - 2);
      return `rgb(${anchors[i].map((a, k) => Math.round(a + (anchors[i + 1][k] - a) * (x - i))).join(",")})`;
    });
    ramps.set(isDark, made);
  }
  return made;
}

/** The colour of 0 to 1. */
export const heat = (value: number): string => ramp(dark())[Math.round(Math.min(Math.max(value, 0), 1) * 255)];
