// Single flows: size against slowdown, and the slowest in a table.
import { canvas, card, element, table, tip } from "./dom";
import { later, logSplits } from "./chart";
import { exported } from "./export";
import { digits, show } from "./format";
import { groupColour, on, run, select, state } from "./state";
import { css } from "./theme";
import { flowEnds } from "./topology/names";

const LEFT = 52, BOTTOM = 34, TOP = 10, RIGHT = 12, HEIGHT = 300;

export function scatter(cards: HTMLElement): void {
  const f = run().flows;
  const shown = f.flow.map((_, i) => i).filter((i) => f.slowdown[i] != null && f.size_bytes[i] > 0);
  if (!shown.length) return;
  const part = f.flow.length < f.of
    ? `${show("count", f.flow.length)} of ${show("count", f.of)} flows: the ${show("count", f.slowest)} slowest, and others picked at random with a fixed seed.`
    : `All ${show("count", f.of)} flows.`;
  const times = run().hosts.times_recorded;
  const stands = times > 1 ? ` Each is of a rank that was simulated, and stands for ${show("count", times)} flows.` : "";
  const box = card(cards, "Single flows", `${part}${stands} Choose one to see it in detail.`);
  box.append(finder());
  later(() => picture(box, shown));
  slowest(cards);
}

// A field in which the number of a flow can be typed; of a flow that is not here the page says where it is.
function finder(): HTMLElement {
  const f = run().flows, answer = element("output", { class: "note", id: "flow-answer" });
  const input = element("input", { type: "number", min: 0, max: f.of - 1, placeholder: "number", id: "flow" });
  input.addEventListener("change", () => {
    const number = Number(input.value), index = f.flow.indexOf(number);
    answer.textContent = "";
    if (input.value === "") return;
    if (index >= 0) {
      select({ kind: "flow", index });
      document.getElementById("chosen")?.scrollIntoView();
    } else if (!Number.isInteger(number) || number < 0 || number >= f.of) {
      answer.textContent = `There is no flow ${input.value}: flows are numbered from 0 to ${f.of - 1}.`;
    } else {
      answer.textContent = `Flow ${number} is not in this page, which has ${show("count", f.flow.length)} of ${show("count", f.of)}. Its figures are the row of flows.parquet `
        + `with flow = ${number}. To record its rate and paths over time: pathweave run scenario.toml --set 'observe.follow=[${number}]'. The page of that run has them.`;
    }
  });
  return element("div", { class: "bar" }, element("label", { class: "choice" }, "Find flow", input), answer);
}

