//! Ring all-reduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).

use pathweave_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::collective::Collective;
use super::placement::{GroupSize, Placement};
use crate::error::WorkloadError;
use crate::sink::{Generate, WorkloadBuilder};

/// Groups of n hosts add up a vector in 2 (n - 1) steps around a ring. Each round of each ring is a job. A short
/// form of `collective` with `operation = "all-reduce"` and `algorithm = "ring"`.
///
/// The vector is divided into n parts. Half of the steps reduce: in step s, member i sends part i - s - 1
/// (modulo n) to member i + 1, once it has received that part and added its own. The other half distribute
/// the result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RingAllReduce {
    /// Size of the vector that each host contributes; at least one byte per host of the group.
    pub size: Bytes,
    /// Number of hosts in a ring, or a list of numbers, one for each ring. Default: one ring of all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Assignment of hosts to rings.
    #[serde(default)]
    pub placement: Placement,
    /// Number of rounds, one after another (default 1). A host begins the next round when its part of the
    /// previous one has ended.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Duration of a computation at each host after each round, as part of the round's job (default 0).
    #[serde(default)]
    pub compute: Duration,
}

fn one() -> u32 {
    1
}

impl Generate for RingAllReduce {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        let RingAllReduce { size, ref group_size, placement, repetitions, compute } = *self;
        let group_size = group_size.clone();
        let collective = Collective { group_size, placement, repetitions, compute, ..Collective::ring(size) };
        collective.generate(out)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pathweave_units::{Rate, Time};

    use super::*;
    use crate::config::{MessageConnections, WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::graph::{Message, MessageGraph, Moment, TaskId};
    use crate::kinds::Traffic;
    use crate::testing::{graph_of, job_ends};

    fn ring(size: u64, repetitions: u32, compute: Duration) -> Traffic {
        let size = Bytes::new(size);
        let placement = Placement::Consecutive;
        Traffic::RingAllReduce(RingAllReduce { size, group_size: None, placement, repetitions, compute })
    }

    /// Returns the senders and sizes of the messages along the chain of dependencies from one message.
    fn chain_from(graph: &MessageGraph, first: usize) -> Vec<(u32, u64)> {
        let mut id = TaskId(first as u32);
        let mut chain = Vec::new();
        loop {
            let message = &graph.messages()[id.index()];
            chain.push((message.src.0, message.size.get()));
            match graph.dependents(id, Moment::Delivery) {
                [] => return chain,
                [next] => id = *next,
                more => panic!("{} tasks wait for one step", more.len()),
            }
        }
    }

    #[test]
    fn four_hosts_by_hand() {
        // 4002 bytes: chunks 0 and 1 have 1001 bytes, chunks 2 and 3 have 1000.
        let graph = graph_of(4, ring(4002, 1, Duration::ZERO));
        assert_eq!(graph.messages().len(), 24);
        assert!(graph.computes().is_empty());
        assert_eq!(graph.total_bytes(), 2 * 3 * 4002);
        // A chunk travels around the ring: host 2 sends chunk 1, then host 3 sends it, and so on.
        let starts: Vec<usize> = (0..24).filter(|&i| graph.predecessors(TaskId(i as u32)) == 0).collect();
        assert_eq!(starts, [0, 1, 2, 3]);
        for (host, &first) in starts.iter().enumerate() {
            let size = if host == 1 || host == 2 { 1001 } else { 1000 };
            let expected: Vec<_> = (0..6).map(|step| ((host as u32 + step) % 4, size)).collect();
            assert_eq!(chain_from(&graph, first), expected);
        }
        let to_the_right = |m: &Message| m.dst.0 == (m.src.0 + 1) % 4;
        assert!(graph.messages().iter().all(to_the_right));
        // All six messages of a host use one connection.
        assert!(graph.messages().iter().all(|m| m.stream == 0));
    }

    #[test]
    fn each_message_has_a_connection_of_its_own_where_asked_for() {
        let config = WorkloadConfig {
            connections: MessageConnections::Own,
            ..WorkloadConfig::new(ring(4002, 1, Duration::ZERO))
        };
        let graph = build(&[config], &WorkloadEnv::new(4, Rate::from_gbps(100))).unwrap().graph;
        assert!(graph.messages().iter().all(Message::has_own_stream));
        let distinct: BTreeSet<_> = graph.messages().iter().map(|m| (m.src, m.dst, m.stream)).collect();
        assert_eq!(distinct.len(), 24);
    }

    #[test]
    fn a_job_ends_with_its_computation_and_the_next_begins_then() {
        // Equal chunks of 1000 bytes at a nanosecond per byte: a round takes 6 us, and 4 us of computation.
        let graph = graph_of(4, ring(4000, 3, Duration::from_us(4)));
        assert_eq!(graph.computes().len(), 12);
        let ends: Vec<Time> = job_ends(&graph);
        assert_eq!(ends, [Time::from_us(10), Time::from_us(20), Time::from_us(30)]);
    }

    #[test]
    fn nobody_adds_what_it_has_not_computed() {
        // In the second round, every message of steps 0 to 3 waits for its sender's computation of the first
        // round.
        let graph = graph_of(4, ring(4000, 2, Duration::from_us(4)));
        let own_messages_after = |id: TaskId| {
            let host = graph.computes()[id.index() - graph.messages().len()].host;
            let messages = graph
                .dependents(id, Moment::Delivery)
                .iter()
                .filter_map(|&t| graph.messages().get(t.index()));
            messages.filter(|m| Some(m.src) == host).count()
        };
        let mut waiting: Vec<usize> = (0..8).map(|i| own_messages_after(graph.compute_id(i))).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, [0, 0, 0, 0, 4, 4, 4, 4]);
    }

    #[test]
    fn groups_of_the_udmp_evaluation() {
        // UDMP paper, Fig. 5: 4 servers, 3 rounds of 2 x 3 steps. Fig. 11: 320 hosts in 20 rings of 16, 30
        // steps.
        let graph = graph_of(4, ring(4_000_000, 3, Duration::ZERO));
        assert_eq!((graph.messages().len(), graph.jobs().len()), (3 * 6 * 4, 3));
        let Traffic::RingAllReduce(base) = ring(16_000_000, 1, Duration::ZERO) else { unreachable!() };
        let config = RingAllReduce { group_size: Some(16.into()), placement: Placement::Strided, ..base };
        let graph = graph_of(320, Traffic::RingAllReduce(config));
        assert_eq!((graph.messages().len(), graph.jobs().len()), (320 * 30, 20));
        assert!(graph.messages().iter().all(|m| m.dst.0 == (m.src.0 + 20) % 320));
    }
}
