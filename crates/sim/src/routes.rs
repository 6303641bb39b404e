//! Conversion of the topology's routing into the routes of the fabric's switches.

use std::sync::Arc;

use pathweave_fabric::config::Shares;
use pathweave_fabric::{
    Divisor, IntervalRoutes, PlacedRoutes, PortId, PortNumbers, SwitchRoutes, TableRoutes,
};
use pathweave_topo::{LinkId, NextHops, NodeId, PortRef, Routing, Topology};
use pathweave_units::{HostId, Rate};

use crate::weights::Weights;

/// The links as routing sees them.
pub(crate) struct View<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) alive: &'a dyn Fn(LinkId) -> bool,
    /// Rate out of a port.
    pub(crate) rate: &'a dyn Fn(&PortRef) -> Rate,
}

/// Returns the routes of every switch that a shard owns over the links that are up.
pub(crate) fn routes(
    numbers: &PortNumbers,
    routing: &Routing,
    view: &View<'_>,
    shares: Shares,
) -> Vec<SwitchRoutes> {
    let topology = view.topology;
    let classes = routing.destination_classes().map(|(of_host, members)| (Arc::from(of_host), members));
    let mut weights = match shares {
        Shares::Equal => None,
        Shares::ByCapacity { most_entries } => Some(Weights::new(view, most_entries)),
    };
    (0..topology.switches().len())
        .map(|index| {
            let switch = topology.switch_node(index);
            if !numbers.owns(switch.0) {
                return SwitchRoutes::Elsewhere;
            }
            let base = numbers.ports(switch.0).start;
            match (&classes, routing.arithmetic(switch)) {
                (_, Some(a)) => {
                    let by_place = IntervalRoutes {
                        first_host: a.first_host,
                        hosts_per_child: Divisor::new(a.hosts_per_child),
                        children: a.children,
                        down_base: base + PortId::from(a.down_base),
                        down_bundle: u32::from(a.down_bundle),
                        up_base: base + PortId::from(a.up_base),
                        up_count: u32::from(a.up_count),
                    };
                    match routing.places() {
                        None => SwitchRoutes::Interval(by_place),
                        Some(places) => {
                            SwitchRoutes::Placed(PlacedRoutes { places: Arc::clone(places), by_place })
                        }
                    }
                }
                (Some((of_host, members)), None) => {
                    let mut entries = |hops: NextHops<'_>, dst| match &mut weights {
                        Some(weights) => weights.entries(routing, switch, hops, dst),
                        None => hops.iter().collect(),
                    };
                    table(topology, routing, switch, base, of_host, members, &mut entries)
                }
                (None, None) => unreachable!("routes are arithmetic or a table"),
            }
        })
        .collect()
}

fn table(
    topology: &Topology,
    routing: &Routing,
    switch: NodeId,
    base: PortId,
    class_of_host: &Arc<[u32]>,
    members: &[HostId],
    entries: &mut dyn FnMut(NextHops<'_>, HostId) -> Vec<u16>,
) -> SwitchRoutes {
    let mut ports = Vec::new();
    let mut group = |host: HostId| {
        let start = ports.len() as u32;
        let hops = entries(routing.next_hops(switch, host), host);
        ports.extend(hops.into_iter().map(|port| base + PortId::from(port)));
        (start, ports.len() as u32)
    };
    let mut attached: Vec<HostId> =
        topology.ports(switch).iter().filter_map(|port| topology.as_host(port.peer)).collect();
    attached.sort_unstable();
    attached.dedup();
    let mut groups: Vec<(u32, u32)> = members.iter().map(|&host| group(host)).collect();
    for host in &attached {
        groups[class_of_host[host.index()] as usize] = TableRoutes::ATTACHED;
    }
    let attached = attached.into_iter().map(|host| (host, group(host))).collect();
    SwitchRoutes::Table(TableRoutes { class_of_host: class_of_host.clone(), groups, attached, ports })
}
