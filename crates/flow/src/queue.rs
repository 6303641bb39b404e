//! Queues at ports, for short messages: those are sent whole before any feedback, so they wait in queues and do not share.

use pathweave_policy::fluid::Control;
use pathweave_units::Time;

/// A port never drains its bursts slower than this share of its rate: long messages give way.
const LEAST_DRAIN: f64 = 0.2;

/// The time constants of queues, of the scheme that says most of them, in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub(crate) standing: f64,
    pub(crate) unaware: f64,
    drain: f64,
}

impl Law {
    /// Of a scheme.
    pub(crate) fn of(control: &Control) -> Self {
        let ps = |span: pathweave_units::Duration| span.as_ps() as f64;
        Law { standing: ps(control.standing), unaware: ps(control.unaware), drain: ps(control.drain) }
    }

    /// The larger of each.
    pub(crate) fn or(self, other: Law) -> Self {
        Law {
            standing: self.standing.max(other.standing),
            unaware: self.unaware.max(other.unaware),
            drain: self.drain.max(other.drain),
        }
    }
}

/// The queue of a port, as of when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortQueue {
    /// What flows under rate control keep there.
    standing: f64,
    /// What short messages have put there.
    burst: f64,
    /// Since when what follows has held.
    since: u64,
    /// Flows that the port limits.
    limited: u32,
    /// What flows send over it.
    load: f64,
}

impl PortQueue {
    /// Brings it up to `now`: flows were as they are noted.
    pub(crate) fn advance(&mut self, now: Time, capacity: f64, law: &Law) {
        let span = (now.as_ps() - self.since) as f64;
        self.since = now.as_ps();
        if span == 0.0 || (self.standing == 0.0 && self.burst == 0.0 && self.limited < 2) {
            return;
        }
        let target = law.standing * capacity;
        if self.limited >= 2 && self.standing < target {
            let growth = f64::from(self.limited - 1) * capacity * span;
            self.standing = (self.standing + growth).min(target);
        } else if self.limited >= 2 {
            self.standing = target + (self.standing - target) * decay(span / law.drain);
        } else if self.limited == 1 {
            self.standing *= decay(span / law.drain);
        } else {
            self.standing = (self.standing - (capacity - self.load).max(0.0) * span).max(0.0);
        }
        let drain = (capacity - self.load).max(LEAST_DRAIN * capacity);
        self.burst = (self.burst - drain * span).max(0.0);
    }

    /// From now on, up to which it has been brought, flows are so.
    pub(crate) fn note(&mut self, limited: u32, load: f64) {
        self.limited = limited;
        self.load = load;
    }

    /// A long message of so many bytes over the port begins, at line rate, and hears of no queue for a while.
    pub(crate) fn long_message(&mut self, bytes: f64, capacity: f64, law: &Law) {
        self.standing += bytes.min(law.unaware * capacity) * (self.load / capacity).min(1.0);
    }

    /// A short message puts its bytes there.
    pub(crate) fn short_message(&mut self, bytes: f64) {
        self.burst += bytes;
    }

    /// Bytes in it; `left` is what each of its flows has left to send, of which all but one flow's can be here.
    pub(crate) fn bytes(&mut self, left: impl Iterator<Item = f64>) -> f64 {
        if self.standing > 0.0 && self.limited >= 2 {
            let part = 1.0 - 1.0 / f64::from(self.limited);
            let mut sum = 0.0;
            for left in left {
                sum += left;
                if sum * part >= self.standing {
                    return self.standing + self.burst;
                }
            }
            self.standing = self.standing.min(sum * part);
        }
        self.standing + self.burst
    }

    /// Bytes of short messages in it.
    pub(crate) fn burst(&self) -> f64 {
        self.burst
    }
}

/// e to the power of minus `x`, nearly, by multiplications alone: the same on every machine.
pub(crate) fn decay(x: f64) -> f64 {
    let mut y = 1.0 / (1.0 + x / 64.0);
    for _ in 0..6 {
        y *= y;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Law = Law { standing: 10_000.0, unaware: 20_000.0, drain: 50_000.0 };

    #[test]
    fn decay_is_nearly_exponential() {
        for (x, e) in [(0.0, 1.0), (0.1, 0.904_837), (1.0, 0.367_879), (3.0, 0.049_787)] {
            assert!((decay(x) - e).abs() < 0.006, "{x}: {}", decay(x));
        }
    }

    #[test]
    fn a_queue_grows_stands_and_drains() {
        let mut queue = PortQueue::default();
        queue.note(3, 1.0);
        // Two flows too many at a byte a picosecond each.
        queue.advance(Time::from_ps(1_000), 1.0, &LAW);
        assert_eq!(queue.bytes([f64::INFINITY].into_iter()), 2_000.0);
        queue.advance(Time::from_ps(100_000), 1.0, &LAW);
        assert_eq!(queue.bytes([f64::INFINITY].into_iter()), 10_000.0);
        // No more than what the flows but one have left.
        assert!((queue.bytes([500.0, 400.0].into_iter()) - 600.0).abs() < 1e-9);
        queue.note(0, 0.5);
        queue.short_message(300.0);
        queue.advance(Time::from_ps(101_000), 1.0, &LAW);
        assert!((queue.bytes([f64::INFINITY].into_iter()) - 100.0).abs() < 1e-9);
    }
}
