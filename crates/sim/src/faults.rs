//! Agenda of faults: scenario entries resolved to ports and ordered by time.

use pathweave_execution::{ScaleUpAction, ScaleUpChange};
use pathweave_fabric::config::{FaultConfig, Shares, SwitchConfig};
use pathweave_fabric::{PortId, PortMap};
use pathweave_topo::{LinkId, NamedLink, NamedNode, ScaleUpPart, TopoError, Topology, Ways};
use pathweave_units::{Duration, Rate, Time};

use crate::spec::{SimError, SimSpec};

/// Change of the fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A fault takes directions of a link down.
    Down(LinkId, Ways),
    /// A fault that held directions of a link down ends.
    Up(LinkId, Ways),
    /// The rate of directions of a link changes; `None` restores the rate of the topology.
    Rate(LinkId, Ways, Option<Rate>),
    /// The delay of directions of a link changes, without the latency of switches; `None` restores that of the
    /// topology.
    Delay(LinkId, Ways, Option<Duration>),
    /// Directions of a link lose packets with this probability.
    Loss(LinkId, Ways, f64),
    /// Directions of a link corrupt packets with this probability.
    Corruption(LinkId, Ways, f64),
    /// A host begins to pause this port.
    StormStart(PortId),
    /// The host stops pausing this port.
    StormStop(PortId),
    /// A part of a scale-up network changes. The networks know it from the start ([`scale_up_changes`]).
    ScaleUp(ScaleUpPart, ScaleUpAction),
    /// Routing detects the present state of the links.
    Reroute,
}

impl Action {
    /// Returns the port that feeds the link concerned, the first of two, or `None` if the action concerns no link.
    pub(crate) fn port(self, map: &PortMap) -> Option<PortId> {
        match self {
            Action::Down(link, ways)
            | Action::Up(link, ways)
            | Action::Rate(link, ways, _)
            | Action::Delay(link, ways, _)
            | Action::Loss(link, ways, _)
            | Action::Corruption(link, ways, _) => {
                let (at_a, at_b) = map.ends(link.index());
                Some(if ways == Ways::FromB { at_b } else { at_a })
            }
            Action::StormStart(port) | Action::StormStop(port) => Some(port),
            Action::ScaleUp(..) | Action::Reroute => None,
        }
    }
}

/// Returns the changes of scale-up networks, ordered by time.
///
/// # Errors
/// A fault has a value out of its range or names a link or node that does not exist.
pub fn scale_up_changes(spec: &SimSpec) -> Result<Vec<ScaleUpChange>, SimError> {
    let mut changes = Vec::new();
    if spec.topology.scale_up().is_some() {
        for (index, fault) in spec.faults.iter().enumerate() {
            for (at, action) in actions(&spec.topology, None, index, fault)? {
                if let Action::ScaleUp(part, action) = action {
                    changes.push(ScaleUpChange { at: Time::ZERO + at, part, action });
                }
            }
        }
    }
    changes.sort_by_key(|change| change.at);
    Ok(changes)
}

/// Action with its time and the fault that causes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Time of the action.
    pub at: Time,
    /// Number of the fault in the scenario, or `None` for routing.
    pub fault: Option<usize>,
    /// The action.
    pub action: Action,
}

/// Returns all actions ordered by time; at one instant, in the order of the scenario.
pub(crate) fn agenda(
    topology: &Topology,
    map: &PortMap,
    faults: &[FaultConfig],
    switch: &SwitchConfig,
) -> Result<Vec<Entry>, SimError> {
    let mut entries = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        for (at, action) in actions(topology, Some(map), index, fault)? {
            entries.push(Entry { at: Time::ZERO + at, fault: Some(index), action });
            let routing_sees = match action {
                Action::Down(..) | Action::Up(..) => true,
                Action::Rate(..) => switch.forwarding.shares() != Shares::Equal,
                _ => false,
            };
            if routing_sees {
                let at = (Time::ZERO + at).saturating_add(switch.reroute_after);
                entries.push(Entry { at, fault: None, action: Action::Reroute });
            }
        }
    }
    entries.sort_by_key(|entry| entry.at);
    // Many links change at once when a switch fails, but routing needs to be updated only once.
    entries.dedup_by(|a, b| a.action == Action::Reroute && a == b);
    Ok(entries)
}

