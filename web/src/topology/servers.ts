// Servers: a grid with a column a server and a row a lane (a rail of a plane), and one server with its GPUs, NVLink, NICs and leaves.
import type { Fabric, Servers } from "../data";
import { canvas, element, svg, tip } from "../dom";
import { column as heading, exported } from "../export";
import { show } from "../format";
import { drawn, metrics, on, select, serversOf, shown, state, told } from "../state";
import { css, heat } from "../theme";

const columnOf = (s: Servers, server: number): number => Math.floor((server * s.columns) / s.servers);
const firstOf = (s: Servers, column: number): number => Math.ceil((column * s.servers) / s.columns);
const cellOf = (s: Servers, column: number, lane: number): number => column * s.lanes.length + lane;

export function serverGrid(parent: HTMLElement, g: Fabric, s: Servers, width: number): void {
  const each = s.columns === s.servers ? "a server" : `${Math.ceil(s.servers / s.columns)} servers or fewer`;
  const note = `Servers: a column is ${each}, a row a lane of their NICs; the two halves of a cell are its links up (left) and down (right).`
    + (s.scale_up ? " The last row is how busy the scale-up network (NVLink) was in the whole run." : "") + " Choose a cell.";
  parent.append(element("p", { class: "note" }, note));
  grid(parent, s, width);
  one(parent, g, s, width);
}

