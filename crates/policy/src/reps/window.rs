//! Congestion window driven by delay and ECN together, in the spirit of the network-signal congestion control (NSCC)
//! of the Ultra Ethernet specification 1.0 and of SMaRTT (Bonato et al., arXiv 2404.01630).
//!
//! An acknowledgement is one of four cases, by its mark and by its queueing delay relative to the target:
//!
//! | | delay below | delay above |
//! |---|---|---|
//! | not marked | grow in proportion to the rest of the target | grow by a fair, small step: the queue drains |
//! | marked | no change | shrink in proportion to the excess, once a round trip |
//!
//! A mark below the target means that only this path is congested; the next packet takes another one.
//!
//! *Quick adapt* checks once per round trip plus target. If a packet was lost or the delay is far above the target,
//! while few packets were acknowledged, the window falls to the packets acknowledged.

use pathweave_units::{Duration, Rate, Time};

use super::RepsConfig;
use crate::PolicyEnv;

/// Congestion window. Times are in picoseconds, sizes in packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) packets: f64,
    /// Average queueing delay.
    delay: f64,
    last_decrease: Time,
    /// Quick adapt: packets acknowledged since the last check, and time of the next check.
    achieved: f64,
    adapt_at: Time,
    lost: bool,
    params: Params,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    base_rtt: f64,
    target: f64,
    proportional: f64,
    fair: f64,
    decrease: f64,
    max_decrease: f64,
    delay_gain: f64,
    max: f64,
    line: Rate,
    packet_time: f64,
}

/// Quick adapt: multiple of the target delay from which it acts.
const ADAPT_DELAY: f64 = 4.0;
/// Quick adapt: fraction of the largest window below which few packets were acknowledged.
const ADAPT_SHARE: f64 = 0.125;

impl Window {
    pub(super) fn new(config: &RepsConfig, env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f64;
        let bdp = env.bdp_bytes() as f64 / f64::from(env.mtu_wire_bytes);
        let max = (config.max_bdp * bdp).max(2.0);
        Window {
            packets: max,
            delay: 0.0,
            last_decrease: Time::ZERO,
            achieved: 0.0,
            adapt_at: Time::ZERO,
            lost: false,
            params: Params {
                base_rtt: ps(env.base_rtt),
                target: config.delay_target * ps(env.base_rtt),
                proportional: config.proportional_increase,
                fair: config.fair_increase,
                decrease: config.decrease,
                max_decrease: config.max_decrease,
                delay_gain: config.delay_gain,
                max,
                line: env.line_rate,
                packet_time: ps(env.line_rate.time_for(u64::from(env.mtu_wire_bytes))),
            },
        }
    }

    #[inline]
    pub(super) fn on_ack(&mut self, now: Time, rtt: Option<Duration>, marked: bool, backlogged: bool) {
        let p = self.params;
        self.achieved += 1.0;
        let queueing = rtt.map(|rtt| (rtt.as_ps() as f64 - p.base_rtt).max(0.0));
        if let Some(queueing) = queueing {
            self.delay += p.delay_gain * (queueing - self.delay);
        }
        let queueing = queueing.unwrap_or(self.delay);
        if now >= self.adapt_at && self.quick_adapt(now, queueing) {
            return;
        }
        match (marked, queueing < p.target) {
            // A window that is not used up may be too large already, so it does not grow.
            (false, _) if !backlogged => {}
            (false, true) => {
                self.packets += p.proportional * (p.target - queueing) / p.target / self.packets;
            }
            (false, false) => self.packets += p.fair / self.packets,
            (true, true) => {}
            (true, false) => self.shrink(now),
        }
        self.bound();
    }
    fn shrink(&mut self, now: Time) {
        let p = &self.params;
        let since = now.saturating_since(self.last_decrease).as_ps() as f64;
        if self.delay > p.target && since >= p.base_rtt {
            let excess = p.decrease * (self.delay - p.target) / self.delay;
            self.packets *= 1.0 - excess.min(p.max_decrease);
            self.last_decrease = now;
        }
    }
    /// Checks quick adapt. Returns true if it acted.
    fn quick_adapt(&mut self, now: Time, queueing: f64) -> bool {
        let p = &self.params;
        let first = self.adapt_at == Time::ZERO;
        let severe = self.lost || queueing > ADAPT_DELAY * p.target;
        let acts = !first && severe && self.achieved < ADAPT_SHARE * p.max;
        if acts {
            self.packets = self.packets.min(self.achieved);
            self.last_decrease = now;
        }
        self.adapt_at = now.saturating_add(Duration::from_ps((p.base_rtt + p.target) as u64));
        (self.achieved, self.lost) = (0.0, false);
        self.bound();
        acts
    }
    pub(super) fn on_loss(&mut self) {
        self.lost = true;
        self.packets -= 1.0;
        self.bound();
    }
    fn bound(&mut self) {
        self.packets = self.packets.clamp(1.0, self.params.max);
    }
    #[inline]
    pub(super) fn fits(&self, inflight_packets: u32) -> bool {
        f64::from(inflight_packets) + 1.0 <= self.packets
    }
    /// Returns the rate of one window per base round-trip time: the rate while there is no queue.
    pub(super) fn rate(&self) -> Rate {
        let share = self.packets * self.params.packet_time / self.params.base_rtt;
        self.params.line.scale(share.clamp(1e-6, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scenario;

    /// Returns a window with 10 us at 100 Gb/s: a BDP of 100 packets; the first window is 150. Averages follow at
    /// once.
    fn window() -> Window {
        let env = PolicyEnv { base_rtt: Duration::from_us(10), ..Scenario::steady().env };
        let config = RepsConfig { delay_gain: 1.0, delay_target: 0.5, ..RepsConfig::default() };
        let mut window = Window::new(&config, &env);
        window.packets = 100.0;
        window
    }
    fn after(mut window: Window, us: u64, rtt_us: u64, marked: bool) -> f64 {
        window.on_ack(Time::from_us(us), Some(Duration::from_us(rtt_us)), marked, true);
        window.packets
    }

    #[test]
    fn the_four_cases() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let p = window().params;
        // The target is 5 us of queueing.
        assert!(close(after(window(), 100, 10, false), 100.0 + p.proportional / 100.0));
        assert!(close(after(window(), 100, 12, false), 100.0 + p.proportional * 0.6 / 100.0));
        assert!(close(after(window(), 100, 20, false), 100.0 + p.fair / 100.0));
        assert!(close(after(window(), 100, 12, true), 100.0));
        assert!(close(after(window(), 100, 20, true), 100.0 * (1.0 - p.decrease / 2.0)));
    }

    #[test]
    fn it_shrinks_once_a_round_trip() {
        let mut window = window();
        window.on_ack(Time::from_us(100), Some(Duration::from_us(20)), true, true);
        let once = window.packets;
        assert_eq!(after(window, 105, 20, true), once);
        assert!(after(window, 110, 20, true) < once);
    }

    #[test]
    fn when_little_comes_through_the_window_falls_to_it() {
        let mut window = window();
        window.on_ack(Time::from_us(100), Some(Duration::from_us(40)), true, true);
        for us in [102, 104, 120] {
            window.on_ack(Time::from_us(us), Some(Duration::from_us(40)), true, true);
        }
        assert_eq!(window.packets, 3.0);
    }
}
