//! What chooses the routes of packets, and what is known of them: the hops of paths, which are dead, what to tell the schemes.

use std::sync::Arc;

use pathweave_fabric::{Attachment, PairRoutes, PortMap, RouteHop, SourceRoutes, SwitchRoutes};
use pathweave_policy::{PathState, PathView};
use pathweave_topo::{Hop, LinkId, PathSets, Routing, Topology};
use pathweave_units::{HostId, PathId, Rate};

use crate::paths::{PathProfile, profile};
use crate::route_headers::RouteHeaders;
use crate::routes::{self, View};
use crate::spec::{HostConfig, RouteChoice};

/// What routing knows, as of when it last looked.
pub(crate) enum ChosenRoutes {
    /// Switches choose.
    Switches(Routing),
    /// Sources choose.
    Sources {
        /// Among these.
        sets: Arc<PathSets>,
        /// Links known to be down.
        dead: Vec<bool>,
        /// What packets carry of them.
        headers: Option<Arc<RouteHeaders>>,
    },
}

impl ChosenRoutes {
    pub(crate) fn whole(topology: &Topology, choice: &RouteChoice, host: &HostConfig) -> Self {
        match choice {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) | RouteChoice::NextHops(_) => {
                ChosenRoutes::Switches(Routing::whole(topology))
            }
            RouteChoice::Sources(sets) => {
                let headers = host
                    .source_route
                    .form()
                    .map(|form| RouteHeaders::new(topology, sets, host.framing, form));
                let dead = vec![false; topology.links().len()];
                ChosenRoutes::Sources { sets: Arc::clone(sets), dead, headers: headers.map(Arc::new) }
            }
        }
    }

    /// What packets carry of the paths their sources choose.
    pub(crate) fn headers(&self) -> Option<&Arc<RouteHeaders>> {
        match self {
            ChosenRoutes::Switches(_) => None,
            ChosenRoutes::Sources { headers, .. } => headers.as_ref(),
        }
    }

    /// What the switches hold where the links are as they are seen.
    pub(crate) fn switch_routes(map: &PortMap, choice: &RouteChoice, view: &View<'_>) -> Vec<SwitchRoutes> {
        match choice {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) => routes::routes(map, view),
            RouteChoice::NextHops(sets) => next_hops(map, sets, view),
            RouteChoice::Sources(sets) => {
                let topology = view.topology;
                let lists = Arc::new(source_routes(topology, map, sets));
                topology.switches().iter().map(|_| SwitchRoutes::Source(Arc::clone(&lists))).collect()
            }
        }
    }

    /// The paths between two hosts that are not known to be dead, the ideal ones among them: one stands for all that
    /// switches choose from. None: there is no way.
    pub(crate) fn profiles(&self, topology: &Topology, src: HostId, dst: HostId) -> Vec<PathProfile> {
        match self {
            ChosenRoutes::Switches(routing) => profile(topology, routing, src, dst).into_iter().collect(),
            ChosenRoutes::Sources { sets, dead, headers } => {
                let alive = sets.alive(topology, src, dst, |link| !dead[link.index()]);
                let all = sets.profiles(topology, src, dst);
                let mut profiles: Vec<PathProfile> = Vec::new();
                for ((path, hops), _) in (0..).zip(all).zip(alive).filter(|(_, alive)| *alive) {
                    let header = headers.as_ref().and_then(|headers| headers.of(src, dst, path));
                    let profile = PathProfile::chosen(hops, header);
                    // In regular networks most are alike.
                    if !profiles.contains(&profile) {
                        profiles.push(profile);
                    }
                }
                profiles
            }
        }
    }

    /// How many paths a scheme may choose from that would take `wished` of a network whose switches choose.
    pub(crate) fn count(&self, src: HostId, dst: HostId, wished: u16) -> u16 {
        match self {
            ChosenRoutes::Switches(_) => wished,
            ChosenRoutes::Sources { sets, .. } => sets.count(src, dst) as u16,
        }
    }

    /// What there is to tell of the paths between two hosts; nothing where switches choose.
    pub(crate) fn views(
        &self,
        topology: &Topology,
        (src, dst): (HostId, HostId),
        (data_wire_bytes, ack_wire_bytes): (u32, u32),
    ) -> Vec<PathView> {
        let ChosenRoutes::Sources { sets, dead, headers } = self else { return Vec::new() };
        let states = sets.alive(topology, src, dst, |link| !dead[link.index()]);
        let view = |((id, hops), alive): ((u16, Vec<_>), bool)| {
            let links = u8::try_from(hops.len()).ok();
            let header = headers.as_ref().and_then(|headers| headers.of(src, dst, id));
            let path = PathProfile::chosen(hops, header);
            let rate = path.hops.iter().map(|(rate, _)| *rate).min();
            PathView {
                base_rtt: Some(path.round_trip(data_wire_bytes, ack_wire_bytes)),
                base_one_way: Some(path.one_way(data_wire_bytes)),
                transmission: Some(path.transmission(data_wire_bytes)),
                rate: rate.filter(|rate| *rate > Rate::ZERO),
                links,
                ..PathView::new(PathId(id), if alive { PathState::Up } else { PathState::Down })
            }
        };
        (0..).zip(sets.profiles(topology, src, dst)).zip(states).map(view).collect()
    }

    /// Of all paths that sources choose among the one that takes a packet of so many bytes longest when idle. Of the hosts
    /// of a switch the one with the slowest link stands for all.
    pub(crate) fn longest(&self, topology: &Topology, data_wire_bytes: u32) -> Option<PathView> {
        let ChosenRoutes::Sources { sets, .. } = self else { return None };
        let mut slowest = vec![None; sets.edges().len()];
        for host in (0..topology.hosts()).map(HostId) {
            let link = topology.link(topology.ports(host.into())[0].link);
            let time = (link.rate.time_for(u64::from(data_wire_bytes)), link.delay);
            let known = &mut slowest[sets.edge_of(host) as usize];
            if known.is_none_or(|(longest, _)| time > longest) {
                *known = Some((time, host));
            }
        }
        let hosts: Vec<HostId> = slowest.into_iter().flatten().map(|(_, host)| host).collect();
        let pairs = hosts.iter().flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
        let views = pairs
            .filter(|(src, dst)| src != dst)
            .flat_map(|pair| self.views(topology, pair, (data_wire_bytes, data_wire_bytes)));
        views.max_by_key(|view| view.base_one_way)
    }

    /// Whether the state of any path between two hosts differs from what `before` said.
    pub(crate) fn differs(&self, topology: &Topology, before: &[bool], src: HostId, dst: HostId) -> bool {
        let ChosenRoutes::Sources { sets, dead, .. } = self else { return false };
        let now = sets.alive(topology, src, dst, |link| !dead[link.index()]);
        let then = sets.alive(topology, src, dst, |link| !before[link.index()]);
        now.ne(then)
    }
}

