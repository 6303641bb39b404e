//! Conversion of the topology's routing into the routes of the fabric's switches.

use std::sync::Arc;

use pathweave_fabric::config::Shares;
use pathweave_fabric::{Cable, IntervalRoutes, PortId, PortMap, Span, SwitchRoutes, TableRoutes};
use pathweave_topo::{LinkId, NextHops, NodeId, PortRef, Routing, Topology};
use pathweave_units::{HostId, Rate};

use crate::weights::Weights;

/// Returns all cables and the port numbers. The k-th port of a node in the fabric is its k-th port in the topology.
pub(crate) fn cables(topology: &Topology) -> (Vec<Cable>, PortMap) {
    let cables: Vec<Cable> = topology
        .links()
        .iter()
        .enumerate()
        .map(|(index, link)| {
            let id = LinkId(index as u32);
            let [there, back] = [true, false].map(|from_a| topology.direction(id, from_a));
            let (there, back) = ((there.rate, there.delay), (back.rate, back.delay));
            Cable {
                a: link.a.0,
                b: link.b.0,
                rate: there.0,
                delay: there.1,
                back: (back != there).then_some(back),
                span: span(topology, id),
            }
        })
        .collect();
    let map = PortMap::new(topology.nodes(), &cables);
    (cables, map)
}

fn span(topology: &Topology, link: LinkId) -> Span {
    match topology.sites() {
        Some(sites) if sites.is_wan(link) => Span::Wan { pfc: sites.wan_pfc() },
        _ => Span::Local,
    }
}

/// The links as routing sees them, and the shares of traffic on equal-cost links.
pub(crate) struct View<'a> {
    pub(crate) topology: &'a Topology,
    pub(crate) alive: &'a dyn Fn(LinkId) -> bool,
    /// Rate out of a port.
    pub(crate) rate: &'a dyn Fn(&PortRef) -> Rate,
    pub(crate) shares: Shares,
}

/// Returns the routes of every switch over the links that are up.
pub(crate) fn routes(map: &PortMap, view: &View<'_>) -> Vec<SwitchRoutes> {
    let (topology, alive) = (view.topology, view.alive);
    let routing = match view.shares {
        Shares::Equal => Routing::compute(topology, alive),
        Shares::ByCapacity { .. } => Routing::compute_table(topology, alive),
    };
    let classes = routing.destination_classes().map(|(of_host, members)| (Arc::from(of_host), members));
    let mut weights = match view.shares {
        Shares::Equal => None,
        Shares::ByCapacity { most_entries } => Some(Weights::new(view, most_entries)),
    };
    (0..topology.switches().len())
        .map(|index| {
            let switch = topology.switch_node(index);
            let base = map.ports(switch.0).start;
            match (&classes, routing.arithmetic(switch)) {
                (_, Some(a)) => SwitchRoutes::Interval(IntervalRoutes {
                    first_host: a.first_host,
                    hosts_per_child: a.hosts_per_child,
                    children: a.children,
                    down_base: base + PortId::from(a.down_base),
                    down_bundle: u32::from(a.down_bundle),
                    up_base: base + PortId::from(a.up_base),
                    up_count: u32::from(a.up_count),
                }),
                (Some((of_host, members)), None) => {
                    let mut entries = |hops: NextHops<'_>, dst| match &mut weights {
                        Some(weights) => weights.entries(&routing, switch, hops, dst),
                        None => hops.iter().collect(),
                    };
                    table(topology, &routing, switch, base, of_host, members, &mut entries)
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
