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
    /// Total rate of links between switches of the tier, in one direction, without those of the parts of servers.
    pub level: Rate,
    /// Smallest and largest ratio of capacity down to capacity up of a switch, if switches differ. Switches without
    /// links up do not count. `None` where the tier has no [`oversubscription`](Self::oversubscription).
    pub range: Option<[SwitchRatio; 2]>,
}

/// Ratio of capacity down to capacity up of a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchRatio {
    /// Index of the switch, the first of several with this ratio.
    pub switch: usize,
    /// Ratio, such as 2.0 for "2:1".
    pub ratio: f64,
}

/// Rates at which a host, or hosts together, can send and receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRates {
    /// Rate of sending.
    pub send: Rate,
    /// Rate of receiving.
    pub receive: Rate,
}

impl HostRates {
    /// Rates of a host without ports.
    const ZERO: HostRates = HostRates { send: Rate::ZERO, receive: Rate::ZERO };

    /// Creates the same rate both ways.
    pub fn alike(rate: Rate) -> Self {
        HostRates { send: rate, receive: rate }
    }

    /// Returns the lower rate each way.
    #[must_use]
    pub fn min(self, other: HostRates) -> HostRates {
        HostRates { send: self.send.min(other.send), receive: self.receive.min(other.receive) }
    }

    fn faster(self) -> Rate {
        self.send.max(self.receive)
    }

    fn plus(self, other: HostRates) -> HostRates {
        HostRates {
            send: self.send.saturating_add(other.send),
            receive: self.receive.saturating_add(other.receive),
        }
    }
}

impl TierCapacity {
    /// Returns the ratio of capacity down to capacity up, such as 2.0 for "2:1". `None` for a tier without links up, and
    /// for one whose switches are linked to each other, as in a torus or a mesh: traffic need not go up there.
    pub fn oversubscription(&self) -> Option<f64> {
        (self.up > Rate::ZERO && self.level == Rate::ZERO)
            .then(|| self.down.as_bps() as f64 / self.up.as_bps() as f64)
    }
}

impl Topology {
    /// Returns the total rate of a host's ports, each in its faster direction: an upper bound of what the host can send
    /// or receive.
    pub fn host_rate(&self, host: HostId) -> Rate {
        let ports = self.ports(host.into()).iter().map(|port| self.port_rates(port).faster());
        ports.fold(Rate::ZERO, Rate::saturating_add)
    }

    /// Returns the rate at which a host can send or receive outside its scale-up network: the total of its other ports,
    /// each in its faster direction and no faster than the NIC or PCIe link that it leads to.
    pub fn scale_out_rate(&self, host: HostId) -> Rate {
        self.scale_out_ports(host).map(HostRates::faster).fold(Rate::ZERO, Rate::saturating_add)
    }

    /// Returns the rates at which a host can send and receive outside its scale-up network: the total of its other
    /// ports, each no faster than the NIC or PCIe link that it leads to.
    pub fn scale_out_rates(&self, host: HostId) -> HostRates {
        self.scale_out_ports(host).fold(HostRates::ZERO, HostRates::plus)
    }

