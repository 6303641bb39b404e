//! What `check` says of memory, beside what runs take. `cargo test -p pathweave-scenario --test memory -- --nocapture`
//! prints it.

#![allow(clippy::print_stdout, reason = "the figures are the point")]

use std::path::Path;

use allocation_counter::measure;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::{Quiet, run};

/// Memory of the program itself, which no run allocates.
const PROGRAM: f64 = 18e6;

const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 16\n";

fn is_right_to_a_factor_of_1_5(name: &str, text: &str) {
    let mut estimate = None;
    let info = measure(|| {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let loaded = Loaded::parse(text, "a.toml", folder, &Changes::default()).expect("it is valid");
        let prepared = loaded.prepare().expect("it is valid");
        estimate = Some(prepared.inspect().estimate);
        let result = run(&prepared.spec, &mut Quiet).expect("it runs");
        println!("{name}: {} packet-hops", result.info.packet_hops);
    });
    let estimate = estimate.expect("it was made");
    let (found, foreseen) = (info.bytes_max as f64, estimate.memory_bytes - PROGRAM);
    println!(
        "{name}: {:.2} MB foreseen, {:.2} MB found, {:.2}",
        foreseen / 1e6,
        found / 1e6,
        foreseen / found
    );
    println!("{name}: {} packet-hops foreseen", estimate.packet_hops);
    // The ranges are of the whole.
    let whole = found + PROGRAM;
    assert!(
        (estimate.memory_range_bytes.0..=estimate.memory_range_bytes.1).contains(&whole),
        "{name}: {whole} beside {:?}",
        estimate.memory_range_bytes
    );
    assert!((1.0 / 1.5..=1.5).contains(&(foreseen / found)), "{name}: {foreseen} foreseen, {found} found");
}

#[test]
fn few_large_messages() {
    is_right_to_a_factor_of_1_5(
        "permutation",
        &format!("{LEAF_SPINE}\n[[workload]]\nkind = \"permutation\"\nsize = \"2MB\"\n"),
    );
}

#[test]
fn many_connections_at_once() {
    is_right_to_a_factor_of_1_5(
        "all-to-all at once",
        &format!(
            "{LEAF_SPINE}\n[[workload]]\nkind = \"collective\"\noperation = \"all-to-all\"\nsize = \"256KB\"\nrepetitions = 2\n"
        ),
    );
}

#[test]
fn one_connection_after_the_other() {
    is_right_to_a_factor_of_1_5(
        "all-to-all in steps",
        &format!(
            "{LEAF_SPINE}\n[[workload]]\nkind = \"collective\"\noperation = \"all-to-all\"\nalgorithm = \"pairwise\"\nsize = \"256KB\"\n"
        ),
    );
}

#[test]
fn messages_that_come_and_go() {
    is_right_to_a_factor_of_1_5(
        "poisson",
        &format!(
            "{LEAF_SPINE}\n[[workload]]\nkind = \"poisson\"\nsizes = \"hadoop\"\nload = 0.4\nflows = 6000\n"
        ),
    );
}

#[test]
fn traces() {
    is_right_to_a_factor_of_1_5(
        "simai",
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 8\n\n[[workload]]\nkind = \"simai\"\n\
         file = \"moe-9216gpu\"\ngpus = 32\npp = 2\nep = 8\nmicrobatches = 4\nscale = 0.0002\n",
    );
}
