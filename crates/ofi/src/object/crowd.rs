//! Other threads that want the core of a thread that polls.
//!
//! A thread that polls without a break has its core all the time, unless others want it, too. Then polling keeps the core from the
//! rank that it waits for, and `sched_yield` gives it to threads of the same scheduling group alone, where the system has groups
//! (autogroups: each rank has its own). Who sleeps gives the core to anybody, and has it back when something arrives.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::ffi::core_time;

/// The share of its core that a thread has is measured over this time at least.
const MEASURED: Duration = Duration::from_millis(10);
/// Others want the core where they have had it for more than one part in so many.
const PARTS: u32 = 16;
/// Time for which that counts. The measure is taken again after it, by polling.
const REMEMBERED: Duration = Duration::from_millis(100);

thread_local! {
    static SHARE: Cell<Option<Share>> = const { Cell::new(None) };
}

/// The share of its core that a thread has had.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Begin of the measure.
    since: Instant,
    /// Time on a core until then.
    had: Duration,
    /// Slept since then.
    slept: Duration,
    crowded_until: Option<Instant>,
}

impl Share {
    fn new(now: Instant, had: Duration) -> Self {
        Share { since: now, had, slept: Duration::ZERO, crowded_until: None }
    }

    fn is_crowded(&mut self, now: Instant, had: impl FnOnce() -> Duration) -> bool {
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

/// True if others want the core of this thread, which polls.
pub(crate) fn is_crowded() -> bool {
    let now = Instant::now();
    let mut share = SHARE.get().unwrap_or_else(|| Share::new(now, core_time()));
    let crowded = share.is_crowded(now, core_time);
    SHARE.set(Some(share));
    crowded
}

/// This thread has slept so long: it did not want its core.
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
        let mut at = |wall, had| share.is_crowded(start + ms(wall), || ms(had));
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
        assert!(!share.is_crowded(start + ms(100), || ms(10)));
        // It lasts for one measure.
        assert!(share.is_crowded(start + ms(200), || ms(20)));
    }
}
