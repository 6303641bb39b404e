//! Explicit paths: the switch of the sender chooses among whole paths, shortest ones and detours, instead of among
//! its ports on shortest paths. A packet keeps the path that it was given, and the switches beyond follow that path
//! hop by hop. Packets that are not balanced take a shortest path by hash.

use std::sync::Arc;

use pathweave_units::HostId;

use super::routes::Candidates;
use crate::packet::{Header, PortId};
use crate::source_route::SourceRoutes;

/// Marks a packet without an explicit path.
const NONE: u16 = u16::MAX;

/// All explicit paths, and those that packets have been given.
pub(crate) struct ExplicitPaths {
    routes: Arc<SourceRoutes>,
    /// Index in `usable` of the first path of each pair of edges.
    first: Vec<u32>,
    /// Numbers of the paths that routing does not know to be dead.
    usable: Vec<PortId>,
    /// Path given to each packet, by slot of its content.
    given: Vec<u16>,
}

impl ExplicitPaths {
    pub(super) fn new(routes: Arc<SourceRoutes>) -> Self {
        let mut ways = ExplicitPaths { routes, first: Vec::new(), usable: Vec::new(), given: Vec::new() };
        ways.update_usable(|_| true);
        ways
    }

    /// Restricts the usable paths to those whose ports are all alive.
    pub(super) fn update_usable(&mut self, alive: impl Fn(PortId) -> bool) {
        self.first = vec![0];
        self.usable.clear();
        for pair in 0..self.routes.pairs() {
            let paths = self.routes.paths_of(pair);
            let usable = (0..).zip(paths).filter(|(_, hops)| hops.iter().all(|hop| alive(hop.out)));
            self.usable.extend(usable.map(|(number, _)| number));
            self.first.push(self.usable.len() as u32);
        }
    }

    /// Returns the numbers of the usable paths between two hosts.
    pub(crate) fn between(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        let pair = self.routes.pair(src, dst);
        Candidates::List(&self.usable[self.first[pair] as usize..self.first[pair + 1] as usize])
    }

    /// Returns the egress port of path `way` for a packet that has crossed `crossed` links.
    pub(crate) fn port(&self, header: &Header, way: u32, crossed: usize) -> PortId {
        let port = self.routes.port(header.src(), header.dst(), way as u16, crossed);
        port.expect("ways are numbered by the routes")
    }

    /// Gives a packet the path `way`.
    pub(crate) fn assign(&mut self, header: &Header, way: u32) {
        let place = header.content();
        if self.given.len() <= place {
            self.given.resize(place + 1, NONE);
        }
        self.given[place] = way as u16;
    }

    /// Clears the path of a packet that has just entered the fabric.
    pub(crate) fn clear(&mut self, header: &Header) {
        if header.has_content()
            && let Some(given) = self.given.get_mut(header.content())
        {
            *given = NONE;
        }
    }

    /// Returns the path that a packet was given.
    pub(super) fn assigned(&self, header: &Header) -> Option<u32> {
        if !header.has_content() {
            return None;
        }
        let way = self.given.get(header.content()).copied().filter(|&way| way != NONE)?;
        Some(u32::from(way))
    }

    /// Returns the next port of a packet that was given a path.
    pub(super) fn next(&self, header: &Header) -> Option<PortId> {
        let way = self.assigned(header)?;
        Some(self.port(header, way, usize::from(header.links())))
    }
}
