//! Least time of each message on an idle network, for bounds before a run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pathweave_policy::Service;
use pathweave_topo::{Servers, Topology};
use pathweave_units::{Duration, HostId};
use pathweave_workload::Message;

use crate::at_best::topology_at_best;
use crate::chosen_routes::ChosenRoutes;
use crate::ideal::{ideal_datagrams, ideal_fct};
use crate::paths::PathProfile;
use crate::spec::{SimError, SimSpec};

/// Pairs of hosts whose paths are looked up. Messages between further pairs count the shortest delay of two links only.
const MOST_PAIRS: usize = 1 << 16;

/// Least times of the messages of a run, on a network with each link at its best.
pub struct IdleTimes<'a> {
    spec: &'a SimSpec,
    topology: Arc<Topology>,
    routes: ChosenRoutes,
    known: RefCell<BTreeMap<(HostId, HostId), Vec<PathProfile>>>,
}

impl<'a> IdleTimes<'a> {
    /// Prepares the times.
    ///
    /// # Errors
    /// A fault has a value out of its range or names a link or node that does not exist.
    pub fn new(spec: &'a SimSpec) -> Result<Self, SimError> {
        let topology = topology_at_best(spec)?.unwrap_or_else(|| Arc::clone(&spec.topology));
        let routes = ChosenRoutes::whole(&topology, &spec.routing, &spec.network);
        Ok(IdleTimes { spec, topology, routes, known: RefCell::default() })
    }

    /// Returns a time that no run undercuts, from the first bit of a message to its last bit at the receiver: its ideal
    /// time over all paths. Messages that scale-up networks carry without packets have none here.
    pub fn of(&self, message: &Message) -> Duration {
        let (src, dst) = (message.src, message.dst);
        let scale_up = self.topology.servers().and_then(Servers::any_scale_up);
        if scale_up.is_some_and(|up| up.joins(src, dst)) && self.topology.scale_up().is_some() {
            return Duration::ZERO;
        }
        let mut known = self.known.borrow_mut();
        if known.len() == MOST_PAIRS && !known.contains_key(&(src, dst)) {
            return self.topology.shortest_delay() + self.topology.shortest_delay();
        }
        let paths = known.entry((src, dst)).or_insert_with(|| {
            let mut paths = self.routes.profiles(&self.topology, src, dst);
            // A packet may take the path with the least delay.
            paths.iter_mut().for_each(|path| path.mean_delay = None);
            paths
        });
        paths.iter().map(|path| self.over(path, message)).min().unwrap_or(Duration::ZERO)
    }

    fn over(&self, path: &PathProfile, message: &Message) -> Duration {
        let network = &self.spec.network;
        let (size, mtu) = (message.size.get(), network.mtu.get() as u16);
        let scheme = &self.spec.scheme_of(message.group).scheme;
        if let Service::Datagram(config) = &scheme.service {
            return ideal_datagrams(path, size, config.capacity(mtu), network.framing);
        }
        let queue_pairs = usize::from(scheme.queue_pairs);
        let ports = path.nic_ports.0.max(1) as usize;
        let shared = [1, queue_pairs, queue_pairs * ports];
        let times = shared.map(|parts| ideal_fct(path, size, parts, mtu, network.framing, network.verb));
        times.into_iter().min().expect("it is not empty")
    }
}
