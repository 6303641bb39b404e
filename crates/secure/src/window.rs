//! Replay window of a path.

/// Packet numbers that a window covers. A packet that is older than the highest by this many numbers is refused.
/// Reordering between paths does not matter, since each path has its own window; within a path, packets stay close
/// together.
pub const REPLAY_WINDOW: u64 = 4_096;

const WORDS: usize = (REPLAY_WINDOW / 64) as usize;

/// Result of looking a packet number up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayCheck {
    /// Not received yet.
    New,
    /// Received before.
    Replayed,
    /// Too old to decide.
    TooOld,
}

/// Received numbers from `highest - 4095` to `highest`, one bit each, at index number modulo 4,096.
pub(crate) struct ReplayWindow {
    highest: Option<u64>,
    bits: [u64; WORDS],
}

impl ReplayWindow {
    pub(crate) const fn new() -> Self {
        ReplayWindow { highest: None, bits: [0; WORDS] }
    }

    /// Reconstructs the packet number of which the wire carries the low 32 bits: the candidate nearest to the next
    /// number (RFC 9000, appendix A.3).
    pub(crate) fn full_number(&self, low: u32) -> u64 {
        let next = self.highest.map_or(0, |highest| highest + 1);
        let candidate = next & !u64::from(u32::MAX) | u64::from(low);
        const HALF: u64 = 1 << 31;
        if candidate + HALF <= next {
            candidate + 2 * HALF
        } else if candidate > next + HALF && candidate >= 2 * HALF {
            candidate - 2 * HALF
        } else {
            candidate
        }
    }

    /// Looks a number up without any change, since an unauthenticated packet must not change the state.
    pub(crate) fn check(&self, number: u64) -> ReplayCheck {
        match self.highest {
            Some(highest) if number <= highest => {
                if highest - number >= REPLAY_WINDOW {
                    ReplayCheck::TooOld
                } else if self.bits[word(number)] & bit(number) != 0 {
                    ReplayCheck::Replayed
                } else {
                    ReplayCheck::New
                }
            }
            _ => ReplayCheck::New,
        }
    }

    /// Records a number that `look` reported as new.
    pub(crate) fn insert(&mut self, number: u64) {
        match self.highest {
            Some(highest) if number <= highest => {}
            highest => {
                let from = highest.map_or(number, |highest| highest + 1);
                self.forget(from, number);
                self.highest = Some(number);
            }
        }
        self.bits[word(number)] |= bit(number);
    }

    /// Clears the bits of `from..=to`, whose old meaning leaves the window.
    fn forget(&mut self, from: u64, to: u64) {
        if to - from >= REPLAY_WINDOW {
            self.bits.fill(0);
            return;
        }
        let mut next = from;
        while next <= to {
            let last_of_word = next | 63;
            let last = last_of_word.min(to);
            let keep_below = bit(next) - 1;
            let keep_above = if last == last_of_word { 0 } else { !(bit(last + 1) - 1) };
            self.bits[word(next)] &= keep_below | keep_above;
            next = last + 1;
        }
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_edge_of_the_window_is_where_it_should_be() {
        let mut window = ReplayWindow::new();
        for number in [0, 1, 63, 64, 4_095] {
            assert_eq!(window.check(number), ReplayCheck::New, "{number}");
            window.insert(number);
            assert_eq!(window.check(number), ReplayCheck::Replayed, "{number}");
        }
        assert_eq!(window.check(2), ReplayCheck::New, "4,095 packets late is not too late");
        window.insert(4_096);
        assert_eq!(window.check(0), ReplayCheck::TooOld);
        assert_eq!(window.check(1), ReplayCheck::Replayed);
        window.insert(4_096 + 4_096);
        assert_eq!(window.check(4_096), ReplayCheck::TooOld);
        assert_eq!(window.check(4_097), ReplayCheck::New, "no bit survives a full turn");
    }

    #[test]
    fn whole_numbers_follow_the_highest() {
        let mut window = ReplayWindow::new();
        assert_eq!(window.full_number(7), 7);
        // No number is negative, so the first one may be far away.
        assert_eq!(window.full_number(u32::MAX), u64::from(u32::MAX));
        window.insert(0xffff_fff0);
        assert_eq!(window.full_number(0xffff_fff0), 0xffff_fff0);
        assert_eq!(window.full_number(5), 0x1_0000_0005);
        window.insert(0x1_0000_0005);
        assert_eq!(window.full_number(0xffff_ff00), 0xffff_ff00);
        assert_eq!(window.full_number(0x7000_0000), 0x1_7000_0000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// The window and a set of all received numbers agree.
        #[test]
        fn a_window_is_a_set_with_an_end(
            start in prop_oneof![Just(0u64), 0u64..10_000, (1u64 << 32) - 9_000..(1 << 32) + 9_000],
            steps in proptest::collection::vec(
                prop_oneof![5 => -80i64..80, 3 => -4_200i64..10, 1 => 0i64..9_000, 1 => -100_000i64..0],
                1..400,
            ),
        ) {
            let mut window = ReplayWindow::new();
            let mut all = BTreeSet::new();
            let mut at = start;
            for step in steps {
                let number = at.saturating_add_signed(step);
                let highest = all.last().copied();
                let expected = match highest {
                    Some(highest) if number + REPLAY_WINDOW <= highest => ReplayCheck::TooOld,
                    _ if all.contains(&number) => ReplayCheck::Replayed,
                    _ => ReplayCheck::New,
                };
                prop_assert_eq!(window.check(number), expected, "number {}, highest {:?}", number, highest);
                if expected == ReplayCheck::New {
                    window.insert(number);
                    all.insert(number);
                }
                at = all.last().copied().unwrap_or(start);
                prop_assert_eq!(window.full_number(number as u32), number, "highest {}", at);
            }
        }

        #[test]
        fn any_number_is_found_from_its_low_bits_when_near(
            highest in 0u64..1 << 40, ahead in -(1i64 << 31) + 1..1i64 << 31,
        ) {
            let mut window = ReplayWindow::new();
            window.insert(highest);
            if let Some(number) = (highest + 1).checked_add_signed(ahead) {
                prop_assert_eq!(window.full_number(number as u32), number);
            }
        }
    }
}
