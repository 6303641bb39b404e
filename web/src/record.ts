// What is drawn on a canvas, as the elements of an SVG.

type Context = CanvasRenderingContext2D;
const round = (v: number): string => String(Math.round(v * 100) / 100);

/** A path that remembers its steps. */
class Steps extends Path2D {
  d = "";
  constructor(path?: Path2D | string) {
    super(path as Path2D);
    if (path instanceof Steps) this.d = path.d;
  }
  private step(letter: string, ...at: number[]): void { this.d += letter + at.map(round).join(" "); }
  override moveTo(x: number, y: number): void { super.moveTo(x, y); this.step("M", x, y); }
  override lineTo(x: number, y: number): void { super.lineTo(x, y); this.step(this.d ? "L" : "M", x, y); }
  override closePath(): void { super.closePath(); this.d += "Z"; }
  override rect(x: number, y: number, w: number, h: number): void {
    super.rect(x, y, w, h);
    this.step("M", x, y);
    this.d += `h${round(w)}v${round(h)}h${round(-w)}Z`;
  }
  override bezierCurveTo(a: number, b: number, c: number, d: number, x: number, y: number): void {
    super.bezierCurveTo(a, b, c, d, x, y);
    this.step("C", a, b, c, d, x, y);
  }
  override quadraticCurveTo(a: number, b: number, x: number, y: number): void { super.quadraticCurveTo(a, b, x, y); this.step("Q", a, b, x, y); }
  override arc(x: number, y: number, r: number, from: number, to: number, back = false): void {
    super.arc(x, y, r, from, to, back);
    const point = (angle: number): [number, number] => [x + r * Math.cos(angle), y + r * Math.sin(angle)];
    this.step(this.d ? "L" : "M", ...point(from));
    const whole = Math.abs(to - from) >= 2 * Math.PI, end = whole ? from + (back ? -1 : 1) * 2 * Math.PI : to;
    // A whole circle is two halves.
    const middle = (from + end) / 2;
    for (const angle of whole || Math.abs(end - from) > Math.PI ? [middle, end] : [end]) this.step("A", r, r, 0, 0, back ? 0 : 1, ...point(angle));
  }
  override addPath(path: Path2D): void { super.addPath(path); if (path instanceof Steps) this.d += path.d; }
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
const anchors: Record<CanvasTextAlign, string> = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const baselines: Record<CanvasTextBaseline, string> = {
  alphabetic: "auto", middle: "central", top: "hanging", hanging: "hanging", bottom: "text-after-edge", ideographic: "text-after-edge",
};

let clips = 0;

class Recorder {
  out: string[] = [];
  private path = new Steps();
  private clip = "";
  private saved: string[] = [];
  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** What a method of the context does to the SVG; those that are not here do nothing to it. */
  readonly does: Record<string, (g: Context, ...a: never[]) => void> = {
    save: () => { this.saved.push(this.clip); },
    restore: () => { this.clip = this.saved.pop() ?? ""; },
    beginPath: () => { this.path = new Steps(); },
    moveTo: (_, x: number, y: number) => this.path.moveTo(x, y),
    lineTo: (_, x: number, y: number) => this.path.lineTo(x, y),
    rect: (_, x: number, y: number, w: number, h: number) => this.path.rect(x, y, w, h),
    arc: (_, x: number, y: number, r: number, a: number, b: number) => this.path.arc(x, y, r, a, b),
    closePath: () => this.path.closePath(),
    clip: (g, path?: Path2D) => {
      const d = this.steps(path);
      if (!d) return;
      const id = `clip${++clips}`;
      this.out.push(`<clipPath id="${id}"${this.clip}><path d="${d}"${this.moved(g)}/></clipPath>`);
      this.clip = ` clip-path="url(#${id})"`;
    },
    fill: (g, path?: Path2D) => this.add(g, `<path d="${this.steps(path)}"${this.fills(g)}`, this.steps(path)),
    stroke: (g, path?: Path2D) => this.add(g, `<path d="${this.steps(path)}"${this.strokes(g)}`, this.steps(path)),
    fillRect: (g, x: number, y: number, w: number, h: number) => this.add(g, `<path d="${this.box(x, y, w, h)}"${this.fills(g)}`),
    strokeRect: (g, x: number, y: number, w: number, h: number) => this.add(g, `<path d="${this.box(x, y, w, h)}"${this.strokes(g)}`),
    clearRect: (g, x: number, y: number, w: number, h: number) => {
      const { a, d, e, f } = g.getTransform();
      if (x * a + e <= 1 && y * d + f <= 1 && w * a >= this.canvas.width - 2 && h * d >= this.canvas.height - 2) this.out = [];
    },
    fillText: (g, text: string, x: number, y: number, most?: number) => this.write(g, text, x, y, this.fills(g), most),
    strokeText: (g, text: string, x: number, y: number) => this.write(g, text, x, y, this.strokes(g)),
  };

