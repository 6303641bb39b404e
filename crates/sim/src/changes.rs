//! Changes of the network during a run: effects of a fault on the fabric, and notification of the hosts concerned.
//! Every shard knows the state of all links. Effects on a node take place in the shard that owns it.

use std::collections::BTreeSet;
use std::sync::Arc;

use pathweave_execution::ConnId;
use pathweave_topo::{LinkId, NodeId, PortRef, Routing, Topology, Ways};
use pathweave_transport::PortChange;
use pathweave_units::{Duration, HostId, QpNum, Rate, Time};

use crate::chosen_routes::ChosenRoutes;
use crate::faults::{Action, Entry};
use crate::locked_shards::LockedShards;
use crate::network::Network;
use crate::routes::View;
use crate::spec::{RouteChoice, SimSpec};
use crate::switch_routes::switch_routes;

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Applies an entry of the fault agenda.
    pub(crate) fn on_fault(&mut self, now: Time, entry: Entry) {
        let spec = self.shards[0].spec;
        match entry.action {
            Action::Down(link, ways) => {
                if self.in_all(|network| network.take_down(now, link, ways)) {
                    self.tell_hosts(now, link);
                }
            }
            Action::Up(link, ways) => {
                if self.in_all(|network| network.bring_up(now, link, ways)) {
                    self.tell_hosts(now, link);
                }
            }
            Action::Rate(link, ways, rate) => {
                self.in_all(|network| network.set_rate(now, &spec.topology, (link, ways), rate));
                self.wake_hosts(now, link);
            }
            Action::Delay(link, ways, delay) => {
                self.in_all(|network| network.set_delay(now, &spec.topology, (link, ways), delay));
            }
            Action::Loss(link, ways, loss) => {
                self.in_all(|network| {
                    for at_a in ways.begin_at_a() {
                        let Some(port) = network.port(link, at_a) else { continue };
                        let (_, corruption) = network.fabric.impairment(port);
                        network.fabric.set_impairment_of_direction(port, loss, corruption);
                    }
                });
            }
            Action::Corruption(link, ways, corruption) => {
                self.in_all(|network| {
                    for at_a in ways.begin_at_a() {
                        let floor = spec.topology.direction(link, at_a).error_rate;
                        let Some(port) = network.port(link, at_a) else { continue };
                        let (loss, _) = network.fabric.impairment(port);
                        network.fabric.set_impairment_of_direction(port, loss, corruption.max(floor));
                    }
                });
            }
            Action::StormStart(port) => {
                if let Some((shard, own)) = self.shard_of_port(port)
                    && shard.network.plan.heeds_pauses(&spec.topology, port)
                {
                    shard.network.fabric.start_pause_storm(now, own);
                }
            }
            Action::StormStop(port) => {
                if let Some((shard, port)) = self.shard_of_port(port) {
                    let step = shard.network.fabric.stop_pause_storm(now, port);
                    shard.on_step(now, step);
                }
            }
            Action::ScaleUp(..) => {}
            Action::Reroute => {
                let routes = self.shards[0].network.new_routes(spec);
                match self.in_all(|network| network.reroute(spec, &routes)) {
                    ChosenRoutes::Sources { dead, .. } => self.tell_of_paths(now, |network, (from, to)| {
                        network.routes.differs(&spec.topology, &dead, from, to)
                    }),
                    ChosenRoutes::Switches(_) if has_several_ports(&spec.topology) => self.tell_of_ports(now),
                    ChosenRoutes::Switches(_) => {}
                }
            }
        }
        // A link may have become shorter. If all links are longer now, packets already in flight still travel at the
        // old delay, so the window does not grow.
        for shard in &mut self.shards {
            shard.windows.longest = shard.windows.longest.min(shard.network.longest_window());
        }
    }

    /// Performs the same action in every shard. Returns the result of the last shard, which equals that of every other.
    fn in_all<T>(&mut self, mut act: impl FnMut(&mut Network<C>) -> T) -> T {
        let done = self.shards.iter_mut().map(|shard| act(&mut shard.network));
        done.last().expect("there is a part")
    }

    /// Notifies the hosts at the ends of a link that the link has failed or recovered.
    fn tell_hosts(&mut self, now: Time, link: LinkId) {
        let topology = &*self.shards[0].spec.topology;
        for node in [topology.link(link).a, topology.link(link).b] {
            if topology.is_host(node)
                && let Some(shard) = self.shard_of_node(node.0)
            {
                let ports = topology.ports(node);
                let dead = |port: &PortRef| shard.network.links.is_down(port.link);
                let working = (0..).zip(ports).filter(|(_, port)| !dead(port));
                let working = working.fold(0, |bits, (index, _)| bits | 1 << index);
                shard.hosts[node.index()].on_working_ports(now, working);
                if ports.len() > 1 {
                    self.tell_of_paths(now, |_, (from, _)| NodeId::from(from) == node);
                }
            }
        }
        self.wake_hosts(now, link);
    }

    /// Wakes the hosts at the ends of a changed link. Their cached state of transmitters may be invalid.
    fn wake_hosts(&mut self, now: Time, link: LinkId) {
        let topology = &*self.shards[0].spec.topology;
        for node in [topology.link(link).a, topology.link(link).b] {
            if topology.is_host(node)
                && let Some(shard) = self.shard_of_node(node.0)
            {
                shard.hosts[node.index()].on_links_changed();
                shard.transmit(now, node.index());
            }
        }
    }

    /// Informs hosts with several ports through which of them routing reaches their peers. Applies if switches choose
    /// routes.
    fn tell_of_ports(&mut self, now: Time) {
        let topology = &*self.shards[0].spec.topology;
        let connections = &self.shards[0].traffic.execution.connections;
        let ends =
            (0..connections.len() as ConnId).map(|conn| (connections[conn].src, connections[conn].dst));
        let pairs: BTreeSet<(HostId, HostId)> =
            ends.flat_map(|(src, dst)| [(src, dst), (dst, src)]).collect();
        let mut told = BTreeSet::new();
        for (from, to) in pairs {
            if topology.ports(from.into()).len() > 1
                && let Some(shard) = self.shard_of_host(from)
            {
                let ports = shard.network.routes.leading_ports(topology, from, to);
                shard.hosts[from.index()].on_ports(now, PortChange::Reaches { to, ports });
                told.insert(from);
            }
        }
        for host in told {
            if let Some(shard) = self.shard_of_host(host) {
                shard.after_input(now, host.index());
            }
        }
    }

    /// Informs queue pairs which paths have failed or recovered, if sources choose paths. `concerns` selects the
    /// pairs of hosts.
    fn tell_of_paths(&mut self, now: Time, concerns: impl Fn(&Network<C>, (HostId, HostId)) -> bool) {
        let spec = self.shards[0].spec;
        if !matches!(spec.routing, RouteChoice::Sources(_)) {
            return;
        }
        for conn in 0..self.shards[0].traffic.execution.connections.len() as ConnId {
            let connection = &self.shards[0].traffic.execution.connections[conn];
            let (src, dst, group) = (connection.src, connection.dst, connection.group);
            let queue_pairs = self.shards[0].spec.scheme_of(group).scheme.queue_pairs;
            for (from, to, at_from) in [(src, dst, true), (dst, src, false)] {
                let Some(shard) = self.shard_of_host(from) else { continue };
                // Each end knows which of its queue pairs are open.
                let qps: Vec<QpNum> = (0..queue_pairs)
                    .map(|index| shard.queue_pair(conn, index))
                    .map(|(at_src, at_dst)| if at_from { at_src } else { at_dst })
                    .filter(|qp| shard.hosts[from.index()].endpoint.is_busy(*qp).is_some())
                    .collect();
                let qps: Vec<QpNum> = qps.into_iter().chain(shard.side_on_fabric(from, to)).collect();
                if qps.is_empty() || !concerns(&shard.network, (from, to)) {
                    continue;
                }
                let views = shard.network.views(spec, (from, to));
                for qp in qps {
                    // A failed queue pair needs no paths. One that is not yet open gets them when it opens.
                    let _ = shard.hosts[from.index()].endpoint.set_paths(now, qp, &views);
                }
                shard.after_input(now, from.index());
            }
        }
    }
}

