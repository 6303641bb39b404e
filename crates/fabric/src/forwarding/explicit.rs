//! Explicit ways: the switch of the sender chooses among whole paths, minimal ones and detours, where otherwise it
//! chooses among its ports on shortest ways. A packet keeps the way it was given, and the switches beyond follow it hop
//! by hop. What is not balanced takes a shortest way, by the hash.

use std::sync::Arc;

use pathweave_units::HostId;

use super::routes::Candidates;
use crate::packet::{Header, PortId};
use crate::source_route::SourceRoutes;

/// No way was chosen for the packet.
const NONE: u16 = u16::MAX;

/// The ways there are, and those that packets have been given.
pub(crate) struct ExplicitWays {
    routes: Arc<SourceRoutes>,
    /// By pair of edges: where its ways begin in `usable`.
    first: Vec<u32>,
    /// Numbers of paths that routing does not know to be dead.
    usable: Vec<PortId>,
    /// By place of the content.
    given: Vec<u16>,
}

impl ExplicitWays {
    pub(super) fn new(routes: Arc<SourceRoutes>) -> Self {
        let mut ways = ExplicitWays { routes, first: Vec::new(), usable: Vec::new(), given: Vec::new() };
        ways.use_all(|_| true);
        ways
    }

    /// From now on ways are used whose ports are all alive.
    pub(super) fn use_all(&mut self, alive: impl Fn(PortId) -> bool) {
        self.first = vec![0];
        self.usable.clear();
        for pair in 0..self.routes.pairs() {
            let paths = self.routes.paths_of(pair);
            let usable = (0..).zip(paths).filter(|(_, hops)| hops.iter().all(|hop| alive(hop.out)));
            self.usable.extend(usable.map(|(number, _)| number));
            self.first.push(self.usable.len() as u32);
        }
    }

    /// The numbers of the ways between two hosts.
    pub(crate) fn between(&self, src: HostId, dst: HostId) -> Candidates<'_> {
        let pair = self.routes.pair(src, dst);
        Candidates::List(&self.usable[self.first[pair] as usize..self.first[pair + 1] as usize])
    }

    /// The port by which a packet that has crossed so many links leaves on this way.
    pub(crate) fn port(&self, header: &Header, way: u32, crossed: usize) -> PortId {
        let port = self.routes.port(header.src(), header.dst(), way as u16, crossed);
        port.expect("ways are numbered by the routes")
    }

    /// The packet takes this way.
    pub(crate) fn give(&mut self, header: &Header, way: u32) {
        let place = header.content();
        if self.given.len() <= place {
            self.given.resize(place + 1, NONE);
        }
        self.given[place] = way as u16;
    }

    /// The packet has just entered the fabric.
    pub(crate) fn forget(&mut self, header: &Header) {
        if header.has_content()
            && let Some(given) = self.given.get_mut(header.content())
        {
            *given = NONE;
        }
    }

    /// The way that a packet was given.
    pub(super) fn given(&self, header: &Header) -> Option<u32> {
        if !header.has_content() {
            return None;
        }
        let way = self.given.get(header.content()).copied().filter(|&way| way != NONE)?;
        Some(u32::from(way))
    }

    /// The next port of a packet that was given a way.
    pub(super) fn next(&self, header: &Header) -> Option<PortId> {
        let way = self.given(header)?;
        Some(self.port(header, way, usize::from(header.links())))
    }
}
