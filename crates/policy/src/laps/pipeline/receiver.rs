//! Receiver state: the PSNs of a flow that have arrived, and the acknowledgement of each arriving packet.

use alloc::boxed::Box;
use alloc::vec;

/// Number of PSNs, from the first missing one on, that a flow tracks.
pub const WINDOW: u32 = 64;

const PSN_MASK: u32 = (1 << 24) - 1;

/// Response to a packet. PSNs have 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckResult {
    /// The packet is accepted. Every PSN below `cumulative` has arrived. Bit i of `selective` is set if the PSN i
    /// before the packet's has arrived.
    Acknowledged {
        /// First PSN that has not arrived.
        cumulative: u32,
        /// Bitmap of arrivals. Bit 0 is the packet itself.
        selective: u64,
    },
    /// The packet is [`WINDOW`] or more PSNs after the first missing one: it is dropped.
    OutOfWindow {
        /// First PSN that has not arrived.
        expected: u32,
        /// Bitmap of arrivals, as in `Acknowledged`.
        selective: u64,
    },
}

/// PSNs of a flow that have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// First PSN that has not arrived.
    pub expected: u32,
    /// Bitmap: bit i is set if the PSN i after `expected` has arrived. Bit 0 is never set.
    pub arrived: u64,
}

impl Arrivals {
    /// Returns true if the PSN `expected + ahead` has arrived. Every PSN before `expected` has.
    fn has(self, ahead: i64) -> bool {
        ahead < 0 || (ahead < i64::from(WINDOW) && self.arrived >> ahead & 1 == 1)
    }

    fn selective(self, ahead: i64) -> u64 {
        (0..64).fold(0, |bits, i| bits | u64::from(self.has(ahead - i)) << i)
    }

    fn receive(&mut self, psn: u32) -> AckResult {
        let distance = psn.wrapping_sub(self.expected) & PSN_MASK;
        // The half of the sequence space behind `expected` counts as before it.
        let ahead = if distance >> 23 == 1 { i64::from(distance) - (1 << 24) } else { i64::from(distance) };
        if ahead >= i64::from(WINDOW) {
            return AckResult::OutOfWindow { expected: self.expected, selective: self.selective(ahead) };
        }
        if ahead >= 0 {
            self.arrived |= 1 << ahead;
        }
        let selective = self.selective(ahead);
        let ones = self.arrived.trailing_ones();
        self.expected = (self.expected + ones) & PSN_MASK;
        self.arrived = self.arrived.checked_shr(ones).unwrap_or(0);
        AckResult::Acknowledged { cumulative: self.expected, selective }
    }
}

/// The flows that arrive at a host, by queue pair number.
#[derive(Clone, Debug)]
pub struct Receiver {
    flows: Box<[Option<Arrivals>]>,
}

impl Receiver {
    /// Creates `flows` flows, all closed.
    pub fn new(flows: usize) -> Self {
        Receiver { flows: vec![None; flows].into_boxed_slice() }
    }
    /// Opens a flow whose first packet has the given PSN.
    pub fn open(&mut self, flow: usize, psn: u32) {
        self.flows[flow] = Some(Arrivals { expected: psn & PSN_MASK, arrived: 0 });
    }
    /// Closes a flow. The host then answers its packets.
    pub fn close(&mut self, flow: usize) {
        self.flows[flow] = None;
    }
    /// Records the arrival of a data packet. Returns `None` if its queue pair is not an open flow.
    pub fn arrived(&mut self, queue_pair: u32, psn: u32) -> Option<AckResult> {
        Some(self.flows.get_mut(queue_pair as usize)?.as_mut()?.receive(psn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_gap_is_told_and_closed() {
        let mut answers = Receiver::new(2);
        answers.open(1, 0xff_fffe);
        assert_eq!(answers.arrived(0, 0), None);
        assert_eq!(answers.arrived(2, 0), None);
        let acknowledged = |cumulative, selective| Some(AckResult::Acknowledged { cumulative, selective });
        assert_eq!(answers.arrived(1, 0xff_fffe), acknowledged(0xff_ffff, u64::MAX));
        assert_eq!(answers.arrived(1, 1), acknowledged(0xff_ffff, !6));
        assert_eq!(answers.arrived(1, 0), acknowledged(0xff_ffff, !2));
        assert_eq!(answers.arrived(1, 0xff_ffff), acknowledged(2, u64::MAX));
        assert_eq!(answers.arrived(1, 0xff_ff00), acknowledged(2, u64::MAX), "an old one again");
        assert_eq!(answers.arrived(1, 66), Some(AckResult::OutOfWindow { expected: 2, selective: 0 }));
        assert_eq!(answers.arrived(1, 65), acknowledged(2, 1));
        assert_eq!(answers.arrived(1, 66), Some(AckResult::OutOfWindow { expected: 2, selective: 2 }));
        answers.close(1);
        assert_eq!(answers.arrived(1, 2), None);
    }

    proptest! {
        /// Answers equal those computed from a set of all PSNs that have arrived.
        #[test]
        fn it_reports_arrived_packets(start in 0u64..1 << 24, steps in prop::collection::vec(-80i64..90, 1..300)) {
            let mut answers = Receiver::new(1);
            answers.open(0, start as u32);
            // PSNs without wrap, with one cycle added so that none is negative.
            let first = start + (1 << 24);
            let mut came = BTreeSet::new();
            let mut expected = first;
            for step in steps {
                let psn = expected.saturating_add_signed(step);
                let fits = psn < expected + 64;
                if fits {
                    came.insert(psn);
                }
                while came.contains(&expected) {
                    expected += 1;
                }
                let has = |psn: u64| psn < first || came.contains(&psn) || psn < expected;
                let selective = (0..64).fold(0, |bits, i| bits | u64::from(has(psn - i)) << i);
                let cumulative = (expected & 0xff_ffff) as u32;
                let answer = if fits {
                    AckResult::Acknowledged { cumulative, selective }
                } else {
                    AckResult::OutOfWindow { expected: cumulative, selective }
                };
                prop_assert_eq!(answers.arrived(0, (psn & 0xff_ffff) as u32), Some(answer));
            }
        }
    }
}
