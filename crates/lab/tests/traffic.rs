//! Workload on a lab: dependencies, several queue pairs, and records as in the simulator.

#[allow(dead_code, clippy::print_stderr)] // Each test file uses a part of it; skips are printed.
mod common;

use std::path::Path;

use common::{TestLab, privileged};
use pathweave_lab::{RateScale, Settings, over_sockets};
use pathweave_records::{EndReason, FlowStatus};
use pathweave_sim::{NamedScheme, SimSpec};
use pathweave_topo::{Build, LeafSpine, Topology};
use pathweave_units::{Bytes, Duration, Rate};
use pathweave_workload::{Placement, RingAllReduce, Traffic, WorkloadConfig, WorkloadEnv, build};

/// Two rings of all four hosts, one after the other: each host sends six messages of 50 KB in each ring.
fn spec(scheme: &str, topology: Topology) -> SimSpec {
    let rings = Traffic::RingAllReduce(RingAllReduce {
        size: Bytes::new(200_000),
        group_size: None,
        placement: Placement::default(),
        repetitions: 2,
        compute: Duration::from_us(3),
    });
    let env = WorkloadEnv::new(4, Rate::from_gbps(100));
    let graph = build(&[WorkloadConfig::new(rings)], &env).unwrap().graph;
    let named = NamedScheme::find(scheme).unwrap();
    let mut spec = SimSpec::new(scheme, topology, graph, named);
    spec.run.verify = true;
    spec
}

#[test]
fn a_collective_runs_to_its_end() {
    if !privileged("a_collective_runs_to_its_end") {
        return;
    }
    let topology = || LeafSpine::new(2, 2, 2).build(Path::new(".")).unwrap();
    let mut lab = TestLab::new(topology(), Settings::new("1/1000".parse::<RateScale>().unwrap()));
    // One queue pair for each connection, and several.
    for scheme in ["ecmp", "qp-scaling"] {
        let spec = spec(scheme, topology());
        let mut most = 0;
        let look = &mut |seen: pathweave_lab::RunProgress| {
            most = seen.bytes_done.max(most);
            true
        };
        let result = pathweave_lab::run(&mut lab.0, &spec, &over_sockets, look).unwrap().result;
        assert_eq!(result.info.ended, EndReason::Completed, "{scheme}");
        assert_eq!(result.flows.len(), 2 * 4 * 6, "{scheme}");
        for flow in &result.flows {
            assert_eq!(flow.status, FlowStatus::Finished, "{scheme}: {flow:?}");
            assert!(flow.finish_ps.is_some() && flow.acked_ps >= flow.finish_ps, "{scheme}: {flow:?}");
        }
        // 50 KB in packets of 4,096 bytes. Packets sent while messages share a connection count for one of them.
        let sent: u32 = result.flows.iter().map(|flow| flow.sent_packets).sum();
        assert!(sent >= 48 * 13, "{scheme}: {sent}");
        assert!(
            result.jobs.iter().all(|job| job.finish_ps > Some(job.start_ps)),
            "{scheme}: {:?}",
            result.jobs
        );
        assert!(most <= spec.graph.total_bytes() && most > 0, "{scheme}: {most}");
    }
}
