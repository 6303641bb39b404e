//! Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020):
//! additive increase below a target delay, multiplicative decrease above it, at most once a round trip; a window below
//! one packet is paced.
//!
//! The delay is that of the fabric, NIC to NIC, which is all that an RDMA NIC measures. The paper's second window,
//! for the receiving host, has no counterpart. The target is the idle round-trip time of the measured section plus
//! `queue_target`. With `hop_scaling` it is the paper's base and per-hop terms instead (section 3.2). The flow
//! scaling of section 3.1 is added: small windows, a sign of many flows, get a higher target.

use pathweave_units::{Duration, Rate, Time};

use super::{CongestionControl, Permit};
use crate::error::{above, between, check, within};
use crate::fluid::{ControlModel, HasControlModel};
use crate::{
    Adapt, BasePath, ConfigError, FabricEnv, Feedback, FeedbackKind, HostDelay, HostEnv, MeasuredSection,
    PolicyCx, PolicyEnv, SendRequest, SendWindow, Sent,
};

/// Parameters of [`Swift`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct SwiftConfig {
    /// Queueing delay allowed to a large window. With spraying it must cover the spread between paths, or every round
    /// trip contains a packet above the target. Absent: the time of 32 full packets on a port of the host, the scale
    /// of random queues at any rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub queue_target: Option<Duration>,
    /// Computes the target from a base and a term for each hop, instead of the idle round-trip time and
    /// `queue_target`. Absent: not used. Also not used if the number of hops is unknown, as on real hosts.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub hop_scaling: Option<HopScaling>,
    /// fs_range: largest addition of flow scaling to the target. Absent: four times the queueing delay allowed to a
    /// large window (htsim: five times the base target).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub scaling_range: Option<Duration>,
    /// fs_min_cwnd: window, in packets, at and below which flow scaling adds its full range. Default 0.1 (SIGCOMM
    /// 2020).
    pub scaling_min_packets: f64,
    /// fs_max_cwnd: window, in packets, from which flow scaling adds nothing. Default 100 (SIGCOMM 2020).
    pub scaling_max_packets: f64,
    /// ai: packets added per round trip. Default 1 (SIGCOMM 2020).
    pub increase: f64,
    /// Round trip in which the window grows by `increase`, if delays are measured over a part of the path only.
    /// Default "path".
    pub increase_over: IncreaseOver,
    /// beta: decrease per relative excess of the delay over the target. Default 0.8 (SIGCOMM 2020).
    pub decrease: f64,
    /// max_mdf: largest decrease at once, as a fraction of the window. Default 0.5 (SIGCOMM 2020).
    pub max_decrease: f64,
    /// Smallest window, in packets. Default 0.001 (SIGCOMM 2020).
    pub min_packets: f64,
    /// Rate that the smallest window supports over the idle path. Absent: a thousandth of the line rate. Over a WAN
    /// of a millisecond `min_packets` is a packet per second, from which no window recovers. 0bps: no such bound.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub min_rate: Option<Rate>,
    /// Largest window, in bandwidth-delay products. Default 2: with one, the line idles where acknowledgements wait behind
    /// packets. The flow starts with one bandwidth-delay product.
    pub max_bdp: f64,
}

/// Round trip in which a window grows by `increase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum IncreaseOver {
    /// The round trip to the peer. Over a WAN this is a packet per millisecond, so a window that was cut on feedback
    /// of a near switch stays small for seconds.
    #[default]
    Path,
    /// The round trip that is measured. The rate grows as much as that of a flow that ends there, one packet of its
    /// window per round trip. The window then grows as fast as it shrinks.
    Measured,
}

/// Topology-based scaling of the target (section 3.2): `base + hops * per_hop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct HopScaling {
    /// Constant part of the target. Default 200 ns (Reflex, section II-C).
    pub base: Duration,
    /// Addition for each hop. Default 1 us (Reflex, section II-C). The papers leave open what a hop is; here it is
    /// every node that the round trip visits, including the hosts at the ends. With links of 1 us the target lies
    /// above the idle round-trip time with no smaller number.
    pub per_hop: Duration,
}

impl Default for HopScaling {
    fn default() -> Self {
        HopScaling { base: Duration::from_ns(200), per_hop: Duration::from_us(1) }
    }
}

