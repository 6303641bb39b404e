//! Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020):
//! additive increase below a target delay, multiplicative decrease above it, at most once a round trip; a window below
//! one packet is paced.
//!
//! The delay is that of the fabric, NIC to NIC, which is all an RDMA NIC measures; the paper's second window, for the
//! receiving host, has no counterpart. The target is the idle round-trip time of the way that is measured plus
//! `queue_target`, or, with `hop_scaling`, the paper's base and per-hop terms (section 3.2); plus the flow scaling of
//! section 3.1: small windows, so many flows, get a higher target.

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::check;
use crate::fluid::{Control, Controls};
use crate::{
    Adapt, ConfigError, FabricEnv, Feedback, FeedbackKind, HostDelay, HostEnv, Leg, PolicyCx, PolicyEnv,
    SendWindow, Sent, Want,
};

/// Parameters of [`Swift`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwiftConfig {
    /// Queueing delay allowed to a large window. Under spraying it must cover the spread between paths, or every
    /// round trip holds a packet above the target. Absent: what 32 full packets take on a port of the host, which is
    /// the grain of queues whatever the rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub queue_target: Option<Duration>,
    /// Makes the target of a base and a term for each hop instead of idle round-trip time and `queue_target`. Absent:
    /// the latter. Not used where the number of hops is not known, on real hosts.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub hop_scaling: Option<HopScaling>,
    /// fs_range: the most that flow scaling adds to the target. Absent: four times the queueing delay allowed to a large
    /// window (htsim: five times the base target).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scaling_range: Option<Duration>,
    /// fs_min_cwnd: window, in packets, at and below which flow scaling adds all of its range (SIGCOMM 2020: 0.1).
    pub scaling_min_packets: f64,
    /// fs_max_cwnd: window, in packets, from which on it adds nothing (SIGCOMM 2020: 100).
    pub scaling_max_packets: f64,
    /// ai: packets added a round trip (SIGCOMM 2020: 1).
    pub increase: f64,
    /// Which round trip that is, where delays are measured over a part of the way only.
    pub increase_over: IncreaseOver,
    /// beta: decrease for each share of the delay above the target (SIGCOMM 2020: 0.8).
    pub decrease: f64,
    /// max_mdf: most of the window that goes at once (SIGCOMM 2020: 0.5).
    pub max_decrease: f64,
    /// Smallest window, in packets (SIGCOMM 2020: 0.001).
    pub min_packets: f64,
    /// The window never falls below what this rate needs over the idle path. Absent: a thousandth of the line. Over a WAN
    /// of a millisecond `min_packets` is a packet a second, from which no window recovers. 0bps: no such floor.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub min_rate: Option<Rate>,
    /// Largest window, in bandwidth-delay products; the flow starts with one.
    pub max_bdp: f64,
}

/// The round trip in which a window grows by `increase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum IncreaseOver {
    /// That to the peer. Over a WAN this is a packet a millisecond, so a window cut on what a near switch told stays
    /// small for seconds.
    #[default]
    Path,
    /// That of the way measured, by as much rate as a flow that ends there gains: a packet of its window. Grows as fast as
    /// it shrinks.
    Measured,
}

/// Topology-based scaling of the target (section 3.2): `base + hops * per_hop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopScaling {
    /// What every target has. Default 200 ns (Reflex, section II-C).
    pub base: Duration,
    /// What each hop adds. Default 1 us (Reflex, section II-C).
    pub per_hop: Duration,
    /// What counts as a hop. The papers do not say.
    pub hops: SwiftHops,
}

impl Default for HopScaling {
    fn default() -> Self {
        HopScaling { base: Duration::from_ns(200), per_hop: Duration::from_us(1), hops: SwiftHops::default() }
    }
}

/// What counts as a hop of the way there and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SwiftHops {
    /// Every node visited, the hosts at the ends included: with links of 1 us the only reading whose target lies above
    /// the idle round-trip time.
    #[default]
    NodesRt,
    /// Every link, there and back.
    LinksRt,
    /// Every link there.
    LinksFwd,
}

impl HopScaling {
    fn target(&self, way: Leg) -> Duration {
        let links = u64::from(way.links);
        let hops = match self.hops {
            SwiftHops::NodesRt => 2 * (links + 1),
            SwiftHops::LinksRt => 2 * links,
            SwiftHops::LinksFwd => links,
        };
        self.base + self.per_hop * hops
    }
}

