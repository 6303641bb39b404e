//! Paths of every pair of edges, and the framework for finding them.

use std::collections::BTreeMap;

use pathweave_units::{Duration, HostId, Rate};

use crate::error::TopoError;
use crate::graph::{Link, LinkId, NodeId, PortRef, Topology};
use crate::host_ports::leading_ports;
use crate::routing::Routing;

/// Largest number of hops of all paths together: 1 GiB here and in the fabric.
const MAX_HOPS: usize = 1 << 26;
/// Largest number of edges. There is a table of their pairs.
const MAX_EDGES: usize = 1 << 13;
/// Largest number of paths of a pair.
pub(super) const MAX_PATHS: u32 = u16::MAX as u32;
/// Largest number of switches on a path. A packet that has passed more counts as caught in a loop.
pub(super) const MAX_SWITCHES: usize = 64;

/// Link in one of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop(u32);

impl Hop {
    /// Returns the hop that leaves a node by this port.
    pub(crate) fn out_of_port(port: &PortRef) -> Self {
        Hop(port.link.0 << 1 | u32::from(!port.is_a))
    }
    /// Returns the link.
    pub fn link(self) -> LinkId {
        LinkId(self.0 >> 1)
    }
    /// Returns true if the hop goes from the link's `a` end to its `b` end.
    pub fn from_a(self) -> bool {
        self.0 & 1 == 0
    }
    /// Returns the hop in the other direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        Hop(self.0 ^ 1)
    }
    /// Returns the node at the end of the hop.
    pub fn end(self, topology: &Topology) -> NodeId {
        let Link { a, b, .. } = *topology.link(self.link());
        if self.from_a() { b } else { a }
    }
}

/// Rates and delays of the links of a path from host to host.
pub type LinkProfile = Vec<(Rate, Duration)>;

/// Paths of every pair of edges, or of those that were requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSets {
    /// Edge of each host.
    pub(super) edge_of: Vec<u32>,
    /// Switches of each edge, indexed by NIC port.
    pub(super) edges: Vec<Vec<NodeId>>,
    /// Paths from edge `a` to edge `b` are `first_path[a * edges + b]..` up to the next entry.
    pub(super) first_path: Vec<u32>,
    /// Hops of path `p` are `hops[first_hop[p]..first_hop[p + 1]]`.
    pub(super) first_hop: Vec<u32>,
    pub(super) hops: Vec<Hop>,
    /// NIC ports of each path at its two ends.
    pub(super) ends: Vec<[u8; 2]>,
}

/// Pairs for which paths are requested.
#[derive(Clone, Copy, Debug)]
pub enum RequestedPairs<'a> {
    /// All pairs.
    All,
    /// These pairs, in both directions.
    Pairs(&'a [(HostId, HostId)]),
}

