//! Source routes: the source of a packet chooses every hop.
//!
//! A path of a pair of hosts is a list of egress ports. A packet carries its two ends, the number of its path, and
//! the number of links that it has crossed, all of which it carries anyway. A source route therefore needs no space
//! in the header: a switch finds the packet's position in the list. Hosts of one switch have the same paths up to the
//! last hop, so there is one list for each pair of *edges* (switches with hosts) and none for a pair of hosts.

use pathweave_units::{HostId, PathId};

use crate::packet::{Header, PortId, REVERSED};

/// Egress ports at the two ends of a cable on a route: at its near end, and at its far end for the reverse direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHop {
    /// Egress port for packets of the path.
    pub out: PortId,
    /// Egress port for acknowledgements of these packets.
    pub back: PortId,
}

/// Attachment of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Edge of the host, counted from 0.
    pub edge: u32,
    /// Egress ports of switches that lead to the host, by its NIC port.
    pub ports: Vec<PortId>,
}

/// A path between two edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutePath<R> {
    /// NIC ports of the hosts at its two ends.
    pub ends: [u8; 2],
    /// Cables between its edges; empty if both are one switch.
    pub hops: R,
}

/// Lists of hops of all paths.
#[derive(Clone, Debug)]
pub struct SourceRoutes {
    /// Edge of each host.
    edge_of: Vec<u32>,
    /// Egress ports to host `h` are `to_host[first_port[h]..]`, by its NIC port.
    first_port: Vec<u32>,
    to_host: Vec<PortId>,
    edges: u32,
    /// Paths from edge `a` to edge `b` are `first_path[a * edges + b]..` up to the next entry.
    first_path: Vec<u32>,
    /// Hops of path `p` are `hops[first_hop[p]..first_hop[p + 1]]`.
    first_hop: Vec<u32>,
    hops: Vec<RouteHop>,
    /// NIC ports of each path at its two ends.
    ends: Vec<[u8; 2]>,
}

