//! Textbook implementation of DCQCN's reaction point, in which every timer is an event. Reference for the lazy
//! timers.

use pathweave_units::{Duration, Rate, Time};

use super::{DcqcnParams, Reaction};
use crate::PolicyEnv;

pub(super) struct Eager {
    p: DcqcnParams,
    line: u64,
    additive: u64,
    hyper: u64,
    pub(super) rate: u64,
    pub(super) target: u64,
    pub(super) alpha: f64,
    alpha_notified: bool,
    decrease_notified: bool,
    /// Timers in the order in which they act at one instant: alpha, rate increase, rate decrease.
    timers: [Time; 3],
    last_cut: Option<Time>,
    timer_stage: u32,
    byte_stage: u32,
    bytes: u64,
}

impl Eager {
    pub(super) fn new(p: DcqcnParams, env: &PolicyEnv) -> Self {
        let line = env.line_rate.as_bps();
        let (additive, hyper) = p.increases(env);
        Eager {
            p,
            line,
            additive: additive.as_bps(),
            hyper: hyper.as_bps(),
            rate: line,
            target: line,
            alpha: p.initial_alpha,
            alpha_notified: false,
            decrease_notified: false,
            timers: [Time::MAX; 3],
            last_cut: None,
            timer_stage: 0,
            byte_stage: 0,
            bytes: 0,
        }
    }

    /// Expires every timer up to and including `now`, one by one.
    pub(super) fn run_until(&mut self, now: Time) {
        loop {
            let (which, at) =
                (0..3).map(|i| (i, self.timers[i])).min_by_key(|&(i, at)| (at, i)).expect("three timers");
            if at > now {
                return;
            }
            match which {
                0 => {
                    let raise = if self.alpha_notified { self.p.gain } else { 0.0 };
                    self.alpha = (1.0 - self.p.gain) * self.alpha + raise;
                    self.alpha_notified = false;
                    self.timers[0] = at + self.p.alpha_timer;
                }
                1 => {
                    self.step_up();
                    self.timer_stage += 1;
                    self.timers[1] = at + self.p.rate_timer;
                }
                _ => {
                    self.timers[2] = at + self.p.decrease_interval;
                    if self.decrease_notified {
                        self.cut(at);
                    }
                }
            }
        }
    }

    pub(super) fn on_cnp(&mut self, now: Time) {
        self.run_until(now);
        match self.p.reaction {
            Reaction::Sampled if self.timers[2] == Time::MAX => {
                self.timers[0] = now + self.p.alpha_timer;
                self.timers[2] = now + self.p.decrease_interval;
                self.decrease_notified = true;
            }
            Reaction::Sampled => {
                self.alpha_notified = true;
                self.decrease_notified = true;
            }
            Reaction::Immediate => {
                let since = self.last_cut.map_or(Duration::MAX, |last| now - last);
                if since >= self.p.decrease_interval {
                    self.cut(now);
                    self.alpha = (1.0 - self.p.gain) * self.alpha + self.p.gain;
                    self.timers[0] = now + self.p.alpha_timer;
                }
            }
        }
    }

    pub(super) fn on_bytes(&mut self, now: Time, bytes: u32) {
        self.run_until(now);
        self.bytes += u64::from(bytes);
        while self.p.byte_counter.get() > 0 && self.bytes >= self.p.byte_counter.get() {
            self.bytes -= self.p.byte_counter.get();
            self.step_up();
            self.byte_stage += 1;
        }
    }

    fn cut(&mut self, now: Time) {
        if self.p.clamp_target || self.timer_stage + self.byte_stage > 0 {
            self.target = self.rate;
        }
        let cut = Rate::from_bps(self.rate).scale(1.0 - self.alpha / 2.0).as_bps();
        self.rate = cut.max(self.p.min_rate.as_bps().min(self.line));
        (self.timer_stage, self.byte_stage, self.bytes) = (0, 0, 0);
        self.decrease_notified = false;
        self.timers[1] = now + self.p.rate_timer;
        self.last_cut = Some(now);
    }

    fn step_up(&mut self) {
        let stages = if self.p.byte_counter.get() > 0 {
            [self.timer_stage, self.byte_stage]
        } else {
            [self.timer_stage; 2]
        };
        if stages.iter().all(|&stage| stage > self.p.fast_recovery_stages) {
            self.target += self.hyper;
        } else if stages.iter().any(|&stage| stage >= self.p.fast_recovery_stages) {
            self.target += self.additive;
        }
        self.target = self.target.min(self.line);
        self.rate = (self.rate + self.target).div_ceil(2);
    }
}
