// Saves a picture as SVG or PNG, and the numbers behind it as CSV.
import type { Quantity } from "./data";
import { button, element, svg as svgElement } from "./dom";
import { recorded } from "./record";
import { css } from "./theme";

/** What is saved: a drawing, or a table whose cells are coloured. */
type Target = HTMLCanvasElement | SVGElement | HTMLTableElement;
type Cell = string | number | null | undefined;
/** Numbers of a picture; the heading of a column has its unit. */
export interface Numbers { head: string[]; rows: Cell[][] }
interface Legend { label: string; colour: string }
interface Picture {
  /** Title of the picture, from which its files have their name. */
  name: string;
  numbers: () => Numbers;
  /** Draws a canvas again; not for an SVG. */
  draw?: () => void | Promise<void>;
  legend?: () => Legend[];
}

const units: Record<Quantity, string> = { time_ns: " (ns)", rate_bps: " (bit/s)", bytes: " (bytes)", percent: " (ratio)", count: "", plain: "" };
/** The heading of a column of CSV. */
export const column = (label: string, quantity: Quantity): string => label + units[quantity];

const LINE = 18, PAD = 10;

/** Adds what saves `picture` to `place`. */
export function exported(place: Element, target: Target, picture: Picture): void {
  const save = (kind: string, address: () => string | Promise<string>) =>
    button(kind.toUpperCase(), () => { void Promise.resolve(address()).then((href) => download(`${fileName(picture.name)}.${kind}`, href)); },
      { "aria-label": `Save ${picture.name} as ${kind.toUpperCase()}` });
  const text = (type: string, content: string) => `data:${type};charset=utf-8,${encodeURIComponent(content)}`;
  const drawing = () => asSvg(target, picture);
  place.append(element("p", { class: "export" }, "Save ",
    save("svg", async () => text("image/svg+xml", await drawing())),
    save("png", async () => asPng(await drawing())),
    save("csv", () => text("text/csv", asCsv(picture.numbers())))));
  (target as unknown as HTMLElement).dataset.exported = picture.name;
}

const fileName = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "picture";

function download(name: string, href: string): void {
  const link = element("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

/** RFC 4180, with a line feed at the end of each line. */
export function asCsv({ head, rows }: Numbers): string {
  const quoted = (cell: Cell) => {
    const text = cell == null ? "" : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => row.map(quoted).join(",") + "\n").join("");
}

async function asSvg(target: Target, picture: Picture): Promise<string> {
  const box = target.getBoundingClientRect(), width = Math.max(1, Math.round(box.width)), height = Math.max(1, Math.round(box.height));
  const legend = picture.legend?.() ?? [];
  const file = svgElement("svg", { xmlns: "http://www.w3.org/2000/svg", width, height: height + PAD + LINE * (1 + legend.length) });
  const back = svgElement("rect", { width: "100%", height: "100%", fill: css("--card") });
  const font = "font:12px sans-serif";
  const title = svgElement("text", { x: 4, y: 14, style: `font:bold 13px sans-serif;fill:${css("--text")}` });
  title.textContent = picture.name;
  const body = svgElement("svg", { y: LINE, width, height });
  if (target instanceof HTMLCanvasElement) {
    body.setAttribute("viewBox", `0 0 ${target.width} ${target.height}`);
    body.innerHTML = await recorded(target, picture.draw!);
  } else if (target instanceof HTMLTableElement) {
    body.append(...cellsOf(target));
  } else {
    body.setAttribute("viewBox", target.getAttribute("viewBox") ?? `0 0 ${width} ${height}`);
    body.append(...styled(target).childNodes);
  }
  file.append(back, title, body);
  legend.forEach(({ label, colour }, i) => {
    const y = height + LINE * (i + 2);
    file.append(svgElement("rect", { x: 4, y: y - 9, width: 10, height: 10, fill: colour }));
    const words = svgElement("text", { x: 20, y, style: `${font};fill:${css("--text")}` });
    words.textContent = label;
    file.append(words);
  });
  return new XMLSerializer().serializeToString(file);
}

// A mixed colour as every program reads it.
const plain = (colour: string): string =>
  colour.replace(/^color\(srgb ([\d.]+) ([\d.]+) ([\d.]+).*\)$/, (_, ...parts: string[]) => `rgb(${parts.slice(0, 3).map((part) => Math.round(255 * Number(part))).join(",")})`);

// A rectangle a cell in its colour, and its words in theirs.
function cellsOf(target: HTMLTableElement): SVGElement[] {
  const all = target.getBoundingClientRect();
  return [...target.querySelectorAll<HTMLElement>("th, td")].flatMap((cell) => {
    const { left, top, width, height } = cell.getBoundingClientRect(), looks = getComputedStyle(cell), x = left - all.left, y = top - all.top;
    const words = svgElement("text", { x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle", style: `font:${looks.fontWeight} 12px sans-serif;fill:${looks.color}` });
    words.textContent = cell.textContent;
    return [svgElement("rect", { x, y, width, height, fill: plain(looks.backgroundColor), stroke: css("--card") }), words];
  });
}

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "stroke-linejoin", "opacity", "font-size", "font-weight", "text-anchor", "paint-order"];

// A copy whose looks do not depend on the page.
function styled(target: SVGElement): SVGElement {
  const copy = target.cloneNode(true) as SVGElement;
  const [from, to] = [target, copy].map((root) => [...root.querySelectorAll<SVGElement>("*")]);
  from.forEach((e, i) => {
    const looks = getComputedStyle(e);
    to[i].setAttribute("style", STYLES.map((name) => `${name}:${looks.getPropertyValue(name)}`).join(";") + (e.tagName === "text" ? ";font-family:sans-serif" : ""));
    to[i].removeAttribute("class");
  });
  return copy;
}

// Twice as fine as the page.
async function asPng(drawing: string): Promise<string> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  await image.decode();
  const canvas = element("canvas", { width: image.width * 2, height: image.height * 2 });
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}
