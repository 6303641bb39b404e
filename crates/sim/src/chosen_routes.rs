//! Choice of routes by switches or sources: hops of paths, known failures, and the views that schemes get.

use std::collections::BTreeSet;
use std::sync::Arc;

use pathweave_fabric::config::Shares;
use pathweave_fabric::{Attachment, PortId, PortMap, RouteHop, RoutePath, SourceRoutes};
use pathweave_policy::{PathState, PathView};
use pathweave_topo::{
    Hop, LinkId, NodeId, PathSets, Routing, Topology, leading_ports, max_flow, rate_of_ports, receiving_rate,
};
use pathweave_units::{HostId, PathId, Rate};

use crate::config::NetworkConfig;
use crate::paths::{PacketOrder, PathProfile, profiles};
use crate::route_headers::RouteHeaders;
use crate::spec::RouteChoice;

/// Routes as of the last time routing was updated.
#[derive(Clone)]
pub(crate) enum ChosenRoutes {
    /// Switches choose routes.
    Switches(Arc<Routing>),
    /// Sources choose paths.
    Sources {
        /// Explicit paths between hosts.
        sets: Arc<PathSets>,
        /// Links known to be down.
        dead: BTreeSet<LinkId>,
        /// Headers that packets on these paths carry.
        headers: Option<Arc<RouteHeaders>>,
    },
}

