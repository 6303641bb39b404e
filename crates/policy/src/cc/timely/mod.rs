//! TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015): a rate that follows
//! the gradient of round-trip times between two thresholds.
//!
//! The rate is updated once per round-trip time: only a packet sent after the last update counts, as in the
//! simulators of HPCC and ConWeave. Answers of the edge of a site arrive at intervals that the edge has chosen, so by
//! default each is an update ([`EdgeUpdates`]).

mod params;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::{Feedback, FeedbackKind, PolicyCx, PolicyEnv, SendRequest, Sent};

pub use params::{EdgeUpdates, TimelyConfig, TimelyParams, TimelyPreset};

/// State of one queue pair.
// Fields are in order of use: a packet touches the first words only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Timely {
    next_send: Time,
    rate: Rate,
    /// Rate from which packets are not paced: the difference to the line rate is below the resolution of a pacer.
    unpaced: Rate,
    window_bytes: u64,
    line: Rate,
    /// Rate in bits per second, including its fraction.
    bps: f64,
    /// Average difference between successive round-trip times, picoseconds.
    difference_ps: f64,
    last_rtt: Option<Duration>,
    updated: Time,
    /// Number of increases in a row.
    increases: u32,
    step_bps: f64,
    min_bps: f64,
    params: TimelyParams,
}

/// Reaction to a round-trip time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict {
    Increase,
    /// Multiply the rate by this factor.
    Decrease(f64),
}

impl Timely {
    /// Creates the state of one queue pair, at line rate.
    pub fn new(config: &TimelyConfig, env: &PolicyEnv) -> Self {
        let params = config.params();
        let line = env.line_rate;
        Timely {
            next_send: Time::ZERO,
            rate: line,
            unpaced: Rate::from_bps(line.as_bps() - line.as_bps() / 1_024),
            window_bytes: params.window.bytes(env),
            line,
            bps: line.as_bps() as f64,
            difference_ps: 0.0,
            last_rtt: None,
            updated: Time::ZERO,
            increases: 0,
            step_bps: params.step_bps(env),
            min_bps: params.min_rate.min(line).as_bps() as f64,
            params,
        }
    }

    /// Returns the reaction to a round-trip time (section 4.3, algorithm 1).
    fn verdict(&self, rtt: Duration) -> Verdict {
        let p = &self.params;
        let gradient = self.difference_ps / p.min_rtt.as_ps() as f64;
        if rtt < p.t_low {
            Verdict::Increase
        } else if rtt > p.t_high {
            Verdict::Decrease(1.0 - p.beta * (1.0 - p.t_high.as_ps() as f64 / rtt.as_ps() as f64))
        } else if gradient <= 0.0 {
            Verdict::Increase
        } else {
            Verdict::Decrease((1.0 - p.beta * gradient).max(0.0))
        }
    }

    fn update(&mut self, now: Time, rtt: Duration) {
        self.updated = now;
        // The first round-trip time has no predecessor.
        let Some(last) = self.last_rtt.replace(rtt) else { return };
        let newest = rtt.as_ps() as f64 - last.as_ps() as f64;
        self.difference_ps = (1.0 - self.params.gain) * self.difference_ps + self.params.gain * newest;
        match self.verdict(rtt) {
            Verdict::Increase => {
                let steps =
                    if self.increases < self.params.hyper_after { 1 } else { self.params.hyper_factor };
                self.increases = self.increases.saturating_add(1);
                self.bps = (self.bps + f64::from(steps) * self.step_bps).min(self.line.as_bps() as f64);
            }
            Verdict::Decrease(factor) => {
                self.increases = 0;
                self.bps = (self.bps * factor).max(self.min_bps);
            }
        }
        self.rate = Rate::from_bps(self.bps as u64);
    }
}

impl CongestionControl for Timely {
    crate::ignores!(on_open, on_close, on_timer, window);
    #[inline]
    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if !want.fits(self.window_bytes) {
            return Permit::Blocked;
        }
        if now < self.next_send && self.rate < self.unpaced {
            return Permit::At(self.next_send);
        }
        Permit::Now
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.next_send = if self.rate < self.unpaced {
            now.max(self.next_send) + self.rate.time_for(u64::from(sent.wire_bytes))
        } else {
            now
        };
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        let sent_since_update = now.saturating_since(self.updated) >= feedback.rtt;
        let updates = match feedback.kind {
            FeedbackKind::Ack { timed, .. } => timed && sent_since_update,
            FeedbackKind::EdgeRtt => self.params.edge_updates == EdgeUpdates::Every || sent_since_update,
            _ => false,
        };
        if updates {
            self.update(now, feedback.rtt);
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        Some(self.rate)
    }
}
