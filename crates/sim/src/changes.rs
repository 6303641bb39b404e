//! The network changes in mid-run: what a fault does to the fabric, and who is told.

use pathweave_topo::{LinkId, PortRef, Routing};
use pathweave_units::Time;

use crate::chosen_routes::ChosenRoutes;
use crate::faults::{Action, Entry};
use crate::routes::View;
use crate::runner::Runner;

impl<const C: usize> Runner<'_, C> {
    /// An entry of the agenda is due.
    pub(crate) fn on_fault(&mut self, now: Time, entry: Entry) {
        self.observers.recorder.fault(now, &entry);
        let port = |runner: &Self, link: LinkId| runner.network.map.ends(link.index()).0;
        match entry.action {
            Action::Down(link) => {
                self.network.links_down[link.index()] += 1;
                if self.network.links_down[link.index()] == 1 {
                    let port = port(self, link);
                    self.network.fabric.link_down(now, port);
                    self.tell_hosts(now, link);
                }
            }
            Action::Up(link) => {
                // Two faults may hold a link down; it is up when the last one ends.
                self.network.links_down[link.index()] =
                    self.network.links_down[link.index()].saturating_sub(1);
                if self.network.links_down[link.index()] == 0 {
                    let port = port(self, link);
                    self.network.fabric.link_up(now, port);
                    self.tell_hosts(now, link);
                }
            }
            Action::Rate(link, rate) => {
                let rate = rate.unwrap_or(self.spec.topology.link(link).rate);
                let port = port(self, link);
                self.network.fabric.set_link(now, port, Some(rate), None);
                self.wake_hosts(now, link);
            }
            Action::Delay(link, delay) => {
                let delay = delay.unwrap_or(self.spec.topology.link(link).delay);
                let port = port(self, link);
                self.network.fabric.set_link(now, port, None, Some(delay));
            }
            Action::Loss(link, loss) => {
                let port = port(self, link);
                let (_, corruption) = self.network.fabric.impairment(port);
                self.network.fabric.set_impairment(port, loss, corruption);
            }
            Action::Corruption(link, corruption) => {
                let port = port(self, link);
                let (loss, _) = self.network.fabric.impairment(port);
                let floor = self.spec.topology.link(link).error_rate;
                self.network.fabric.set_impairment(port, loss, corruption.max(floor));
            }
            Action::StormStart(port) => self.network.fabric.start_pause_storm(now, port),
            Action::StormStop(port) => {
                let step = self.network.fabric.stop_pause_storm(now, port);
                self.on_step(now, step);
            }
            Action::Reroute => self.reroute(now),
        }
        self.record_log();
    }

    /// Hosts at a link's ends see it fail or come back.
    fn tell_hosts(&mut self, now: Time, link: LinkId) {
        let topology = &*self.spec.topology;
        for node in [topology.link(link).a, topology.link(link).b] {
            if topology.is_host(node) {
                let dead = |port: &PortRef| self.network.links_down[port.link.index()] > 0;
                self.hosts[node.index()].nic.cut_off = topology.ports(node).iter().all(dead);
            }
        }
        self.wake_hosts(now, link);
    }

    /// A link has changed: what the hosts at its ends knew of their transmitters need not hold.
    fn wake_hosts(&mut self, now: Time, link: LinkId) {
        let topology = &*self.spec.topology;
        for node in [topology.link(link).a, topology.link(link).b] {
            if topology.is_host(node) {
                self.hosts[node.index()].on_links_changed();
                self.transmit(now, node.index());
            }
        }
    }

    /// Routing has noticed which links are down.
    fn reroute(&mut self, now: Time) {
        let down = |link: &u32| *link > 0;
        match &mut self.network.routes {
            ChosenRoutes::Switches(routing) => {
                let links = &self.network.links_down;
                let alive = |link: LinkId| !down(&links[link.index()]);
                let topology = &*self.spec.topology;
                let rate = |link: LinkId| self.network.fabric.link(self.network.map.ends(link.index()).0).0;
                let view = View { topology, alive: &alive, rate: &rate, shares: self.network.shares };
                let routes = ChosenRoutes::switch_routes(&self.network.map, &self.spec.routing, &view);
                self.network.fabric.set_routes(routes);
                *routing = Routing::compute(topology, &alive);
            }
            ChosenRoutes::Sources { dead, .. } => {
                let now_dead = self.network.links_down.iter().map(down).collect();
                let before = std::mem::replace(dead, now_dead);
                self.tell_of_paths(now, &before);
            }
        }
    }
}
