//! What arriving packets are answered: which PSNs of a flow have come, and what an acknowledgement says of them.

use alloc::boxed::Box;
use alloc::vec;

/// Packets from the first missing one on that a flow keeps track of.
pub const WINDOW: u32 = 64;

const PSN_MASK: u32 = (1 << 24) - 1;

/// What an answer says. PSNs have 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The packet counts: every PSN below `cumulative` has arrived, and bit i of `selective` is the PSN i before the packet.
    Acknowledged {
        /// First PSN that has not arrived.
        cumulative: u32,
        /// Bit 0 is the packet itself.
        selective: u64,
    },
    /// The packet is [`WINDOW`] or more after the first missing one: it is dropped.
    Beyond {
        /// First PSN that has not arrived.
        expected: u32,
        /// As above.
        selective: u64,
    },
}

/// What has arrived of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// First PSN that has not arrived.
    pub expected: u32,
    /// Bit i: the PSN i after `expected` has arrived. Bit 0 is never set.
    pub arrived: u64,
}

impl Arrivals {
    /// Whether the PSN `ahead` of `expected` has arrived; all that is before it has.
    fn has(self, ahead: i64) -> bool {
        ahead < 0 || (ahead < i64::from(WINDOW) && self.arrived >> ahead & 1 == 1)
    }

    fn selective(self, ahead: i64) -> u64 {
        (0..64).fold(0, |bits, i| bits | u64::from(self.has(ahead - i)) << i)
    }

    fn take(&mut self, psn: u32) -> Answer {
        let distance = psn.wrapping_sub(self.expected) & PSN_MASK;
        // Half of the numbers are before.
        let ahead = if distance >> 23 == 1 { i64::from(distance) - (1 << 24) } else { i64::from(distance) };
        if ahead >= i64::from(WINDOW) {
            return Answer::Beyond { expected: self.expected, selective: self.selective(ahead) };
        }
        if ahead >= 0 {
            self.arrived |= 1 << ahead;
        }
        let selective = self.selective(ahead);
        let ones = self.arrived.trailing_ones();
        self.expected = (self.expected + ones) & PSN_MASK;
        self.arrived = self.arrived.checked_shr(ones).unwrap_or(0);
        Answer::Acknowledged { cumulative: self.expected, selective }
    }
}

/// The flows that arrive at a host, by number of their queue pair.
#[derive(Clone, Debug)]
pub struct Answers {
    flows: Box<[Option<Arrivals>]>,
}

impl Answers {
    /// So many flows, all closed.
    pub fn new(flows: usize) -> Self {
        Answers { flows: vec![None; flows].into_boxed_slice() }
    }
    /// A flow begins; its first packet has this PSN.
    pub fn open(&mut self, flow: usize, psn: u32) {
        self.flows[flow] = Some(Arrivals { expected: psn & PSN_MASK, arrived: 0 });
    }
    /// It ends: the host answers what comes.
    pub fn close(&mut self, flow: usize) {
        self.flows[flow] = None;
    }
    /// A data packet has arrived. `None` if its queue pair is no open flow.
    pub fn arrived(&mut self, queue_pair: u32, psn: u32) -> Option<Answer> {
        Some(self.flows.get_mut(queue_pair as usize)?.as_mut()?.take(psn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_gap_is_told_and_closed() {
        let mut answers = Answers::new(2);
        answers.open(1, 0xff_fffe);
        assert_eq!(answers.arrived(0, 0), None);
        assert_eq!(answers.arrived(2, 0), None);
        let acknowledged = |cumulative, selective| Some(Answer::Acknowledged { cumulative, selective });
        assert_eq!(answers.arrived(1, 0xff_fffe), acknowledged(0xff_ffff, u64::MAX));
        assert_eq!(answers.arrived(1, 1), acknowledged(0xff_ffff, !6));
        assert_eq!(answers.arrived(1, 0), acknowledged(0xff_ffff, !2));
        assert_eq!(answers.arrived(1, 0xff_ffff), acknowledged(2, u64::MAX));
        assert_eq!(answers.arrived(1, 0xff_ff00), acknowledged(2, u64::MAX), "an old one again");
        assert_eq!(answers.arrived(1, 66), Some(Answer::Beyond { expected: 2, selective: 0 }));
        assert_eq!(answers.arrived(1, 65), acknowledged(2, 1));
        assert_eq!(answers.arrived(1, 66), Some(Answer::Beyond { expected: 2, selective: 2 }));
        answers.close(1);
        assert_eq!(answers.arrived(1, 2), None);
    }

    proptest! {
        /// What is told is what a set of all PSNs that have come would tell.
        #[test]
        fn it_tells_what_has_arrived(start in 0u64..1 << 24, steps in prop::collection::vec(-80i64..90, 1..300)) {
            let mut answers = Answers::new(1);
            answers.open(0, start as u32);
            // In full, with a cycle before so that none is below 0.
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
                    Answer::Acknowledged { cumulative, selective }
                } else {
                    Answer::Beyond { expected: cumulative, selective }
                };
                prop_assert_eq!(answers.arrived(0, (psn & 0xff_ffff) as u32), Some(answer));
            }
        }
    }
}
