//! Graph of a cluster: the scale-out network with GPUs in the place of its hosts.

use std::collections::BTreeSet;

use pathweave_units::{Duration, HostId, Rate};

use super::inside;
use super::points::Points;
use super::server::{GpuNics, KnownServer};
use crate::build::within_limits;
use crate::error::TopoError;
use crate::graph::{HostAttachment, Link, LinkId, NodeId, Switch, Topology};
use crate::names::HostNames;
use crate::scale_up::ScaleUp;
use crate::servers::{ScaleUpCarriage, Servers};
use crate::sites::Sites;

/// Parts of a cluster.
pub(super) struct Nest<'a> {
    pub(super) servers: u32,
    pub(super) server: &'a KnownServer,
    pub(super) inner: &'a Topology,
    pub(super) points: &'a Points,
    /// Number of servers of a unit, if there are units.
    pub(super) unit: Option<u32>,
}

/// Node between a GPU and the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// The ports of NICs are ports of the GPU.
    Nothing,
    /// A PCIe link that is slower than the ports of the GPU's NICs.
    Pcie(Rate),
    /// A NIC that GPUs share, at the end of a PCIe link.
    SharedNic(Rate),
}

impl Nest<'_> {
    pub(super) fn build(
        &self,
        scale_up: Option<ScaleUp>,
        carriage: ScaleUpCarriage,
    ) -> Result<Topology, TopoError> {
        let between = self.between();
        let hosts = self.hosts();
        let parts = match between {
            Between::Nothing => 0,
            Between::Pcie(_) => hosts,
            Between::SharedNic(_) => self.servers * self.server.nics,
        };
        let copies = self.points.planes();
        let inner_switches = self.inner.switches().len() as u32;
        let packets = scale_up.as_ref().filter(|_| carriage == ScaleUpCarriage::Packets);
        let domains = packets.map_or(0, |network| hosts / network.domain_size());
        let (chips, of_domain) = packets.map_or((0, 0), |network| {
            (domains * network.packet_switches(), inside::links_of_domain(network))
        });
        within_limits(
            "cluster",
            &[hosts, parts, inner_switches.saturating_mul(copies), chips],
            &[&[self.inner.links().len() as u32, copies], &[hosts], &[domains, of_domain]],
        )?;
        let mut switches = self.part_switches(between);
        let tiers_below = u8::from(between != Between::Nothing);
        let mut links = Vec::new();
        self.connect_gpus(between, &mut links);
        let first_cable = links.len();
        let mut sites = self.inner.sites().map(|inner| Sites::new(inner.wan_pfc()));
        let mut wan = BTreeSet::new();
        let groups =
            self.inner.switches().iter().filter_map(|switch| switch.group).max().map_or(0, |last| last + 1);
        for copy in 0..copies {
            let first_switch = hosts + switches.len() as u32;
            let prefix = if copies > 1 { format!("p{copy}.") } else { String::new() };
            switches.extend(self.inner.switches().iter().map(|switch| Switch {
                name: format!("{prefix}{}", switch.name),
                tier: switch.tier.saturating_add(tiers_below),
                group: switch.group.map(|group| group + copy * groups),
            }));
            let node = |node: NodeId| match self.inner.switch_index(node) {
                Some(index) => Some(NodeId(first_switch + index as u32)),
                None => self.node_of_point(HostId(node.0), between),
            };
            for (id, link) in (0..).map(LinkId).zip(self.inner.links()) {
                let (Some(a), Some(b)) = (node(link.a), node(link.b)) else { continue };
                if self.inner.sites().is_some_and(|sites| sites.is_wan(id)) {
                    wan.insert(LinkId(links.len() as u32));
                }
                let at_host = self.inner.is_host(link.a) || self.inner.is_host(link.b);
                let rate = if at_host { self.server.port_rate.unwrap_or(link.rate) } else { link.rate };
                links.push(Link { a, b, rate, ..link.clone() });
            }
            if let (Some(inner), Some(sites)) = (self.inner.sites(), &mut sites) {
                inner.external().iter().for_each(|(switch, site)| {
                    sites.add_external(*site, node(*switch).unwrap_or(*switch));
                });
            }
        }
        let first_chip = switches.len() as u32;
        let cables = first_cable..links.len();
        if let Some(network) = packets {
            inside::add(network, (hosts, self.server.gpus), &mut switches, &mut links);
        }
        let names = HostNames::OfServers { gpus: self.server.gpus };
        let name = format!("{} servers of {} GPUs on {}", self.servers, self.server.gpus, self.inner.name());
        let mut topology = Topology::with_host_names(name, hosts, names, switches, links)?;
        if let Some(mut sites) = sites {
            self.sites_of_hosts().for_each(|site| sites.add_hosts(site, 1));
            sites.set_wan(wan);
            topology = topology.with_sites(sites);
        }
        if between != Between::Nothing {
            topology = topology.with_edge(HostAttachment::Host);
        } else if copies == 1 && packets.is_none() {
            topology = topology.with_properties_of(self.inner);
        } else if packets.is_none() && self.inner.is_regular_clos() {
            topology = topology.with_arithmetic_routing();
        }
        if self.points.unused() > 0 {
            topology = topology.with_note(format!(
                "{} of the {} hosts of `scale_out` are not attached to a NIC port",
                self.points.unused(),
                self.inner.hosts()
            ));
        }
        let KnownServer { gpus, nics, nic_ports, .. } = *self.server;
        let servers = self.servers;
        let (planes, unit) = (copies, self.unit);
        Ok(topology.with_servers(Servers {
            servers,
            gpus,
            nics,
            nic_ports,
            planes,
            unit,
            parts,
            first_chip,
            cables,
            scale_up,
            carriage,
        }))
    }

    fn hosts(&self) -> u32 {
        self.servers * self.server.gpus
    }

    /// Returns the node of a part of a server.
    fn part(&self, number: u32) -> NodeId {
        NodeId(self.hosts() + number)
    }

    /// Returns the node between each GPU and the network.
    fn between(&self) -> Between {
        let first = self.inner.ports(NodeId(0)).first();
        let host_rate = first.map_or(Rate::ZERO, |port| self.inner.link(port.link).rate);
        let port = self.server.port_rate.unwrap_or(host_rate).as_bps();
        let nic = Rate::from_bps(port.saturating_mul(u64::from(self.server.nic_ports)));
        match (&self.server.gpu_nics, self.server.pcie_rate) {
            (GpuNics::Shared(_), pcie) => Between::SharedNic(pcie.unwrap_or(nic)),
            (GpuNics::Own(nics), Some(pcie)) if pcie.as_bps() < nic.as_bps() * u64::from(*nics) => {
                Between::Pcie(pcie)
            }
            (GpuNics::Own(_), _) => Between::Nothing,
        }
    }

    /// Returns true if PCIe links stand between GPUs and the ports of their NICs.
    pub(super) fn has_pcie_links(&self) -> bool {
        self.between() != Between::Nothing
    }

    fn part_switches(&self, between: Between) -> Vec<Switch> {
        let KnownServer { gpus, nics, .. } = *self.server;
        let (of_server, name): (u32, fn(u32, u32) -> String) = match between {
            Between::Nothing => (0, |_, _| String::new()),
            Between::Pcie(_) => (gpus, |server, gpu| format!("srv{server}.pcie{gpu}")),
            Between::SharedNic(_) => (nics, |server, nic| format!("srv{server}.nic{nic}")),
        };
        let all = (0..self.servers).flat_map(|server| (0..of_server).map(move |index| (server, index)));
        all.map(|(server, index)| Switch { name: name(server, index), tier: 0, group: Some(server) })
            .collect()
    }

    /// Connects the GPUs with the nodes between them and the network.
    fn connect_gpus(&self, between: Between, links: &mut Vec<Link>) {
        let (Between::Pcie(rate) | Between::SharedNic(rate)) = between else { return };
        let delay = self.server.pcie_delay.max(Duration::from_ps(1));
        for host in 0..self.hosts() {
            let (server, gpu) = (host / self.server.gpus, host % self.server.gpus);
            let part = match &self.server.gpu_nics {
                GpuNics::Own(_) => host,
                GpuNics::Shared(nic_of) => server * self.server.nics + nic_of[gpu as usize],
            };
            links.push(Link { a: NodeId(host), b: self.part(part), rate, delay, error_rate: 0.0 });
        }
    }

    /// Returns the node that takes the place of a host of the scale-out network, if any does.
    fn node_of_point(&self, point: HostId, between: Between) -> Option<NodeId> {
        let owner = self.points.owner(point)?;
        let gpu = |nics: u32| owner.server * self.server.gpus + owner.nic / nics;
        Some(match (&self.server.gpu_nics, between) {
            (GpuNics::Own(nics), Between::Nothing) => NodeId(gpu(*nics)),
            (GpuNics::Own(nics), _) => self.part(gpu(*nics)),
            (GpuNics::Shared(_), _) => self.part(owner.server * self.server.nics + owner.nic),
        })
    }

    /// Iterates over the sites of all hosts: those of the points of their servers.
    fn sites_of_hosts(&self) -> impl Iterator<Item = u32> {
        let mut of_server = vec![0; self.servers as usize];
        if let Some(sites) = self.inner.sites() {
            for point in (0..self.inner.hosts()).map(HostId) {
                if let Some(owner) = self.points.owner(point) {
                    of_server[owner.server as usize] = sites.of_host(point);
                }
            }
        }
        let gpus = self.server.gpus as usize;
        of_server.into_iter().flat_map(move |site| std::iter::repeat_n(site, gpus))
    }
}