/// Returns true if any host has several ports.
fn has_several_ports(topology: &Topology) -> bool {
    (0..topology.hosts()).any(|host| topology.ports(NodeId(host)).len() > 1)
}

impl<const C: usize> Network<C> {
    /// Registers a fault on directions of a link and takes those down that no other fault holds down already. Returns
    /// true if the state of any direction changed.
    pub(crate) fn take_down(&mut self, now: Time, link: LinkId, ways: Ways) -> bool {
        let links = &mut self.links;
        ways.begin_at_a().for_each(|at_a| *links.held_mut(link, at_a) += 1);
        let changed: Vec<bool> = ways.begin_at_a().filter(|&at_a| links.held(link, at_a) == 1).collect();
        let port = |at_a| self.port(link, at_a);
        match changed[..] {
            [] => {}
            // The hosts at its ends are woken, so the effect on them needs no other action.
            [at_a] => drop(port(at_a).map(|port| self.fabric.direction_down(now, port))),
            _ => {
                if let Some(port) = port(true) {
                    self.fabric.link_down(now, port);
                }
            }
        }
        !changed.is_empty()
    }

    /// Removes a fault from directions of a link and brings those up for which this was the last one. Returns true if
    /// the state of any direction changed.
    pub(crate) fn bring_up(&mut self, now: Time, link: LinkId, ways: Ways) -> bool {
        let mut changed = false;
        for at_a in ways.begin_at_a() {
            let held = self.links.held_mut(link, at_a);
            *held = held.saturating_sub(1);
            if *held == 0 {
                changed = true;
                if let Some(port) = self.port(link, at_a) {
                    self.fabric.direction_up(now, port);
                }
            }
        }
        changed
    }

