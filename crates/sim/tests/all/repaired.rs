//! Schemes that spread packets use a spine again once it is back.

use crate::support::{play, spec};
use pathweave_fabric::config::FaultConfig;
use pathweave_records::FlowStatus;
use pathweave_sim::SimSpec;
use pathweave_topo::{Build, LeafSpine};
use pathweave_units::{Duration, Rate};
use std::path::Path;

/// SMaRTT is not among them: its flows recycle paths that return without a mark, as REPS does, but keep queues so short
/// that no packet is marked, and so try no other path.
const SPREAD: [&str; 8] = ["rps", "swift-rps", "reps", "udmp", "weave", "laps", "mprdma", "strack"];

/// Two pairs of hosts share two spines. One spine is down from 200 us to 600 us. 40 MB take 3.37 ms at line rate. Both
/// flows over one spine would take until 6.6 ms. They share the one that is left for 400 us, which costs half of that
/// time, and have 800 us more to notice that the other is back.
#[test]
fn a_spine_that_is_back_is_used_again() {
    let two_spines = LeafSpine {
        host_rate: Rate::from_gbps(100),
        host_delay: Duration::from_us(1),
        ..LeafSpine::new(2, 2, 2)
    };
    let topology = two_spines.build(Path::new(".")).expect("a leaf-spine");
    for scheme in SPREAD {
        let mut spec: SimSpec =
            spec(topology.clone(), &[(0, 2, 40_000_000, 0), (1, 3, 40_000_000, 0)], scheme);
        spec.faults.push(FaultConfig::SwitchDown {
            switch: "spine0".into(),
            at: Duration::from_us(200),
            up_at: Some(Duration::from_us(600)),
        });
        let result = play(&spec);
        assert!(result.flows.iter().all(|flow| flow.status == FlowStatus::Finished), "{scheme}");
        let last_us = result.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("flows") / 1_000_000;
        assert!((3_370..4_370).contains(&last_us), "{scheme}: {last_us} us");
    }
}