impl PathSets {
    /// Returns the switches of each edge, indexed by NIC port. The index of an entry is the number of the edge.
    pub fn edges(&self) -> &[Vec<NodeId>] {
        &self.edges
    }
    /// Returns the edge of a host.
    pub fn edge_of(&self, host: HostId) -> u32 {
        self.edge_of[host.index()]
    }
    /// Returns the paths from one edge to another, each as its links between switches.
    pub fn between_edges(&self, from: u32, to: u32) -> impl ExactSizeIterator<Item = &[Hop]> {
        let pair = from as usize * self.edges.len() + to as usize;
        let paths = self.first_path[pair] as usize..self.first_path[pair + 1] as usize;
        paths.map(|path| &self.hops[self.first_hop[path] as usize..self.first_hop[path + 1] as usize])
    }
    /// Returns the paths from one host to another, each as its links between switches. The result is empty if paths
    /// of the pair were not requested or do not exist, or if both hosts are the same.
    pub fn between(&self, src: HostId, dst: HostId) -> impl ExactSizeIterator<Item = &[Hop]> {
        let paths = self.between_edges(self.edge_of(src), self.edge_of(dst));
        paths.take(if src == dst { 0 } else { usize::MAX })
    }
    /// Returns the number of path `path` of a pair among the paths of all pairs, or `None` if the pair has no such
    /// path.
    #[inline]
    pub fn number(&self, src: HostId, dst: HostId, path: u16) -> Option<usize> {
        let pair = self.edge_of(src) as usize * self.edges.len() + self.edge_of(dst) as usize;
        let number = self.first_path[pair] + u32::from(path);
        (number < self.first_path[pair + 1]).then_some(number as usize)
    }
    /// Returns the NIC ports at both ends of the paths from one edge to another, in the order of
    /// [`PathSets::between_edges`].
    pub fn nic_ports_between_edges(&self, from: u32, to: u32) -> &[[u8; 2]] {
        let pair = from as usize * self.edges.len() + to as usize;
        &self.ends[self.first_path[pair] as usize..self.first_path[pair + 1] as usize]
    }
    /// Returns the NIC ports of the paths from one host to another, in the order of [`PathSets::between`].
    fn ends(&self, src: HostId, dst: HostId) -> &[[u8; 2]] {
        if src == dst { &[] } else { self.nic_ports_between_edges(self.edge_of(src), self.edge_of(dst)) }
    }
    /// Returns the NIC port of `dst` at which a path of a pair arrives and by which its replies leave. Returns `None`
    /// if the pair has no such path.
    pub fn arrival_port(&self, src: HostId, dst: HostId, path: u16) -> Option<u8> {
        self.number(src, dst, path).map(|number| self.ends[number][1])
    }
    /// Returns the NIC ports of `src` by which paths to `dst` leave, as a bit set, or 0 if there is no path. If `n`
    /// ports are set, path `p` leaves by the `p % n`-th of them.
    pub fn leading_ports(&self, src: HostId, dst: HostId) -> u64 {
        self.ends(src, dst).iter().fold(0, |bits, [out, _]| bits | 1 << out)
    }
    /// Returns the number of switches on each path, in the order of [`PathSets::number`].
    pub fn switches(&self) -> impl ExactSizeIterator<Item = usize> {
        self.first_hop.windows(2).map(|ends| (ends[1] - ends[0]) as usize + 1)
    }
    /// Returns the number of paths that a host may choose from.
    pub fn count(&self, src: HostId, dst: HostId) -> u32 {
        self.between(src, dst).len() as u32
    }
    /// Returns the number of paths from a host to all others, which is the size of a table of its paths.
    pub fn paths_of_host(&self, topology: &Topology, src: HostId) -> u64 {
        (0..topology.hosts()).map(|dst| u64::from(self.count(src, HostId(dst)))).sum()
    }
    /// Returns the rates and delays of the links of each path, including the links of hosts.
    pub fn profiles(
        &self,
        topology: &Topology,
        src: HostId,
        dst: HostId,
    ) -> impl ExactSizeIterator<Item = LinkProfile> {
        self.links(topology, src, dst).map(move |links| {
            let mut at = NodeId::from(src);
            let hop = |link: LinkId| {
                let ends = topology.link(link);
                let from_a = ends.a == at;
                at = if from_a { ends.b } else { ends.a };
                let way = topology.direction(link, from_a);
                (way.rate, way.delay)
            };
            links.into_iter().map(hop).collect()
        })
    }
    /// Returns the links of each path, including the links of hosts.
    pub fn links(
        &self,
        topology: &Topology,
        src: HostId,
        dst: HostId,
    ) -> impl ExactSizeIterator<Item = Vec<LinkId>> {
        let link = move |host: HostId, port: u8| topology.ports(host.into())[usize::from(port)].link;
        self.between(src, dst).zip(self.ends(src, dst)).map(move |(hops, &[out, back])| {
            let between = hops.iter().map(|hop| hop.link());
            [link(src, out)].into_iter().chain(between).chain([link(dst, back)]).collect()
        })
    }
    /// Returns for each path true if all its links are up, including the links of hosts.
    pub fn alive(
        &self,
        topology: &Topology,
        src: HostId,
        dst: HostId,
        alive: impl Fn(LinkId) -> bool,
    ) -> impl ExactSizeIterator<Item = bool> {
        let is_up = |host: HostId| topology.ports(host.into()).iter().map(|port| alive(port.link)).collect();
        let ([from, to], ends): ([Vec<bool>; 2], _) = ([src, dst].map(is_up), self.ends(src, dst));
        self.between(src, dst).zip(ends).map(move |(hops, &[out, back])| {
            from[usize::from(out)] && to[usize::from(back)] && hops.iter().all(|hop| alive(hop.link()))
        })
    }
    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let indices = size_of_val(&self.first_path[..])
            + size_of_val(&self.first_hop[..])
            + size_of_val(&self.ends[..]);
        (indices + size_of_val(&self.hops[..]) + size_of_val(&self.edge_of[..])) as u64
    }
}

/// Edges and requested pairs, the input of every search for paths.
pub(super) struct PathSearch<'a> {
    pub(super) topology: &'a Topology,
    pub(super) edge_of: Vec<u32>,
    pub(super) edges: Vec<Vec<NodeId>>,
    /// A host of each edge.
    pub(super) host_at: Vec<HostId>,
    /// Another host of each edge, or the same if there is only one.
    second_host_at: Vec<HostId>,
    /// Requested pairs of edges; `None`: all.
    wanted: Option<Vec<bool>>,
}

