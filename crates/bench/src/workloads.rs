//! The standard workloads B1 to B3: a fat tree at full load under random packet spraying.

use pathweave_sim::{NamedScheme, SimSpec};
use pathweave_topo::presets;
use pathweave_units::{Bytes, HostId, Rng, Time};
use pathweave_workload::{GraphBuilder, NewMessage, Stream};

/// A benchmark of the simulator.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    preset: &'static str,
    size: Bytes,
    /// Packet-hops per CPU second that it must reach, and those aimed at.
    pub(crate) floor: Option<f64>,
    pub(crate) goal: Option<f64>,
    /// Most memory it may take, in bytes.
    pub(crate) max_rss_bytes: Option<u64>,
    /// The nearest measurement of another simulator: (which, packet-hops per CPU second). See docs/benchmarks.md.
    pub(crate) peer: (&'static str, f64),
}

pub(crate) const BENCHES: [Bench; 3] = [
    Bench {
        name: "B1",
        what: "1,024 hosts, permutation of 2 MB, RPS, 4 KB MTU, an ACK a packet",
        preset: "b1-1024",
        size: Bytes::from_mb(2),
        floor: Some(10e6),
        goal: Some(20e6),
        max_rss_bytes: Some(400_000_000),
        peer: ("uet-htsim NSCC, 1,024 hosts, 2 MB", 0.29e6),
    },
    Bench {
        name: "B2",
        what: "8,192 hosts, permutation of 1 MB, RPS, 4 KB MTU, an ACK a packet",
        preset: "b2-8192",
        size: Bytes::from_mb(1),
        floor: Some(6e6),
        goal: None,
        max_rss_bytes: Some(3_000_000_000),
        peer: ("uet-htsim NSCC, 8,192 hosts, 2 MB", 0.16e6),
    },
    Bench {
        name: "B3",
        what: "128 hosts, permutation of 16 MB, RPS, 4 KB MTU, an ACK a packet",
        preset: "b3-128",
        size: Bytes::from_mb(16),
        floor: None,
        goal: Some(25e6),
        max_rss_bytes: None,
        peer: ("uet-htsim NSCC, 128 hosts, 16 MB", 0.6e6),
    },
];

/// As many hosts as the largest fabrics are planned for. It takes minutes and much of a machine's memory, so it runs once.
pub(crate) const LARGEST: Bench = Bench {
    name: "B4",
    what: "1,048,576 hosts, permutation of 64 KB, RPS, 4 KB MTU, an ACK a packet",
    preset: "b4-1m",
    size: Bytes::from_kb(64),
    floor: None,
    goal: None,
    max_rss_bytes: Some(20 << 30),
    peer: ("uet-htsim NSCC, 8,192 hosts, 2 MB", 0.16e6),
};

impl Bench {
    /// The one of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Bench> {
        BENCHES.iter().chain([&LARGEST]).find(|bench| bench.name == name)
    }

    /// The run as a user's scenario would make it: default switches (PFC and ECN on), the `rps` scheme.
    pub(crate) fn spec(&self) -> SimSpec {
        let preset =
            presets().iter().find(|p| p.name == self.preset).expect("a preset of the topology crate");
        let topology = preset.config.build(".".as_ref()).expect("presets build");
        let scheme = NamedScheme::find("rps").expect("a scheme of the policy crate");
        let mut builder = GraphBuilder::new(topology.hosts());
        let group = builder.group("permutation", None).expect("the first group");
        let mut receivers: Vec<u32> = (0..topology.hosts()).collect();
        Rng::for_component(1, "bench", 0).shuffle(&mut receivers);
        for (i, &host) in receivers.iter().enumerate() {
            let peer = receivers[(i + 1) % receivers.len()];
            let message = NewMessage {
                src: HostId(host),
                dst: HostId(peer),
                size: self.size,
                start: Time::ZERO,
                group,
                stream: Stream::Own,
                job: None,
            };
            builder.message(message).expect("hosts exist and differ");
        }
        let graph = builder.finish().expect("no cycles");
        SimSpec::new(self.name, topology, graph, scheme)
    }
}
