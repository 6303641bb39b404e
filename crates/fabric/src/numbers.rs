//! Numbers of ports: in the whole fabric, and in a part of it, which holds only the ports that it needs.

use std::ops::Range;
use std::sync::Arc;

use crate::cable::Cable;
use crate::packet::PortId;

/// Ports of each node. Node `n` has the port ids `first_port[n]..first_port[n + 1]`, in the order of its cables.
pub struct PortMap {
    first_port: Arc<[PortId]>,
    /// Port ids of the two ends of each cable.
    ends: Vec<(PortId, PortId)>,
}

impl PortMap {
    /// Numbers the ports of `nodes` nodes joined by `cables`.
    pub fn new(nodes: u32, cables: &[Cable]) -> Self {
        PortMap::of_ends(nodes, cables.iter().map(|cable| (cable.a, cable.b)))
    }

    /// Numbers the ports of `nodes` nodes, from the nodes at the two ends of each cable.
    pub fn of_ends(nodes: u32, cables: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut degree = vec![0u32; nodes as usize + 1];
        for (a, b) in cables.clone() {
            degree[a as usize] += 1;
            degree[b as usize] += 1;
        }
        let mut next = 0;
        let first_port: Vec<PortId> = degree
            .iter()
            .map(|&ports| {
                let first = next;
                next += ports;
                first
            })
            .collect();
        let mut free = first_port.clone();
        let mut take = |node: u32| {
            free[node as usize] += 1;
            free[node as usize] - 1
        };
        let ends = cables.map(|(a, b)| (take(a), take(b))).collect();
        PortMap { first_port: first_port.into(), ends }
    }

    /// Returns the ports of a node.
    pub fn ports(&self, node: u32) -> Range<PortId> {
        self.first_port[node as usize]..self.first_port[node as usize + 1]
    }

    /// Returns the egress ports at the ends of a cable: (at `a`, at `b`).
    pub fn ends(&self, cable: usize) -> (PortId, PortId) {
        self.ends[cable]
    }

    /// Returns the node that a port belongs to.
    pub fn node_of(&self, port: PortId) -> u32 {
        self.first_port.partition_point(|&first| first <= port) as u32 - 1
    }

    /// Returns the number of ports.
    pub fn len(&self) -> u32 {
        *self.first_port.last().expect("one entry more than nodes")
    }

    /// Returns true if there are no ports.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of cables.
    pub fn cables(&self) -> usize {
        self.ends.len()
    }

    /// Returns the first port of each node, as the part of the fabric numbers it that owns the node.
    pub fn first_ports_in_parts(&self, parts: u16, part_of: impl Fn(u32) -> u16) -> Vec<PortId> {
        let mut next = vec![0; usize::from(parts)];
        let nodes = 0..self.first_port.len() as u32 - 1;
        nodes
            .map(|node| {
                let next = &mut next[usize::from(part_of(node))];
                std::mem::replace(next, *next + self.ports(node).len() as PortId)
            })
            .collect()
    }
}

/// Numbers of the ports that a part of the fabric holds: those of its own nodes, in the order of the whole fabric, and
/// then the *far ports*, which are the other ends of links that lead out of the part.
#[derive(Clone)]
pub struct PortNumbers {
    /// Own ports of each node: `first[n]..first[n + 1]`.
    first: Arc<[PortId]>,
    /// Number of own ports.
    own: PortId,
    /// Number of each port in the whole fabric. Empty if the part is the whole.
    whole: Arc<[PortId]>,
}

impl PortNumbers {
    /// Returns the numbers of a part that is the whole fabric.
    pub fn all(map: &PortMap) -> Self {
        PortNumbers { first: map.first_port.clone(), own: map.len(), whole: Arc::from([]) }
    }

    /// Returns the numbers of the part that has the nodes for which `owns` returns true. `cables` are the nodes at the
    /// ends of each cable.
    pub fn of_part(
        map: &PortMap,
        owns: impl Fn(u32) -> bool,
        cables: impl Iterator<Item = (u32, u32)>,
    ) -> Self {
        let mut first = Vec::with_capacity(map.first_port.len());
        let mut whole = Vec::new();
        for node in 0..map.first_port.len() as u32 - 1 {
            first.push(whole.len() as PortId);
            if owns(node) {
                whole.extend(map.ports(node));
            }
        }
        let own = whole.len() as PortId;
        first.push(own);
        for ((a, b), &(at_a, at_b)) in cables.zip(&map.ends) {
            match (owns(a), owns(b)) {
                (true, false) => whole.push(at_b),
                (false, true) => whole.push(at_a),
                _ => {}
            }
        }
        whole[own as usize..].sort_unstable();
        PortNumbers { first: first.into(), own, whole: whole.into() }
    }

