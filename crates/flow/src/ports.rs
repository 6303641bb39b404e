//! Ports of a network: which belong to hosts, their rates, and their other ends.

use pathweave_fabric::{PortId, PortMap};
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::{NodeId, Topology};
use pathweave_units::Rate;

/// Returns for each port whether it belongs to a host, or to a switch that is part of one.
pub(crate) fn ports_of_hosts(topology: &Topology, ports: &PortMap) -> Vec<bool> {
    let mut of_hosts = vec![false; ports.len() as usize];
    let hosts = (0..topology.hosts()).map(NodeId);
    for port in hosts.chain(topology.switches_of_hosts()).flat_map(|node| ports.ports(node.0)) {
        of_hosts[port as usize] = true;
    }
    of_hosts
}

/// Returns for each egress port whether its direction of a link is up, and its rate.
pub(crate) fn port_rates(
    ways: &PacketFreeNetwork<'_>,
    topology: &Topology,
    ports: usize,
) -> Vec<(bool, Rate)> {
    let mut rates = vec![(false, Rate::ZERO); ports];
    for link in 0..topology.links().len() {
        let (a, b) = ways.ports().ends(link);
        for (port, from_a) in [(a, true), (b, false)] {
            rates[port as usize] = ways.direction(pathweave_topo::LinkId(link as u32), from_a);
        }
    }
    rates
}

/// Returns the egress port at the other end of a port's link.
pub(crate) fn other_end(ways: &PacketFreeNetwork<'_>, topology: &Topology, port: PortId) -> PortId {
    let (node, _) = ways.ends(port);
    let at = topology.ports(NodeId(node))[(port - ways.ports().ports(node).start) as usize];
    ways.ports().ports(at.peer.0).start + PortId::from(at.peer_port)
}
