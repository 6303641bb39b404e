//! Decision between polling and sleeping, from the expected time of the next packet.
//!
//! A sleep and a wake-up take about as long as a small message and its answer. Polling must be right, however: if the
//! other end needs this core or does not answer, polling only delays. The loop polls if small messages have recently
//! been exchanged quickly, and less and less often after polling in vain. Between two polls other threads get the
//! core. A thread that keeps it for long, such as a computation, makes the poll more expensive than many sleeps, and
//! as many waits are then slept through.

use pathweave_units::{Duration, Time};

/// Largest number of bytes in both directions together, between two idle times, of an exchange of small messages.
const SMALL_BYTES: u64 = 1_024;
/// Bound on the back-off: after this number of failures in a row, polling is tried once in two to this power waits.
const MOST_MISSES: u32 = 10;
/// Approximate gain of polling over sleeping: a sleep and a wake-up.
const GAIN: Duration = Duration::from_us(2);
/// Bound on a gap, in units of the longest poll, so that a long pause is soon forgotten.
const LONGEST_GAP: u64 = 16;

/// Action instead of sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollMode {
    /// Poll once more and keep the core: another thread might hold it for long.
    Once,
    /// Yield the core to others, and poll again.
    Again,
}

/// Statistics of recent waits, which predict the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anticipation {
    /// Longest time for which the loop polls.
    most: Duration,
    /// Smoothed time from idling to the next arrival (gain 1/4).
    gap: Duration,
    /// Consecutive failures.
    misses: u32,
    /// Number of waits to sleep through because of them.
    skips: u32,
    wait: Option<Wait>,
    /// Bytes moved before this wait.
    bytes: u64,
}

/// The current wait.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Time,
    looks: bool,
}

impl Anticipation {
    /// `most`: longest time for which the loop polls; zero disables polling.
    pub(crate) fn new(most: Duration) -> Self {
        let gap = Duration::from_ps(most.as_ps().saturating_mul(LONGEST_GAP));
        Anticipation { most, gap, misses: 0, skips: 0, wait: None, bytes: 0 }
    }

    /// Returns true if recent arrivals mostly came within the longest polling time.
    fn is_near(&self) -> bool {
        self.gap < self.most
    }

    /// Returns true if messages are exchanged so quickly that the loop polls for them.
    pub(crate) fn is_quick(&self) -> bool {
        self.is_near() && self.skips == 0
    }

    /// Returns true if the loop is polling now.
    pub(crate) fn is_looking(&self) -> bool {
        self.wait.is_some_and(|wait| wait.looks)
    }

    /// Reports that there is nothing to do at `now`, after `bytes` in total have been sent and received. Returns the
    /// way to poll, or `None` to sleep.
    pub(crate) fn looks(&mut self, now: Time, bytes: u64) -> Option<PollMode> {
        let wait = match &mut self.wait {
            Some(wait) => wait,
            None => {
                let small = bytes - self.bytes <= SMALL_BYTES;
                self.bytes = bytes;
                let near = small && self.is_near();
                let looks = near && self.skips == 0;
                if near {
                    self.skips = self.skips.saturating_sub(1);
                }
                self.wait = Some(Wait { since: now, looks });
                // Always poll once: if both ends share a core, the other one has often answered before this wait
                // began. A poll costs less than a sleep that ends at once.
                return near.then_some(if looks { PollMode::Again } else { PollMode::Once });
            }
        };
        let looked = now.saturating_since(wait.since);
        if wait.looks && looked >= self.most {
            wait.looks = false;
            self.missed(looked);
        }
        self.is_looking().then_some(PollMode::Again)
    }

    /// Records that polling for this long was in vain. Enough waits are slept through to make up for the loss, and
    /// more after each failure.
    fn missed(&mut self, looked: Duration) {
        self.misses = (self.misses + 1).min(MOST_MISSES);
        let worth = looked.saturating_sub(self.most).as_ps() / GAIN.as_ps();
        self.skips = (1 << self.misses) + u32::try_from(worth).unwrap_or(u32::MAX / 2).min(u32::MAX / 2);
    }

    /// Records an arrival at `at` that was found at `found`.
    pub(crate) fn arrived(&mut self, at: Time, found: Time) {
        let Some(wait) = self.wait.take() else { return };
        let longest = self.most.as_ps().saturating_mul(LONGEST_GAP);
        let gap_ps = at.saturating_since(wait.since).as_ps().min(longest);
        let old_ps = self.gap.as_ps();
        self.gap = Duration::from_ps(old_ps - old_ps / 4 + gap_ps / 4);
        if wait.looks {
            let looked = found.saturating_since(wait.since);
            if looked >= self.most {
                self.missed(looked);
            } else {
                self.misses = self.misses.saturating_sub(1);
            }
        }
    }

