//! Round-trip time from which the scan derives its periods.

use pathweave_units::{Duration, Time};

/// Length of a measurement window in idle round trips. A measurement counts in its window and in the next one.
const WINDOW_RTTS: u64 = 100;

/// Longest round-trip time to any peer: that of the idle network, or a longer one measured recently.
///
/// Datagrams are not acknowledged (E4). Measured is the time from the request for a packet to its arrival, as a
/// retransmission or merely late. It includes all queues in which packets wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    idle: Duration,
    /// Longest measurement of the present window, and of the one before.
    longest: [Duration; 2],
    /// End of the present window.
    ends: Time,
}

impl RoundTrip {
    pub(super) const fn new(idle: Duration) -> Self {
        RoundTrip { idle, longest: [Duration::ZERO; 2], ends: Time::ZERO }
    }

    /// Raises the idle round trip for a new peer.
    pub(super) fn raise(&mut self, idle: Duration) {
        self.idle = self.idle.max(idle);
    }

    /// Round-trip time of the idle network.
    pub(super) const fn idle(&self) -> Duration {
        self.idle
    }

    /// Records a measurement.
    pub(super) fn note(&mut self, now: Time, took: Duration) {
        self.longest = self.seen(now);
        if now >= self.ends {
            self.ends = now.saturating_add(self.window());
        }
        self.longest[0] = self.longest[0].max(took);
    }

    /// Present round-trip time.
    pub(super) fn at(&self, now: Time) -> Duration {
        let [present, before] = self.seen(now);
        self.idle.max(present).max(before)
    }

    fn window(&self) -> Duration {
        self.idle * WINDOW_RTTS
    }

    /// Longest measurement of the window that contains `now`, and of the one before.
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
        // A measurement below the idle time changes nothing; a new window begins with the first one after the end of
        // the last.
        rtt.note(Time::from_us(1_500), us(20));
        assert_eq!(
            [1_500, 2_499, 2_500, 3_500].map(|at| rtt.at(Time::from_us(at))),
            [us(50), us(50), us(20), us(10)]
        );
        rtt.note(Time::from_us(9_000), us(3));
        assert_eq!(rtt.at(Time::from_us(9_000)), us(10));
    }
}
