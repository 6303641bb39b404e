//! Graph of hosts, switches, links and the ports between them.

use std::collections::{BTreeSet, VecDeque};

use pathweave_units::{Duration, HostId, Rate};

use crate::directions::Directions;
use crate::error::TopoError;
pub use crate::ids::{LinkId, NodeId};
use crate::known_regular::KnownRegular;
use crate::names::{HostNames, Names};
use crate::own_paths::{OptionalOwnPaths, PathGenerator};
use crate::scale_up::ScaleUp;
use crate::servers::Servers;
use crate::sites::Sites;

/// Largest number of hosts and switches of a topology.
pub const MAX_NODES: u32 = 1 << 21;
/// Largest number of links of a topology.
pub const MAX_LINKS: usize = 1 << 22;
/// Largest number of ports of a node.
pub const MAX_PORTS: u32 = u16::MAX as u32;
/// Largest number of ports of a host: the limit of an endpoint.
pub const MAX_HOST_PORTS: u32 = 64;

/// Switch of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Unique name: "tor3", "agg0.1", "core5".
    pub name: String,
    /// Distance from the hosts: 0 is a ToR or leaf.
    pub tier: u8,
    /// Number of the pod or group that the switch belongs to, if any.
    pub group: Option<u32>,
}

/// Full-duplex link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate in each direction, or from `a` to `b` ([`Topology::direction`]).
    pub rate: Rate,
    /// Propagation delay in each direction, or from `a` to `b`.
    pub delay: Duration,
    /// Probability in `0.0..=1.0` that the link loses a packet, in each direction or from `a` to `b`.
    pub error_rate: f64,
}

/// Port of a node, described by its link and the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRef {
    /// Link of the port.
    pub link: LinkId,
    /// Node at the other end.
    pub peer: NodeId,
    /// Port at the other end.
    pub peer_port: u16,
    /// True if the port is the `a` end of the link.
    pub is_a: bool,
}

/// Network that is immutable and validated on construction.
///
/// Port `p` of a node is its `p`-th link in the order of [`Topology::links`], from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    name: String,
    names: Names,
    hosts: u32,
    switches: Vec<Switch>,
    links: Vec<Link>,
    /// Ports of node `n` are `ports[first_port[n]..first_port[n + 1]]`.
    first_port: Vec<u32>,
    ports: Vec<PortRef>,
    regular_clos: bool,
    own_paths: OptionalOwnPaths,
    edge: HostAttachment,
    sites: Option<Sites>,
    servers: Option<Servers>,
    directions: Directions,
    known_regular: KnownRegular,
    notes: Vec<String>,
}

/// Role of the switches that hosts are attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostAttachment {
    /// The switches belong to the network.
    #[default]
    Network,
    /// The switches are parts of the hosts, like GPUs that forward. A host knows the rates of its switch's ports.
    Host,
}

impl Topology {
    /// Creates a network from hosts, switches and links.
    ///
    /// # Errors
    /// There are no hosts, or more than [`MAX_NODES`], [`MAX_LINKS`], [`MAX_PORTS`] of a switch or [`MAX_HOST_PORTS`]
    /// of a host. A link has an end that does not exist, joins a node to itself, has rate 0, or an error rate outside
    /// `0.0..=1.0`. A node has no ports, two nodes have one name, or the network is not connected.
    pub fn new(
        name: impl Into<String>,
        hosts: u32,
        switches: Vec<Switch>,
        links: Vec<Link>,
    ) -> Result<Self, TopoError> {
        Self::with_host_names(name, hosts, HostNames::Counted, switches, links)
    }

