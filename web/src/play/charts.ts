// Charts below the network: messages as they finish, the order of packets at a receiver, the longest queue.
import { resize } from "../dom";
import { instants, show, ticks } from "../format";
import { css } from "../theme";
import { INSTANTS, type Film } from "./film";

const LEFT = 8, RIGHT = 8, BELOW = 18;
const LATE = 4, TRIMMED = 1;
const ns = (ps: number): number => ps / 1e3;

interface Frame { g: CanvasRenderingContext2D; width: number; height: number; x: (t: number) => number }

function begin(canvas: HTMLCanvasElement, height: number, span: number, t: number): Frame {
  const width = Math.max(260, canvas.parentElement!.clientWidth);
  const g = resize(canvas, width, height), x = (at: number) => LEFT + (at / span) * (width - LEFT - RIGHT);
  g.font = "11px system-ui, sans-serif";
  for (const { at, label } of instants(0, ns(span), Math.floor(width / 90))) {
    g.strokeStyle = css("--grid");
    g.beginPath(); g.moveTo(x(at * 1e3), 0); g.lineTo(x(at * 1e3), height - BELOW); g.stroke();
    g.fillStyle = css("--soft");
    g.textAlign = x(at * 1e3) < 20 ? "left" : x(at * 1e3) > width - 30 ? "right" : "center";
    g.fillText(label, x(at * 1e3), height - 5);
  }
  if (t <= span) {
    g.strokeStyle = css("--soft");
    g.beginPath(); g.moveTo(x(t), 0); g.lineTo(x(t), height - BELOW); g.stroke();
  }
  return { g, width, height, x };
}

/** Each message a row, from its start to its end or to now; the finish lines of this run and of the other. */
export function race(canvas: HTMLCanvasElement, film: Film, other: Film | undefined, colour: string, otherColour: string, span: number, t: number): void {
  const { g, height, width, x } = begin(canvas, 130, span, t), rows = film.byFinish.length, room = height - BELOW - 4;
  const most = Math.min(rows, Math.floor(room / 2)), step = room / most, thick = Math.max(1, Math.min(9, step * 0.72));
  for (let row = 0; row < most; row++) {
    const flow = film.byFinish[Math.floor((row / most) * rows)], y = 2 + row * step, over = flow.finish <= t;
    if (flow.start > t) continue;
    g.fillStyle = colour;
    g.globalAlpha = over ? 1 : 0.38;
    g.fillRect(x(flow.start), y, Math.max(1, x(over ? flow.finish : t) - x(flow.start)), thick);
  }
  g.globalAlpha = 1;
  const line = (at: number, stroke: string, dash: number[], text: string, y: number) => {
    g.strokeStyle = stroke;
    g.lineWidth = 2;
    g.setLineDash(dash);
    g.beginPath(); g.moveTo(x(at), 0); g.lineTo(x(at), height - BELOW); g.stroke();
    g.setLineDash([]);
    g.lineWidth = 1;
    const right = x(at) > width * 0.6;
    g.textAlign = right ? "right" : "left";
    g.fillStyle = css("--card");
    const wide = g.measureText(text).width;
    g.globalAlpha = 0.85;
    g.fillRect(x(at) + (right ? -wide - 8 : 4), y - 10, wide + 4, 14);
    g.globalAlpha = 1;
    g.fillStyle = stroke;
    g.fillText(text, x(at) + (right ? -6 : 6), y);
  };
  const finished = (f: Film) => f.finish > 0 && f.finish <= t && f.done(f.end) === f.flows.length;
  if (other && finished(other)) line(other.finish, otherColour, [4, 4], `${other.name} ${show("time_ns", ns(other.finish))}`, 26);
  if (finished(film)) line(film.finish, colour, [], `all done: ${show("time_ns", ns(film.finish))}`, 12);
}

/** Packets of one sender at its receiver: time across, packet number up. Late ones stand out. */
export function order(canvas: HTMLCanvasElement, film: Film, colour: string, pair: [number, number], span: number, t: number): { late: number; all: number } {
  const { g, height, x } = begin(canvas, 110, span, t), { at, pair: of, number, kind } = film.arrivals, wanted = pair[0] * 65_536 + pair[1];
  const mine: number[] = [];
  for (let i = 0; i < at.length; i++) if (of[i] === wanted && !(kind[i] & TRIMMED)) mine.push(i);
  let low = Infinity, high = 1, late = 0, all = 0;
  for (const i of mine) { low = Math.min(low, number[i]); high = Math.max(high, number[i]); }
  const y = (n: number) => height - BELOW - 4 - ((n - low) / Math.max(1, high - low)) * (height - BELOW - 10);
  for (const pass of [0, LATE]) {
    g.fillStyle = pass ? css("--mark") : colour;
    for (const i of mine) {
      if (at[i] > t || (kind[i] & LATE) !== pass) continue;
      all++;
      if (pass) late++;
      g.fillRect(x(at[i]) - 1.2, y(number[i]) - 1.2, pass ? 3 : 2.4, pass ? 3 : 2.4);
    }
  }
  return { late, all };
}

/** What each link between switches has carried, most first. Returns how much more than the mean the busiest has. */
export function loads(canvas: HTMLCanvasElement, film: Film, colour: string, most: number, t: number): number {
  const width = Math.max(260, canvas.parentElement!.clientWidth), height = 74, g = resize(canvas, width, height), bytes = film.loads(t);
  const step = (width - LEFT - RIGHT) / Math.max(1, bytes.length), mean = bytes.reduce((a, b) => a + b, 0) / Math.max(1, bytes.length);
  const y = (b: number) => height - 2 - (b / Math.max(1, most)) * (height - 8);
  g.fillStyle = colour;
  bytes.forEach((b, i) => g.fillRect(LEFT + i * step, y(b), Math.max(0.6, step * (step > 4 ? 0.8 : 1)), height - 2 - y(b)));
  g.strokeStyle = css("--text");
  g.setLineDash([4, 3]);
  g.beginPath(); g.moveTo(LEFT, y(mean)); g.lineTo(width - RIGHT, y(mean)); g.stroke();
  return mean > 0 ? bytes[0] / mean : 0;
}

/** The longest queue anywhere, over time. */
export function queue(canvas: HTMLCanvasElement, film: Film, colour: string, most: number, span: number, t: number): void {
  const { g, height, width, x } = begin(canvas, 90, span, t), y = (bytes: number) => height - BELOW - (bytes / most) * (height - BELOW - 12);
  g.textAlign = "right";
  for (const bytes of ticks(0, most, 2).slice(1)) {
    g.strokeStyle = css("--grid");
    g.beginPath(); g.moveTo(LEFT, y(bytes)); g.lineTo(width - RIGHT, y(bytes)); g.stroke();
    g.fillStyle = css("--soft");
    g.fillText(show("bytes", bytes), width - RIGHT - 2, y(bytes) - 2);
  }
  g.beginPath();
  g.moveTo(x(0), y(0));
  const step = film.end / INSTANTS;
  let last = 0;
  for (let k = 0; k <= INSTANTS && k * step <= t; k++) {
    last = film.peaks[k];
    g.lineTo(x(k * step), y(last));
  }
  g.strokeStyle = colour;
  g.lineWidth = 1.6;
  g.stroke();
  g.lineTo(x(Math.min(t, film.end)), y(last));
  g.lineTo(x(Math.min(t, film.end)), y(0));
  g.globalAlpha = 0.15;
  g.fillStyle = colour;
  g.fill();
  g.globalAlpha = 1;
  g.lineWidth = 1;
}
