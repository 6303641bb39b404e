//! Prediction of the number of acknowledgements that a message causes.

use std::collections::BTreeMap;

use pathweave_policy::AckPolicy;
use pathweave_sim::SimSpec;
use pathweave_units::{HostId, Time};
use pathweave_workload::{Message, MessageGraph, TaskId};

/// Bytes of headers and gaps of a packet. An approximation is enough here.
const OVERHEAD_BYTES: u64 = 80;

/// Data packets and acknowledgements of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Packets {
    pub(crate) data: u64,
    pub(crate) acks: u64,
}

/// Returns the packets of a message that is divided into `parts`, with `mtu` bytes of payload a packet. A full packet
/// arrives every `gap_ps` picoseconds on each part.
pub(crate) fn packets(size: u64, parts: u64, mtu: u64, acks: &AckPolicy, gap_ps: u64) -> Packets {
    let parts = parts.clamp(1, size.max(1));
    // The first held-back acknowledgement waits for all packets that arrive within `max_delay`.
    let in_time = 1 + acks.max_delay.as_ps() / gap_ps.max(1);
    let an_ack = in_time.min(acks.packets_an_ack(mtu + OVERHEAD_BYTES)).max(1);
    let of_part = |bytes: u64, parts: u64| {
        let data = bytes.div_ceil(mtu).max(1);
        Packets { data: data * parts, acks: data.div_ceil(an_ack) * parts }
    };
    let longer = of_part(size / parts + 1, size % parts);
    let others = of_part(size / parts, parts - size % parts);
    Packets { data: longer.data + others.data, acks: longer.acks + others.acks }
}

/// Number of messages that share the links of a message's hosts: those that start at the same time and at the same
/// depth of dependencies.
pub(crate) struct LinkSharing {
    /// Depth of each message; empty if it is not needed.
    depth: Vec<u32>,
    at: BTreeMap<(HostId, u32, Time, bool), u32>,
}

impl LinkSharing {
    /// Counts the messages. The counts are needed only if a scheme acknowledges several packets at once, and stay
    /// empty otherwise.
    pub(crate) fn new(spec: &SimSpec) -> Self {
        let asked = spec.schemes.iter().any(|named| named.scheme.acks.may_wait());
        let mut company = LinkSharing { depth: Vec::new(), at: BTreeMap::new() };
        if asked {
            company.depth = depths(&spec.graph);
            for (message, &depth) in spec.graph.messages().iter().zip(&company.depth) {
                for (host, sends) in [(message.src, true), (message.dst, false)] {
                    *company.at.entry((host, depth, message.start, sends)).or_default() += 1;
                }
            }
        }
        company
    }

    fn count(&self, index: usize, message: &Message) -> u64 {
        let Some(&depth) = self.depth.get(index) else { return 1 };
        let at = |host, sends| self.at.get(&(host, depth, message.start, sends)).copied().unwrap_or(1);
        u64::from(at(message.src, true).max(at(message.dst, false)))
    }

    /// Returns the packets of a message, the `index`-th of the graph.
    pub(crate) fn packets(&self, spec: &SimSpec, index: usize, message: &Message) -> Packets {
        let scheme = &spec.scheme_of(message.group).scheme;
        let (mtu, parts) = (spec.network.mtu.get(), u64::from(scheme.queue_pairs));
        let rate = |host, peer| spec.topology.rate_between(host, peer);
        let line = rate(message.src, message.dst).min(rate(message.dst, message.src));
        let gap =
            line.time_for(mtu + OVERHEAD_BYTES).as_ps().saturating_mul(self.count(index, message) * parts);
        packets(message.size.get(), parts, mtu, &scheme.acks, gap)
    }
}

/// Returns for each message the largest number of successive messages that must end before it.
fn depths(graph: &MessageGraph) -> Vec<u32> {
    let messages = graph.messages().len();
    let tasks = graph.task_count();
    let id = |index: usize| TaskId(index as u32);
    let mut depth = vec![0; tasks];
    let mut waiting: Vec<u32> = (0..tasks).map(|index| graph.needs(id(index))).collect();
    let mut free: Vec<usize> = (0..tasks).filter(|&index| waiting[index] == 0).collect();
    let mut seen: Vec<bool> = waiting.iter().map(|&needs| needs == 0).collect();
    while let Some(index) = free.pop() {
        let after = depth[index] + u32::from(index < messages);
        for next in graph.all_dependents(id(index)).map(TaskId::index) {
            depth[next] = depth[next].max(after);
            // A task that needs only some of its predecessors has begun before the last of them ends.
            waiting[next] = waiting[next].saturating_sub(1);
            if waiting[next] == 0 && !seen[next] {
                seen[next] = true;
                free.push(next);
            }
        }
    }
    depth.truncate(messages);
    depth
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Duration;

    #[test]
    fn acknowledgements_by_hand() {
        let policy = |every_packets, us| AckPolicy::by_packets(every_packets, Duration::from_us(us));
        let of = |size, parts, policy, gap_ns: u64| {
            let Packets { data, acks } = packets(size, parts, 1_000, &policy, gap_ns * 1_000);
            (data, acks)
        };
        assert_eq!(of(10_000, 1, policy(1, 10), 100), (10, 10));
        // Four, four, and two at the end of the message.
        assert_eq!(of(10_000, 1, policy(4, 10), 100), (10, 3));
        // Within 1 us the first packet and three more arrive with a gap of 300 ns, and none with a gap of 2 us.
        assert_eq!(of(100_000, 1, policy(8, 1), 300), (100, 25));
        assert_eq!(of(100_000, 1, policy(8, 1), 2_000), (100, 100));
        // A threshold of 16,384 bytes is four packets of 4,096 and 80: four, four, and two.
        let by_bytes = AckPolicy::by_bytes(pathweave_units::Bytes::new(16_384), Duration::from_us(100));
        assert_eq!(packets(40_960, 1, 4_096, &by_bytes, 1), Packets { data: 10, acks: 3 });
        // Three parts of 3,334, 3,333 and 3,333 bytes: four packets each.
        assert_eq!(of(10_000, 3, policy(4, 10), 100), (12, 3));
        assert_eq!(of(1, 16, policy(4, 10), 100), (1, 1));
    }
}