impl ChosenRoutes {
    pub(crate) fn whole(topology: &Topology, choice: &RouteChoice, network: &NetworkConfig) -> Self {
        match choice {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) | RouteChoice::NextHops(_) => {
                ChosenRoutes::Switches(Arc::new(Routing::all_links_up(topology)))
            }
            RouteChoice::Sources(sets) => {
                let headers =
                    RouteHeaders::new(topology, sets, network.framing, network.route_bytes().form());
                let headers = headers.map(Arc::new);
                ChosenRoutes::Sources { sets: Arc::clone(sets), dead: BTreeSet::new(), headers }
            }
        }
    }

    /// Returns the headers of the paths that sources choose, and the ports of replies.
    pub(crate) fn headers(&self) -> Option<&Arc<RouteHeaders>> {
        match self {
            ChosenRoutes::Switches(_) => None,
            ChosenRoutes::Sources { headers, .. } => headers.as_ref(),
        }
    }

    /// Returns the next hops of the switches over the links that are up, from which [`switch_routes`](crate::switch_routes::switch_routes) are made, or
    /// `None` if sources choose paths.
    pub(crate) fn of_switches(
        &self,
        topology: &Topology,
        shares: Shares,
        alive: &dyn Fn(LinkId) -> bool,
    ) -> Option<Arc<Routing>> {
        match (self, shares) {
            (ChosenRoutes::Switches(routing), Shares::Equal) => Some(Arc::clone(routing)),
            (ChosenRoutes::Switches(_), Shares::ByCapacity { .. }) => {
                Some(Arc::new(Routing::compute_table(topology, alive)))
            }
            (ChosenRoutes::Sources { .. }, _) => None,
        }
    }

    /// Returns the distinct profiles of all paths between two hosts that are not known to be dead. The path of the
    /// ideal FCT is among them. If switches choose, they are those of [`profiles`]. The result is empty if there is no
    /// route.
    pub(crate) fn profiles(&self, topology: &Topology, src: HostId, dst: HostId) -> Vec<PathProfile> {
        match self {
            ChosenRoutes::Switches(routing) => profiles(topology, routing, src, dst),
            ChosenRoutes::Sources { sets, dead, headers } => {
                let alive = sets.alive(topology, src, dst, |link| !dead.contains(&link));
                let all = sets.profiles(topology, src, dst);
                let mut profiles: Vec<PathProfile> = Vec::new();
                let mut paths = 0;
                for ((path, hops), _) in (0..).zip(all).zip(alive).filter(|(_, alive)| *alive) {
                    let header = headers.as_ref().and_then(|headers| headers.of(src, dst, path));
                    let profile = PathProfile::chosen(hops, header);
                    paths += 1;
                    // In regular networks most paths have equal profiles.
                    if !profiles.contains(&profile) {
                        profiles.push(profile);
                    }
                }
                if paths > 1 {
                    let ends = ChosenEnds::new(topology, sets, dead, (src, dst), &profiles);
                    profiles.iter_mut().for_each(|profile| ends.apply_to(profile));
                }
                profiles
            }
        }
    }

    /// Returns the NIC ports of `src` that lead to `dst`, as a bit set; 0 if there is no route.
    pub(crate) fn leading_ports(&self, topology: &Topology, src: HostId, dst: HostId) -> u64 {
        match self {
            ChosenRoutes::Switches(routing) => leading_ports(topology, routing, src, dst),
            ChosenRoutes::Sources { sets, .. } => sets.leading_ports(src, dst),
        }
    }

    /// Returns the number of paths that a scheme may choose from. `wished` is the number that the scheme uses if
    /// switches choose.
    pub(crate) fn count(&self, src: HostId, dst: HostId, wished: u16) -> u16 {
        match self {
            ChosenRoutes::Switches(_) => wished,
            ChosenRoutes::Sources { sets, .. } => sets.count(src, dst) as u16,
        }
    }

    /// Returns the views of the paths between two hosts, or none if switches choose. `known_down` holds links that
    /// the sender knows to be down before routing does.
    pub(crate) fn views(
        &self,
        topology: &Topology,
        (src, dst): (HostId, HostId),
        (data_wire_bytes, ack_wire_bytes): (u32, u32),
        known_down: &[LinkId],
    ) -> Vec<PathView> {
        let ChosenRoutes::Sources { sets, dead, headers } = self else { return Vec::new() };
        let states =
            sets.alive(topology, src, dst, |link| !dead.contains(&link) && !known_down.contains(&link));
        let view = |((id, hops), alive): ((u16, Vec<_>), bool)| {
            let links = u8::try_from(hops.len()).ok();
            let header = headers.as_ref().and_then(|headers| headers.of(src, dst, id));
            let path = PathProfile::chosen(hops, header);
            let rate = path.hops.iter().map(|(rate, _)| *rate).min();
            PathView {
                base_rtt: Some(path.round_trip(data_wire_bytes, ack_wire_bytes)),
                base_one_way: Some(path.one_way(data_wire_bytes)),
                transmission: Some(path.transmission(data_wire_bytes)),
                rate: rate.filter(|rate| *rate > Rate::ZERO),
                links,
                ..PathView::new(PathId(id), if alive { PathState::Up } else { PathState::Down })
            }
        };
        (0..).zip(sets.profiles(topology, src, dst)).zip(states).map(view).collect()
    }

    /// Returns the path, of all explicit ones, that takes a packet of `data_wire_bytes` longest when idle. The host
    /// with the slowest link stands for all hosts of its switch.
    pub(crate) fn longest(&self, topology: &Topology, data_wire_bytes: u32) -> Option<PathView> {
        let ChosenRoutes::Sources { sets, .. } = self else { return None };
        let mut slowest = vec![None; sets.edges().len()];
        for host in (0..topology.hosts()).map(HostId) {
            let links = topology.ports(host.into()).iter().map(|port| topology.egress(port));
            let times = links.map(|link| (link.rate.time_for(u64::from(data_wire_bytes)), link.delay));
            let time = times.max().expect("a host has a port");
            let known = &mut slowest[sets.edge_of(host) as usize];
            if known.is_none_or(|(longest, _)| time > longest) {
                *known = Some((time, host));
            }
        }
        let hosts: Vec<HostId> = slowest.into_iter().flatten().map(|(_, host)| host).collect();
        let pairs = hosts.iter().flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
        let views = pairs
            .filter(|(src, dst)| src != dst)
            .flat_map(|pair| self.views(topology, pair, (data_wire_bytes, data_wire_bytes), &[]));
        views.max_by_key(|view| view.base_one_way)
    }

    /// Returns true if the state of any path between two hosts differs from that under `before`.
    pub(crate) fn differs(
        &self,
        topology: &Topology,
        before: &BTreeSet<LinkId>,
        src: HostId,
        dst: HostId,
    ) -> bool {
        let ChosenRoutes::Sources { sets, dead, .. } = self else { return false };
        let now = sets.alive(topology, src, dst, |link| !dead.contains(&link));
        let then = sets.alive(topology, src, dst, |link| !before.contains(&link));
        now.ne(then)
    }
}

