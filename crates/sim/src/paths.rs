//! Rates and delays along a path.

use std::collections::BTreeSet;

use pathweave_policy::Scheme;
use pathweave_topo::{
    HostAttachment, NodeId, Routing, Topology, leading_ports, max_flow, rate_of_ports, receiving_rate,
};
use pathweave_units::{Duration, Forwarding, HostId, Rate, Spread};
use pathweave_workload::Message;

use crate::chosen_routes::ChosenRoutes;
use crate::route_headers::RouteHeader;
use crate::spec::{SimError, SimSpec};
use crate::unequal_paths::{Alternative, alternatives};

/// Hops of a path in order, and the rates of its two ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathProfile {
    /// Rate and delay of each hop.
    pub hops: Vec<(Rate, Duration)>,
    /// Number of NIC ports of the sender that lead to the receiver, and of the receiver that lead back.
    pub nic_ports: (u32, u32),
    /// Total rate of the sender's NIC ports that lead to the receiver.
    pub line_rate: Rate,
    /// Line rate, limited by the rate at which the host's own switch, if it has one, forwards over shortest paths.
    pub nic_rate: Rate,
    /// Largest rate that the network carries from one end to the other over all paths together.
    pub most: Rate,
    /// Mean propagation delay of packets that use all paths with [`most`](Self::most) together. `None` if all have the
    /// delay of the hops.
    pub mean_delay: Option<Duration>,
    /// Order of packets that use all paths at the same time.
    pub order: PacketOrder,
    /// Number of links up to the external switch by which the path leaves the sender's site. `None` if it stays
    /// inside or if sources choose paths.
    pub to_edge: Option<u8>,
    /// Header that packets carry so that switches can follow the path, if any.
    pub header: Option<RouteHeader>,
}

impl PathProfile {
    /// Returns the section up to the external switch by which the path leaves the sender's site, if it does.
    pub fn up_to_edge(&self) -> Option<PathProfile> {
        let links = usize::from(self.to_edge?);
        Some(PathProfile { hops: self.hops[..links].to_vec(), mean_delay: None, ..self.clone() })
    }

    /// Returns the time of a packet on the idle path, first bit sent to last bit received, with store and forward.
    /// `wire_bytes` does not include the header of the route.
    pub fn one_way(&self, wire_bytes: u32) -> Duration {
        self.transmission(wire_bytes) + self.hops.iter().map(|(_, delay)| *delay).sum()
    }

    /// Returns the part of [`PathProfile::one_way`] that transmitters take, without propagation.
    pub fn transmission(&self, wire_bytes: u32) -> Duration {
        let bytes = u64::from(wire_bytes + self.header.map_or(0, RouteHeader::len));
        self.hops.iter().map(|(rate, _)| rate.time_for(bytes)).sum()
    }

    /// Returns the time from a packet's first bit to the last bit of its acknowledgement, on idle paths, with a
    /// return path like the forward path.
    pub fn round_trip(&self, data_wire_bytes: u32, ack_wire_bytes: u32) -> Duration {
        self.one_way(data_wire_bytes) + self.one_way(ack_wire_bytes)
    }

    /// Returns the rate of the sender's NIC port.
    pub fn port_rate(&self) -> Rate {
        self.hops[0].0
    }

    /// Creates the profile of an explicit path from a host with one port. A message uses no other path.
    pub fn chosen(hops: Vec<(Rate, Duration)>, header: Option<RouteHeader>) -> Self {
        let most = hops.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::ZERO);
        PathProfile {
            nic_ports: (1, 1),
            line_rate: hops[0].0,
            nic_rate: hops[0].0,
            most,
            mean_delay: None,
            order: PacketOrder::Kept,
            to_edge: None,
            header,
            hops,
        }
    }

    /// Returns the rate of a hop. One with less than the rate of all paths together stands for several parallel links.
    pub(crate) fn pace(&self, hop: usize) -> Rate {
        self.hops[hop].0.max(self.most)
    }

    /// Returns the profile for a message that uses one path or all paths.
    pub fn used(mut self, paths: PathUse) -> PathProfile {
        if paths == PathUse::One {
            self.order = PacketOrder::Kept;
            self.mean_delay = None;
            self.most = self.hops.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::ZERO);
        }
        self
    }
}

/// Order of a message's packets between the first hop and the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOrder {
    /// All packets take one path, on which none overtakes another.
    Kept,
    /// Packets take several paths, on which short ones overtake long ones.
    Free,
}

/// Paths that the packets of a message may use at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathUse {
    /// One path.
    One,
    /// All paths.
    All,
}

impl PathUse {
    /// Returns the use of paths by a scheme over switches with this load balancing.
    pub fn of(scheme: &Scheme, forwarding: Forwarding) -> Self {
        let is_single = scheme.as_fluid().spread.is_some_and(Spread::is_single) && scheme.queue_pairs == 1;
        let keeps_path = matches!(forwarding, Forwarding::Ecmp | Forwarding::Wcmp);
        if is_single && keeps_path { PathUse::One } else { PathUse::All }
    }
}

/// Largest number of links on a route: 65, over 64 switches, the limit of explicit paths. The packet's header counts
/// links in eight bits.
pub(crate) const MAX_LINKS_OF_A_WAY: usize = 65;

