//! When the handshake says things again, and when it gives up.

use pathweave_units::{Duration, Time};

/// Timers of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeConfig {
    /// Time to the first retransmission; doubled with each.
    pub first_retransmit: Duration,
    /// Longest time between retransmissions.
    pub max_retransmit: Duration,
    /// A handshake that is not through after this has failed.
    pub timeout: Duration,
    /// How long an initiator goes on after an answer made with another cluster key. Not at once, for anybody who sees
    /// the packets can send such an answer.
    pub doubt: Duration,
}

impl Default for HandshakeConfig {
    /// 20 ms, doubled up to 1 s, for 5 s; 500 ms of doubt.
    fn default() -> Self {
        HandshakeConfig {
            first_retransmit: Duration::from_ms(20),
            max_retransmit: Duration::from_ms(1_000),
            timeout: Duration::from_ms(5_000),
            doubt: Duration::from_ms(500),
        }
    }
}

/// Repeats something ever less often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    interval: Duration,
    max: Duration,
    sent_at: Time,
    sends: u32,
}

impl Backoff {
    /// Sent for the first time now.
    pub(crate) fn start(now: Time, config: &HandshakeConfig) -> Self {
        // A retransmission timer of zero would never let the loop sleep.
        let first = config.first_retransmit.max(Duration::from_us(1));
        Backoff { interval: first, max: config.max_retransmit.max(first), sent_at: now, sends: 1 }
    }
    /// When to send again.
    pub(crate) fn due(&self) -> Time {
        self.sent_at.saturating_add(self.interval)
    }
    /// Half the way there.
    pub(crate) fn half_due(&self) -> Time {
        self.sent_at.saturating_add(Duration::from_ps(self.interval.as_ps() / 2))
    }
    /// Sent again now, because it was due.
    pub(crate) fn again(&mut self, now: Time) {
        self.sent_at = now;
        self.sends = self.sends.saturating_add(1);
        let doubled = Duration::from_ps(self.interval.as_ps().saturating_mul(2));
        self.interval = doubled.min(self.max);
    }
    /// Time since it was sent, if it was sent once; otherwise it is unknown which one was answered (Karn and Partridge,
    /// SIGCOMM 1987).
    pub(crate) fn round_trip(&self, now: Time) -> Option<Duration> {
        (self.sends == 1).then(|| now.saturating_since(self.sent_at))
    }
}
