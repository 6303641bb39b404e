//! Attachment points: the hosts of the scale-out network that NIC ports take the place of.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Cluster;
use super::server::KnownServer;
use crate::build::{at_least_one, refuse};
use crate::error::TopoError;
use crate::graph::{NodeId, Topology};
use pathweave_units::HostId;

/// Attachment of NIC ports to the hosts of the scale-out network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`attach` must be \"rail\", \"server\", or a list of hosts of `scale_out`")]
pub enum Attach {
    /// Attachment by a rule.
    Rule(AttachRule),
    /// Host of `scale_out` for each port, in the order of servers, NICs and ports.
    List(Vec<u32>),
}

impl Default for Attach {
    fn default() -> Self {
        Attach::Rule(AttachRule::Rail)
    }
}

/// Rule by which NIC ports are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AttachRule {
    /// A leaf holds one rail of one unit: the NICs with equal number of its servers. The ports of a NIC are attached
    /// to leaves side by side.
    Rail,
    /// All ports of a server follow each other. With `unit`, the NICs of that many servers share leaves, and the ports
    /// of a NIC are attached to leaves side by side.
    Server,
}

/// Port of a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NicPort {
    pub(super) server: u32,
    pub(super) nic: u32,
}

/// Owner of each attachment point. It is the same in all planes.
pub(super) struct Points {
    planes: u32,
    /// Owners in the order of points; `None` if a point is unused.
    owner: Vec<Option<NicPort>>,
}

impl Points {
    pub(super) fn new(
        config: &Cluster,
        servers: u32,
        server: &KnownServer,
        inner: &Topology,
    ) -> Result<Points, TopoError> {
        let (planes, ports) = match config.planes {
            true => (server.nic_ports, 1),
            false => (1, server.nic_ports),
        };
        if config.planes && inner.sites().is_some() {
            let allowed = "must be the network of one data centre, because the cluster has planes";
            return Err(refuse("scale_out", config.scale_out.kind(), allowed));
        }
        if let Some(unit) = config.unit {
            unit_applies(unit, &config.attach, ports)?;
        }
        let numbering = Numbering { nics: server.nics, ports, unit: config.unit.unwrap_or(servers) };
        at_least_one("unit", numbering.unit)?;
        let mut owner = vec![None; inner.hosts() as usize];
        let each = (0..servers).flat_map(|server_| {
            (0..server.nics)
                .flat_map(move |nic| (0..ports).map(move |port| (NicPort { server: server_, nic }, port)))
        });
        let total = u64::from(servers) * u64::from(server.nics) * u64::from(ports);
        if let Attach::List(points) = &config.attach
            && points.len() as u64 != total
        {
            let allowed = format!("must have {total} points, one for each port of each NIC of each server");
            return Err(refuse("attach", format!("{} points", points.len()), allowed));
        }
        for (index, (nic_port, port)) in each.enumerate() {
            let point = match &config.attach {
                Attach::Rule(AttachRule::Server) if config.unit.is_some() => {
                    numbering.in_unit(nic_port, port)
                }
                Attach::Rule(AttachRule::Server) => index as u64,
                Attach::Rule(AttachRule::Rail) => numbering.on_rail(nic_port, port),
                Attach::List(points) => u64::from(points[index]),
            };
            let Some(place) = usize::try_from(point).ok().and_then(|point| owner.get_mut(point)) else {
                return Err(missing(config, numbering, servers, inner, point));
            };
            if let Some(NicPort { server, nic }) = place.replace(nic_port) {
                let allowed = format!("is the point of NIC {nic} of server {server} already");
                return Err(refuse("attach", point, allowed));
            }
        }
        if let Some(mixed) = numbering.mixed_leaf(config, &owner, inner) {
            return Err(mixed.refused(config, numbering, servers, inner));
        }
        Ok(Points { planes, owner })
    }

    /// Returns the number of copies of the scale-out network.
    pub(super) fn planes(&self) -> u32 {
        self.planes
    }

    /// Returns the owner of a point, or `None` if it is unused.
    pub(super) fn owner(&self, point: HostId) -> Option<NicPort> {
        self.owner[point.index()]
    }

    /// Returns the number of unused points of a plane.
    pub(super) fn unused(&self) -> usize {
        self.owner.iter().filter(|owner| owner.is_none()).count()
    }
}

