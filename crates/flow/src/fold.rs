//! Links and switches that stand for others, where the hosts of the graph do.
//!
//! Symmetries carry the messages that are run to all others. What one link carries is then what it carries of all these
//! together: of each message as often as symmetries carry it there, which is as often as they carry the link to itself. So
//! all links that are carried to each other are one, and of its rate the messages that are run have what it has divided by
//! how often each of them crosses it.

use pathweave_fabric::PortId;
use pathweave_sim::Ways;
use pathweave_topo::{NodeId, Topology};
use pathweave_workload::Folding;

/// Things that are carried to each other, by number: who stands for each, and for how many.
#[derive(Clone, Debug)]
pub(crate) struct Orbits {
    /// By thing, the lowest one.
    of: Vec<u32>,
    /// By thing that is the lowest, how many there are.
    sizes: Vec<u32>,
    order: u32,
}

impl Orbits {
    /// Of so many things, and how each symmetry carries them.
    pub(crate) fn new(things: usize, order: u32, carried: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut orbits = Orbits { of: (0..things as u32).collect(), sizes: vec![0; things], order };
        for (a, b) in carried {
            let (a, b) = (orbits.root(a), orbits.root(b));
            orbits.of[a.max(b) as usize] = a.min(b);
        }
        for thing in 0..things as u32 {
            let root = orbits.root(thing);
            orbits.of[thing as usize] = root;
            orbits.sizes[root as usize] += 1;
        }
        orbits
    }

    fn root(&mut self, mut thing: u32) -> u32 {
        while self.of[thing as usize] != thing {
            let above = self.of[self.of[thing as usize] as usize];
            self.of[thing as usize] = above;
            thing = above;
        }
        thing
    }

    /// What stands for a thing.
    pub(crate) fn of(&self, thing: u32) -> u32 {
        self.of[thing as usize]
    }

    /// What the messages that are run have of a thing: one over how often each of them meets it.
    pub(crate) fn part(&self, thing: u32) -> f64 {
        f64::from(self.sizes[self.of(thing) as usize]) / f64::from(self.order)
    }
}

/// How the symmetries of a workload carry each egress port.
pub(crate) fn carried_ports(
    folding: &Folding,
    ways: &Ways<'_>,
    topology: &Topology,
) -> Vec<(PortId, PortId)> {
    let mut carried = Vec::new();
    for symmetry in folding.symmetries() {
        for node in (0..topology.nodes()).map(NodeId) {
            let image = symmetry.node(node);
            let (from, to) = (ways.ports().ports(node.0), ways.ports().ports(image.0));
            for port in 0..topology.ports(node).len() as u16 {
                let there = symmetry.port(node, port);
                carried.push((from.start + PortId::from(port), to.start + PortId::from(there)));
            }
        }
    }
    carried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_things_in_three_orbits() {
        // 0, 2 and 4 around; 1 and 3; 5 stays.
        let carried = [(0, 2), (2, 4), (4, 0), (1, 3), (3, 1), (5, 5)];
        let orbits = Orbits::new(6, 6, carried);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|thing| orbits.of(thing)), [0, 1, 0, 1, 0, 5]);
        assert_eq!((orbits.part(4), orbits.part(3)), (0.5, 1.0 / 3.0));
    }
}
