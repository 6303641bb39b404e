//! Whether the next packet is so near that looking for it is better than sleeping.
//!
//! A sleep and a wake-up take about as long as a small message and its answer. Who looks instead must be right: where
//! the other end needs this core, or has nothing to say, looking only delays. So it is tried where small messages went
//! to and fro quickly of late, and ever more rarely after having been wrong. Between two looks others have the core; who
//! keeps it for long, as a computation does, makes the look dearer than many sleeps, and so many are slept.

use pathweave_units::{Duration, Time};

/// An exchange of small messages moves so few bytes between two idle times, both ways together.
const SMALL_BYTES: u64 = 1_024;
/// After so many failures in a row it is tried once in two to this power times.
const MOST_MISSES: u32 = 10;
/// What looking saves over sleeping, roughly: a sleep and a wake-up.
const GAIN: Duration = Duration::from_us(2);
/// A gap counts as this many times the longest look at most, so that a long pause is soon forgotten.
const LONGEST_GAP: u64 = 16;

/// What to do instead of sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// To look once more, and to keep the core meanwhile: another thread may hold it for long.
    Once,
    /// To let others have the core, and look again.
    Again,
}

/// What the waits of late say of the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anticipation {
    /// The longest that it looks.
    most: Duration,
    /// Smoothed time from idling to the next arrival (gain 1/4).
    gap: Duration,
    /// Failures in a row.
    misses: u32,
    /// Waits that are slept through because of them.
    skips: u32,
    wait: Option<Wait>,
    /// Bytes moved before this wait.
    bytes: u64,
}

/// The wait that is on.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Time,
    looks: bool,
}

impl Anticipation {
    /// Looks for up to `most` at a time; zero: never.
    pub(crate) fn new(most: Duration) -> Self {
        let gap = Duration::from_ps(most.as_ps().saturating_mul(LONGEST_GAP));
        Anticipation { most, gap, misses: 0, skips: 0, wait: None, bytes: 0 }
    }

    /// Whether what arrives of late mostly does so within the time that it would look for it.
    fn is_near(&self) -> bool {
        self.gap < self.most
    }

    /// Whether messages go to and fro so quickly that it looks for them.
    pub(crate) fn is_quick(&self) -> bool {
        self.is_near() && self.skips == 0
    }

    /// Whether it is looking now.
    pub(crate) fn is_looking(&self) -> bool {
        self.wait.is_some_and(|wait| wait.looks)
    }

    /// There is nothing to do at `now`, after `bytes` in all have been sent and received. How to look again, if not to
    /// sleep.
    pub(crate) fn looks(&mut self, now: Time, bytes: u64) -> Option<Look> {
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
                // Once always: where both ends share a core, the other one has often answered before this one came to
                // wait, and a look costs less than a sleep that ends at once.
                return near.then_some(if looks { Look::Again } else { Look::Once });
            }
        };
        let looked = now.saturating_since(wait.since);
        if wait.looks && looked >= self.most {
            wait.looks = false;
            self.missed(looked);
        }
        self.is_looking().then_some(Look::Again)
    }

    /// Looking for so long was wrong: as many waits are slept through as make up for what was lost, and more each time.
    fn missed(&mut self, looked: Duration) {
        self.misses = (self.misses + 1).min(MOST_MISSES);
        let worth = looked.saturating_sub(self.most).as_ps() / GAIN.as_ps();
        self.skips = (1 << self.misses) + u32::try_from(worth).unwrap_or(u32::MAX / 2).min(u32::MAX / 2);
    }

    /// Something has arrived, at `at`, and was found at `found`.
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

    /// The application has given the loop something to do: the wait is another one.
    pub(crate) fn interrupted(&mut self) {
        self.wait = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_us(20);

    /// Waits from `start_us`, for an arrival after `gap_us`; how often it looked before it slept.
    fn looks(anticipation: &mut Anticipation, start_us: u64, gap_us: u64, bytes: u64) -> usize {
        let times = (start_us..start_us + gap_us).map(Time::from_us);
        let looks = times.take_while(|now| anticipation.looks(*now, bytes).is_some()).count();
        let arrival = Time::from_us(start_us + gap_us);
        anticipation.arrived(arrival, arrival);
        looks
    }

    /// Whether it went on looking.
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
    fn who_was_wrong_tries_more_and_more_rarely() {
        let (mut anticipation, bytes) = settled();
        let mut tried = Vec::new();
        for round in 0..40 {
            // Just too late for it, but in the mean near enough.
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
        assert_eq!(anticipation.looks(Time::from_us(1_000_000), bytes), Some(Look::Again));
        // Something else had the core for 3 ms, though the answer was there after 8 us: 2 us a sleep makes up for 2,980.
        anticipation.arrived(Time::from_us(1_000_008), Time::from_us(1_003_000));
        assert_eq!((anticipation.skips, anticipation.is_quick()), (2 + 1_490, false));
        let next = anticipation.looks(Time::from_us(1_009_000), bytes);
        assert_eq!(next, Some(Look::Once), "and whatever it was may still be there");
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