    /// Returns the rates of each port of a host outside its scale-up network.
    fn scale_out_ports(&self, host: HostId) -> impl Iterator<Item = HostRates> + '_ {
        self.ports(host.into()).iter().filter_map(move |port| {
            let rates = self.port_rates(port);
            let Some(servers) = self.servers() else { return Some(rates) };
            let switch = self.switch_index(port.peer).filter(|&switch| !servers.has_chip(switch))?;
            Some(if servers.has_part(switch) { rates.min(self.rates_beyond(port.peer)) } else { rates })
        })
    }

    /// Returns the rate at which `host` alone can send to `peer`, or receive from it: that of its scale-up network if
    /// it joins both, and [`Topology::scale_out_rate`] otherwise.
    pub fn rate_between(&self, host: HostId, peer: HostId) -> Rate {
        let network =
            self.servers().and_then(Servers::any_scale_up).filter(|network| network.joins(host, peer));
        network.map_or_else(|| self.scale_out_rate(host), |network| network.rate_of(host))
    }

    /// Returns the NIC that a host shares with others, by the index of its switch, and the total rate of its ports to
    /// the network, each in its faster direction.
    pub fn shared_nic(&self, host: HostId) -> Option<(usize, Rate)> {
        self.shared_nic_rates(host).map(|(nic, rates)| (nic, rates.faster()))
    }

    /// Returns the NIC that a host shares with others, by the index of its switch, and the rates of its ports to the
    /// network.
    pub fn shared_nic_rates(&self, host: HostId) -> Option<(usize, HostRates)> {
        let servers = self.servers().filter(|servers| servers.nics() < servers.gpus())?;
        self.ports(host.into()).iter().find_map(|port| {
            let nic = self.switch_index(port.peer).filter(|&switch| servers.has_part(switch))?;
            Some((nic, self.rates_beyond(port.peer)))
        })
    }

    /// Returns the total rates of a NIC's ports that do not lead to hosts.
    fn rates_beyond(&self, nic: NodeId) -> HostRates {
        let outwards = self.ports(nic).iter().filter(|port| !self.is_host(port.peer));
        outwards.map(|port| self.port_rates(port)).fold(HostRates::ZERO, HostRates::plus)
    }

    fn port_rates(&self, port: &PortRef) -> HostRates {
        HostRates { send: self.egress(port).rate, receive: self.ingress(port).rate }
    }

    /// Returns the capacity of each tier that has switches, from the lowest, without the chips of scale-up networks.
    pub fn tiers(&self) -> Vec<TierCapacity> {
        let none = Rate::ZERO;
        let empty = |tier| TierCapacity { tier, switches: 0, down: none, up: none, level: none, range: None };
        let mut tiers: Vec<TierCapacity> = (0..=u8::MAX).map(empty).collect();
        for (index, switch) in self.switches().iter().enumerate() {
            if self.servers().is_some_and(|servers| servers.has_chip(index)) {
                continue;
            }
            let (down, up, level) = self.down_up_and_level(index);
            let tier = &mut tiers[usize::from(switch.tier)];
            tier.switches += 1;
            if !self.servers().is_some_and(|servers| servers.has_part(index)) {
                tier.level = tier.level.saturating_add(level);
            }
            (tier.down, tier.up) = (tier.down.saturating_add(down), tier.up.saturating_add(up));
            if up > Rate::ZERO {
                let here = SwitchRatio { switch: index, ratio: down.as_bps() as f64 / up.as_bps() as f64 };
                let [least, most] = tier.range.get_or_insert([here; 2]);
                if here.ratio < least.ratio {
                    *least = here;
                }
                if here.ratio > most.ratio {
                    *most = here;
                }
            }
        }
        tiers.retain(|tier| tier.switches > 0);
        for tier in &mut tiers {
            let has_ratio = tier.oversubscription().is_some();
            tier.range = tier.range.filter(|[least, most]| has_ratio && least.ratio < most.ratio);
        }
        tiers
    }

    /// Returns the capacity of a switch to hosts and lower tiers, to higher tiers, and to others of its tier.
    fn down_up_and_level(&self, index: usize) -> (Rate, Rate, Rate) {
        let own = self.switches()[index].tier;
        let (mut down, mut up, mut level) = (Rate::ZERO, Rate::ZERO, Rate::ZERO);
        for port in self.ports(self.switch_node(index)) {
            let rate = self.egress(port).rate;
            match self.switch_index(port.peer).map(|peer| self.switches()[peer].tier) {
                Some(peer) if peer == own => level = level.saturating_add(rate),
                Some(peer) if peer > own => up = up.saturating_add(rate),
                _ => down = down.saturating_add(rate),
            }
        }
        (down, up, level)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{HostRates, SwitchRatio};
    use crate::{Build, FatTree, LeafSpine, Link, NodeId, Switch, Topology, Ways, presets};
    use pathweave_units::{Duration, HostId, Rate};

    /// Returns the oversubscription of the aggregation tier.
    fn at_aggs(topology: &Topology) -> f64 {
        topology.tiers()[1].oversubscription().unwrap()
    }

    /// A host with 100 Gb/s out and 40 Gb/s in over one port, and 10 Gb/s out and 50 Gb/s in over another.
    #[test]
    fn rates_of_sending_and_receiving_differ() {
        let links = [("host0-plane0", 100, 40), ("host0-plane1", 10, 50)];
        let link = |switch: u32| Link {
            a: NodeId(0),
            b: NodeId(2 + switch),
            rate: Rate::from_gbps(100),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        let other = |switch: u32| Link { a: NodeId(1), ..link(switch) };
        let switch = |number| Switch { name: format!("plane{number}"), tier: 0, group: None };
        let all = vec![link(0), link(1), other(0), other(1)];
        let mut topology = Topology::new("two", 2, vec![switch(0), switch(1)], all).unwrap();
        for (name, out, back) in links {
            let link = topology.link_by_name(name).unwrap();
            topology.set_rate(link, Ways::FromA, Rate::from_gbps(out));
            topology.set_rate(link, Ways::FromB, Rate::from_gbps(back));
        }
        let rates = topology.scale_out_rates(HostId(0));
        assert_eq!((rates.send, rates.receive), (Rate::from_gbps(110), Rate::from_gbps(90)));
        assert_eq!(topology.scale_out_rate(HostId(0)), Rate::from_gbps(150));
        assert_eq!(topology.scale_out_rates(HostId(1)), HostRates::alike(Rate::from_gbps(200)));
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

    /// Two leaves with four hosts of 100 Gb/s each. One has uplinks of 400 Gb/s in all, the other of 100 Gb/s.
    #[test]
    fn switches_of_a_tier_that_differ_have_a_range() {
        let even = LeafSpine { host_rate: Rate::from_gbps(100), ..LeafSpine::new(2, 1, 4) };
        let even = LeafSpine { spine_rate: Some(Rate::from_gbps(400)), ..even };
        let mut topology = even.build(Path::new(".")).unwrap();
        assert_eq!((topology.tiers()[0].oversubscription(), topology.tiers()[0].range), (Some(1.0), None));
        let (link, ways) = topology.ways_by_name("leaf1-spine0").unwrap();
        topology.set_rate(link, ways, Rate::from_gbps(100));
        let tier = topology.tiers()[0];
        assert_eq!(tier.oversubscription(), Some(1.6));
        let of = |switch, ratio| SwitchRatio { switch, ratio };
        assert_eq!(tier.range, Some([of(0, 1.0), of(1, 4.0)]));
    }

    /// Four switches in a ring of 400 Gb/s, each with a host of 900 Gb/s and a link of 100 Gb/s to a switch above. Only one
    /// ninth of the traffic can go up, and none has to.
    #[test]
    fn a_tier_whose_switches_are_linked_to_each_other_has_no_ratio() {
        let link = |a, b, gbps| Link {
            a: NodeId(a),
            b: NodeId(b),
            rate: Rate::from_gbps(gbps),
            delay: Duration::from_us(1),
            error_rate: 0.0,
        };
        let switch =
            |number: u32| Switch { name: format!("npu{number}"), tier: u8::from(number == 4), group: None };
        let of = |ring: bool| {
            let mut links: Vec<Link> =
                (0..4).flat_map(|at| [link(at, 4 + at, 900), link(4 + at, 8, 100)]).collect();
            links.extend((0..4).filter(|_| ring).map(|at| link(4 + at, 4 + (at + 1) % 4, 400)));
            let topology = Topology::new("ring", 4, (0..5).map(switch).collect(), links).unwrap();
            topology.tiers().iter().map(|tier| (tier.oversubscription(), tier.range)).collect::<Vec<_>>()
        };
        assert_eq!(of(true), [(None, None); 2]);
        assert_eq!(of(false), [(Some(9.0), None), (None, None)]);
    }

    #[test]
    fn the_field_oversubscribes_by_slower_links() {
        let config = FatTree { oversubscription: Some(4.0), ..FatTree::k_ary(8) };
        let topology = config.build(Path::new(".")).unwrap();
        assert_eq!(at_aggs(&topology), 4.0);
        assert_eq!(topology.links().last().unwrap().rate, Rate::from_gbps(25));
    }
}
