// What the page shows, and who draws it again.
import type { Catalogue } from "./abi.mjs";
import { Engine } from "./engine";
import type { Film } from "./film";
import type { Lesson } from "./lessons";
import type { Fault } from "./scenario";
import { withFaults } from "./scenario";

export const state = {
  catalogue: undefined as unknown as Catalogue,
  lesson: undefined as Lesson | undefined,
  /** True if the scenario is as the selects say. */
  composed: false,
  /** The scenario without faults that the reader added. */
  text: "",
  schemes: ["ecmp", "rps"] as [string, string],
  faults: [] as Fault[],
  films: [] as Film[],
  colours: ["--c7", "--c2"] as [string, string],
  engines: [new Engine(), new Engine()] as [Engine, Engine],
  /** Sender and receiver that are followed. */
  pair: [0, 0] as [number, number],
  chosen: "",
  /** Instant that is shown, picoseconds. */
  t: 0,
  playing: false,
  /** How many times as fast as a playback of the whole in 24 seconds. */
  speed: 1,
  big: false,
};

/** The scenario as it runs. */
export const scenario = (): string => withFaults(state.text, state.faults);

/** The end of the longer run. */
export const span = (): number => Math.max(1, ...state.films.map((f) => f.end));

/** Picoseconds that a second shows. */
export const pace = (): number => (span() / 24) * state.speed;