/// NIC ports of two hosts with their switches, at the two ends of requested paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortPair {
    /// Edges of the two hosts.
    pub(super) edges: [usize; 2],
    /// Ports of the two hosts.
    pub(super) ports: [u8; 2],
    /// Switches at these ports.
    pub(super) switches: [NodeId; 2],
}

impl<'a> PathSearch<'a> {
    pub(super) fn new(topology: &'a Topology, wanted: RequestedPairs<'_>) -> Result<Self, TopoError> {
        let mut number_of: BTreeMap<(Vec<NodeId>, Vec<Rate>), u32> = BTreeMap::new();
        let (mut edges, mut host_at, mut other_at) = (Vec::new(), Vec::new(), Vec::new());
        let mut edge_of = Vec::with_capacity(topology.hosts() as usize);
        for host in (0..topology.hosts()).map(HostId) {
            let ports = topology.ports(host.into());
            if let Some(port) = ports.iter().find(|port| topology.is_host(port.peer)) {
                let (a, b) = (topology.node_name(host.into()), topology.node_name(port.peer));
                return Err(topology.refuse(format!(
                    "{a} and {b} are linked without a switch, so there is no route to choose"
                )));
            }
            let switches: Vec<NodeId> = ports.iter().map(|port| port.peer).collect();
            // The rates determine which of several ports are used.
            let rates = ports.iter().map(|port| topology.egress(port).rate);
            let rates = if ports.len() > 1 { rates.collect() } else { Vec::new() };
            let number = *number_of.entry((switches, rates)).or_insert_with_key(|(switches, _)| {
                edges.push(switches.clone());
                host_at.push(host);
                other_at.push(host);
                edges.len() as u32 - 1
            });
            other_at[number as usize] = host;
            edge_of.push(number);
        }
        if edges.len() > MAX_EDGES {
            let what = format!(
                "{} switches with hosts; at most {MAX_EDGES} are allowed with explicit paths",
                edges.len()
            );
            return Err(topology.refuse(what));
        }
        let wanted = match wanted {
            RequestedPairs::All => None,
            RequestedPairs::Pairs(pairs) => {
                let mut wanted = vec![false; edges.len() * edges.len()];
                for (src, dst) in pairs {
                    let (a, b) = (edge_of[src.index()] as usize, edge_of[dst.index()] as usize);
                    wanted[a * edges.len() + b] = true;
                    wanted[b * edges.len() + a] = true;
                }
                Some(wanted)
            }
        };
        Ok(PathSearch { topology, edge_of, edges, host_at, second_host_at: other_at, wanted })
    }

    /// Returns true if paths are requested between two edges that differ.
    pub(super) fn wants(&self, from: usize, to: usize) -> bool {
        from != to && self.wanted.as_ref().is_none_or(|wanted| wanted[from * self.edges.len() + to])
    }

    /// Returns the name of an edge, composed of the names of its switches.
    pub(super) fn name(&self, edge: usize) -> String {
        let names = self.edges[edge].iter().map(|&switch| self.topology.node_name(switch).into_owned());
        names.collect::<Vec<String>>().join("/")
    }

    /// Finds all paths. `find` emits the paths between two different switches with hosts.
    pub(super) fn collect(
        self,
        find: impl FnMut(&PathSearch<'a>, &PortPair, &mut PathCollector<'_>) -> Result<(), TopoError>,
    ) -> Result<PathSets, TopoError> {
        let topology = self.topology;
        self.collect_or(|pair| topology.refuse(format!("there is no path {pair}")), find)
    }

    /// Finds all paths like [`PathSearch::collect`]. `none` returns the error for a pair of edges without a path.
    pub(super) fn collect_or(
        self,
        none: impl Fn(String) -> TopoError,
        mut find: impl FnMut(&PathSearch<'a>, &PortPair, &mut PathCollector<'_>) -> Result<(), TopoError>,
    ) -> Result<PathSets, TopoError> {
        let has_choice = self.edges.iter().any(|switches| switches.len() > 1);
        let routing = has_choice.then(|| Routing::all_links_up(self.topology));
        let mut found = PathCollector { topology: self.topology, paths: Vec::new() };
        let mut sets = PathSets {
            edge_of: Vec::new(),
            edges: Vec::new(),
            first_path: vec![0],
            first_hop: vec![0],
            hops: Vec::new(),
            ends: Vec::new(),
        };
        for from in 0..self.edges.len() {
            for to in 0..self.edges.len() {
                let pairs = self.pairs_of_ports(routing.as_ref(), [from, to]);
                let near = pairs.iter().any(|ends| ends.switches[0] == ends.switches[1]);
                if near || self.wants(from, to) {
                    let mut by_port: BTreeMap<u8, Vec<PathWithPorts>> = BTreeMap::new();
                    for ends in &pairs {
                        match ends.switches[0] == ends.switches[1] {
                            true => found.path([]),
                            // Hosts at the same switch communicate over it.
                            false if near => {}
                            false => find(&self, ends, &mut found)?,
                        }
                        let of_ends = found.paths.drain(..).map(|hops| (ends.ports, hops));
                        by_port.entry(ends.ports[0]).or_default().extend(of_ends);
                    }
                    self.add(&mut sets, [from, to], by_port, &none)?;
                }
                sets.first_path.push(sets.ends.len() as u32);
            }
        }
        Ok(PathSets { edge_of: self.edge_of, edges: self.edges, ..sets })
    }