    /// Works like [`Topology::new`], with these names of hosts in place of "host0", "host1", ...
    pub(crate) fn with_host_names(
        name: impl Into<String>,
        hosts: u32,
        host_names: HostNames,
        switches: Vec<Switch>,
        links: Vec<Link>,
    ) -> Result<Self, TopoError> {
        let mut topology = Topology {
            name: name.into(),
            names: Names::default(),
            hosts,
            switches,
            links,
            first_port: Vec::new(),
            ports: Vec::new(),
            regular_clos: false,
            own_paths: OptionalOwnPaths::default(),
            edge: HostAttachment::default(),
            sites: None,
            servers: None,
            directions: Directions::default(),
            known_regular: KnownRegular::default(),
            notes: Vec::new(),
        };
        topology.check_sizes()?;
        topology.names = Names::new(hosts, host_names, &topology.switches)
            .map_err(|twice| topology.refuse(format!("two nodes are named \"{twice}\"")))?;
        topology.check_links()?;
        topology.connect_ports();
        topology.check_ports()?;
        topology.check_connected()?;
        Ok(topology)
    }

    /// Declares that this is a Clos, or consists of equal planes that are, whose routing may be arithmetic (see
    /// [`crate::Routing`]): the shortest paths are exactly those that go up and then down over tiers.
    pub(crate) fn with_arithmetic_routing(mut self) -> Self {
        self.regular_clos = true;
        self
    }
    /// Sets the paths that the topology provides for sources.
    pub(crate) fn with_own_paths(mut self, paths: impl PathGenerator + 'static) -> Self {
        self.own_paths = OptionalOwnPaths(Some(std::sync::Arc::new(paths)));
        self
    }
    /// Declares that the switch of each host is part of the host, or not.
    pub(crate) fn with_edge(mut self, edge: HostAttachment) -> Self {
        self.edge = edge;
        self
    }
    /// Returns the role of the switches that hosts are attached to.
    pub fn edge(&self) -> HostAttachment {
        self.edge
    }