    /// Ends the wait because the application has given the loop work.
    pub(crate) fn interrupted(&mut self) {
        self.wait = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_us(20);

    /// Waits from `start_us` for an arrival after `gap_us`; returns the number of polls before it slept.
    fn looks(anticipation: &mut Anticipation, start_us: u64, gap_us: u64, bytes: u64) -> usize {
        let times = (start_us..start_us + gap_us).map(Time::from_us);
        let looks = times.take_while(|now| anticipation.looks(*now, bytes).is_some()).count();
        let arrival = Time::from_us(start_us + gap_us);
        anticipation.arrived(arrival, arrival);
        looks
    }

    /// Returns true if it polled more than once.
    fn wait(anticipation: &mut Anticipation, start_us: u64, gap_us: u64, bytes: u64) -> bool {
        looks(anticipation, start_us, gap_us, bytes) > 1
    }

    fn settled() -> (Anticipation, u64) {
        let (mut anticipation, mut bytes) = (Anticipation::new(MOST), 0);
        for round in 0..20 {
            bytes += 100;
            wait(&mut anticipation, 1_000 * round, 8, bytes);
        }
        (anticipation, bytes)
    }

    #[test]
    fn quick_answers_are_looked_for_after_a_few_of_them() {
        let (mut anticipation, mut looked) = (Anticipation::new(MOST), Vec::new());
        for round in 0..16 {
            looked.push(wait(&mut anticipation, 1_000 * round, 8, 100 * round));
        }
        // The gap begins at 320 us and falls to 8 us by a quarter of the difference: 312 x 0.75^12 + 8 = 17.9 us.
        let begins = looked.iter().position(|looks| *looks);
        assert_eq!(begins, Some(12));
        assert!(looked[12..].iter().all(|looks| *looks));
    }

    #[test]
    fn streams_and_rare_messages_are_slept_for() {
        let (mut anticipation, bytes) = settled();
        assert!(wait(&mut anticipation, 1_000_000, 8, bytes + 100));
        assert!(!wait(&mut anticipation, 1_001_000, 8, bytes + 100_000), "a stream");
        assert!(wait(&mut anticipation, 1_002_000, 8, bytes + 100_100));
        for round in 0..8 {
            wait(&mut anticipation, 1_010_000 + 1_000 * round, 500, bytes + 100_200);
        }
        assert!(!wait(&mut anticipation, 1_020_000, 500, bytes + 100_300));
    }

    #[test]
    fn wrong_guesses_make_attempts_rarer() {
        let (mut anticipation, bytes) = settled();
        let mut tried = Vec::new();
        for round in 0..40 {
            // Just too late for the poll, but near enough on average.
            let gap_us = if anticipation.skips == 0 { 25 } else { 8 };
            if wait(&mut anticipation, 1_000_000 + 1_000 * round, gap_us, bytes) {
                tried.push(round);
            }
        }
        assert_eq!(tried, [0, 3, 8, 17, 34]);
        assert!(!wait(&mut anticipation, 2_000_000, 8, bytes));
    }

    #[test]
    fn it_looks_as_long_as_is_allowed_or_once() {
        let (mut anticipation, bytes) = settled();
        assert_eq!(looks(&mut anticipation, 1_000_000, 8, bytes), 8, "until the answer is there");
        assert_eq!(looks(&mut anticipation, 1_001_000, 25, bytes), 20, "as long as allowed");
        assert_eq!(looks(&mut anticipation, 1_002_000, 8, bytes), 1, "it was wrong");
    }

    #[test]
    fn a_look_that_lasted_is_made_up_for() {
        let (mut anticipation, bytes) = settled();
        assert_eq!(anticipation.looks(Time::from_us(1_000_000), bytes), Some(PollMode::Again));
        // Another thread had the core for 3 ms, though the answer was there after 8 us: at 2 us a sleep, 2,980 us are
        // made up for.
        anticipation.arrived(Time::from_us(1_000_008), Time::from_us(1_003_000));
        assert_eq!((anticipation.skips, anticipation.is_quick()), (2 + 1_490, false));
        let next = anticipation.looks(Time::from_us(1_009_000), bytes);
        assert_eq!(next, Some(PollMode::Once), "and whatever it was may still be there");
        anticipation.arrived(Time::from_us(1_009_008), Time::from_us(1_009_008));
        for round in 0..1_491 {
            assert!(!wait(&mut anticipation, 1_010_000 + 1_000 * round, 8, bytes));
        }
        assert!(wait(&mut anticipation, 3_000_000, 8, bytes));
    }

    #[test]
    fn none_at_all() {
        let mut anticipation = Anticipation::new(Duration::ZERO);
        for round in 0..50 {
            assert_eq!(looks(&mut anticipation, 1_000 * round, 5, 0), 0);
        }
    }
}