    /// Returns the pairs of NIC ports that lead from hosts of one edge to hosts of the other and back, ordered by the
    /// ports of the first edge.
    fn pairs_of_ports(&self, routing: Option<&Routing>, edges: [usize; 2]) -> Vec<PortPair> {
        let [from, to] = edges.map(|edge| &self.edges[edge]);
        let leading = |from: usize, to: usize| {
            let (src, dst) = (self.host_at[from], self.second_host_at[to]);
            routing.map_or(1, |routing| leading_ports(self.topology, routing, src, dst))
        };
        let (out, back) = (leading(edges[0], edges[1]), leading(edges[1], edges[0]));
        let ports = |switches: &[NodeId], bits: u64| {
            let all = (0u8..).zip(switches.to_vec());
            all.filter(move |(port, _)| bits >> port & 1 == 1)
        };
        let pairs = ports(from, out).flat_map(|near| ports(to, back).map(move |far| [near, far]));
        pairs
            .map(|ends| PortPair {
                edges,
                ports: ends.map(|(port, _)| port),
                switches: ends.map(|(_, switch)| switch),
            })
            .collect()
    }

    /// Adds the paths from one edge to another, which are grouped by their first port. Paths of the ports alternate,
    /// and a port with fewer paths repeats them, so that the number of a path determines its port.
    fn add(
        &self,
        sets: &mut PathSets,
        [from, to]: [usize; 2],
        mut by_port: BTreeMap<u8, Vec<PathWithPorts>>,
        none: impl Fn(String) -> TopoError,
    ) -> Result<(), TopoError> {
        by_port.retain(|_, paths| !paths.is_empty());
        let pair = || format!("from {} to {}", self.name(from), self.name(to));
        let Some(most) = by_port.values().map(Vec::len).max() else { return Err(none(pair())) };
        if most * by_port.len() > MAX_PATHS as usize {
            let what = format!("{} paths {}; at most {MAX_PATHS} are allowed", most * by_port.len(), pair());
            return Err(self.topology.refuse(what));
        }
        for index in 0..most {
            for (ends, hops) in by_port.values().map(|paths| &paths[index % paths.len()]) {
                if hops.len() >= MAX_SWITCHES {
                    let what = format!(
                        "a path {} is over {} switches; at most {MAX_SWITCHES} are allowed",
                        pair(),
                        hops.len() + 1
                    );
                    return Err(self.topology.refuse(what));
                }
                sets.hops.extend(hops);
                sets.first_hop.push(sets.hops.len() as u32);
                sets.ends.push(*ends);
            }
        }
        if sets.hops.len() > MAX_HOPS {
            let what = format!(
                "its paths have more than {MAX_HOPS} hops together; fewer paths of a pair (`max_paths`, `k`) take less"
            );
            return Err(self.topology.refuse(what));
        }
        Ok(())
    }
}

/// NIC ports of a path at its two ends, and its hops between switches.
type PathWithPorts = ([u8; 2], Vec<Hop>);

/// Collects the paths between two switches.
pub(super) struct PathCollector<'a> {
    topology: &'a Topology,
    paths: Vec<Vec<Hop>>,
}

impl PathCollector<'_> {
    pub(super) fn path(&mut self, hops: impl IntoIterator<Item = Hop>) {
        self.paths.push(hops.into_iter().collect());
    }

    /// Adds the path over these switches. Of parallel links it takes the first.
    pub(super) fn path_over(&mut self, switches: &[NodeId]) {
        let topology = self.topology;
        let hop = |ends: &[NodeId]| {
            let port = topology.ports(ends[0]).iter().find(|port| port.peer == ends[1]);
            Hop::out_of_port(port.expect("paths go from neighbour to neighbour"))
        };
        self.path(switches.windows(2).map(hop));
    }
}
