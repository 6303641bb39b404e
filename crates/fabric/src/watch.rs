//! Watching priority flow control: ports that wait for each other in a cycle, ports that are paused without end.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Time};

use crate::fabric::Fabric;
use crate::packet::PortId;

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PfcTrouble {
    /// Each of these egress ports is paused by a switch that cannot drain because the next one is paused.
    Deadlock(Vec<PortId>),
    /// This egress port has been paused without a break for this long.
    Storm(PortId, Duration),
}

/// Remembers how far each paused port had come at the last look.
#[derive(Default)]
pub struct PfcWatch {
    sent_before: BTreeMap<PortId, u64>,
}

impl PfcWatch {
    /// Looks at all paused ports of a fabric, which may be in parts. A deadlock is a cycle of ports that were paused and
    /// silent since the last look, so call it every `deadlock_after`.
    pub fn look<P: Copy, const C: usize>(
        &mut self,
        parts: &[&Fabric<P, C>],
        now: Time,
        storm_after: Duration,
    ) -> Option<PfcTrouble> {
        // Only in the part to which it belongs is a port ever paused.
        let mut paused = BTreeMap::new();
        for fabric in parts {
            let ports = (0..).zip(&fabric.transit.lines.ports).filter(|(_, port)| port.paused != 0);
            let since = &fabric.transit.journal.paused_since;
            paused.extend(ports.map(|(id, port)| (id, (port.sent_packets, now - since[id as usize]))));
        }
        let mut storm = None;
        for (&port, &(_, paused_for)) in &paused {
            // A storm backs up: the oldest pause is its source.
            if paused_for >= storm_after && storm.is_none_or(|(_, longest)| paused_for > longest) {
                storm = Some((port, paused_for));
            }
        }
        let sent_now: BTreeMap<PortId, u64> = paused.iter().map(|(&port, &(sent, _))| (port, sent)).collect();
        let stuck: Vec<PortId> =
            sent_now.iter().filter(|(p, n)| self.sent_before.get(p) == Some(n)).map(|(&p, _)| p).collect();
        self.sent_before = sent_now;
        let storm = storm.map(|(port, paused_for)| PfcTrouble::Storm(port, paused_for));
        let successors = |port| parts.iter().flat_map(|fabric| waits_for(fabric, port, &stuck)).collect();
        find_cycle(&stuck, successors).map(PfcTrouble::Deadlock).or(storm)
    }
}

/// The stuck ports of the next node that hold packets which came by `port`: it is paused because of them. None in a part to
/// which that node does not belong.
fn waits_for<P: Copy, const C: usize>(fabric: &Fabric<P, C>, port: PortId, stuck: &[PortId]) -> Vec<PortId> {
    let (ingress, node) =
        (fabric.transit.lines.ports[port as usize].peer, fabric.transit.lines.ports[port as usize].peer_node);
    stuck
        .iter()
        .copied()
        .filter(|&egress| {
            let at = &fabric.transit.lines.ports[egress as usize];
            at.node == node
                && (1..C).any(|class| {
                    at.paused >> class & 1 != 0
                        && at.queues[class].iter().any(|header| header.ingress() == ingress)
                })
        })
        .collect()
}

/// A cycle in a graph given by its nodes and successors, if there is one.
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
