//! The clock of a device.

use pathweave_units::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Monotonic time since a device was opened. Two devices of one process have clocks of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that starts now. Its first reading is not zero, so that an instant before the start never shows.
    pub(crate) fn start() -> Self {
        Clock { start_ns: monotonic_ns().saturating_sub(1_000) }
    }

    /// Time since the start.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_ns(monotonic_ns() - self.start_ns)
    }

    /// The instant `age_ns` nanoseconds ago, at the earliest the start.
    #[inline]
    pub(crate) fn ago(&self, age_ns: u64) -> Time {
        Time::from_ns(monotonic_ns().saturating_sub(age_ns).saturating_sub(self.start_ns))
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Wall clock, to compare with stamps of the kernel; it may jump.
#[inline]
pub(crate) fn realtime_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

#[inline]
fn nanoseconds(at: Timespec) -> u64 {
    at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_runs_backwards() {
        let clock = Clock::start();
        let mut last = clock.now();
        assert!(last > Time::ZERO);
        for _ in 0..1_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(clock.ago(0) >= last);
        assert_eq!(clock.ago(u64::MAX), Time::ZERO);
    }
}