impl HopScaling {
    fn target(&self, way: MeasuredSection) -> Duration {
        let hops = 2 * (u64::from(way.links) + 1);
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
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let second = Duration::from_ms(1_000);
        if let Some(target) = self.queue_target {
            within("queue_target", target, between(Duration::ZERO, second), "")?;
        }
        if let Some(hops) = &self.hop_scaling {
            let sane = hops.base < second && hops.per_hop < second;
            check(sane, "hop_scaling.per_hop", hops.per_hop, "less than 1s, as base")?;
        }
        if let Some(range) = self.scaling_range {
            within("scaling_range", range, ..second, "")?;
        }
        let (low, high) = (self.scaling_min_packets, self.scaling_max_packets);
        within("scaling_min_packets", low, above(0.0, 1e6), "")?;
        check(high > low && high <= 1e9, "scaling_max_packets", high, "more than scaling_min_packets")?;
        within("increase", self.increase, above(0.0, 1e3), "")?;
        within("decrease", self.decrease, between(0.0, 1.0), "")?;
        within("max_decrease", self.max_decrease, between(0.0, 1.0), "")?;
        within("min_packets", self.min_packets, above(0.0, 1.0), "")?;
        within("max_bdp", self.max_bdp, above(0.0, 1e3), "")
    }
}

/// Default queueing delay allowed, in full packets.
const TARGET_PACKETS: u64 = 32;
/// Default range of flow scaling, in queueing delays allowed.
const SCALING_TARGETS: u64 = 4;
/// Default lower bound of the window's rate, as a divisor of the line rate.
const LEAST_SHARE: u64 = 1_000;
/// Longest queueing delay that can be configured as the target.
const LONGEST_TARGET: Duration = Duration::from_ms(999);

/// Returns the default queueing delay allowed, for a full packet that takes `packet`.
fn few_packets(packet: Duration) -> Duration {
    (packet * TARGET_PACKETS).min(LONGEST_TARGET)
}

impl HasControlModel for SwiftConfig {
    fn control(&self) -> ControlModel {
        ControlModel::BY_DELAY
    }
}

impl Adapt for SwiftConfig {
    fn adapt_to_fabric(&mut self, fabric: &FabricEnv<'_>) {
        self.queue_target.get_or_insert(few_packets(fabric.port_rate.time_for(fabric.packet_bytes)));
    }
    /// A target by hops does not depend on the round trip.
    fn base_path(&self) -> BasePath {
        if self.hop_scaling.is_some() { BasePath::Nearest } else { BasePath::Longest }
    }
    fn host_delay(&self) -> HostDelay {
        HostDelay::InThresholds
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        // The packet size is unknown here; a network round trip holds more than a few packets.
        let allowed = self.queue_target.unwrap_or(host.network_rtt);
        // More flows may queue more in the network, but the delay of hosts does not depend on the number of flows.
        self.scaling_range.get_or_insert((allowed * SCALING_TARGETS).min(LONGEST_TARGET));
        self.queue_target = Some((allowed + host.host_delay).min(LONGEST_TARGET));
        self.max_bdp *= host.max_inflight_bdps;
    }
}

impl SwiftConfig {
    /// Returns the queueing delay allowed to a large window, for a full packet that takes `packet`.
    fn queue_target(&self, packet: Duration) -> Duration {
        self.queue_target.unwrap_or(few_packets(packet))
    }
    /// Returns the target without flow scaling.
    fn base_target(&self, way: MeasuredSection, packet: Duration) -> Duration {
        match &self.hop_scaling {
            Some(hops) if way.links > 0 => hops.target(way),
            _ => way.base_rtt + self.queue_target(packet),
        }
    }
}

/// RETX_RESET_THRESHOLD of the paper, which gives no value.
const RESET_TIMEOUTS: u32 = 5;

/// State of one queue pair. Times in computations are in picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    /// Congestion window in packets; may be less than one.
    cwnd: f64,
    /// Last round-trip time.
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
    /// Idle round-trip time of the section that is measured.
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
    /// Round-trip time by which packets are spaced after a reset. `None` without a minimum rate: the last one, as
    /// published.
    reset_rtt: Option<f64>,
}

