//! Routes of a shard's switches.

use std::sync::Arc;

use pathweave_fabric::{PairRoutes, PortId, PortNumbers, SwitchRoutes};
use pathweave_topo::{Hop, PathSets, Routing};
use pathweave_units::HostId;

use crate::chosen_routes::ports_to;
use crate::plan::NetworkPlan;
use crate::routes::{self, View};
use crate::spec::RouteChoice;

/// Computes the routes of a shard's switches for the links as routing sees them. `routing` holds the next hops if
/// switches choose them.
pub(crate) fn switch_routes(
    (plan, numbers): (&NetworkPlan, &PortNumbers),
    choice: &RouteChoice,
    routing: Option<&Routing>,
    view: &View<'_>,
) -> Vec<SwitchRoutes> {
    match choice {
        RouteChoice::Switches | RouteChoice::SenderSwitches(_) => {
            let routing = routing.expect("switches choose routes");
            routes::routes(numbers, routing, view, plan.shares)
        }
        RouteChoice::NextHops(sets) => next_hops((plan, numbers), sets, view),
        RouteChoice::Sources(_) => {
            let lists = plan.lists.as_ref().expect("sources choose explicit paths");
            view.topology.switches().iter().map(|_| SwitchRoutes::Source(Arc::clone(lists))).collect()
        }
    }
}

/// Returns for each switch of a shard the next hops of the explicit paths whose links are all up.
fn next_hops(
    (plan, numbers): (&NetworkPlan, &PortNumbers),
    sets: &PathSets,
    view: &View<'_>,
) -> Vec<SwitchRoutes> {
    let (topology, map) = (view.topology, &plan.map);
    let owns = |switch: usize| numbers.owns(topology.switch_node(switch).0);
    let local = |switch: usize, port: PortId| {
        let node = topology.switch_node(switch).0;
        numbers.ports(node).start + (port - map.ports(node).start)
    };
    let mut attached = vec![Vec::new(); topology.switches().len()];
    for host in (0..topology.hosts()).map(HostId) {
        for (port, to_host) in topology.ports(host.into()).iter().zip(ports_to(topology, map, host)) {
            let switch = topology.switch_index(port.peer).expect("explicit paths begin at switches");
            if owns(switch) {
                attached[switch].push((host, local(switch, to_host)));
            }
        }
    }
    let edge_of: Arc<[u32]> = (0..topology.hosts()).map(|host| sets.edge_of(HostId(host))).collect();
    let edges = sets.edges().len() as u32;
    let of_switch = |hosts| PairRoutes::new(Arc::clone(&edge_of), edges, hosts);
    let mut routes: Vec<PairRoutes> = attached.into_iter().map(of_switch).collect();
    for pair in (0..edges).flat_map(|from| (0..edges).map(move |to| (from, to))) {
        let alive = |path: &&[Hop]| path.iter().all(|hop| (view.alive)(hop.link()));
        for hop in sets.between_edges(pair.0, pair.1).filter(alive).flatten() {
            let (at_a, at_b) = map.ends(hop.link().index());
            let switch = topology.switch_index(hop.reversed().end(topology)).expect("hosts forward nothing");
            if owns(switch) {
                routes[switch].add(pair, local(switch, if hop.from_a() { at_a } else { at_b }));
            }
        }
    }
    let made = routes.into_iter().enumerate().map(|(switch, routes)| match owns(switch) {
        true => SwitchRoutes::Pairs(Box::new(routes)),
        false => SwitchRoutes::Elsewhere,
    });
    made.collect()
}
