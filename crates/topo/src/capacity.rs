//! Capacity of hosts and tiers, to which the throughput of a workload is compared.

use pathweave_units::{HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};
use crate::servers::Servers;

/// Total capacity of the switches of one tier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierCapacity {
    /// Number of the tier. Tier 0 has the ToRs or leaves.
    pub tier: u8,
    /// Number of switches of the tier.
    pub switches: u32,
    /// Total rate of links to hosts and lower tiers, in one direction.
    pub down: Rate,
    /// Total rate of links to higher tiers, in one direction.
    pub up: Rate,
}

impl TierCapacity {
    /// Returns the ratio of capacity down to capacity up, such as 2.0 for "2:1", or `None` for a tier without links
    /// up.
    pub fn oversubscription(&self) -> Option<f64> {
        (self.up > Rate::ZERO).then(|| self.down.as_bps() as f64 / self.up.as_bps() as f64)
    }
}

impl Topology {
    /// Returns the total rate of a host's ports, each in its faster direction: an upper bound of what the host can send
    /// or receive.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.rate_of(self.ports(host.into()))
    }

    /// Returns the rate at which a host can send or receive outside its scale-up network: the total of its other ports,
    /// each no faster than the NIC or PCIe link that it leads to.
    pub fn scale_out_rate(&self, host: HostId) -> Rate {
        let Some(servers) = self.servers() else { return self.host_rate(host) };
        let out = self.ports(host.into()).iter().filter_map(|port| {
            let switch = self.switch_index(port.peer).filter(|&switch| !servers.has_chip(switch))?;
            let rate = self.rate_of([port]);
            Some(if servers.has_part(switch) { rate.min(self.rate_beyond(port.peer)) } else { rate })
        });
        out.fold(Rate::ZERO, Rate::saturating_add)
    }

    /// Returns the rate at which `host` alone can send to `peer`, or receive from it: that of its scale-up network if
    /// it joins both, and [`Topology::scale_out_rate`] otherwise.
    pub fn rate_between(&self, host: HostId, peer: HostId) -> Rate {
        let network =
            self.servers().and_then(Servers::any_scale_up).filter(|network| network.joins(host, peer));
        network.map_or_else(|| self.scale_out_rate(host), |network| network.rate_of(host))
    }

    /// Returns the NIC that a host shares with others, by the index of its switch, and the total rate of its ports to
    /// the network.
    pub fn shared_nic(&self, host: HostId) -> Option<(usize, Rate)> {
        let servers = self.servers().filter(|servers| servers.nics() < servers.gpus())?;
        self.ports(host.into()).iter().find_map(|port| {
            let nic = self.switch_index(port.peer).filter(|&switch| servers.has_part(switch))?;
            Some((nic, self.rate_beyond(port.peer)))
        })
    }

    /// Returns the total rate of a NIC's ports that do not lead to hosts.
    fn rate_beyond(&self, nic: NodeId) -> Rate {
        self.rate_of(self.ports(nic).iter().filter(|port| !self.is_host(port.peer)))
    }

    fn rate_of<'a>(&self, ports: impl IntoIterator<Item = &'a PortRef>) -> Rate {
        let faster = |port| self.egress(port).rate.max(self.ingress(port).rate);
        ports.into_iter().map(faster).fold(Rate::ZERO, Rate::saturating_add)
    }

    /// Returns the capacity of each tier that has switches, from the lowest, without the chips of scale-up networks.
    pub fn tiers(&self) -> Vec<TierCapacity> {
        let tier_of = |node: NodeId| self.switch_index(node).map(|index| self.switches()[index].tier);
        let empty = |tier| TierCapacity { tier, switches: 0, down: Rate::ZERO, up: Rate::ZERO };
        let mut tiers: Vec<TierCapacity> = (0..=u8::MAX).map(empty).collect();
        for (index, switch) in self.switches().iter().enumerate() {
            if self.servers().is_some_and(|servers| servers.has_chip(index)) {
                continue;
            }
            let capacity = &mut tiers[usize::from(switch.tier)];
            capacity.switches += 1;
            for port in self.ports(self.switch_node(index)) {
                let rate = self.egress(port).rate;
                match tier_of(port.peer) {
                    Some(peer) if peer == switch.tier => {}
                    Some(peer) if peer > switch.tier => capacity.up = capacity.up.saturating_add(rate),
                    _ => capacity.down = capacity.down.saturating_add(rate),
                }
            }
        }
        tiers.retain(|tier| tier.switches > 0);
        tiers
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Build, FatTree, Topology, presets};
    use pathweave_units::{HostId, Rate};

    /// Returns the oversubscription of the aggregation tier.
    fn at_aggs(topology: &Topology) -> f64 {
        topology.tiers()[1].oversubscription().unwrap()
    }

    #[test]
    fn the_udmp_presets_are_oversubscribed_as_named() {
        for (name, ratio) in
            [("udmp-320", 1.0), ("udmp-320-2to1", 2.0), ("udmp-320-4to1", 4.0), ("udmp-320-8to1", 8.0)]
        {
            let preset = presets().iter().find(|preset| preset.name == name).unwrap();
            let topology = preset.config.build(Path::new(".")).unwrap();
            assert_eq!(at_aggs(&topology), ratio, "{name}");
            assert_eq!(topology.tiers()[0].oversubscription(), Some(1.0));
            assert_eq!(topology.tiers()[2].oversubscription(), None);
            assert_eq!(topology.host_rate(HostId(7)), Rate::from_gbps(100));
        }
    }

    #[test]
    fn the_field_oversubscribes_by_slower_links() {
        let config = FatTree { oversubscription: Some(4.0), ..FatTree::k_ary(8) };
        let topology = config.build(Path::new(".")).unwrap();
        assert_eq!(at_aggs(&topology), 4.0);
        assert_eq!(topology.links().last().unwrap().rate, Rate::from_gbps(25));
    }
}
