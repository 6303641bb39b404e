//! Estimated cost of `check` compared with the actual cost.

use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

const FABRIC: &str =
    "topology = { kind = \"leaf-spine\", leaves = 4, spines = 4, hosts_per_leaf = 4 }\n[[workload]]\n";

/// Returns the packet-hops estimated and simulated.
fn packet_hops(workload: &str, scheme: &str, set: &[&str]) -> (f64, f64) {
    let scheme = format!("scheme={scheme}");
    let set = [scheme.as_str()].iter().chain(set).map(|&text| text.to_owned()).collect();
    let changes = Changes { set, ..Changes::default() };
    let loaded =
        Loaded::parse(&format!("{FABRIC}{workload}"), "cost.toml", ".", &changes).expect("a scenario");
    let prepared = loaded.prepare().expect("that can run");
    let run = pathweave_sim::run(&prepared.spec, &mut NoMonitor).expect("and does");
    (prepared.inspect().estimate.packet_hops.expect("it is a run of packets"), run.info.packet_hops as f64)
}

#[test]
fn packet_hops_are_foreseen_to_a_tenth() {
    let permutation = "kind = \"permutation\"\nsize = \"2MB\"";
    let ring = "kind = \"ring-all-reduce\"\nsize = \"8MB\"";
    let all_to_all = "kind = \"all-to-all\"\nsize = \"100KB\"";
    let short = "kind = \"permutation\"\nsize = \"9KB\"";
    let every = ["acks.every_packets=1", "acks.every_packets=4", "acks.every_packets=8"];
    let mut wrong = Vec::new();
    for workload in [permutation, ring, all_to_all, short] {
        // Not predicted: congestion notifications, retransmissions (of late datagrams), and acknowledgements that the
        // timer sends because the window has fewer packets than they wait for (Swift).
        for scheme in ["rps", "ecmp", "ecmp-sr", "mprdma", "swift-published", "qp-scaling"] {
            for acks in every {
                let set: &[&str] = &[&format!("scheme.{acks}")];
                let (estimated, came) = packet_hops(workload, scheme, set);
                if (estimated / came - 1.0).abs() > 0.1 {
                    wrong.push(format!("{scheme} {acks} {workload:?}: {estimated} estimated, {came} came"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
