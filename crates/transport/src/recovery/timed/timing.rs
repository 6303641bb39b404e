//! Recent time that packets take, and *patience*: the time that a packet may stay unacknowledged.

use pathweave_policy::AckPolicy;
use pathweave_units::Duration;

use crate::config::LossEvidence;

/// Idle round trips that a packet may stay unacknowledged before any has been measured.
const UNMEASURED: u32 = 3;
/// Packets over which the longest recent time is forgotten, as a power of two. Eight windows, so that a path used
/// once in a few round trips is remembered; and at least 2^6, because a window of one packet sees only the effects of
/// others.
const WINDOWS_BITS: u32 = 3;
const LEAST_BITS: u32 = 6;

/// Time that packets take, in units of 256 ps: up to a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// Longest recent time; 0 before the first measurement.
    high: u32,
    /// Margin added to `high` while few packets were measured; before the first, the whole estimate.
    doubt: u32,
}

const UNIT_BITS: u32 = 8;

/// Two values in a byte: the delay of hosts as a power of two of these units, 0 for punctual hosts; and the evidence
/// that proves a packet lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(u8);

/// Quarters of patience after which an overtaken packet is lost without proof, if probes are the evidence. The brief
/// wait has the margin of patience once more: a packet is late if it takes a quarter longer than all recent ones.
const UNPROVED_QUARTERS: u64 = 8;
const BRIEFLY_UNPROVED_QUARTERS: u64 = 5;

impl Slack {
    const PROBES: u8 = 1 << 7;
    const PROVES: u8 = 1 << 6;
    const BRIEF: u8 = 1 << 5;
    /// The exponent is below 32.
    const EXPONENT: u8 = Self::BRIEF - 1;

    pub(crate) fn new(host_delay: Duration, evidence: LossEvidence) -> Self {
        let bits = units(host_delay).checked_ilog2().map_or(0, |bits| bits as u8);
        Slack(match evidence {
            LossEvidence::Patience => bits,
            LossEvidence::Probe => bits | Self::PROBES,
            LossEvidence::BriefProbe => bits | Self::PROBES | Self::BRIEF,
        })
    }
    /// Records the peer's acknowledgement policy. If each packet is acknowledged separately, on its own path, an
    /// answer without the acknowledgement of packets before its probe proves those lost. An acknowledgement for
    /// several takes the path of the last one and may be later.
    pub(crate) fn with_answers_by_path(self, acks: AckPolicy) -> Self {
        let each = acks.every_packets == 1 && acks.every_bytes.is_none();
        Slack(if each { self.0 | Self::PROVES } else { self.0 })
    }
    fn units(self) -> u32 {
        match self.0 & Self::EXPONENT {
            0 => 0,
            bits => 1 << bits,
        }
    }
    #[inline]
    pub(crate) fn evidence(self) -> LossEvidence {
        match (self.0 & Self::PROBES != 0, self.0 & Self::BRIEF != 0) {
            (false, _) => LossEvidence::Patience,
            (true, false) => LossEvidence::Probe,
            (true, true) => LossEvidence::BriefProbe,
        }
    }
    /// Returns true if the answer to a probe proves the loss of packets that left before it on its path.
    pub(crate) fn answers_prove(self) -> bool {
        self.0 & (Self::PROBES | Self::PROVES) == Self::PROBES | Self::PROVES
    }
    /// Time after which an overtaken packet is lost, whatever is known of it.
    #[inline]
    pub(crate) fn lost_after(self, patience: Duration) -> Duration {
        match self.evidence() {
            LossEvidence::Patience => patience,
            LossEvidence::Probe => patience * UNPROVED_QUARTERS / 4,
            LossEvidence::BriefProbe => patience * BRIEFLY_UNPROVED_QUARTERS / 4,
        }
    }
}

fn units(span: Duration) -> u32 {
    u32::try_from(span.as_ps() >> UNIT_BITS).unwrap_or(u32::MAX)
}

impl Timing {
    /// `idle`: time of a full packet and its acknowledgement in an idle network, zero if unknown.
    pub(crate) fn new(idle: Duration) -> Self {
        let doubt = if idle == Duration::ZERO { u32::MAX } else { units(idle).saturating_mul(UNMEASURED) };
        Timing { high: 0, doubt }
    }

    /// Records that a packet took `took` while `in_flight` packets were in flight.
    #[inline]
    pub(crate) fn measure(&mut self, took: Duration, in_flight: u32) {
        let took = units(took).max(1);
        if self.high == 0 {
            // Like a smoothed round trip plus four deviations of half of it (RFC 6298). But a short first measurement
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

    /// Time that a packet may stay unacknowledged. `most` bounds estimates, not measurements: packets that wait
    /// longer in a deep queue are not lost.
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
        timing.patience(Slack::new(Duration::ZERO, LossEvidence::Patience), US * 1_000).as_ps() as f64 / 1e6
    }

    /// Comparison within the resolution of 256 ps.
    fn close(timing: &Timing, wanted: f64) -> bool {
        (us(timing) - wanted).abs() < 0.002
    }

    #[test]
    fn patience_by_hand() {
        let mut timing = Timing::new(US * 10);
        assert!(close(&timing, 30.0));
        // 10 and four deviations of 5. The deviation after a second measurement of 10 is 3.75.
        timing.measure(US * 10, 1);
        assert!(close(&timing, 30.0), "{}", us(&timing));
        timing.measure(US * 10, 1);
        assert!(close(&timing, 25.0), "{}", us(&timing));
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        assert!(close(&timing, 12.5), "{}", us(&timing));
        // One of 40 counts at once. With the next, a 64th of the excess is forgotten.
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
        let punctual = Slack::new(Duration::ZERO, LossEvidence::Patience);
        assert_eq!(timing.patience(punctual, US * 500), US * 500, "the configured timeout bounds a guess");
        timing.measure(Duration::from_ms(60_000), u32::MAX);
        timing.measure(US, u32::MAX);
        assert!(timing.patience(punctual, US * 500) > Duration::from_ms(1_000), "and no measurement");
    }

    #[test]
    fn late_packets_are_waited_for_as_the_evidence_says() {
        for (evidence, lost_after_us) in
            [(LossEvidence::Patience, 40), (LossEvidence::Probe, 80), (LossEvidence::BriefProbe, 50)]
        {
            // The longest delay of hosts leaves the other values alone.
            for host_delay in [Duration::ZERO, Duration::from_ms(10_000)] {
                let slack = Slack::new(host_delay, evidence);
                assert_eq!(slack.evidence(), evidence);
                assert_eq!(slack.lost_after(US * 40), US * lost_after_us);
                assert_eq!(slack.units() > 0, host_delay > Duration::ZERO);
            }
        }
    }

    #[test]
    fn hosts_that_may_be_late_are_waited_for() {
        let mut timing = Timing::new(US * 10);
        (0..20).for_each(|_| timing.measure(US * 10, 1));
        // A millisecond is 3,906,250 units, 2^21 = 2,097,152 of which are 537 us.
        let patience = timing.patience(Slack::new(US * 1_000, LossEvidence::Probe), US * 4_000);
        assert_eq!(patience.as_ps() / 1_000_000, 10 + 536);
    }
}
