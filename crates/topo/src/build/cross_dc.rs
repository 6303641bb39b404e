//! Data centres joined by external switches over a wide-area network.

use std::collections::BTreeSet;
use std::path::Path;

use pathweave_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Build, LeafSpine, LinkSpec, TopologyBuilder, TopologyConfig, at_least_one, default_one, positive, refuse,
};
use crate::error::TopoError;
use crate::graph::{LinkId, NodeId, Topology};
use crate::sites::Sites;

/// Two or more data centres (sites) of any kind. Each external switch is linked to all top switches of its site. WAN
/// links join the external switches of every pair of sites. Names of nodes in site i begin with "dc{i}.", such as
/// "dc0.leaf3"; the external switches are "dc0.esw0" and so on. Hosts are numbered consecutively, site by site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CrossDc {
    /// Topology inside each site, of any kind. Either one for all sites, or one for each.
    pub site: Vec<TopologyConfig>,
    /// Number of sites, 2 to 64. Default: the number of entries in `site`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sites: Option<u32>,
    /// Number of external switches of each site. The k-th of one site is joined to the k-th of every other. Default
    /// 1.
    #[serde(default = "default_one")]
    pub external_switches: u32,
    /// Rate of each link between a top switch of the site and an external switch. Default 100 Gb/s (Reflex, section
    /// II-C).
    #[serde(default = "super::default_rate")]
    pub edge_rate: Rate,
    /// One-way propagation delay of the links between top switches and external switches. Default 1 us (Reflex,
    /// section II-C).
    #[serde(default = "super::default_delay")]
    pub edge_delay: Duration,
    /// Rate of each WAN link. Default 1.6 Tb/s (Reflex, section II-C).
    #[serde(default = "wan_rate")]
    pub wan_rate: Rate,
    /// One-way propagation delay of the WAN links. Default 500 us (Reflex, section II-C).
    #[serde(default = "wan_delay")]
    pub wan_delay: Duration,
    /// Number of parallel WAN links between two external switches. Default 1.
    #[serde(default = "default_one")]
    pub wan_links: u32,
    /// Enables PFC between external switches across the WAN. Default false, because the headroom of such a link is
    /// twice its delay at its full rate, 200 MB with the defaults. Without PFC the buffers of external switches must
    /// absorb all bursts.
    #[serde(default)]
    pub wan_pfc: bool,
}

fn wan_rate() -> Rate {
    Rate::from_gbps(1_600)
}
fn wan_delay() -> Duration {
    Duration::from_us(500)
}

/// Largest number of sites. It limits the number of pairs of sites, and so of WAN links.
const MAX_SITES: u32 = 64;

impl CrossDc {
    /// Creates a network of `sites` equal sites, joined by the links of the Reflex evaluation.
    pub fn new(site: TopologyConfig, sites: u32) -> Self {
        CrossDc {
            site: vec![site],
            sites: Some(sites),
            external_switches: 1,
            edge_rate: super::default_rate(),
            edge_delay: super::default_delay(),
            wan_rate: wan_rate(),
            wan_delay: wan_delay(),
            wan_links: 1,
            wan_pfc: false,
        }
    }

    fn inside(&self, base_dir: &Path) -> Result<Vec<Topology>, TopoError> {
        let given = self.site.len() as u32;
        let sites = self.sites.unwrap_or(given);
        if !(2..=MAX_SITES).contains(&sites) {
            return Err(refuse("sites", sites, format!("must be 2 to {MAX_SITES}")));
        }
        if given != 1 && given != sites {
            let allowed = format!("must be 1, the same for all, or {sites}, one for each site");
            return Err(refuse("site", given, allowed));
        }
        let built = self.site.iter().map(|site| {
            let topology = site.build(base_dir)?;
            match topology.sites() {
                Some(_) => Err(refuse("site", site.kind(), "must be the inside of one data centre")),
                None => Ok(topology),
            }
        });
        let built = built.collect::<Result<Vec<_>, _>>()?;
        Ok((0..sites as usize).map(|i| built[i % built.len()].clone()).collect())
    }
}

