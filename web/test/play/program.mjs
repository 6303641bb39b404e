// The program that the page is compared with. PATHWEAVE names it.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { PATHWEAVE } = process.env;

/** The digest that the program prints for a scenario file. */
export function ofProgram(file, set) {
  const folder = mkdtempSync(join(tmpdir(), "pathweave-"));
  try {
    const out = join(folder, "run");
    execFileSync(PATHWEAVE, ["run", file, ...set.flatMap((s) => ["--set", s]), "--out", out], { stdio: "ignore" });
    return JSON.parse(readFileSync(join(out, "summary.json"), "utf8")).run.digest;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
