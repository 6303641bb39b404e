//! NIC ports of hosts with several: which of them lead to a peer.

use pathweave_topo::{NodeId, PortRef, Routing, Topology};
use pathweave_units::{HostId, Rate};

/// Ports less than this part as fast as the fastest that leads to a peer are not used beside it: they belong to another network
/// (scale-out beside scale-up), whose packets would be the last of each message.
const SLOWEST_PART: u64 = 4;

/// Whether some host has several ports.
pub(crate) fn has_several(topology: &Topology) -> bool {
    (0..topology.hosts()).any(|host| topology.ports(NodeId(host)).len() > 1)
}

/// The ports of `src` on shortest paths to `dst`, without those that are much slower than another of them; a bit each. 0: there
/// is no way.
pub(crate) fn leading(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> u64 {
    let ports = topology.ports(src.into());
    if ports.len() == 1 {
        return u64::from(!routing.from_host(src, dst).is_empty());
    }
    let hops = routing.from_host(src, dst);
    let rate = |port: u16| rate(topology, &ports[usize::from(port)]);
    let fastest = hops.iter().map(rate).max().unwrap_or(Rate::ZERO);
    let used =
        hops.iter().filter(|port| rate(*port).as_bps().saturating_mul(SLOWEST_PART) >= fastest.as_bps());
    used.fold(0, |bits, port| bits | 1 << port)
}

/// What these ports of a host can send together.
pub(crate) fn rate_of(topology: &Topology, host: HostId, ports: u64) -> Rate {
    let of_host = topology.ports(host.into()).iter().enumerate();
    let used = of_host.filter(|(index, _)| ports >> index & 1 == 1);
    Rate::from_bps(used.map(|(_, port)| rate(topology, port).as_bps()).sum())
}

fn rate(topology: &Topology, port: &PortRef) -> Rate {
    topology.link(port.link).rate
}
