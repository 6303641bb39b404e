//! Agenda of faults: scenario entries resolved to ports and ordered by time.

use pathweave_fabric::config::{FaultConfig, Shares, SwitchConfig};
use pathweave_fabric::{PortId, PortMap};
use pathweave_topo::{LinkId, Topology, Ways};
use pathweave_units::{Duration, Rate, Time};

use crate::spec::SimError;

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
            Action::Reroute => None,
        }
    }
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
        fault.validate().map_err(|error| SimError::Fault { index, error })?;
        let target =
            |error: pathweave_topo::TopoError| SimError::FaultTarget { index, message: error.to_string() };
        let link = |name: &str| topology.ways_by_name(name).map_err(target);
        let mut add = |at: Duration, action| {
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
        };
        match fault {
            FaultConfig::LinkDown { link: name, at, up_at } => {
                let (link, ways) = link(name)?;
                add(*at, Action::Down(link, ways));
                up_at.iter().for_each(|&at| add(at, Action::Up(link, ways)));
            }
            FaultConfig::LinkFlap { link: name, at, down_for, up_for, times } => {
                let (link, ways) = link(name)?;
                for turn in 0..u64::from(*times) {
                    let down = *at + (*down_for + *up_for) * turn;
                    add(down, Action::Down(link, ways));
                    add(down + *down_for, Action::Up(link, ways));
                }
            }
            FaultConfig::LinkRate { link: name, at, rate, until } => {
                let (link, ways) = link(name)?;
                add(*at, Action::Rate(link, ways, Some(*rate)));
                until.iter().for_each(|&at| add(at, Action::Rate(link, ways, None)));
            }
            FaultConfig::LinkDelay { link: name, at, delay, until } => {
                let (link, ways) = link(name)?;
                add(*at, Action::Delay(link, ways, Some(*delay)));
                until.iter().for_each(|&at| add(at, Action::Delay(link, ways, None)));
            }
            FaultConfig::LinkLoss { link: name, at, probability, until } => {
                let (link, ways) = link(name)?;
                add(*at, Action::Loss(link, ways, *probability));
                until.iter().for_each(|&at| add(at, Action::Loss(link, ways, 0.0)));
            }
            FaultConfig::LinkCorruption { link: name, at, probability, until } => {
                let (link, ways) = link(name)?;
                add(*at, Action::Corruption(link, ways, *probability));
                until.iter().for_each(|&at| add(at, Action::Corruption(link, ways, 0.0)));
            }
            FaultConfig::SwitchDown { switch, at, up_at } => {
                let node = topology.node_by_name(switch).map_err(target)?;
                if topology.is_host(node) {
                    let message = format!("\"{switch}\" is a host; switch-down takes a switch");
                    return Err(SimError::FaultTarget { index, message });
                }
                for port in topology.ports(node) {
                    add(*at, Action::Down(port.link, Ways::Both));
                    up_at.iter().for_each(|&at| add(at, Action::Up(port.link, Ways::Both)));
                }
            }
            FaultConfig::PauseStorm { host, at, until } => {
                let node = topology.node_by_name(host).map_err(target)?;
                if !topology.is_host(node) {
                    let message = format!("\"{host}\" is a switch; pause-storm takes a host");
                    return Err(SimError::FaultTarget { index, message });
                }
                for port in topology.ports(node) {
                    let (a, b) = map.ends(port.link.index());
                    let towards_host = if port.is_a { b } else { a };
                    add(*at, Action::StormStart(towards_host));
                    until.iter().for_each(|&at| add(at, Action::StormStop(towards_host)));
                }
            }
        }
    }
    entries.sort_by_key(|entry| entry.at);
    // Many links change at once when a switch fails, but routing needs to be updated only once.
    entries.dedup_by(|a, b| a.action == Action::Reroute && a == b);
    Ok(entries)
}
