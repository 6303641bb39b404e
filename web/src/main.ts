// The report: reads the data the program put into the page and draws it, a section a subject.
import { remember, toSection } from "./address";
import { runs } from "./data";
import { choice, element } from "./dom";
import { firstCurve, firstPictures } from "./first";
import { comparing, flows } from "./flows";
import { hostTimeline } from "./hosts";
import { inspector } from "./inspector";
import { collectives, criticalPath, waterfall } from "./iterations";
import { events, jobs } from "./jobs";
import { overlays, overTime } from "./overtime";
import { drawnBy, root, section } from "./page";
import { evenness, paths } from "./paths";
import { pauses } from "./pauses";
import { scatter } from "./scatter";
import { forget, readIn, state, written } from "./state";
import { topology } from "./topology/view";

remember(written, readIn, () => draw());
const draw = drawnBy(() => {
  forget();
  firstCurve();
  firstPictures();
  section("Flows", (cards) => {
    flows(cards, () => draw());
    if (!comparing) scatter(cards);
  });
  if (comparing) {
    section("Side by side", (cards) => {
      evenness(cards);
      overlays(cards);
    });
    const options = runs.map((r, i): [number, string] => [i, r.name]);
    root.append(element("h2", { id: "one" }, "One run in detail"),
      choice("Run", options, state.run, (v) => { state.run = Number(v); state.selected = null; state.activity = null; draw(); }));
  }
  section("Fabric", (cards) => {
    topology(cards, () => draw());
    inspector(cards);
  });
  if (comparing) section("Single flows", scatter);
  section("Paths", (cards) => { paths(cards); });
  section("Over time", overTime);
  section("Pauses", pauses);
  section("Jobs", (cards) => {
    waterfall(cards);
    criticalPath(cards);
    hostTimeline(cards);
    collectives(cards);
    jobs(cards);
  });
  section("Events", events);
});
toSection();
