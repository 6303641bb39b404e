//! Folding of links and switches, if hosts of the graph represent others.
//!
//! Symmetries map the messages that are run to all other messages. A link therefore carries, of each message, as many
//! images as there are symmetries that map the message onto it. That number is also the number of symmetries that map
//! the link to itself. So all links that symmetries map to each other become one resource. Its capacity for the
//! messages that are run is its rate divided by that number.

use pathweave_fabric::PortId;
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::{NodeId, Topology};
use pathweave_workload::Folding;

/// Orbits of numbered things under the symmetries: the representative of each thing and the size of its orbit.
#[derive(Clone, Debug)]
pub(crate) struct Orbits {
    /// Lowest thing of the orbit, by thing.
    of: Vec<u32>,
    /// Size of the orbit, by its lowest thing.
    sizes: Vec<u32>,
    group_order: u32,
}

impl Orbits {
    /// Computes the orbits of `things` things under a group of `order` symmetries. `carried` has pairs of a thing and
    /// its image.
    pub(crate) fn new(things: usize, order: u32, carried: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut orbits =
            Orbits { of: (0..things as u32).collect(), sizes: vec![0; things], group_order: order };
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

    /// Returns the representative of a thing.
    pub(crate) fn representative(&self, thing: u32) -> u32 {
        self.of[thing as usize]
    }

    /// Returns the part of a thing's capacity available to the messages that are run: the orbit's size over the order
    /// of the group.
    pub(crate) fn capacity_factor(&self, thing: u32) -> f64 {
        f64::from(self.sizes[self.representative(thing) as usize]) / f64::from(self.group_order)
    }
}

/// Returns the pairs of egress ports that the workload's symmetries map to each other.
pub(crate) fn carried_ports(
    folding: &Folding,
    ways: &PacketFreeNetwork<'_>,
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
        // Cycles: 0, 2 and 4; 1 and 3; 5 alone.
        let carried = [(0, 2), (2, 4), (4, 0), (1, 3), (3, 1), (5, 5)];
        let orbits = Orbits::new(6, 6, carried);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|thing| orbits.representative(thing)), [0, 1, 0, 1, 0, 5]);
        assert_eq!((orbits.capacity_factor(4), orbits.capacity_factor(3)), (0.5, 1.0 / 3.0));
    }
}
