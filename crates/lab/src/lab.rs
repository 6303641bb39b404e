//! A lab that exists: looking at it, breaking and mending its links, working inside, removing it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use pathweave_topo::{LinkId, NodeId, Routing, TopoError};
use pathweave_units::{HostId, Rate};

use crate::error::{Doing, LabError};
use crate::find;
use crate::name::LabName;
use crate::os::device::{self, Counters, index_of_port};
use crate::os::netns::Namespace;
use crate::os::queue;
use crate::plan::Plan;
use crate::processes::{self, Process};
use crate::programs::Programs;
use crate::settings::MIN_RATE;
use crate::up::{self, Made};

/// A real network in namespaces of this machine.
///
/// It stays when this value goes: [`Lab::remove`] takes it down, from this process or any other.
#[derive(Debug)]
pub struct Lab {
    plan: Plan,
    closed: BTreeSet<LinkId>,
    /// Links whose rate was changed since, with the lab's rate.
    rates: BTreeMap<LinkId, Rate>,
    /// Packets dropped by queues that this value has replaced, by node and port.
    dropped: BTreeMap<(NodeId, u16), u64>,
    notes: Vec<String>,
    /// Known to who made it.
    programs: Option<Programs>,
}

/// Whether packets cross a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// They do.
    Up,
    /// They are lost, in both directions and without notice.
    Down,
}

/// A port and what it has moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCounters {
    /// Port of the node, in the topology's order.
    pub port: u16,
    /// The link.
    pub link: LinkId,
    /// Packets and bytes.
    pub counters: Counters,
    /// Packets dropped in front of the link, or lost because it was down. A change of the link by another process
    /// begins the count anew.
    pub dropped_packets: u64,
}

/// A lab in a list of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// Its name.
    pub lab: LabName,
    /// Network namespaces it has.
    pub namespaces: usize,
    /// Processes that run in it.
    pub processes: Vec<Process>,
    /// What it is; an incomplete lab has only a reason.
    pub state: Result<Summary, String>,
}

/// A complete lab in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Name of the topology.
    pub topology: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: usize,
    /// Number of links.
    pub links: usize,
    /// Names of the links that are down.
    pub down: Vec<String>,
    /// Rates relative to the topology's.
    pub rate_scale: crate::settings::RateScale,
}

/// What was removed with a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Network namespaces.
    pub namespaces: usize,
    /// Processes that ran in it and were ended.
    pub processes: Vec<Process>,
}

impl Lab {
    /// Makes a lab. After an error, or once `stop` says yes, nothing of it is left.
    ///
    /// The process needs the privileges of an administrator of networks and mounts, see
    /// [`Workplace`](crate::Workplace).
    pub fn make(plan: Plan, stop: &dyn Fn() -> bool) -> Result<Lab, LabError> {
        let Made { notes, programs } = up::make(&plan, stop)?;
        Ok(Lab {
            plan,
            closed: BTreeSet::new(),
            rates: BTreeMap::new(),
            dropped: BTreeMap::new(),
            notes,
            programs,
        })
    }

    /// Finds a lab that was made before, by any process.
    pub fn open(lab: &LabName) -> Result<Lab, LabError> {
        let found = find::read(lab, &find::namespaces_of(lab)?)?;
        Ok(Lab {
            plan: found.plan,
            closed: found.closed,
            rates: BTreeMap::new(),
            dropped: BTreeMap::new(),
            notes: Vec::new(),
            programs: None,
        })
    }

    /// The only lab there is: whom a command means that names none.
    pub fn only() -> Result<LabName, LabError> {
        let mut names = find::namespaces()?.into_keys();
        match (names.next(), names.next()) {
            (Some(lab), None) => Ok(lab),
            (None, _) => Err(LabError::NoLab),
            (Some(first), Some(second)) => {
                let all: Vec<String> =
                    [first, second].into_iter().chain(names).map(|lab| lab.to_string()).collect();
                let allowed = format!("there are several, so name one: {}", all.join(", "));
                Err(LabError::Value { what: "lab", value: String::new(), allowed })
            }
        }
    }

