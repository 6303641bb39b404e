//! Parameters of UDMP.

use core::fmt;

use pathweave_units::{Duration, Rng};

use super::Udmp;
use crate::error::check;
use crate::fluid::{AsFluid, Control, Fluid, Spread};
use crate::{Adapt, ConfigError, HostDelay, HostEnv, PolicyEnv};

/// Which control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UdmpVariant {
    /// As printed in algorithms 1 and 2, with the packets in flight counted (the listing lost the two lines that do)
    /// and a restart kick, without which flows deadlock in incast. Its rate drifts to half the line under noise.
    Published,
    /// With a queue target, an additive step, a rate that follows low round-trip times, spare paths, caps on pool and
    /// flight, and a restart timer.
    #[default]
    Repaired,
}

impl fmt::Display for UdmpVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UdmpVariant::Published => "published",
            UdmpVariant::Repaired => "repaired",
        })
    }
}

/// How far above the average a round-trip time is whose acknowledgement releases nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum UdmpLate {
    /// By a base round-trip time: for fabrics, where queues hardly get longer than that.
    #[default]
    ByBase,
    /// By as much as the average is above the base, but at least a base: for real hosts, where queues may be many base times
    /// long.
    ByQueue,
}

impl UdmpLate {
    #[cfg(feature = "serde")]
    fn is_default(&self) -> bool {
        *self == UdmpLate::default()
    }
}

/// Parameters of UDMP. The paper gives values for none but `ooo_packets`; the others were found by study of this
/// protocol in the paper's fat tree (100 Gb/s, 12 us, 1,400 bytes of payload).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UdmpConfig {
    /// The control law: "repaired" (default) or "published".
    pub variant: UdmpVariant,
    /// alpha: weight of the newest round-trip time in the average, 0 to 1. Published: small values deadlock in incast.
    /// Repaired: that average only tells fast paths from slow ones; the rate follows low round-trip times.
    pub rtt_gain: f64,
    /// T_high, in base round-trip times: above it every acknowledgement caps the rate at line x base / average (repaired:
    /// the low average).
    pub severe_rtt: f64,
    /// p: probability that a packet explores a random path instead of the one it was released for.
    pub explore: f64,
    /// Delta: an acknowledgement this many packets behind the highest clocks nothing (UDMP, figure 7). 0: off.
    pub ooo_packets: u32,
    /// Repaired: queueing delay the rate settles at, in base round-trip times; four packet times more are the grain of
    /// queues.
    pub queue_target_rtts: f64,
    /// Repaired, kappa: weight of the distance from that target, as a share of the round-trip time that the rate follows.
    pub queue_gain: f64,
    /// Repaired: additive increase a round trip, as a share of the line rate, while the queue is at its target; less
    /// when it is longer. A flow's share of a bottleneck settles near this over `queue_gain` and the excess delay.
    pub increase_step: f64,
    /// Repaired: the most the rate changes in a round trip, as a share of itself.
    pub step_limit: f64,
    /// Repaired: most the pool holds, in bandwidth-delay products; never less than two packets.
    pub pool_bdp: f64,
    /// Repaired: most the pool holds while there is nothing to send, in bandwidth-delay products. Data that comes then
    /// leaves with all of it at once, on random paths.
    pub idle_pool_bdp: f64,
    /// Repaired: most in flight, in bandwidth-delay products, plus one packet.
    pub inflight_bdp: f64,
    /// Repaired: a round-trip time within this share of the base above the average still counts as short.
    pub near: f64,
    /// Published: with nothing in flight and nothing heard for this long, one packet is sent.
    pub kick_after: Duration,
    /// Repaired: how far above the average a round-trip time is whose acknowledgement releases nothing. "by_base" (default):
    /// a base, the better rule in a data centre. "by_queue": as much as the average is above the base, but at least a base;
    /// so real hosts have it (`pathweave perf`, the lab), where queues are many base times long.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "UdmpLate::is_default"))]
    pub late: UdmpLate,
}

impl Default for UdmpConfig {
    fn default() -> Self {
        UdmpConfig {
            variant: UdmpVariant::default(),
            rtt_gain: 0.125,
            severe_rtt: 3.0,
            explore: 0.01,
            ooo_packets: 64,
            queue_target_rtts: 0.25,
            queue_gain: 0.15,
            increase_step: 0.005,
            step_limit: 0.5,
            pool_bdp: 0.25,
            idle_pool_bdp: 1.0,
            inflight_bdp: 1.5,
            near: 0.05,
            kick_after: Duration::from_us(100),
            late: UdmpLate::default(),
        }
    }
}

