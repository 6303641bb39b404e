// Builds the viewer: dist/report.html for runs, dist/sweep.html for sweeps and dist/view.html for `pathweave view`
// (`--mode` says which), each one page with
// its style and script in it, and places named [[...]] that the program fills with data.
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

// Puts what the page refers to into the page.
const oneFile = (file: string): Plugin => ({
  name: "one-file",
  enforce: "post",
  transformIndexHtml: {
    order: "pre",
    handler: (html) => html.replace("[[head]]\n", () => readFileSync("head.html", "utf8")),
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
      const notice = `/*! Contains uPlot.\n${readFileSync("node_modules/uplot/LICENSE", "utf8").trim()} */\n`;
      // A function, since "$" in a text means something to `replace`.
      const inline = item.type === "chunk"
        ? `<script type="module">${notice}${text.trim().replaceAll("</script", "<\\/script")}</script>`
        : `<style>${text.trim()}</style>`;
      html = html.replace(tag, () => inline);
      delete bundle[name];
    }
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
