//! Tests of paths and ports that differ.

use pathweave_records::RunResult;
use pathweave_sim::{NamedScheme, NoMonitor, SimSpec};
use pathweave_topo::{Link, NodeId, Switch, Topology};
use pathweave_units::{Bytes, Duration, HostId, Rate, Time};
use pathweave_workload::{GraphBuilder, NewMessage, Stream};

use crate::{Efficiency, run};

fn link(a: u32, b: u32, gbps: u64, us: u64) -> Link {
    Link {
        a: NodeId(a),
        b: NodeId(b),
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_us(us),
        error_rate: 0.0,
    }
}

fn switch(name: &str, tier: u8) -> Switch {
    Switch { name: name.into(), tier, group: None }
}

/// Runs messages of this size from host 0 to host 1, one every 10 ms.
fn messages(topology: Topology, scheme: &str, size: u64, count: u64) -> RunResult {
    let mut builder = GraphBuilder::new(topology.hosts());
    let group = builder.group("test", None).expect("the first group");
    for number in 0..count {
        let message = NewMessage {
            src: HostId(0),
            dst: HostId(1),
            size: Bytes::new(size),
            start: Time::ZERO + Duration::from_ms(10) * number,
            group,
            stream: Stream::Own,
            job: None,
        };
        builder.message(message).expect("two hosts");
    }
    let scheme = NamedScheme::find(scheme).expect("a scheme");
    let spec = SimSpec::new("unequal", topology, builder.finish().expect("no cycles"), scheme);
    run(&spec, Efficiency::WHOLE, &mut NoMonitor).expect("flows alone")
}

/// Packets that choose paths by their rates fill a link of 40 Gb/s with four fifths of a message and one of 10 Gb/s with
/// one fifth, also where the slow link is behind the spine.
#[test]
fn links_of_unlike_rates_are_filled_together() {
    for (src_leaf, dst_leaf) in [(2, 3), (3, 2)] {
        let links = vec![
            link(0, src_leaf, 100, 1),
            link(1, dst_leaf, 100, 1),
            link(2, 5, 10, 1),
            link(2, 4, 40, 1),
            link(3, 4, 40, 1),
            link(3, 5, 40, 1),
        ];
        let switches = [("leaf0", 0), ("leaf1", 0), ("spine0", 1), ("spine1", 1)];
        let switches = switches.map(|(name, tier)| switch(name, tier)).into();
        let topology = Topology::new("slow behind a spine", 2, switches, links).expect("a network");
        let flow = &messages(topology, "weave", 10_000_000, 1).flows[0];
        // 10.2 MB with headers at 50 Gb/s take 1,632 us; weave reaches it to some percent.
        let us = flow.fct_ps().expect("it ends") / 1_000_000;
        assert!((1_632..1_720).contains(&us), "leaf {src_leaf}: {us}");
    }
}

#[test]
fn packets_sprayed_leave_by_the_ports_that_lead_to_the_receiver() {
    // Host 0 has 100 Gb/s to the leaf of host 1 and 10 Gb/s to another leaf, which is farther.
    let links = vec![
        link(0, 2, 100, 1),
        link(0, 3, 10, 1),
        link(1, 2, 100, 1),
        link(2, 4, 400, 1),
        link(3, 4, 400, 1),
    ];
    let switches = vec![switch("near", 0), switch("far", 0), switch("spine", 1)];
    let topology = Topology::new("ports", 2, switches, links).expect("a network");
    let flow = &messages(topology, "rps", 1_000_000, 1).flows[0];
    // 80 us of payload at 100 Gb/s, and headers and delays of less than 5 us.
    let us = flow.fct_ps().expect("it ends") / 1_000_000;
    assert!((80..85).contains(&us), "{us} us");
}

#[test]
fn a_message_on_one_path_takes_the_time_of_that_path() {
    for (long, short) in [(4, 5), (5, 4)] {
        let links = vec![
            link(0, 2, 100, 1),
            link(1, 3, 100, 1),
            link(2, long, 100, 20),
            link(3, long, 100, 20),
            link(2, short, 100, 1),
            link(3, short, 100, 1),
        ];
        let switches = vec![switch("leaf0", 0), switch("leaf1", 0), switch("spine0", 1), switch("spine1", 1)];
        let topology = Topology::new("spines", 2, switches, links).expect("a network");
        let run = messages(topology, "ecmp", 1, 16);
        let ideals: Vec<u64> = run.flows.iter().map(|flow| flow.ideal_fct_ps / 1_000_000).collect();
        assert_eq!(ideals, [4; 16]);
        // Four links of 1 us, or two of 1 us and two of 20 us, and four transmissions of a few nanoseconds.
        let times: Vec<u64> =
            run.flows.iter().map(|flow| flow.fct_ps().expect("it ends") / 1_000_000).collect();
        assert!(times.iter().all(|us| [4, 42].contains(us)), "{times:?}");
        assert!([4, 42].iter().all(|us| times.contains(us)), "{times:?}");
    }
}
