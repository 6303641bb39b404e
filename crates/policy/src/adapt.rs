//! Adaptation of a configuration to its environment: open parameters are chosen once the fabric is known, and schemes
//! made for fast and punctual hosts get longer times on software hosts.

use pathweave_units::{Duration, Rate};

use crate::PathView;

/// Behaviour of switches whose buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullBufferAction {
    /// Switches pause their upstream senders in time (PFC).
    Pause,
    /// Switches drop packets.
    Drop,
    /// Switches forward the headers, so that receivers detect the loss.
    Trim,
}

/// Unit of messages for whose end an application waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awaited {
    /// Each message by itself, so a message that ends earlier is a gain.
    #[default]
    Message,
    /// All messages of a step, as in a collective. The last one counts.
    Step,
}

/// Properties of a simulated fabric that a configuration may use.
#[derive(Clone, Copy, Debug)]
pub struct FabricEnv<'a> {
    /// Behaviour of its switches when their buffers are full.
    pub when_full: FullBufferAction,
    /// Path on which a full packet takes longest when idle, if known. Computed only if [`Adapt::uses_longest_path`]
    /// returns true.
    pub longest_path: Option<&'a PathView>,
    /// Longest round trip of a full packet and its acknowledgement between two hosts when idle. Computed only if
    /// [`Adapt::reads_telemetry`] returns true for a scheme.
    pub longest_rtt: Option<Duration>,
    /// Rate of all ports of a host together.
    pub line_rate: Rate,
    /// Rate of one port.
    pub port_rate: Rate,
    /// Number of a host's ports that lead to the peer.
    pub nic_ports: u16,
    /// Wire bytes of a full packet.
    pub packet_bytes: u64,
    /// Unit of messages for whose end the application waits.
    pub awaited: Awaited,
}

/// Properties of a software host that a configuration may use.
#[derive(Clone, Copy, Debug)]
pub struct HostEnv {
    /// Line rate of the host.
    pub line_rate: Rate,
    /// Round-trip time of the idle network.
    pub network_rtt: Duration,
    /// Delay that both hosts may add to a round trip.
    pub host_delay: Duration,
    /// Round-trip time that the policy starts from ([`PolicyEnv::base_rtt`](crate::PolicyEnv::base_rtt)). It includes
    /// the delay of hosts under [`HostDelay::InRoundTrip`], and excludes it otherwise.
    pub base_rtt: Duration,
    /// Amount of data that may be in flight, in units of `line_rate * base_rtt`: one bandwidth-delay product of the
    /// network, or enough to cover the delay of hosts, as far as it fits into caches.
    pub max_inflight_bdps: f64,
    /// Number of full packets to one peer on one path that a host sends at little more than the cost of one, at least
    /// 1.
    pub batch_packets: u8,
}

/// Treatment of the delay that hosts add to a round trip. The same rule holds for all schemes: a scheme that controls
/// by delay does not count that part of the delay as queueing; other schemes do not need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDelay {
    /// The scheme controls by marks and losses, or by differences between the delays of paths.
    Ignored,
    /// The scheme compares round-trip times with the base round-trip time, which includes the delay of hosts.
    InRoundTrip,
    /// The scheme has thresholds of its own, which [`Adapt::adapt_to_host`] raises by the delay of hosts.
    InThresholds,
}

/// Wait for a packet that is later than any recent one, where switches pause or trim, so that it is mostly still queued.
/// Recovery by time ([`Recovery::Timed`](crate::Recovery::Timed)) asks for it with a probe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateWait {
    /// Patience lasts as long again: hardly any packet is sent twice.
    Double,
    /// Patience lasts a quarter longer. A copy for nothing costs the time of a packet; waiting for a dead path costs a round trip, and
    /// delays whoever waits for the message. For policies that know better paths for the copy.
    Brief,
}

/// Use of switches' marks (ECN) by senders, in rising order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkUse {
    /// Marks change no rate and no window, though they may change paths.
    Ignored,
    /// Marks and delays change rates or windows.
    BesideDelay,
    /// Marks alone change rates or windows, as far as nothing is lost.
    Alone,
}

/// Path of a pair of hosts whose idle round trip is the base, where their paths differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasePath {
    /// The nearest path.
    Nearest,
    /// The longest path that packets may take. A window or a target of the nearest one would hold back a flow that takes
    /// another, or all of them.
    Longest,
}

/// Adapts the configuration of a policy or a congestion control to its environment. Every configuration implements
/// it; most are the same everywhere and use the empty defaults.
pub trait Adapt {
    /// Chooses open parameters for a simulated fabric.
    fn adapt_to_fabric(&mut self, _fabric: &FabricEnv<'_>) {}
    /// Returns true if the configuration uses [`FabricEnv::longest_path`].
    fn uses_longest_path(&self) -> bool {
        false
    }
    /// Returns true if the policy reads telemetry, which only simulated switches write
    /// ([`Shared::take_telemetry`](crate::Shared::take_telemetry)).
    fn reads_telemetry(&self) -> bool {
        false
    }
    /// Returns the path whose idle round trip is the base ([`PolicyEnv::base_rtt`](crate::PolicyEnv::base_rtt)).
    fn base_path(&self) -> BasePath {
        BasePath::Nearest
    }
    /// Returns the use of marks.
    fn marks(&self) -> MarkUse {
        MarkUse::Ignored
    }
    /// Returns the treatment of the delay of hosts.
    fn host_delay(&self) -> HostDelay {
        HostDelay::Ignored
    }
    /// Returns the wait for late packets.
    fn late_wait(&self) -> LateWait {
        LateWait::Double
    }
    /// Adapts the parameters to software hosts.
    fn adapt_to_host(&mut self, _host: &HostEnv) {}
}
