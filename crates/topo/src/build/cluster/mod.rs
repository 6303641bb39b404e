//! Cluster: servers with GPUs and NICs, attached to a scale-out network of any kind.

mod inside;
mod nest;
mod points;
mod scale_up;
mod server;
#[cfg(test)]
mod tests;

pub use points::{Attach, AttachRule};
pub use scale_up::{EqualLinks, LinkList, ListedLink, ScaleUpConfig, SwitchLinks, TorusLinks};
pub use server::{Server, server_models};

use std::path::Path;

use pathweave_units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, TopologyConfig, at_least_one, refuse};
use crate::error::TopoError;
use crate::graph::{MAX_NODES, Topology};
use crate::servers::ScaleUpCarriage;
use nest::Nest;
use points::Points;
use server::KnownServer;

/// Servers with GPUs and several NICs, attached to a scale-out network of any kind. Each GPU is a host: GPU g of
/// server s, named "srv{s}.gpu{g}", has number s * gpus + g. GPUs of one server or rack exchange messages over their
/// scale-up network (NVLink), all others over their NICs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Number of servers.
    pub servers: u32,
    /// GPUs, NICs and scale-up network of a server.
    #[serde(default)]
    pub server: Server,
    /// Network between the servers. Its hosts are the attachment points of NIC ports. With `planes`, it is the network
    /// of one plane.
    pub scale_out: Box<TopologyConfig>,
    /// Attachment of NIC ports to the hosts of `scale_out`. "rail": a leaf holds the NICs with one number, of `unit`
    /// servers. "server": all ports of a server follow each other, then the next server; with `unit`, the NICs of that
    /// many servers share leaves, one for each port of a NIC. A list: the point of each port, in the order of servers,
    /// NICs and ports. Default "rail".
    #[serde(default)]
    pub attach: Attach,
    /// Number of servers of a scalable unit. Default: with `attach = "rail"`, all servers are one unit; with "server",
    /// there are no units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<u32>,
    /// Connects port q of every NIC to plane q, a copy of `scale_out` with the prefix "p{q}." in all names. Default
    /// false: all ports are attached to one network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planes: bool,
}

impl Cluster {
    /// Creates a cluster whose rails span all servers.
    pub fn new(servers: u32, server: Server, scale_out: TopologyConfig) -> Self {
        Cluster {
            servers,
            server,
            scale_out: Box::new(scale_out),
            attach: Attach::default(),
            unit: None,
            planes: false,
        }
    }

    /// Returns the rate of NIC ports that the server, or its preset, gives in place of the rate of host links of
    /// `scale_out`. `None` if they have the rate of `scale_out`, or the server is refused.
    pub fn port_rate(&self) -> Option<Rate> {
        self.server.complete().ok()?.port_rate
    }
}

impl Cluster {
    /// Returns the fields that this cluster sets and that have no effect, each with the reason.
    fn ineffective(&self, server: &KnownServer, nest: &Nest<'_>) -> Vec<(&'static str, String)> {
        let mut fields = Vec::new();
        if self.planes && server.nic_ports == 1 {
            fields.push(("planes", "each NIC has one port, so that there is one plane".to_owned()));
        }
        if !nest.has_pcie_links() {
            if let Some(rate) = self.server.pcie_rate {
                let why = format!("the ports of a GPU's NICs have no more than {rate} together");
                fields.push(("server.pcie_rate", why));
            }
            if self.server.pcie_delay.is_some() {
                let why = "PCIe counts where GPUs share a NIC, or `server.pcie_rate` is below the ports of a GPU's NICs";
                fields.push(("server.pcie_delay", why.to_owned()));
            }
        }
        if self.server.domain.is_some_and(|domain| domain != server.gpus) && server.scale_up.is_none() {
            fields.push(("server.domain", "no scale-up network joins the GPUs".to_owned()));
        }
        fields
    }
}

impl Build for Cluster {
    fn build(&self, base_dir: &Path) -> Result<Topology, TopoError> {
        let servers = at_least_one("servers", self.servers)?;
        let server = self.server.complete()?;
        let domain_servers = server.domain / server.gpus;
        if !servers.is_multiple_of(domain_servers) {
            let nearest = (servers / domain_servers).max(1) * domain_servers;
            let allowed = format!(
                "must be a multiple of {domain_servers}, the servers of a scale-up domain, such as {nearest}"
            );
            return Err(refuse("servers", servers, allowed));
        }
        let gpus = u64::from(servers) * u64::from(server.gpus);
        if gpus > u64::from(MAX_NODES) {
            let allowed = format!("gives {gpus} GPUs; at most {MAX_NODES} hosts and switches are allowed");
            return Err(refuse("servers", servers, allowed));
        }
        let inner = self.scale_out.build(base_dir)?;
        if inner.servers().is_some() {
            return Err(refuse("scale_out", self.scale_out.kind(), "must be a network without servers"));
        }
        let points = Points::new(self, servers, &server, &inner)?;
        let scale_up = server.scale_up.as_ref().map(|network| network.build(server.domain)).transpose()?;
        let carriage = match server.scale_up.as_ref().is_some_and(ScaleUpConfig::has_packets) {
            true => ScaleUpCarriage::Packets,
            false => ScaleUpCarriage::Fluid,
        };
        let nest = Nest { servers, server: &server, inner: &inner, points: &points, unit: self.unit };
        let topology = nest.build(scale_up, carriage)?;
        Ok(self.ineffective(&server, &nest).into_iter().fold(topology, |topology, (field, why)| {
            topology.with_note(format!("topology.{field} has no effect: {why}"))
        }))
    }

    fn file(&mut self) -> Option<&mut std::path::PathBuf> {
        self.scale_out.file()
    }
}
