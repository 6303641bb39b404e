//! How a configuration fits itself to where it runs: what it leaves open is chosen once a fabric is known, and what is
//! made for fast and punctual hosts is made slower and more patient on those of software.

use pathweave_units::{Duration, Rate};

use crate::PathView;

/// What switches do with packets for which they have no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They pause their senders in time (PFC).
    Pause,
    /// They drop them.
    Drop,
    /// They send their headers on, so that receivers can tell.
    Trim,
}

/// What a configuration may know of a simulated fabric.
#[derive(Clone, Copy, Debug)]
pub struct FabricEnv<'a> {
    /// What its switches do when they are full.
    pub when_full: WhenFull,
    /// The path that takes a full packet longest when idle, where one is known. It is looked for if
    /// [`Adapt::wants_longest_path`] says so.
    pub longest_path: Option<&'a PathView>,
    /// What the ports of a host can send together.
    pub line_rate: Rate,
    /// Rate of one of them.
    pub port_rate: Rate,
    /// How many of them lead to the peer.
    pub nic_ports: u16,
    /// Wire bytes of a full packet.
    pub packet_bytes: u64,
}

/// What a configuration may know of a host made of software.
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
    /// Full packets for one peer on one path that leave at the cost of little more than one, at least 1.
    pub batch_packets: u8,
}

/// How a scheme takes account of the delay that hosts add by themselves. One rule for all: a scheme that steers by delay
/// treats that much above the network's as no queue; the others do not need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDelay {
    /// The scheme steers by marks and losses, or by differences between delays of paths.
    Ignored,
    /// The scheme compares round trips with that of an idle path, which is longer by the delay of hosts.
    InRoundTrip,
    /// The scheme has thresholds of its own, which [`Adapt::adapt_to_host`] raises by the delay of hosts.
    InThresholds,
}

/// Fits a configuration of a policy or a congestion control to where it runs. Every configuration implements it; most are
/// the same everywhere and leave it empty.
pub trait Adapt {
    /// Chooses what is left open, for a simulated fabric.
    fn adapt_to_fabric(&mut self, _fabric: &FabricEnv<'_>) {}
    /// Whether [`FabricEnv::longest_path`] would change anything.
    fn wants_longest_path(&self) -> bool {
        false
    }
    /// How it takes account of the delay of hosts.
    fn host_delay(&self) -> HostDelay {
        HostDelay::Ignored
    }
    /// Makes it as hosts of software need it.
    fn adapt_to_host(&mut self, _host: &HostEnv) {}
}