/// Returns an error if units have no effect.
fn unit_applies(unit: u32, attach: &Attach, ports: u32) -> Result<(), TopoError> {
    let allowed = match attach {
        Attach::Rule(AttachRule::Rail) => return Ok(()),
        Attach::Rule(AttachRule::Server) if ports > 1 => return Ok(()),
        Attach::Rule(AttachRule::Server) => {
            "with attach = \"server\" applies to NICs with several ports in one network only; attach = \"rail\" has \
             units of rails"
        }
        Attach::List(_) => "applies to attach = \"rail\" and \"server\" only",
    };
    Err(refuse("unit", unit, allowed))
}

/// Order of the points of a unit.
#[derive(Clone, Copy)]
struct Numbering {
    nics: u32,
    ports: u32,
    unit: u32,
}

impl Numbering {
    fn on_rail(self, NicPort { server, nic }: NicPort, port: u32) -> u64 {
        let [server, nic, port] = [server, nic, port].map(u64::from);
        let Numbering { nics, ports, unit } = self;
        let [nics, ports, unit] = [nics, ports, unit].map(u64::from);
        ((server / unit * nics + nic) * ports + port) * unit + server % unit
    }

    /// Returns the point of a port where all NICs of a unit share leaves.
    fn in_unit(self, NicPort { server, nic }: NicPort, port: u32) -> u64 {
        let [server, nic, port] = [server, nic, port].map(u64::from);
        let Numbering { nics, ports, unit } = self;
        let [nics, ports, unit] = [nics, ports, unit].map(u64::from);
        ((server / unit * ports + port) * unit + server % unit) * nics + nic
    }

    /// Returns a leaf that would hold two rails of a unit, or two ports of its NICs where these share leaves.
    fn mixed_leaf(self, config: &Cluster, owner: &[Option<NicPort>], inner: &Topology) -> Option<MixedLeaf> {
        let on_rail = match &config.attach {
            Attach::Rule(AttachRule::Rail) if self.nics > 1 => true,
            Attach::Rule(AttachRule::Server) if config.unit.is_some() => false,
            _ => return None,
        };
        let side = self.unit.saturating_mul(self.nics);
        // Unit and rail, or unit and number of the port.
        let place = |point: u32, NicPort { server, nic }: NicPort| match on_rail {
            true => (server / self.unit, nic),
            false => (point / side / self.ports, point / side % self.ports),
        };
        let mut held = HashMap::new();
        for (point, owner) in (0u32..).zip(owner).filter_map(|(point, owner)| Some((point, (*owner)?))) {
            let (unit, part) = place(point, owner);
            for port in inner.ports(NodeId(point)) {
                let known: u32 = *held.entry((port.peer, unit)).or_insert(part);
                if known != part {
                    return Some(MixedLeaf { leaf: port.peer, parts: [known, part], on_rail });
                }
            }
        }
        None
    }

    /// Returns true if the ports of all servers have points of their own in units of so many servers, and no leaf is mixed.
    fn fits_with(self, unit: u32, config: &Cluster, servers: u32, inner: &Topology) -> bool {
        let numbering = Numbering { unit, ..self };
        let mut owner = vec![None; inner.hosts() as usize];
        for server in 0..servers {
            for (nic, port) in (0..self.nics).flat_map(|nic| (0..self.ports).map(move |port| (nic, port))) {
                let nic_port = NicPort { server, nic };
                let point = match config.attach {
                    Attach::Rule(AttachRule::Server) => numbering.in_unit(nic_port, port),
                    _ => numbering.on_rail(nic_port, port),
                };
                match usize::try_from(point).ok().and_then(|point| owner.get_mut(point)) {
                    Some(place) => *place = Some(nic_port),
                    None => return false,
                }
            }
        }
        numbering.mixed_leaf(config, &owner, inner).is_none()
    }
}

/// A leaf that would hold what belongs to different leaves.
struct MixedLeaf {
    leaf: NodeId,
    /// Two rails of a unit, or two numbers of ports of a NIC.
    parts: [u32; 2],
    on_rail: bool,
}

