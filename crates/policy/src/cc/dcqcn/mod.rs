//! DCQCN's reaction point (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section
//! 3.1), with the variations of existing models and NICs (see [`DcqcnParams`]).
//!
//! Timers are evaluated when the state is used, because an alpha timer of 1 us would cause a thousand times more
//! events than the packets it governs. Between two uses timers determine everything that happens, so the trajectory
//! equals that of eager timers bit for bit (a test compares them). At one instant the order is: alpha, rate increase,
//! a rate decrease that was due, then the packet or notification of that instant.

#[cfg(test)]
mod eager;
mod hosts;
mod params;
mod presets;
#[cfg(test)]
mod tests;

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::{Feedback, FeedbackKind, PolicyCx, PolicyEnv, SendRequest, Sent};

pub use params::{DcqcnConfig, DcqcnParams, Field, Reaction};
pub use presets::{DcqcnPreset, PresetInfo, presets};

/// Value below which alpha counts as zero: in 53 bits neither `1 - alpha / 2` nor `alpha + g` changes, for any gain
/// above 2^-25.
const ALPHA_FLOOR: f64 = 1.0 / (1u128 << 80) as f64;

/// State of one queue pair.
// Fields are in order of use: a packet touches the first 64 bytes only.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Dcqcn {
    // Read for every packet.
    next_send: Time,
    /// The earlier of `increase_due` and `decrease_due`.
    due: Time,
    rate: Rate,
    /// Rate from which packets are not paced. A rate within a thousandth of the line rate is left to the NIC: every
    /// increase only halves the distance, and a pacer for the rest would cost an event per packet.
    unpaced_rate: Rate,
    window_bytes: u64,
    byte_counter: u64,
    window_follows_rate: bool,
    // Read by timers and notifications.
    target: Rate,
    line: Rate,
    bytes_since_step: u64,
    byte_stage: u32,
    timer_stage: u32,
    /// Time of the next rate increase. `Time::MAX`: stopped, because rate and target are at line rate and no step
    /// could change them.
    increase_due: Time,
    /// Time of the next rate decrease. `Time::MAX`: no notification waits for the decrease clock.
    decrease_due: Time,
    /// Sampled: time of the first notification, from which both clocks run. Immediate: time of the last one that
    /// acted.
    reacted_at: Option<Time>,
    alpha: f64,
    alpha_due: Time,
    notified: bool,
    params: Steps,
}

/// Parameters that state transitions read, resolved for the line rate.
#[derive(Clone, Copy, Debug)]
struct Steps {
    reaction: Reaction,
    clamp_target: bool,
    stages: u32,
    gain: f64,
    alpha_timer: Duration,
    decrease_interval: Duration,
    rate_timer: Duration,
    additive: Rate,
    hyper: Rate,
    min: Rate,
}

impl Dcqcn {
    /// Creates the state of one queue pair, at line rate.
    pub fn new(config: &DcqcnConfig, env: &PolicyEnv) -> Self {
        let p = config.params();
        let (additive, hyper) = p.increases(env);
        let line = env.line_rate;
        Dcqcn {
            rate: line,
            unpaced_rate: Rate::from_bps(line.as_bps() - line.as_bps() / 1_024),
            next_send: Time::ZERO,
            due: Time::MAX,
            window_bytes: p.window.bytes(env),
            byte_counter: p.byte_counter.get(),
            window_follows_rate: p.window_follows_rate,
            target: line,
            line,
            bytes_since_step: 0,
            byte_stage: 0,
            timer_stage: 0,
            increase_due: Time::MAX,
            decrease_due: Time::MAX,
            reacted_at: None,
            alpha: p.initial_alpha,
            alpha_due: Time::MAX,
            notified: false,
            params: Steps {
                reaction: p.reaction,
                clamp_target: p.clamp_target,
                stages: p.fast_recovery_stages,
                gain: p.gain,
                alpha_timer: p.alpha_timer,
                decrease_interval: p.decrease_interval,
                rate_timer: p.rate_timer,
                additive,
                hyper,
                min: p.min_rate.min(line),
            },
        }
    }

    /// Returns the rate that the next increases approach.
    pub fn target(&self, now: Time) -> Rate {
        self.at(now).target
    }
    /// Returns the estimate of congestion, 0 to 1. The next cut is by half of it.
    pub fn alpha(&self, now: Time) -> f64 {
        let mut seen = self.at(now);
        seen.advance_alpha(now);
        seen.alpha
    }
    fn at(&self, now: Time) -> Dcqcn {
        let mut seen = *self;
        seen.advance(now);
        seen
    }

