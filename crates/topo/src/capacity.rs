//! Capacity of hosts and tiers, to which the throughput of a workload is compared.

use pathweave_units::{HostId, Rate};

use crate::graph::{NodeId, PortRef, Topology};

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

    /// Returns the total rate of a host's ports without those of a scale-up network, each in its faster direction.
    pub fn scale_out_rate(&self, host: HostId) -> Rate {
        let Some(servers) = self.servers() else { return self.host_rate(host) };
        let is_out =
            |port: &&PortRef| self.switch_index(port.peer).is_some_and(|switch| !servers.has_chip(switch));
        self.rate_of(self.ports(host.into()).iter().filter(is_out))
    }

    fn rate_of<'a>(&self, ports: impl IntoIterator<Item = &'a PortRef>) -> Rate {
        let faster = |port| self.egress(port).rate.max(self.ingress(port).rate);
        ports.into_iter().map(faster).fold(Rate::ZERO, Rate::saturating_add)
    }

    /// Returns the total rate of all hosts' ports, an upper bound of the throughput of any workload.
    pub fn hosts_rate(&self) -> Rate {
        (0..self.hosts()).map(|host| self.host_rate(HostId(host))).fold(Rate::ZERO, Rate::saturating_add)
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
            assert_eq!(topology.hosts_rate(), Rate::from_gbps(32_000));
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
