//! Counters of flows agree with those of links, wherever a run ends.

use std::path::Path;

use pathweave_policy::schemes;
use pathweave_sim::{NoMonitor, run};
use pathweave_topo::{Build, Star};
use pathweave_units::{Duration, Rate};

use crate::support::{graph, with_graph};

/// Largest number of packets that measure the delays of paths and belong to no message.
fn probes(scheme: &str) -> u64 {
    if matches!(scheme, "laps-published" | "laps-code-2025") { 40 } else { 0 }
}

/// 1 MB at 100 Gb/s takes 84 us. The sender's link carries nothing but its packets.
#[test]
fn a_run_that_is_cut_counts_the_packets_that_left() {
    let mut wrong = Vec::new();
    for scheme in schemes() {
        for until_us in [20, 60, 87, 400] {
            let star = Star { rate: Rate::from_gbps(100), delay: Duration::from_us(1), ..Star::new(2) };
            let topology = star.build(Path::new(".")).expect("a star");
            let mut spec = with_graph(topology, graph(2, &[(0, 1, 1_000_000, 0)]), scheme.name);
            spec.run.until = Some(Duration::from_us(until_us));
            let result = run(&spec, &mut NoMonitor).expect("a valid spec");
            let left: u64 =
                result.links.iter().filter(|link| link.from_node == 0).map(|link| link.tx_packets).sum();
            let sent = u64::from(result.flows[0].sent_packets);
            // One packet may be on its way through the NIC.
            if sent > left + 1 || sent + 1 + probes(scheme.name) < left {
                wrong.push(format!("{} until {until_us} us: {sent} of {left}", scheme.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
