//! Queues at ports as short messages meet them. Short messages are sent whole before any feedback, so they wait in
//! queues and do not share the rate.

use pathweave_policy::fluid::ControlModel;
use pathweave_units::{Duration, Time};
use smallvec::SmallVec;

/// Share of its rate at which a port drains bursts at least. Long messages give way.
const LEAST_DRAIN: f64 = 0.2;

/// Time constants of queues in picoseconds, each the maximum over the schemes of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueConstants {
    pub(crate) standing: f64,
    pub(crate) feedback_delay: f64,
    drain: f64,
}

impl QueueConstants {
    /// Returns the constants of a scheme.
    pub(crate) fn of(control: &ControlModel) -> Self {
        let ps = |span: Duration| span.as_ps() as f64;
        QueueConstants {
            standing: ps(control.standing),
            feedback_delay: ps(control.feedback_delay),
            drain: ps(control.drain),
        }
    }

    /// Returns the larger value of each constant.
    pub(crate) fn max(self, other: QueueConstants) -> Self {
        QueueConstants {
            standing: self.standing.max(other.standing),
            feedback_delay: self.feedback_delay.max(other.feedback_delay),
            drain: self.drain.max(other.drain),
        }
    }
}

/// Short messages that came to a port at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    bytes: f64,
    count: u32,
    /// Number of those whose wait has been computed, in the order in which they came.
    asked: u32,
}

/// Queue of a port at the time of its last update.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortQueue {
    /// Bytes that flows under rate control keep in the queue.
    standing: f64,
    /// Bytes of short messages.
    burst: f64,
    /// The part of them that came at the time of the last update.
    latest: Latest,
    /// Time of the last update.
    since: u64,
    /// Number of flows that the port limits.
    limited: u32,
    /// Rate at which flows send over the port.
    load: f64,
}

impl PortQueue {
    /// Advances the queue to `now` with the recorded flows.
    pub(crate) fn advance(&mut self, now: Time, capacity: f64, law: &QueueConstants) {
        let span = (now.as_ps() - self.since) as f64;
        self.since = now.as_ps();
        if span > 0.0 {
            self.latest = Latest::default();
        }
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

    /// Records the flows from now on. The queue must have been advanced to now.
    pub(crate) fn note(&mut self, limited: u32, load: f64) {
        self.limited = limited;
        self.load = load;
    }

    /// Records the begin of a long message over the port. It starts at line rate, without feedback from the queue for
    /// a while.
    pub(crate) fn long_message(&mut self, bytes: f64, capacity: f64, law: &QueueConstants) {
        self.standing += bytes.min(law.feedback_delay * capacity) * (self.load / capacity).min(1.0);
    }

    /// Adds the bytes of a short message.
    pub(crate) fn short_message(&mut self, bytes: f64) {
        self.burst += bytes;
        self.latest.bytes += bytes;
        self.latest.count += 1;
    }

    /// Returns the bytes in the queue. `left` is the number of bytes that each flow has left to send. Not more than
    /// all of them, less the share of one flow, can be queued.
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

    /// Returns the bytes of short messages that leave before the last packet of the next of those messages that came at
    /// the time of the last update. It has added `bytes`, `packet` of them with its last packet. Packets of these
    /// messages take turns, so of each other one no more than `bytes` is ahead, and of later ones a packet less.
    pub(crate) fn burst_ahead(&mut self, bytes: f64, packet: f64) -> f64 {
        let Latest { bytes: latest, count, asked } = &mut self.latest;
        *asked = (*asked + 1).min(*count);
        let (others, later) = (count.saturating_sub(1), *count - *asked);
        let in_turn = (*latest - bytes).min(f64::from(others) * bytes - f64::from(later) * packet);
        (self.burst - *latest).max(0.0) + in_turn.max(0.0)
    }

    /// Returns the bytes of short messages in the queue.
    pub(crate) fn burst(&self) -> f64 {
        self.burst
    }
}

/// Waits of a short message on its path.
///
/// A message that waited behind others at one hop reaches the next one later, when as much of the queue there has left.
/// Of the queues of short messages only the longest counts, which is the one where they arrive faster than they leave.
/// Queues that long messages keep last, so all of them count.
#[derive(Debug, Default)]
pub(crate) struct QueueWaits {
    at_host_ps: f64,
    standing_ps: f64,
    /// Waits behind short messages by hop, each the mean over its links.
    bursts_ps: SmallVec<[(u8, f64); 8]>,
}

impl QueueWaits {
    /// Adds the wait in the sender's queue.
    pub(crate) fn at_host(&mut self, wait_ps: f64) {
        self.at_host_ps = self.at_host_ps.max(wait_ps);
    }

