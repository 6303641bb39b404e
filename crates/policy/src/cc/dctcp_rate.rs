//! DCTCP with a rate instead of the window, as in RDMA simulators (HPCC's, and the LAPS study for PLB). At the first
//! mark of a round trip the rate falls by half the average fraction of marked packets. After a round trip without
//! marks it rises by a constant. A fixed window bounds the bytes in flight.

use pathweave_units::{Rate, Time};

use super::window::Window;
use super::{CongestionControl, Permit};
use crate::error::{above, check, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{Adapt, ConfigError, Feedback, FeedbackKind, MarkUse, PolicyCx, PolicyEnv, SendRequest, Sent};

/// Parameters of [`DctcpRate`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct DctcpRateConfig {
    /// g: weight of the newest round in the average fraction of marked packets. Default 1/256 (CONFIG_DCQCN.txt of
    /// the LAPS study, which uses it for DCQCN, too).
    pub gain: f64,
    /// Rate added after a round trip without a mark. Default 1 Gb/s (the same file, and HPCC's simulator).
    pub increase: Rate,
    /// Smallest rate. Default 100 Mb/s (the same file).
    pub min_rate: Rate,
    /// Largest amount of data in flight. Default one bandwidth-delay product of the pair of hosts; the study uses the
    /// largest one of the fabric.
    pub window: Window,
}

impl Default for DctcpRateConfig {
    fn default() -> Self {
        DctcpRateConfig {
            gain: 1.0 / 256.0,
            increase: Rate::from_gbps(1),
            min_rate: Rate::from_mbps(100),
            window: Window::Bdp(1.0),
        }
    }
}

impl HasControlModel for DctcpRateConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_MARKS
    }
}

impl Adapt for DctcpRateConfig {
    fn marks(&self) -> MarkUse {
        MarkUse::Alone
    }
}

impl DctcpRateConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("gain", self.gain, above(0.0, 1.0), "")?;
        check(self.increase > Rate::ZERO, "increase", self.increase, "more than 0")?;
        check(self.min_rate > Rate::ZERO, "min_rate", self.min_rate, "more than 0 (a flow must not stop)")?;
        self.window.validate()
    }
}

/// State of one queue pair.
#[derive(Clone, Debug)]
pub struct DctcpRate {
    rate: Rate,
    /// Time before which no packet leaves.
    next_send: Time,
    line: Rate,
    min: Rate,
    increase: Rate,
    gain: f64,
    window_bytes: u64,
    /// alpha: average fraction of marked packets; initially 1.
    marked_share: f64,
    acked: u32,
    marked: u32,
    /// PSN whose acknowledgement ends the round.
    round_end: u64,
    /// PSN before whose acknowledgement the reduced rate does not change again.
    reduced_until: Option<u64>,
    next_psn: u64,
}

impl DctcpRate {
    pub(crate) fn new(config: &DctcpRateConfig, env: &PolicyEnv) -> Self {
        DctcpRate {
            rate: env.line_rate,
            next_send: Time::ZERO,
            line: env.line_rate,
            min: config.min_rate.min(env.line_rate),
            increase: config.increase,
            gain: config.gain,
            window_bytes: config.window.bytes(env),
            marked_share: 1.0,
            acked: 0,
            marked: 0,
            round_end: 0,
            reduced_until: None,
            next_psn: 0,
        }
    }

    fn on_ack(&mut self, psn: u64, marked: bool) {
        self.acked += 1;
        self.marked += u32::from(marked);
        let round_over = psn >= self.round_end;
        if round_over {
            let share = f64::from(self.marked) / f64::from(self.acked);
            self.marked_share += self.gain * (share - self.marked_share);
            (self.acked, self.marked) = (0, 0);
            self.round_end = self.next_psn;
        }
        self.reduced_until = self.reduced_until.filter(|&until| psn < until);
        if self.reduced_until.is_some() {
            return;
        }
        if marked {
            self.rate = self.rate.scale(1.0 - self.marked_share / 2.0).max(self.min);
            self.reduced_until = Some(self.next_psn);
        } else if round_over {
            self.rate = self.rate.saturating_add(self.increase).min(self.line);
        }
    }
}