/// Packets that try another path: after one has died, those on the others are spread anew by them alone.
const HOST_EXPLORE: f64 = 0.03;
/// Queueing delay the rate settles at, in round-trip times, hosts' delay included.
const HOST_QUEUE_RTTS: f64 = 5.0;
/// Packets that may overtake one without its path being slow: several batches.
const HOST_LATE_PACKETS: u32 = 512;

impl AsFluid for UdmpConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: Control::BY_DELAY }
    }
}

/// It decides by round-trip times to a fraction of the shortest, and every acknowledgement that seems late takes a packet
/// off the way. Hosts made of software are late by more than that all the time: what is on the way would dwindle to one
/// packet, on whichever path it happens to be. So times up to their delay above the shortest are one and the same to it
/// ([`HostDelay::InRoundTrip`]), and its measures of delay are in proportion to that.
///
/// Paths share the load by the rule that an acknowledgement that comes late releases nothing and leaves its packet to
/// faster paths. That rule is in force while packets on the way are what limits it; where the rate does, every path takes
/// from the pool what it can, and the fullest one, which has most acknowledgements, takes most. So the rate is to hold
/// back only once queues are several times as long as the packets allowed would make them on links of a quarter of the
/// line's rate. Over four paths of 100, 100, 50 and 10 Mb/s behind 1 Gb/s that is the difference between 60 and 100 % of
/// their sum.
impl Adapt for UdmpConfig {
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        if self.variant == UdmpVariant::Repaired {
            self.late = UdmpLate::ByQueue;
        }
        self.inflight_bdp *= host.held_bdps;
        self.pool_bdp *= host.held_bdps;
        self.queue_target_rtts = self.queue_target_rtts.max(HOST_QUEUE_RTTS);
        if self.ooo_packets > 0 {
            // Batches of a path arrive whole, so what is behind by some of them is not late.
            self.ooo_packets = self.ooo_packets.max(HOST_LATE_PACKETS);
        }
        // A stall of a host must not pass for severe congestion.
        self.severe_rtt += 10.0;
        self.explore = self.explore.max(HOST_EXPLORE);
    }
}

impl UdmpConfig {
    /// The law as printed.
    pub fn published() -> Self {
        UdmpConfig { variant: UdmpVariant::Published, ..UdmpConfig::default() }
    }
    /// Names the first field that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let share =
            |name, value: f64, most: f64, allowed| check(value > 0.0 && value <= most, name, value, allowed);
        share("rtt_gain", self.rtt_gain, 1.0, "more than 0, at most 1")?;
        let known = self.variant == UdmpVariant::Repaired || self.late == UdmpLate::ByBase;
        check(known, "late", "\"by_queue\"", "\"by_base\" with variant \"published\", whose rule is that")?;
        let severe = self.severe_rtt > 1.0 && self.severe_rtt <= 1e6;
        check(severe, "severe_rtt", self.severe_rtt, "more than 1 (base round-trip times), at most 1000000")?;
        check((0.0..=1.0).contains(&self.explore), "explore", self.explore, "0 to 1")?;
        let target = (0.0..=1e3).contains(&self.queue_target_rtts);
        check(target, "queue_target_rtts", self.queue_target_rtts, "0 to 1000 (base round-trip times)")?;
        share("queue_gain", self.queue_gain, 10.0, "more than 0, at most 10")?;
        let step = (0.0..1.0).contains(&self.increase_step);
        check(step, "increase_step", self.increase_step, "0 to less than 1 (of the line rate)")?;
        let limit = self.step_limit > 0.0 && self.step_limit < 1.0;
        check(limit, "step_limit", self.step_limit, "more than 0, less than 1")?;
        share("pool_bdp", self.pool_bdp, 1e6, "more than 0, at most 1000000")?;
        let idle = self.idle_pool_bdp >= self.pool_bdp && self.idle_pool_bdp <= 1e6;
        check(idle, "idle_pool_bdp", self.idle_pool_bdp, "at least `pool_bdp`, at most 1000000")?;
        share("inflight_bdp", self.inflight_bdp, 1e6, "more than 0, at most 1000000")?;
        check((0.0..=10.0).contains(&self.near), "near", self.near, "0 to 10 (of the base round-trip time)")?;
        let kick = self.kick_after > Duration::ZERO && self.kick_after <= Duration::from_ms(1_000);
        check(kick, "kick_after", self.kick_after, "more than 0s, at most 1s: without it flows never finish")
    }
    /// The policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Udmp {
        Udmp::new(self, env, rng)
    }
}
