//! What is under way on each path, in the order sent, and what is lost by that order (algorithm 3 of LAPS).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// A packet under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Its queue pair, 16 bits.
    pub queue_pair: u16,
    /// Its PSN, 24 bits.
    pub psn: u32,
    /// When it was sent, in ticks of 40 bits, which an acknowledgement echoes. Packets of one path have ascending stamps.
    pub stamp: u64,
}

/// Rings of the paths of a host, which share one pool of entries.
#[derive(Clone, Debug)]
pub struct Rings {
    rings: Box<[VecDeque<InFlight>]>,
    free: usize,
}

impl Rings {
    /// Empty rings, for `paths` paths of all destinations together, and `entries` packets.
    pub fn new(paths: usize, entries: usize) -> Self {
        Rings { rings: vec![VecDeque::new(); paths].into_boxed_slice(), free: entries }
    }

    /// A packet leaves on a path. False if there is no room for it: then it must wait.
    #[must_use]
    pub fn sent(&mut self, path: usize, packet: InFlight) -> bool {
        let Some(free) = self.free.checked_sub(1) else { return false };
        self.free = free;
        self.rings[path].push_back(packet);
        true
    }

    /// An acknowledgement echoes the stamp of a packet of this path: what was sent there before it is lost. An echo of
    /// nothing that is under way loses what is older; one older than all loses nothing.
    pub fn heard(&mut self, path: usize, echo: u64) -> Vec<InFlight> {
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

    /// Nothing was heard of a path for too long, or it is down: all that is under way there is lost.
    pub fn expired(&mut self, path: usize) -> Vec<InFlight> {
        let lost: Vec<InFlight> = self.rings[path].drain(..).collect();
        self.free += lost.len();
        lost
    }

    /// Entries that hold no packet.
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
    fn what_was_sent_before_on_a_path_is_lost() {
        let mut rings = Rings::new(2, 6);
        for stamp in [10, 20, 30, 40] {
            assert!(rings.sent(1, InFlight { queue_pair: 7, psn: stamp as u32, stamp }));
        }
        assert!(rings.sent(0, InFlight { queue_pair: 7, psn: 5, stamp: 5 }));
        assert_eq!(stamps(&rings.heard(1, 30)), [10, 20]);
        assert_eq!(stamps(&rings.heard(1, 30)), [0; 0], "again");
        assert_eq!(stamps(&rings.heard(1, 35)), [0; 0], "of nothing that is under way");
        assert_eq!(rings.free(), 4);
        assert_eq!(stamps(&rings.expired(1)), [40]);
        assert_eq!(stamps(&rings.heard(1, 40)), [0; 0], "late");
        assert_eq!((stamps(&rings.expired(0)), rings.free()), (vec![5], 6));
    }

    #[test]
    fn a_full_pool_takes_nothing_until_something_leaves() {
        let mut rings = Rings::new(1, 1);
        let packet = |stamp| InFlight { queue_pair: 0, psn: 0, stamp };
        assert!(rings.sent(0, packet(1)) && !rings.sent(0, packet(2)));
        assert!(rings.heard(0, 1).is_empty() && rings.sent(0, packet(3)));
    }
}
