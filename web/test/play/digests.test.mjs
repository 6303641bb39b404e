// The module of the simulator under Node gives the digests of the program, on the five situations of `pathweave demo`: at sizes
// that take seconds, or as they are with FULL=1. MODULE names the module, PATHWEAVE the program.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "../../src/play/abi.mjs";
import { ofProgram } from "./program.mjs";

const { MODULE, FULL } = process.env;
const compiled = await WebAssembly.compile(readFileSync(MODULE));
const demo = join(import.meta.dirname, "../../../scenarios/demo");

const situations = [
  { name: "slow-links", schemes: ["ecmp", "weave"], set: ["workload[0].size=256KB"] },
  { name: "all-to-all", schemes: ["dlbf-wait", "weave"], set: ["workload[0].size=8KB"] },
  { name: "many-processes", schemes: ["ecmp", "erd"], set: ["workload[0].processes=128"] },
  { name: "two-sites", schemes: ["reflex-swift", "weave"], set: ["workload[0].duration=1ms", "workload[1].duration=1ms"] },
  { name: "websearch", schemes: ["laps", "weave"], set: ["workload[0].duration=300us"] },
];

for (const { name, schemes, set } of situations) {
  for (const scheme of schemes) {
    test(`${name} under ${scheme}`, async () => {
      const file = join(demo, `${name}.toml`), sizes = FULL ? [] : set;
      const module = await open(compiled), from = performance.now();
      const { digest } = module.run({ text: readFileSync(file, "utf8"), scheme, set: sizes, most_hops: 10_000 });
      if (FULL) console.log(`${name} ${scheme} ${digest} ${((performance.now() - from) / 1e3).toFixed(1)} s`);
      assert.equal(digest, ofProgram(file, [...sizes, `scheme=${scheme}`]));
    });
  }
}

test("a scenario with a mistake is refused with the program's words", async () => {
  const module = await open(compiled);
  assert.throws(() => module.run({ text: '[topology]\nkind = "star"\nhost = 2\n' }), /unknown field `host`[\s\S]*hosts/);
});

test("a run tells how far it is, and then the state of an instant", async () => {
  const shares = [], module = await open(compiled, (share) => shares.push(share));
  const text = readFileSync(join(demo, "slow-links.toml"), "utf8");
  const { simulated_ps, links } = module.run({ text, scheme: "ecmp", set: ["workload[0].size=256KB"], most_hops: 10_000 });
  assert.ok(shares.length > 2 && shares.at(-1) === 1 && shares.every((s, i) => i === 0 || s >= shares[i - 1]), String(shares));
  const early = module.instant({ time_ps: 2_000_000, window_ps: 1_000_000 });
  assert.equal(early.source, "packets");
  const late = module.instant({ time_ps: simulated_ps, window_ps: 1_000_000 });
  assert.deepEqual([late.source, late.flows_done], ["samples", 320]);
  // At the start each host sends as fast as its link can.
  const busy = links.flatMap((link, i) => (link.from < 320 ? [early.links[i]?.utilisation ?? 0] : []));
  assert.ok(busy.length === 320 && busy.every((share) => share > 0.99), String(Math.min(...busy)));
});
