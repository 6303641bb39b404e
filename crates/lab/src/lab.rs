//! Operations on an existing lab: status, failure and repair of links, execution of programs, removal.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use pathweave_topo::{LinkId, NodeId, Routing, TopoError};
use pathweave_units::{HostId, Rate};

use crate::create::{self, CreatedLab};
use crate::discovery;
use crate::error::{LabError, WithContext};
use crate::name::LabName;
use crate::os::device::{self, Counters, index_of_port};
use crate::os::netns::Namespace;
use crate::os::queue;
use crate::plan::Plan;
use crate::processes::{self, Process};
use crate::programs::Programs;
use crate::settings::MIN_RATE;

/// Real network in namespaces of this machine.
///
/// Dropping this value does not remove it. [`Lab::remove`] does, from this or any other process.
#[derive(Debug)]
pub struct Lab {
    plan: Plan,
    closed: BTreeSet<LinkId>,
    /// Links whose rate has been changed, with their rate in the lab.
    rates: BTreeMap<LinkId, Rate>,
    /// Packets dropped by queues that this value has replaced, by node and port.
    dropped: BTreeMap<(NodeId, u16), u64>,
    notes: Vec<String>,
    /// Programs at the ports, if this process created the lab.
    programs: Option<Programs>,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Packets cross the link.
    Up,
    /// Packets are lost in both directions, without notice.
    Down,
}

/// Counters of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortCounters {
    /// Port of the node, in the topology's order.
    pub port: u16,
    /// Link at the port.
    pub link: LinkId,
    /// Packets and bytes.
    pub counters: Counters,
    /// Packets dropped in the queue of the link, or lost while the link was down. A change of the link by another
    /// process resets the count.
    pub dropped_packets: u64,
}

/// Entry of a lab in the list of all labs.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// Name of the lab.
    pub lab: LabName,
    /// Number of network namespaces.
    pub namespaces: usize,
    /// Processes that run in the lab.
    pub processes: Vec<Process>,
    /// Properties of the lab, or the reason why it is incomplete.
    pub state: Result<Summary, String>,
}

/// Properties of a complete lab.
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
    /// Ratio of the lab's rates to the topology's.
    pub rate_scale: crate::settings::RateScale,
}

/// Items that were removed with a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of network namespaces.
    pub namespaces: usize,
    /// Processes that ran in the lab and were ended.
    pub processes: Vec<Process>,
}

impl Lab {
    /// Creates a lab. After an error, or once `stop` returns true, everything that was created is removed.
    ///
    /// The process needs the privileges to administer networks and mounts; see [`Workplace`](crate::LabNamespaces).
    pub fn create(plan: Plan, stop: &dyn Fn() -> bool) -> Result<Lab, LabError> {
        let CreatedLab { notes, programs } = create::make(&plan, stop)?;
        Ok(Lab {
            plan,
            closed: BTreeSet::new(),
            rates: BTreeMap::new(),
            dropped: BTreeMap::new(),
            notes,
            programs,
        })
    }

    /// Opens a lab that any process has created.
    pub fn open(lab: &LabName) -> Result<Lab, LabError> {
        let found = discovery::read(lab, &discovery::namespaces_of(lab)?)?;
        Ok(Lab {
            plan: found.plan,
            closed: found.closed,
            rates: BTreeMap::new(),
            dropped: BTreeMap::new(),
            notes: Vec::new(),
            programs: None,
        })
    }

