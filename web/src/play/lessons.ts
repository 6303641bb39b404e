// Situations in the order of an explanation. Each is a scenario, two schemes, and what to look at.
import type { Catalogue } from "./abi.mjs";
import { compose, withFaults } from "./scenario";

export interface Lesson {
  key: string; title: string; says: string; schemes: [string, string]; text: string;
  /** True if only the first packets are kept. */
  big?: boolean;
}

const sixteen = (name: string): string => compose(name, "16", "permutation", "1MB", 1);

export function lessons(catalogue: Catalogue): Lesson[] {
  const own: Lesson[] = [
    {
      key: "collide", title: "1. Two messages, one link", schemes: ["ecmp", "rps"], text: compose("collide", "8", "permutation", "512KB", 1),
      says: "Eight hosts each send one message to the other side. There is a spine for every sender, so nobody has to wait. ECMP picks one path for a whole message by a hash: two messages that hit the same spine share its link, and a queue grows while other spines are idle. On the right each packet picks a path at random. All links carry the same, and packets arrive a little out of order.",
    },
    {
      key: "128", title: "2. The same with 128 hosts", schemes: ["ecmp", "weave"], text: compose("128-hosts", "128", "permutation", "1MB", 1),
      says: "A fat tree of 128 hosts has room for all of them to send at full rate. With one path a message, some links carry four messages and many carry none, and the slowest message decides when a training step goes on. Spraying fills every link alike.",
    },
    {
      key: "cut", title: "3. A link breaks", schemes: ["rps", "weave"], text: withFaults(sixteen("cut"), [{ link: "leaf0-spine1", at: 20e6, kind: "down", rate_bps: 0 }]),
      says: "After 20 us the link from leaf0 to spine1 fails, and switches have not noticed yet. Random spraying keeps losing the share of packets that it sends there. weave uses a path again only if the last packet on it came back in time, so it leaves the dead path by itself. Break more links: drag one.",
    },
    {
      key: "slow", title: "4. A slow link", schemes: ["rps", "weave"], text: withFaults(sixteen("slow"), [{ link: "leaf0-spine1", at: 0, kind: "slow", rate_bps: 20e9 }]),
      says: "One link has fallen to a fifth of its rate, as links that lost lanes do, and nobody is told. Spraying evenly means that every message waits for the slow link. A scheme that measures its paths sends less over it.",
    },
    {
      key: "incast", title: "5. Where spraying does not help", schemes: ["ecmp", "weave"], text: compose("incast", "16", "incast", "256KB", 1).replace("senders = 7", "senders = 12"),
      says: "Twelve hosts send to one. The last link is the bottleneck and every path ends there, so both take the same time. Only the queue differs: it is the congestion control that keeps it short.",
    },
  ];
  const demo = catalogue.demo.map((s): Lesson => ({
    key: s.scenario, title: s.title, schemes: [s.schemes[0], s.schemes[s.schemes.length - 1]], text: s.text, big: true,
    says: `${s.says} One of the five situations of pathweave demo, packet by packet at the full size: it takes some seconds. The first packets are drawn; later there are samples of each link.`,
  }));
  return [...own, ...demo];
}