/// Returns the actions of these faults with their times, except those of ports.
pub(crate) fn all_actions(
    topology: &Topology,
    faults: &[FaultConfig],
) -> Result<Vec<(Duration, Action)>, SimError> {
    let mut all = Vec::new();
    for (index, fault) in faults.iter().enumerate() {
        all.extend(actions(topology, None, index, fault)?);
    }
    Ok(all)
}

/// Returns the actions of a fault with their times. Without `map`, those of ports are left out.
fn actions(
    topology: &Topology,
    map: Option<&PortMap>,
    index: usize,
    fault: &FaultConfig,
) -> Result<Vec<(Duration, Action)>, SimError> {
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
    let mut add = |at: Duration, action| made.push((at, action));
    match fault {
        FaultConfig::LinkDown { link: name, at, up_at } => {
            let link = any_link(name)?;
            add(*at, down(link));
            up_at.iter().for_each(|&at| add(at, up(link)));
        }
        FaultConfig::LinkFlap { link: name, at, down_for, up_for, times } => {
            let link = any_link(name)?;
            for turn in 0..u64::from(*times) {
                let begin = *at + (*down_for + *up_for) * turn;
                add(begin, down(link));
                add(begin + *down_for, up(link));
            }
        }
        FaultConfig::LinkRate { link: name, at, rate, until } => {
            let link = any_link(name)?;
            refuse_faster(topology, link, (name, *rate)).map_err(wrong)?;
            add(*at, at_rate(link, Some(*rate)));
            until.iter().for_each(|&at| add(at, at_rate(link, None)));
        }
        FaultConfig::LinkDelay { link: name, at, delay, until } => {
            let (link, ways) = packet_link(name)?;
            add(*at, Action::Delay(link, ways, Some(*delay)));
            until.iter().for_each(|&at| add(at, Action::Delay(link, ways, None)));
        }
        FaultConfig::LinkLoss { link: name, at, probability, until } => {
            let (link, ways) = packet_link(name)?;
            add(*at, Action::Loss(link, ways, *probability));
            until.iter().for_each(|&at| add(at, Action::Loss(link, ways, 0.0)));
        }
        FaultConfig::LinkCorruption { link: name, at, probability, until } => {
            let (link, ways) = packet_link(name)?;
            add(*at, Action::Corruption(link, ways, *probability));
            until.iter().for_each(|&at| add(at, Action::Corruption(link, ways, 0.0)));
        }
        FaultConfig::SwitchDown { switch, at, up_at } => {
            for link in links_of_switch(topology, switch).map_err(wrong)? {
                add(*at, down(link));
                up_at.iter().for_each(|&at| add(at, up(link)));
            }
        }
        FaultConfig::PauseStorm { host, at, until } => {
            let node = topology.node_by_name(host).map_err(target)?;
            if !topology.is_host(node) {
                return Err(wrong(format!("\"{host}\" is a switch; pause-storm takes a host")));
            }
            for port in topology.ports(node) {
                let Some((a, b)) = map.map(|map| map.ends(port.link.index())) else { continue };
                let towards_host = if port.is_a { b } else { a };
                add(*at, Action::StormStart(towards_host));
                until.iter().for_each(|&at| add(at, Action::StormStop(towards_host)));
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

fn down(link: NamedLink) -> Action {
    match link {
        NamedLink::Link(link, ways) => Action::Down(link, ways),
        NamedLink::ScaleUp(part) => Action::ScaleUp(part, ScaleUpAction::Down),
    }
}

fn up(link: NamedLink) -> Action {
    match link {
        NamedLink::Link(link, ways) => Action::Up(link, ways),
        NamedLink::ScaleUp(part) => Action::ScaleUp(part, ScaleUpAction::Up),
    }
}

fn at_rate(link: NamedLink, rate: Option<Rate>) -> Action {
    match link {
        NamedLink::Link(link, ways) => Action::Rate(link, ways, rate),
        NamedLink::ScaleUp(part) => Action::ScaleUp(part, ScaleUpAction::Rate(rate)),
    }
}
