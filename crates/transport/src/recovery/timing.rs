//! How long packets take of late, and how long one may say nothing: *patience*.

use pathweave_policy::AckPolicy;
use pathweave_units::Duration;

use crate::config::Evidence;

/// Idle round trips that a packet may say nothing before any has been measured.
const UNMEASURED: u32 = 3;
/// Packets over which the longest time of late is forgotten, as a power of two: eight windows, so that a path taken once in
/// a few round trips is remembered; and no fewer than so many, since a window of one packet sees what others do to it.
const WINDOWS_BITS: u32 = 3;
const LEAST_BITS: u32 = 6;

/// How long packets take, in units of 256 ps: up to a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The longest of late; 0 before the first.
    high: u32,
    /// What is added to it while few were measured; before the first, all there is.
    doubt: u32,
}

const UNIT_BITS: u32 = 8;

/// In a byte: how late a host may be, as a power of two of these units, 0 for punctual ones; and what proves a packet lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(u8);

/// How many times patience an overtaken packet may be away that no probe has proved lost, where probes do.
const UNPROVED: u64 = 2;

impl Slack {
    const PROBES: u8 = 1 << 7;
    const PROVES: u8 = 1 << 6;

    pub(crate) fn new(host_delay: Duration, evidence: Evidence) -> Self {
        let bits = units(host_delay).checked_ilog2().map_or(0, |bits| bits as u8);
        Slack(if evidence == Evidence::Probe { bits | Self::PROBES } else { bits })
    }
    /// Each packet is acknowledged by itself, over its own path: an answer that comes without an acknowledgement of what was
    /// before its probe proves that lost. One for several takes the path of the last of them, and may be later.
    pub(crate) fn with_answers_by_path(self, acks: AckPolicy) -> Self {
        let each = acks.every_packets == 1 && acks.every_bytes.is_none();
        Slack(if each { self.0 | Self::PROVES } else { self.0 })
    }
    fn units(self) -> u32 {
        match self.0 & !(Self::PROBES | Self::PROVES) {
            0 => 0,
            bits => 1 << bits,
        }
    }
    #[inline]
    pub(crate) fn evidence(self) -> Evidence {
        if self.0 & Self::PROBES == 0 { Evidence::Patience } else { Evidence::Probe }
    }
    /// Whether the answer of a probe proves what left before it on its path lost.
    pub(crate) fn answers_prove(self) -> bool {
        self.0 & (Self::PROBES | Self::PROVES) == Self::PROBES | Self::PROVES
    }
    /// After what time an overtaken packet is lost, whatever is known of it.
    #[inline]
    pub(crate) fn lost_after(self, patience: Duration) -> Duration {
        match self.evidence() {
            Evidence::Patience => patience,
            Evidence::Probe => patience * UNPROVED,
        }
    }
}

fn units(span: Duration) -> u32 {
    u32::try_from(span.as_ps() >> UNIT_BITS).unwrap_or(u32::MAX)
}

impl Timing {
    /// `idle`: time of a full packet there and its acknowledgement back, zero if not known.
    pub(crate) fn new(idle: Duration) -> Self {
        let doubt = if idle == Duration::ZERO { u32::MAX } else { units(idle).saturating_mul(UNMEASURED) };
        Timing { high: 0, doubt }
    }

    /// A packet took so long, while so many were in flight.
    #[inline]
    pub(crate) fn measure(&mut self, took: Duration, in_flight: u32) {
        let took = units(took).max(1);
        if self.high == 0 {
            // As a smoothed round trip and four deviations of half of it (RFC 6298) would have it; but one that is short
            // does not end patience at once.
            let rest = if self.doubt == u32::MAX { 0 } else { self.doubt.saturating_sub(took) };
            (self.high, self.doubt) = (took, rest.max(took.saturating_mul(UNMEASURED - 1)));
            return;
        }
        self.doubt -= self.doubt.div_ceil(4);
        if took >= self.high {
            self.high = took;
        } else {
            let window_bits = u32::BITS - in_flight.leading_zeros();
            let bits = (window_bits + WINDOWS_BITS).clamp(LEAST_BITS, u32::BITS - 1);
            self.high -= (self.high - took) >> bits;
        }
    }

    /// How long a packet may say nothing. `most` bounds what is guessed, not what was measured: packets that wait longer in
    /// a deep queue are not lost.
    #[inline]
    pub(crate) fn patience(&self, slack: Slack, most: Duration) -> Duration {
        let after_high = |more: u32| Duration::from_ps((u64::from(self.high) + u64::from(more)) << UNIT_BITS);
        let measured = after_high(if self.high == 0 { 0 } else { (self.high / 4).max(slack.units()) });
        after_high(self.doubt).min(most).max(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_us(1);

    fn us(timing: &Timing) -> f64 {
        timing.patience(Slack::new(Duration::ZERO, Evidence::Patience), US * 1_000).as_ps() as f64 / 1e6
    }

    /// Within the resolution of 256 ps.
    fn close(timing: &Timing, wanted: f64) -> bool {
        (us(timing) - wanted).abs() < 0.002
    }

    #[test]
    fn patience_by_hand() {
        let mut timing = Timing::new(US * 10);
        assert!(close(&timing, 30.0));
        // 10 and four deviations of 5; the deviation of a second one of 10 is 3.75.
        timing.measure(US * 10, 1);
        assert!(close(&timing, 30.0), "{}", us(&timing));
        timing.measure(US * 10, 1);
        assert!(close(&timing, 25.0), "{}", us(&timing));
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        assert!(close(&timing, 12.5), "{}", us(&timing));
        // One of 40 is remembered at once, and with the next a 64th of what it was too long is forgotten.
        timing.measure(US * 40, 1);
        assert!(close(&timing, 50.0), "{}", us(&timing));
        timing.measure(US * 10, 1);
        assert!(close(&timing, 1.25 * (40.0 - 30.0 / 64.0)), "{}", us(&timing));
        // With 1,000 in flight, an 8,192nd.
        timing.measure(US * 40, 1_000);
        timing.measure(US * 10, 1_000);
        assert!(close(&timing, 1.25 * (40.0 - 30.0 / 8_192.0)), "{}", us(&timing));
    }

    #[test]
    fn a_round_trip_beyond_counting_is_the_longest_there_is() {
        let mut timing = Timing::new(Duration::ZERO);
        let punctual = Slack::new(Duration::ZERO, Evidence::Patience);
        assert_eq!(timing.patience(punctual, US * 500), US * 500, "the configured timeout bounds a guess");
        timing.measure(Duration::from_ms(60_000), u32::MAX);
        timing.measure(US, u32::MAX);
        assert!(timing.patience(punctual, US * 500) > Duration::from_ms(1_000), "and no measurement");
    }

    #[test]
    fn hosts_that_may_be_late_are_waited_for() {
        let mut timing = Timing::new(US * 10);
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        // A millisecond is 3,906,250 units, 2^21 = 2,097,152 of which are 537 us.
        let patience = timing.patience(Slack::new(US * 1_000, Evidence::Probe), US * 4_000);
        assert_eq!(patience.as_ps() / 1_000_000, 10 + 536);
    }
}