impl Default for SwiftConfig {
    fn default() -> Self {
        SwiftConfig {
            queue_target: None,
            hop_scaling: None,
            scaling_range: None,
            scaling_min_packets: 0.1,
            scaling_max_packets: 100.0,
            increase: 1.0,
            increase_over: IncreaseOver::default(),
            decrease: 0.8,
            max_decrease: 0.5,
            min_packets: 0.001,
            min_rate: None,
            max_bdp: 2.0,
        }
    }
}

impl SwiftConfig {
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let second = Duration::from_ms(1_000);
        if let Some(target) = self.queue_target {
            let sane = target > Duration::ZERO && target < second;
            check(sane, "queue_target", target, "more than 0s, less than 1s")?;
        }
        if let Some(hops) = &self.hop_scaling {
            let sane = hops.base < second && hops.per_hop < second;
            check(sane, "hop_scaling.per_hop", hops.per_hop, "less than 1s, as base")?;
        }
        if let Some(range) = self.scaling_range {
            check(range < second, "scaling_range", range, "less than 1s")?;
        }
        let (low, high) = (self.scaling_min_packets, self.scaling_max_packets);
        check(low > 0.0 && low <= 1e6, "scaling_min_packets", low, "more than 0, at most 1000000")?;
        check(high > low && high <= 1e9, "scaling_max_packets", high, "more than scaling_min_packets")?;
        let grows = self.increase > 0.0 && self.increase <= 1e3;
        check(grows, "increase", self.increase, "more than 0, at most 1000")?;
        let share = |name, x: f64| check(x > 0.0 && x < 1.0, name, x, "more than 0, less than 1");
        share("decrease", self.decrease)?;
        share("max_decrease", self.max_decrease)?;
        let least = self.min_packets > 0.0 && self.min_packets <= 1.0;
        check(least, "min_packets", self.min_packets, "more than 0, at most 1")?;
        let most = self.max_bdp > 0.0 && self.max_bdp <= 1e3;
        check(most, "max_bdp", self.max_bdp, "more than 0, at most 1000")
    }
}

/// Queueing delay allowed by default, in full packets.
const TARGET_PACKETS: u64 = 32;
/// What flow scaling adds at most by default, in queueing delays allowed.
const SCALING_TARGETS: u64 = 4;
/// Share of the line below which no window falls by default, as its inverse.
const LEAST_SHARE: u64 = 1_000;
/// Longest queueing delay it can be told to aim at.
const LONGEST_TARGET: Duration = Duration::from_ms(999);

/// The queueing delay allowed by default, where a full packet takes so long.
fn few_packets(packet: Duration) -> Duration {
    (packet * TARGET_PACKETS).min(LONGEST_TARGET)
}

impl Controls for SwiftConfig {
    fn control(&self) -> Control {
        Control::BY_DELAY
    }
}

impl Adapt for SwiftConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.queue_target.get_or_insert(few_packets(fabric.port_rate.time_for(fabric.packet_bytes)));
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InThresholds
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        // How large packets are is not known here; a round trip of the network holds more than a few.
        let allowed = self.queue_target.unwrap_or(host.network_rtt);
        // Many flows may queue more in the network; hosts are late by as much whoever sends.
        self.scaling_range.get_or_insert((allowed * SCALING_TARGETS).min(LONGEST_TARGET));
        self.queue_target = Some((allowed + host.host_delay).min(LONGEST_TARGET));
        self.max_bdp *= host.held_bdps;
    }
}

impl SwiftConfig {
    /// Queueing delay allowed to a large window, where a full packet takes so long.
    fn queue_target(&self, packet: Duration) -> Duration {
        self.queue_target.unwrap_or(few_packets(packet))
    }
    /// The target without flow scaling.
    fn base_target(&self, way: Leg, packet: Duration) -> Duration {
        match &self.hop_scaling {
            Some(hops) if way.links > 0 => hops.target(way),
            _ => way.base_rtt + self.queue_target(packet),
        }
    }
}

/// RETX_RESET_THRESHOLD of the paper, which gives no value.
const RESET_TIMEOUTS: u32 = 5;

