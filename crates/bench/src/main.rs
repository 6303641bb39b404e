//! Benchmarks of speed and memory, counted as work per CPU second: `make bench` runs all, `cargo run --release -p
//! pathweave-bench -- PART` one.
//!
//! Each benchmark of the simulator runs in a separate process, which gives it a peak memory of its own. The best of
//! several runs counts, because other work on the machine can only slow a run down. Results go to
//! `target/bench.json`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bypass;
mod choice;
mod flow;
mod iteration;
mod loops;
mod ofi;
mod paths;
mod scaling;
mod transport;
mod workloads;

use std::num::NonZeroU16;
use std::process::{Command, ExitCode};
use std::time::Instant;

use pathweave_heap::usage::{available_bytes, peak_rss_bytes, process_cpu};
use pathweave_sim::{NoMonitor, SimSpec, Simulation};
use serde_json::{Map, Value, json};
use workloads::{BENCHES, Bench, LARGEST};

const RUNS: usize = 5;

/// Function that runs a part. It returns the figures, and whether the floors are met.
type Part = fn() -> (Value, bool);

/// Parts other than single runs of the simulator, in the order of measurement. The part of the libfabric provider has
/// subparts.
const PARTS: [(&str, Part); 7] = [
    (choice::NAME, choice::run),
    (flow::NAME, flow::run_all),
    (iteration::NAME, iteration::run_both),
    (transport::NAME, transport::run),
    (bypass::NAME, bypass::run),
    (loops::NAME, loops::run),
    (paths::NAME, paths::run),
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (Some("--one"), Some(name)) => {
            let bench = Bench::find(&name).expect("a benchmark by this name");
            let threads = args.next().map(|threads| threads.parse().expect("a number of threads, 1 or more"));
            println!("{}", one(bench, threads));
            ExitCode::SUCCESS
        }
        (Some("--udp"), Some(part)) => {
            let words: Vec<String> = std::iter::once(part).chain(args).collect();
            match transport::udp(&words) {
                Ok(value) => println!("{value}"),
                Err(why) => {
                    eprintln!("{why}");
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        (None, _) => all(None, &[]),
        (Some(name), part) => {
            let parts: Vec<String> = part.into_iter().chain(args).collect();
            let largest = LARGEST.iter().map(|bench| bench.name);
            let others = largest.chain(PARTS.iter().map(|(name, _)| *name)).chain([ofi::NAME]);
            let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).chain(others).collect();
            let unknown = parts.iter().find(|part| name != ofi::NAME || !ofi::PARTS.contains(&part.as_str()));
            if let Some(unknown) = unknown {
                eprintln!(
                    "\"{unknown}\" is no part of a benchmark; those of ofi are {}",
                    ofi::PARTS.join(", ")
                );
                return ExitCode::from(2);
            }
            if known.contains(&name) {
                return all(Some(name), &parts);
            }
            eprintln!("no benchmark is named \"{name}\"; there are {}", known.join(", "));
            ExitCode::from(2)
        }
    }
}

/// Runs one benchmark in this process, with one thread or the given number.
fn one(bench: &Bench, threads: Option<NonZeroU16>) -> Value {
    let spec = SimSpec { threads, ..bench.spec() };
    let (wall, start) = (Instant::now(), process_cpu());
    let simulation = Simulation::new(&spec).expect("benchmarks are valid");
    let set_up_cpu_s = (process_cpu() - start).as_secs_f64();
    let set_up_s = wall.elapsed().as_secs_f64();
    let (wall, start) = (Instant::now(), process_cpu());
    let result = simulation.run(&mut NoMonitor);
    let cpu_s = (process_cpu() - start).as_secs_f64();
    let wall_s = wall.elapsed().as_secs_f64();
    let unfinished = result.flows.iter().filter(|f| f.finish_ps.is_none()).count();
    json!({
        "hosts": spec.topology.hosts(),
        "packet_hops_per_cpu_s": result.info.packet_hops as f64 / cpu_s,
        "packet_hops_per_s": result.info.packet_hops as f64 / wall_s,
        "events_per_packet_hop": result.info.events as f64 / result.info.packet_hops as f64,
        "packet_hops": result.info.packet_hops,
        "events": result.info.events,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "set_up_cpu_s": set_up_cpu_s,
        "set_up_s": set_up_s,
        "simulated_us": result.info.simulated_ps as f64 / 1e6,
        "peak_rss_bytes": peak_rss_bytes(),
        "unfinished_flows": unfinished,
        "digest": result.info.digest_hex(),
    })
}

/// Runs all parts, or one. `parts` restricts it to some subparts, if not empty.
fn all(only: Option<&str>, parts: &[String]) -> ExitCode {
    let cores = scaling::cores();
    let (steps, mut tables) = (scaling::steps(cores), Vec::new());
    let mut report = Map::new();
    let mut met = true;
    for bench in BENCHES.iter().filter(|b| only.is_none_or(|name| name == b.name)) {
        println!("{}  {}", bench.name, bench.what);
        let mut best: Option<Value> = None;
        for _ in 0..RUNS {
            let value = run(bench, 1);
            if best.as_ref().is_none_or(|b| speed(&value) > speed(b)) {
                best = Some(value);
            }
        }
        let mut best = best.expect("at least one run");
        met &= print(bench, &best);
        let table = scaling::measure(bench, &steps, RUNS, run);
        for &threads in &steps[1..] {
            let times = scaling::speedup(&table, threads).unwrap_or(0.0);
            println!("    {threads} threads: {times:.2} times as fast as one");
        }
        met &= scaling::agree(&table);
        best["speedup_2"] = scaling::speedup(&table, 2).into();
        best["threads"] = table.clone();
        tables.push((bench.name, table));
        report.insert(bench.name.into(), best);
    }
    for bench in LARGEST.iter().filter(|b| only.is_none_or(|name| name == b.name)) {
        match largest(bench, cores) {
            Ok(value) => {
                met &= print(bench, &value);
                report.insert(bench.name.into(), value);
            }
            Err(why) => println!("{} skipped: {why}", bench.name),
        }
    }
    for (part, run) in PARTS {
        if only.is_none_or(|name| name == part) {
            let (value, all_met) = run();
            met &= all_met;
            report.insert(part.into(), value);
        }
    }
    if only.is_none_or(|name| name == ofi::NAME) {
        let (value, all_met) = ofi::run(parts);
        met &= all_met;
        report.insert(ofi::NAME.into(), value);
    }
    std::fs::create_dir_all("target").expect("target/ can be made");
    let text = serde_json::to_string_pretty(&Value::Object(report)).expect("JSON");
    std::fs::write("target/bench.json", text + "\n").expect("target/ can be written");
    if !tables.is_empty() {
        std::fs::write("target/scaling.svg", scaling::curve(&tables, &steps))
            .expect("target/ can be written");
    }
    println!("written to target/bench.json");
    if !met {
        // A missed floor is reported and is not a failure. A busy machine may miss a floor that an idle one meets.
        println!("a floor was missed; see above");
    }
    ExitCode::SUCCESS
}

/// Runs one benchmark with the given number of threads, in a separate process.
fn run(bench: &Bench, threads: u16) -> Value {
    let program = std::env::current_exe().expect("this program has a path");
    let threads = threads.to_string();
    let output = Command::new(program).args(["--one", bench.name, &threads]).output();
    let output = output.expect("this program can be run again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON from this very program")
}

/// Runs one of the largest benchmarks once, on all cores. Returns an error if there is not enough memory.
fn largest(bench: &Bench, cores: u16) -> Result<Value, String> {
    let needed = bench.max_rss_bytes.unwrap_or(0);
    let free = available_bytes().unwrap_or(0);
    if free < needed {
        return Err(format!(
            "it may take {} GB, and {} are free",
            needed / 1_000_000_000,
            free / 1_000_000_000
        ));
    }
    println!("{}  {}", bench.name, bench.what);
    let value = run(bench, cores);
    let seconds = |field: &str| value[field].as_f64().unwrap_or(0.0);
    println!(
        "    {:.0} s to set up, {:.0} s to run, {cores} threads",
        seconds("set_up_s"),
        seconds("wall_s")
    );
    Ok(value)
}

fn speed(value: &Value) -> f64 {
    value["packet_hops_per_cpu_s"].as_f64().unwrap_or(0.0)
}

/// Prints a result beside its floors and the nearest peer. Returns false if it misses a floor.
fn print(bench: &Bench, value: &Value) -> bool {
    let (hops, rss) = (speed(value), value["peak_rss_bytes"].as_u64().unwrap_or(0));
    let per_hop = value["events_per_packet_hop"].as_f64().unwrap_or(0.0);
    let bar =
        |name: &str, bar: Option<f64>| bar.map_or(String::new(), |b| format!("  {name} {:.0} M", b / 1e6));
    println!(
        "    {:.1} M packet-hops per CPU second ({:.0} ns each){}{}",
        hops / 1e6,
        1e9 / hops,
        bar("floor", bench.floor),
        bar("goal", bench.goal)
    );
    println!("    {per_hop:.3} events a packet-hop, {:.0} MB peak", rss as f64 / 1e6);
    let (peer, peer_hops) = bench.peer;
    println!("    {:.0} times {peer} ({:.2} M)", hops / peer_hops, peer_hops / 1e6);
    let met = bench.floor.is_none_or(|floor| hops >= floor)
        && per_hop <= 1.5
        && bench.max_rss_bytes.is_none_or(|most| rss <= most);
    if !met {
        println!("    below its floor");
    }
    met
}
