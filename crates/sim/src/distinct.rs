//! Selection of source ports that switches hash to different routes.

use std::collections::BTreeSet;

use pathweave_policy::{PathState, PathView, PortSet};
use pathweave_units::{HostId, PathId};

use crate::network::Network;

/// Number of source ports tried for each port wanted. With 16 equal routes, 64 times as many tries miss a route with
/// a probability of 10^-27. If there are fewer routes than wanted, all tries are made.
const TRIES: u32 = 64;

/// Returns up to `count` path identifiers that switches hash to different routes. The result is empty, which permits
/// any identifier, if sources choose the path. `ports` holds the sender's ports that lead to the receiver.
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