/// State of one queue pair. Times in picoseconds where they enter the law.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    /// Packets; may be less than one.
    cwnd: f64,
    /// The last round-trip time.
    rtt: f64,
    last_decrease: Time,
    next_send: Time,
    timeouts: u32,
    params: Params,
}

#[derive(Clone, Copy, Debug)]
struct Params {
    line: Rate,
    packet_time: f64,
    packet_bytes: f64,
    base_rtt: f64,
    /// Idle, of the way that is measured.
    measured_rtt: f64,
    base_target: f64,
    /// Flow scaling: range, and alpha and beta of section 3.1.
    range: f64,
    alpha: f64,
    beta: f64,
    increase: f64,
    decrease: f64,
    max_decrease: f64,
    min: f64,
    max: f64,
    /// By which the window is spaced after a reset; absent without a least rate: by the last one, as published.
    reset_rtt: Option<f64>,
}

impl Swift {
    /// The state of one queue pair, with a window of one bandwidth-delay product.
    pub fn new(config: &SwiftConfig, env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f64;
        let bdp = env.bdp_bytes() as f64 / f64::from(env.mtu_wire_bytes);
        let min_rate = config.min_rate.unwrap_or(Rate::from_bps(env.line_rate.as_bps() / LEAST_SHARE));
        let floor = min_rate.bytes_in(env.base_rtt) as f64 / f64::from(env.mtu_wire_bytes);
        let packet = env.line_rate.time_for(u64::from(env.mtu_wire_bytes));
        // A flow that ends where the measured way does gains `increase` a window of `bdp / ratio` in a round trip shorter
        // by the same ratio.
        let ratio = ps(env.base_rtt) / ps(env.measured.base_rtt).max(1.0);
        let gain = match config.increase_over {
            IncreaseOver::Path => 1.0,
            IncreaseOver::Measured => (ratio * ratio).max(1.0),
        };
        let root = |x: f64| 1.0 / libm::sqrt(x);
        let range = config.scaling_range.unwrap_or(config.queue_target(packet) * SCALING_TARGETS);
        let range = ps(range);
        let alpha = range / (root(config.scaling_min_packets) - root(config.scaling_max_packets));
        Swift {
            // To the next packet, and one for the sender's own queue.
            cwnd: bdp + 1.0,
            rtt: ps(env.measured.base_rtt),
            last_decrease: Time::ZERO,
            next_send: Time::ZERO,
            timeouts: 0,
            params: Params {
                line: env.line_rate,
                packet_time: ps(packet),
                packet_bytes: f64::from(env.mtu_wire_bytes),
                base_rtt: ps(env.base_rtt),
                measured_rtt: ps(env.measured.base_rtt),
                base_target: ps(config.base_target(env.measured, packet)),
                range,
                alpha,
                beta: -alpha * root(config.scaling_max_packets),
                increase: config.increase * gain,
                decrease: config.decrease,
                max_decrease: config.max_decrease,
                min: config.min_packets.max(floor).min(bdp + 1.0),
                max: (config.max_bdp * bdp).max(2.0),
                reset_rtt: (min_rate > Rate::ZERO).then_some(ps(env.measured.base_rtt)),
            },
        }
    }
    /// The window, in packets.
    pub fn window_packets(&self) -> f64 {
        self.cwnd
    }
    /// Whether a round trip of this length is over the target.
    pub(super) fn is_over(&self, rtt: Duration) -> bool {
        rtt.as_ps().max(1) as f64 >= self.target()
    }
    fn target(&self) -> f64 {
        let p = &self.params;
        p.base_target + (p.alpha / libm::sqrt(self.cwnd) + p.beta).clamp(0.0, p.range)
    }
    fn may_decrease(&self, now: Time) -> bool {
        (now.saturating_since(self.last_decrease).as_ps() as f64) >= self.rtt
    }
    fn shrink(&mut self, now: Time, factor: f64) {
        if self.may_decrease(now) {
            self.cwnd *= factor;
            self.last_decrease = now;
        }
    }
    /// Timeouts in a row, without an acknowledgement in between, are what resets the window. They show that the last round-trip time
    /// is of long ago, so the least window is spaced by the idle one, which makes it the least rate: spaced by that of one late packet, each
    /// try, of which the network may lose most, would take seconds.
    fn on_timeout(&mut self, now: Time) {
        if self.may_decrease(now) {
            self.timeouts += 1;
        }
        let reset = self.timeouts >= RESET_TIMEOUTS;
        self.shrink(now, if reset { self.params.min / self.cwnd } else { 1.0 - self.params.max_decrease });
        if let (true, Some(rtt)) = (reset, self.params.reset_rtt) {
            self.rtt = rtt;
        }
    }
    fn on_ack(&mut self, now: Time, rtt: Duration, is_used: bool) {
        self.timeouts = 0;
        self.rtt = (rtt.as_ps() as f64).max(1.0);
        let (target, p) = (self.target(), self.params);
        if self.rtt < target {
            // A window that is not used is not known to be right.
            if is_used {
                self.cwnd += if self.cwnd >= 1.0 { p.increase / self.cwnd } else { p.increase };
            }
        } else {
            let excess = p.decrease * (self.rtt - target) / self.rtt;
            self.shrink(now, (1.0 - excess).max(1.0 - p.max_decrease));
        }
    }
}