impl Build for CrossDc {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let externals = at_least_one("external_switches", self.external_switches)?;
        at_least_one("wan_links", self.wan_links)?;
        let edge = LinkSpec {
            rate: positive("edge_rate", self.edge_rate)?,
            delay: self.edge_delay,
            error_rate: 0.0,
        };
        let wan =
            LinkSpec { rate: positive("wan_rate", self.wan_rate)?, delay: self.wan_delay, error_rate: 0.0 };
        let inside = self.inside(base_dir)?;
        let sum = |of: &dyn Fn(&Topology) -> u32| inside.iter().map(of).fold(0, u32::saturating_add);
        let hosts = sum(&Topology::hosts);
        let nodes = sum(&Topology::nodes);
        let pairs = inside.len() as u32 * (inside.len() as u32 - 1) / 2;
        super::within_limits(
            "cross-dc",
            &[nodes, externals.saturating_mul(inside.len() as u32)],
            &[&[pairs, externals, self.wan_links]],
        )?;

        let mut parts = TopologyBuilder::new(hosts);
        let mut sites = Sites::new(self.wan_pfc);
        let mut external: Vec<Vec<NodeId>> = Vec::new();
        let (mut first_host, mut first_group) = (0, 0);
        for (i, site) in (0..).zip(&inside) {
            sites.add_hosts(i, site.hosts());
            let first_switch = parts.next_switch();
            let mut groups = 0;
            for switch in site.switches() {
                let group = switch.group.map(|group| first_group + group);
                groups = groups.max(switch.group.map_or(0, |group| group + 1));
                parts.switch(format!("dc{i}.{}", switch.name), switch.tier, group);
            }
            let place = |node: NodeId| match site.switch_index(node) {
                Some(index) => NodeId(first_switch.0 + index as u32),
                None => NodeId(first_host + node.0),
            };
            for link in site.links() {
                let spec = LinkSpec { rate: link.rate, delay: link.delay, error_rate: link.error_rate };
                parts.links(place(link.a), place(link.b), spec, 1);
            }
            let top = site.switches().iter().map(|switch| switch.tier).max().unwrap_or(0);
            let mut here = Vec::new();
            for k in 0..externals {
                let switch = parts.switch(format!("dc{i}.esw{k}"), top.saturating_add(1), None);
                sites.add_external(i, switch);
                for (index, _) in site.switches().iter().enumerate().filter(|(_, s)| s.tier == top) {
                    parts.links(NodeId(first_switch.0 + index as u32), switch, edge, 1);
                }
                here.push(switch);
            }
            external.push(here);
            first_host += site.hosts();
            first_group += groups;
        }
        let mut wan_links = BTreeSet::new();
        for (i, ours) in external.iter().enumerate() {
            for theirs in &external[i + 1..] {
                for (&a, &b) in ours.iter().zip(theirs) {
                    wan_links.extend(parts.links(a, b, wan, self.wan_links).map(LinkId));
                }
            }
        }
        sites.set_wan(wan_links);
        parts.finish_with_sites(format!("{} data centres, {hosts} hosts", inside.len()), sites)
    }

    fn presets() -> Vec<(&'static str, &'static str, Self)> {
        let site = || TopologyConfig::LeafSpine(LeafSpine::new(4, 4, 4));
        vec![
            ("reflex-32", "2 x 16 hosts of the Reflex evaluation (section II-C)", CrossDc::new(site(), 2)),
            ("reflex-48", "reflex-32 with a third data centre", CrossDc::new(site(), 3)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathFinder, Routing, presets};
    use pathweave_units::HostId;

    fn preset(name: &str) -> Topology {
        presets().iter().find(|preset| preset.name == name).unwrap().config.build(Path::new("")).unwrap()
    }

    #[test]
    fn the_network_of_the_reflex_evaluation() {
        let topology = preset("reflex-32");
        // 2 x (16 hosts + 4 leaves + 4 spines + 1) nodes; 2 x (16 + 16 + 4) + 1 links.
        assert_eq!((topology.hosts(), topology.nodes(), topology.links().len()), (32, 50, 73));
        let sites = topology.sites().unwrap();
        assert_eq!((sites.of_host(HostId(15)), sites.of_host(HostId(16))), (0, 1));
        assert_eq!(sites.wan().count(), 1);
        let wan = topology.link(sites.wan().next().unwrap());
        assert_eq!((wan.rate, wan.delay), (Rate::from_gbps(1_600), Duration::from_us(500)));
        assert_eq!(topology.node_name(wan.a), "dc0.esw0");
        let routing = Routing::all_links_up(&topology);
        let mut paths = PathFinder::new(&topology, &routing);
        let mut pair =
            |a, b| paths.pair(HostId(a), HostId(b), 0).map(|pair| (pair.hops, pair.paths)).unwrap();
        // Host, leaf, spine, leaf, host; and across sites, with a choice of spine at both ends.
        assert_eq!((pair(0, 1), pair(0, 4), pair(0, 16)), ((2, 1), (4, 4), (7, 16)));
    }

    #[test]
    fn every_site_is_joined_to_every_other() {
        let topology = preset("reflex-48");
        assert_eq!((topology.hosts(), topology.links().len()), (48, 3 * 36 + 3));
        let routing = Routing::all_links_up(&topology);
        let far = PathFinder::new(&topology, &routing).pair(HostId(0), HostId(47), 0).unwrap();
        assert_eq!(far.hops, 7);
    }

    #[test]
    fn sites_may_differ() {
        let mut config = CrossDc::new(TopologyConfig::LeafSpine(LeafSpine::new(2, 1, 2)), 2);
        config.site.push(toml::from_str("kind = 'fat-tree'\nk = 4").unwrap());
        config.sites = None;
        let topology = config.build(Path::new("")).unwrap();
        assert_eq!(topology.hosts(), 4 + 16);
        // Four core switches are below the external switch of the second site.
        let esw = topology.node_by_name("dc1.esw0").unwrap();
        assert_eq!(topology.ports(esw).len(), 4 + 1);
        assert_eq!(topology.switches()[topology.switch_index(esw).unwrap()].tier, 3);
        // Sites do not share groups.
        let group = |name: &str| {
            topology.switches()[topology.switch_index(topology.node_by_name(name).unwrap()).unwrap()].group
        };
        assert_eq!((group("dc0.leaf1"), group("dc1.tor0")), (Some(1), Some(2)));
    }

    #[test]
    fn invalid_values_are_named() {
        let error = |change: fn(&mut CrossDc)| {
            let mut config = CrossDc::new(TopologyConfig::LeafSpine(LeafSpine::new(2, 1, 2)), 2);
            change(&mut config);
            config.build(Path::new("")).unwrap_err().to_string()
        };
        assert_eq!(error(|c| c.sites = Some(1)), "topology field `sites` = 1: must be 2 to 64");
        assert!(error(|c| c.site.clear()).starts_with("topology field `site` = 0: must be 1"));
        assert!(error(|c| c.wan_links = 0).contains("`wan_links` = 0"));
        assert!(error(|c| c.external_switches = 0).contains("`external_switches` = 0"));
        assert!(error(|c| c.wan_rate = Rate::ZERO).contains("`wan_rate`"));
        assert!(error(|c| c.edge_rate = Rate::ZERO).contains("`edge_rate`"));
        let nested = error(|c| c.site = vec![TopologyConfig::CrossDc(c.clone())]);
        assert!(nested.contains("must be the inside of one data centre"), "{nested}");
        let inside = error(|c| c.site = vec![TopologyConfig::LeafSpine(LeafSpine::new(0, 1, 2))]);
        assert!(inside.contains("`leaves` = 0"), "{inside}");
    }
}
