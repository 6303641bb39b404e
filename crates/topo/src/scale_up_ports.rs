//! Ports of hosts to scale-up networks of packets.

use pathweave_units::HostId;

use crate::graph::{NodeId, Topology};

/// Returns the ports of `src` to a scale-up network that joins both hosts and carries packets, as a bit set.
pub fn scale_up_ports(topology: &Topology, src: HostId, dst: HostId) -> u64 {
    let Some(servers) = topology.servers().filter(|servers| servers.joins_by_packets(src, dst)) else {
        return 0;
    };
    let is_chip = |node: NodeId| topology.switch_index(node).is_none_or(|switch| servers.has_chip(switch));
    let ports = topology.ports(src.into()).iter().enumerate().filter(|(_, port)| is_chip(port.peer));
    ports.fold(0, |bits, (index, _)| bits | 1 << index)
}