    /// Expires every rate timer up to and including `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        if now >= self.due {
            self.expire_timers(now);
        }
    }
    #[cold]
    fn expire_timers(&mut self, now: Time) {
        loop {
            // The increase precedes the decrease: a cut also restarts the rate timer, which would lose the step.
            if self.increase_due <= self.decrease_due {
                if self.increase_due > now {
                    break;
                }
                let at = self.increase_due;
                self.increase();
                self.timer_stage = self.timer_stage.saturating_add(1);
                let arrived = self.rate == self.line && self.target == self.line;
                self.increase_due =
                    if arrived { Time::MAX } else { at.saturating_add(self.params.rate_timer) };
            } else {
                if self.decrease_due > now {
                    break;
                }
                self.decrease(self.decrease_due);
            }
        }
        self.due = self.increase_due.min(self.decrease_due);
    }

    /// Makes one increase step (SIGCOMM'15, section 3.1, reaction point). Stages are counted after the step, so there
    /// are exactly F steps of fast recovery.
    fn increase(&mut self) {
        let Steps { stages, additive, hyper, .. } = self.params;
        let (low, high) = if self.byte_counter == 0 {
            (self.timer_stage, self.timer_stage)
        } else {
            (self.timer_stage.min(self.byte_stage), self.timer_stage.max(self.byte_stage))
        };
        if high >= stages {
            let step = if low > stages { hyper } else { additive };
            self.target = self.target.saturating_add(step).min(self.line);
        }
        // Rounded up, or the rate would stay one bit per second below its target for ever.
        self.rate = Rate::from_bps((self.rate.as_bps() + self.target.as_bps()).div_ceil(2));
    }

    fn decrease(&mut self, at: Time) {
        self.advance_alpha(at);
        if self.params.clamp_target || self.timer_stage > 0 || self.byte_stage > 0 {
            self.target = self.rate;
        }
        self.rate = self.rate.scale(1.0 - self.alpha / 2.0).max(self.params.min);
        self.timer_stage = 0;
        self.byte_stage = 0;
        self.bytes_since_step = 0;
        self.increase_due = at.saturating_add(self.params.rate_timer);
        self.decrease_due = Time::MAX;
    }

    /// Expires the alpha timer up to and including `now`. Only a cut reads alpha, so only notifications and cuts pay
    /// for this: one multiplication per period, and none once alpha has decayed to zero.
    fn advance_alpha(&mut self, now: Time) {
        let Steps { gain, alpha_timer, .. } = self.params;
        if self.notified && self.alpha_due <= now {
            self.alpha = (1.0 - gain) * self.alpha + gain;
            self.notified = false;
            self.alpha_due += alpha_timer;
        }
        while self.alpha_due <= now {
            if self.alpha < ALPHA_FLOOR {
                self.alpha = 0.0;
                let periods = (now - self.alpha_due).as_ps() / alpha_timer.as_ps() + 1;
                self.alpha_due += alpha_timer * periods;
                return;
            }
            self.alpha *= 1.0 - gain;
            self.alpha_due += alpha_timer;
        }
    }

    fn on_notification(&mut self, now: Time) {
        let Steps { reaction, gain, alpha_timer, decrease_interval, .. } = self.params;
        match (reaction, self.reacted_at) {
            (Reaction::Sampled, None) => {
                self.reacted_at = Some(now);
                self.alpha_due = now + alpha_timer;
                self.decrease_due = now + decrease_interval;
            }
            (Reaction::Sampled, Some(first)) => {
                self.advance_alpha(now);
                self.notified = true;
                if self.decrease_due == Time::MAX {
                    let periods = (now - first).as_ps() / decrease_interval.as_ps() + 1;
                    self.decrease_due = first + decrease_interval * periods;
                }
            }
            (Reaction::Immediate, last) => {
                if last.is_some_and(|last| now - last < decrease_interval) {
                    return;
                }
                self.decrease(now);
                self.alpha = (1.0 - gain) * self.alpha + gain;
                self.alpha_due = now + alpha_timer;
                self.reacted_at = Some(now);
            }
        }
        self.due = self.increase_due.min(self.decrease_due);
    }

    fn on_bytes(&mut self, bytes: u32) {
        self.bytes_since_step += u64::from(bytes);
        while self.bytes_since_step >= self.byte_counter {
            self.bytes_since_step -= self.byte_counter;
            self.increase();
            self.byte_stage = self.byte_stage.saturating_add(1);
        }
    }

    #[inline]
    fn window_bytes(&self) -> u64 {
        if !self.window_follows_rate || self.window_bytes == u64::MAX {
            return self.window_bytes;
        }
        (u128::from(self.window_bytes) * u128::from(self.rate.as_bps()) / u128::from(self.line.as_bps()))
            as u64
    }
}

impl CongestionControl for Dcqcn {
    crate::ignores!(on_open, on_close, on_timer, window);
    #[inline]
    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        self.advance(now);
        if !want.fits(self.window_bytes()) {
            return Permit::Blocked;
        }
        if now < self.next_send && self.rate < self.unpaced_rate {
            return Permit::At(self.next_send);
        }
        Permit::Now
    }
    #[inline]
    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.advance(now);
        // Paced from now, not from when the packet might have left: idle time gives no credit.
        self.next_send = if self.rate < self.unpaced_rate {
            now.max(self.next_send) + self.rate.time_for(u64::from(sent.wire_bytes))
        } else {
            now
        };
        if self.byte_counter > 0 {
            self.on_bytes(sent.wire_bytes);
        }
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        if feedback.kind == FeedbackKind::Cnp {
            self.advance(now);
            self.on_notification(now);
        }
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        Some(self.at(now).rate)
    }
}
