//! Source ports that take different ways.

use std::collections::BTreeSet;

use pathweave_policy::{PathState, PathView, PortSet};
use pathweave_units::{HostId, PathId};

use crate::network::Network;

/// Ports tried for each one wanted. With 16 equal ways 64 times as many miss one of them in one of 10^27 cases; where
/// there are fewer ways than are wanted, all are tried.
const TRIES: u32 = 64;

/// The first path identifiers that the switches hash to different ways, at most `count`. Empty, which stands for any,
/// where sources choose their way. `ports`: those of the sender that lead to the receiver.
pub(crate) fn distinct_paths<const C: usize>(
    network: &Network<C>,
    pair: (HostId, HostId),
    ports: PortSet,
    count: u16,
) -> Vec<PathView> {
    let mut seen = BTreeSet::new();
    let tries = (TRIES * u32::from(count)).min(u32::from(u16::MAX));
    let route = |id: PathId| network.fabric.hashed_route_from(network.port_of(pair.0, ports, id), pair, id);
    let new = |id: &PathId| route(*id).is_some_and(|route| seen.insert(route));
    let ids = (0..tries).map(|id| PathId(id as u16)).filter(new);
    ids.take(usize::from(count)).map(|id| PathView::new(id, PathState::Up)).collect()
}