impl SourceRoutes {
    /// Creates routes without any path between edges. Paths are added with [`SourceRoutes::add_pair`].
    pub fn new(hosts: Vec<Attachment>, edges: u32) -> Self {
        assert!(hosts.iter().all(|host| host.edge < edges), "a host at an edge beyond {edges}");
        let edge_of = hosts.iter().map(|host| host.edge).collect();
        let (mut first_port, mut to_host) = (Vec::with_capacity(hosts.len()), Vec::new());
        for host in hosts {
            first_port.push(to_host.len() as u32);
            to_host.extend(host.ports);
        }
        SourceRoutes {
            edge_of,
            first_port,
            to_host,
            edges,
            first_path: vec![0],
            first_hop: vec![0],
            hops: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds the paths of the next pair of edges. Pairs are ordered by first edge, then by second.
    pub fn add_pair<R: IntoIterator<Item = RouteHop>>(
        &mut self,
        paths: impl IntoIterator<Item = RoutePath<R>>,
    ) {
        for RoutePath { ends, hops } in paths {
            self.hops.extend(hops);
            self.ends.push(ends);
            self.first_hop
                .push(u32::try_from(self.hops.len()).expect("fewer than 2^32 hops of source routes"));
        }
        self.first_path.push(self.first_hop.len() as u32 - 1);
        debug_assert!(self.first_path.len() as u64 <= u64::from(self.edges) * u64::from(self.edges) + 1);
    }

    /// Returns the number of pairs of edges.
    pub(crate) fn pairs(&self) -> usize {
        self.first_path.len() - 1
    }

    /// Returns the pair of the edges of two hosts.
    pub(crate) fn pair(&self, src: HostId, dst: HostId) -> usize {
        (self.edge_of[src.index()] * self.edges + self.edge_of[dst.index()]) as usize
    }

    /// Iterates over the paths of a pair of edges, each as its list of hops.
    pub(crate) fn paths_of(&self, pair: usize) -> impl Iterator<Item = &[RouteHop]> {
        (self.first_path[pair]..self.first_path[pair + 1]).map(|path| self.hops_of(path))
    }

    fn hops_of(&self, path: u32) -> &[RouteHop] {
        &self.hops[self.first_hop[path as usize] as usize..self.first_hop[path as usize + 1] as usize]
    }

    /// Returns the port for a packet on a path that has crossed `crossed` links, or `None` if the pair has no such
    /// path.
    pub(crate) fn port(&self, src: HostId, dst: HostId, path: u16, crossed: usize) -> Option<PortId> {
        let path = self.number(src, dst, PathId(path))?;
        Some(self.hops_of(path).get(crossed - 1).map_or_else(|| self.port_to(dst, path, 1), |hop| hop.out))
    }

    fn number(&self, src: HostId, dst: HostId, path: PathId) -> Option<u32> {
        let pair = self.pair(src, dst);
        let number = self.first_path[pair] + u32::from(path.0);
        (number < self.first_path[pair + 1]).then_some(number)
    }

    /// Returns the port that leads to the host at an end of a path.
    fn port_to(&self, host: HostId, path: u32, end: usize) -> PortId {
        let nic_port = u32::from(self.ends[path as usize][end]);
        self.to_host[(self.first_port[host.index()] + nic_port) as usize]
    }

    /// Returns the port for a packet at its present switch, or `None` if the pair has no such path.
    #[inline]
    pub(crate) fn choose(&self, header: &Header) -> Option<PortId> {
        let crossed = usize::from(header.links());
        if header.is(REVERSED) {
            let path = self.number(header.dst(), header.src(), header.path())?;
            let hops = self.hops_of(path);
            let next = hops.len().checked_sub(crossed).map(|hop| hops[hop].back);
            Some(next.unwrap_or_else(|| self.port_to(header.dst(), path, 0)))
        } else {
            let path = self.number(header.src(), header.dst(), header.path())?;
            let next = self.hops_of(path).get(crossed - 1).map(|hop| hop.out);
            Some(next.unwrap_or_else(|| self.port_to(header.dst(), path, 1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Time;

    /// Edges 0 and 1, with hosts 0 and 1 at edge 0 (ports 10, 11) and host 2 at edge 1 (port 20). From edge 0 to edge
    /// 1 lead a direct cable (12 to 21) and a path over a third switch (13 to 30, 31 to 22). There are no paths from
    /// edge 1 to edge 0.
    fn routes() -> SourceRoutes {
        let at = |edge, port| Attachment { edge, ports: vec![port] };
        let mut routes = SourceRoutes::new(vec![at(0, 10), at(0, 11), at(1, 20)], 2);
        routes.add_pair([path([0, 0], &[])]);
        routes.add_pair([path([0, 0], &[(12, 21)]), path([0, 0], &[(13, 30), (31, 22)])]);
        routes.add_pair(Vec::<RoutePath<Vec<RouteHop>>>::new());
        routes.add_pair([path([0, 0], &[])]);
        routes
    }

    fn path(ends: [u8; 2], hops: &[(PortId, PortId)]) -> RoutePath<Vec<RouteHop>> {
        RoutePath { ends, hops: hops.iter().map(|&(out, back)| RouteHop { out, back }).collect() }
    }

    fn walk(header: Header, switches: usize) -> Vec<Option<PortId>> {
        walk_by(&routes(), header, switches)
    }

    /// Returns the ports that a packet takes at successive switches.
    fn walk_by(routes: &SourceRoutes, mut header: Header, switches: usize) -> Vec<Option<PortId>> {
        (0..switches)
            .map(|_| {
                header = header.on_link(0, Time::ZERO);
                routes.choose(&header)
            })
            .collect()
    }

    fn header(src: u32, dst: u32, path: u16) -> Header {
        Header::new(HostId(src), HostId(dst), PathId(path), 84, 1, false)
    }

    #[test]
    fn a_path_is_followed_hop_by_hop() {
        assert_eq!(walk(header(1, 2, 0), 2), [Some(12), Some(20)]);
        assert_eq!(walk(header(1, 2, 1), 3), [Some(13), Some(31), Some(20)]);
        assert_eq!(walk(header(0, 1, 0), 1), [Some(11)]);
    }

    #[test]
    fn an_answer_goes_the_same_way_back() {
        assert_eq!(walk(header(2, 1, 0).reversed(), 2), [Some(21), Some(11)]);
        assert_eq!(walk(header(2, 0, 1).reversed(), 3), [Some(22), Some(30), Some(10)]);
        assert_eq!(walk(header(1, 0, 0).reversed(), 1), [Some(10)]);
    }

    /// Hosts 0 and 1 with two NIC ports each, at switches of edges 0 and 1 (ports 10 and 11, 20 and 21). Path 0 leads
    /// from port 0 to port 1 over a cable (12 to 22), path 1 from port 1 to port 0 over another (13 to 23).
    #[test]
    fn a_path_ends_at_its_own_nic_ports() {
        let at = |edge, ports| Attachment { edge, ports };
        let mut routes = SourceRoutes::new(vec![at(0, vec![10, 11]), at(1, vec![20, 21])], 2);
        routes.add_pair(Vec::<RoutePath<Vec<RouteHop>>>::new());
        routes.add_pair([path([0, 1], &[(12, 22)]), path([1, 0], &[(13, 23)])]);
        assert_eq!(walk_by(&routes, header(0, 1, 0), 2), [Some(12), Some(21)]);
        assert_eq!(walk_by(&routes, header(0, 1, 1), 2), [Some(13), Some(20)]);
        assert_eq!(walk_by(&routes, header(1, 0, 0).reversed(), 2), [Some(22), Some(10)]);
        assert_eq!(walk_by(&routes, header(1, 0, 1).reversed(), 2), [Some(23), Some(11)]);
    }

    #[test]
    fn a_path_that_does_not_exist_leads_nowhere() {
        assert_eq!(walk(header(0, 2, 2), 1), [None]);
        assert_eq!(walk(header(2, 0, 0), 1), [None]);
        assert_eq!(walk(header(2, 0, 2).reversed(), 1), [None]);
    }
}