    /// Returns the only existing lab, for commands that name none.
    pub fn single() -> Result<LabName, LabError> {
        let mut names = discovery::namespaces()?.into_keys();
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

    /// Returns all existing labs by name.
    pub fn all() -> Result<Vec<Listing>, LabError> {
        let listing = |(lab, namespaces): (LabName, Vec<Namespace>)| {
            let state =
                discovery::read(&lab, &namespaces).map_err(|why| why.to_string()).map(|found| Summary {
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
        Ok(discovery::namespaces()?.into_iter().map(listing).collect())
    }

    /// Removes a lab, complete or not, and ends the processes that run in it.
    pub fn remove(lab: &LabName) -> Result<Removed, LabError> {
        let namespaces = discovery::namespaces_of(lab)?;
        let processes = processes::terminate_all(&identities(&namespaces))?;
        // Removes all namespaces, and reports the first failure.
        let results: Vec<Result<(), LabError>> = namespaces.iter().map(Namespace::remove).collect();
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(Removed { namespaces: namespaces.len(), processes })
    }

    /// Returns the plan by which the lab was created.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
    /// Returns notes on the differences between the lab and the network it represents. Only the process that created
    /// the lab has them.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
    /// Returns the links that are down.
    pub fn down(&self) -> impl Iterator<Item = LinkId> {
        self.closed.iter().copied()
    }
    /// Returns the address of a host.
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        self.plan.node(host.into()).address
    }
    /// Returns the host or switch with this name.
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
    /// Returns the link with this name.
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

    /// Takes a link down or up. Routes stay unchanged until [`Lab::reroute`].
    pub fn set_link(&mut self, link: LinkId, state: LinkState) -> Result<(), LabError> {
        match state {
            LinkState::Down => self.closed.insert(link),
            LinkState::Up => self.closed.remove(&link),
        };
        self.apply(link)
    }

    /// Changes the rate of a link. `rate` is a rate of the topology and is scaled like all others. A link that is
    /// down gets it when it comes up.
    pub fn set_rate(&mut self, link: LinkId, rate: Rate) -> Result<(), LabError> {
        let scaled = self.plan.settings().rate_scale.apply(rate);
        if scaled < MIN_RATE {
            let allowed = format!("it would be {scaled} here; links need at least {MIN_RATE}");
            return Err(LabError::Value { what: "rate", value: rate.to_string(), allowed });
        }
        self.rates.insert(link, scaled);
        self.apply(link)
    }

    /// Installs the queue that the state of a link requires at both of its ends.
    fn apply(&mut self, link: LinkId) -> Result<(), LabError> {
        for (id, port) in self.plan.ends(link) {
            let node = self.plan.node(id);
            let netlink = &mut Namespace::named(&node.namespace).netlink()?;
            let index = index_of_port(port);
            let planned = &node.ports[usize::from(port)];
            let rate = self.rates.get(&link).copied().unwrap_or(planned.rate);
            // Replacing the queue resets its count of drops.
            let queues = queue::list(netlink).context(|| format!("read the queues of {}", node.name))?;
            let dropped =
                queues.iter().find(|queue| queue.device == index).map_or(0, |queue| queue.dropped_packets);
            *self.dropped.entry((id, port)).or_default() += dropped;
            let done = if self.closed.contains(&link) {
                queue::install_drop_all(netlink, index)
            } else {
                queue::install_token_bucket(netlink, index, &create::token_bucket(&self.plan, node, rate))
            };
            done.context(|| format!("change port {} of {}", planned.device, node.name))?;
        }
        Ok(())
    }

    /// Sets all routes to shortest paths over the links that are up.
    pub fn reroute(&self) -> Result<(), LabError> {
        let routing = Routing::compute(self.plan.topology(), &|link| !self.closed.contains(&link));
        let nodes = (0..self.plan.topology().nodes()).map(NodeId);
        nodes.into_iter().try_for_each(|node| create::set_routes(&self.plan, &routing, node))
    }

    /// Makes a link lose packets in both directions with a probability, 0.0 to 1.0. Works only in the process that
    /// created the lab, and only if the kernel lets it load programs.
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
            programs.set_loss(netlink, &self.plan, node, port, probability)?;
        }
        Ok(())
    }

    /// Returns the number of packets marked so far at each port of a node, in port order. Only the process that
    /// created the lab has them. They are 0 if the kernel lets it load no programs.
    pub fn marked(&self, node: NodeId) -> Result<Vec<u64>, LabError> {
        let marked = |port| self.programs.as_ref().map_or(Ok(0), |programs| programs.marked(port));
        self.plan.node(node).ports.iter().map(marked).collect()
    }

    /// Returns the counters of a node's ports.
    pub fn counters(&self, id: NodeId) -> Result<Vec<PortCounters>, LabError> {
        let node = self.plan.node(id);
        let netlink = &mut Namespace::named(&node.namespace).netlink()?;
        let doing = || format!("read the counters of {}", node.name);
        let devices = device::list(netlink).context(doing)?;
        let queues = queue::list(netlink).context(doing)?;
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

    /// Runs `work` on a separate thread in the network of a node. Sockets opened there stay in that network.
    pub fn inside<T: Send>(&self, node: NodeId, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        Namespace::named(&self.plan.node(node).namespace).inside(work)
    }

    /// Moves the calling thread into the network of a node permanently.
    pub fn enter(&self, node: NodeId) -> Result<(), LabError> {
        Namespace::named(&self.plan.node(node).namespace).enter()
    }
}

/// Number of names shown if one is unknown.
const SHOWN: usize = 8;

fn identities(namespaces: &[Namespace]) -> BTreeSet<(u64, u64)> {
    namespaces.iter().filter_map(|namespace| namespace.identity().ok()).collect()
}
