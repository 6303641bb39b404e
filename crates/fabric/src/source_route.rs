//! Source routes: the packet's source has chosen every hop.
//!
//! A path of a pair of hosts is a list of egress ports. A packet carries its two ends, the number of its path and how
//! many links it has crossed, which it does anyway, so a source route costs its header nothing: a switch looks up where
//! in the list the packet is. Hosts of one switch have the same paths up to the last hop, so there is one list for each
//! pair of *edges* (switches with hosts) and none for a pair of hosts.

use pathweave_units::{HostId, PathId};

use crate::packet::{Header, PortId, REVERSED};

/// The egress ports at the two ends of a cable that a route crosses: at its near end, and at its far end for the way
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteHop {
    /// Taken by packets of the path.
    pub out: PortId,
    /// Taken by answers to them.
    pub back: PortId,
}

/// Where a host is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its edge, counted from 0.
    pub edge: u32,
    /// The egress port there that leads to it.
    pub port: PortId,
}

/// The lists of hops of all paths.
#[derive(Clone, Debug)]
pub struct SourceRoutes {
    hosts: Vec<Attachment>,
    edges: u32,
    /// Paths from edge `a` to edge `b` are `first_path[a * edges + b]..` up to the next entry.
    first_path: Vec<u32>,
    /// Hops of path `p` are `hops[first_hop[p]..first_hop[p + 1]]`.
    first_hop: Vec<u32>,
    hops: Vec<RouteHop>,
}

impl SourceRoutes {
    /// Without any path between edges yet. Add them with [`SourceRoutes::add_pair`].
    pub fn new(hosts: Vec<Attachment>, edges: u32) -> Self {
        assert!(hosts.iter().all(|host| host.edge < edges), "a host at an edge beyond {edges}");
        SourceRoutes { hosts, edges, first_path: vec![0], first_hop: vec![0], hops: Vec::new() }
    }

    /// Adds the paths of the next pair of edges; pairs come by first edge, then by second. The hops of a path are the
    /// cables between its edges, so there are none where both are one switch.
    pub fn add_pair<R: IntoIterator<Item = RouteHop>>(&mut self, paths: impl IntoIterator<Item = R>) {
        for path in paths {
            self.hops.extend(path);
            self.first_hop
                .push(u32::try_from(self.hops.len()).expect("fewer than 2^32 hops of source routes"));
        }
        self.first_path.push(self.first_hop.len() as u32 - 1);
        debug_assert!(self.first_path.len() as u64 <= u64::from(self.edges) * u64::from(self.edges) + 1);
    }

    /// Pairs of edges.
    pub(crate) fn pairs(&self) -> usize {
        self.first_path.len() - 1
    }

    /// The pair of the edges of two hosts.
    pub(crate) fn pair(&self, src: HostId, dst: HostId) -> usize {
        (self.hosts[src.index()].edge * self.edges + self.hosts[dst.index()].edge) as usize
    }

    /// The hops of the paths of a pair of edges.
    pub(crate) fn paths_of(&self, pair: usize) -> impl Iterator<Item = &[RouteHop]> {
        (self.first_path[pair]..self.first_path[pair + 1]).map(|path| self.hops_of(path))
    }

    fn hops_of(&self, path: u32) -> &[RouteHop] {
        &self.hops[self.first_hop[path as usize] as usize..self.first_hop[path as usize + 1] as usize]
    }

    /// The port for a packet on a path, having crossed so many links; `None` where the pair has no such path.
    pub(crate) fn port(&self, src: HostId, dst: HostId, path: u16, crossed: usize) -> Option<PortId> {
        let hops = self.hops(src, dst, PathId(path))?;
        Some(hops.get(crossed - 1).map_or(self.hosts[dst.index()].port, |hop| hop.out))
    }

    fn hops(&self, src: HostId, dst: HostId, path: PathId) -> Option<&[RouteHop]> {
        let pair = self.pair(src, dst);
        let (first, end) = (self.first_path[pair], self.first_path[pair + 1]);
        let path = first + u32::from(path.0);
        if path >= end {
            return None;
        }
        Some(self.hops_of(path))
    }

    /// The port for a packet at the switch it is in; `None` where the pair has no such path.
    #[inline]
    pub(crate) fn choose(&self, header: &Header) -> Option<PortId> {
        let crossed = usize::from(header.links());
        let next = if header.is(REVERSED) {
            let hops = self.hops(header.dst(), header.src(), header.path())?;
            hops.len().checked_sub(crossed).map(|hop| hops[hop].back)
        } else {
            let hops = self.hops(header.src(), header.dst(), header.path())?;
            hops.get(crossed - 1).map(|hop| hop.out)
        };
        Some(next.unwrap_or(self.hosts[header.dst().index()].port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Time;

    /// Edges 0 and 1, hosts 0 and 1 at the former (ports 10, 11), host 2 at the latter (port 20). From edge 0 to edge 1
    /// a direct cable (12 to 21), and one over a third switch (13 to 30, 31 to 22). Edge 1 has none of its own back.
    fn routes() -> SourceRoutes {
        let at = |edge, port| Attachment { edge, port };
        let hop = |out, back| RouteHop { out, back };
        let mut routes = SourceRoutes::new(vec![at(0, 10), at(0, 11), at(1, 20)], 2);
        routes.add_pair([vec![]]);
        routes.add_pair([vec![hop(12, 21)], vec![hop(13, 30), hop(31, 22)]]);
        routes.add_pair(Vec::<Vec<RouteHop>>::new());
        routes.add_pair([vec![]]);
        routes
    }

    /// The ports a packet takes at the switches on its way.
    fn walk(mut header: Header, switches: usize) -> Vec<Option<PortId>> {
        let routes = routes();
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

    #[test]
    fn a_path_that_does_not_exist_leads_nowhere() {
        assert_eq!(walk(header(0, 2, 2), 1), [None]);
        assert_eq!(walk(header(2, 0, 0), 1), [None]);
        assert_eq!(walk(header(2, 0, 2).reversed(), 1), [None]);
    }
}