function grid(parent: HTMLElement, s: Servers, width: number): void {
  const left = width < 600 ? 64 : 118, lanes = s.lanes.length, gap = 4, top = 16;
  const high = Math.max(3, Math.min(16, Math.floor(420 / lanes)));
  const side = Math.min(28, (width - left) / s.columns);
  const yOf = (lane: number) => top + lane * high + Math.floor(lane / s.lanes_of_plane) * gap;
  const below = yOf(lanes - 1) + high + gap;
  const [picture, ctx] = canvas(width, below + (s.scale_up ? high + 2 : 0), "");
  picture.setAttribute("role", "application");
  picture.setAttribute("tabindex", "0");
  picture.id = "servers";
  picture.setAttribute("aria-label", `Servers and lanes: ${s.servers} servers, ${s.lanes.join("; ")}. Arrow keys go from cell to cell.`);
  // For tests: where a cell is.
  window.pathweave = { ...window.pathweave!, cells: (column, lane) => ({ x: left + column * side, y: yOf(lane) }) };
  const draw = () => {
    const { at, top: most, colour } = shown();
    const strength = (row: number | null) => (row == null ? undefined : most > 0 ? at(row) / most : 0);
    ctx.clearRect(0, 0, width, below + high + 2);
    const fill = (value: number | undefined, x: number, y: number, w: number) => {
      ctx.fillStyle = value === undefined ? css("--empty") : colour(value);
      ctx.fillRect(x, y, w, high - 1);
    };
    const line = side >= 6 ? 1 : 0;
    for (let column = 0; column < s.columns; column++) {
      const x = left + column * side, half = (side - line) / 2;
      for (let lane = 0; lane < lanes; lane++) {
        const cell = cellOf(s, column, lane);
        fill(strength(s.up[cell]), x, yOf(lane), half);
        fill(strength(s.down[cell]), x + half, yOf(lane), half);
      }
      if (s.scale_up) {
        ctx.fillStyle = heat(s.scale_up[column]);
        ctx.fillRect(x, below, side - line, high - 1);
      }
    }
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    ctx.fillStyle = css("--soft");
    // Every name where there is room, else that of the first lane of some.
    const step = Math.ceil(12 / high);
    for (let lane = 0; lane < lanes; lane += step) ctx.fillText(left < 100 ? brief(s.lanes[lane]) : s.lanes[lane], 0, yOf(lane) + high / 2, left - 4);
    if (s.scale_up) ctx.fillText("scale-up", 0, below + high / 2, left - 4);
    const wide = ctx.measureText(`srv${s.servers}`).width + 8, every = Math.ceil(wide / side);
    for (let column = 0; column < s.columns; column += every) {
      if (column === 0 || left + column * side + wide - 8 < width) ctx.fillText(`srv${firstOf(s, column)}`, left + column * side, 7);
    }
    ctx.strokeStyle = css("--mark");
    ctx.lineWidth = 2;
    const column = columnOf(s, state.server);
    ctx.strokeRect(left + column * side - 1.5, top - 2, side + 2, below - top + (s.scale_up ? high : 0) + 2);
    const chosen = drawn();
    const cell = chosen?.kind === "row" ? Math.max(s.up.indexOf(chosen.row), s.down.indexOf(chosen.row)) : -1;
    if (cell >= 0) ctx.strokeRect(left + Math.floor(cell / lanes) * side - 1, yOf(cell % lanes) - 1, side + 1, high + 1);
  };
  const find = (e: MouseEvent): { column: number; lane: number; down: boolean } | undefined => {
    const rect = picture.getBoundingClientRect(), x = e.clientX - rect.left - left, y = e.clientY - rect.top;
    const column = Math.floor(x / side);
    if (column < 0 || column >= s.columns) return undefined;
    const lane = s.lanes.findIndex((_, l) => y >= yOf(l) && y < yOf(l) + high);
    return { column, lane, down: x - column * side > side / 2 };
  };
  const choose = (column: number, lane: number, down: boolean) => {
    state.server = firstOf(s, column);
    const row = lane < 0 ? null : (down ? s.down : s.up)[cellOf(s, column, lane)];
    select(row == null ? { kind: "server", server: state.server } : { kind: "row", row });
  };
  tip(picture, (e) => {
    const at = find(e);
    if (!at) return "";
    const names = serversOf(s, at.column);
    if (at.lane < 0) return s.scale_up ? `${names}: scale-up network ${show("percent", s.scale_up[at.column])} busy` : names;
    const cell = cellOf(s, at.column, at.lane), row = (at.down ? s.down : s.up)[cell];
    return `${names}, ${s.lanes[at.lane]} ${at.down ? "down from" : "up to"} ${s.leaves[cell]}: ${row == null ? "no link" : told(row)}`;
  });
  picture.addEventListener("click", (e) => {
    const at = find(e);
    if (at) choose(at.column, at.lane, at.down);
  });
  picture.addEventListener("keydown", (e) => {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key] ?? [0, 0];
    if (!dx && !dy) return;
    e.preventDefault();
    const chosen = drawn(), cell = chosen?.kind === "row" ? Math.max(s.up.indexOf(chosen.row), s.down.indexOf(chosen.row)) : -1;
    const lane = cell < 0 ? 0 : (cell % lanes) + dy, column = cell < 0 ? columnOf(s, state.server) : Math.floor(cell / lanes) + dx;
    choose(Math.max(0, Math.min(s.columns - 1, column)), Math.max(0, Math.min(lanes - 1, lane)), false);
  });
  on("look", draw);
  on("selected", draw);
  draw();
  parent.append(element("div", { class: "servers" }, picture));
  exported(parent, picture, { name: "Servers and lanes", draw, numbers: () => {
    const { at } = shown(), { title, quantity } = metrics[state.metric], value = (row: number | null) => (row == null ? null : at(row));
    const rows = Array.from({ length: s.columns }, (_, column) => s.lanes.map((name, lane) => {
      const cell = cellOf(s, column, lane);
      return [serversOf(s, column), name, s.leaves[cell], value(s.up[cell]), value(s.down[cell])];
    }));
    return { head: ["servers", "lane", "leaf", heading(`${title} up`, quantity), heading(`${title} down`, quantity)], rows: rows.flat() };
  } });
}

const brief = (lane: string): string => lane.replace(/plane (\d+)/, "p$1").replace("rail ", "r").replace("port ", ":").replaceAll(", ", " ");

