// Rows over time on a canvas.
import { onZoom, pointAt, pointerLine, setZoom, zoom } from "./chart";
import type { Mark } from "./data";
import { element, shortened, tip } from "./dom";
import { exported } from "./export";
import { anchor, canvasAnchor, instants } from "./format";
import { css, heat } from "./theme";

interface Spec {
  label: string;
  /** Heading of its values in CSV. */
  column: string;
  times: number[];
  rows: { name: string; values: number[] }[];
  top: number;
  say: (row: number, instant: number) => string;
  choose?: (row: number) => void;
  marker?: () => number;
  faults: Mark[];
}

const FONT = "11px system-ui, sans-serif";

/** Draws it and returns how to draw it again. */
export function heatmap(parent: HTMLElement, width: number, spec: Spec): () => void {
  const { times, rows } = spec, n = times.length;
  const side = Math.max(1, Math.min(14, Math.floor(360 / rows.length)));
  // Where rows are lower than a name, only some of them have one.
  const every = Math.ceil(11 / side), named = (row: number) => row % every === Math.floor(every / 2), bottom = 26, height = rows.length * side;
  const picture = element("canvas", { tabindex: 0, role: "application", "aria-label": `${spec.label}. Arrow keys up and down choose a row, plus and minus zoom.` });
  const ratio = Math.min(devicePixelRatio || 1, 2);
  [picture.width, picture.height] = [width * ratio, (height + bottom) * ratio];
  picture.style.width = width + "px";
  picture.style.height = height + bottom + "px";
  const g = picture.getContext("2d")!;
  g.scale(ratio, ratio);
  g.font = FONT;
  const longest = rows.reduce((most, row) => Math.max(most, g.measureText(row.name).width), 0);
  const left = Math.min(Math.max(60, longest + 8), width * 0.4), inner = Math.max(50, width - left - 12);
  const names = rows.map((row) => shortened(g, row.name, left - 6));
  // Names that there are to see, for tests: canvases tell nothing.
  picture.dataset.named = String(rows.filter((_, row) => named(row)).length);
  const part = (): [number, number] => zoom.part ?? [0, times[n - 1]];
  const x = (ns: number) => left + ((ns - part()[0]) / (part()[1] - part()[0])) * inner;
  const time = (px: number) => part()[0] + ((px - left) / inner) * (part()[1] - part()[0]);
  // A column an interval, which ends at its instant.
  const edge = (i: number) => x(i < 0 ? 0 : times[i]);
  let dragged: [number, number] | null = null;
  let chosen = -1;
  const draw = () => {
    g.clearRect(0, 0, width, height + bottom);
    g.save();
    g.beginPath(); g.rect(left, 0, inner, height); g.clip();
    const [from, to] = part();
    for (let i = 0; i < n; i++) {
      if (times[i] < from || (i > 0 && times[i - 1] > to)) continue;
      const [start, end] = [edge(i - 1), edge(i)];
      rows.forEach((row, r) => {
        g.fillStyle = heat(spec.top > 0 ? row.values[i] / spec.top : 0);
        g.fillRect(start, r * side, end - start + 0.5, side);
      });
    }
    g.lineWidth = 1.5;
    for (const fault of spec.faults) {
      g.strokeStyle = css(fault.repair ? "--good" : "--bad");
      g.setLineDash(fault.repair ? [6, 4] : []);
      g.beginPath(); g.moveTo(x(fault.time_ns), 0); g.lineTo(x(fault.time_ns), height); g.stroke();
    }
    g.setLineDash([]);
    if (dragged) {
      g.fillStyle = css("--accent");
      g.globalAlpha = 0.25;
      g.fillRect(Math.min(...dragged), 0, Math.abs(dragged[1] - dragged[0]), height);
      g.globalAlpha = 1;
    }
    g.strokeStyle = css("--mark");
    g.lineWidth = 2;
    const at = spec.marker?.() ?? -1;
    if (at >= 0) g.strokeRect(edge(at - 1), 0, Math.max(2, edge(at) - edge(at - 1)), height);
    if (chosen >= 0) g.strokeRect(left, chosen * side - 1, inner, side + 2);
    g.restore();
    g.font = FONT;
    g.fillStyle = css("--soft");
    g.textBaseline = "middle";
    names.forEach((name, r) => { if (named(r)) g.fillText(name, 0, (r + 0.5) * side); });
    for (const { at, label } of instants(from, to, inner / 90)) {
      g.textAlign = canvasAnchor(anchor(x(at), g.measureText(label).width, left, width));
      g.fillText(label, x(at), height + 14);
    }
    g.textAlign = "left";
  };
  const find = (e: MouseEvent): [number, number] | undefined => {
    const rect = picture.getBoundingClientRect();
    const row = Math.floor((e.clientY - rect.top) / side), x = e.clientX - rect.left;
    if (row < 0 || row >= rows.length || x < left || x > left + inner) return undefined;
    const i = times.findIndex((_, k) => edge(k) >= x);
    return [row, i < 0 ? n - 1 : i];
  };
  tip(picture, (e) => {
    const found = dragged ? undefined : find(e);
    return found ? spec.say(...found) : "";
  });
  const across = (e: MouseEvent) => Math.max(left, Math.min(left + inner, e.clientX - picture.getBoundingClientRect().left));
  picture.addEventListener("pointerdown", (e) => { dragged = [across(e), across(e)]; });
  picture.addEventListener("pointermove", (e) => {
    pointAt(time(across(e)));
    if (!dragged) return;
    if (e.buttons) dragged[1] = across(e);
    else dragged = null;
    draw();
  });
  picture.addEventListener("pointerleave", () => { pointAt(undefined); if (dragged) { dragged = null; draw(); } });
  picture.addEventListener("dblclick", () => setZoom(undefined));
  const choose = (row: number) => { chosen = row; draw(); spec.choose?.(row); };
  picture.addEventListener("pointerup", (e) => {
    const ends = dragged, found = find(e);
    dragged = null;
    if (ends && Math.abs(ends[1] - ends[0]) > 6) setZoom([time(Math.min(...ends)), time(Math.max(...ends))]);
    else if (found) choose(found[0]);
  });
  picture.addEventListener("keydown", (e) => {
    const [from, to] = part(), middle = (from + to) / 2;
    if (e.key === "+" || e.key === "=") setZoom([middle - (to - from) / 4, middle + (to - from) / 4]);
    else if (e.key === "-") setZoom(2 * (to - from) >= times[n - 1] ? undefined : [Math.max(0, middle - (to - from)), middle + (to - from)]);
    const step = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (!step) return;
    e.preventDefault();
    choose(Math.max(0, Math.min(rows.length - 1, chosen + step)));
  });
  const stage = element("div", { class: "strip" }, picture);
  parent.append(stage);
  pointerLine(stage, (at) => (at >= part()[0] && at <= part()[1] ? x(at) : undefined));
  onZoom(draw, stage);
  draw();
  exported(parent, picture, { name: `${spec.label} over time`, draw, numbers: () => ({
    head: ["row", "time (ns)", spec.column], rows: rows.flatMap((row) => times.map((at, i) => [row.name, at, row.values[i]])),
  }) });
  return draw;
}