/// At each switch the next hops of the explicit paths whose links are all alive.
fn next_hops(map: &PortMap, sets: &PathSets, view: &View<'_>) -> Vec<SwitchRoutes> {
    let topology = view.topology;
    let mut attached = vec![Vec::new(); topology.switches().len()];
    for host in (0..topology.hosts()).map(HostId) {
        let port = topology.ports(host.into())[0];
        let (at_a, at_b) = map.ends(port.link.index());
        let switch = topology.switch_index(port.peer).expect("explicit paths begin at switches");
        attached[switch].push((host, if port.is_a { at_b } else { at_a }));
    }
    let edge_of: Arc<[u32]> = (0..topology.hosts()).map(|host| sets.edge_of(HostId(host))).collect();
    let edges = sets.edges().len() as u32;
    let of_switch = |hosts| PairRoutes::new(Arc::clone(&edge_of), edges, hosts);
    let mut routes: Vec<PairRoutes> = attached.into_iter().map(of_switch).collect();
    for pair in (0..edges).flat_map(|from| (0..edges).map(move |to| (from, to))) {
        let alive = |path: &&[Hop]| path.iter().all(|hop| (view.alive)(hop.link()));
        for hop in sets.between_edges(pair.0, pair.1).filter(alive).flatten() {
            let (at_a, at_b) = map.ends(hop.link().index());
            let switch = topology.switch_index(hop.reversed().end(topology)).expect("hosts forward nothing");
            routes[switch].add(pair, if hop.from_a() { at_a } else { at_b });
        }
    }
    routes.into_iter().map(|routes| SwitchRoutes::Pairs(Box::new(routes))).collect()
}

pub(crate) fn source_routes(topology: &Topology, map: &PortMap, sets: &PathSets) -> SourceRoutes {
    let ends = |link: LinkId| map.ends(link.index());
    let hosts = (0..topology.hosts()).map(|host| {
        let port = topology.ports(HostId(host).into())[0];
        let (at_a, at_b) = ends(port.link);
        Attachment { edge: sets.edge_of(HostId(host)), port: if port.is_a { at_b } else { at_a } }
    });
    let edges = sets.edges().len() as u32;
    let mut routes = SourceRoutes::new(hosts.collect(), edges);
    for from in 0..edges {
        for to in 0..edges {
            routes.add_pair(sets.between_edges(from, to).map(|path| {
                path.iter().map(|hop| {
                    let (at_a, at_b) = ends(hop.link());
                    if hop.from_a() {
                        RouteHop { out: at_a, back: at_b }
                    } else {
                        RouteHop { out: at_b, back: at_a }
                    }
                })
            }));
        }
    }
    routes
}