impl CongestionControl for DctcpRate {
    crate::ignores!(on_open, on_close, on_timer, window);
    #[inline]
    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if !want.fits(self.window_bytes) {
            Permit::Blocked
        } else if now < self.next_send && self.rate < self.line {
            Permit::At(self.next_send)
        } else {
            Permit::Now
        }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next_psn = self.next_psn.max(sent.psn + 1);
        self.next_send = now.saturating_add(self.rate.time_for(u64::from(sent.wire_bytes)));
        0
    }
    #[inline]
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        if let FeedbackKind::Ack { marked, .. } = feedback.kind {
            self.on_ack(feedback.psn, marked);
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ACK, Host, Scenario, random_operations};
    use crate::{PolicyConfig, SplitConfig};
    use pathweave_units::Duration;

    /// Returns a queue pair at 100 Gb/s.
    fn control() -> DctcpRate {
        let env = PolicyEnv { line_rate: Rate::from_gbps(100), ..Scenario::steady().env };
        DctcpRate::new(&DctcpRateConfig::default(), &env)
    }
    fn ack(control: &mut DctcpRate, psn: u64, marked: bool) {
        let feedback =
            Feedback { kind: FeedbackKind::Ack { timed: true, marked }, psn, rtt: Duration::ZERO, ..ACK };
        control.on_feedback(Time::ZERO, &feedback, &mut Host::new(1).cx());
    }
    fn gbps(control: &DctcpRate) -> f64 {
        control.rate.as_bps() as f64 / 1e9
    }

    #[test]
    fn the_first_mark_of_a_round_halves_and_a_round_without_adds_a_gigabit() {
        let mut control = control();
        control.next_psn = 10;
        // All packets so far were marked, so alpha stays 1. Further marks in flight change nothing.
        ack(&mut control, 0, true);
        assert_eq!((gbps(&control), control.marked_share), (50.0, 1.0));
        (1..10).for_each(|psn| ack(&mut control, psn, true));
        assert_eq!(gbps(&control), 50.0);
        // The round that ends with packet 10 has nine marks in ten: alpha falls by a tenth of 1/256.
        control.next_psn = 20;
        ack(&mut control, 10, false);
        assert!((control.marked_share - (1.0 - 0.1 / 256.0)).abs() < 1e-12);
        assert_eq!(gbps(&control), 51.0);
        (11..20).for_each(|psn| ack(&mut control, psn, false));
        assert_eq!(gbps(&control), 51.0, "once a round trip");
        control.next_psn = 30;
        ack(&mut control, 20, false);
        assert_eq!(gbps(&control), 52.0);
    }

    #[test]
    fn the_rate_stays_between_the_least_and_the_line() {
        let mut control = control();
        for psn in 0..40 {
            control.next_psn = psn + 1;
            ack(&mut control, psn, true);
        }
        assert_eq!(control.rate, Rate::from_mbps(100));
        for psn in 40..200 {
            control.next_psn = psn + 1;
            ack(&mut control, psn, false);
        }
        assert_eq!(control.rate, Rate::from_gbps(100));
    }

    #[test]
    fn random_operations_break_no_invariant() {
        for seed in 0..40 {
            let cc = crate::cc::CcConfig::DctcpRate(DctcpRateConfig::default());
            let picker = crate::picker::PickerConfig::Plb(Default::default());
            let config = PolicyConfig::Split(SplitConfig { cc, picker });
            assert_eq!(config.validate(), Ok(()));
            random_operations(seed, 2_000, &Scenario::steady().env, |env, rng| config.build(env, rng));
        }
    }

    #[test]
    fn errors_name_the_field() {
        let wrong = |config: DctcpRateConfig| config.validate().expect_err("must be refused").field;
        let usual = DctcpRateConfig::default;
        assert_eq!(wrong(DctcpRateConfig { gain: 0.0, ..usual() }), "gain");
        assert_eq!(wrong(DctcpRateConfig { increase: Rate::ZERO, ..usual() }), "increase");
        assert_eq!(wrong(DctcpRateConfig { min_rate: Rate::ZERO, ..usual() }), "min_rate");
        assert_eq!(wrong(DctcpRateConfig { window: Window::Packets(0), ..usual() }), "window.packets");
    }
}