    /// Returns the switches that are parts of hosts, such as NICs: they hold the hosts' traffic back, and mark none.
    pub fn switches_of_hosts(&self) -> BTreeSet<NodeId> {
        match self.edge {
            HostAttachment::Network => BTreeSet::new(),
            HostAttachment::Host => (0..self.hosts()).map(|host| self.ports(NodeId(host))[0].peer).collect(),
        }
    }
    pub(crate) fn own_paths(&self) -> &OptionalOwnPaths {
        &self.own_paths
    }
    /// Sets the data centre of each node.
    pub(crate) fn with_sites(mut self, sites: Sites) -> Self {
        self.sites = Some(sites);
        self
    }
    /// Returns the data centres, if there are several.
    pub fn sites(&self) -> Option<&Sites> {
        self.sites.as_ref()
    }
    /// Takes over the routing and the paths of a network whose hosts this topology replaces one by one.
    pub(crate) fn with_properties_of(mut self, inner: &Topology) -> Self {
        self.regular_clos = inner.regular_clos;
        self.own_paths = inner.own_paths.clone();
        self.edge = inner.edge;
        self
    }
    /// Sets the servers that the hosts belong to.
    pub(crate) fn with_servers(mut self, servers: Servers) -> Self {
        self.servers = Some(servers);
        self
    }
    /// Returns the servers, if hosts are GPUs of servers.
    pub fn servers(&self) -> Option<&Servers> {
        self.servers.as_ref()
    }
    /// Returns the networks that join the GPUs of servers or racks, if there are any.
    pub fn scale_up(&self) -> Option<&ScaleUp> {
        self.servers.as_ref().and_then(Servers::scale_up)
    }
    /// Adds a note about the source file for the user.
    pub(crate) fn with_note(mut self, note: String) -> Self {
        self.notes.push(note);
        self
    }
    /// Returns the notes about the source file for the user: input that was not used, and meanings that differ.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    pub(crate) fn set_tier(&mut self, switch: usize, tier: u8) {
        self.known_regular.forget();
        self.switches[switch].tier = tier;
    }
    pub(crate) fn is_regular_clos(&self) -> bool {
        self.regular_clos
    }
    /// Returns the name of the topology, for display.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }
    /// Returns the number of hosts and switches.
    pub fn nodes(&self) -> u32 {
        self.hosts + self.switches.len() as u32
    }
    /// Returns the switches. The `i`-th is node `hosts + i`.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }
    /// Returns the links, indexed by [`LinkId`].
    pub fn links(&self) -> &[Link] {
        &self.links
    }
    /// Returns a link.
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }
    pub(crate) fn link_mut(&mut self, link: LinkId) -> &mut Link {
        self.known_regular.forget();
        &mut self.links[link.index()]
    }
    pub(crate) fn directions(&self) -> &Directions {
        &self.directions
    }
    pub(crate) fn directions_mut(&mut self) -> &mut Directions {
        self.known_regular.forget();
        &mut self.directions
    }
    pub(crate) fn known_regular(&self) -> &KnownRegular {
        &self.known_regular
    }
    /// Returns the ports of a node, in port order.
    #[inline]
    pub fn ports(&self, node: NodeId) -> &[PortRef] {
        let first = self.first_port[node.index()] as usize;
        let end = self.first_port[node.index() + 1] as usize;
        &self.ports[first..end]
    }
    /// Returns true if the node is a host.
    #[inline]
    pub fn is_host(&self, node: NodeId) -> bool {
        node.0 < self.hosts
    }
    /// Returns the host that the node is, or `None` for a switch.
    pub fn as_host(&self, node: NodeId) -> Option<HostId> {
        self.is_host(node).then_some(HostId(node.0))
    }
    /// Returns the index into [`Topology::switches`], or `None` for a host.
    pub fn switch_index(&self, node: NodeId) -> Option<usize> {
        (!self.is_host(node)).then(|| (node.0 - self.hosts) as usize)
    }
    /// Returns the node of the `index`-th switch.
    pub fn switch_node(&self, index: usize) -> NodeId {
        NodeId(self.hosts + index as u32)
    }
    /// Returns the bytes that the topology occupies on the heap.
    pub fn memory_bytes(&self) -> u64 {
        let graph = size_of_val(&self.links[..])
            + size_of_val(&self.first_port[..])
            + size_of_val(&self.ports[..])
            + self.switches.capacity() * size_of::<Switch>();
        let names: usize = self.switches.iter().map(|switch| switch.name.capacity()).sum();
        (graph + names) as u64 + self.names.memory_bytes()
    }
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    pub(crate) fn refuse(&self, what: impl Into<String>) -> TopoError {
        TopoError::Graph { topology: self.name.clone(), what: what.into() }
    }

    fn check_sizes(&self) -> Result<(), TopoError> {
        if self.hosts == 0 {
            return Err(self.refuse("it has no hosts; at least 1 is needed"));
        }
        let nodes = u64::from(self.hosts) + self.switches.len() as u64;
        if nodes > u64::from(MAX_NODES) {
            return Err(self.refuse(format!("{nodes} hosts and switches; at most {MAX_NODES} are allowed")));
        }
        if self.links.len() > MAX_LINKS {
            return Err(self.refuse(format!("{} links; at most {MAX_LINKS} are allowed", self.links.len())));
        }
        Ok(())
    }

    fn check_links(&self) -> Result<(), TopoError> {
        for (i, link) in self.links.iter().enumerate() {
            for end in [link.a, link.b] {
                if end.0 >= self.nodes() {
                    let last = self.nodes() - 1;
                    return Err(
                        self.refuse(format!("link {i} ends at node {}; nodes are 0 to {last}", end.0))
                    );
                }
            }
            let fault = if link.a == link.b {
                "connects a node to itself"
            } else if link.rate == Rate::ZERO {
                "has rate 0; rates must be above 0"
            } else if !(0.0..=1.0).contains(&link.error_rate) {
                "has an error rate outside 0.0 to 1.0"
            } else {
                continue;
            };
            let (a, b) = (self.node_name(link.a), self.node_name(link.b));
            return Err(self.refuse(format!("link {i} ({a} to {b}) {fault}")));
        }
        Ok(())
    }

    fn connect_ports(&mut self) {
        let nodes = self.nodes() as usize;
        let mut degree = vec![0u32; nodes];
        for link in &self.links {
            degree[link.a.index()] += 1;
            degree[link.b.index()] += 1;
        }
        self.first_port = Vec::with_capacity(nodes + 1);
        let mut total = 0;
        self.first_port.push(0);
        for d in degree {
            total += d;
            self.first_port.push(total);
        }
        let nowhere = PortRef { link: LinkId(0), peer: NodeId(0), peer_port: 0, is_a: false };
        self.ports = vec![nowhere; total as usize];
        let mut next = self.first_port.clone();
        for (i, link) in self.links.iter().enumerate() {
            let (a, b) = (link.a.index(), link.b.index());
            let (slot_a, slot_b) = (next[a], next[b]);
            next[a] += 1;
            next[b] += 1;
            // Truncation is harmless: `check_ports` refuses nodes with more ports than fit.
            let (port_a, port_b) =
                ((slot_a - self.first_port[a]) as u16, (slot_b - self.first_port[b]) as u16);
            let link_id = LinkId(i as u32);
            self.ports[slot_a as usize] =
                PortRef { link: link_id, peer: link.b, peer_port: port_b, is_a: true };
            self.ports[slot_b as usize] =
                PortRef { link: link_id, peer: link.a, peer_port: port_a, is_a: false };
        }
    }

    fn check_ports(&self) -> Result<(), TopoError> {
        for node in (0..self.nodes()).map(NodeId) {
            let ports = self.ports(node).len();
            if ports == 0 {
                return Err(self.refuse(format!("{} has no links", self.node_name(node))));
            }
            let (what, most) = if self.is_host(node) { ("host ", MAX_HOST_PORTS) } else { ("", MAX_PORTS) };
            if ports > most as usize {
                let name = self.node_name(node);
                return Err(
                    self.refuse(format!("{what}{name} has {ports} ports; at most {most} are allowed"))
                );
            }
        }
        Ok(())
    }

    /// Returns an upper bound of the distance between two hosts, in links: twice the largest distance from a switch of
    /// each part of the network that only hosts join to others. For most networks these searches prove that no path is
    /// too long.
    pub fn diameter_bound(&self) -> u32 {
        if self.switches.is_empty() {
            return self.nodes();
        }
        let mut depth = vec![u32::MAX; self.switches.len()];
        let mut farthest = 0;
        let mut queue = VecDeque::new();
        for first in 0..self.switches.len() {
            if depth[first] == u32::MAX {
                depth[first] = 0;
                queue.push_back(first);
            }
            while let Some(switch) = queue.pop_front() {
                let here = depth[switch];
                for port in self.ports(self.switch_node(switch)) {
                    match self.switch_index(port.peer) {
                        None => farthest = farthest.max(here + 1),
                        Some(peer) if depth[peer] == u32::MAX => {
                            depth[peer] = here + 1;
                            queue.push_back(peer);
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        farthest * 2
    }

    fn check_connected(&self) -> Result<(), TopoError> {
        let mut seen = vec![false; self.nodes() as usize];
        let mut stack = vec![NodeId(0)];
        seen[0] = true;
        while let Some(node) = stack.pop() {
            for port in self.ports(node) {
                if !std::mem::replace(&mut seen[port.peer.index()], true) {
                    stack.push(port.peer);
                }
            }
        }
        match seen.iter().position(|&s| !s) {
            None => Ok(()),
            Some(apart) => {
                let (first, apart) = (self.node_name(NodeId(0)), self.node_name(NodeId(apart as u32)));
                Err(self.refuse(format!("it is not connected: no path from {first} to {apart}")))
            }
        }
    }
}
