//! The paths of every pair of edges, and what finds them: which pairs want paths, and where paths are put.

use pathweave_units::{Duration, HostId, Rate};

use crate::error::TopoError;
use crate::graph::{Link, LinkId, NodeId, PortRef, Topology};

/// Most hops of all paths together: 1 GiB here and in the fabric.
const MAX_HOPS: usize = 1 << 26;
/// Most edges: their pairs have a table.
const MAX_EDGES: usize = 1 << 13;
/// Most paths of a pair.
pub(super) const MAX_PATHS: u32 = u16::MAX as u32;
/// Most switches on a path: a packet that has passed more counts as caught in a loop.
pub(super) const MAX_SWITCHES: usize = 64;

/// A link in one of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop(u32);

impl Hop {
    /// Out of the node behind this port.
    pub(crate) fn by(port: &PortRef) -> Self {
        Hop(port.link.0 << 1 | u32::from(!port.is_a))
    }
    /// The link.
    pub fn link(self) -> LinkId {
        LinkId(self.0 >> 1)
    }
    /// Whether it goes from the link's `a` end to its `b` end.
    pub fn from_a(self) -> bool {
        self.0 & 1 == 0
    }
    /// The other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Hop(self.0 ^ 1)
    }
    /// Where it ends.
    pub fn end(self, topology: &Topology) -> NodeId {
        let Link { a, b, .. } = *topology.link(self.link());
        if self.from_a() { b } else { a }
    }
}

/// Rates and delays of the links of a path from host to host.
pub type LinkProfile = Vec<(Rate, Duration)>;

/// The paths of every pair of edges, or of those that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSets {
    /// Edge of each host.
    pub(super) edge_of: Vec<u32>,
    /// The switch of each edge.
    pub(super) edges: Vec<NodeId>,
    /// Paths from edge `a` to edge `b` are `first_path[a * edges + b]..` up to the next entry.
    pub(super) first_path: Vec<u32>,
    /// Hops of path `p` are `hops[first_hop[p]..first_hop[p + 1]]`.
    pub(super) first_hop: Vec<u32>,
    pub(super) hops: Vec<Hop>,
}

/// For which pairs paths are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// For all of them.
    All,
    /// For these, in both directions.
    Pairs(&'a [(HostId, HostId)]),
}

impl PathSets {
    /// The switches that hosts are attached to; their index is the edge's number.
    pub fn edges(&self) -> &[NodeId] {
        &self.edges
    }
    /// The edge of a host.
    pub fn edge_of(&self, host: HostId) -> u32 {
        self.edge_of[host.index()]
    }
    /// The paths from one edge to another, each as its links from switch to switch.
    pub fn between_edges(&self, from: u32, to: u32) -> impl ExactSizeIterator<Item = &[Hop]> {
        let pair = from as usize * self.edges.len() + to as usize;
        let paths = self.first_path[pair] as usize..self.first_path[pair + 1] as usize;
        paths.map(|path| &self.hops[self.first_hop[path] as usize..self.first_hop[path + 1] as usize])
    }
    /// The paths from one host to another, each as its links from switch to switch. None where they were not asked for
    /// or do not exist, or the hosts are one.
    pub fn between(&self, src: HostId, dst: HostId) -> impl ExactSizeIterator<Item = &[Hop]> {
        let paths = self.between_edges(self.edge_of(src), self.edge_of(dst));
        paths.take(if src == dst { 0 } else { usize::MAX })
    }
    /// Number of path `path` of a pair among those of all pairs; `None` where the pair has no such path.
    #[inline]
    pub fn number(&self, src: HostId, dst: HostId, path: u16) -> Option<usize> {
        let pair = self.edge_of(src) as usize * self.edges.len() + self.edge_of(dst) as usize;
        let number = self.first_path[pair] + u32::from(path);
        (number < self.first_path[pair + 1]).then_some(number as usize)
    }
    /// How many switches each path passes, in the order of [`PathSets::number`].
    pub fn switches(&self) -> impl ExactSizeIterator<Item = usize> {
        self.first_hop.windows(2).map(|ends| (ends[1] - ends[0]) as usize + 1)
    }
    /// How many paths a host may choose from.
    pub fn count(&self, src: HostId, dst: HostId) -> u32 {
        self.between(src, dst).len() as u32
    }
    /// Paths from a host to all others: the entries of a table of its paths.
    pub fn paths_of_host(&self, topology: &Topology, src: HostId) -> u64 {
        (0..topology.hosts()).map(|dst| u64::from(self.count(src, HostId(dst)))).sum()
    }
    /// Rates and delays of the links of each path, those of the hosts included.
    pub fn profiles(
        &self,
        topology: &Topology,
        src: HostId,
        dst: HostId,
    ) -> impl ExactSizeIterator<Item = LinkProfile> {
        let of = |link: LinkId| (topology.link(link).rate, topology.link(link).delay);
        let ends = [src, dst].map(|host| of(host_port(topology, host).link));
        self.between(src, dst).map(move |hops| {
            let between = hops.iter().map(|hop| of(hop.link()));
            [ends[0]].into_iter().chain(between).chain([ends[1]]).collect()
        })
    }
    /// Whether all links of each path are alive, those of the hosts included.
    pub fn alive(
        &self,
        topology: &Topology,
        src: HostId,
        dst: HostId,
        alive: impl Fn(LinkId) -> bool,
    ) -> impl ExactSizeIterator<Item = bool> {
        let ends = [src, dst].iter().all(|&host| alive(host_port(topology, host).link));
        self.between(src, dst).map(move |hops| ends && hops.iter().all(|hop| alive(hop.link())))
    }
    /// Memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let indices = size_of_val(&self.first_path[..]) + size_of_val(&self.first_hop[..]);
        (indices + size_of_val(&self.hops[..]) + size_of_val(&self.edge_of[..])) as u64
    }
}

