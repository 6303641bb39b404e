//! Agenda of faults: scenario entries resolved to ports and ordered by time.
//!
//! The state of a link follows from the set of faults in force, from the start of each until before its end. Of several
//! rates the smallest holds, of several delays the longest. Losses are independent of each other, as are corruptions. The
//! order in which a scenario lists its faults has no effect.

use pathweave_execution::{ScaleUpAction, ScaleUpChange};
use pathweave_fabric::config::{FaultConfig, Shares, SwitchConfig};
use pathweave_fabric::{InForce, PortId, PortMap, any_of};
use pathweave_topo::{LinkId, NamedLink, ScaleUpPart, Topology, Ways};
use pathweave_units::{Duration, Rate, Time};

use crate::faults::turns::Turn;
use crate::spec::{SimError, SimSpec};

#[cfg(test)]
mod tests;
mod turns;

pub use turns::Edge;
pub(crate) use turns::{Trouble, turns};

/// Change of the fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// A fault takes directions of a link down.
    Down(LinkId, Ways),
    /// A fault that held directions of a link down ends.
    Up(LinkId, Ways),
    /// Directions of a link have this rate from now on; `None` restores the rate of the topology.
    Rate(LinkId, Ways, Option<Rate>),
    /// Directions of a link have this delay from now on, without the latency of switches; `None` restores that of the
    /// topology.
    Delay(LinkId, Ways, Option<Duration>),
    /// Directions of a link lose packets with this probability.
    Loss(LinkId, Ways, f64),
    /// Directions of a link corrupt packets with this probability.
    Corruption(LinkId, Ways, f64),
    /// A host pauses this port from now on.
    StormStart(PortId),
    /// The host pauses this port no longer.
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

/// Action with its time and the fault that causes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Time of the action.
    pub at: Time,
    /// Number of the fault in the scenario, and the edge that the action stands for. `None` for routing, and for the
    /// second direction of a link whose directions differ.
    pub fault: Option<(usize, Edge)>,
    /// The action.
    pub action: Action,
}

/// Returns the changes of scale-up networks, ordered by time.
///
/// # Errors
/// A fault has a value out of its range or names a link or node that does not exist.
pub fn scale_up_changes(spec: &SimSpec) -> Result<Vec<ScaleUpChange>, SimError> {
    if spec.topology.scale_up().is_none() {
        return Ok(Vec::new());
    }
    let change = |(at, action)| match action {
        Action::ScaleUp(part, action) => Some(ScaleUpChange { at, part, action }),
        _ => None,
    };
    Ok(link_changes(&spec.topology, &spec.faults)?.into_iter().filter_map(change).collect())
}

/// Returns what faults change about links, ordered by time. Storms of pauses, which are at ports, and updates of routes
/// are left out.
///
/// # Errors
/// A fault has a value out of its range or names a link or node that does not exist.
pub fn link_changes(topology: &Topology, faults: &[FaultConfig]) -> Result<Vec<(Time, Action)>, SimError> {
    let entries = entries(&turns(topology, None, faults)?);
    Ok(entries.into_iter().map(|entry| (entry.at, entry.action)).collect())
}

/// Returns all actions ordered by time. Routing that is due detects the state before the instant, unless it needs no
/// time.
pub(crate) fn agenda(
    topology: &Topology,
    map: &PortMap,
    faults: &[FaultConfig],
    switch: &SwitchConfig,
) -> Result<Vec<Entry>, SimError> {
    let mut all = Vec::new();
    for entry in entries(&turns(topology, Some(map), faults)?) {
        all.push(entry);
        let routing_sees = match entry.action {
            Action::Down(..) | Action::Up(..) => true,
            Action::Rate(..) => switch.forwarding.shares() != Shares::Equal,
            _ => false,
        };
        if routing_sees {
            let at = entry.at.saturating_add(switch.reroute_after);
            all.push(Entry { at, fault: None, action: Action::Reroute });
        }
    }
    all.sort_by_key(|entry| entry.at);
    // Many links change at once when a switch fails, but routing needs to be updated only once.
    all.dedup_by(|a, b| a.action == Action::Reroute && a == b);
    Ok(all)
}

/// Faults in force by kind. Directions of a link begin at its end `a`, or else at `b`.
#[derive(Default)]
struct State {
    rates: InForce<(LinkId, bool), Rate>,
    delays: InForce<(LinkId, bool), Duration>,
    losses: InForce<(LinkId, bool), f64>,
    corruptions: InForce<(LinkId, bool), f64>,
    scale_up_rates: InForce<ScaleUpPart, Rate>,
    storms: InForce<PortId, ()>,
}

