// Colours of activities: an activity has the same in each picture of a run.
import { run, state } from "./state";
import { summaries } from "./data";
import { areaColour, css } from "./theme";

/** Kinds of communication of the chosen run: "DP all-reduce". */
export function kinds(): string[] {
  const all = new Set<string>();
  for (const iteration of summaries[state.run].iterations) Object.keys(iteration.exposed_ns).forEach((kind) => all.add(kind));
  run().collectives.kind.forEach((kind) => all.add(kind));
  return [...all].sort();
}

/** Returns the colour of each activity of the chosen run: communication by kind, then what else its hosts do. */
export function activityColours(): (activity: string) => string {
  const names = new Set(kinds());
  run().hosts.labels.forEach((label) => names.add(label.kind));
  run().critical_paths.steps.forEach((step) => names.add(step.activity));
  const order = [...names].filter((name) => name !== "wait");
  return (activity) => activity === "computation" ? css("--soft")
    : activity === "idle" || activity === "wait" ? css("--grid")
    : areaColour(Math.max(0, order.indexOf(activity)));
}
