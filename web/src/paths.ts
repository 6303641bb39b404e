// How evenly paths were used: by switches over their links up, by single flows over their paths.
import { runs, type Fabric, type Run } from "./data";
import { card, element, table, tip } from "./dom";
import { later } from "./chart";
import { digits, show } from "./format";
import { run, rowName, select } from "./state";
import { heat } from "./theme";
import { exported } from "./export";

interface Spread { node: number; links: number[]; /** The largest load over the mean of all: bytes for what a link can carry. */ worst: number }

// Bytes that a link carried for each bit a second that it can carry: even where all links of a switch are as busy, whatever their rates.
const load = (g: Fabric, link: number) => g.totals.tx_bytes[link] / Math.max(1, g.totals.rate_bps[link]);

// Of each switch with several: its links up, or, in a network without tiers, those to other switches.
function spreads(g: Fabric): Spread[] {
  const out = new Map<number, number[]>();
  const isSwitch = (n: number) => g.nodes[n].kind !== "host";
  const climbs = g.from.some((from, l) => isSwitch(from) && g.nodes[g.to[l]].tier > g.nodes[from].tier);
  g.from.forEach((from, l) => {
    const to = g.to[l];
    if (isSwitch(from) && isSwitch(to) && (!climbs || g.nodes[to].tier > g.nodes[from].tier)) out.set(from, [...(out.get(from) ?? []), l]);
  });
  return [...out].filter(([, links]) => links.length > 1).map(([node, links]) => {
    const loads = links.map((l) => load(g, l)), total = loads.reduce((a, b) => a + b, 0);
    return { node, links, worst: total ? (Math.max(...loads) * links.length) / total : 0 };
  });
}

/** One line a run: how far from even the links up of switches were used. */
export function evenness(cards: HTMLElement): void {
  const rows = runs.flatMap((r) => {
    if (r.fabric.blocks) return [];
    const used = spreads(r.fabric).map((s) => s.worst).filter((w) => w > 0).sort((a, b) => a - b);
    if (!used.length) return [];
    const mean = used.reduce((a, b) => a + b, 0) / used.length;
    return [{ cells: [r.name, digits(mean, 3), digits(used[Math.ceil(used.length / 2) - 1], 3), digits(used.at(-1)!, 3)] }];
  });
  if (!rows.length) return;
  const box = card(cards, "Evenness of paths", "The busiest link up of each switch, over the mean of its links, each for what it can carry: 1 is even. Over switches:");
  box.append(table(["Run", "Mean", "Median", "Worst"], rows));
}

export function paths(cards: HTMLElement): boolean {
  const r = run();
  const any = [!r.fabric.blocks && shares(cards, r.fabric), watched(cards, r)];
  return any.some(Boolean);
}

