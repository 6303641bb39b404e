//! Parameters of UDMP.

use pathweave_units::{Duration, Rng};

use super::Udmp;
use crate::error::{above, between, check, within};
use crate::fluid::{AsFluid, ControlModel, Fluid, Spread};
use crate::{Adapt, ConfigError, HostDelay, HostEnv, PolicyEnv};

/// Excess of a round-trip time over the average from which its acknowledgement releases nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum UdmpLate {
    /// One base round-trip time: for fabrics, where queues are hardly longer.
    #[default]
    ByBase,
    /// The excess of the average over the base, at least one base round-trip time: for real hosts, where queues may
    /// be many base times long.
    ByQueue,
}

impl UdmpLate {
    #[cfg(feature = "serde")]
    fn is_default(&self) -> bool {
        *self == UdmpLate::default()
    }
}

/// Parameters of UDMP with repairs: a queue target, an additive step, a rate that follows low round-trip times, spare
/// paths, limits of the pool and of the packets in flight, and a restart timer. The paper gives a value only for
/// `ooo_packets`. The others were found by a study of this protocol in the paper's fat tree (100 Gb/s, 12 us, 1,400
/// bytes of payload).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct UdmpConfig {
    /// alpha: weight of the newest round-trip time in the average, 0 to 1. Default 0.125. The average only
    /// distinguishes fast and slow paths; the rate follows low round-trip times.
    pub rtt_gain: f64,
    /// T_high: average of low round-trip times, in base round-trip times, above which every acknowledgement limits
    /// the rate to line rate x base / average. Default 3.
    pub severe_rtt: f64,
    /// p: probability that a packet explores a random path instead of the one it was released for. Default 0.01.
    pub explore: f64,
    /// Delta: an acknowledgement more than this many packets behind the highest releases nothing; 0 disables the
    /// check. Default 64 (UDMP, figure 7).
    pub ooo_packets: u32,
    /// Queueing delay at which the rate settles, in base round-trip times. The time of four packets is
    /// added, because shorter queues are noise. Default 0.25.
    pub queue_target_rtts: f64,
    /// kappa: weight of the relative distance from that target in the change of the rate. Default 0.15.
    pub queue_gain: f64,
    /// Additive increase per round trip, as a fraction of the line rate, at the queue target; less if the
    /// queue is longer. A flow's share of a bottleneck settles near this value over `queue_gain` and the excess
    /// delay. Default 0.005.
    pub increase_step: f64,
    /// Largest change of the rate per round trip, as a fraction of the rate. Default 0.5.
    pub step_limit: f64,
    /// Largest pool, in bandwidth-delay products, at least two packets. Default 0.25.
    pub pool_bdp: f64,
    /// Largest pool while there is nothing to send, in bandwidth-delay products. New data then leaves at
    /// once with the whole pool, on random paths. Default 1.
    pub idle_pool_bdp: f64,
    /// Largest amount in flight, in bandwidth-delay products, plus one packet. Default 1.5.
    pub inflight_bdp: f64,
    /// Excess of a round-trip time over the average, as a fraction of the base, up to which it still counts
    /// as short. Default 0.05.
    pub near: f64,
    /// Excess of a round-trip time over the average from which its acknowledgement releases nothing.
    /// "by_base" (default): one base round-trip time, the better rule in a data centre. "by_queue": the excess of the
    /// average over the base, at least one base round-trip time. Real hosts (`pathweave perf`, the lab) use
    /// "by_queue", because their queues are many base times long.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "UdmpLate::is_default"))]
    pub late: UdmpLate,
}

impl Default for UdmpConfig {
    fn default() -> Self {
        UdmpConfig {
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
            late: UdmpLate::default(),
        }
    }
}

/// Parameters of UDMP as printed: algorithms 1 and 2 with the packets in flight counted (the listing lacks the two
/// lines for it), and with a restart kick, without which flows deadlock in incast. Under noise the rate drifts to half
/// the line rate.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct UdmpPublishedConfig {
    /// alpha: weight of the newest round-trip time in the average, 0 to 1. Default 0.125. Small values deadlock in
    /// incast.
    pub rtt_gain: f64,
    /// T_high: average round-trip time, in base round-trip times, above which every acknowledgement limits the rate
    /// to line rate x base / average. Default 3.
    pub severe_rtt: f64,
    /// p: probability that a packet explores a random path instead of the one it was released for. Default 0.01.
    pub explore: f64,
    /// Delta: an acknowledgement more than this many packets behind the highest releases nothing; 0 disables the
    /// check. Default 64 (UDMP, figure 7).
    pub ooo_packets: u32,
    /// Time with nothing in flight and no acknowledgement after which one packet is sent. Default 100 us.
    pub kick_after: Duration,
}

impl Default for UdmpPublishedConfig {
    fn default() -> Self {
        let UdmpConfig { rtt_gain, severe_rtt, explore, ooo_packets, .. } = UdmpConfig::default();
        UdmpPublishedConfig { rtt_gain, severe_rtt, explore, ooo_packets, kick_after: Duration::from_us(100) }
    }
}

