//! Memory estimates of `check` compared with the memory of runs. They are printed by
//! `cargo test -p pathweave-scenario --test memory -- --nocapture`.

#![allow(clippy::print_stdout, reason = "the figures are the point")]

use std::num::NonZeroU16;
use std::path::Path;

use allocation_counter::measure;
use pathweave_scenario::{Changes, Loaded, Process};
use pathweave_sim::{NoMonitor, SimSpec, Simulation};

const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 16\n";
const FAT_TREE: &str = "[topology]\nkind = \"fat-tree\"\npods = 8\ntors_per_pod = 4\naggs_per_pod = 4\nhosts_per_tor = 4\n\
                        cores = 16\n";

fn loaded(text: &str, set: &[&str]) -> Loaded {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let set = set.iter().map(|&text| text.to_owned()).collect();
    let loaded = Loaded::parse(text, "a.toml", folder, &Changes { set, ..Changes::default() });
    loaded.expect("it is valid")
}

/// Returns the estimated memory of a run and its peak allocations, both without the program and the report.
fn foreseen_and_found(name: &str, text: &str, set: &[&str]) -> (f64, f64) {
    let mut memory = None;
    let mut idle_network = 0;
    let loaded = loaded(text, set);
    let info = measure(|| {
        let prepared = loaded.draft().expect("it is valid");
        memory = Some(prepared.memory_in(Process::ONE_THREAD));
        // Allocations of other threads are not counted, so one thread runs all parts in turn.
        let spec = SimSpec { threads: None, ..prepared.spec };
        let (result, weight) =
            Simulation::new(&spec).expect("it can be set up").run_and_weigh(&mut NoMonitor);
        idle_network = weight.idle_network;
        println!("{name}: {} packet-hops, {weight:?}", result.info.packet_hops);
    });
    let memory = memory.expect("it was made");
    let of = |name: &str| {
        let part = memory.parts.iter().find(|part| part.part == name);
        part.unwrap_or_else(|| panic!("no part {name}")).bytes
    };
    for part in &memory.parts {
        println!("    {:<12} {:>12}", part.part, part.bytes);
    }
    // Memory that exists from the start is counted, so the estimate is accurate to a few percent.
    let network = of("network") as f64 / idle_network as f64;
    assert!((1.0..1.05).contains(&network), "{name}: {network} times the network found");
    // The program is not allocated, and the report is created later by other code.
    let foreseen = (memory.total_bytes - of("results") - of("program")) as f64;
    println!(
        "{name}: {:.2} MB foreseen, {:.2} MB found, {:.2}",
        foreseen / 1e6,
        info.bytes_max as f64 / 1e6,
        foreseen / info.bytes_max as f64
    );
    (foreseen, info.bytes_max as f64)
}

