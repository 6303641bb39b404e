//! Rates and delays along a shortest path.

use std::collections::BTreeSet;

use pathweave_policy::Scheme;
use pathweave_topo::{Edge, NodeId, Routing, Topology, leading_ports, max_flow, rate_of_ports};
use pathweave_units::{Duration, Forwarding, HostId, Rate, Spread};
use pathweave_workload::Message;

use crate::chosen_routes::ChosenRoutes;
use crate::route_headers::RouteHeader;
use crate::spec::{SimError, SimSpec};

/// The hops of a shortest path, in order, and what the two ends can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathProfile {
    /// Rate and delay of each hop.
    pub hops: Vec<(Rate, Duration)>,
    /// NIC ports of the sender that lead to the receiver, and of the receiver that lead back.
    pub nic_ports: (u32, u32),
    /// What the sender's NIC ports can send together.
    pub line_rate: Rate,
    /// The same as far as the host's own switch, if it has one, sends it on over shortest paths.
    pub nic_rate: Rate,
    /// The most that the network carries from one to the other over all paths together.
    pub most: Rate,
    /// Links to the external switch by which it leaves the sender's site, if it does and switches choose the way.
    pub to_edge: Option<u8>,
    /// Header by which switches know the way, if packets carry one.
    pub header: Option<RouteHeader>,
}

impl PathProfile {
    /// The part of it up to the external switch by which it leaves the sender's site, if it does.
    pub fn up_to_edge(&self) -> Option<PathProfile> {
        let links = usize::from(self.to_edge?);
        Some(PathProfile { hops: self.hops[..links].to_vec(), ..self.clone() })
    }

    /// Time of a packet on the idle path, first bit out to last bit in (store and forward). `wire_bytes` are those of the
    /// packet without the header of its route.
    pub fn one_way(&self, wire_bytes: u32) -> Duration {
        self.transmission(wire_bytes) + self.hops.iter().map(|(_, delay)| *delay).sum()
    }

    /// Of that, what transmitters take.
    pub fn transmission(&self, wire_bytes: u32) -> Duration {
        let bytes = u64::from(wire_bytes + self.header.map_or(0, RouteHeader::len));
        self.hops.iter().map(|(rate, _)| rate.time_for(bytes)).sum()
    }

    /// Time from a packet's first bit to the last bit of its acknowledgement, when idle and the way back is alike.
    pub fn round_trip(&self, data_wire_bytes: u32, ack_wire_bytes: u32) -> Duration {
        self.one_way(data_wire_bytes) + self.one_way(ack_wire_bytes)
    }

    /// What the sender's NIC port can send.
    pub fn port_rate(&self) -> Rate {
        self.hops[0].0
    }

    /// A path whose source chooses it, from a host with one port: others carry nothing of its messages.
    pub(crate) fn chosen(hops: Vec<(Rate, Duration)>, header: Option<RouteHeader>) -> Self {
        let most = hops.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::ZERO);
        PathProfile {
            nic_ports: (1, 1),
            line_rate: hops[0].0,
            nic_rate: hops[0].0,
            most,
            to_edge: None,
            header,
            hops,
        }
    }

    /// The same for a message that takes one path or all.
    pub fn used(mut self, paths: PathUse) -> PathProfile {
        if paths == PathUse::One {
            self.most = self.hops.iter().map(|(rate, _)| *rate).min().unwrap_or(Rate::ZERO);
        }
        self
    }
}

/// Which paths the packets of a message may take at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathUse {
    /// One.
    One,
    /// All.
    All,
}

impl PathUse {
    /// Of a scheme over switches that balance load like this.
    pub fn of(scheme: &Scheme, forwarding: Forwarding) -> Self {
        let is_single = scheme.as_fluid().spread.is_some_and(Spread::is_single) && scheme.queue_pairs == 1;
        if is_single && forwarding == Forwarding::Ecmp { PathUse::One } else { PathUse::All }
    }
}

/// Links that a packet may cross: over 64 switches, as explicit paths may. Its header counts them in eight bits.
const MAX_LINKS_OF_A_WAY: usize = 65;

/// Refuses messages between hosts that are too far apart.
pub(crate) fn check_distances(spec: &SimSpec, routes: &ChosenRoutes) -> Result<(), SimError> {
    let topology = &*spec.topology;
    if topology.links_apart_at_most() as usize <= MAX_LINKS_OF_A_WAY {
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

/// Follows first next hops from `src` to `dst`; `None` if there is no way.
pub fn profile(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> Option<PathProfile> {
    let leading = |from, to| leading_ports(topology, routing, from, to);
    let (out, back) = (leading(src, dst), leading(dst, src));
    let mut node = NodeId(src.0);
    let mut hops = Vec::with_capacity(8);
    let mut to_edge = None;
    while node.0 != dst.0 {
        let next = routing.from_node(node, dst);
        if next.is_empty() || hops.len() == MAX_LINKS_OF_A_WAY {
            return None;
        }
        let first = if node.0 == src.0 { out.trailing_zeros() as u16 } else { next.get(0) };
        let port = topology.ports(node)[usize::from(first)];
        let link = topology.link(port.link);
        if to_edge.is_none() && topology.sites().is_some_and(|sites| sites.is_wan(port.link)) {
            to_edge = u8::try_from(hops.len()).ok();
        }
        hops.push((link.rate, link.delay));
        node = port.peer;
    }
    let nic_ports = (out.count_ones(), back.count_ones());
    let line_rate = rate_of_ports(topology, src, out);
    let ends = line_rate.min(rate_of_ports(topology, dst, back));
    // Mostly one path carries what the ends can.
    let most = match hops.iter().map(|(rate, _)| *rate).min() {
        Some(narrowest) if narrowest >= ends => ends,
        _ => max_flow(shortest_links(topology, routing, (src, dst), out), src.into(), dst.into()),
    };
    let nic_rate = match topology.edge() {
        Edge::Network => line_rate,
        Edge::Host => line_rate.min(beyond(topology, routing, src, dst)),
    };
    Some(PathProfile { hops, nic_ports, line_rate, nic_rate, most, to_edge, header: None })
}

/// What the switch of a host with one port can send on towards another host.
fn beyond(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> Rate {
    let switch = topology.ports(src.into())[0].peer;
    let onward = routing.from_node(switch, dst).iter().map(|port| &topology.ports(switch)[usize::from(port)]);
    Rate::from_bps(onward.map(|port| topology.link(port.link).rate.as_bps()).sum())
}

/// The directions of links on shortest paths from `src`, by these ports of it, to `dst`.
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
            links.push((node, port.peer, topology.link(port.link).rate));
            if port.peer.0 != dst.0 && seen.insert(port.peer) {
                nodes.push(port.peer);
            }
        }
    }
    links
}
