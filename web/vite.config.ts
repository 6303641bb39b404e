// Builds the viewer: dist/report.html for runs, dist/sweep.html for sweeps and dist/view.html for `pathweave view`
// (`--mode` says which), each one page with
// its style and script in it, and places named [[...]] that the program fills with data. `--mode play` builds the page with the
// simulator in it, whose module MODULE names.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

// The page with the simulator may also compile WebAssembly, and starts workers from its own text.
const head = (file: string): string => {
  const text = readFileSync("head.html", "utf8");
  if (file !== "play.html") return text;
  const allowed = "script-src 'unsafe-inline' 'wasm-unsafe-eval' blob: data:; worker-src blob: data:";
  return text.replace("script-src 'unsafe-inline'", () => allowed).replace("[[title]]", "Packets choose their paths");
};

// The simulator's module as text: without names of functions, compressed, in base64.
const simulator = (): string => gzipSync(withoutNames(readFileSync(process.env.MODULE!)), { level: 9 }).toString("base64");

// A WebAssembly module is 8 bytes and then sections: a number, a length (LEB128), and as many bytes. Number 0 is for tools.
function withoutNames(module: Buffer): Buffer {
  const kept = [module.subarray(0, 8)];
  for (let at = 8; at < module.length;) {
    let end = at + 1, length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = module[end++];
      length += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    end += length;
    if (module[at] !== 0) kept.push(module.subarray(at, end));
    at = end;
  }
  return Buffer.concat(kept);
}

// Puts what the page refers to into the page.
const oneFile = (file: string): Plugin => ({
  name: "one-file",
  enforce: "post",
  transformIndexHtml: {
    order: "pre",
    handler: (html) => html.replace("[[head]]\n", () => head(file)),
  },
  generateBundle(_, bundle) {
    const page = bundle[file];
    if (page?.type !== "asset") throw new Error(`no ${file} was built`);
    let html = String(page.source);
    for (const [name, item] of Object.entries(bundle)) {
      if (item === page) continue;
      const text = item.type === "chunk" ? item.code : String(item.source);
      const tag = item.type === "chunk"
        ? new RegExp(`<script[^>]*src="[^"]*${name}"[^>]*></script>`)
        : new RegExp(`<link[^>]*href="[^"]*${name}"[^>]*>`);
      if (!tag.test(html)) throw new Error(`the page does not refer to ${name}`);
      const notice = file === "play.html" ? "" : `/*! Contains uPlot.\n${readFileSync("node_modules/uplot/LICENSE", "utf8").trim()} */\n`;
      // A function, since "$" in a text means something to `replace`.
      const inline = item.type === "chunk"
        ? `<script type="module">${notice}${text.trim().replaceAll("</script", "<\\/script")}</script>`
        : `<style>${text.trim()}</style>`;
      html = html.replace(tag, () => inline);
      delete bundle[name];
    }
    if (file === "play.html") html = html.replace("[[module]]", simulator);
    page.source = html;
  },
});

export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [oneFile(`${mode}.html`)],
  build: {
    target: "es2022",
    outDir: process.env.REPORT_OUT ?? "dist",
    emptyOutDir: false,
    modulePreload: false,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    rollupOptions: { input: `${mode}.html` },
  },
}));