    /// Adds the queue at a link that is crossed after so many others. `ps_per_byte` is the time for a byte times the
    /// fraction of the message that crosses the link.
    pub(crate) fn at_switch(&mut self, hop: u8, ps_per_byte: f64, (standing, burst): (f64, f64)) {
        self.standing_ps += standing * ps_per_byte;
        match self.bursts_ps.iter_mut().find(|(known, _)| *known == hop) {
            Some((_, sum)) => *sum += burst * ps_per_byte,
            None => self.bursts_ps.push((hop, burst * ps_per_byte)),
        }
    }

    /// Returns the wait of the message.
    pub(crate) fn sum(&self) -> Duration {
        let longest = self.bursts_ps.iter().map(|(_, wait)| *wait).fold(self.at_host_ps, f64::max);
        Duration::from_ps((longest + self.standing_ps) as u64)
    }
}

/// Approximates e^-x with multiplications only, so that the result is the same on every machine.
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

    const LAW: QueueConstants =
        QueueConstants { standing: 10_000.0, feedback_delay: 20_000.0, drain: 50_000.0 };

    #[test]
    fn decay_is_nearly_exponential() {
        for (x, e) in [(0.0, 1.0), (0.1, 0.904_837), (1.0, 0.367_879), (3.0, 0.049_787)] {
            assert!((decay(x) - e).abs() < 0.006, "{x}: {}", decay(x));
        }
    }

    /// Three messages of two packets come at one time, so packets leave in the order 1 2 3 1 2 3. A message of one packet
    /// after two long ones is third.
    #[test]
    fn packets_of_one_time_take_turns() {
        let ahead = |messages: [f64; 3]| {
            let mut queue = PortQueue::default();
            messages.into_iter().for_each(|bytes| queue.short_message(bytes));
            messages.map(|bytes| queue.burst_ahead(bytes, 10.0))
        };
        assert_eq!(ahead([20.0; 3]), [20.0, 30.0, 40.0]);
        assert_eq!(ahead([10.0; 3]), [0.0, 10.0, 20.0]);
        assert_eq!(ahead([40.0, 40.0, 10.0])[2], 20.0);
    }

    /// Queues of 300 and 100 at equal links in a row, and of 50 and 70 at two links that half of the message crosses
    /// each.
    #[test]
    fn queues_in_a_row_are_waited_for_once_and_standing_ones_each() {
        let mut waits = QueueWaits::default();
        waits.at_host(30.0);
        waits.at_switch(0, 1.0, (0.0, 300.0));
        waits.at_switch(1, 0.5, (0.0, 50.0));
        waits.at_switch(1, 0.5, (40.0, 70.0));
        waits.at_switch(2, 1.0, (7.0, 100.0));
        assert_eq!(waits.sum(), Duration::from_ps(300 + 20 + 7));
        waits.at_host(310.0);
        assert_eq!(waits.sum(), Duration::from_ps(310 + 20 + 7));
    }

    #[test]
    fn a_queue_grows_stands_and_drains() {
        let mut queue = PortQueue::default();
        queue.note(3, 1.0);
        // The queue grows with the excess of two flows, each at one byte per picosecond.
        queue.advance(Time::from_ps(1_000), 1.0, &LAW);
        assert_eq!(queue.bytes([f64::INFINITY].into_iter()), 2_000.0);
        queue.advance(Time::from_ps(100_000), 1.0, &LAW);
        assert_eq!(queue.bytes([f64::INFINITY].into_iter()), 10_000.0);
        // The queue holds no more than what all flows but one have left.
        assert!((queue.bytes([500.0, 400.0].into_iter()) - 600.0).abs() < 1e-9);
        queue.note(0, 0.5);
        queue.short_message(300.0);
        queue.advance(Time::from_ps(101_000), 1.0, &LAW);
        assert!((queue.bytes([f64::INFINITY].into_iter()) - 100.0).abs() < 1e-9);
    }
}
