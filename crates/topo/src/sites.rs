//! Which data centre a node belongs to, and what joins them.

use std::collections::BTreeSet;

use pathweave_units::HostId;

use crate::ids::{LinkId, NodeId};

/// The sites of a network that spans several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// By host.
    of_host: Vec<u32>,
    /// External switches, with their sites.
    external: Vec<(NodeId, u32)>,
    wan: BTreeSet<LinkId>,
    wan_pfc: bool,
}

impl Sites {
    pub(crate) fn new(wan_pfc: bool) -> Self {
        Sites { of_host: Vec::new(), external: Vec::new(), wan: BTreeSet::new(), wan_pfc }
    }
    pub(crate) fn add_hosts(&mut self, site: u32, hosts: u32) {
        self.of_host.extend((0..hosts).map(|_| site));
    }
    pub(crate) fn add_external(&mut self, site: u32, switch: NodeId) {
        self.external.push((switch, site));
    }
    pub(crate) fn set_wan(&mut self, wan: BTreeSet<LinkId>) {
        self.wan = wan;
    }

    /// The site of a host, from 0.
    pub fn of_host(&self, host: HostId) -> u32 {
        self.of_host[host.index()]
    }
    /// The site of each host.
    pub fn of_hosts(&self) -> &[u32] {
        &self.of_host
    }
    /// External switches with their sites, site by site.
    pub fn external(&self) -> &[(NodeId, u32)] {
        &self.external
    }
    /// The site that a node is an external switch of.
    pub fn of_external(&self, node: NodeId) -> Option<u32> {
        self.external.iter().find(|(switch, _)| *switch == node).map(|(_, site)| *site)
    }
    /// The links between sites.
    pub fn wan(&self) -> impl Iterator<Item = LinkId> {
        self.wan.iter().copied()
    }
    /// Whether a link joins two sites.
    pub fn is_wan(&self, link: LinkId) -> bool {
        self.wan.contains(&link)
    }
    /// Whether links between sites are lossless where those inside are.
    pub fn wan_pfc(&self) -> bool {
        self.wan_pfc
    }
}
