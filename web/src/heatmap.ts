// Rows over time on a canvas.
import { element, tip } from "./dom";
import { digits, unitOf } from "./format";
import { css, heat } from "./theme";

interface Spec {
  label: string;
  times: number[];
  rows: { name: string; values: number[] }[];
  top: number;
  say: (row: number, instant: number) => string;
  choose?: (row: number) => void;
  marker?: () => number;
}

/** Draws it and returns how to draw it again. */
export function heatmap(parent: HTMLElement, width: number, spec: Spec): () => void {
  const { times, rows } = spec, n = times.length;
  const side = Math.max(1, Math.min(14, Math.floor(360 / rows.length)));
  const named = side >= 11, left = named ? 120 : 12, bottom = 26;
  const inner = Math.max(50, width - left - 12), height = rows.length * side;
  const picture = element("canvas", { tabindex: 0, role: "application", "aria-label": `${spec.label}. Arrow keys up and down choose a row.` });
  const ratio = Math.min(devicePixelRatio || 1, 2);
  [picture.width, picture.height] = [width * ratio, (height + bottom) * ratio];
  picture.style.width = width + "px";
  picture.style.height = height + bottom + "px";
  const g = picture.getContext("2d")!;
  g.scale(ratio, ratio);
  // A column an interval, which ends at its instant.
  const edge = (i: number) => left + (i < 0 ? 0 : (times[i] / times[n - 1]) * inner);
  let chosen = -1;
  const draw = () => {
    g.clearRect(0, 0, width, height + bottom);
    rows.forEach((row, r) => row.values.forEach((v, i) => {
      g.fillStyle = heat(spec.top > 0 ? v / spec.top : 0);
      g.fillRect(edge(i - 1), r * side, edge(i) - edge(i - 1) + 0.5, side);
    }));
    g.font = "11px system-ui, sans-serif";
    g.fillStyle = css("--soft");
    g.textBaseline = "middle";
    if (named) rows.forEach((row, r) => g.fillText(row.name, 0, (r + 0.5) * side, left - 6));
    const unit = unitOf("time_ns", times[n - 1]);
    for (let k = 0; k <= 4; k++) {
      g.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center";
      g.fillText(`${digits((times[n - 1] * k) / 4 / unit.scale, 3)} ${unit.name}`, left + (inner * k) / 4, height + 14);
    }
    g.textAlign = "left";
    g.strokeStyle = css("--mark");
    g.lineWidth = 2;
    if (chosen >= 0) g.strokeRect(left, chosen * side - 1, inner, side + 2);
    const at = spec.marker?.() ?? -1;
    if (at >= 0) g.strokeRect(edge(at - 1), 0, Math.max(2, edge(at) - edge(at - 1)), height);
  };
  const find = (e: MouseEvent): [number, number] | undefined => {
    const rect = picture.getBoundingClientRect();
    const row = Math.floor((e.clientY - rect.top) / side), x = e.clientX - rect.left;
    if (row < 0 || row >= rows.length || x < left || x > left + inner) return undefined;
    const i = times.findIndex((_, k) => edge(k) >= x);
    return [row, i < 0 ? n - 1 : i];
  };
  tip(picture, (e) => {
    const found = find(e);
    return found ? spec.say(...found) : "";
  });
  const choose = (row: number) => { chosen = row; draw(); spec.choose?.(row); };
  picture.addEventListener("click", (e) => {
    const found = find(e);
    if (found) choose(found[0]);
  });
  picture.addEventListener("keydown", (e) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (!step) return;
    e.preventDefault();
    choose(Math.max(0, Math.min(rows.length - 1, chosen + step)));
  });
  parent.append(picture);
  draw();
  return draw;
}
