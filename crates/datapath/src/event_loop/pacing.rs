//! Pacing at the rate of the network interface.
//!
//! Schemes assume a port that transmits one packet at a time; a scheme without congestion control sends whenever the
//! port is free. A socket accepts everything and drops packets later, so the loop enforces the line rate itself. It
//! may run ahead by one batch; otherwise segmentation offload would have nothing to divide.

use pathweave_units::{Duration, Rate, Time};

use crate::config::DeviceConfig;

/// Longest time by which the loop runs ahead of the line rate.
const MOST_AHEAD: Duration = Duration::from_us(100);
/// Bytes by which the loop runs ahead if the line sends them in less time than that: a full batch.
const BATCH_BYTES: u64 = 65_536;

/// Pacing state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    rate: Rate,
    /// Time at which all packets so far have left at the line rate.
    free_at: Time,
    ahead: Duration,
    /// True after the loop has run ahead as far as it may, until half of that time has passed. Packets thus leave in
    /// batches, and the loop sleeps in between.
    closed: bool,
}

/// Largest size of headers and protection around a payload on the link, in bytes.
const AROUND_PAYLOAD_BYTES: u64 = 200;

impl Pacer {
    /// Creates the pacing state of a device.
    pub(crate) fn of_device(config: &DeviceConfig) -> Self {
        Pacer::new(config.line_rate, u64::from(config.mtu_payload) + AROUND_PAYLOAD_BYTES)
    }

    /// Creates the pacing state for this rate and packets of up to `packet_bytes`.
    fn new(rate: Rate, packet_bytes: u64) -> Self {
        let batch = rate.time_for(BATCH_BYTES).min(MOST_AHEAD);
        Pacer { rate, free_at: Time::ZERO, ahead: batch.max(rate.time_for(packet_bytes)), closed: false }
    }

    /// Returns true if a packet may be sent now.
    #[inline]
    pub(crate) fn is_open(&mut self, now: Time) -> bool {
        let ahead = if self.closed { self.half() } else { self.ahead };
        self.closed = self.free_at > now.saturating_add(ahead);
        !self.closed
    }

    fn half(&self) -> Duration {
        Duration::from_ps(self.ahead.as_ps() / 2)
    }

    /// Returns the time at which the next packet may be sent, after pacing has closed.
    pub(crate) fn opens_at(&self) -> Time {
        Time::from_ps(self.free_at.as_ps().saturating_sub(self.half().as_ps()))
    }

    /// Records a packet that was sent.
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
        let mut line = Pacer::new(Rate::from_gbps(10), 1_250);
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
        let mut line = Pacer::new(Rate::from_mbps(1), 1_250);
        let now = Time::from_us(1_000_000);
        line.take(now, 1_250);
        assert!(line.is_open(now), "the next one waits behind it");
        line.take(now, 1_250);
        assert!(!line.is_open(now));
        // A packet of 1,250 bytes and half of one are ahead.
        assert_eq!(line.opens_at(), now.saturating_add(Duration::from_ms(15)));
    }
}