impl Swift {
    /// Creates the state of one queue pair, with a window of one bandwidth-delay product.
    pub fn new(config: &SwiftConfig, env: &PolicyEnv) -> Self {
        let ps = |span: Duration| span.as_ps() as f64;
        let bdp = env.bdp_bytes() as f64 / f64::from(env.mtu_wire_bytes);
        let min_rate = config.min_rate.unwrap_or(Rate::from_bps(env.line_rate.as_bps() / LEAST_SHARE));
        let floor = min_rate.bytes_in(env.base_rtt) as f64 / f64::from(env.mtu_wire_bytes);
        let packet = env.line_rate.time_for(u64::from(env.mtu_wire_bytes));
        let max = (config.max_bdp * bdp).max(2.0);
        // A flow over the measured section only gains `increase` per round trip, with a window and a round-trip time
        // that are smaller by `ratio`.
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
            // Rounded up to the next packet, plus one for the sender's own queue.
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
                min: config.min_packets.max(floor).min(bdp + 1.0).min(max),
                max,
                reset_rtt: (min_rate > Rate::ZERO).then_some(ps(env.measured.base_rtt)),
            },
        }
    }
    /// Returns the window, in packets.
    pub fn window_packets(&self) -> f64 {
        self.cwnd
    }
    /// Returns true if this round-trip time is above the target.
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
    /// Counts timeouts in a row, without an acknowledgement in between; several of them reset the window. They show
    /// that the last round-trip time is outdated, so the smallest window is spaced by the idle one, which gives the
    /// minimum rate. Spaced by the round-trip time of a late packet, each attempt would take seconds, and the network
    /// may lose most attempts.
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
            // A window that is not used up may be too large already, so it does not grow.
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
    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if f64::from(want.inflight_packets) + 1.0 <= self.cwnd {
            return Permit::Now;
        }
        // Less than a packet: one packet at a time, spaced.
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
            // Each packet uses up a window below one packet. A sender that waits for a reply has nothing else to send
            // at that time; without growth here it would stay at the pace of the smallest window for ever.
            FeedbackKind::Ack { timed: true, .. } => {
                self.on_ack(now, feedback.rtt, feedback.backlogged || self.cwnd < 1.0);
            }
            FeedbackKind::EdgeRtt => self.on_ack(now, feedback.rtt, feedback.backlogged),
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
        // One window per base round-trip time: the rate while there is no queue.
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
    use crate::testing::{ACK, ENV, Host, REQUEST, SENT};

    /// Returns a queue pair with packets of 100 ns, 100 of which are a BDP of 10 us.
    fn swift() -> Swift {
        let env =
            PolicyEnv { measured: MeasuredSection { base_rtt: Duration::from_us(10), links: 2 }, ..ENV };
        let (queue_target, scaling_range) = (Some(Duration::from_us(9)), Some(Duration::from_us(36)));
        Swift::new(&SwiftConfig { queue_target, scaling_range, ..SwiftConfig::default() }, &env)
    }

    /// Over one link of 10 Gb/s and no delay a packet and its acknowledgement are a round trip. An acknowledgement may wait
    /// for a packet the other way, and then two packets keep the line busy.
    #[test]
    fn the_largest_windows_of_the_schemes_leave_room_for_acknowledgements_that_wait() {
        for name in ["swift", "swift-rps", "reflex-swift"] {
            let scheme = (crate::find_scheme(name).expect("a scheme").make)();
            let env = PolicyEnv { base_rtt: Duration::from_ns(100), ..ENV };
            let policy = scheme.policy.build(&env, &mut Host::new(1).rng);
            let most = crate::Policy::window(&policy).expect("a window").most_bytes;
            assert!(most >= 2 * env.bdp_bytes(), "{name}: {most}");
        }
    }

    /// A least rate above the line, or above the largest window, is no reason to stop.
    #[test]
    fn a_least_rate_is_at_most_that_of_the_largest_window() {
        for (min_rate, max_bdp) in [(110, 1.0), (50, 0.4), (1, 1.0)] {
            let min_rate = Some(Rate::from_gbps(min_rate));
            let mut swift = Swift::new(&SwiftConfig { min_rate, max_bdp, ..SwiftConfig::default() }, &ENV);
            swift.on_feedback(
                Time::ZERO,
                &Feedback { kind: FeedbackKind::Lost, ..ACK },
                &mut Host::new(1).cx(),
            );
            assert!(
                swift.window_packets() <= (100.0 * max_bdp).max(2.0),
                "{min_rate:?}: {}",
                swift.window_packets()
            );
        }
    }

    /// Returns a queue pair in Reflex's setting: 200 ns and 1 us per node, over `links` links; a BDP of `bdp_us` at
    /// 100 Gb/s.
    fn over_links(links: u8, bdp_us: u64) -> Swift {
        let config = SwiftConfig {
            hop_scaling: Some(HopScaling::default()),
            scaling_range: Some(Duration::from_us(1)),
            ..SwiftConfig::default()
        };
        let env = PolicyEnv {
            base_rtt: Duration::from_us(bdp_us),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths: 1,
            measured: MeasuredSection { base_rtt: Duration::from_us(2 * u64::from(links)), links },
            ..ENV
        };
        Swift::new(&config, &env)
    }

    #[test]
    fn the_target_counts_the_nodes_of_the_way_that_is_measured() {
        // A round trip inside a data centre visits 10 nodes, to its edge 8, to another data centre 16.
        for (links, target_us) in [(4, 10.2), (3, 8.2), (7, 16.2)] {
            assert!((over_links(links, 1_012).target() / 1e6 - target_us).abs() < 1e-9);
        }
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
            base_rtt: Duration::from_us(1_000),
            paths: 1,
            measured: MeasuredSection { base_rtt: Duration::from_us(8), links: 4 },
            ..ENV
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
            measured: MeasuredSection { base_rtt: Duration::from_us(base_us), links: 6 },
            ..ENV
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
            max_inflight_bdps: 1.0,
            batch_packets: 44,
        };
        let mut config = SwiftConfig::default();
        config.adapt_to_host(&host);
        assert_eq!((config.queue_target, config.scaling_range), (Some(us(1_050)), Some(us(200))));
    }

    #[test]
    fn increases_over_the_measured_way_are_those_of_a_flow_that_ends_there() {
        let env = |base_us| PolicyEnv {
            base_rtt: Duration::from_us(base_us),
            paths: 1,
            measured: MeasuredSection { base_rtt: Duration::from_us(10), links: 4 },
            ..ENV
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
            let feedback = Feedback { rtt: Duration::from_ns(rtt_ns), ..feedback(FeedbackKind::EdgeRtt) };
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
        Feedback { kind, rtt: Duration::ZERO, ..ACK }
    }
    fn want(inflight_packets: u32) -> SendRequest {
        SendRequest { inflight_packets, inflight_bytes: u64::from(inflight_packets) * 1_250, ..REQUEST }
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
        // The target is 19 us at a window of 101: a cut by 0.8 x 6 / 25.
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
        let sent = Sent { ..SENT };
        swift.on_sent(now, &sent, &mut Host::new(1).cx());
        assert_eq!(swift.permit(now, &want(0), &mut Host::new(1).cx()), Permit::At(Time::from_us(130))); // 20 us / 0.25
    }

    /// One packet was late, then all are lost: 0.1 packets (the minimum) per round trip of 10 us, not of that
    /// packet's 6 ms.
    #[test]
    fn after_a_reset_the_least_window_is_spaced_by_the_idle_round_trip() {
        let mut swift = swift();
        ack(&mut swift, Time::from_us(6_000), 6_000);
        for timeout in 1..=RESET_TIMEOUTS {
            let now = Time::from_us(20_000 * u64::from(timeout));
            swift.on_feedback(now, &feedback(FeedbackKind::Timeout), &mut Host::new(1).cx());
        }
        assert!((swift.window_packets() - 0.1).abs() < 1e-9, "{}", swift.window_packets());
        let sent = Sent { retransmit: true, ..SENT };
        let now = Time::from_us(200_000);
        swift.on_sent(now, &sent, &mut Host::new(1).cx());
        assert_eq!(swift.permit(now, &want(0), &mut Host::new(1).cx()), Permit::At(Time::from_us(200_100)));
        // After an acknowledgement the measured round-trip time counts again.
        ack(&mut swift, Time::from_us(200_500), 500);
        assert_eq!(swift.rtt, 500e6);
    }

    /// A request-reply pattern: nothing waits when a reply arrives. At 0.25 packets an increase by a quarter would
    /// not reach one packet; an increase by a whole packet does.
    #[test]
    fn a_window_below_a_packet_grows_though_nothing_waits() {
        let mut swift = swift();
        let idle = |kind| Feedback { rtt: Duration::from_us(10), backlogged: false, ..feedback(kind) };
        let answer = idle(FeedbackKind::Ack { timed: true, marked: false });
        let mut tell = |told: &Feedback| {
            swift.on_feedback(Time::from_us(500), told, &mut Host::new(1).cx());
            swift.window_packets()
        };
        let full = tell(&idle(FeedbackKind::EdgeRtt));
        assert_eq!(tell(&answer), full);
        let mut swift = self::swift();
        (swift.cwnd, swift.next_send) = (0.25, Time::from_us(900));
        let mut tell = |told: &Feedback| {
            swift.on_feedback(Time::from_us(500), told, &mut Host::new(1).cx());
            (swift.window_packets(), swift.next_send)
        };
        assert_eq!(tell(&idle(FeedbackKind::EdgeRtt)), (0.25, Time::from_us(900)), "it acknowledges nothing");
        assert_eq!(tell(&answer), (1.25, Time::from_us(500)));
        assert_eq!(tell(&answer), (1.25, Time::from_us(500)), "more than a packet, and not used");
    }
}
