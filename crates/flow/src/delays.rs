//! Delays of the paths of sprayed packets. A message ends when the slowest of its packets has arrived.

use std::collections::BTreeMap;

use pathweave_execution::max_min::bytes_per_ps;
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::NodeId;
use pathweave_units::{HostId, Spread};

use crate::walk::{Capacities, MOST_LINKS, Walker};

/// Largest number of delays that are told apart. Neighbours are merged beyond it.
const MAX_DELAYS: usize = 16;

/// Ratio of the delays of two paths beyond which windows and timers by delay are disturbed.
pub(crate) const UNEQUAL: f64 = 1.5;

/// Paths of equal delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathDelay {
    /// Propagation in picoseconds.
    propagation_ps: f64,
    /// Time that the transmitters of all hops take for a byte, in picoseconds.
    ps_per_byte: f64,
    /// Fraction of the packets that take these paths.
    share: f64,
}

impl PathDelay {
    /// Returns the one-way time of a packet in picoseconds.
    fn one_way_ps(&self, packet_bytes: f64) -> f64 {
        self.propagation_ps + self.ps_per_byte * packet_bytes
    }

    /// Returns a value for comparisons.
    pub(crate) fn key(&self) -> [u64; 3] {
        [self.propagation_ps, self.ps_per_byte, self.share].map(f64::to_bits)
    }

    /// Merges paths into these.
    fn merge(&mut self, other: &PathDelay) {
        let share = self.share + other.share;
        let mean = |own: f64, others: f64| (own * self.share + others * other.share) / share;
        let propagation_ps = mean(self.propagation_ps, other.propagation_ps);
        let ps_per_byte = mean(self.ps_per_byte, other.ps_per_byte);
        *self = PathDelay { propagation_ps, ps_per_byte, share };
    }
}

/// Sorts paths by delay and merges those of equal delays, and neighbours if there are many.
fn merged(mut paths: Vec<PathDelay>) -> Vec<PathDelay> {
    let key = |path: &PathDelay| (path.propagation_ps.to_bits(), path.ps_per_byte.to_bits());
    paths.sort_by_key(key);
    let mut kept: Vec<PathDelay> = Vec::new();
    for path in paths {
        match kept.last_mut() {
            Some(last) if key(last) == key(&path) => last.share += path.share,
            _ => kept.push(path),
        }
    }
    if kept.len() <= MAX_DELAYS {
        return kept;
    }
    let merge = |paths: &[PathDelay]| {
        let mut all = paths[0];
        paths[1..].iter().for_each(|path| all.merge(path));
        all
    };
    kept.chunks(kept.len().div_ceil(MAX_DELAYS)).map(merge).collect()
}

impl Walker<'_> {
    /// Returns the delays of the paths over which packets are spread, with the fractions of those that arrive. Hosts
    /// without traffic send by each of their ports in turn.
    pub(crate) fn delays(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        (src, dst): (HostId, HostId),
    ) -> Vec<PathDelay> {
        let topology = self.topology;
        let start = PathDelay { propagation_ps: 0.0, ps_per_byte: 0.0, share: 1.0 };
        let mut here = BTreeMap::from([(NodeId::from(src), vec![start])]);
        let mut arrived = Vec::new();
        for hop in 0..MOST_LINKS {
            let mut next: BTreeMap<NodeId, Vec<PathDelay>> = BTreeMap::new();
            for (node, paths) in here {
                let paths = merged(paths);
                let weights = self.collect_weights(ways, capacities, spread, (node, dst));
                let in_turn = |weight: f64| if hop == 0 && weight > 0.0 { 1.0 } else { weight };
                let all: f64 = weights.iter().map(|(_, weight)| in_turn(*weight)).sum();
                for &(port, weight) in weights {
                    let at = topology.ports(node)[usize::from(port)];
                    let (is_alive, rate) = ways.direction(at.link, at.is_a);
                    if weight == 0.0 || !is_alive {
                        continue;
                    }
                    let (share, byte_ps) = (in_turn(weight) / all, 1.0 / bytes_per_ps(rate));
                    let delay_ps = topology.egress(&at).delay.as_ps() as f64;
                    next.entry(at.peer).or_default().extend(paths.iter().map(|path| PathDelay {
                        propagation_ps: path.propagation_ps + delay_ps,
                        ps_per_byte: path.ps_per_byte + byte_ps,
                        share: path.share * share,
                    }));
                }
            }
            arrived.extend(next.remove(&dst.into()).into_iter().flatten());
            here = next;
            if here.is_empty() {
                break;
            }
        }
        let mut delays = merged(arrived);
        let all: f64 = delays.iter().map(|path| path.share).sum();
        delays.iter_mut().for_each(|path| path.share /= all);
        // One delay is that of the profile.
        if delays.len() == 1 { Vec::new() } else { delays }
    }
}

/// Packets of a message that are spread over paths of unlike delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpreadPackets {
    pub(crate) count: u64,
    /// Bytes of each on the wire.
    pub(crate) bytes: f64,
    /// Time between two of them in picoseconds.
    pub(crate) interval_ps: f64,
}

/// Returns the time in picoseconds by which the last packet arrives after one that leaves last and takes
/// `reference_ps`. It is the mean, or if there is a draw from 0 to 1, the mean of those runs in which packets take the
/// slow paths that the draw selects.
pub(crate) fn lateness_ps(
    delays: &[PathDelay],
    packets: SpreadPackets,
    reference_ps: f64,
    draw: Option<f64>,
) -> f64 {
    let mut paths: Vec<(f64, f64)> =
        delays.iter().map(|path| (path.one_way_ps(packets.bytes), path.share)).collect();
    paths.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut late, mut slower, mut before) = (0.0, 1.0, reference_ps);
    for (one_way, share) in paths {
        if one_way > before {
            late += step_ps(one_way - before, slower, packets, draw);
            before = one_way;
        }
        slower = (slower - share).max(0.0);
    }
    late
}