  private steps(path?: Path2D | string): string { return path instanceof Steps ? path.d : path instanceof Path2D ? "" : this.path.d; }
  private box(x: number, y: number, w: number, h: number): string {
    const made = new Steps();
    made.rect(x, y, w, h);
    return made.d;
  }
  private moved(g: Context): string {
    const { a, b, c, d, e, f } = g.getTransform();
    return ` transform="matrix(${[a, b, c, d, e, f].map((v) => String(Math.round(v * 1e4) / 1e4)).join(" ")})"`;
  }
  // Programs that draw SVG do not all know rgba().
  private paint(what: "fill" | "stroke", style: unknown, alpha: number): string {
    const rgba = /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(String(style));
    const [colour, own] = rgba ? [`rgb(${rgba[1]},${rgba[2]},${rgba[3]})`, Number(rgba[4])] : [String(style), 1];
    const opacity = alpha * own;
    return ` ${what}="${escaped(colour)}"${opacity < 1 ? ` ${what}-opacity="${round(opacity)}"` : ""}`;
  }
  private fills(g: Context): string { return this.paint("fill", g.fillStyle, g.globalAlpha); }
  private strokes(g: Context): string {
    const dashes = g.getLineDash();
    return ` fill="none"${this.paint("stroke", g.strokeStyle, g.globalAlpha)} stroke-width="${round(g.lineWidth)}" stroke-linejoin="${g.lineJoin}"`
      + (dashes.length ? ` stroke-dasharray="${dashes.join(" ")}"` : "");
  }
  private write(g: Context, text: string, x: number, y: number, looks: string, most?: number): void {
    const squeezed = most !== undefined && g.measureText(text).width > most ? ` textLength="${round(most)}" lengthAdjust="spacingAndGlyphs"` : "";
    this.add(g, `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchors[g.textAlign]}" dominant-baseline="${baselines[g.textBaseline]}"`
      + ` style="font:${escaped(g.font)}"${looks}${squeezed}`, String(text).trim(), escaped(String(text)));
  }
  private add(g: Context, open: string, content = "x", inside?: string): void {
    if (!content) return;
    this.out.push(`${open}${this.moved(g)}${this.clip}${inside === undefined ? "/>" : `>${inside}</text>`}`);
  }
}

/** Draws a canvas again and returns what was drawn; in pixels of the canvas. */
export async function recorded(canvas: HTMLCanvasElement, draw: () => void | Promise<void>): Promise<string> {
  const recorder = new Recorder(canvas), proto = CanvasRenderingContext2D.prototype as unknown as Record<string, (...a: unknown[]) => unknown>;
  const own = new Map<string, (...a: unknown[]) => unknown>(), plain = globalThis.Path2D;
  for (const [name, does] of Object.entries(recorder.does)) {
    const method = proto[name];
    own.set(name, method);
    proto[name] = function (this: unknown, ...a: unknown[]): unknown {
      if ((this as Context).canvas === canvas) (does as (...all: unknown[]) => void)(this, ...a);
      return method.apply(this, a);
    };
  }
  globalThis.Path2D = Steps;
  try {
    await draw();
  } finally {
    globalThis.Path2D = plain;
    own.forEach((method, name) => { proto[name] = method; });
  }
  return recorder.out.join("");
}
