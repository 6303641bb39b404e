//! Statistics of data packets that leave a host, collected if `observe.departures` is set: the gap to the packet
//! before, and the path.

use std::collections::BTreeMap;

use pathweave_records::{Departures, Gaps, PathLength};
use pathweave_topo::PathSets;
use pathweave_transport::Transmit;
use pathweave_units::{HostId, PathId, QpNum, Time};
use pathweave_wire::Body;

/// Upper bounds of the gap classes in nanoseconds: six per decade, from 10 ns to 100 ms.
const BOUNDS: [u64; 43] = bounds();

const fn bounds() -> [u64; 43] {
    const STEPS: [u64; 6] = [10, 15, 20, 30, 50, 70];
    let mut bounds = [0; 43];
    let (mut index, mut decade) = (0, 1);
    while index < 43 {
        bounds[index] = STEPS[index % 6] * decade;
        index += 1;
        if index % 6 == 0 {
            decade *= 10;
        }
    }
    bounds
}

/// Departure statistics of one host.
#[derive(Clone, Debug, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct DepartureLog {
    /// Number of gaps up to each bound, and above the last.
    gaps: [u64; BOUNDS.len() + 1],
    /// Message and departure time of the latest packet of each queue pair.
    last: BTreeMap<QpNum, (u32, Time)>,
    /// Wire bytes by destination and path.
    bytes: BTreeMap<(HostId, PathId), u64>,
}

impl DepartureLog {
    pub(crate) fn new() -> Self {
        DepartureLog { gaps: [0; BOUNDS.len() + 1], last: BTreeMap::new(), bytes: BTreeMap::new() }
    }

    /// Records a packet of `wire_bytes` that leaves the host.
    pub(crate) fn note(&mut self, now: Time, packet: &Transmit, wire_bytes: u32) {
        let segment = &packet.segment;
        *self.bytes.entry((packet.to, segment.path)).or_default() += u64::from(wire_bytes);
        let Body::Data(data) = &segment.body else { return };
        if let Some((msn, before)) = self.last.insert(segment.src_qp, (data.msn, now))
            && msn == data.msn
        {
            let ps = (now - before).as_ps();
            self.gaps[BOUNDS.partition_point(|&ns| ns * 1_000 < ps)] += 1;
        }
    }
}

/// Sums the statistics of all hosts. `sets` holds the explicit paths if sources choose.
pub(crate) fn totals<'a>(
    logs: impl Iterator<Item = (HostId, &'a DepartureLog)>,
    sets: Option<&PathSets>,
) -> Departures {
    let mut gaps = [0; BOUNDS.len() + 1];
    let mut lengths: BTreeMap<u32, PathLength> = BTreeMap::new();
    for (src, log) in logs {
        for (sum, count) in gaps.iter_mut().zip(log.gaps) {
            *sum += count;
        }
        let Some(sets) = sets else { continue };
        let mut sent: BTreeMap<HostId, u64> = BTreeMap::new();
        for (&(dst, path), &bytes) in &log.bytes {
            *sent.entry(dst).or_default() += bytes;
            let Some(hops) = sets.between(src, dst).nth(path.index()) else { continue };
            lengths.entry(links(hops)).or_default().wire_bytes += bytes;
        }
        for (dst, bytes) in sent {
            let paths = sets.between(src, dst);
            let each = bytes as f64 / paths.len() as f64;
            for hops in paths {
                lengths.entry(links(hops)).or_default().uniform_bytes += each;
            }
        }
    }
    let gap = |(index, packets): (usize, u64)| Gaps {
        above_ns: if index == 0 { 0 } else { BOUNDS[index - 1] },
        up_to_ns: BOUNDS.get(index).copied().unwrap_or(u64::MAX),
        packets,
    };
    Departures {
        gaps: gaps.into_iter().enumerate().map(gap).filter(|gaps| gaps.packets > 0).collect(),
        lengths: lengths.into_iter().map(|(links, length)| PathLength { links, ..length }).collect(),
    }
}

/// Returns the number of links from host to host on a path of these hops.
fn links(hops: &[pathweave_topo::Hop]) -> u32 {
    hops.len() as u32 + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_six_a_decade() {
        assert_eq!(BOUNDS[..7], [10, 15, 20, 30, 50, 70, 100]);
        assert!(BOUNDS.contains(&50_000), "the flowlet gap of LetFlow and CONGA in LAPS' study");
        assert_eq!(BOUNDS[42], 100_000_000);
    }
}