function picture(box: HTMLElement, shown: number[]): void {
  const f = run().flows;
  const width = Math.max(260, box.clientWidth - 30);
  const [image, g] = canvas(width, HEIGHT, "Size and slowdown of single flows");
  const extent = (of: number[]): [number, number] => [of.reduce((a, b) => Math.min(a, b)) / 1.3, of.reduce((a, b) => Math.max(a, b)) * 1.3];
  const [x0, x1] = extent(shown.map((i) => f.size_bytes[i]));
  const [y0, y1] = extent(shown.map((i) => f.slowdown[i]!));
  const place = (v: number, [from, to]: [number, number]) => Math.log(v / from) / Math.log(to / from);
  const x = (v: number) => LEFT + place(v, [x0, x1]) * (width - LEFT - RIGHT);
  const y = (v: number) => HEIGHT - BOTTOM - place(v, [y0, y1]) * (HEIGHT - BOTTOM - TOP);

  const draw = () => {
    g.clearRect(0, 0, width, HEIGHT);
    g.font = "12px system-ui, sans-serif";
    g.strokeStyle = css("--grid");
    g.fillStyle = css("--soft");
    const line = (a: number, b: number, c: number, d: number) => { g.beginPath(); g.moveTo(a, b); g.lineTo(c, d); g.stroke(); };
    g.textAlign = "center";
    let free = 0;
    for (const v of logSplits(x0, x1)) {
      line(x(v), TOP, x(v), HEIGHT - BOTTOM);
      const text = show("bytes", v), half = g.measureText(text).width / 2 + 6;
      if (x(v) - half < free || x(v) + half > width) continue;
      g.fillText(text, x(v), HEIGHT - BOTTOM + 16);
      free = x(v) + half;
    }
    g.textAlign = "right";
    for (const v of logSplits(y0, y1)) {
      line(LEFT, y(v), width - RIGHT, y(v));
      g.fillText(digits(v), LEFT - 6, y(v) + 4);
    }
    g.textAlign = "right";
    g.fillText("Message size", width - RIGHT, HEIGHT - 4);
    g.save();
    g.translate(12, HEIGHT / 2);
    g.rotate(-Math.PI / 2);
    g.textAlign = "center";
    g.fillText("Slowdown", 0, 0);
    g.restore();
    for (const i of [...shown].reverse()) mark(g, f.group[i], x(f.size_bytes[i]), y(f.slowdown[i]!), 2.6);
    const s = state.selected;
    if (s?.kind === "flow" && f.slowdown[s.index] != null) {
      g.strokeStyle = css("--text");
      g.lineWidth = 2;
      g.beginPath();
      g.arc(x(f.size_bytes[s.index]), y(f.slowdown[s.index]!), 8, 0, 7);
      g.stroke();
      g.lineWidth = 1;
    }
  };
  const nearest = (e: MouseEvent): number | undefined => {
    const rect = image.getBoundingClientRect();
    const [px, py] = [e.clientX - rect.left, e.clientY - rect.top];
    let best: number | undefined, distance = 12 * 12;
    for (const i of shown) {
      const d = (x(f.size_bytes[i]) - px) ** 2 + (y(f.slowdown[i]!) - py) ** 2;
      if (d < distance) [best, distance] = [i, d];
    }
    return best;
  };
  tip(image, (e) => {
    const i = nearest(e);
    return i === undefined ? "" : `flow ${f.flow[i]}: ${show("bytes", f.size_bytes[i])} in ${show("time_ns", f.fct_ns[i])}, slowdown ${digits(f.slowdown[i]!)}`;
  });
  image.addEventListener("click", (e) => {
    const i = nearest(e);
    if (i !== undefined) select({ kind: "flow", index: i });
  });
  box.append(image);
  if (run().groups.length > 1) {
    const names = run().groups.slice(0, 12);
    const legend = document.createElement("p");
    legend.className = "note";
    names.forEach((name, i) => {
      const sign = element("span", { "aria-hidden": "true" }, "●■▲◆"[i % 4]);
      sign.style.color = groupColour(run(), i);
      legend.append(sign, ` ${name}  `);
    });
    box.append(legend);
  }
  draw();
  exported(box, image, { name: "Single flows", draw, numbers: () => ({
    head: ["flow", "group", "size (bytes)", "completion time (ns)", "slowdown"],
    rows: shown.map((i) => [f.flow[i], run().groups[f.group[i]], f.size_bytes[i], f.fct_ns[i], f.slowdown[i]]),
  }), legend: () => run().groups.map((label, i) => ({ label, colour: groupColour(run(), i) })) });
  on("selected", draw);
}

// Groups differ in colour and in shape.
function mark(g: CanvasRenderingContext2D, group: number, x: number, y: number, r: number): void {
  g.fillStyle = groupColour(run(), group);
  g.globalAlpha = 0.65;
  g.beginPath();
  if (group % 4 === 0) g.arc(x, y, r, 0, 7);
  else if (group % 4 === 1) g.rect(x - r, y - r, 2 * r, 2 * r);
  else if (group % 4 === 2) { g.moveTo(x, y - r * 1.3); g.lineTo(x + r * 1.2, y + r); g.lineTo(x - r * 1.2, y + r); }
  else { g.moveTo(x, y - r * 1.4); g.lineTo(x + r * 1.4, y); g.lineTo(x, y + r * 1.4); g.lineTo(x - r * 1.4, y); }
  g.fill();
  g.globalAlpha = 1;
}

function slowest(cards: HTMLElement): void {
  const f = run().flows;
  const bad = f.flow.map((_, i) => i).filter((i) => f.status[i] !== "finished");
  const rows = [...Array(Math.min(f.slowest, 10)).keys(), ...bad.slice(0, 5)].map((i) => ({
    cells: [`flow ${f.flow[i]}`, flowEnds(run().fabric, f.src_host[i], f.dst_host[i]), show("bytes", f.size_bytes[i]), show("time_ns", f.fct_ns[i]),
      f.slowdown[i] == null ? f.status[i] : digits(f.slowdown[i]!), String(f.dropped[i]), String(f.retransmitted[i]), String(f.ooo_degree[i])],
    choose: () => select({ kind: "flow", index: i }),
  }));
  if (!rows.length) return;
  const box = card(cards, "Slowest flows", "By slowdown; also some that did not finish, where there are any.");
  box.append(table(["Flow", "Hosts", "Size", "Time", "Slowdown", "Drops", "Again", "Out of order"], rows));
}
