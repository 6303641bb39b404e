//! Rates and delays along a shortest path.

use pathweave_topo::{NodeId, Routing, Topology};
use pathweave_units::{Duration, HostId, Rate};
use pathweave_workload::Message;

use crate::chosen_routes::ChosenRoutes;
use crate::route_headers::RouteHeader;
use crate::spec::{SimError, SimSpec};

/// The hops of a shortest path, in order, and what the two ends can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathProfile {
    /// Rate and delay of each hop.
    pub hops: Vec<(Rate, Duration)>,
    /// NIC ports of the sender and of the receiver.
    pub nic_ports: (u32, u32),
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

    /// What the sender's NIC ports can send together.
    pub fn line_rate(&self) -> Rate {
        Rate::from_bps(self.port_rate().as_bps() * u64::from(self.nic_ports.0))
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
    let mut node = NodeId(src.0);
    let mut hops = Vec::with_capacity(8);
    let mut to_edge = None;
    while node.0 != dst.0 {
        let next = routing.from_node(node, dst);
        if next.is_empty() || hops.len() == MAX_LINKS_OF_A_WAY {
            return None;
        }
        let port = topology.ports(node)[usize::from(next.get(0))];
        let link = topology.link(port.link);
        if to_edge.is_none() && topology.sites().is_some_and(|sites| sites.is_wan(port.link)) {
            to_edge = u8::try_from(hops.len()).ok();
        }
        hops.push((link.rate, link.delay));
        node = port.peer;
    }
    let nics = |host: HostId| topology.ports(NodeId(host.0)).len() as u32;
    Some(PathProfile { hops, nic_ports: (nics(src), nics(dst)), to_edge, header: None })
}
