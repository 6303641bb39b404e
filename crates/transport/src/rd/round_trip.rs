//! The round-trip time in which the scan counts.

use pathweave_units::{Duration, Time};

/// What was measured counts for so many idle round trips, and once more as long.
const WINDOW_RTTS: u64 = 100;

/// The longest round-trip time to any peer: of the idle network, or a longer one measured of late.
///
/// Datagrams are not acknowledged (E4), so what can be measured is how long it takes from asking for a packet to its
/// arrival, whether it was sent again or was merely late: it has all the queues in it that packets wait in.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    idle: Duration,
    /// The longest of the present window, and of the one before.
    longest: [Duration; 2],
    /// When the present window ends.
    ends: Time,
}

impl RoundTrip {
    pub(super) const fn new(idle: Duration) -> Self {
        RoundTrip { idle, longest: [Duration::ZERO; 2], ends: Time::ZERO }
    }

    /// A peer is so far away.
    pub(super) fn raise(&mut self, idle: Duration) {
        self.idle = self.idle.max(idle);
    }

    /// That of the idle network.
    pub(super) const fn idle(&self) -> Duration {
        self.idle
    }

    /// Something took so long.
    pub(super) fn note(&mut self, now: Time, took: Duration) {
        self.longest = self.seen(now);
        if now >= self.ends {
            self.ends = now.saturating_add(self.window());
        }
        self.longest[0] = self.longest[0].max(took);
    }

    /// The round-trip time as it is now.
    pub(super) fn at(&self, now: Time) -> Duration {
        let [present, before] = self.seen(now);
        self.idle.max(present).max(before)
    }

    fn window(&self) -> Duration {
        self.idle * WINDOW_RTTS
    }

    /// The longest of the window that `now` is in, and of the one before.
    fn seen(&self, now: Time) -> [Duration; 2] {
        if now < self.ends {
            self.longest
        } else if now < self.ends.saturating_add(self.window()) {
            [Duration::ZERO, self.longest[0]]
        } else {
            [Duration::ZERO; 2]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_counts_for_a_while() {
        let us = Duration::from_us;
        let mut rtt = RoundTrip::new(us(8));
        rtt.raise(us(10));
        // A window is 1 ms.
        rtt.note(Time::from_us(100), us(50));
        rtt.note(Time::from_us(200), us(30));
        assert_eq!(
            [200, 1_099, 2_099, 2_100].map(|at| rtt.at(Time::from_us(at))),
            [us(50), us(50), us(50), us(10)]
        );
        // Less than idle is no news; a new window begins with the first that is.
        rtt.note(Time::from_us(1_500), us(20));
        assert_eq!(
            [1_500, 2_499, 2_500, 3_500].map(|at| rtt.at(Time::from_us(at))),
            [us(50), us(50), us(20), us(10)]
        );
        rtt.note(Time::from_us(9_000), us(3));
        assert_eq!(rtt.at(Time::from_us(9_000)), us(10));
    }
}
