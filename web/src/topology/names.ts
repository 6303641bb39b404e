// Nodes and links by name: those that are drawn, and of a large fabric all that the page knows.
import type { Fabric, Servers } from "../data";
import type { Selection } from "../state";

// As many names are offered in a list as a browser shows at once without delay.
const OFFERED = 5000;

const gpuName = (s: Servers, host: number): string => `srv${Math.floor(host / s.gpus)}.gpu${host % s.gpus}`;
const gpusOf = (s: Servers | null): string[] => (s ? Array.from({ length: s.servers * s.gpus }, (_, i) => gpuName(s, i)) : []);

/** A host: the name of a GPU of a server, otherwise its number. */
export const hostName = ({ servers }: Fabric, host: number): string => (servers ? gpuName(servers, host) : `host ${host}`);
/** Both ends of a flow. */
export const flowEnds = (fabric: Fabric, from: number, to: number): string => `${hostName(fabric, from)} > ${fabric.servers ? hostName(fabric, to) : to}`;

const unpacked = new WeakMap<Fabric, string[]>();
/** Names of all nodes of a large fabric, in their order. */
export function namesOf(fabric: Fabric): string[] {
  let names = unpacked.get(fabric);
  if (!names) {
    const others = fabric.blocks!.index!.names.flatMap(([text, first, count]) => (first == null ? [text] : Array.from({ length: count }, (_, i) => text + (first + i))));
    names = gpusOf(fabric.servers).concat(others);
    unpacked.set(fabric, names);
  }
  return names;
}

export function linkName(fabric: Fabric, link: number): string {
  const index = fabric.blocks!.index!, names = namesOf(fabric);
  return `${names[index.from[link]]} > ${names[index.to[link]]}`;
}

/** What can be found: names to offer, and what is meant by what was typed. */
export interface Finder { names: string[]; find: (typed: string) => Selection | undefined; near: (typed: string) => string[];
  /** Why a link between two nodes that exist is not found. */ missing: (typed: string) => string | undefined }

export function finderOf(fabric: Fabric): Finder {
  const index = fabric.blocks?.index ?? undefined;
  const drawn = new Map<string, Selection>(fabric.nodes.map((n, node) => [n.name.toLowerCase(), { kind: "node", node }]));
  const members = new Map<string, number>((index ? namesOf(fabric) : []).map((name, node) => [name.toLowerCase(), node]));
  // Links by their ends: those of the picture are found by the names of what is drawn, others by those of single nodes.
  const ends = (from: number, to: number) => `${from} ${to}`;
  const rows = new Map(fabric.from.map((from, row) => [ends(from, fabric.to[row]), row]));
  const links = new Map((index?.from ?? []).map((from, link) => [ends(from, index!.to[link]), link]));
  const serverOf = (name: string): Selection | undefined => {
    const number = /^srv(\d+)$/.exec(name)?.[1], server = Number(number);
    return number && fabric.servers && server < fabric.servers.servers ? { kind: "server", server } : undefined;
  };
  const nodeOf = (name: string): Selection | undefined => {
    const member = members.get(name), server = serverOf(name);
    if (server) return server;
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
  const servers = Array.from({ length: fabric.servers?.servers ?? 0 }, (_, i) => `srv${i}`);
  const names = [...new Set([...fabric.nodes.map((n) => n.name), ...servers, ...(index ? namesOf(fabric).slice().reverse() : [])])];
  if (!index && fabric.from.length <= 2000) names.push(...fabric.from.map((from, row) => `${fabric.nodes[from].name} > ${fabric.nodes[fabric.to[row]].name}`));
  const near = (typed: string) => {
    const wanted = typed.trim().toLowerCase().split(/\s*(?:->|>|\u2192)\s*/)[0], letters = wanted.replace(/[\d.]+$/, "");
    return letters ? names.filter((name) => name.toLowerCase().startsWith(letters)).slice(0, 3) : [];
  };
  const missing = (typed: string) => {
    const ends = typed.trim().toLowerCase().split(/\s*(?:->|>|\u2192)\s*/);
    const both = ends.length === 2 && ends.every((name) => members.has(name));
    return both && index && index.of_links > index.from.length
      ? `The page has figures of the ${index.from.length} busiest of ${index.of_links} links only; links.parquet has all.` : undefined;
  };
  return { names: names.slice(0, OFFERED), find, near, missing };
}
