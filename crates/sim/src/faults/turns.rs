//! Begins and ends of faults, with what they befall.

use pathweave_fabric::config::FaultConfig;
use pathweave_fabric::{InForce, PortId, PortMap};
use pathweave_topo::{LinkId, NamedLink, NamedNode, TopoError, Topology, Ways};
use pathweave_units::{Duration, Rate};

use crate::spec::SimError;

/// Begin or end of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// The fault begins.
    Begin,
    /// The fault ends.
    End,
}

impl Edge {
    /// Adds the value of a fault at its begin, and removes it at its end.
    pub(super) fn apply<P: Ord, V: PartialEq>(self, in_force: &mut InForce<P, V>, place: P, value: V) {
        match self {
            Edge::Begin => in_force.begin(place, value),
            Edge::End => in_force.end(&place, &value),
        }
    }
}

/// Effect of a fault on one link or port while it is in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// The link loses all packets.
    Down(NamedLink),
    /// The link has this rate.
    Rate(NamedLink, Rate),
    /// The directions have this delay, without the latency of switches.
    Delay((LinkId, Ways), Duration),
    /// The directions lose packets with this probability.
    Loss((LinkId, Ways), f64),
    /// The directions corrupt packets with this probability.
    Corruption((LinkId, Ways), f64),
    /// The host at the far end pauses this port.
    Storm(PortId),
}

impl Trouble {
    /// Returns the rank of the kind, and the place.
    fn place(self) -> (u8, Option<NamedLink>, PortId) {
        let of_link = |rank, (link, ways)| (rank, Some(NamedLink::Link(link, ways)), 0);
        match self {
            Trouble::Down(link) => (0, Some(link), 0),
            Trouble::Rate(link, _) => (1, Some(link), 0),
            Trouble::Delay(link, _) => of_link(2, link),
            Trouble::Loss(link, _) => of_link(3, link),
            Trouble::Corruption(link, _) => of_link(4, link),
            Trouble::Storm(port) => (5, None, port),
        }
    }
}

/// Begin or end of a fault at one link or port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) at: Duration,
    pub(crate) edge: Edge,
    /// Number of the fault in the scenario.
    pub(crate) fault: usize,
    pub(crate) trouble: Trouble,
}

/// Returns the turns of all faults, ordered by time. At one instant, begins precede ends, so that a link that one fault
/// leaves down to another is not up in between. Then places count, not the order of the scenario. Without `map`,
/// turns of ports are left out.
pub(crate) fn turns(
    topology: &Topology,
    map: Option<&PortMap>,
    faults: &[FaultConfig],
) -> Result<Vec<Turn>, SimError> {
    let mut by_fault = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        by_fault.push(turns_of(topology, map, index, fault)?);
    }
    by_fault
        .sort_by_cached_key(|turns| -> Vec<_> { turns.iter().map(|turn| turn.trouble.place()).collect() });
    let mut all = by_fault.concat();
    all.sort_by_key(|turn| (turn.at, turn.edge));
    Ok(all)
}

/// Returns the turns of a fault. Without `map`, those of ports are left out.
fn turns_of(
    topology: &Topology,
    map: Option<&PortMap>,
    index: usize,
    fault: &FaultConfig,
) -> Result<Vec<Turn>, SimError> {
    fault.validate().map_err(|error| SimError::Fault { index, error })?;
    let wrong = |message: String| SimError::FaultTarget { index, message };
    let target = |error: TopoError| wrong(error.to_string());
    let any_link = |name: &str| topology.link_or_scale_up(name).map_err(target);
    let packet_link = |name: &str| match any_link(name)? {
        NamedLink::Link(link, ways) => Ok((link, ways)),
        NamedLink::ScaleUp(_) => Err(wrong(format!(
            "\"{name}\" is a link of a scale-up network, which carries no packets; it takes link-down, link-flap and \
             link-rate"
        ))),
    };
    let mut made = Vec::new();
    let mut add = |trouble, at, end: Option<Duration>| {
        made.push(Turn { at, edge: Edge::Begin, fault: index, trouble });
        made.extend(end.map(|at| Turn { at, edge: Edge::End, fault: index, trouble }));
    };
    match fault {
        FaultConfig::LinkDown { link: name, at, up_at } => add(Trouble::Down(any_link(name)?), *at, *up_at),
        FaultConfig::LinkFlap { link: name, at, down_for, up_for, times } => {
            let link = any_link(name)?;
            for turn in 0..u64::from(*times) {
                let begin = *at + (*down_for + *up_for) * turn;
                add(Trouble::Down(link), begin, Some(begin + *down_for));
            }
        }
        FaultConfig::LinkRate { link: name, at, rate, until } => {
            let link = any_link(name)?;
            refuse_faster(topology, link, (name, *rate)).map_err(wrong)?;
            add(Trouble::Rate(link, *rate), *at, *until);
        }
        FaultConfig::LinkDelay { link: name, at, delay, until } => {
            add(Trouble::Delay(packet_link(name)?, *delay), *at, *until);
        }
        FaultConfig::LinkLoss { link: name, at, probability, until } => {
            add(Trouble::Loss(packet_link(name)?, *probability), *at, *until);
        }
        FaultConfig::LinkCorruption { link: name, at, probability, until } => {
            add(Trouble::Corruption(packet_link(name)?, *probability), *at, *until);
        }
        FaultConfig::SwitchDown { switch, at, up_at } => {
            for link in links_of_switch(topology, switch).map_err(wrong)? {
                add(Trouble::Down(link), *at, *up_at);
            }
        }
        FaultConfig::PauseStorm { host, at, until } => {
            let node = topology.node_by_name(host).map_err(target)?;
            if !topology.is_host(node) {
                return Err(wrong(format!("\"{host}\" is a switch; pause-storm takes a host")));
            }
            for port in topology.ports(node) {
                let Some((a, b)) = map.map(|map| map.ends(port.link.index())) else { continue };
                add(Trouble::Storm(if port.is_a { b } else { a }), *at, *until);
            }
        }
    }
    Ok(made)
}

/// Returns an error if a fault would make a link of a scale-up network faster than it is.
fn refuse_faster(topology: &Topology, link: NamedLink, (name, rate): (&str, Rate)) -> Result<(), String> {
    let NamedLink::ScaleUp(part) = link else { return Ok(()) };
    match topology.scale_up().and_then(|network| network.link_rate(part)) {
        Some(own) if rate > own => Err(format!(
            "\"{name}\" would have {rate}; it is a link of a scale-up network, which a fault can only slow down: at \
             most {own}"
        )),
        _ => Ok(()),
    }
}

/// Returns what fails with a switch: all its links, or a chip of a scale-up network.
fn links_of_switch(topology: &Topology, name: &str) -> Result<Vec<NamedLink>, String> {
    match topology.node_or_chip(name).map_err(|why| why.to_string())? {
        NamedNode::Chip(part) => Ok(vec![NamedLink::ScaleUp(part)]),
        NamedNode::Node(node) if topology.is_host(node) => {
            Err(format!("\"{name}\" is a host; switch-down takes a switch"))
        }
        NamedNode::Node(node) => {
            Ok(topology.ports(node).iter().map(|port| NamedLink::Link(port.link, Ways::Both)).collect())
        }
    }
}