/// Returns the actions of turns that are ordered by time. Each action has the state after its instant.
fn entries(turns: &[Turn]) -> Vec<Entry> {
    let (mut state, mut all) = (State::default(), Vec::new());
    for instant in turns.chunk_by(|a, b| a.at == b.at) {
        instant.iter().for_each(|turn| state.take_in(turn));
        for turn in instant {
            let mut fault = Some((turn.fault, turn.edge));
            let entry = |action| Entry { at: Time::ZERO + turn.at, fault: fault.take(), action };
            all.extend(state.actions(turn).map(entry));
        }
    }
    all
}

impl State {
    /// Takes in the begin or the end of a fault.
    fn take_in(&mut self, turn: &Turn) {
        let edge = turn.edge;
        match turn.trouble {
            // The links count the faults that hold them down.
            Trouble::Down(_) => {}
            Trouble::Rate(NamedLink::Link(link, ways), rate) => {
                take(&mut self.rates, edge, (link, ways), rate);
            }
            Trouble::Rate(NamedLink::ScaleUp(part), rate) => edge.apply(&mut self.scale_up_rates, part, rate),
            Trouble::Delay(link, delay) => take(&mut self.delays, edge, link, delay),
            Trouble::Loss(link, loss) => take(&mut self.losses, edge, link, loss),
            Trouble::Corruption(link, corruption) => take(&mut self.corruptions, edge, link, corruption),
            Trouble::Storm(port) => edge.apply(&mut self.storms, port, ()),
        }
    }

    /// Returns the actions of a turn: one, or one for each direction of a link if they differ.
    fn actions(&self, turn: &Turn) -> impl Iterator<Item = Action> {
        let one = |action| [Some(action), None];
        let actions = match turn.trouble {
            Trouble::Down(NamedLink::Link(link, ways)) => one(match turn.edge {
                Edge::Begin => Action::Down(link, ways),
                Edge::End => Action::Up(link, ways),
            }),
            Trouble::Down(NamedLink::ScaleUp(part)) => one(Action::ScaleUp(
                part,
                match turn.edge {
                    Edge::Begin => ScaleUpAction::Down,
                    Edge::End => ScaleUpAction::Up,
                },
            )),
            Trouble::Rate(NamedLink::Link(link, ways), _) => {
                let rate = |way| self.rates.at(&way).iter().min().copied();
                by_way((link, ways), rate).map(|way| way.map(|(ways, rate)| Action::Rate(link, ways, rate)))
            }
            Trouble::Rate(NamedLink::ScaleUp(part), _) => {
                let rate = self.scale_up_rates.at(&part).iter().min().copied();
                one(Action::ScaleUp(part, ScaleUpAction::Rate(rate)))
            }
            Trouble::Delay((link, ways), _) => {
                let delay = |way| self.delays.at(&way).iter().max().copied();
                by_way((link, ways), delay)
                    .map(|way| way.map(|(ways, delay)| Action::Delay(link, ways, delay)))
            }
            Trouble::Loss((link, ways), _) => by_way((link, ways), |way| any_of(self.losses.at(&way)))
                .map(|way| way.map(|(ways, loss)| Action::Loss(link, ways, loss))),
            Trouble::Corruption((link, ways), _) => {
                by_way((link, ways), |way| any_of(self.corruptions.at(&way)))
                    .map(|way| way.map(|(ways, corruption)| Action::Corruption(link, ways, corruption)))
            }
            Trouble::Storm(port) if self.storms.at(&port).is_empty() => one(Action::StormStop(port)),
            Trouble::Storm(port) => one(Action::StormStart(port)),
        };
        actions.into_iter().flatten()
    }
}

/// Takes in the begin or the end of a fault in directions of a link.
fn take<V: PartialEq + Copy>(
    in_force: &mut InForce<(LinkId, bool), V>,
    edge: Edge,
    (link, ways): (LinkId, Ways),
    value: V,
) {
    ways.begin_at_a().for_each(|from_a| edge.apply(in_force, (link, from_a), value));
}

/// Returns the value of these directions of a link, or of each of them if they differ.
fn by_way<V: PartialEq>(
    (link, ways): (LinkId, Ways),
    value: impl Fn((LinkId, bool)) -> V,
) -> [Option<(Ways, V)>; 2] {
    let [forth, back] = [true, false].map(|from_a| value((link, from_a)));
    match ways {
        Ways::Both if forth != back => [Some((Ways::FromA, forth)), Some((Ways::FromB, back))],
        Ways::Both | Ways::FromA => [Some((ways, forth)), None],
        Ways::FromB => [Some((ways, back)), None],
    }
}