/// The only port of a host.
fn host_port(topology: &Topology, host: HostId) -> &PortRef {
    &topology.ports(host.into())[0]
}

/// Edges and wanted pairs, for whoever finds the paths.
pub(super) struct Plan<'a> {
    pub(super) topology: &'a Topology,
    pub(super) edge_of: Vec<u32>,
    pub(super) edges: Vec<NodeId>,
    /// By pair of edges; `None`: all.
    wanted: Option<Vec<bool>>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(topology: &'a Topology, wanted: Wanted<'_>) -> Result<Self, TopoError> {
        let mut number_of = vec![u32::MAX; topology.nodes() as usize];
        let mut edges = Vec::new();
        let mut edge_of = Vec::with_capacity(topology.hosts() as usize);
        for host in (0..topology.hosts()).map(NodeId) {
            let [port] = topology.ports(host) else {
                let (name, ports) = (topology.node_name(host), topology.ports(host).len());
                let what = format!(
                    "{name} has {ports} NIC ports; sources can choose routes only where hosts have one"
                );
                return Err(topology.refuse(what));
            };
            if topology.is_host(port.peer) {
                let (a, b) = (topology.node_name(host), topology.node_name(port.peer));
                return Err(topology.refuse(format!(
                    "{a} and {b} are linked without a switch, so there is no route to choose"
                )));
            }
            let number = &mut number_of[port.peer.index()];
            if *number == u32::MAX {
                *number = edges.len() as u32;
                edges.push(port.peer);
            }
            edge_of.push(*number);
        }
        if edges.len() > MAX_EDGES {
            let what = format!(
                "{} switches with hosts; at most {MAX_EDGES} are allowed with explicit paths",
                edges.len()
            );
            return Err(topology.refuse(what));
        }
        let wanted = match wanted {
            Wanted::All => None,
            Wanted::Pairs(pairs) => {
                let mut wanted = vec![false; edges.len() * edges.len()];
                for (src, dst) in pairs {
                    let (a, b) = (edge_of[src.index()] as usize, edge_of[dst.index()] as usize);
                    wanted[a * edges.len() + b] = true;
                    wanted[b * edges.len() + a] = true;
                }
                Some(wanted)
            }
        };
        Ok(Plan { topology, edge_of, edges, wanted })
    }

    /// Whether paths are wanted between two different edges.
    pub(super) fn wants(&self, from: usize, to: usize) -> bool {
        from != to && self.wanted.as_ref().is_none_or(|wanted| wanted[from * self.edges.len() + to])
    }

    /// Finds all paths: `find` emits those from one edge to another, which differ.
    pub(super) fn collect(
        self,
        mut find: impl FnMut(&Plan<'a>, usize, usize, &mut Emit<'_>) -> Result<(), TopoError>,
    ) -> Result<PathSets, TopoError> {
        let mut list = Emit { topology: self.topology, first_hop: vec![0], hops: Vec::new() };
        let mut first_path = vec![0];
        for from in 0..self.edges.len() {
            for to in 0..self.edges.len() {
                let before = list.first_hop.len();
                if from == to {
                    list.path([]);
                } else if self.wants(from, to) {
                    find(&self, from, to, &mut list)?;
                    let found = list.first_hop.len() - before;
                    let name = |edge: usize| self.topology.node_name(self.edges[edge]);
                    if found == 0 {
                        let what = format!("there is no path from {} to {}", name(from), name(to));
                        return Err(self.topology.refuse(what));
                    }
                    if found > MAX_PATHS as usize {
                        let what = format!(
                            "{found} paths from {} to {}; at most {MAX_PATHS} are allowed",
                            name(from),
                            name(to)
                        );
                        return Err(self.topology.refuse(what));
                    }
                }
                let longest = list.first_hop[before - 1..].windows(2).map(|ends| ends[1] - ends[0]).max();
                if longest.is_some_and(|hops| hops as usize >= MAX_SWITCHES) {
                    let [from, to] = [from, to].map(|edge| self.topology.node_name(self.edges[edge]));
                    let what = format!(
                        "a path from {from} to {to} is over {} switches; at most {MAX_SWITCHES} are allowed",
                        longest.unwrap_or(0) + 1
                    );
                    return Err(self.topology.refuse(what));
                }
                if list.hops.len() > MAX_HOPS {
                    let what = format!(
                        "its paths have more than {MAX_HOPS} hops together; fewer paths of a pair (`max_paths`, `k`) take less"
                    );
                    return Err(self.topology.refuse(what));
                }
                first_path.push(list.first_hop.len() as u32 - 1);
            }
        }
        let Emit { first_hop, hops, .. } = list;
        Ok(PathSets { edge_of: self.edge_of, edges: self.edges, first_path, first_hop, hops })
    }
}

/// Takes the paths of a pair.
pub(super) struct Emit<'a> {
    topology: &'a Topology,
    first_hop: Vec<u32>,
    hops: Vec<Hop>,
}

impl Emit<'_> {
    pub(super) fn path(&mut self, hops: impl IntoIterator<Item = Hop>) {
        self.hops.extend(hops);
        self.first_hop.push(self.hops.len() as u32);
    }

    /// A path over these switches, by the first of parallel links.
    pub(super) fn path_over(&mut self, switches: &[NodeId]) {
        let topology = self.topology;
        let hop = |ends: &[NodeId]| {
            let port = topology.ports(ends[0]).iter().find(|port| port.peer == ends[1]);
            Hop::by(port.expect("paths go from neighbour to neighbour"))
        };
        self.path(switches.windows(2).map(hop));
    }
}
