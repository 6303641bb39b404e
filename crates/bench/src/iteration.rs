//! Benchmark of a whole training iteration of 1,024 GPUs at full size, at packet and at flow fidelity.

use std::num::NonZeroU16;
use std::time::Instant;

use pathweave_heap::usage::process_cpu;
use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::{NoMonitor, SimSpec};
use serde_json::{Value, json};

use crate::scaling;

/// Name on the command line.
pub(crate) const NAME: &str = "iteration";

/// Llama 3 70B on 16 stages of 8 replicas of 8 GPUs. The network has 64 leaves without oversubscription at 400 Gb/s.
const SCENARIO: &str = "scheme = \"udmp\"\n[observe]\ninterval = \"0s\"\n\
    [topology]\nkind = \"leaf-spine\"\nleaves = 64\nspines = 16\nhosts_per_leaf = 16\n\
    host_rate = \"400Gbps\"\nspine_rate = \"400Gbps\"\n\
    [[workload]]\nkind = \"transformer\"\nmodel = \"llama-3-70b\"\ngpus = 1024\ntp = 8\npp = 16\nmicrobatches = 1\n";

/// Runs the iteration once at each fidelity. Returns the figures; there is no floor.
pub(crate) fn run_both() -> (Value, bool) {
    println!("{NAME}  Llama 3 70B on 1,024 GPUs, TP 8, PP 16, one microbatch at its full size");
    let flows = measure("flow", 1);
    let packets = measure("packet", scaling::cores());
    let error = flows.1 / packets.1 - 1.0;
    println!("    without packets the iteration takes {:+.2} % of the time", 100.0 * error);
    (json!({ "packet": packets.0, "flow": flows.0, "flow_error": error }), true)
}

/// Returns the figures at one fidelity, and the time of the iteration in seconds.
fn measure(fidelity: &str, threads: u16) -> (Value, f64) {
    let text = format!("run.fidelity = \"{fidelity}\"\n{SCENARIO}");
    let loaded = Loaded::parse(&text, "iteration.toml", "", &Changes::default());
    let prepared = loaded.and_then(|loaded| loaded.prepare()).expect("benchmarks are valid");
    let spec = SimSpec { threads: NonZeroU16::new(threads), ..prepared.spec };
    let (wall, cpu) = (Instant::now(), process_cpu());
    let result = run(&spec, &mut NoMonitor).expect("it was tried");
    let (wall_s, cpu_s) = (wall.elapsed().as_secs_f64(), (process_cpu() - cpu).as_secs_f64());
    let ends = result.jobs.iter().filter_map(|job| job.finish_ps).max();
    let iteration_s = ends.expect("the iteration ends") as f64 / 1e12;
    let hops = result.info.packet_hops;
    println!(
        "    {fidelity:6}  {iteration_s:.6} s simulated in {wall_s:.1} s by {threads} threads, {cpu_s:.1} CPU s, {hops} packet-hops"
    );
    let figures = json!({
        "iteration_s": iteration_s,
        "threads": threads,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "packet_hops": hops,
        "messages": result.flows.len(),
        "unfinished_flows": result.flows.iter().filter(|flow| flow.finish_ps.is_none()).count(),
    });
    (figures, iteration_s)
}