impl MixedLeaf {
    /// Returns the error, with a `unit` that fits, if there is one, or a rule that does without.
    fn refused(&self, config: &Cluster, numbering: Numbering, servers: u32, inner: &Topology) -> TopoError {
        let Numbering { nics, ports, unit } = numbering;
        let [first, second] = self.parts;
        let name = inner.node_name(self.leaf);
        let held = match self.on_rail {
            true => format!("{name} would hold rails {first} and {second} of a unit"),
            false => format!("{name} would hold ports {first} and {second} of a NIC"),
        };
        let at_leaf = inner.ports(self.leaf).iter().filter(|port| inner.is_host(port.peer)).count() as u32;
        let fitting = (at_leaf / if self.on_rail { ports } else { nics }).max(1);
        let fits = numbering.fits_with(fitting, config, servers, inner);
        match (fits, self.on_rail) {
            (true, true) => {
                let other = "or attach = \"server\"";
                refuse("unit", unit, format!("{held}; its {at_leaf} hosts fit `unit` = {fitting}, {other}"))
            }
            (true, false) => {
                refuse("unit", unit, format!("{held}; its {at_leaf} hosts fit `unit` = {fitting}"))
            }
            (false, true) => refuse(
                "attach",
                "\"rail\"",
                format!("{held} of {unit} servers; attach = \"server\" has no rails"),
            ),
            (false, false) => refuse("unit", unit, format!("{held}; without `unit` ports follow each other")),
        }
    }
}

fn missing(config: &Cluster, numbering: Numbering, servers: u32, inner: &Topology, point: u64) -> TopoError {
    let Numbering { nics, ports, unit } = numbering;
    let (per_server, hosts) = (u64::from(nics * ports), u64::from(inner.hosts()));
    match &config.attach {
        Attach::List(_) => {
            refuse("attach", point, format!("must be a host of `scale_out`, 0 to {}", inner.hosts() - 1))
        }
        Attach::Rule(AttachRule::Server) if config.unit.is_none() => {
            let all = u64::from(servers) * per_server;
            let fit = hosts / per_server;
            let allowed = format!(
                "need {all} attachment points, {per_server} a server; `scale_out` has {hosts} hosts, for {fit} servers"
            );
            refuse("servers", servers, allowed)
        }
        Attach::Rule(_) => {
            let points = |unit: u32| u64::from(servers.div_ceil(unit)) * per_server * u64::from(unit);
            let count =
                |of: u64, one: &str| if of == 1 { format!("1 {one}") } else { format!("{of} {one}s") };
            let (units, fit) = (servers.div_ceil(unit), hosts / (per_server * u64::from(unit)));
            let mut allowed = format!(
                "{} are {} of {unit} and need {} attachment points, {per_server} a server; `scale_out` has {hosts} \
                 hosts, for {}",
                count(servers.into(), "server"),
                count(units.into(), "unit"),
                points(unit),
                count(fit, "unit"),
            );
            let near = |by: u32| [unit.saturating_sub(by), unit.saturating_add(by)];
            let fits = |unit: &u32| {
                (1..=servers).contains(unit)
                    && points(*unit) <= hosts
                    && numbering.fits_with(*unit, config, servers, inner)
            };
            let nearest = Some(servers_of_leaf(config, numbering, inner)).filter(fits);
            let nearest = nearest.or_else(|| (1..servers.max(unit)).flat_map(near).find(fits));
            if let Some(nearest) = nearest.filter(|_| u64::from(servers) * per_server <= hosts) {
                allowed += &format!("; `unit` = {nearest} fits");
                return refuse("unit", unit, allowed);
            }
            if config.unit.is_some() && u64::from(servers) * per_server <= hosts {
                let other = match config.attach {
                    Attach::Rule(AttachRule::Rail) => "no other fits, and attach = \"server\" needs none",
                    _ => "no other fits, and without one ports follow each other",
                };
                return refuse("unit", unit, format!("{allowed}; {other}"));
            }
            if fit > 0 {
                allowed += &format!(", which are {}", count(fit * u64::from(unit), "server"));
            }
            refuse("servers", servers, allowed)
        }
    }
}

/// Returns the number of servers whose ports of one rail, or of one number, fill the first leaf.
fn servers_of_leaf(config: &Cluster, Numbering { nics, .. }: Numbering, inner: &Topology) -> u32 {
    let Some(first) = inner.ports(NodeId(0)).first() else { return 0 };
    let at_leaf = inner.ports(first.peer).iter().filter(|port| inner.is_host(port.peer)).count() as u32;
    match config.attach {
        Attach::Rule(AttachRule::Server) => at_leaf / nics,
        _ => at_leaf,
    }
}
