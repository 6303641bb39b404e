//! Packets in flight on each path, in the order sent, and loss detection by that order (algorithm 3 of LAPS).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// A packet in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Queue pair of the packet, 16 bits.
    pub queue_pair: u16,
    /// PSN of the packet, 24 bits.
    pub psn: u32,
    /// Send time in ticks of 40 bits, which the acknowledgement echoes. Stamps ascend within one path.
    pub stamp: u64,
}

/// Rings of the paths of a host. All share one pool of entries.
#[derive(Clone, Debug)]
pub struct InFlightRings {
    rings: Box<[VecDeque<InFlight>]>,
    free: usize,
}

impl InFlightRings {
    /// Creates empty rings for `paths` paths, those of all destinations together, and for `entries` packets.
    pub fn new(paths: usize, entries: usize) -> Self {
        InFlightRings { rings: vec![VecDeque::new(); paths].into_boxed_slice(), free: entries }
    }

    /// Records that a packet leaves on a path. Returns false if no entry is free; the packet must then wait.
    #[must_use]
    pub fn sent(&mut self, path: usize, packet: InFlight) -> bool {
        let Some(free) = self.free.checked_sub(1) else { return false };
        self.free = free;
        self.rings[path].push_back(packet);
        true
    }

    /// Processes an acknowledgement that echoes the stamp of a packet of this path. Packets sent there earlier are
    /// lost and returned. If no packet in flight has the stamp, the older ones are lost; if all are newer, none is.
    pub fn on_ack(&mut self, path: usize, echo: u64) -> Vec<InFlight> {
        let ring = &mut self.rings[path];
        let older = ring.iter().take_while(|packet| packet.stamp < echo).count();
        let lost: Vec<InFlight> = ring.drain(..older).collect();
        let arrived = ring.front().is_some_and(|packet| packet.stamp == echo);
        if arrived {
            ring.pop_front();
        }
        self.free += older + usize::from(arrived);
        lost
    }

    /// Declares all packets in flight on a path lost and returns them: the path has timed out or is down.
    pub fn expired(&mut self, path: usize) -> Vec<InFlight> {
        let lost: Vec<InFlight> = self.rings[path].drain(..).collect();
        self.free += lost.len();
        lost
    }

    /// Returns the number of free entries.
    pub fn free(&self) -> usize {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(lost: &[InFlight]) -> Vec<u64> {
        lost.iter().map(|packet| packet.stamp).collect()
    }

    #[test]
    fn earlier_packets_of_a_path_are_lost() {
        let mut rings = InFlightRings::new(2, 6);
        for stamp in [10, 20, 30, 40] {
            assert!(rings.sent(1, InFlight { queue_pair: 7, psn: stamp as u32, stamp }));
        }
        assert!(rings.sent(0, InFlight { queue_pair: 7, psn: 5, stamp: 5 }));
        assert_eq!(stamps(&rings.on_ack(1, 30)), [10, 20]);
        assert_eq!(stamps(&rings.on_ack(1, 30)), [0; 0], "again");
        assert_eq!(stamps(&rings.on_ack(1, 35)), [0; 0], "of nothing that is under way");
        assert_eq!(rings.free(), 4);
        assert_eq!(stamps(&rings.expired(1)), [40]);
        assert_eq!(stamps(&rings.on_ack(1, 40)), [0; 0], "late");
        assert_eq!((stamps(&rings.expired(0)), rings.free()), (vec![5], 6));
    }

    #[test]
    fn a_full_pool_takes_nothing_until_something_leaves() {
        let mut rings = InFlightRings::new(1, 1);
        let packet = |stamp| InFlight { queue_pair: 0, psn: 0, stamp };
        assert!(rings.sent(0, packet(1)) && !rings.sent(0, packet(2)));
        assert!(rings.on_ack(0, 1).is_empty() && rings.sent(0, packet(3)));
    }
}