// One server: leaves above, then NICs and GPUs, NVLink below. It can be folded.
function one(parent: HTMLElement, g: Fabric, s: Servers, width: number): void {
  const words = element("summary");
  const number = element("input", { type: "number", min: 0, max: s.servers - 1, id: "server", "aria-label": "Server" });
  const stage = element("div");
  const box = element("details", { open: true, id: "one-server" }, words,
    element("label", { class: "choice" }, `Server, 0 to ${s.servers - 1}`, number), stage);
  number.addEventListener("change", () => {
    const server = Math.max(0, Math.min(s.servers - 1, Math.round(Number(number.value) || 0)));
    select({ kind: "server", server });
  });
  const draw = () => {
    number.value = String(state.server);
    words.textContent = described(s, state.server);
    const shares = s.columns < s.servers ? [element("p", { class: "note" }, `Colours are of ${serversOf(s, columnOf(s, state.server))}, which share a column.`)] : [];
    const drawing = picture(g, s, state.server, width - 30);
    stage.replaceChildren(...shares, drawing);
    exported(stage, drawing, { name: `Server ${state.server}`, numbers: () => {
      const { at } = shown(), { title, quantity } = metrics[state.metric], value = (row: number | null) => (row == null ? null : at(row));
      const rows = s.lanes.map((name, lane) => {
        const cell = cellOf(s, columnOf(s, state.server), lane);
        return [name, s.leaves[cell], value(s.up[cell]), value(s.down[cell])];
      });
      return { head: ["lane", "leaf", heading(`${title} up`, quantity), heading(`${title} down`, quantity)], rows };
    } });
  };
  on("look", draw);
  on("selected", draw);
  draw();
  parent.append(box);
}

function described(s: Servers, server: number): string {
  const joins = s.domain ? `; a scale-up network of ${show("rate_bps", s.scale_up_bps)} a GPU joins ${s.domain} GPUs${domainOf(s, server)}` : "";
  const ports = s.nic_ports > 1 ? ` of ${s.nic_ports} ports${s.planes > 1 ? ", each in its plane" : ""}` : "";
  return `srv${server}: ${s.gpus} GPU${s.gpus > 1 ? "s" : ""}, ${s.nics} NIC${s.nics > 1 ? "s" : ""}${ports}${joins}`;
}

// The servers of a domain that spans several.
function domainOf(s: Servers, server: number): string {
  const span = Math.floor((s.domain ?? 0) / s.gpus);
  if (span <= 1) return "";
  const first = Math.floor(server / span) * span;
  return ` of srv${first} to srv${first + span - 1}`;
}