/// Returns the part of the lateness that paths longer by `longer_ps` cause. Each packet takes one of them with
/// probability `share`. The last packet that does leaves some intervals before the end of the message.
fn step_ps(longer_ps: f64, share: f64, packets: SpreadPackets, draw: Option<f64>) -> f64 {
    let other = 1.0 - share;
    if other < 1e-9 {
        return longer_ps;
    }
    let none = power(other, packets.count);
    if draw.is_some_and(|draw| draw < none) {
        return 0.0;
    }
    // Packets from the end on of which a delayed one still arrives last.
    let within = (longer_ps / packets.interval_ps.max(1.0)) as u64;
    let last = within.min(packets.count - 1);
    let missed = power(other, last + 1);
    let intervals = {
        let last = last as f64;
        other * (1.0 - (last + 1.0) * (missed / other) + last * missed) / share
    };
    let mean = longer_ps * (1.0 - missed) - packets.interval_ps * intervals.max(0.0);
    let mean = if draw.is_some() { mean / (1.0 - none) } else { mean };
    mean.clamp(0.0, longer_ps)
}

/// Returns true if the delays of a packet on these paths are so unlike that controls by delay are disturbed.
pub(crate) fn are_unequal(delays: &[PathDelay], packet_bytes: f64) -> bool {
    let one_way = delays.iter().map(|path| path.one_way_ps(packet_bytes));
    let (least, most) = one_way.fold((f64::MAX, 0.0f64), |(least, most), ps| (least.min(ps), most.max(ps)));
    most > UNEQUAL * least
}

/// Returns the one-way time of a packet on the path that a draw from 0 to 1 selects, in picoseconds. Without a draw it
/// is the mean.
pub(crate) fn one_way_ps(delays: &[PathDelay], packet_bytes: f64, draw: Option<f64>) -> f64 {
    let Some(mut left) = draw else {
        return delays.iter().map(|path| path.share * path.one_way_ps(packet_bytes)).sum();
    };
    for path in delays {
        left -= path.share;
        if left < 0.0 {
            return path.one_way_ps(packet_bytes);
        }
    }
    delays.last().map_or(0.0, |path| path.one_way_ps(packet_bytes))
}

/// Returns a power with multiplications only, so that the result is the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two(slow: f64) -> [PathDelay; 2] {
        let path = |propagation_ps, share| PathDelay { propagation_ps, ps_per_byte: 0.0, share };
        [path(1e6, 1.0 - slow), path(9e6, slow)]
    }

    fn packets(count: u64, interval_ps: f64) -> SpreadPackets {
        SpreadPackets { count, bytes: 4096.0, interval_ps }
    }

    /// A packet alone takes the slow path in half of the cases, one of two packets in three quarters.
    #[test]
    fn few_packets_are_as_late_as_the_slowest() {
        for (count, part) in [(1, 0.5), (2, 0.75), (3, 0.875), (64, 1.0)] {
            let mean = lateness_ps(&two(0.5), packets(count, 0.0), 1e6, None);
            assert!((mean - 8e6 * part).abs() < 1.0, "{count}: {mean}");
            let drawn = |draw| lateness_ps(&two(0.5), packets(count, 0.0), 1e6, Some(draw));
            let none = 0.5f64.powi(count as i32);
            assert_eq!([drawn(none * 0.99), drawn(none * 1.01)].map(f64::round), [0.0, 8e6]);
        }
    }

    /// The mean over all placements of 6 packets, one by one.
    #[test]
    fn the_last_slow_packet_leaves_before_the_end() {
        for slow in [0.1, 0.25, 0.5] {
            let (count, interval) = (6u32, 3e6);
            let mut mean = 0.0;
            for placement in 0..1u32 << count {
                let taken = placement.count_ones() as i32;
                let weight = f64::powi(slow, taken) * f64::powi(1.0 - slow, count as i32 - taken);
                let late = (0..count)
                    .map(|before| {
                        let way = if placement >> before & 1 == 1 { 9e6 } else { 1e6 };
                        way - f64::from(before) * interval
                    })
                    .fold(0.0, f64::max);
                mean += weight * (late - 1e6);
            }
            let late = lateness_ps(&two(slow), packets(u64::from(count), interval), 1e6, None);
            assert!((late - mean).abs() < 1.0, "{slow}: {late} and not {mean}");
        }
    }

    #[test]
    fn no_message_ends_earlier_with_another_packet() {
        for draw in [None, Some(0.03), Some(0.3), Some(0.9)] {
            let end =
                |count: u64| count as f64 * 3e5 + lateness_ps(&two(0.2), packets(count, 3e5), 1e6, draw);
            for count in 1..200 {
                assert!(end(count + 1) >= end(count) - 1.0, "{count} {draw:?}");
            }
        }
    }

    #[test]
    fn many_delays_are_merged() {
        let path = |at: u32| PathDelay { propagation_ps: f64::from(at), ps_per_byte: 1.0, share: 0.01 };
        let merged = merged((0..100).map(path).collect());
        assert!(merged.len() <= MAX_DELAYS);
        let sum = |of: fn(&PathDelay) -> f64| merged.iter().map(of).sum::<f64>();
        assert!((sum(|path| path.share) - 1.0).abs() < 1e-9);
        assert!((sum(|path| path.share * path.propagation_ps) - 49.5).abs() < 1e-9);
    }
}
