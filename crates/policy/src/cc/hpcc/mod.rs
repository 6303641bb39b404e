//! HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019): switches report their queues and the bytes
//! they have sent, and the sender computes how busy the busiest port of the path is.
//!
//! Follows the authors' simulator (alibaba-edu/High-Precision-Congestion-Control 9f4be2a, `RdmaHw::UpdateRateHp`), which
//! has the window of Algorithm 1 as a rate R: the window is R times T, and packets are paced at R. A loss as such
//! changes nothing, but a NACK returns telemetry like an ACK (`HandleAckHp`). Without telemetry the rate stays the line's.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, QpNum, Rate, Telemetry, Time};

use super::{CongestionControl, Permit};
use crate::error::{above, check, within};
use crate::fluid::{AloneAtPort, ControlModel, HasControlModel};
use crate::{
    Adapt, ConfigError, FabricEnv, Feedback, FeedbackKind, PolicyCx, PolicyEnv, QueuePairId, SendRequest,
    SendWindow, Sent,
};

/// Parameters of [`Hpcc`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct HpccConfig {
    /// eta: utilisation at which the busiest port is held. Default 0.95 (SIGCOMM 2019).
    pub utilisation: f64,
    /// maxStage: increases by a step in a row, one a round trip, before the rate follows the utilisation again.
    /// Default 5 (SIGCOMM 2019; run.py of the authors' simulator has 0).
    pub max_stage: u32,
    /// W_AI as a rate: step by which the rate grows. Absent: 10 Mb/s for each 25 Gb/s of the line (run.py).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub increase: Option<Rate>,
    /// T: round-trip time of the idle network, the same for all flows. Absent: the longest of all pairs of
    /// hosts.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub base_rtt: Option<Duration>,
    /// Smallest rate. Absent: a hundredth of the line rate (run.py: 1 Gb/s at 100 Gb/s).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub min_rate: Option<Rate>,
    /// Acknowledgements that change the rate. Default "every_ack".
    pub reaction: HpccReaction,
}

/// Acknowledgements that change the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum HpccReaction {
    /// Each one, from a reference rate that changes once a round trip (Algorithm 1).
    #[default]
    EveryAck,
    /// One a round trip.
    RoundTrip,
}

impl Default for HpccConfig {
    fn default() -> Self {
        HpccConfig {
            utilisation: 0.95,
            max_stage: 5,
            increase: None,
            base_rtt: None,
            min_rate: None,
            reaction: HpccReaction::default(),
        }
    }
}

/// Default step, as a divisor of the line rate: 10 Mb/s at 25 Gb/s.
const STEP_SHARE: u64 = 2_500;
/// Default minimum rate, as a divisor of the line rate.
const LEAST_SHARE: u64 = 100;
/// Largest number of paths whose telemetry is kept. A reading needs an earlier one of the same path.
pub(crate) const MOST_PATHS: usize = 64;

impl HpccConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("utilisation", self.utilisation, above(0.0, 1.0), "")?;
        within("max_stage", self.max_stage, ..=1_000_000, "")?;
        let rate =
            |field, rate: Option<Rate>| check(rate != Some(Rate::ZERO), field, Rate::ZERO, "more than 0");
        rate("increase", self.increase)?;
        rate("min_rate", self.min_rate)?;
        let Some(base_rtt) = self.base_rtt else { return Ok(()) };
        within("base_rtt", base_rtt, above(Duration::ZERO, Duration::from_ms(1_000)), "")
    }
}

/// The model of other controls by acknowledgements, not fitted to runs of HPCC, whose rate is `eta` of that of the busiest
/// port.
impl HasControlModel for HpccConfig {
    fn control(&self) -> ControlModel {
        ControlModel { alone: AloneAtPort::LeavesRoom, ..ControlModel::BY_DELAY }
    }
}

impl Adapt for HpccConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.base_rtt = self.base_rtt.or(fabric.longest_rtt);
    }
    fn reads_telemetry(&self) -> bool {
        true
    }
}

/// State of one queue pair. Rates in computations are in bits per second.
#[derive(Clone, Debug)]
pub struct Hpcc {
    /// R, and the reference rate Rc of the round trip.
    rate: f64,
    reference: f64,
    /// U: average utilisation of the busiest port.
    utilisation: f64,
    stage: u32,
    /// PSN of the next new packet.
    next_psn: u64,
    /// PSN whose acknowledgement ends the round trip; `None` before the first one.
    round_end: Option<u64>,
    last_sent: Time,
    last_bytes: u32,
    qp: QpNum,
    seen: Seen,
    params: Params,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    line: f64,
    base_rtt: Duration,
    /// T in seconds.
    round_trip: f64,
    target: f64,
    max_stage: u32,
    increase: f64,
    min: f64,
    reaction: HpccReaction,
}

/// Last telemetry of each path.
#[derive(Clone, Debug, Default)]
struct Seen {
    paths: Vec<(PathId, Telemetry)>,
    /// Place that the next path takes if there is no room.
    oldest: usize,
}

