//! A hop: a queue that drains at a rate, marks and loses packets, and a link behind it.

use pathweave_units::{Duration, Rate, Rng, Time};

/// One path of a scenario, or the last hop that all paths share. A fluid queue: exact to the picosecond, with a
/// single number of state.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Service rate.
    pub rate: Rate,
    /// Delay of the link, one way. Feedback takes the same time.
    pub delay: Duration,
    /// Largest random addition to `delay` for a packet, in percent of it.
    pub jitter_percent: u32,
    /// Queue length, in bytes and including the packet, from which a packet is marked. 0: every packet.
    pub mark_bytes: u64,
    /// Queue length, in bytes and including the packet, above which a packet is trimmed: its header passes at once.
    pub trim_bytes: u64,
    /// Fraction of packets lost, in thousandths; 1000 is a dead path that is not reported down.
    pub loss_permille: u32,
    /// Rate that competing traffic takes.
    pub competing: Rate,
    pub(super) free_at: Time,
}

/// Result of a packet's passage through a hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Time at which its last bit arrives, random delay included.
    pub(super) arrives: Time,
    pub(super) marked: bool,
    pub(super) lost: bool,
    /// True if it lost its payload.
    pub(super) trimmed: bool,
}

impl Hop {
    /// Creates a hop without marks, losses, jitter or competing traffic.
    pub const fn new(rate: Rate, delay: Duration) -> Self {
        Hop {
            rate,
            delay,
            jitter_percent: 0,
            mark_bytes: u64::MAX,
            trim_bytes: u64::MAX,
            loss_permille: 0,
            competing: Rate::ZERO,
            free_at: Time::ZERO,
        }
    }
    fn service_rate(&self) -> Rate {
        let left = self.rate.as_bps().saturating_sub(self.competing.as_bps());
        Rate::from_bps(left.max(self.rate.as_bps() / 1_000))
    }
    pub(super) fn jittered(&self, rng: &mut Rng) -> Duration {
        if self.jitter_percent == 0 {
            return self.delay;
        }
        self.delay + self.delay * u64::from(rng.below(self.jitter_percent * 100 + 1)) / 10_000
    }
    /// Passes a packet whose last bit arrives at `now`.
    pub(super) fn pass(&mut self, now: Time, wire_bytes: u32, rng: &mut Rng) -> Passage {
        let lost = self.loss_permille > 0 && rng.below(1_000) < self.loss_permille;
        if lost {
            return Passage { arrives: now, marked: false, lost, trimmed: false };
        }
        let rate = self.service_rate();
        let waiting = rate.bytes_in(self.free_at.saturating_since(now));
        if waiting + u64::from(wire_bytes) > self.trim_bytes {
            let arrives = now + self.jittered(rng);
            return Passage { arrives, marked: false, lost, trimmed: true };
        }
        self.free_at = self.free_at.max(now) + rate.time_for(u64::from(wire_bytes));
        let marked = rate.bytes_in(self.free_at - now) >= self.mark_bytes;
        Passage { arrives: self.free_at + self.jittered(rng), marked, lost, trimmed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_builds_marks_and_drains() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut hop = Hop { mark_bytes: 2_500, ..Hop::new(Rate::from_gbps(100), Duration::from_us(1)) };
        let passage =
            |ns, marked| Passage { arrives: Time::from_ns(ns), marked, lost: false, trimmed: false };
        assert_eq!(hop.pass(Time::ZERO, 1_250, &mut rng), passage(1_100, false));
        assert_eq!(hop.pass(Time::ZERO, 1_250, &mut rng), passage(1_200, true));
        hop.trim_bytes = 3_749;
        assert_eq!(hop.pass(Time::ZERO, 1_250, &mut rng), Passage { trimmed: true, ..passage(1_000, false) });
        assert!(!hop.pass(Time::from_ns(200), 1_250, &mut rng).marked);
    }

    #[test]
    fn competing_traffic_slows_and_a_dead_path_takes_everything() {
        let mut rng = Rng::for_component(1, "test", 0);
        let mut hop = Hop::new(Rate::from_gbps(100), Duration::ZERO);
        hop.competing = Rate::from_gbps(50);
        assert_eq!(hop.pass(Time::ZERO, 1_250, &mut rng).arrives, Time::from_ns(200));
        hop.loss_permille = 1_000;
        assert!(hop.pass(Time::ZERO, 1_250, &mut rng).lost);
        let jitter = Hop { jitter_percent: 10, ..Hop::new(Rate::from_gbps(100), Duration::from_us(1)) };
        for _ in 0..100 {
            let delay = jitter.jittered(&mut rng);
            assert!(delay >= Duration::from_us(1) && delay <= Duration::from_ns(1_100));
        }
    }
}
