// Scenarios as text: what the page offers to choose from, and faults that the reader adds.
import { digits } from "../format";

export interface Option { key: string; name: string; text: string }
export type Harm = "down" | "slow" | "lossy";
export interface Fault { link: string; at: number; kind: Harm; rate_bps: number }

export const FABRICS: Option[] = [
  { key: "8", name: "8 hosts, 2 leaves, 4 spines", text: 'kind = "leaf-spine"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_delay = "500ns"' },
  { key: "16", name: "16 hosts, 4 leaves, 4 spines", text: 'kind = "leaf-spine"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\nhost_delay = "500ns"' },
  { key: "54", name: "54 hosts, fat tree in three levels", text: 'kind = "fat-tree"\nk = 6\nhost_delay = "500ns"' },
  { key: "128", name: "128 hosts, fat tree in three levels", text: 'kind = "fat-tree"\nk = 8\nhost_delay = "500ns"' },
  { key: "128-leaf", name: "128 hosts, 8 leaves, 16 spines", text: 'kind = "leaf-spine"\nleaves = 8\nspines = 16\nhosts_per_leaf = 16\nhost_delay = "500ns"' },
  { key: "128-over", name: "128 hosts, two for each way up", text: 'kind = "leaf-spine"\nleaves = 8\nspines = 8\nhosts_per_leaf = 16\nhost_delay = "500ns"' },
];

export const TRAFFIC: Option[] = [
  { key: "permutation", name: "each host to one other", text: 'kind = "permutation"\npattern = "inter-rack"\nsize = "SIZE"' },
  { key: "incast", name: "many hosts to one", text: 'kind = "incast"\nsenders = 7\nsize = "SIZE"' },
  { key: "all-to-all", name: "every host to every other", text: 'kind = "all-to-all"\nsize = "SIZE"' },
  { key: "ring", name: "all-reduce around a ring", text: 'kind = "ring-all-reduce"\nsize = "SIZE"' },
  { key: "websearch", name: "flows of a web search, 60 % load", text: 'kind = "poisson"\nsizes = "websearch"\nload = 0.6\nduration = "300us"' },
];

export const SIZES = ["16KB", "64KB", "256KB", "512KB", "1MB", "4MB", "16MB"];

export const compose = (name: string, fabric: string, traffic: string, size: string, seed: number): string => {
  const topology = FABRICS.find((f) => f.key === fabric)!.text, workload = TRAFFIC.find((w) => w.key === traffic)!.text;
  return `name = "${name}"\nseed = ${seed}\n\n[topology]\n${topology}\n\n[[workload]]\n${workload.replace("SIZE", size)}\n`;
};

/** A time for a scenario: whole nanoseconds. */
export const atText = (ps: number): string => `${Math.round(ps / 1e3)}ns`;

const TABLES: Record<Harm, (fault: Fault) => string> = {
  down: () => 'kind = "link-down"',
  slow: ({ rate_bps }) => `kind = "link-rate"\nrate = "${digits(rate_bps / 1e9, 6)}Gbps"`,
  lossy: () => 'kind = "link-loss"\nprobability = 0.01',
};

export const withFaults = (text: string, faults: Fault[]): string =>
  text.trimEnd() + "\n" + faults.map((f) => `\n[[fault]]\n${TABLES[f.kind](f)}\nlink = "${f.link}"\nat = "${atText(f.at)}"\n`).join("");

/** The text with a scheme of its own, for a file. A line before the first table, in place of one that is there. */
export function withScheme(text: string, scheme: string): string {
  const lines = text.split("\n").filter((line, i, all) => !(/^scheme\s*=/.test(line) && !all.slice(0, i).some((l) => l.startsWith("["))));
  const table = lines.findIndex((line) => line.startsWith("["));
  const at = table < 0 ? lines.length : table;
  const name = lines.findIndex((line, i) => i < at && /^(seed|name)\s*=/.test(line));
  lines.splice(name < 0 ? at : name + 1, 0, `scheme = "${scheme}"`);
  return lines.join("\n");
}
