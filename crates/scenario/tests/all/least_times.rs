//! Bounds before a run against the run.

use pathweave_scenario::{Changes, Loaded, run};
use pathweave_sim::NoMonitor;

/// Returns the bound of a scenario, and the end of its last message, in nanoseconds.
fn bound_and_end(text: &str, fidelity: &str) -> (f64, f64) {
    let set = vec![format!("run.fidelity={fidelity:?}"), "run.calibrate=\"off\"".to_owned()];
    let loaded = Loaded::parse(text, "test.toml", "", &Changes { set, ..Changes::default() });
    let prepared = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{text}\n{why}"));
    let result = run(&prepared.spec, &mut NoMonitor).expect("it was tried");
    let last = result.flows.iter().map(|flow| flow.finish_ps.expect("it finished")).max();
    (prepared.inspect().bounds.completion_ns, last.expect("there are flows") as f64 / 1e3)
}

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n";
const LEAF_SPINE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n";
const SLOW_CORE: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nspine_rate = \"40Gbps\"\nspine_delay = \"7us\"\n";
const SITES: &str = "[topology]\nkind = \"cross-dc\"\nsites = 2\nwan_delay = \"20ms\"\n\
                     site = [{ kind = \"star\", hosts = 2 }]\n";
const SERVERS: &str = "[topology]\nkind = \"cluster\"\nservers = 2\nattach = \"server\"\nserver = { gpus = 4, nics = 2, \
                       scale_up = { kind = \"switch\", rate = \"3600Gbps\" } }\nscale_out = { kind = \"leaf-spine\", leaves = 2, \
                       spines = 2, hosts_per_leaf = 2, host_rate = \"100Gbps\" }\n";

/// One message alone takes its time on the idle network: nearly all of it is known before.
#[test]
fn one_message_takes_its_bound() {
    for (topology, to) in [(STAR, 3), (LEAF_SPINE, 3), (SITES, 3)] {
        for size in ["1KB", "100KB", "3MB"] {
            let text = format!(
                "scheme = \"rps-nocc\"\n{topology}[[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = {to}, size = \"{size}\" }}]\n"
            );
            let (bound, end) = bound_and_end(&text, "packet");
            assert!(bound <= end && bound > 0.99 * end, "{text}{bound}, {end}");
        }
    }
}

/// Three messages in a chain between sites take three times the 20 ms of the way.
#[test]
fn each_message_of_a_chain_takes_its_way() {
    let chain = "flows = [{ id = \"a\", src = 0, dst = 2, size = \"1KB\" }, { id = \"b\", src = 2, dst = 0, size = \"1KB\", after = [\"a\"] }, \
                 { src = 0, dst = 2, size = \"1KB\", after = [\"b\"] }]";
    let text = format!("scheme = \"rps-nocc\"\n{SITES}[[workload]]\nkind = \"flows\"\n{chain}\n");
    let (bound, end) = bound_and_end(&text, "packet");
    assert!(bound > 60e6 && bound <= end && bound > 0.99 * end, "{bound}, {end}");
}

#[test]
fn no_run_ends_before_its_bound() {
    let workloads = [
        "kind = \"permutation\"\nsize = \"200KB\"\n",
        "kind = \"incast\"\nsenders = 3\nsize = \"30KB\"\n",
        "kind = \"ring-all-reduce\"\nsize = \"400KB\"\n",
        "kind = \"collective\"\noperation = \"all-to-all\"\nsize = \"64KB\"\nrepetitions = 2\n",
    ];
    for topology in [STAR, LEAF_SPINE, SLOW_CORE, SERVERS] {
        for workload in workloads {
            for scheme in ["ecmp", "rps", "mprdma", "weave", "uet", "mrc"] {
                for fidelity in ["packet", "flow"] {
                    let text = format!("scheme = \"{scheme}\"\n{topology}[[workload]]\n{workload}");
                    let (bound, end) = bound_and_end(&text, fidelity);
                    assert!(bound > 0.0 && bound <= end, "{text}{fidelity}: {bound}, {end}");
                }
            }
        }
    }
}
