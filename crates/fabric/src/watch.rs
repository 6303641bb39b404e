//! Detection of PFC failures: ports that wait for each other in a cycle, and ports that are paused without end.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Time};

use crate::fabric::Fabric;
use crate::packet::PortId;

/// A failure of PFC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PfcFailure {
    /// Each of these egress ports is paused by a switch that cannot drain because the next one is paused.
    Deadlock(Vec<PortId>),
    /// This egress port has been paused without interruption for this long.
    Storm(PortId, Duration),
}

/// Detector that compares successive looks at the paused ports.
#[derive(Default)]
pub struct PfcWatch {
    sent_before: BTreeMap<PortId, u64>,
}

/// A paused port at the time of a look, reported by the part of the fabric that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct PausedPort {
    port: PortId,
    sent_packets: u64,
    paused_for: Duration,
}

/// Result of a look.
#[derive(Debug)]
pub struct PfcCheck {
    stuck: Vec<PortId>,
    storm: Option<PfcFailure>,
}

impl PfcWatch {
    /// Examines all paused ports of a fabric, as reported by its parts ([`Fabric::paused_ports`]). A deadlock is a
    /// cycle of ports that were paused and have sent nothing since the previous look, so the interval between looks
    /// is `deadlock_after`.
    pub fn check(&mut self, paused: impl IntoIterator<Item = PausedPort>, storm_after: Duration) -> PfcCheck {
        let paused: BTreeMap<PortId, PausedPort> = paused.into_iter().map(|port| (port.port, port)).collect();
        let mut storm: Option<&PausedPort> = None;
        for port in paused.values() {
            // A storm propagates upstream: the oldest pause is its source.
            if port.paused_for >= storm_after
                && storm.is_none_or(|oldest| port.paused_for > oldest.paused_for)
            {
                storm = Some(port);
            }
        }
        let sent_now: BTreeMap<PortId, u64> =
            paused.values().map(|port| (port.port, port.sent_packets)).collect();
        let stuck: Vec<PortId> =
            sent_now.iter().filter(|(p, n)| self.sent_before.get(p) == Some(n)).map(|(&p, _)| p).collect();
        self.sent_before = sent_now;
        PfcCheck { stuck, storm: storm.map(|port| PfcFailure::Storm(port.port, port.paused_for)) }
    }
}

impl PfcCheck {
    /// Returns the paused ports that have sent nothing since the previous look.
    pub fn stuck(&self) -> &[PortId] {
        &self.stuck
    }

    /// Returns the failure, if there is one. `waits` are the pairs of stuck ports that wait for each other
    /// ([`Fabric::waits_for`]).
    pub fn trouble(self, waits: impl IntoIterator<Item = (PortId, PortId)>) -> Option<PfcFailure> {
        let mut successors: BTreeMap<PortId, Vec<PortId>> = BTreeMap::new();
        for (port, next) in waits {
            successors.entry(port).or_default().push(next);
        }
        let successors = |port| successors.get(&port).cloned().unwrap_or_default();
        find_cycle(&self.stuck, successors).map(PfcFailure::Deadlock).or(self.storm)
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Iterates over the paused ports of this part, with their numbers in the whole fabric. A port is only ever paused in
    /// the part that owns it.
    pub fn paused_ports(&self, now: Time) -> impl Iterator<Item = PausedPort> {
        let ports = (0..).zip(&self.transit.lines.ports).filter(|(_, port)| port.paused != 0);
        ports.map(move |(id, port): (PortId, _)| PausedPort {
            port: self.numbers.global(id),
            sent_packets: port.sent_packets,
            paused_for: now - self.transit.journal.of_port.get(id).paused_since,
        })
    }

    /// Returns pairs of `stuck` ports: the first is paused because the second, at the next node, holds packets that
    /// arrived through it. Ports have their numbers in the whole fabric. Empty if the next node belongs to another part.
    pub fn waits_for(&self, stuck: &[PortId]) -> Vec<(PortId, PortId)> {
        let held: Vec<PortId> = stuck.iter().filter_map(|&port| self.numbers.local(port)).collect();
        let global = |port| self.numbers.global(port);
        let next = |port: PortId| {
            self.stuck_behind(port, &held).into_iter().map(move |egress| (global(port), global(egress)))
        };
        held.iter().flat_map(|&port| next(port)).collect()
    }

    fn stuck_behind(&self, port: PortId, stuck: &[PortId]) -> Vec<PortId> {
        let (ingress, node) =
            (self.transit.lines.ports[port as usize].peer, self.transit.lines.ports[port as usize].peer_node);
        stuck
            .iter()
            .copied()
            .filter(|&egress| {
                let at = &self.transit.lines.ports[egress as usize];
                at.node == node
                    && (1..C).any(|class| {
                        at.paused >> class & 1 != 0
                            && at.queues[class].iter().any(|header| header.ingress() == ingress)
                    })
            })
            .collect()
    }
}

/// Returns a cycle in a graph given by its nodes and successors, if there is one.
fn find_cycle(nodes: &[PortId], successors: impl Fn(PortId) -> Vec<PortId>) -> Option<Vec<PortId>> {
    #[derive(PartialEq)]
    enum Mark {
        Open,
        Closed,
    }
    let mut marks: BTreeMap<PortId, Mark> = BTreeMap::new();
    for &root in nodes {
        if marks.contains_key(&root) {
            continue;
        }
        let mut path = vec![(root, successors(root))];
        marks.insert(root, Mark::Open);
        while let Some((node, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                marks.insert(*node, Mark::Closed);
                path.pop();
                continue;
            };
            match marks.get(&next) {
                Some(Mark::Closed) => {}
                Some(Mark::Open) => {
                    let start =
                        path.iter().position(|(n, _)| *n == next).expect("an open node is on the path");
                    return Some(path[start..].iter().map(|(n, _)| *n).collect());
                }
                None => {
                    marks.insert(next, Mark::Open);
                    path.push((next, successors(next)));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_and_chains_are_not() {
        let ring = |p: PortId| vec![(p + 1) % 4];
        assert_eq!(find_cycle(&[0, 1, 2, 3], ring).map(|c| c.len()), Some(4));
        let chain = |p: PortId| if p < 3 { vec![p + 1] } else { vec![] };
        assert_eq!(find_cycle(&[0, 1, 2, 3], chain), None);
        let diamond = |p: PortId| match p {
            0 => vec![1, 2],
            1 | 2 => vec![3],
            _ => vec![],
        };
        assert_eq!(find_cycle(&[0, 1, 2, 3], diamond), None);
    }
}
