// Nodes and links by name: those that are drawn, and of a large fabric all that the page knows.
import type { Fabric, Index } from "../data";
import type { Selection } from "../state";

const unpacked = new WeakMap<Index, string[]>();
/** Names of all nodes of a large fabric, in their order. */
export function namesOf(index: Index): string[] {
  let names = unpacked.get(index);
  if (!names) {
    names = index.names.flatMap(([text, first, count]) => (first == null ? [text] : Array.from({ length: count }, (_, i) => text + (first + i))));
    unpacked.set(index, names);
  }
  return names;
}

export const linkName = (index: Index, link: number): string => `${namesOf(index)[index.from[link]]} > ${namesOf(index)[index.to[link]]}`;

/** What can be found: names to offer, and what is meant by what was typed. */
export interface Finder { names: string[]; find: (typed: string) => Selection | undefined; near: (typed: string) => string[] }

export function finderOf(fabric: Fabric): Finder {
  const index = fabric.blocks?.index ?? undefined;
  const drawn = new Map<string, Selection>(fabric.nodes.map((n, node) => [n.name.toLowerCase(), { kind: "node", node }]));
  const members = new Map<string, number>((index ? namesOf(index) : []).map((name, node) => [name.toLowerCase(), node]));
  // Links by their ends: those of the picture are found by the names of what is drawn, others by those of single nodes.
  const ends = (from: number, to: number) => `${from} ${to}`;
  const rows = new Map(fabric.from.map((from, row) => [ends(from, fabric.to[row]), row]));
  const links = new Map((index?.from ?? []).map((from, link) => [ends(from, index!.to[link]), link]));
  const nodeOf = (name: string): Selection | undefined => {
    const member = members.get(name);
    return drawn.get(name) ?? (member === undefined ? undefined : { kind: "member", node: member });
  };
  const linkOf = (from: string, to: string): Selection | undefined => {
    const link = links.get(ends(members.get(from) ?? -1, members.get(to) ?? -1));
    if (link !== undefined) return { kind: "link", link };
    const [a, b] = [drawn.get(from), drawn.get(to)];
    const row = a?.kind === "node" && b?.kind === "node" ? rows.get(ends(a.node, b.node)) : undefined;
    return row === undefined ? undefined : { kind: "row", row };
  };
  const find = (typed: string) => {
    const name = typed.trim().toLowerCase(), node = nodeOf(name);
    if (node) return node;
    const split = (at: number, length: number) => linkOf(name.slice(0, at).trim(), name.slice(at + length).trim());
    // `leaf0 > spine0` as pages have it, `leaf0>spine0` as tables, `leaf0-spine0` as scenarios, whose names may have hyphens themselves.
    for (const sign of ["->", ">", "\u2192", " to ", "-"]) {
      for (let at = name.indexOf(sign); at > 0; at = name.indexOf(sign, at + 1)) {
        const link = split(at, sign.length);
        if (link) return link;
      }
    }
    return undefined;
  };
  const names = [...fabric.nodes.map((n) => n.name), ...(index ? namesOf(index) : [])];
  if (!index && fabric.from.length <= 2000) names.push(...fabric.from.map((from, row) => `${fabric.nodes[from].name} > ${fabric.nodes[fabric.to[row]].name}`));
  const near = (typed: string) => {
    const wanted = typed.trim().toLowerCase().split(/\s*(?:->|>|\u2192)\s*/)[0], letters = wanted.replace(/[\d.]+$/, "");
    return letters ? names.filter((name) => name.toLowerCase().startsWith(letters)).slice(0, 3) : [];
  };
  return { names, find, near };
}