    /// All labs there are, by name.
    pub fn all() -> Result<Vec<Listing>, LabError> {
        let listing = |(lab, namespaces): (LabName, Vec<Namespace>)| {
            let state = find::read(&lab, &namespaces).map_err(|why| why.to_string()).map(|found| Summary {
                topology: found.plan.topology().name().to_owned(),
                hosts: found.plan.topology().hosts(),
                switches: found.plan.topology().switches().len(),
                links: found.plan.topology().links().len(),
                down: found.closed.iter().map(|&link| found.plan.topology().link_name(link)).collect(),
                rate_scale: found.plan.settings().rate_scale,
            });
            let processes = processes::in_namespaces(&identities(&namespaces));
            Listing { lab, namespaces: namespaces.len(), processes, state }
        };
        Ok(find::namespaces()?.into_iter().map(listing).collect())
    }

    /// Removes a lab, complete or not, and ends what runs in it.
    pub fn remove(lab: &LabName) -> Result<Removed, LabError> {
        let namespaces = find::namespaces_of(lab)?;
        let processes = processes::end_all(&identities(&namespaces))?;
        // All are tried; the first failure is told.
        let results: Vec<Result<(), LabError>> = namespaces.iter().map(Namespace::remove).collect();
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(Removed { namespaces: namespaces.len(), processes })
    }

