//! NIC ports of hosts with several: which of them lead to a peer.

use pathweave_units::{HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};
use crate::routing::Routing;

/// Ports less than this part as fast as the fastest that leads to a peer are not used beside it: they belong to another network
/// (scale-out beside scale-up), whose packets would be the last of each message.
const SLOWEST_PART: u64 = 4;

/// The ports of `src` on shortest paths to `dst`, without those less than a quarter as fast as another of them; a bit each. 0:
/// there is no way.
pub fn leading_ports(topology: &Topology, routing: &Routing, src: HostId, dst: HostId) -> u64 {
    let ports = topology.ports(src.into());
    let hops = routing.from_host(src, dst);
    if ports.len() == 1 {
        return u64::from(!hops.is_empty());
    }
    let rate = |port: u16| rate(topology, &ports[usize::from(port)]).as_bps();
    let fastest = hops.iter().map(rate).max().unwrap_or(0);
    let used = hops.iter().filter(|port| rate(*port).saturating_mul(SLOWEST_PART) >= fastest);
    used.fold(0, |bits, port| bits | 1 << port)
}

/// The ports of a node by which a packet for `dst` goes on: of a host those of [`leading_ports`], of a switch all on shortest paths.
pub(crate) fn onward(
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

/// Bits a second that these ports of a host, a bit each, send together.
pub fn rate_of_ports(topology: &Topology, host: HostId, ports: u64) -> Rate {
    let of_host = topology.ports(host.into()).iter().enumerate();
    let used = of_host.filter(|(index, _)| ports >> index & 1 == 1);
    Rate::from_bps(used.map(|(_, port)| rate(topology, port).as_bps()).sum())
}

fn rate(topology: &Topology, port: &PortRef) -> Rate {
    topology.link(port.link).rate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Link, Switch};
    use pathweave_units::Duration;

    /// Two hosts at three switches, by links of these rates in Gb/s.
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
        let routing = Routing::whole(&topology);
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
