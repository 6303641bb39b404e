//! Model of the schemes of a run as fluids.

use pathweave_fabric::config::Shares;
use pathweave_policy::cc::CcConfig;
use pathweave_policy::fluid::{RateRecovery, Spread};
use pathweave_policy::{PolicyConfig, Scheme, SplitConfig};
use pathweave_sim::{GroupSpec, PacketFreeNetwork, SimSpec};

use crate::queue::QueueConstants;

/// Model of the messages of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) spread: Spread,
    pub(crate) collides: Collides,
    pub(crate) law: QueueConstants,
    pub(crate) recovery: Option<RateRecovery>,
    /// Response to paths of unlike delays.
    pub(crate) over_unequal_paths: OverUnequalPaths,
    /// Response of the rate to a queue that a single message builds.
    pub(crate) alone: AloneAtPort,
    /// Number of data packets per acknowledgement.
    pub(crate) packets_an_ack: u64,
}

/// Period in which the packets of a message collide with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collides {
    Never,
    /// Until hosts have found free paths, which takes some round trips.
    AtFirst,
    Always,
}

/// Response of a control to sprayed packets of unlike delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverUnequalPaths {
    /// The rate does not depend on delays.
    KeepsRate,
    /// Windows, choices of paths or timers depend on delays.
    IsDisturbed,
}

/// Response of a control to a port that is slower than its sender, which has the port alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AloneAtPort {
    /// The port stays full.
    FillsIt,
    /// Notifications of the queue cut the rate below that of the port.
    FallsBelowIt,
    /// The rate is a part of that of the port.
    LeavesRoom,
}

fn over_unequal_paths(scheme: &Scheme) -> OverUnequalPaths {
    match &scheme.policy {
        PolicyConfig::Split(SplitConfig { cc: CcConfig::Dcqcn(_) | CcConfig::None(_), .. })
            if scheme.credit.is_none() && !scheme.recovery.goes_back() =>
        {
            OverUnequalPaths::KeepsRate
        }
        _ => OverUnequalPaths::IsDisturbed,
    }
}

fn alone(scheme: &Scheme) -> AloneAtPort {
    match &scheme.policy {
        PolicyConfig::Split(SplitConfig { cc: CcConfig::Hpcc(_), .. }) => AloneAtPort::LeavesRoom,
        _ if scheme.as_fluid().control.recovery.is_some() => AloneAtPort::FallsBelowIt,
        _ => AloneAtPort::FillsIt,
    }
}

/// Returns the models by group.
pub(crate) fn models(spec: &SimSpec, ways: &PacketFreeNetwork<'_>) -> Vec<Model> {
    let switches = ways.forwarding();
    let of_group = |group: &GroupSpec| {
        let scheme = &spec.schemes[usize::from(group.scheme)].scheme;
        let fluid = scheme.as_fluid();
        let spread = switches.spread().or(fluid.spread).unwrap_or(Spread::Random);
        // If switch tables have more entries for ports with more capacity, hosts that spray at random send in
        // proportion to capacity.
        let spread = match (spread, switches.shares()) {
            (Spread::Random, Shares::ByCapacity { .. }) => Spread::ByCapacity,
            _ => spread,
        };
        let collides = match spread {
            Spread::Random | Spread::ByCapacity => Collides::Always,
            Spread::Balanced if switches.spread().is_none() => Collides::AtFirst,
            _ => Collides::Never,
        };
        Model {
            spread,
            collides,
            law: QueueConstants::of(&fluid.control),
            recovery: fluid.control.recovery,
            over_unequal_paths: over_unequal_paths(scheme),
            alone: alone(scheme),
            packets_an_ack: scheme.acks.packets_an_ack(spec.network.mtu.get()),
        }
    };
    spec.groups.iter().map(of_group).collect()
}
