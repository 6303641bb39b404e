// A run beside the page, so that the page never waits. One worker has one module, and keeps its last run for questions.
import { open, type Module } from "./abi.mjs";

type Ask =
  | { id: number; what: "start"; module: WebAssembly.Module }
  | { id: number; what: "catalogue" | "check" | "run" | "instant"; request?: unknown };

let module: Module | undefined;

async function answer(ask: Ask): Promise<{ said: unknown; columns: Float64Array[] }> {
  if (ask.what === "start") {
    module = await open(ask.module, (share) => (self as unknown as Worker).postMessage({ share }));
    return { said: null, columns: [] };
  }
  const call = module![ask.what] as (request: unknown) => unknown;
  const said = call(ask.request);
  const names = ask.what === "run" ? (said as { columns: string[] }).columns : [];
  return { said, columns: names.map((_, i) => module!.column(i)) };
}

self.addEventListener("message", async (event: MessageEvent<Ask>) => {
  const { id } = event.data;
  try {
    const { said, columns } = await answer(event.data);
    (self as unknown as Worker).postMessage({ id, said, columns }, columns.map((c) => c.buffer as ArrayBuffer));
  } catch (why) {
    (self as unknown as Worker).postMessage({ id, error: (why as Error).message });
  }
});
