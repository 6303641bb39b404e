// The simulator's module, in workers.
import type { Catalogue, Instant, Ran, Request, Size } from "./abi.mjs";
import Spawn from "./worker?worker&inline";

export interface Result { ran: Ran; columns: Record<string, Float64Array>; wall_ms: number }

let compiled: Promise<WebAssembly.Module> | undefined;

/** The module in the page: compressed and in base64. */
function compile(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const text = document.getElementById("module")!.textContent!.trim();
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  })();
  return compiled;
}

/** One module in a worker. */
export class Engine {
  private worker: Worker | undefined;
  private ready: Promise<unknown> = Promise.resolve();
  private next = 1;
  /** Called with the part of a run that is done, 0 to 1. */
  progress: (share: number) => void = () => {};
  private waiting = new Map<number, { done: (data: { said: never; columns: Float64Array[] }) => void; failed: (why: Error) => void }>();

  private async start(): Promise<void> {
    this.worker?.terminate();
    this.waiting.forEach(({ failed }) => failed(new Error("stopped")));
    this.waiting.clear();
    this.worker = new Spawn();
    this.worker.onmessage = ({ data }) => {
      if (data.share !== undefined) return this.progress(data.share);
      const { done, failed } = this.waiting.get(data.id)!;
      this.waiting.delete(data.id);
      if (data.error === undefined) done(data);
      else failed(new Error(data.error));
    };
    this.worker.onerror = (event) => this.waiting.forEach(({ failed }) => failed(new Error(event.message)));
    this.ready = this.ask("start", { module: await compile() });
    await this.ready;
  }

  private ask(what: string, more: object): Promise<{ said: never; columns: Float64Array[] }> {
    const id = this.next++;
    const answer = new Promise<{ said: never; columns: Float64Array[] }>((done, failed) => this.waiting.set(id, { done, failed }));
    this.worker!.postMessage({ id, what, ...more });
    return answer;
  }

  private async say<T>(what: string, request?: unknown): Promise<T> {
    if (!this.worker) await this.start();
    return (await this.ask(what, { request })).said;
  }

  catalogue(): Promise<Catalogue> { return this.say("catalogue"); }
  check(request: Request): Promise<Size> { return this.say("check", request); }
  instant(time_ps: number, window_ps: number): Promise<Instant> { return this.say("instant", { time_ps: Math.round(time_ps), window_ps: Math.round(window_ps) }); }

  /** Runs a scenario in a fresh module, whose memory the last run has not enlarged. A run in progress is given up. */
  async run(request: Request): Promise<Result> {
    await this.start();
    const from = performance.now();
    const { said, columns } = await this.ask("run", { request });
    const ran = said as Ran;
    return { ran, columns: Object.fromEntries(ran.columns.map((name, i) => [name, columns[i]])), wall_ms: performance.now() - from };
  }
}
