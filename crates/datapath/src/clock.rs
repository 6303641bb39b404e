//! Clock of a device.

use pathweave_units::Time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Monotonic time since a device was opened, or since its clock was reset. Devices of one process have separate
/// clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start_ns: u64,
    /// Offset set by a test.
    #[cfg(test)]
    jump: Option<Jump>,
}

impl Clock {
    /// Starts a clock. Its first reading is not zero, so that earlier instants never appear in the future.
    pub(crate) fn start() -> Self {
        Clock {
            start_ns: monotonic_ns().saturating_sub(1_000),
            #[cfg(test)]
            jump: JUMP.get(),
        }
    }

    /// Returns the time since the start.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.since_start(monotonic_ns())
    }

    /// Returns the instant `age_ns` nanoseconds ago, but not earlier than the start.
    #[inline]
    pub(crate) fn ago(&self, age_ns: u64) -> Time {
        self.since_start(monotonic_ns().saturating_sub(age_ns))
    }

    #[inline]
    fn since_start(&self, at_ns: u64) -> Time {
        let since_ns = at_ns.saturating_sub(self.start_ns);
        #[cfg(test)]
        let since_ns =
            since_ns + self.jump.map_or(0, |jump| jump.to_ns.load(std::sync::atomic::Ordering::Relaxed));
        // This saturates after 213 days; the clock is reset long before.
        Time::from_ps(since_ns.saturating_mul(1_000))
    }
}

#[cfg(test)]
thread_local! {
    static JUMP: std::cell::Cell<Option<Jump>> = const { std::cell::Cell::new(None) };
}

/// Offset by which a test advances a clock.
#[cfg(test)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jump {
    pub(crate) to_ns: &'static std::sync::atomic::AtomicU64,
}

#[cfg(test)]
impl Jump {
    /// Advances the clocks of devices that this thread opens from now on. After a reset a clock has no offset.
    pub(crate) fn for_devices_of_this_thread() -> Self {
        let jump = Jump { to_ns: Box::leak(Box::default()) };
        JUMP.set(Some(jump));
        jump
    }

    /// Removes the offset from devices that are opened from now on.
    pub(crate) fn unset(self) {
        JUMP.set(None);
    }
}

#[inline]
fn monotonic_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Returns the wall clock, for comparison with timestamps of the kernel. It may jump.
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
