//! Benchmark of runs at flow fidelity: messages per CPU second of one core.

use pathweave_heap::usage::process_cpu;
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;
use serde_json::{Map, Value, json};

/// Name on the command line.
pub(crate) const NAME: &str = "flow";

const RUNS: usize = 3;

/// 1,024 hosts in 64 racks, with as many uplinks as hosts per rack.
const FABRIC: &str = "run.fidelity = \"flow\"\n[observe]\ninterval = \"0s\"\n\
    [topology]\nkind = \"leaf-spine\"\nleaves = 64\nspines = 16\nhosts_per_leaf = 16\n";

const RINGS: &str = "kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"ring\"\n\
    group_size = 64\nsize = \"64MB\"\n";

/// Name, scheme, workload, folding of symmetric ranks, and the goal in messages per CPU second. With folding, every
/// message that a run one represents counts.
const CASES: [(&str, &str, &str, &str, f64); 5] = [
    (
        "short and long messages at random, sprayed",
        "udmp",
        "kind = \"poisson\"\nsizes = \"alistorage\"\nload = 0.6\nduration = \"1ms\"\n",
        "never",
        1e6,
    ),
    (
        "the same for 10 ms",
        "udmp",
        "kind = \"poisson\"\nsizes = \"alistorage\"\nload = 0.6\nduration = \"10ms\"\n",
        "never",
        1e6,
    ),
    ("16 rings of 64, sprayed", "udmp", RINGS, "never", 5e6),
    ("these rings, of 16 ranks that stand for 64 each", "udmp", RINGS, "always", 5e6),
    (
        "long messages at random, single paths",
        "ecmp",
        "kind = \"poisson\"\nsizes = \"websearch\"\nload = 0.6\nduration = \"3ms\"\n",
        "never",
        40e3,
    ),
];

/// Runs all cases. Returns the figures, and whether all goals are met.
pub(crate) fn run_all() -> (Value, bool) {
    println!("{NAME}  runs without packets, one core, 1,024 hosts");
    let mut report = Map::new();
    let mut met = true;
    for (name, scheme, workload, fold, goal) in CASES {
        let text = format!("scheme = \"{scheme}\"\nrun.fold = \"{fold}\"\n{FABRIC}[[workload]]\n{workload}");
        let loaded = Loaded::parse(&text, "flow.toml", "", &Changes::default());
        let prepared = loaded.and_then(|loaded| loaded.prepare()).expect("benchmarks are valid");
        let mut best = f64::INFINITY;
        let mut messages = 0;
        for _ in 0..RUNS {
            let start = process_cpu();
            let result = run(&prepared.spec, &mut NoMonitor).expect("it was tried");
            best = best.min((process_cpu() - start).as_secs_f64());
            let finished = result.flows.iter().filter(|flow| flow.finish_ps.is_some()).count();
            messages = finished * result.info.times_recorded() as usize;
        }
        let rate = messages as f64 / best;
        met &= rate >= goal;
        let k = |rate: f64| rate / 1e3;
        println!(
            "    {name}: {:.0} k messages a CPU second (goal {:.0} k), {messages} in {best:.3} s",
            k(rate),
            k(goal)
        );
        report
            .insert(name.into(), json!({ "messages": messages, "cpu_s": best, "messages_per_cpu_s": rate }));
    }
    (Value::Object(report), met)
}