    /// What it was made as.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// How it differs from the network it stands for, as sentences. Known to who made it.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// The links that are down.
    pub fn down(&self) -> impl Iterator<Item = LinkId> {
        self.closed.iter().copied()
    }
    /// Address of a host.
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        self.plan.node(host.into()).address
    }
    /// The host or switch of that name.
    pub fn node(&self, name: &str) -> Result<NodeId, LabError> {
        self.plan.topology().node_by_name(name).map_err(|why| match why {
            TopoError::UnknownName { name, nearest, .. } => {
                let kind = "host or switch of this lab";
                let all = self.plan.nodes().iter().map(|node| node.name.clone()).take(SHOWN).collect();
                LabError::Unknown { kind, name, nearest, all }
            }
            other => other.into(),
        })
    }
    /// The link of that name.
    pub fn link(&self, name: &str) -> Result<LinkId, LabError> {
        self.plan.topology().link_by_name(name).map_err(|why| match why {
            TopoError::UnknownName { name, nearest, .. } => {
                let links = (0..self.plan.topology().links().len() as u32).map(LinkId);
                let all = links.take(SHOWN).map(|link| self.plan.topology().link_name(link)).collect();
                LabError::Unknown { kind: "link of this lab", name, nearest, all }
            }
            other => other.into(),
        })
    }

    /// Breaks or mends a link. Routes stay as they are until [`Lab::reroute`].
    pub fn set_link(&mut self, link: LinkId, state: LinkState) -> Result<(), LabError> {
        match state {
            LinkState::Down => self.closed.insert(link),
            LinkState::Up => self.closed.remove(&link),
        };
        self.apply(link)
    }

    /// Gives a link another rate: `rate` is of the topology, and scaled as all rates are. A link that is down has it
    /// once it is up.
    pub fn set_rate(&mut self, link: LinkId, rate: Rate) -> Result<(), LabError> {
        let scaled = self.plan.settings().rate_scale.apply(rate);
        if scaled < MIN_RATE {
            let allowed = format!("it would be {scaled} here; links need at least {MIN_RATE}");
            return Err(LabError::Value { what: "rate", value: rate.to_string(), allowed });
        }
        self.rates.insert(link, scaled);
        self.apply(link)
    }

    /// Puts in front of both ends of a link what belongs there.
    fn apply(&mut self, link: LinkId) -> Result<(), LabError> {
        for (id, port) in self.plan.ends(link) {
            let node = self.plan.node(id);
            let netlink = &mut Namespace::named(&node.namespace).netlink()?;
            let index = index_of_port(port);
            let planned = &node.ports[usize::from(port)];
            let rate = self.rates.get(&link).copied().unwrap_or(planned.rate);
            // The count of drops goes with the queue that is replaced.
            let queues = queue::list(netlink).doing(|| format!("read the queues of {}", node.name))?;
            let dropped =
                queues.iter().find(|queue| queue.device == index).map_or(0, |queue| queue.dropped_packets);
            *self.dropped.entry((id, port)).or_default() += dropped;
            let done = if self.closed.contains(&link) {
                queue::close(netlink, index)
            } else {
                queue::open(netlink, index, &up::shape(&self.plan, node, rate))
            };
            done.doing(|| format!("change port {} of {}", planned.device, node.name))?;
        }
        Ok(())
    }

    /// Sets all routes to shortest paths over the links that are up.
    pub fn reroute(&self) -> Result<(), LabError> {
        let routing = Routing::compute(self.plan.topology(), &|link| !self.closed.contains(&link));
        let nodes = (0..self.plan.topology().nodes()).map(NodeId);
        nodes.into_iter().try_for_each(|node| up::set_routes(&self.plan, &routing, node))
    }

    /// Loses packets of a link with a probability each, 0.0 to 1.0, in both directions. Only who made the lab can,
    /// and only where the kernel lets it load programs.
    pub fn set_loss(&self, link: LinkId, probability: f64) -> Result<(), LabError> {
        if !(0.0..=1.0).contains(&probability) {
            let allowed = "a probability, 0.0 to 1.0".to_owned();
            return Err(LabError::Value { what: "loss", value: probability.to_string(), allowed });
        }
        let programs = self.programs.as_ref().ok_or_else(|| {
            let why = "random loss needs a BPF program at each end of the link, and there is none".to_owned();
            LabError::Kernel(why)
        })?;
        for (node, port) in self.plan.ends(link) {
            let node = self.plan.node(node);
            let netlink = &mut Namespace::named(&node.namespace).netlink()?;
            programs.treat(netlink, &self.plan, node, port, probability)?;
        }
        Ok(())
    }

    /// Packets that the ports of a node marked so far, in port order. Known to who made the lab; zeroes where the
    /// kernel lets it load no programs.
    pub fn marked(&self, node: NodeId) -> Result<Vec<u64>, LabError> {
        let marked = |port| self.programs.as_ref().map_or(Ok(0), |programs| programs.marked(port));
        self.plan.node(node).ports.iter().map(marked).collect()
    }

    /// What the ports of a node have moved.
    pub fn counters(&self, id: NodeId) -> Result<Vec<PortCounters>, LabError> {
        let node = self.plan.node(id);
        let netlink = &mut Namespace::named(&node.namespace).netlink()?;
        let doing = || format!("read the counters of {}", node.name);
        let devices = device::list(netlink).doing(doing)?;
        let queues = queue::list(netlink).doing(doing)?;
        let of_port = |(port, number): (&crate::plan::PortPlan, u16)| {
            let index = index_of_port(number);
            let device = devices.iter().find(|device| device.index == index);
            let queue = queues.iter().find(|queue| queue.device == index);
            PortCounters {
                port: number,
                link: port.link,
                counters: device.map(|device| device.counters).unwrap_or_default(),
                dropped_packets: queue.map_or(0, |queue| queue.dropped_packets)
                    + self.dropped.get(&(id, number)).copied().unwrap_or(0),
            }
        };
        Ok(node.ports.iter().zip(0..).map(of_port).collect())
    }

    /// Runs `work` on a thread of its own in the network of a node. Sockets opened there stay there.
    pub fn inside<T: Send>(&self, node: NodeId, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        Namespace::named(&self.plan.node(node).namespace).inside(work)
    }

    /// Puts the calling thread into the network of a node, for good.
    pub fn enter(&self, node: NodeId) -> Result<(), LabError> {
        Namespace::named(&self.plan.node(node).namespace).enter()
    }
}

/// Names shown where one is unknown.
const SHOWN: usize = 8;

fn identities(namespaces: &[Namespace]) -> BTreeSet<(u64, u64)> {
    namespaces.iter().filter_map(|namespace| namespace.identity().ok()).collect()
}
