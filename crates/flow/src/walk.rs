//! Distribution of a sprayed message: the fraction of its bytes that crosses each link.

use std::ops::Range;

use pathweave_fabric::PortId;
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::{NodeId, Topology, leading_ports};
use pathweave_units::{HostId, Spread};

/// Returns the bits per second that get through from a node, by one of its ports, to the switch of a host.
pub(crate) type Capacities<'c> = dyn FnMut(NodeId, u16, HostId) -> u64 + 'c;

/// Largest number of links on a route.
const MOST_LINKS: usize = 65;

/// Largest number of link entries kept from earlier walks, 32 MB.
const KEPT: usize = 1 << 21;

/// Walks from host to host over all next hops at once. It keeps its buffers between walks, and the results of the
/// first walks.
pub(crate) struct Walker<'a> {
    topology: &'a Topology,
    /// Fraction of the message that arrives with the current hop, by node.
    arriving: Vec<f64>,
    here: Vec<NodeId>,
    next: Vec<NodeId>,
    weights: Vec<(u16, f64)>,
    /// Result of the last walk.
    crossed: Vec<(PortId, f64)>,
    lost: f64,
    kept: Vec<(PortId, f64)>,
    /// Range of a walk in `kept`, and the fraction it lost, by number of the walk.
    places: Vec<Option<(Range<usize>, f64)>>,
}

/// Result of a walk.
pub(crate) struct Walk<'w> {
    /// Egress ports that the message crossed, with the fractions, in the order of hops.
    pub(crate) crossed: &'w [(PortId, f64)],
    /// Fraction that is lost at dead links of which routing does not yet know.
    pub(crate) lost: f64,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(topology: &'a Topology) -> Self {
        let arriving = vec![0.0; topology.nodes() as usize];
        let (here, next, weights, crossed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (kept, places) = (Vec::new(), Vec::new());
        Walker { topology, arriving, here, next, weights, crossed, lost: 0.0, kept, places }
    }

    /// Drops kept walks after the network has changed.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
        self.places.clear();
    }

    /// Returns the walk with this number, from `src` to `dst`.
    pub(crate) fn walk(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        number: usize,
        ends: (HostId, HostId),
    ) -> Walk<'_> {
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        if self.places[number].is_none() {
            self.walk_anew(ways, capacities, spread, ends);
            let begin = self.kept.len();
            if begin + self.crossed.len() > KEPT {
                return Walk { crossed: &self.crossed, lost: self.lost };
            }
            self.kept.extend_from_slice(&self.crossed);
            self.places[number] = Some((begin..self.kept.len(), self.lost));
        }
        let (place, lost) = self.places[number].clone().expect("it is there by now");
        Walk { crossed: &self.kept[place], lost }
    }

    fn walk_anew(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        (src, dst): (HostId, HostId),
    ) {
        self.crossed.clear();
        self.lost = 0.0;
        self.here.clear();
        self.here.push(src.into());
        self.arriving[src.index()] = 1.0;
        for _ in 0..MOST_LINKS {
            while let Some(node) = self.here.pop() {
                let mass = std::mem::take(&mut self.arriving[node.index()]);
                self.collect_weights(ways, capacities, spread, (node, dst));
                let all: f64 = self.weights.iter().map(|(_, weight)| weight).sum();
                if all == 0.0 {
                    self.lost += mass;
                }
                for index in 0..self.weights.len() {
                    let (port, weight) = self.weights[index];
                    if weight > 0.0 {
                        self.cross(ways, (node, port), mass * weight / all, dst);
                    }
                }
            }
            if self.next.is_empty() {
                return;
            }
            // Fractions are summed in the order of nodes, so that rounding does not depend on the order of arrival.
            self.next.sort_unstable_by_key(|node| std::cmp::Reverse(node.0));
            std::mem::swap(&mut self.here, &mut self.next);
        }
        self.lost +=
            self.here.drain(..).map(|node| std::mem::take(&mut self.arriving[node.index()])).sum::<f64>();
    }

    /// Collects the ports by which a node forwards, with weights.
    fn collect_weights(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        (node, dst): (NodeId, HostId),
    ) {
        self.weights.clear();
        let host = self.topology.as_host(node);
        let mut add = |port: u16| {
            let weight = if spread.is_by_capacity() { capacities(node, port, dst) as f64 } else { 1.0 };
            self.weights.push((port, weight));
        };
        if let Some(host) = host {
            // Endpoints send by their leading ports in turn. Hosts do not forward.
            let leading = leading_ports(self.topology, ways.routing(), host, dst);
            (0..u64::BITS as u16).filter(|port| leading >> port & 1 == 1).for_each(&mut add);
        } else {
            ways.routing().next_hops(node, dst).iter().for_each(&mut add);
        }
    }

    fn cross(&mut self, ways: &PacketFreeNetwork<'_>, (node, port): (NodeId, u16), mass: f64, dst: HostId) {
        let at = self.topology.ports(node)[usize::from(port)];
        if !ways.direction(at.link, at.is_a).0 {
            self.lost += mass;
            return;
        }
        self.crossed.push((ways.ports().ports(node.0).start + PortId::from(port), mass));
        if at.peer == dst.into() {
            return;
        }
        let arriving = &mut self.arriving[at.peer.index()];
        if *arriving == 0.0 {
            self.next.push(at.peer);
        }
        *arriving += mass;
    }
}