/// Returns the explicit paths between all edges as lists of ports.
pub(crate) fn source_routes(topology: &Topology, map: &PortMap, sets: &PathSets) -> SourceRoutes {
    let hosts = (0..topology.hosts()).map(HostId);
    let hosts =
        hosts.map(|host| Attachment { edge: sets.edge_of(host), ports: ports_to(topology, map, host) });
    let edges = sets.edges().len() as u32;
    let mut routes = SourceRoutes::new(hosts.collect(), edges);
    let hop = |hop: &Hop| {
        let (at_a, at_b) = map.ends(hop.link().index());
        if hop.from_a() { RouteHop { out: at_a, back: at_b } } else { RouteHop { out: at_b, back: at_a } }
    };
    for (from, to) in (0..edges).flat_map(|from| (0..edges).map(move |to| (from, to))) {
        let paths = sets.between_edges(from, to).zip(sets.nic_ports_between_edges(from, to));
        routes.add_pair(paths.map(|(hops, ends)| RoutePath { ends: *ends, hops: hops.iter().map(hop) }));
    }
    routes
}

/// Returns the egress ports of switches that lead to a host, in the order of its NIC ports.
pub(crate) fn ports_to(topology: &Topology, map: &PortMap, host: HostId) -> Vec<PortId> {
    let ports = topology.ports(host.into()).iter();
    let ends = ports.map(|port| (port, map.ends(port.link.index())));
    ends.map(|(port, (at_a, at_b))| if port.is_a { at_b } else { at_a }).collect()
}

/// Rates of the NIC ports, and of all explicit paths between two hosts together.
struct ChosenEnds {
    nic_ports: (u32, u32),
    line_rate: Rate,
    most: Rate,
}

impl ChosenEnds {
    fn new(
        topology: &Topology,
        sets: &PathSets,
        dead: &BTreeSet<LinkId>,
        (src, dst): (HostId, HostId),
        paths: &[PathProfile],
    ) -> Self {
        let ports = |from, to| sets.leading_ports(from, to);
        let (out, back) = (ports(src, dst), ports(dst, src));
        let line_rate = rate_of_ports(topology, src, out);
        let ends = line_rate.min(receiving_rate(topology, dst));
        // In most networks one path carries the full rate of the ends.
        let most = match paths.iter().map(|path| path.most).max() {
            Some(most) if most >= ends => ends,
            _ => max_flow(living_links(topology, sets, dead, (src, dst)), src.into(), dst.into()),
        };
        ChosenEnds { nic_ports: (out.count_ones(), back.count_ones()), line_rate, most }
    }

    /// Sets what the paths have together.
    fn apply_to(&self, path: &mut PathProfile) {
        path.nic_ports = self.nic_ports;
        (path.line_rate, path.nic_rate, path.most) = (self.line_rate, self.line_rate, self.most);
        path.order = PacketOrder::Free;
    }
}

/// Returns the directed links on explicit paths between two hosts, without the dead ones.
fn living_links(
    topology: &Topology,
    sets: &PathSets,
    dead: &BTreeSet<LinkId>,
    (src, dst): (HostId, HostId),
) -> Vec<(NodeId, NodeId, Rate)> {
    let links = sets.links(topology, src, dst).flat_map(|links| {
        let mut at = NodeId::from(src);
        links.into_iter().map(move |link| {
            let ends = topology.link(link);
            let from = at;
            at = if ends.a == at { ends.b } else { ends.a };
            (from, at, link)
        })
    });
    let links: BTreeSet<(NodeId, NodeId, LinkId)> =
        links.filter(|(_, _, link)| !dead.contains(link)).collect();
    let rate = |from, link| topology.direction(link, topology.link(link).a == from).rate;
    links.into_iter().map(|(from, to, link)| (from, to, rate(from, link))).collect()
}
