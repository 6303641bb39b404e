//! Model of the schemes of a run as fluids.

use pathweave_fabric::config::Shares;
use pathweave_policy::fluid::{AloneAtPort, OverUnequalPaths, RateRecovery, Spread};
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
    /// Use of a port that one message has alone.
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
        // Go-back-N takes packets that overtake others for a sign of loss.
        let over_unequal_paths = match scheme.recovery.goes_back() {
            true => OverUnequalPaths::IsDisturbed,
            false => fluid.control.over_unequal_paths,
        };
        Model {
            spread,
            collides,
            law: QueueConstants::of(&fluid.control),
            recovery: fluid.control.recovery,
            over_unequal_paths,
            alone: fluid.control.alone,
            packets_an_ack: scheme.acks.packets_an_ack(spec.network.mtu.get()),
        }
    };
    spec.groups.iter().map(of_group).collect()
}