/// Returns an error if the hosts of any message are too far apart.
pub(crate) fn check_distances(spec: &SimSpec, routes: &ChosenRoutes) -> Result<(), SimError> {
    let topology = &*spec.topology;
    if topology.diameter_bound() as usize <= MAX_LINKS_OF_A_WAY {
        return Ok(());
    }
    for &Message { src, dst, .. } in spec.graph.messages() {
        if routes.profiles(topology, src, dst).is_empty() {
            let [from, to] = [src, dst].map(|host| topology.node_name(host.into()));
            let most = MAX_LINKS_OF_A_WAY - 1;
            let what =
                format!("{from} and {to} are more than {most} switches apart; at most {most} are allowed");
            return Err(SimError::Network(what));
        }
    }
    Ok(())
}

/// Returns the profile of the nearest path from `src` to `dst`: the one of [`profiles`] with the shortest idle time.
pub fn profile(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> Option<PathProfile> {
    profiles(topology, routing, src, dst).into_iter().next()
}

/// Returns profiles of the shortest paths from `src` to `dst`, the nearest first. The least ideal time of a message over
/// them is that of the network. One profile stands for all paths if these are alike. The numbers of nodes and ports do
/// not affect the result. It is empty if there is no route.
pub fn profiles(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> Vec<PathProfile> {
    let leading = |from, to| leading_ports(topology, routing, from, to);
    let (out, back) = (leading(src, dst), leading(dst, src));
    let line_rate = rate_of_ports(topology, src, out);
    let ends = line_rate.min(receiving_rate(topology, dst));
    let found = if topology.has_alike_paths(routing, (src, dst), out) {
        first_path(topology, routing, (src, dst), out, ends).into_iter().collect()
    } else {
        alternatives(topology, routing, (src, dst), out, ends)
    };
    if found.is_empty() {
        return Vec::new();
    }
    let nic_rate = match own_switch(topology, src, out) {
        Some(switch) => line_rate.min(beyond(topology, routing, switch, dst)),
        None => line_rate,
    };
    let nic_ports = (out.count_ones(), back.count_ones());
    let profile = |Alternative { hops, most, mean_delay, order, to_edge }| PathProfile {
        hops,
        nic_ports,
        line_rate,
        nic_rate,
        most,
        mean_delay,
        order,
        to_edge,
        header: None,
    };
    found.into_iter().map(profile).collect()
}

/// Follows the first next hops from `src` to `dst`, where all paths are alike. Returns `None` if there is no route.
fn first_path(
    topology: &Topology,
    routing: &Routing,
    (src, dst): (HostId, HostId),
    out: u64,
    ends: Rate,
) -> Option<Alternative> {
    let mut node = NodeId(src.0);
    let mut hops = Vec::with_capacity(8);
    let mut to_edge = None;
    let mut order = PacketOrder::Kept;
    while node.0 != dst.0 {
        let next = routing.from_node(node, dst);
        if next.is_empty() || hops.len() == MAX_LINKS_OF_A_WAY {
            return None;
        }
        let is_source = node.0 == src.0;
        if if is_source { out.count_ones() > 1 } else { next.len() > 1 } {
            order = PacketOrder::Free;
        }
        let first = if is_source { out.trailing_zeros() as u16 } else { next.get(0) };
        let port = topology.ports(node)[usize::from(first)];
        let link = topology.egress(&port);
        if to_edge.is_none() && topology.sites().is_some_and(|sites| sites.is_wan(port.link)) {
            to_edge = u8::try_from(hops.len()).ok();
        }
        hops.push((link.rate, link.delay));
        node = port.peer;
    }
    // In most networks one path carries the full rate of the ends.
    let most = match hops.iter().map(|(rate, _)| *rate).min() {
        Some(narrowest) if narrowest >= ends => ends,
        _ => max_flow(shortest_links(topology, routing, (src, dst), out), src.into(), dst.into()),
    };
    Some(Alternative { hops, most, mean_delay: None, order, to_edge })
}

/// Returns the switch that is part of a host, if the only port of the host in `out` leads to it: its NIC, or its router
/// in a scale-up network.
fn own_switch(topology: &Topology, host: HostId, out: u64) -> Option<NodeId> {
    if out.count_ones() != 1 {
        return None;
    }
    let first = out.trailing_zeros() as usize;
    let peer = topology.ports(host.into())[first].peer;
    let router = || topology.servers().and_then(|servers| servers.router(host));
    // Of the ports to NICs and PCIe, only the first leads to a switch that is part of the host.
    let is_own = topology.edge() == HostAttachment::Host && first == 0
        || router().is_some_and(|router| topology.switch_node(router) == peer);
    is_own.then_some(peer)
}

/// Returns the rate at which the switch of a host can forward towards another host.
fn beyond(topology: &Topology, routing: &Routing, switch: NodeId, dst: HostId) -> Rate {
    let onward = routing.from_node(switch, dst).iter().map(|port| &topology.ports(switch)[usize::from(port)]);
    Rate::from_bps(onward.map(|port| topology.egress(port).rate.as_bps()).sum())
}

/// Returns the directed links on shortest paths from these ports of `src` to `dst`.
fn shortest_links(
    topology: &Topology,
    routing: &Routing,
    (src, dst): (HostId, HostId),
    out: u64,
) -> Vec<(NodeId, NodeId, Rate)> {
    let mut links = Vec::new();
    let mut seen = BTreeSet::from([NodeId(src.0)]);
    let mut nodes = vec![NodeId(src.0)];
    while let Some(node) = nodes.pop() {
        let is_src = node.0 == src.0;
        let hops = routing.from_node(node, dst).iter().filter(|port| !is_src || out >> port & 1 == 1);
        for port in hops.map(|port| &topology.ports(node)[usize::from(port)]) {
            links.push((node, port.peer, topology.egress(port).rate));
            if port.peer.0 != dst.0 && seen.insert(port.peer) {
                nodes.push(port.peer);
            }
        }
    }
    links
}
