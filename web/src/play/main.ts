// The page on which one watches packets choose their paths.
import { element } from "../dom";
import { show } from "../format";
import { choices, lessonButtons, markLesson } from "./controls";
import { Film } from "./film";
import { files } from "./files";
import { lessons, type Lesson } from "./lessons";
import { Links } from "./links";
import { Panel } from "./panel";
import { scenario, span, state } from "./state";
import { Transport } from "./transport";
import { themeButton } from "../theme";
import "../style.css";
import "./play.css";

const at = (id: string): HTMLElement => document.getElementById(id)!;
/** Packets on links that a film may have: of a small situation, and of one of the demo. */
const MOST_HOPS = 1_500_000, MOST_HOPS_BIG = 300_000;

const links = new Links(at("link"), () => draw(true), () => void run("stay"));
const panels = ([0, 1] as const).map((i) => new Panel(i, (cable) => links.choose(cable), (cable) => links.harm(cable, "down"), (host) => links.follow(host)));
const transport = new Transport(at("transport"), draw);
let told = 0;

function draw(all: boolean): void {
  panels.forEach((panel) => panel.draw(all));
  verdict();
  if (state.films.length && performance.now() - told > 400 && !at("link").contains(document.activeElement?.closest("select") ?? null)) {
    told = performance.now();
    void links.ask();
  }
}

function tell(text: string, bad = false): void {
  at("told").textContent = text;
  at("told").classList.toggle("bad", bad);
}

// A sentence for the end of both runs.
function verdict(): void {
  const [a, b] = state.films, over = state.films.length === 2 && state.t >= Math.max(a.finish, b.finish) && a.finish > 0 && b.finish > 0;
  if (!over) { at("verdict").textContent = ""; return; }
  const [slow, fast] = a.finish >= b.finish ? [a, b] : [b, a], times = slow.finish / fast.finish;
  const compared = times < 1.02 ? `${a.name} and ${b.name} take the same time, ${show("time_ns", fast.finish / 1e3)}`
    : `${slow.name} takes ${times.toFixed(times < 10 ? 1 : 0)} times as long as ${fast.name}: ${show("time_ns", slow.finish / 1e3)} against ${show("time_ns", fast.finish / 1e3)}`;
  const queues = `The longest queue is ${show("bytes", a.longest(a.end))} under ${a.name} and ${show("bytes", b.longest(b.end))} under ${b.name}`;
  const late = Number.isFinite(a.filmed) ? "" : ` Packets that came late: ${a.late(a.end)} and ${b.late(b.end)}.`;
  at("verdict").textContent = `${compared}. ${queues}.${late}`;
}

// Colours of schemes are those of every page, unless the two would have the same.
function colours(): void {
  const of = (name: string) => state.catalogue.schemes.find((s) => s.name === name)?.colour ?? 0;
  const [a, b] = state.schemes.map(of);
  state.colours = [`--c${a}`, `--c${a === b ? (b + 1) % 8 : b}`];
}

let turn = 0;

/** Runs both schemes; `start` plays from the beginning, `stay` goes on at the instant that is shown. */
async function run(where: "start" | "stay"): Promise<void> {
  const mine = ++turn, keep = state.t, was = state.playing || where === "start", text = scenario();
  transport.play(false);
  const shares = [0, 0], running = () => tell(`Simulating: ${shares.map((s, i) => `${state.schemes[i]} ${Math.round(100 * s)} %`).join(", ")}`);
  running();
  state.engines.forEach((engine, i) => { engine.progress = (share) => { shares[i] = share; if (mine === turn) running(); }; });
  document.documentElement.removeAttribute("data-drawn");
  try {
    const most_hops = state.big ? MOST_HOPS_BIG : MOST_HOPS;
    const results = await Promise.all(state.engines.map((engine, i) => engine.run({ text, scheme: state.schemes[i], most_hops })));
    if (mine !== turn) return;
    state.films = results.map((result) => new Film(result));
    tell(results.flatMap(({ ran }) => ran.notes).filter((note, i, all) => all.indexOf(note) === i).join("\n"));
  } catch (why) {
    if (mine === turn && (why as Error).message !== "stopped") tell((why as Error).message, true);
    return;
  }
  const [film] = state.films, shown = film.byFinish.filter((flow) => flow.start < film.filmed / 2), slowest = shown[shown.length - 1] ?? film.flows[0];
  if (where === "start") state.pair = [slowest.src, slowest.dst];
  colours();
  panels.forEach((panel) => panel.load());
  links.show();
  files(at("files"), (changed) => { state.text = changed; state.composed = false; state.faults = []; state.lesson = undefined; refresh(); void run("start"); });
  transport.go(where === "stay" ? Math.min(keep, span()) : 0);
  document.documentElement.dataset.drawn = "";
  if (was && !matchMedia("(prefers-reduced-motion: reduce)").matches) transport.play(true);
}

function refresh(): void {
  markLesson(at("lessons"));
  at("says").textContent = state.lesson?.says ?? "Your own: choose, or change the scenario below.";
  choices(at("choices"), (what) => {
    if (what === "built") { state.composed = true; state.faults = []; state.big = false; refresh(); }
    void run("start");
  });
}

function begin(lesson: Lesson): void {
  Object.assign(state, { lesson, composed: false, text: lesson.text, schemes: [...lesson.schemes], faults: [], big: lesson.big ?? false, chosen: "", t: 0 });
  history.replaceState(null, "", `#${lesson.key}`);
  refresh();
  void run("start");
}

async function open(): Promise<void> {
  (document.querySelector("details.choose") as HTMLDetailsElement).open = innerWidth > 800;
  at("head").append(themeButton(() => draw(true)));
  at("stages").replaceChildren(...panels.map((panel) => panel.root));
  tell("Loading the simulator ...");
  state.catalogue = await state.engines[0].catalogue();
  const all = lessons(state.catalogue);
  lessonButtons(at("lessons"), all, begin);
  addEventListener("resize", () => draw(true));
  begin(all.find((lesson) => `#${lesson.key}` === location.hash) ?? all[0]);
  at("files").after(element("p", { class: "note" }, `pathweave ${state.catalogue.version}`));
}

void open().catch((why) => tell(String(why), true));