impl CongestionControl for Swift {
    crate::ignores!(on_open, on_close, on_timer);
    #[inline]
    fn permit(&mut self, now: Time, want: &Want, _cx: &mut PolicyCx<'_>) -> Permit {
        if f64::from(want.inflight_packets) + 1.0 <= self.cwnd {
            return Permit::Now;
        }
        // Less than a packet: one at a time, spaced.
        if want.inflight_packets > 0 {
            return Permit::Blocked;
        }
        if now >= self.next_send { Permit::Now } else { Permit::At(self.next_send) }
    }
    #[inline]
    fn on_sent(&mut self, now: Time, _sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        if self.cwnd < 1.0 {
            self.next_send = now.saturating_add(Duration::from_ps((self.rtt / self.cwnd) as u64));
        }
        0
    }
    #[inline]
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        match feedback.kind {
            // Every packet uses a window below one packet whole. A sender that waits for an answer has nothing else to send then: without
            // this growth it would stay at the pace of the smallest window for ever.
            FeedbackKind::Ack { timed: true, .. } => {
                self.on_ack(now, feedback.rtt, feedback.backlogged || self.cwnd < 1.0);
            }
            FeedbackKind::Midway => self.on_ack(now, feedback.rtt, feedback.backlogged),
            FeedbackKind::Lost | FeedbackKind::Trimmed { .. } => {
                self.shrink(now, 1.0 - self.params.max_decrease);
            }
            FeedbackKind::Timeout => self.on_timeout(now),
            _ => return,
        }
        self.cwnd = self.cwnd.clamp(self.params.min, self.params.max);
        if self.cwnd >= 1.0 {
            self.next_send = now;
        }
    }
    fn rate(&self, _now: Time) -> Option<Rate> {
        // A window a base round-trip time: what it allows while there is no queue.
        let share = self.cwnd * self.params.packet_time / self.params.base_rtt;
        Some(self.params.line.scale(share.clamp(1e-6, 1.0)))
    }
    fn window(&self) -> Option<SendWindow> {
        let p = &self.params;
        let bytes = |packets: f64| (packets * p.packet_bytes) as u64;
        Some(SendWindow {
            bytes: bytes(self.cwnd),
            most_bytes: bytes(p.max),
            base_rtt: Duration::from_ps(p.base_rtt as u64),
            delay_target: Duration::from_ps((self.target() - p.measured_rtt).max(0.0) as u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Host;
    use crate::{Egress, Memo};
    use pathweave_units::PathId;

    /// 100 packets of 100 ns are a BDP of 10 us.
    fn swift() -> Swift {
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: Duration::from_us(10),
            mtu_wire_bytes: 1_250,
            mtu_payload_bytes: 1_172,
            paths: 4,
            measured: Leg { base_rtt: Duration::from_us(10), links: 2 },
            edge: None,
        };
        let (queue_target, scaling_range) = (Some(Duration::from_us(9)), Some(Duration::from_us(36)));
        Swift::new(&SwiftConfig { queue_target, scaling_range, ..SwiftConfig::default() }, &env)
    }

    /// A queue pair of Reflex's setting: 200 ns and 1 us a node, over so many links; a BDP of `bdp_us` at 100 Gb/s.
    fn over_links(links: u8, bdp_us: u64) -> Swift {
        let config = SwiftConfig {
            hop_scaling: Some(HopScaling::default()),
            scaling_range: Some(Duration::from_us(1)),
            ..SwiftConfig::default()
        };
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: Duration::from_us(bdp_us),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths: 1,
            measured: Leg { base_rtt: Duration::from_us(2 * u64::from(links)), links },
            edge: None,
        };
        Swift::new(&config, &env)
    }

    #[test]
    fn the_target_counts_the_nodes_of_the_way_that_is_measured() {
        // Inside a data centre 10 nodes there and back, to its edge 8, to another one 16.
        for (links, target_us) in [(4, 10.2), (3, 8.2), (7, 16.2)] {
            assert!((over_links(links, 1_012).target() / 1e6 - target_us).abs() < 1e-9);
        }
        let way = Leg { base_rtt: Duration::from_us(8), links: 4 };
        let target = |hops| HopScaling { hops, ..HopScaling::default() }.target(way);
        assert_eq!(target(SwiftHops::LinksRt), Duration::from_ns(8_200));
        assert_eq!(target(SwiftHops::LinksFwd), Duration::from_ns(4_200));
    }

    #[test]
    fn a_wan_delay_halves_the_window_and_only_once_a_round_trip() {
        let mut swift = over_links(7, 1_012);
        let full = swift.window_packets();
        // 1 - 0.8 x 0.984 = 0.213, limited to 0.5.
        ack(&mut swift, Time::from_us(2_000), 1_012);
        assert_eq!(swift.window_packets(), full / 2.0);
        ack(&mut swift, Time::from_us(3_011), 1_012);
        assert_eq!(swift.window_packets(), full / 2.0);
        ack(&mut swift, Time::from_us(3_012), 1_012);
        assert_eq!(swift.window_packets(), full / 4.0);
    }

    #[test]
    fn the_floor_is_what_the_least_rate_needs_over_the_path() {
        let config = SwiftConfig { min_rate: Some(Rate::from_gbps(1)), ..SwiftConfig::default() };
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: Duration::from_us(1_000),
            mtu_wire_bytes: 1_250,
            mtu_payload_bytes: 1_172,
            paths: 1,
            measured: Leg { base_rtt: Duration::from_us(8), links: 4 },
            edge: None,
        };
        let mut swift = Swift::new(&config, &env);
        (1..100).for_each(|n| ack(&mut swift, Time::from_us(n * 10_000), 1_000));
        // 1 Gb/s for 1 ms are 125 KB.
        assert_eq!(swift.window_packets(), 100.0);
    }

    #[test]
    fn by_default_the_target_is_a_few_packets_and_the_floor_a_share_of_the_line() {
        let env = |gbps, mtu_wire_bytes, base_us| PolicyEnv {
            line_rate: Rate::from_gbps(gbps),
            base_rtt: Duration::from_us(base_us),
            mtu_wire_bytes,
            mtu_payload_bytes: mtu_wire_bytes - 78,
            paths: 4,
            measured: Leg { base_rtt: Duration::from_us(base_us), links: 6 },
            edge: None,
        };
        let config = SwiftConfig::default();
        // 1,250 B take 100 ns at 100 Gb/s, 5,000 B take 1,600 ns at 25 Gb/s.
        let params = |env| Swift::new(&config, &env).params;
        for (env, target_us, range_us) in [
            (env(100, 1_250, 10), 13.2, 12.8),
            (env(25, 5_000, 10), 61.2, 204.8),
            (env(400, 5_000, 2), 5.2, 12.8),
        ] {
            let params = params(env);
            assert!((params.base_target / 1e6 - target_us).abs() < 1e-6, "{}", params.base_target);
            assert!((params.range / 1e6 - range_us).abs() < 1e-6, "{}", params.range);
        }
        // A thousandth of 100 Gb/s is 125 B in 10 us, and 12,500 B in a millisecond.
        assert!((params(env(100, 1_250, 10)).min - 0.1).abs() < 1e-9);
        assert!((params(env(100, 1_250, 1_000)).min - 10.0).abs() < 1e-9);
    }

    #[test]
    fn the_delay_of_hosts_is_in_the_target_and_not_in_what_many_flows_add() {
        let us = Duration::from_us;
        let host = HostEnv {
            line_rate: Rate::from_gbps(100),
            network_rtt: us(50),
            host_delay: us(1_000),
            base_rtt: us(50),
            held_bdps: 1.0,
            batch_packets: 44,
        };
        let mut config = SwiftConfig::default();
        config.adapt_to_host(&host);
        assert_eq!((config.queue_target, config.scaling_range), (Some(us(1_050)), Some(us(200))));
    }

    #[test]
    fn increases_over_the_measured_way_are_those_of_a_flow_that_ends_there() {
        let env = |base_us| PolicyEnv {
            line_rate: Rate::from_gbps(100),
            base_rtt: Duration::from_us(base_us),
            mtu_wire_bytes: 1_250,
            mtu_payload_bytes: 1_172,
            paths: 1,
            measured: Leg { base_rtt: Duration::from_us(10), links: 4 },
            edge: None,
        };
        let config =
            SwiftConfig { increase_over: IncreaseOver::Measured, max_bdp: 9.0, ..SwiftConfig::default() };
        // 10 and 1,000 us: a hundred times the window, 10,000 times the increase for each packet acknowledged.
        let gained = |base_us| {
            let mut swift = Swift::new(&config, &env(base_us));
            swift.cwnd = 10.0 * base_us as f64;
            let before = swift.cwnd;
            ack(&mut swift, Time::from_us(5_000), 10);
            (swift.cwnd - before) * before
        };
        assert!((gained(10) - 1.0).abs() < 1e-6 && (gained(1_000) - 10_000.0).abs() < 1e-6);
    }

    #[test]
    fn near_the_edge_eight_microseconds_are_the_limit() {
        let mut swift = over_links(3, 1_012);
        let full = swift.window_packets();
        let echo = |swift: &mut Swift, at_us, rtt_ns| {
            let feedback = Feedback { rtt: Duration::from_ns(rtt_ns), ..feedback(FeedbackKind::Midway) };
            swift.on_feedback(Time::from_us(at_us), &feedback, &mut Host::new(1).cx());
        };
        echo(&mut swift, 100, 8_100);
        assert!((swift.window_packets() - (full + 1.0 / full)).abs() < 1e-9);
        let before = swift.window_packets();
        // 1 - 0.8 x 0.1 / 8.3
        echo(&mut swift, 200, 8_300);
        assert!((swift.window_packets() / before - 0.990_361).abs() < 1e-6);
        let after = swift.window_packets();
        echo(&mut swift, 208, 8_300);
        assert_eq!(swift.window_packets(), after, "once a round trip to the edge, not to the peer");
        echo(&mut swift, 209, 8_300);
        assert!(swift.window_packets() < after);
    }
    fn ack(swift: &mut Swift, now: Time, rtt_us: u64) {
        let kind = FeedbackKind::Ack { timed: true, marked: false };
        swift.on_feedback(
            now,
            &Feedback { rtt: Duration::from_us(rtt_us), ..feedback(kind) },
            &mut Host::new(1).cx(),
        );
    }
    fn feedback(kind: FeedbackKind) -> Feedback {
        Feedback {
            kind,
            path: PathId(0),
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 1_250,
            rtt: Duration::ZERO,
            one_way_ps: 0,
            inflight_packets: 1,
            backlogged: true,
        }
    }
    fn want(inflight_packets: u32) -> Want {
        Want {
            psn: 0,
            payload_bytes: 1_172,
            wire_bytes: 1_250,
            msn: 0,
            retransmit: false,
            inflight_packets,
            inflight_bytes: u64::from(inflight_packets) * 1_250,
            egress: Egress::ONE,
        }
    }

    #[test]
    fn below_the_target_a_packet_a_round_trip_is_added() {
        let mut swift = swift();
        ack(&mut swift, Time::from_us(10), 10);
        assert!((swift.window_packets() - (101.0 + 1.0 / 101.0)).abs() < 1e-9);
    }

    #[test]
    fn above_it_the_window_shrinks_in_proportion_and_once_a_round_trip() {
        let mut swift = swift();
        // Target 19 us at a window of 101: 0.8 x 6 / 25 of it goes.
        ack(&mut swift, Time::from_us(100), 25);
        assert!((swift.window_packets() - 101.0 * (1.0 - 0.8 * 6.0 / 25.0)).abs() < 1e-9);
        let before = swift.window_packets();
        ack(&mut swift, Time::from_us(120), 25);
        assert_eq!(swift.window_packets(), before);
        ack(&mut swift, Time::from_us(1_000), 900);
        assert!((swift.window_packets() - before / 2.0).abs() < 1e-9);
    }

    #[test]
    fn small_windows_have_a_higher_target() {
        let mut swift = swift();
        let at = |swift: &mut Swift, cwnd| {
            swift.cwnd = cwnd;
            swift.target() / 1e6
        };
        assert!((at(&mut swift, 100.0) - 19.0).abs() < 1e-9);
        assert!((at(&mut swift, 0.1) - 55.0).abs() < 1e-9);
        let middle = at(&mut swift, 1.0);
        assert!(middle > 19.0 && middle < 55.0);
        assert_eq!(at(&mut swift, 1e-3), at(&mut swift, 0.1));
    }

    #[test]
    fn a_window_below_a_packet_is_paced() {
        let mut swift = swift();
        swift.cwnd = 0.25;
        (swift.rtt, swift.next_send) = (20e6, Time::ZERO);
        let now = Time::from_us(50);
        assert_eq!(swift.permit(now, &want(1), &mut Host::new(1).cx()), Permit::Blocked);
        assert_eq!(swift.permit(now, &want(0), &mut Host::new(1).cx()), Permit::Now);
        let sent = Sent {
            path: PathId(0),
            psn: 0,
            msn: 0,
            payload_bytes: 1_172,
            wire_bytes: 1_250,
            retransmit: false,
            inflight_packets: 1,
        };
        swift.on_sent(now, &sent, &mut Host::new(1).cx());
        assert_eq!(swift.permit(now, &want(0), &mut Host::new(1).cx()), Permit::At(Time::from_us(130))); // 20 us / 0.25
    }

    /// One packet was late, then all are lost: 0.1 packets (the floor) a round trip of 10 us, not of that packet's 6 ms.
    #[test]
    fn after_a_reset_the_least_window_is_spaced_by_the_idle_round_trip() {
        let mut swift = swift();
        ack(&mut swift, Time::from_us(6_000), 6_000);
        for timeout in 1..=RESET_TIMEOUTS {
            let now = Time::from_us(20_000 * u64::from(timeout));
            swift.on_feedback(now, &feedback(FeedbackKind::Timeout), &mut Host::new(1).cx());
        }
        assert!((swift.window_packets() - 0.1).abs() < 1e-9, "{}", swift.window_packets());
        let sent = Sent {
            path: PathId(0),
            psn: 0,
            msn: 0,
            payload_bytes: 1_172,
            wire_bytes: 1_250,
            retransmit: true,
            inflight_packets: 1,
        };
        let now = Time::from_us(200_000);
        swift.on_sent(now, &sent, &mut Host::new(1).cx());
        assert_eq!(swift.permit(now, &want(0), &mut Host::new(1).cx()), Permit::At(Time::from_us(200_100)));
        // Of what comes after it the round trip counts again.
        ack(&mut swift, Time::from_us(200_500), 500);
        assert_eq!(swift.rtt, 500e6);
    }

    /// A ping-pong: nothing waits when an answer comes. From 0.25 packets a quarter more makes none; a whole packet more does.
    #[test]
    fn a_window_below_a_packet_grows_though_nothing_waits() {
        let mut swift = swift();
        let idle = |kind| Feedback { rtt: Duration::from_us(10), backlogged: false, ..feedback(kind) };
        let answer = idle(FeedbackKind::Ack { timed: true, marked: false });
        let mut tell = |told: &Feedback| {
            swift.on_feedback(Time::from_us(500), told, &mut Host::new(1).cx());
            swift.window_packets()
        };
        let full = tell(&idle(FeedbackKind::Midway));
        assert_eq!(tell(&answer), full);
        let mut swift = self::swift();
        (swift.cwnd, swift.next_send) = (0.25, Time::from_us(900));
        let mut tell = |told: &Feedback| {
            swift.on_feedback(Time::from_us(500), told, &mut Host::new(1).cx());
            (swift.window_packets(), swift.next_send)
        };
        assert_eq!(tell(&idle(FeedbackKind::Midway)), (0.25, Time::from_us(900)), "it acknowledges nothing");
        assert_eq!(tell(&answer), (1.25, Time::from_us(500)));
        assert_eq!(tell(&answer), (1.25, Time::from_us(500)), "more than a packet, and not used");
    }
}