impl Seen {
    /// Stores the telemetry of a path. Returns the last one if it is of as many ports.
    fn replace(&mut self, path: PathId, telemetry: &Telemetry) -> Option<Telemetry> {
        if let Some((_, seen)) = self.paths.iter_mut().find(|(of, _)| *of == path) {
            let before = core::mem::replace(seen, *telemetry);
            return Some(before).filter(|before| before.passed() == telemetry.passed());
        }
        if self.paths.len() < MOST_PATHS {
            self.paths.push((path, *telemetry));
        } else {
            self.paths[self.oldest] = (path, *telemetry);
            self.oldest = (self.oldest + 1) % MOST_PATHS;
        }
        None
    }
}

impl Hpcc {
    pub(crate) fn new(config: &HpccConfig, env: &PolicyEnv) -> Self {
        let line = env.line_rate.as_bps();
        let or_share = |rate: Option<Rate>, share| rate.map_or(line / share, Rate::as_bps).max(1) as f64;
        let base_rtt = config.base_rtt.unwrap_or(env.base_rtt).max(env.base_rtt);
        Hpcc {
            rate: line as f64,
            reference: line as f64,
            utilisation: 1.0,
            stage: 0,
            next_psn: 0,
            round_end: None,
            last_sent: Time::ZERO,
            last_bytes: 0,
            qp: QpNum(0),
            seen: Seen::default(),
            params: Params {
                line: line as f64,
                base_rtt,
                round_trip: base_rtt.as_ps() as f64 * 1e-12,
                target: config.utilisation,
                max_stage: config.max_stage,
                increase: or_share(config.increase, STEP_SHARE),
                min: or_share(config.min_rate, LEAST_SHARE).min(line as f64),
                reaction: config.reaction,
            },
        }
    }

    fn window_bytes(&self) -> u64 {
        (self.rate * self.params.round_trip / 8.0) as u64
    }

    /// Returns the utilisation of the busiest port since the last packet of the path, and the seconds in between.
    fn busiest(&self, before: &Telemetry, now: &Telemetry) -> Option<(f64, f64)> {
        let of_port = |change: pathweave_units::PortChange| {
            let (seconds, capacity) = (change.span.as_ps() as f64 * 1e-12, change.rate.as_bps() as f64);
            let sent = change.sent_bytes as f64 * 8.0 / seconds / capacity;
            // The window of an idle network is line times T, so this is q / (C T).
            let queued = change.queue_bytes as f64 * 8.0 / (capacity * self.params.round_trip);
            (sent + queued, seconds)
        };
        // Without time in between there is no rate.
        let measured = now.changes_since(before).filter(|change| change.span > Duration::ZERO).map(of_port);
        measured
            .fold(None, |most, port| if most.is_some_and(|(u, _)| u >= port.0) { most } else { Some(port) })
    }

    fn on_telemetry(&mut self, psn: u64, path: PathId, telemetry: &Telemetry) {
        let before = self.seen.replace(path, telemetry);
        let round_end = *self.round_end.get_or_insert(self.next_psn);
        let Some(before) = before.filter(|_| !telemetry.is_incomplete()) else { return };
        let Some((utilisation, seconds)) = self.busiest(&before, telemetry) else { return };
        let p = self.params;
        self.utilisation += (utilisation - self.utilisation) * (seconds.min(p.round_trip) / p.round_trip);
        let excess = self.utilisation / p.target;
        let follows = excess >= 1.0 || self.stage >= p.max_stage;
        let base = if follows { self.reference / excess } else { self.reference };
        let rate = (base + p.increase).clamp(p.min, p.line);
        if psn >= round_end {
            (self.rate, self.reference) = (rate, rate);
            self.stage = if follows { 0 } else { self.stage + 1 };
            self.round_end = Some(self.next_psn);
        } else if p.reaction == HpccReaction::EveryAck {
            self.rate = rate;
        }
    }
}

impl CongestionControl for Hpcc {
    crate::ignores!(on_close, on_timer);
    fn on_open(&mut self, _now: Time, member: &QueuePairId, _cx: &mut PolicyCx<'_>) {
        self.qp = member.qp;
    }
    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        // As in the authors' simulator, the last packet may exceed the window, and telemetry does not count in it.
        if want.inflight_packets > 0 && want.inflight_bytes >= self.window_bytes() {
            return Permit::Blocked;
        }
        if self.rate >= self.params.line {
            return Permit::Now;
        }
        let gap_ps = f64::from(self.last_bytes) * 8e12 / self.rate;
        let due = self.last_sent.saturating_add(Duration::from_ps(gap_ps as u64));
        if now >= due { Permit::Now } else { Permit::At(due) }
    }
    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next_psn = self.next_psn.max(sent.psn + 1);
        (self.last_sent, self.last_bytes) = (now, sent.wire_bytes + Telemetry::WIRE_BYTES);
        0
    }
    fn on_feedback(&mut self, _now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        let is_answer = matches!(
            feedback.kind,
            FeedbackKind::Ack { timed: true, .. } | FeedbackKind::Trimmed { .. } | FeedbackKind::Lost
        );
        if is_answer && let Some(telemetry) = cx.shared.take_telemetry(self.qp, feedback.psn) {
            self.on_telemetry(feedback.psn, feedback.path, &telemetry);
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(Rate::from_bps(self.rate as u64))
    }
    fn window(&self) -> Option<SendWindow> {
        let p = &self.params;
        Some(SendWindow {
            bytes: self.window_bytes(),
            most_bytes: (p.line * p.round_trip / 8.0) as u64,
            base_rtt: p.base_rtt,
            delay_target: Duration::ZERO,
        })
    }
}

#[cfg(test)]
mod tests;
