//! Data centres of a network, and the links that join them.

use std::collections::BTreeSet;

use pathweave_units::HostId;

use crate::ids::{LinkId, NodeId};

/// Sites of a network with several data centres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Site of each host.
    of_host: Vec<u32>,
    /// External switches and their sites.
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

    /// Returns the site of a host, from 0.
    pub fn of_host(&self, host: HostId) -> u32 {
        self.of_host[host.index()]
    }
    /// Returns the site of each host.
    pub fn of_hosts(&self) -> &[u32] {
        &self.of_host
    }
    /// Returns the external switches with their sites, ordered by site.
    pub fn external(&self) -> &[(NodeId, u32)] {
        &self.external
    }
    /// Returns the site of an external switch, or `None` for any other node.
    pub fn of_external(&self, node: NodeId) -> Option<u32> {
        self.external.iter().find(|(switch, _)| *switch == node).map(|(_, site)| *site)
    }
    /// Iterates over the links between sites.
    pub fn wan(&self) -> impl Iterator<Item = LinkId> {
        self.wan.iter().copied()
    }
    /// Returns true if a link joins two sites.
    pub fn is_wan(&self, link: LinkId) -> bool {
        self.wan.contains(&link)
    }
    /// Returns true if links between sites are lossless wherever links inside sites are.
    pub fn wan_pfc(&self) -> bool {
        self.wan_pfc
    }
}