function picture(g: Fabric, s: Servers, server: number, width: number): SVGElement {
  const { at, top, colour } = shown(), column = columnOf(s, server);
  const drawing = svg("svg", { role: "img", class: "server", "aria-label": described(s, server) });
  const add = (tag: string, attributes: Record<string, string | number>, text = "", says = ""): SVGElement => {
    const e = svg(tag, attributes);
    if (text) e.textContent = text;
    if (says) e.append(Object.assign(svg("title"), { textContent: says }));
    drawing.append(e);
    return e;
  };
  const lanes = s.lanes.length, room = width / lanes, upright = room < 58;
  const leafHigh = upright ? 72 : 22, linksHigh = 64, y = { nic: leafHigh + linksHigh, gpu: leafHigh + linksHigh + 40, link: leafHigh + linksHigh + 86 };
  const perNic = s.nics ? width / s.nics : width, perGpu = width / s.gpus;
  // Lanes in the order of NICs, so that the ports of one stand side by side.
  const ports = lanes / Math.max(1, s.nics);
  const xOf = (lane: number) => {
    const nic = s.planes > 1 ? lane % s.nics : Math.floor(lane / s.nic_ports), port = s.planes > 1 ? Math.floor(lane / s.nics) : lane % s.nic_ports;
    return (nic * ports + port + 0.5) * room;
  };
  for (let lane = 0; lane < lanes; lane++) {
    const cell = cellOf(s, column, lane), x = xOf(lane);
    ([[s.up[cell], -2.5, "up"], [s.down[cell], 2.5, "down"]] as const).forEach(([row, by, way]) => {
      if (row == null) return;
      const stroke = colour(top > 0 ? at(row) / top : 0);
      add("line", { x1: x + by, x2: x + by, y1: leafHigh, y2: y.nic, stroke, "stroke-width": Math.min(4, room / 5), class: "choosable lane" },
        "", `${s.lanes[lane]} ${way}: ${told(row)}`).addEventListener("click", () => select({ kind: "row", row }));
    });
  }
  // Lanes side by side at one leaf share its box.
  const order = s.lanes.map((_, lane) => lane).sort((a, b) => xOf(a) - xOf(b));
  const leafOf = (lane: number) => s.leaves[cellOf(s, column, lane)];
  for (let first = 0; first < lanes;) {
    const leaf = leafOf(order[first]);
    let last = first;
    while (last + 1 < lanes && leafOf(order[last + 1]) === leaf) last++;
    const x1 = xOf(order[first]) - room * 0.45, wide = xOf(order[last]) + room * 0.45 - x1, x = x1 + wide / 2;
    add("rect", { x: x1, y: 1, width: wide, height: leafHigh - 2, rx: 4, class: "leaf" }, "", `${order.slice(first, last + 1).map((lane) => s.lanes[lane]).join("; ")}: ${leaf}`);
    const turn: Record<string, string | number> = upright && wide < 58 ? { transform: `translate(${x + 4} ${leafHigh - 6}) rotate(-90)` } : { x, y: leafHigh / 2 + 4, "text-anchor": "middle" };
    if (wide >= 9) add("text", { ...turn, class: "strong" }, leaf);
    first = last + 1;
  }
  // PCIe between NICs and GPUs.
  const joints = Math.max(s.nics, s.gpus);
  for (let i = 0; i < joints; i++) {
    const x = ((i + 0.5) / joints) * width;
    add("line", { x1: x, x2: x, y1: y.nic + 26, y2: y.gpu, class: "pcie" });
  }
  for (let nic = 0; nic < s.nics; nic++) {
    add("rect", { x: nic * perNic + 3, y: y.nic, width: perNic - 6, height: 26, rx: 4, class: "nic" });
    if (perNic > 14) add("text", { x: (nic + 0.5) * perNic, y: y.nic + 17, "text-anchor": "middle" }, perNic > 40 ? `NIC ${nic}` : String(nic));
  }
  for (let gpu = 0; gpu < s.gpus; gpu++) {
    const node = server * s.gpus + gpu, used = s.scale_up_of_gpu?.[node];
    const says = `srv${server}.gpu${gpu}${used === undefined ? "" : `: scale-up network ${show("percent", used)} busy`}`;
    const pick = () => select(g.blocks ? (g.blocks.index ? { kind: "member", node } : { kind: "server", server }) : { kind: "node", node });
    add("rect", { x: gpu * perGpu + 3, y: y.gpu, width: perGpu - 6, height: 34, rx: 4, class: "gpu choosable" }, "", says).addEventListener("click", pick);
    if (perGpu > 14) add("text", { x: (gpu + 0.5) * perGpu, y: y.gpu + 21, "text-anchor": "middle", class: "strong" }, perGpu > 40 ? `gpu${gpu}` : String(gpu));
    if (!s.domain) continue;
    const fill = used === undefined ? css("--empty") : heat(used);
    add("rect", { x: (gpu + 0.5) * perGpu - 3, y: y.gpu + 34, width: 6, height: y.link - y.gpu - 34, fill });
  }
  if (s.domain) {
    const fill = s.scale_up ? heat(s.scale_up[column]) : css("--empty");
    add("rect", { x: 0, y: y.link, width, height: 12, rx: 4, fill, class: "scale-up" }, "", `scale-up network of ${s.domain} GPUs`);
    const use = s.scale_up ? `: ${show("percent", s.scale_up[column])} busy` : "";
    add("text", { x: 0, y: y.link + 28 }, `scale-up network of ${s.domain} GPUs${use}`);
  }
  const high = y.link + (s.domain ? 34 : 0);
  drawing.setAttribute("viewBox", `0 0 ${width} ${high}`);
  drawing.setAttribute("style", `max-width: ${width}px`);
  return drawing;
}