/// Algorithm of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(super) enum Algorithm<'a> {
    Published(&'a UdmpPublishedConfig),
    Repaired(&'a UdmpConfig),
}

/// Parameters that both algorithms have.
pub(super) struct Common {
    pub(super) rtt_gain: f64,
    pub(super) severe_rtt: f64,
    pub(super) explore: f64,
    pub(super) ooo_packets: u32,
}

impl Algorithm<'_> {
    pub(super) fn common(self) -> Common {
        match self {
            Algorithm::Published(&UdmpPublishedConfig {
                rtt_gain, severe_rtt, explore, ooo_packets, ..
            })
            | Algorithm::Repaired(&UdmpConfig { rtt_gain, severe_rtt, explore, ooo_packets, .. }) => {
                Common { rtt_gain, severe_rtt, explore, ooo_packets }
            }
        }
    }
}

/// Checks the parameters that both algorithms have.
fn check_common(algorithm: Algorithm<'_>) -> Result<(), ConfigError> {
    let Common { rtt_gain, severe_rtt, explore, .. } = algorithm.common();
    within("rtt_gain", rtt_gain, above(0.0, 1.0), "")?;
    within("severe_rtt", severe_rtt, above(1.0, 1e6), "base round-trip times")?;
    within("explore", explore, 0.0..=1.0, "")
}

/// Adapts the parameters that both algorithms have to real hosts.
fn adapt_common(severe_rtt: &mut f64, explore: &mut f64, ooo_packets: &mut u32) {
    if *ooo_packets > 0 {
        // Batches of a path arrive as a whole, so a packet that is a few batches behind is not late.
        *ooo_packets = (*ooo_packets).max(HOST_LATE_PACKETS);
    }
    // A stall of a host must not count as severe congestion.
    *severe_rtt += 10.0;
    *explore = explore.max(HOST_EXPLORE);
}

/// Fraction of packets that explore another path on real hosts. After a path has died, only these spread the packets
/// over the other paths.
const HOST_EXPLORE: f64 = 0.03;
/// Queueing delay at which the rate settles on real hosts, in base round-trip times, hosts' delay included.
const HOST_QUEUE_RTTS: f64 = 5.0;
/// Number of packets that may overtake another one on real hosts without its path being slow: several batches.
const HOST_LATE_PACKETS: u32 = 512;

impl AsFluid for UdmpConfig {
    fn as_fluid(&self) -> Fluid {
        Fluid { spread: Some(Spread::ByCapacity), control: ControlModel::BY_DELAY }
    }
}

/// UDMP decides by round-trip times to a fraction of the shortest, and every late acknowledgement removes a packet
/// from those in flight. On software hosts acknowledgements are always late by more than that, and the packets in
/// flight would dwindle to one on a random path. Round-trip times up to the hosts' delay above the shortest are
/// therefore treated as equal ([`HostDelay::InRoundTrip`]), and the delays in the algorithm are in proportion to
/// that.
///
/// Paths share the load by one rule: a late acknowledgement releases nothing, and leaves its packet to faster paths.
/// The rule works while the packets in flight are the limit. If the rate is the limit, every path takes from the pool
/// what it can, and the fullest path, which has most acknowledgements, takes most. The rate must therefore limit only
/// once queues are several times as long as the permitted packets would make them on links of a quarter of the line
/// rate. Over four paths of 100, 100, 50 and 10 Mb/s behind 1 Gb/s this makes the difference between 60 and 100 % of
/// their sum.
impl Adapt for UdmpConfig {
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, host: &HostEnv) {
        adapt_common(&mut self.severe_rtt, &mut self.explore, &mut self.ooo_packets);
        self.late = UdmpLate::ByQueue;
        self.inflight_bdp *= host.max_inflight_bdps;
        self.pool_bdp *= host.max_inflight_bdps;
        self.queue_target_rtts = self.queue_target_rtts.max(HOST_QUEUE_RTTS);
    }
}

impl AsFluid for UdmpPublishedConfig {
    fn as_fluid(&self) -> Fluid {
        UdmpConfig::default().as_fluid()
    }
}

impl Adapt for UdmpPublishedConfig {
    fn host_delay(&self) -> HostDelay {
        HostDelay::InRoundTrip
    }
    fn adapt_to_host(&mut self, _: &HostEnv) {
        adapt_common(&mut self.severe_rtt, &mut self.explore, &mut self.ooo_packets);
    }
}

impl UdmpPublishedConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_common(Algorithm::Published(self))?;
        let kick = self.kick_after > Duration::ZERO && self.kick_after <= Duration::from_ms(1_000);
        check(kick, "kick_after", self.kick_after, "more than 0s, at most 1s: without it flows never finish")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Udmp {
        Udmp::new(Algorithm::Published(self), env, rng)
    }
}

impl UdmpConfig {
    /// Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_common(Algorithm::Repaired(self))?;
        within("queue_target_rtts", self.queue_target_rtts, 0.0..=1e3, "base round-trip times")?;
        within("queue_gain", self.queue_gain, above(0.0, 10.0), "")?;
        within("increase_step", self.increase_step, 0.0..1.0, "of the line rate")?;
        within("step_limit", self.step_limit, between(0.0, 1.0), "")?;
        within("pool_bdp", self.pool_bdp, above(0.0, 1e6), "")?;
        let idle = self.idle_pool_bdp >= self.pool_bdp && self.idle_pool_bdp <= 1e6;
        check(idle, "idle_pool_bdp", self.idle_pool_bdp, "at least `pool_bdp`, at most 1000000")?;
        within("inflight_bdp", self.inflight_bdp, above(0.0, 1e6), "")?;
        within("near", self.near, 0.0..=10.0, "of the base round-trip time")
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> Udmp {
        Udmp::new(Algorithm::Repaired(self), env, rng)
    }
}
