// A small topology, link by link, on a canvas that can be zoomed, clicked and walked through with the keys.
import type { Fabric } from "../data";
import { button, element, resize, tip } from "../dom";
import { column, exported } from "../export";
import { show } from "../format";
import { drawn, metrics, on, outages, rowName, run, select, shown, state, told } from "../state";
import { css, heat } from "../theme";
import { labels, type Box } from "./labels";
import { isHost, layout, serverOf, type Half, type ServerBox } from "./layout";

declare global { interface Window { pathweave?: { labels: () => Box[]; cells?: (column: number, lane: number) => { x: number; y: number } } } }

/** Returns true if servers are drawn without their GPUs. */
export function graph(parent: HTMLElement, g: Fabric, width: number): boolean {
  const plan = layout(g, width, state.folded);
  const picture = element("canvas", { tabindex: 0, role: "application", "aria-label":
    "Topology. Arrow keys go from node to node, plus and minus zoom, escape takes the choice back." });
  const ctx = resize(picture, width, plan.height);
  const view = { scale: 1, x: 0, y: 0 };
  const toScreen = (x: number, y: number): [number, number] => [x * view.scale + view.x, y * view.scale + view.y];
  const thick = plan.halves.length > 800 ? 1.2 : plan.halves.length > 200 ? 2 : 3;
  let boxes: Box[] = [];
  window.pathweave = { labels: () => boxes };

  const chosenNodes = (): number[] => {
    const s = drawn(), f = run().flows;
    if (s?.kind === "node") return [s.node];
    if (s?.kind === "row") return s.row < g.from.length ? [g.from[s.row], g.to[s.row]] : [];
    return s?.kind === "flow" && !g.blocks ? [f.src_host[s.index], f.dst_host[s.index]] : [];
  };

  // A link of a higher rate than most is wider, one of a lower rate narrower. Blocks have different numbers of links.
  const rates = g.totals.rate_bps, sorted = plan.halves.map((h) => rates[h.row] ?? 0).filter((rate) => rate > 0).sort((a, b) => a - b);
  const usual = sorted[sorted.length >> 1];
  const breadth = (row: number): number => (g.blocks || !usual || !rates[row] ? 1 : Math.min(2.5, Math.max(0.5, Math.sqrt(rates[row] / usual))));

  const draw = () => {
    const { at, top, colour } = shown();
    const strength = (row: number) => (top > 0 ? at(row) / top : 0);
    ctx.clearRect(0, 0, width, plan.height);
    ctx.save();
    ctx.translate(view.x, view.y);
    ctx.scale(view.scale, view.scale);
    const line = (h: Half) => { ctx.beginPath(); ctx.moveTo(h.x1, h.y1); ctx.lineTo(h.x2, h.y2); ctx.stroke(); };
    // The busiest on top.
    const order = plan.halves.map((h): [number, Half] => [strength(h.row), h]).sort((a, b) => Math.abs(a[0]) - Math.abs(b[0]));
    plan.boxes.forEach((box) => server(box));
    for (const [value, half] of order) {
      ctx.lineWidth = (thick * breadth(half.row)) / Math.sqrt(view.scale);
      ctx.strokeStyle = colour(value);
      line(half);
    }
    // A link with a fault may be idle because of it.
    ctx.strokeStyle = css("--bad");
    ctx.lineWidth = Math.max(2, thick) / Math.sqrt(view.scale);
    ctx.setLineDash([4, 3]);
    plan.halves.filter((half) => outages(half.row).length > 0).forEach(line);
    ctx.setLineDash([]);
    for (const tile of plan.tiles) {
      const { x, y, r } = plan.places[tile.host];
      ctx.fillStyle = colour(strength(tile.up));
      ctx.fillRect(x - r, y - r, r, 2 * r);
      ctx.fillStyle = colour(strength(tile.down));
      ctx.fillRect(x, y - r, r, 2 * r);
      if (!outages(tile.up).length && !outages(tile.down).length) continue;
      ctx.strokeStyle = css("--bad");
      ctx.lineWidth = 1.5 / view.scale;
      ctx.strokeRect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
    }
    const s = drawn();
    if (s?.kind === "row") {
      ctx.strokeStyle = css("--mark");
      ctx.lineWidth = (thick + 4) / view.scale;
      plan.halves.filter((h) => h.row === s.row).forEach(line);
      ctx.strokeStyle = colour(strength(s.row));
      ctx.lineWidth = thick / view.scale;
      plan.halves.filter((h) => h.row === s.row).forEach(line);
    }
    const tiled = new Set(plan.tiles.map((t) => t.host));
    plan.places.forEach(({ x, y, r }, n) => {
      if (tiled.has(n) || r === 0) return;
      ctx.beginPath();
      if (isHost(g, n)) ctx.arc(x, y, Math.min(r, 5), 0, 7);
      else ctx.rect(x - r, y - r, 2 * r, 2 * r);
      const inside = plan.within.get(n);
      ctx.fillStyle = inside !== undefined ? colour(strength(inside)) : css(isHost(g, n) ? "--soft" : "--card");
      ctx.strokeStyle = css("--soft");
      ctx.lineWidth = 1.2 / view.scale;
      ctx.fill();
      ctx.stroke();
    });
    for (const n of chosenNodes()) {
      const place = plan.places[n];
      if (!place) continue;
      ctx.strokeStyle = css("--mark");
      ctx.lineWidth = 3 / view.scale;
      ctx.strokeRect(place.x - place.r - 3, place.y - place.r - 3, 2 * place.r + 6, 2 * place.r + 6);
    }
    const server_ = drawn();
    const box = server_?.kind === "server" ? plan.boxes[server_.server] : plan.folded ? plan.boxes[serverOf(g, chosenNodes()[0] ?? Infinity) ?? -1] : undefined;
    if (box) {
      ctx.strokeStyle = css("--mark");
      ctx.lineWidth = 3 / view.scale;
      ctx.strokeRect(box.x - 2, box.y - 2, box.width + 4, box.height + 4);
    }
    ctx.restore();
    text();
  };

  // A server: its frame, and below its GPUs the use of their NVLinks.
  const server = (box: ServerBox) => {
    ctx.fillStyle = css("--empty");
    ctx.strokeStyle = css("--soft");
    ctx.lineWidth = 1 / view.scale;
    ctx.fillRect(box.x, box.y, box.width, box.height);
    ctx.strokeRect(box.x, box.y, box.width, box.height);
    if (!g.servers?.domain) return;
    const used = g.servers.scale_up_of_gpu;
    for (const part of box.links) {
      ctx.fillStyle = used ? heat(used[part.gpu]) : css("--line");
      ctx.fillRect(part.x, box.y + box.height - 9, part.width, 8);
    }
  };

  const text = () => {
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    boxes = labels(g, plan, chosenNodes(), (t) => ctx.measureText(t).width, toScreen, { width, height: plan.height }, view.scale);
    const write = (content: string, x: number, y: number) => {
      // The halo keeps a name readable on the lines under it.
      ctx.strokeStyle = css("--card");
      ctx.lineWidth = 4;
      ctx.lineJoin = "round";
      ctx.strokeText(content, x, y);
      ctx.fillStyle = css("--text");
      ctx.fillText(content, x, y);
    };
    // As many names of servers as fit beside each other.
    const apart = plan.boxes.length > 1 ? (plan.boxes[1].x - plan.boxes[0].x) * view.scale : Infinity;
    const every = Math.ceil((ctx.measureText(`srv${plan.boxes.length}`).width + 6) / apart);
    for (const box of plan.boxes.filter((b) => b.server % every === 0)) {
      const name = `srv${box.server}`, [x, y] = toScreen(box.x + box.width / 2, box.y + box.height);
      write(name, x - ctx.measureText(name).width / 2, y + 10);
    }
    for (const box of boxes) write(box.text, box.x + 2, box.y + box.height / 2);
    if (view.scale === 1) plan.names.forEach((name) => write(name.text, 0, name.y));
  };

  // What is under a point of the screen.
  const find = (px: number, py: number): { node?: number; row?: number; server?: number } => {
    const [x, y] = [(px - view.x) / view.scale, (py - view.y) / view.scale];
    const slack = 3 / view.scale;
    const node = plan.places.findIndex((p) => p && p.r > 0 && Math.abs(p.x - x) <= p.r + slack && Math.abs(p.y - y) <= p.r + slack);
    if (node >= 0) return { node };
    const server = plan.boxes.find((box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height)?.server;
    if (server !== undefined) return { server };
    let row: number | undefined, nearest = (6 / view.scale) ** 2;
    for (const h of plan.halves) {
      const [dx, dy] = [h.x2 - h.x1, h.y2 - h.y1];
      const along = Math.max(0, Math.min(1, ((x - h.x1) * dx + (y - h.y1) * dy) / (dx * dx + dy * dy || 1)));
      const d = (h.x1 + along * dx - x) ** 2 + (h.y1 + along * dy - y) ** 2;
      if (d < nearest) [row, nearest] = [h.row, d];
    }
    return { row };
  };
  const offset = (e: MouseEvent): [number, number] => {
    const rect = picture.getBoundingClientRect();
    return [e.clientX - rect.left, e.clientY - rect.top];
  };
  tip(picture, (e) => {
    const { node, row, server } = find(...offset(e));
    if (server !== undefined) {
      const used = g.servers?.scale_up?.[server];
      return `srv${server}${used === undefined ? "" : `: scale-up network ${show("percent", used)} busy`}`;
    }
    const say = (r: number) => `${g.nodes[g.from[r]].name} > ${g.nodes[g.to[r]].name}: ${told(r)}`;
    if (row !== undefined) return say(row);
    if (node === undefined) return "";
    const tile = plan.tiles.find((t) => t.host === node);
    const inside = plan.within.get(node), own = inside === undefined ? "" : `\nwithin it: ${told(inside)}`;
    return tile ? `${say(tile.up)}\n${say(tile.down)}` : g.nodes[node].name + own;
  });

  // About a point of the screen: without one, about what is chosen, or the middle.
  const zoom = (by: number, at?: [number, number]) => {
    const node = plan.places[chosenNodes()[0]];
    const [px, py] = at ?? (node ? toScreen(node.x, node.y) : [width / 2, plan.height / 2]);
    const scale = Math.max(1, Math.min(16, view.scale * by));
    view.x = scale === 1 ? 0 : px - ((px - view.x) * scale) / view.scale;
    view.y = scale === 1 ? 0 : py - ((py - view.y) * scale) / view.scale;
    view.scale = scale;
    draw();
  };
  picture.addEventListener("wheel", (e) => {
    // A wheel alone scrolls the page.
    if (!e.ctrlKey) return;
    e.preventDefault();
    zoom(e.deltaY < 0 ? 1.25 : 0.8, offset(e));
  }, { passive: false });
  let drag: { x: number; y: number; moved: boolean } | null = null;
  picture.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, y: e.clientY, moved: false }; });
  picture.addEventListener("pointermove", (e) => {
    if (!drag || !e.buttons || view.scale === 1) return;
    if (Math.abs(e.clientX - drag.x) + Math.abs(e.clientY - drag.y) < 4 && !drag.moved) return;
    view.x += e.clientX - drag.x;
    view.y += e.clientY - drag.y;
    drag = { x: e.clientX, y: e.clientY, moved: true };
    draw();
  });
  picture.addEventListener("click", (e) => {
    if (drag?.moved) return;
    const { node, row, server } = find(...offset(e));
    if (server !== undefined) return select({ kind: "server", server });
    select(node !== undefined ? { kind: "node", node } : row !== undefined ? { kind: "row", row } : null);
  });
  picture.addEventListener("keydown", (e) => {
    if (e.key === "+" || e.key === "=") zoom(1.4);
    else if (e.key === "-") zoom(1 / 1.4);
    else if (e.key === "Escape") select(null);
    else if (e.key.startsWith("Arrow")) select({ kind: "node", node: step(e.key) });
    else return;
    e.preventDefault();
  });
  // The nearest node in the direction of an arrow key.
  const step = (key: string): number => {
    const s = drawn();
    const known = plan.places.map((p, n) => ({ ...p, n })).filter((p) => p.x !== undefined && p.r > 0);
    const from = s?.kind === "node" ? plan.places[s.node] : undefined;
    if (!from || s?.kind !== "node") return known[0].n;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key] ?? [0, 0];
    let best = s.node, nearest = Infinity;
    for (const p of known) {
      const along = (p.x - from.x) * dx + (p.y - from.y) * dy, across = Math.abs((p.x - from.x) * dy) + Math.abs((p.y - from.y) * dx);
      if (along > 0.5 && along + 3 * across < nearest) [best, nearest] = [p.n, along + 3 * across];
    }
    return best;
  };

  const buttons = element("div", { class: "zoom" }, button("+", () => zoom(1.4), { "aria-label": "Zoom in" }),
    button("−", () => zoom(1 / 1.4), { "aria-label": "Zoom out" }));
  parent.append(element("div", { class: "stage" }, picture, buttons));
  exported(parent, picture, { name: "Topology", draw, numbers: () => {
    const { at } = shown(), { title, quantity } = metrics[state.metric];
    return { head: ["from", "to", "link", column(title, quantity)], rows: g.from.map((from, l) => [g.nodes[from].name, g.nodes[g.to[l]].name, rowName(g, l), at(l)]) };
  } });
  on("look", draw);
  on("selected", draw);
  draw();
  return plan.folded;
}
