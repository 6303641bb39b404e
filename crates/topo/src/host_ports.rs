//! NIC ports of a host with several ports: selection of those that lead to a peer.

use pathweave_units::{HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};
use crate::routing::Routing;
use crate::scale_up_ports::scale_up_ports;

/// Inverse of the smallest rate of a port relative to the fastest port that leads to the same peer. Slower ports are
/// not used, because they belong to another network (scale-out beside scale-up) and would carry the last packets of
/// each message.
const MAX_RATE_RATIO: u64 = 4;

/// Returns the ports of `src` on shortest paths to `dst`, as a bit set, or 0 if there is no route. Excludes ports
/// with less than a quarter of the rate of the fastest of them. Hosts of one scale-up network use its ports as long as
/// they have any.
pub fn leading_ports(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> u64 {
    let ports = topology.ports(src.into());
    let hops = routing.from_host(src, dst);
    if ports.len() == 1 {
        return u64::from(!hops.is_empty());
    }
    let rate = |port: u16| rate(topology, &ports[usize::from(port)]).as_bps();
    let inside = scale_up_ports(topology, src, dst);
    let has_inside = hops.iter().any(|port| inside >> port & 1 == 1);
    let hops = || hops.iter().filter(|port| !has_inside || inside >> port & 1 == 1);
    let fastest = hops().map(rate).max().unwrap_or(0);
    let used = hops().filter(|port| rate(*port).saturating_mul(MAX_RATE_RATIO) >= fastest);
    used.fold(0, |bits, port| bits | 1 << port)
}

/// Returns the ports of a node that lead towards `dst`: for a host those of [`leading_ports`], for a switch all ports
/// on shortest paths.
pub(crate) fn forwarding_ports(
    topology: &Topology,
    routing: &Routing,
    node: NodeId,
    dst: HostId,
) -> impl Iterator<Item = u16> {
    let host = topology.as_host(node);
    let leading = host.map_or(u64::MAX, |host| leading_ports(topology, routing, host, dst));
    let hops = routing.from_node(node, dst).iter();
    hops.filter(move |port| host.is_none() || leading >> port & 1 == 1)
}

/// Returns the total rate of the ports of a host that are set in `ports`.
pub fn rate_of_ports(topology: &Topology, host: HostId, ports: u64) -> Rate {
    let of_host = topology.ports(host.into()).iter().enumerate();
    let used = of_host.filter(|(index, _)| ports >> index & 1 == 1);
    Rate::from_bps(used.map(|(_, port)| rate(topology, port).as_bps()).sum())
}

/// Returns the total rate of the links into a host. Packets may arrive at ports that [`leading_ports`] leaves out for the
/// other direction.
pub fn receiving_rate(topology: &Topology, host: HostId) -> Rate {
    let ports = topology.ports(host.into()).iter();
    Rate::from_bps(ports.map(|port| topology.ingress(port).rate.as_bps()).sum())
}

fn rate(topology: &Topology, port: &PortRef) -> Rate {
    topology.egress(port).rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Link, Switch};
    use pathweave_units::Duration;

    /// Returns two hosts at three switches, with links of these rates in Gb/s.
    fn hosts(rates: [u64; 3]) -> (Topology, Routing) {
        let switch = |name: &str| Switch { name: name.into(), tier: 0, group: None };
        let link = |(index, gbps): (usize, &u64), host| Link {
            a: NodeId(host),
            b: NodeId(2 + index as u32),
            rate: Rate::from_gbps(*gbps),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        let of = |host| rates.iter().enumerate().map(move |rate| link(rate, host));
        let links = of(0).chain(of(1)).collect();
        let topology =
            Topology::new("nics", 2, ["a", "b", "c"].map(switch).into(), links).expect("two hosts");
        let routing = Routing::all_links_up(&topology);
        (topology, routing)
    }

    #[test]
    fn ports_of_another_network_are_left_alone() {
        let leading = |rates| {
            let (topology, routing) = hosts(rates);
            let ports = leading_ports(&topology, &routing, HostId(0), HostId(1));
            (ports, rate_of_ports(&topology, HostId(0), ports).as_bps() / 1_000_000_000)
        };
        assert_eq!(leading([400, 400, 400]), (0b111, 1_200));
        assert_eq!(leading([400, 100, 400]), (0b111, 900), "a quarter is enough");
        assert_eq!(leading([3_600, 400, 400]), (0b001, 3_600), "NVLink beside two NICs");
    }
}
