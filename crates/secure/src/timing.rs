//! Timers of the handshake: retransmission and timeout.

use pathweave_units::{Duration, Time};

/// Timers of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeConfig {
    /// Time until the first retransmission. Doubled with each further one.
    pub first_retransmit: Duration,
    /// Longest time between retransmissions.
    pub max_retransmit: Duration,
    /// Time after which an unfinished handshake fails.
    pub timeout: Duration,
    /// Time for which an initiator continues after an answer made with another cluster key. It does not fail at once,
    /// because any observer of the packets can send such an answer.
    pub wrong_key_grace: Duration,
}

impl Default for HandshakeConfig {
    /// Returns the defaults: 20 ms, doubled up to 1 s, for 5 s; 500 ms of doubt.
    fn default() -> Self {
        HandshakeConfig {
            first_retransmit: Duration::from_ms(20),
            max_retransmit: Duration::from_ms(1_000),
            timeout: Duration::from_ms(5_000),
            wrong_key_grace: Duration::from_ms(500),
        }
    }
}

/// Retransmission timer with exponential backoff.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    interval: Duration,
    max: Duration,
    sent_at: Time,
    sends: u32,
}

impl Backoff {
    /// Starts the timer at the first transmission.
    pub(crate) fn start(now: Time, config: &HandshakeConfig) -> Self {
        // An interval of zero would keep the event loop busy.
        let first = config.first_retransmit.max(Duration::from_us(1));
        Backoff { interval: first, max: config.max_retransmit.max(first), sent_at: now, sends: 1 }
    }
    /// Returns the time of the next retransmission.
    pub(crate) fn due(&self) -> Time {
        self.sent_at.saturating_add(self.interval)
    }
    /// Returns the time at which half of the interval has passed.
    pub(crate) fn half_due(&self) -> Time {
        self.sent_at.saturating_add(Duration::from_ps(self.interval.as_ps() / 2))
    }
    /// Records a retransmission and doubles the interval.
    pub(crate) fn again(&mut self, now: Time) {
        self.sent_at = now;
        self.sends = self.sends.saturating_add(1);
        let doubled = Duration::from_ps(self.interval.as_ps().saturating_mul(2));
        self.interval = doubled.min(self.max);
    }
    /// Returns the time since the transmission if there was only one. Otherwise it is unknown which one was answered
    /// (Karn and Partridge, SIGCOMM 1987).
    pub(crate) fn round_trip(&self, now: Time) -> Option<Duration> {
        (self.sends == 1).then(|| now.saturating_since(self.sent_at))
    }
}