    /// Returns the ports of a node; none for a node of another part.
    #[inline(always)]
    pub fn ports(&self, node: u32) -> Range<PortId> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// Returns the first own port of a node or of one after it.
    pub(crate) fn first(&self, node: u32) -> PortId {
        self.first[node as usize]
    }

    /// Returns the number of own ports. They have the lowest numbers.
    pub fn own(&self) -> PortId {
        self.own
    }

    /// Returns the number of ports.
    pub fn held(&self) -> usize {
        if self.whole.is_empty() { self.own as usize } else { self.whole.len() }
    }

    /// Returns the number of a port in the whole fabric.
    #[inline]
    pub fn global(&self, port: PortId) -> PortId {
        if self.whole.is_empty() { port } else { self.whole[port as usize] }
    }

    /// Returns the number of a port from its number in the whole fabric, or `None` if the part does not hold it.
    pub fn local(&self, global: PortId) -> Option<PortId> {
        if self.whole.is_empty() {
            return (global < self.own).then_some(global);
        }
        let own = &self.whole[..self.own as usize];
        own.binary_search(&global).map_or_else(|_| self.far(global), |place| Some(place as PortId))
    }

    /// Returns the number of a port of another part's node from its number in the whole fabric, or `None` if the part does
    /// not hold it.
    pub fn far(&self, global: PortId) -> Option<PortId> {
        if self.whole.is_empty() {
            return Some(global);
        }
        let far = self.whole.get(self.own as usize..)?;
        Some(self.own + far.binary_search(&global).ok()? as PortId)
    }

    /// Returns true if the node belongs to the part.
    pub fn owns(&self, node: u32) -> bool {
        self.whole.is_empty() || !self.ports(node).is_empty()
    }

    /// Returns the numbers of the ports at the ends of a cable, or `None` if it joins two nodes of other parts.
    pub(crate) fn ends(&self, map: &PortMap, cable: usize, nodes: (u32, u32)) -> Option<(PortId, PortId)> {
        let (at_a, at_b) = map.ends[cable];
        if self.whole.is_empty() {
            return Some((at_a, at_b));
        }
        let number = |node: u32, global: PortId| match self.owns(node) {
            true => Some(self.ports(node).start + (global - map.ports(node).start)),
            false => self.far(global),
        };
        let joins = self.owns(nodes.0) || self.owns(nodes.1);
        if joins { number(nodes.0, at_a).zip(number(nodes.1, at_b)) } else { None }
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        if self.whole.is_empty() { 0 } else { size_of_val(&self.first[..]) + size_of_val(&self.whole[..]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts 0 and 1 at switch 2, hosts 3 and 4 at switch 5, and two cables between the switches. Ports by node: 0; 1;
    /// 2 to 5; 6; 7; 8 to 11.
    const CABLES: [(u32, u32); 6] = [(0, 2), (1, 2), (3, 5), (4, 5), (2, 5), (5, 2)];

    fn map() -> PortMap {
        PortMap::of_ends(6, CABLES.into_iter())
    }

    #[test]
    fn ports_belong_to_nodes() {
        let map = map();
        assert_eq!((map.len(), map.cables()), (12, 6));
        assert_eq!((map.ports(2), map.ends(5)), (2..6, (11, 5)));
        assert_eq!([0, 1, 2, 5, 6, 7, 8, 11].map(|port| map.node_of(port)), [0, 1, 2, 2, 3, 4, 5, 5]);
    }

    #[test]
    fn a_part_holds_its_own_ports_and_the_far_ends() {
        let map = map();
        let part = PortNumbers::of_part(&map, |node| node > 2, CABLES.into_iter());
        assert_eq!((part.own(), part.held()), (6, 8));
        assert_eq!((part.ports(0), part.ports(3), part.ports(5)), (0..0, 0..1, 2..6));
        // Own ports 6 to 11, then ports 4 and 5 of switch 2.
        let global: Vec<PortId> = (0..8).map(|port| part.global(port)).collect();
        assert_eq!(global, [6, 7, 8, 9, 10, 11, 4, 5]);
        assert_eq!([6, 11, 4, 5].map(|port| part.local(port)), [Some(0), Some(5), Some(6), Some(7)]);
        assert_eq!([0, 3, 12].map(|port| part.local(port)), [None; 3]);
        let first = map.first_ports_in_parts(2, |node| u16::from(node > 2));
        assert_eq!(first, [0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn the_whole_has_one_numbering() {
        let (map, all) = (map(), PortNumbers::all(&map()));
        assert_eq!((all.own(), all.held(), all.ports(5)), (12, 12, map.ports(5)));
        assert_eq!((all.global(7), all.local(7), all.local(12)), (7, Some(7), None));
    }
}