    /// Sets the rate of directions of a link; `None` restores the rate of the topology.
    pub(crate) fn set_rate(
        &mut self,
        now: Time,
        topology: &Topology,
        (link, ways): (LinkId, Ways),
        rate: Option<Rate>,
    ) {
        for at_a in ways.begin_at_a() {
            let rate = rate.unwrap_or_else(|| topology.direction(link, at_a).rate);
            let (_, delay) = self.links.direction(topology, link, at_a);
            self.set_direction(now, topology, (link, at_a), (rate, delay));
        }
    }

    /// Sets the delay of directions of a link, to which the latency of a switch is added; `None` restores the delay of
    /// the topology.
    fn set_delay(
        &mut self,
        now: Time,
        topology: &Topology,
        (link, ways): (LinkId, Ways),
        delay: Option<Duration>,
    ) {
        for at_a in ways.begin_at_a() {
            let ends = topology.link(link);
            let latency = topology.latency(if at_a { ends.a } else { ends.b });
            let delay = delay.map_or_else(|| topology.direction(link, at_a).delay, |delay| delay + latency);
            let (rate, _) = self.links.direction(topology, link, at_a);
            self.set_direction(now, topology, (link, at_a), (rate, delay));
        }
    }

    /// Sets the rate and the delay of a direction of a link.
    fn set_direction(
        &mut self,
        now: Time,
        topology: &Topology,
        (link, at_a): (LinkId, bool),
        (rate, delay): (Rate, Duration),
    ) {
        self.links.set_direction(link, at_a, (rate, delay));
        match self.port(link, at_a) {
            Some(port) => self.fabric.set_direction(now, port, Some(rate), Some(delay)),
            None => {
                let ends = topology.link(link);
                let from = if at_a { ends.a } else { ends.b };
                self.fabric.note_direction_elsewhere(from.0, rate, delay);
            }
        }
    }

    /// Returns routes for the present state of links.
    pub(crate) fn new_routes(&self, spec: &SimSpec) -> NewRoutes {
        let topology = &*spec.topology;
        let alive = |link: LinkId| !self.links.is_down(link);
        let chosen = match &self.routes {
            ChosenRoutes::Switches(_) => ChosenRoutes::Switches(Arc::new(Routing::compute(topology, &alive))),
            ChosenRoutes::Sources { sets, headers, .. } => ChosenRoutes::Sources {
                sets: Arc::clone(sets),
                dead: self.links.down(),
                headers: headers.clone(),
            },
        };
        let of_switches = chosen.of_switches(topology, self.plan.shares, &alive);
        NewRoutes { chosen, of_switches }
    }

    /// Updates routing to the present state of links, by the routes that [`Network::new_routes`] has returned for it.
    /// Returns the routes before.
    pub(crate) fn reroute(&mut self, spec: &SimSpec, new: &NewRoutes) -> ChosenRoutes {
        if let Some(routing) = &new.of_switches {
            let topology = &*spec.topology;
            let alive = |link: LinkId| !self.links.is_down(link);
            let rate = |port: &PortRef| self.links.direction(topology, port.link, port.is_a).0;
            let view = View { topology, alive: &alive, rate: &rate };
            let place = (&*self.plan, self.fabric.numbers());
            let routes = switch_routes(place, &spec.routing, Some(routing), &view);
            self.fabric.set_routes(routes);
        }
        std::mem::replace(&mut self.routes, new.chosen.clone())
    }
}

/// Routes that all shards adopt together.
pub(crate) struct NewRoutes {
    chosen: ChosenRoutes,
    /// Next hops of the switches, if they choose routes.
    of_switches: Option<Arc<Routing>>,
}
