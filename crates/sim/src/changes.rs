//! Changes of the network during a run: effects of a fault on the fabric, and notification of the hosts concerned.
//! Every shard knows the state of all links. Effects on a node take place in the shard that owns it.

use std::collections::BTreeSet;

use pathweave_execution::ConnId;
use pathweave_topo::{LinkId, NodeId, PortRef, Routing, Topology};
use pathweave_transport::PortChange;
use pathweave_units::{HostId, QpNum, Time};

use crate::chosen_routes::ChosenRoutes;
use crate::faults::{Action, Entry};
use crate::locked_shards::LockedShards;
use crate::network::Network;
use crate::routes::View;
use crate::spec::{RouteChoice, SimSpec};

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Applies an entry of the fault agenda.
    pub(crate) fn on_fault(&mut self, now: Time, entry: Entry) {
        let spec = self.shards[0].spec;
        match entry.action {
            Action::Down(link) => {
                if self.in_all(|network| network.take_down(now, link)) {
                    self.tell_hosts(now, link);
                }
            }
            Action::Up(link) => {
                if self.in_all(|network| network.bring_up(now, link)) {
                    self.tell_hosts(now, link);
                }
            }
            Action::Rate(link, rate) => {
                let rate = rate.unwrap_or(spec.topology.link(link).rate);
                self.in_all(|network| network.fabric.set_link(now, network.port(link), Some(rate), None));
                self.wake_hosts(now, link);
            }
            Action::Delay(link, delay) => {
                let delay = delay.unwrap_or(spec.topology.link(link).delay);
                self.in_all(|network| network.fabric.set_link(now, network.port(link), None, Some(delay)));
            }
            Action::Loss(link, loss) => {
                self.in_all(|network| {
                    let (_, corruption) = network.fabric.impairment(network.port(link));
                    network.fabric.set_impairment(network.port(link), loss, corruption);
                });
            }
            Action::Corruption(link, corruption) => {
                let floor = spec.topology.link(link).error_rate;
                self.in_all(|network| {
                    let (loss, _) = network.fabric.impairment(network.port(link));
                    network.fabric.set_impairment(network.port(link), loss, corruption.max(floor));
                });
            }
            Action::StormStart(port) => {
                if let Some(shard) = self.shard_of_port(port) {
                    shard.network.fabric.start_pause_storm(now, port);
                }
            }
            Action::StormStop(port) => {
                if let Some(shard) = self.shard_of_port(port) {
                    let step = shard.network.fabric.stop_pause_storm(now, port);
                    shard.on_step(now, step);
                }
            }
            Action::ScaleUp(..) => {}
            Action::Reroute => match self.in_all(|network| network.reroute(spec)) {
                Some(before) => self.tell_of_paths(now, |network, (from, to)| {
                    network.routes.differs(&spec.topology, &before, from, to)
                }),
                None if has_several_ports(&spec.topology) => self.tell_of_ports(now),
                None => {}
            },
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
                let dead = |port: &PortRef| shard.network.links_down[port.link.index()] > 0;
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
    /// Registers a fault on a link and takes the link down unless another fault holds it down already. Returns true
    /// if the state of the link changed.
    pub(crate) fn take_down(&mut self, now: Time, link: LinkId) -> bool {
        let held = &mut self.links_down[link.index()];
        *held += 1;
        let changes = *held == 1;
        if changes {
            self.fabric.link_down(now, self.port(link));
        }
        changes
    }

    /// Removes a fault from a link and brings the link up if this was the last one. Returns true if the state of the
    /// link changed.
    pub(crate) fn bring_up(&mut self, now: Time, link: LinkId) -> bool {
        let held = &mut self.links_down[link.index()];
        *held = held.saturating_sub(1);
        let changes = *held == 0;
        if changes {
            self.fabric.link_up(now, self.port(link));
        }
        changes
    }

    /// Updates routing to the present state of links. If sources choose paths, returns the links that routing held
    /// for down before.
    pub(crate) fn reroute(&mut self, spec: &SimSpec) -> Option<Vec<bool>> {
        let down = |link: &u32| *link > 0;
        match &mut self.routes {
            ChosenRoutes::Switches(routing) => {
                let links = &self.links_down;
                let alive = |link: LinkId| !down(&links[link.index()]);
                let topology = &*spec.topology;
                let rate = |link: LinkId| self.fabric.link(self.map.ends(link.index()).0).0;
                let view = View { topology, alive: &alive, rate: &rate, shares: self.shares };
                let routes = ChosenRoutes::switch_routes(&self.map, &spec.routing, &view);
                self.fabric.set_routes(routes);
                *routing = Routing::compute(topology, &alive);
                None
            }
            ChosenRoutes::Sources { dead, .. } => {
                let now_dead = self.links_down.iter().map(down).collect();
                Some(std::mem::replace(dead, now_dead))
            }
        }
    }
}
