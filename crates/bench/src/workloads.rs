//! Standard workloads B1 to B5: a fat tree under random packet spraying.

use pathweave_sim::{NamedScheme, SimSpec};
use pathweave_topo::presets;
use pathweave_units::{Bytes, HostId, Rng, Time};
use pathweave_workload::{Draft, GraphBuilder, GroupId, MessageGraph, NewMessage, Stream};

/// Benchmark of the simulator.
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    preset: &'static str,
    work: Work,
    size: Bytes,
    /// Floor and goal in packet-hops per CPU second.
    pub(crate) floor: Option<f64>,
    pub(crate) goal: Option<f64>,
    /// Largest allowed memory in bytes.
    pub(crate) max_rss_bytes: Option<u64>,
    /// Nearest measurement of another simulator: its name and packet-hops per CPU second. See docs/benchmarks.md.
    pub(crate) peer: (&'static str, f64),
}

/// Traffic of the hosts.
#[derive(Clone, Copy)]
enum Work {
    /// Each host sends to one other host.
    Permutation,
    /// Rings of `members` hosts, one for each rail of their blocks of hosts. They run the first steps of an
    /// all-reduce, in each of which a member sends on what it received in the step before.
    Rings { rails: u32, members: u32, steps: u32 },
}

pub(crate) const BENCHES: [Bench; 3] = [
    Bench {
        name: "B1",
        what: "1,024 hosts, permutation of 2 MB, RPS, 4 KB MTU, an ACK a packet",
        preset: "b1-1024",
        work: Work::Permutation,
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
        work: Work::Permutation,
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
        work: Work::Permutation,
        size: Bytes::from_mb(16),
        floor: None,
        goal: Some(25e6),
        max_rss_bytes: None,
        peer: ("uet-htsim NSCC, 128 hosts, 16 MB", 0.6e6),
    },
];

/// Steps of B5. An all-reduce in a ring of 1,024 has 2,046 steps; this number fits into the memory of B4.
const RING_STEPS: u32 = 6;

/// Benchmarks with as many hosts as the largest planned fabrics. They take minutes and much memory, so they run once.
pub(crate) const LARGEST: [Bench; 2] = [PERMUTATION_OF_A_MILLION, RINGS_OF_A_MILLION];

const RINGS_OF_A_MILLION: Bench = Bench {
    name: "B5",
    what: "1,048,576 hosts, all-reduce in rings of 8 rails with 1,024 members each, 64 KB a step, its first 6 of 2,046 steps",
    preset: "b4-1m",
    work: Work::Rings { rails: 8, members: 1_024, steps: RING_STEPS },
    size: Bytes::from_kb(64),
    floor: None,
    goal: None,
    max_rss_bytes: Some(20 << 30),
    peer: ("uet-htsim NSCC, 8,192 hosts, 2 MB", 0.16e6),
};

const PERMUTATION_OF_A_MILLION: Bench = Bench {
    name: "B4",
    what: "1,048,576 hosts, permutation of 64 KB, RPS, 4 KB MTU, an ACK a packet",
    preset: "b4-1m",
    work: Work::Permutation,
    size: Bytes::from_kb(64),
    floor: None,
    goal: None,
    max_rss_bytes: Some(20 << 30),
    peer: ("uet-htsim NSCC, 8,192 hosts, 2 MB", 0.16e6),
};

impl Bench {
    /// Returns the benchmark of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Bench> {
        BENCHES.iter().chain(&LARGEST).find(|bench| bench.name == name)
    }

    /// Returns the run that a user's scenario would make: default switches (PFC and ECN on), the `rps` scheme.
    pub(crate) fn spec(&self) -> SimSpec {
        let preset =
            presets().iter().find(|p| p.name == self.preset).expect("a preset of the topology crate");
        let topology = preset.config.build(".".as_ref()).expect("presets build");
        let scheme = NamedScheme::find("rps").expect("a scheme of the policy crate");
        let graph = self.graph(topology.hosts());
        SimSpec::new(self.name, topology, graph, scheme)
    }

    fn graph(&self, hosts: u32) -> MessageGraph {
        let mut builder = GraphBuilder::new(hosts);
        let group = builder.group("bench", None).expect("the first group");
        match self.work {
            Work::Permutation => {
                let mut receivers: Vec<u32> = (0..hosts).collect();
                Rng::for_component(1, "bench", 0).shuffle(&mut receivers);
                for (i, &host) in receivers.iter().enumerate() {
                    let peer = receivers[(i + 1) % receivers.len()];
                    self.message(&mut builder, group, (host, peer), Stream::Own);
                }
            }
            Work::Rings { rails, members, steps } => {
                for ring in 0..hosts / members {
                    let (block, rail) = (ring / rails, ring % rails);
                    let host = |member: u32| (block * members + member % members) * rails + rail;
                    let mut before: Vec<Option<Draft>> = vec![None; members as usize];
                    for _ in 0..steps {
                        let now: Vec<Draft> = (0..members)
                            .map(|member| {
                                let ends = (host(member), host(member + 1));
                                self.message(&mut builder, group, ends, Stream::Shared(0))
                            })
                            .collect();
                        for (member, message) in now.iter().enumerate() {
                            // The message that this one's sender received from its predecessor.
                            let from = (member + members as usize - 1) % members as usize;
                            if let Some(before) = before[from] {
                                builder.after(*message, before).expect("both were declared");
                            }
                        }
                        before = now.into_iter().map(Some).collect();
                    }
                }
            }
        }
        builder.finish().expect("no cycles")
    }

    fn message(
        &self,
        builder: &mut GraphBuilder,
        group: GroupId,
        (src, dst): (u32, u32),
        stream: Stream,
    ) -> Draft {
        let (src, dst) = (HostId(src), HostId(dst));
        let message = NewMessage { src, dst, size: self.size, start: Time::ZERO, group, stream, job: None };
        builder.message(message).expect("hosts exist and differ")
    }
}

#[cfg(test)]
mod tests {
    use pathweave_workload::TaskId;

    use super::*;

    /// Two blocks of two rails with four members. Every member of a ring is on its rail and in its block, sends to
    /// the next member, and sends again once it has received.
    #[test]
    fn rings_stay_on_their_rails() {
        let work = Work::Rings { rails: 2, members: 4, steps: 3 };
        let graph = Bench { work, ..RINGS_OF_A_MILLION }.graph(16);
        assert_eq!(graph.messages().len(), 16 * 3);
        for (message, task) in graph.messages().iter().zip(0..) {
            let (src, dst) = (message.src.0, message.dst.0);
            assert_eq!((src % 2, src / 8), (dst % 2, dst / 8), "another rail or block");
            assert_eq!((src / 2 + 1) % 4, dst / 2 % 4);
            assert!(graph.predecessors(TaskId(task)) <= 1);
        }
        let waiting = (0..48).filter(|&task| graph.predecessors(TaskId(task)) == 1).count();
        assert_eq!(waiting, 32, "all but those of the first step");
    }
}
