//! The rate of the network interface.
//!
//! Schemes count on a port that takes a packet at a time: one that knows no congestion sends whenever the port is free.
//! Sockets take whatever they are given and drop it later, so the loop keeps to the line rate by itself. It may run
//! ahead by a batch, or segmentation offload would have nothing to divide.

use pathweave_units::{Duration, Rate, Time};

use crate::config::DeviceConfig;

/// Longest the loop runs ahead of the line.
const MOST_AHEAD: Duration = Duration::from_us(100);
/// Bytes it may run ahead where the line sends them in less: a full batch.
const BATCH_BYTES: u64 = 65_536;

/// When the line is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    rate: Rate,
    /// When all that was given to it will have left.
    free_at: Time,
    ahead: Duration,
    /// It has run ahead as far as it may, and half of that must pass: so packets leave in batches, and the loop sleeps
    /// in between.
    closed: bool,
}

/// Bytes of headers and protection around a payload on the line, at most.
const AROUND_PAYLOAD_BYTES: u64 = 200;

impl Line {
    /// The line of a device.
    pub(crate) fn of_device(config: &DeviceConfig) -> Self {
        Line::new(config.line_rate, u64::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES)
    }

    /// A line of this rate, which takes packets of up to `packet_bytes`.
    fn new(rate: Rate, packet_bytes: u64) -> Self {
        let batch = rate.time_for(BATCH_BYTES).min(MOST_AHEAD);
        Line { rate, free_at: Time::ZERO, ahead: batch.max(rate.time_for(packet_bytes)), closed: false }
    }

    /// Whether a packet may be given to it now.
    #[inline]
    pub(crate) fn is_open(&mut self, now: Time) -> bool {
        let ahead = if self.closed { self.half() } else { self.ahead };
        self.closed = self.free_at > now.saturating_add(ahead);
        !self.closed
    }

    fn half(&self) -> Duration {
        Duration::from_ps(self.ahead.as_ps() / 2)
    }

    /// When the next packet may be, once it has closed.
    pub(crate) fn opens_at(&self) -> Time {
        Time::from_ps(self.free_at.as_ps().saturating_sub(self.half().as_ps()))
    }

    /// A packet was given to it.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, wire_bytes: u32) {
        self.free_at = self.free_at.max(now).saturating_add(self.rate.time_for(wire_bytes.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_ahead_by_a_batch_at_most_and_keeps_the_rate() {
        // 1,250 bytes take 1 us at 10 Gb/s; 64 KiB take 52.4 us.
        let mut line = Line::new(Rate::from_gbps(10), 1_250);
        let mut now = Time::from_us(1_000);
        let mut burst = 0;
        while line.is_open(now) {
            line.take(now, 1_250);
            burst += 1;
        }
        assert_eq!(burst, 53);
        let (mut packets, mut batches) = (0, 0);
        while now < Time::from_us(2_000) {
            assert!(!line.is_open(now) && line.opens_at() > now);
            now = line.opens_at();
            batches += 1;
            while line.is_open(now) {
                line.take(now, 1_250);
                packets += 1;
            }
        }
        // Half a batch more or less, at the end.
        assert!((974..=1_027).contains(&packets), "{packets} packets a millisecond");
        assert!((36..=40).contains(&batches), "{batches} batches of half of 52.4 us");
    }

    #[test]
    fn a_slow_line_takes_a_packet_at_a_time() {
        // 1,250 bytes take 10 ms at 1 Mb/s.
        let mut line = Line::new(Rate::from_mbps(1), 1_250);
        let now = Time::from_us(1_000_000);
        line.take(now, 1_250);
        assert!(line.is_open(now), "the next one waits behind it");
        line.take(now, 1_250);
        assert!(!line.is_open(now));
        // A packet of 1,250 bytes and half of one are ahead.
        assert_eq!(line.opens_at(), now.saturating_add(Duration::from_ms(15)));
    }
}