function shares(cards: HTMLElement, g: Fabric): boolean {
  const all = spreads(g);
  if (!all.length) return false;
  if (all.every((s) => s.worst === 0)) {
    card(cards, "Shares of links up", "No link from a switch to the tier above carried anything.");
    return true;
  }
  const most = [...all].sort((a, b) => b.worst - a.worst).slice(0, 64).sort((a, b) => a.node - b.node);
  const worst = all.reduce((a, b) => (b.worst > a.worst ? b : a));
  const box = card(cards, "Shares of links up", `A row a switch${most.length < all.length ? ` (the ${most.length} least even of ${all.length})` : ""}, a column a link to the tier above; the colour is how busy it was beside the others, each for what it can carry, from idle to twice the mean. Least even: ${g.nodes[worst.node].name}, whose busiest link was ${digits(worst.worst, 3)} times as busy as the mean of its links.`);
  const columns = Math.max(...most.map((s) => s.links.length));
  later(() => {
    const left = 72, side = Math.max(3, Math.min(20, Math.floor((box.clientWidth - 40 - left) / columns)));
    const high = Math.max(8, Math.min(16, Math.floor(480 / most.length)));
    const picture = element("canvas", { role: "img", "aria-label": "Share of each link up of each switch" });
    const ratio = Math.min(devicePixelRatio || 1, 2);
    // A label is higher than a low row: room for the first and the last one.
    const edge = Math.max(0, Math.ceil((14 - high) / 2));
    const [width, height] = [left + columns * side, 2 * edge + most.length * high];
    [picture.width, picture.height] = [width * ratio, height * ratio];
    picture.style.width = width + "px";
    picture.style.height = height + "px";
    const c = picture.getContext("2d")!;
    c.scale(ratio, ratio);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = getComputedStyle(box).color;
    const part = (s: Spread, k: number, of: (link: number) => number) => {
      const total = s.links.reduce((sum, l) => sum + of(l), 0);
      return total ? of(s.links[k]) / total : 0;
    };
    const draw = () => {
    c.clearRect(0, 0, width, height);
    c.fillStyle = getComputedStyle(box).color;
    most.forEach((s, i) => { if (high >= 11 || i % 2 === 0) c.fillText(g.nodes[s.node].name, 0, edge + (i + 0.5) * high, left - 6); });
    most.forEach((s, i) => s.links.forEach((_, k) => {
      c.fillStyle = heat((part(s, k, (l) => load(g, l)) * s.links.length) / 2);
      c.fillRect(left + k * side, edge + i * high, side - 1, high - 1);
    }));
    };
    draw();
    const find = (e: MouseEvent): [Spread, number] | undefined => {
      const rect = picture.getBoundingClientRect();
      const s = most[Math.floor((e.clientY - rect.top - edge) / high)], k = Math.floor((e.clientX - rect.left - left) / side);
      return s && k >= 0 && k < s.links.length ? [s, k] : undefined;
    };
    tip(picture, (e) => {
      const found = find(e);
      return found ? `${rowName(g, found[0].links[found[1]])}: ${show("percent", part(...found, (l) => g.totals.tx_bytes[l]))} of the bytes, ${show("percent", part(...found, (l) => g.totals.rate_bps[l]))} of what the links can carry` : "";
    });
    picture.addEventListener("click", (e) => {
      const found = find(e);
      if (found) select({ kind: "row", row: found[0].links[found[1]] });
    });
    box.append(picture);
    exported(box, picture, { name: "Shares of links up", draw, numbers: () => ({
      head: ["switch", "link", "sent (ratio)", "capacity (ratio)"],
      rows: most.flatMap((s) => s.links.map((l, k) => [g.nodes[s.node].name, rowName(g, l), part(s, k, (x) => g.totals.tx_bytes[x]), part(s, k, (x) => g.totals.rate_bps[x])])),
    }) });
  });
  return true;
}

function watched(cards: HTMLElement, r: Run): boolean {
  const flows = r.frames.flows.map((w) => ({ w, shares: w.curves.filter((c) => c.kind === "path_share_ratio") })).filter((f) => f.shares.length);
  if (!flows.length) return false;
  const box = card(cards, "Shares of paths of single flows", "The flows that were watched, and how their packets were spread: over the samples in which they sent any. Choose one to see its shares over time.");
  const mean = (values: (number | null)[]) => {
    const known = values.filter((v) => v != null);
    return known.reduce((a, b) => a + b, 0) / (known.length || 1);
  };
  box.append(table(["Flow", "Paths used", "Largest share", "Even share"], flows.map(({ w, shares }) => {
    const means = shares.map((c) => mean(c.value)), sum = means.reduce((a, b) => a + b, 0) || 1;
    return {
      cells: [`flow ${w.flow}`, String(shares.length), show("percent", Math.max(...means) / sum), show("percent", 1 / shares.length)],
      choose: () => { const index = r.flows.flow.indexOf(w.flow); if (index >= 0) select({ kind: "flow", index }); },
    };
  })));
  return true;
}