/// Large and small networks, idle and busy, few large and many small messages, schemes of all kinds. Where hosts send
/// more than the network can carry, which few messages do, queues are longer than estimated.
#[test]
fn allocations_of_a_run_are_predicted() {
    let permutation = "[[workload]]\nkind = \"permutation\"\nsize = \"2MB\"\n";
    let at_once = "[[workload]]\nkind = \"collective\"\noperation = \"all-to-all\"\nsize = \"256KB\"\n";
    let in_steps = "[[workload]]\nkind = \"collective\"\noperation = \"all-to-all\"\nalgorithm = \"pairwise\"\nsize = \"256KB\"\n";
    let poisson = "[[workload]]\nkind = \"poisson\"\nsizes = \"hadoop\"\nload = 0.4\nflows = 6000\n";
    let ring = "[[workload]]\nkind = \"ring-all-reduce\"\nsize = \"4MB\"\n";
    let incast = "[[workload]]\nkind = \"incast\"\nsenders = 32\nsize = \"500KB\"\n";
    let few = "[[workload]]\nkind = \"permutation\"\nsize = \"64KB\"\nflows = 8\n";
    let simai = "[[workload]]\nkind = \"simai\"\nfile = \"moe-9216gpu\"\ngpus = 32\npp = 2\nep = 8\nmicrobatches = 4\nscale = 0.0002\n";
    let mut wrong = Vec::new();
    for (name, topology, workload, set) in [
        ("permutation, rps", LEAF_SPINE, permutation, &["scheme=rps"][..]),
        ("permutation, rps, no samples", LEAF_SPINE, permutation, &["scheme=rps", "observe.interval=0s"]),
        ("permutation, ecmp, no samples", LEAF_SPINE, permutation, &["scheme=ecmp", "observe.interval=0s"]),
        ("permutation, laps, no samples", LEAF_SPINE, permutation, &["scheme=laps", "observe.interval=0s"]),
        ("poisson, rps, no samples", FAT_TREE, poisson, &["scheme=rps", "observe.interval=0s"]),
        ("permutation, ecmp", LEAF_SPINE, permutation, &["scheme=ecmp"]),
        ("permutation, udmp, no samples", FAT_TREE, permutation, &["scheme=udmp", "observe.interval=0s"]),
        ("permutation, laps", LEAF_SPINE, permutation, &["scheme=laps"]),
        ("all-to-all at once, ecmp", LEAF_SPINE, at_once, &["scheme=ecmp"]),
        ("all-to-all in steps, rps", LEAF_SPINE, in_steps, &["scheme=rps", "observe.interval=0s"]),
        ("poisson, rps", FAT_TREE, poisson, &["scheme=rps"]),
        ("ring, ecmp", FAT_TREE, ring, &["scheme=ecmp", "observe.interval=0s"]),
        ("incast, rps", FAT_TREE, incast, &["scheme=rps", "observe.interval=0s"]),
        ("few, rps", FAT_TREE, few, &["scheme=rps", "observe.interval=0s"]),
        ("simai", LEAF_SPINE, simai, &["scheme=rps"]),
    ] {
        let (foreseen, found) = foreseen_and_found(name, &format!("{topology}\n{workload}"), set);
        let allowed = if topology == LEAF_SPINE && workload == permutation { 0.4..=1.5 } else { 0.85..=1.5 };
        if !allowed.contains(&(foreseen / found)) {
            wrong.push(format!("{name}: {foreseen:.0} foreseen, {found:.0} found, {:.2}", foreseen / found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each thread has the state of all messages, but only its part of the network. Messages, samples and records exist once.
#[test]
fn threads_have_copies() {
    let loaded = loaded(&format!("{FAT_TREE}\n[[workload]]\nkind = \"permutation\"\nsize = \"64KB\"\n"), &[]);
    let prepared = loaded.draft().expect("it is valid");
    let by = |threads| {
        let threads = NonZeroU16::new(threads).expect("one or more");
        prepared.memory_in(Process { threads, ..Process::ONE_THREAD })
    };
    let (one, four) = (by(1), by(4));
    assert_eq!(one.total_bytes, one.parts.iter().map(|part| part.bytes).sum::<u64>());
    for (one, four) in one.parts.iter().zip(&four.parts) {
        match one.part {
            // Three of four links between pods and core join nodes of different threads, which adds a quarter of the ports.
            // Each thread has an entry for every switch.
            "network" => assert!(four.bytes < one.bytes * 5 / 3, "{four:?}, {one:?}"),
            "routes" | "messages" | "samples" | "records" | "topology" | "program" | "hosts" => {
                assert_eq!(four, one);
            }
            _ => assert!(four.bytes >= one.bytes, "{}", one.part),
        }
    }
}

/// A calibrated flow simulation takes the larger of the packet simulation's memory and its own.
#[test]
fn flows_measured_on_packets_take_what_packets_take() {
    let workload = "[[workload]]\nkind = \"permutation\"\nsize = \"2MB\"\n";
    let of = |set: &[&str]| {
        let prepared = loaded(&format!("{FAT_TREE}\n{workload}"), set).draft().expect("it is valid");
        prepared.memory_in(Process::ONE_THREAD)
    };
    let packets = of(&["observe.interval=0s"]);
    let flows = of(&["run.fidelity=flow", "run.calibrate=off"]);
    let measured = of(&["run.fidelity=flow", "run.calibrate=prefix"]);
    assert!(flows.total_bytes < packets.total_bytes, "{flows:?} {packets:?}");
    assert_eq!(measured, packets);
}
