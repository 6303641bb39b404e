//! Contention for the core of a polling thread.
//!
//! A thread that polls continuously keeps its core, unless other threads want it too. In that case, polling
//! may keep the core from the very rank that it waits for. `sched_yield` gives the core only to threads of
//! the same scheduling group, on systems with groups (autogroups: each rank has its own). A sleeping thread
//! gives the core to any thread, and gets it back when data arrives.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::ffi::core_time;

/// Shortest time over which a thread's share of its core is measured.
const MEASURED: Duration = Duration::from_millis(10);
/// The core is contended if the thread lost more than one part in this many.
const PARTS: u32 = 16;
/// Time for which the result is valid. After it, the share is measured again by polling.
const REMEMBERED: Duration = Duration::from_millis(100);

thread_local! {
    static SHARE: Cell<Option<Share>> = const { Cell::new(None) };
}

/// A thread's share of its core.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Begin of the measurement.
    since: Instant,
    /// CPU time until the begin.
    had: Duration,
    /// Time slept since the begin.
    slept: Duration,
    crowded_until: Option<Instant>,
}

impl Share {
    fn new(now: Instant, had: Duration) -> Self {
        Share { since: now, had, slept: Duration::ZERO, crowded_until: None }
    }

    fn is_core_contended(&mut self, now: Instant, had: impl FnOnce() -> Duration) -> bool {
        let wall = now.saturating_duration_since(self.since);
        if wall >= MEASURED {
            let had = had();
            let lost = wall.saturating_sub(self.slept).saturating_sub(had.saturating_sub(self.had));
            let crowded_until = (lost > wall / PARTS).then(|| now + REMEMBERED).or(self.crowded_until);
            *self = Share { crowded_until, ..Share::new(now, had) };
        }
        self.crowded_until.is_some_and(|until| now < until)
    }
}

/// Returns true if other threads want the core of this polling thread.
pub(crate) fn is_crowded() -> bool {
    let now = Instant::now();
    let mut share = SHARE.get().unwrap_or_else(|| Share::new(now, core_time()));
    let crowded = share.is_core_contended(now, core_time);
    SHARE.set(Some(share));
    crowded
}

/// Records that this thread has slept, so it did not want its core.
pub(crate) fn slept(time: Duration) {
    if let Some(mut share) = SHARE.get() {
        share.slept += time;
        SHARE.set(Some(share));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_crowded_while_others_have_it_and_for_a_while_after() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut share = Share::new(start, Duration::ZERO);
        let mut at = |wall, had| share.is_core_contended(start + ms(wall), || ms(had));
        assert!(!at(9, 0), "too short to say");
        assert!(!at(20, 20), "all of it");
        assert!(!at(220, 210), "what interrupts now and then is no crowd");
        assert!(at(240, 220), "half of it");
        assert!(at(339, 319) && !at(340, 320), "remembered for a tenth of a second");
    }

    #[test]
    fn sleep_is_no_loss() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut share = Share::new(start, Duration::ZERO);
        share.slept += ms(90);
        assert!(!share.is_core_contended(start + ms(100), || ms(10)));
        // The result lasts for one measurement.
        assert!(share.is_core_contended(start + ms(200), || ms(20)));
    }
}
