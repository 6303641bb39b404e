//! How a configuration fits itself to where it runs: what it leaves open is chosen once a fabric is known, and what is
//! made for fast and punctual hosts is made slower and more patient on those of software.

use pathweave_units::{Duration, Rate};

use crate::PathView;

/// What switches do with packets for which they have no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They pause whoever sends to them, in time (PFC).
    Pause,
    /// They drop them.
    Drop,
}

/// A simulated fabric, as a configuration is told of it.
#[derive(Clone, Copy, Debug)]
pub struct FabricEnv<'a> {
    /// What its switches do when they are full.
    pub when_full: WhenFull,
    /// The path that takes a full packet longest when idle, where one is known. It is looked for if
    /// [`Adapt::wants_longest_path`] says so.
    pub longest_path: Option<&'a PathView>,
    /// Rate of the hosts' ports.
    pub line_rate: Rate,
    /// Wire bytes of a full packet.
    pub packet_bytes: u64,
}

/// A host made of software, as a configuration is told of it.
#[derive(Clone, Copy, Debug)]
pub struct HostEnv {
    /// Rate of its line.
    pub line_rate: Rate,
    /// Round-trip time of the idle network.
    pub network_rtt: Duration,
    /// What both hosts may add to it by themselves.
    pub host_delay: Duration,
    /// The round-trip time that the policy is going to start from ([`PolicyEnv::base_rtt`](crate::PolicyEnv::base_rtt)):
    /// with the delay of hosts under [`HostDelay::InRoundTrip`], without it otherwise.
    pub base_rtt: Duration,
    /// What may be on the way, in what the line sends in `base_rtt`: as much as it sends in the network's round trip, or
    /// so much as covers the delay of hosts and caches still hold.
    pub held_bdps: f64,
}

/// What a scheme is told of the delay that hosts add by themselves. The rule is one for all: who steers by delay takes so
/// much above the network's for none, and nobody else hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDelay {
    /// It goes by marks and losses, or by how delays of paths differ.
    Ignored,
    /// It measures round trips against that of an idle path, which is so much longer.
    InRoundTrip,
    /// It has thresholds of its own, which [`Adapt::adapt_to_host`] makes so much higher.
    InThresholds,
}

/// A configuration of a policy or a congestion control, and where it runs. Every one implements it, with an empty body
/// where it is the same everywhere, which most are.
pub trait Adapt {
    /// Chooses what is left open, for a simulated fabric.
    fn adapt_to_fabric(&mut self, _fabric: &FabricEnv<'_>) {}
    /// Whether [`FabricEnv::longest_path`] would change anything.
    fn wants_longest_path(&self) -> bool {
        false
    }
    /// What it is to be told of the delay of hosts.
    fn host_delay(&self) -> HostDelay {
        HostDelay::Ignored
    }
    /// Makes it as hosts of software need it.
    fn adapt_to_host(&mut self, _host: &HostEnv) {}
}
