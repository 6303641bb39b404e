//! Distribution of a sprayed message: the fraction of its bytes that crosses each link.
//!
//! Switches spread packets evenly or by capacity. Hosts send by the ports that are free, so each of their ports carries
//! packets in proportion to its rate. Dead ports of their own carry none.

use std::ops::Range;

use pathweave_fabric::PortId;
use pathweave_sim::PacketFreeNetwork;
use pathweave_topo::{NodeId, Topology, leading_ports};
use pathweave_units::{HostId, Spread};

/// Returns the bits per second that get through from a node, by one of its ports, to the switch of a host.
pub(crate) type Capacities<'c> = dyn FnMut(NodeId, u16, HostId) -> u64 + 'c;

/// Largest number of links on a route.
pub(crate) const MOST_LINKS: u8 = 65;

/// Largest number of link entries kept from earlier walks, 32 MB.
const KEPT: usize = 1 << 21;

/// Walks from host to host over all next hops at once. It keeps its buffers between walks, and the results of the
/// first walks.
pub(crate) struct Walker<'a> {
    pub(crate) topology: &'a Topology,
    /// Fraction of the message that arrives with the current hop, by node.
    arriving: Vec<f64>,
    here: Vec<NodeId>,
    next: Vec<NodeId>,
    weights: Vec<(u16, f64)>,
    /// Result of the last walk.
    crossed: Vec<Crossing>,
    hop: u8,
    dead: DeadLinks,
    kept: Vec<Crossing>,
    /// Range of a walk in `kept`, and the dead links that it met, by number of the walk.
    places: Vec<Option<(Range<usize>, DeadLinks)>>,
}

/// Link that a message crosses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    /// Egress port.
    pub(crate) port: PortId,
    /// Fraction of the message that crosses the link.
    pub(crate) share: f64,
    /// Number of links before this one.
    pub(crate) hop: u8,
}

/// Dead links of which routing does not yet know, as a message meets them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct DeadLinks {
    /// Fraction of the message that is lost.
    pub(crate) lost: f64,
    /// True if a switch has such a link among its next hops, even if packets avoid it.
    pub(crate) beyond: bool,
    /// True if a port of the sender is dead.
    pub(crate) own: bool,
}

/// Result of a walk.
pub(crate) struct Walk<'w> {
    /// Links that the message crossed, in the order of hops.
    pub(crate) crossed: &'w [Crossing],
    pub(crate) dead: DeadLinks,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(topology: &'a Topology) -> Self {
        let arriving = vec![0.0; topology.nodes() as usize];
        let (here, next, weights, crossed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (kept, places) = (Vec::new(), Vec::new());
        let (hop, dead) = (0, DeadLinks::default());
        Walker { topology, arriving, here, next, weights, crossed, hop, dead, kept, places }
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
                return Walk { crossed: &self.crossed, dead: self.dead };
            }
            self.kept.extend_from_slice(&self.crossed);
            self.places[number] = Some((begin..self.kept.len(), self.dead));
        }
        let (place, dead) = self.places[number].clone().expect("it is there by now");
        Walk { crossed: &self.kept[place], dead }
    }

    fn walk_anew(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        (src, dst): (HostId, HostId),
    ) {
        self.crossed.clear();
        self.dead = DeadLinks::default();
        self.here.clear();
        self.here.push(src.into());
        self.arriving[src.index()] = 1.0;
        for hop in 0..MOST_LINKS {
            self.hop = hop;
            while let Some(node) = self.here.pop() {
                let mass = std::mem::take(&mut self.arriving[node.index()]);
                self.collect_weights(ways, capacities, spread, (node, dst));
                let all: f64 = self.weights.iter().map(|(_, weight)| weight).sum();
                if all == 0.0 {
                    self.dead.lost += mass;
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
        self.dead.lost +=
            self.here.drain(..).map(|node| std::mem::take(&mut self.arriving[node.index()])).sum::<f64>();
    }

    /// Collects the ports by which a node forwards, with weights.
    pub(crate) fn collect_weights(
        &mut self,
        ways: &PacketFreeNetwork<'_>,
        capacities: &mut Capacities<'_>,
        spread: Spread,
        (node, dst): (NodeId, HostId),
    ) -> &[(u16, f64)] {
        self.weights.clear();
        let Some(host) = self.topology.as_host(node) else {
            let hops = ways.routing().next_hops(node, dst).iter();
            if spread.is_by_capacity() {
                self.weights.extend(hops.map(|port| (port, capacities(node, port, dst) as f64)));
                self.dead.beyond |= self.weights.iter().any(|(_, weight)| *weight == 0.0);
            } else {
                self.weights.extend(hops.map(|port| (port, 1.0)));
            }
            return &self.weights;
        };
        // Hosts do not forward.
        let leading = leading_ports(self.topology, ways.routing(), host, dst);
        for port in (0..u64::BITS as u16).filter(|port| leading >> port & 1 == 1) {
            let at = self.topology.ports(node)[usize::from(port)];
            let (is_alive, rate) = ways.direction(at.link, at.is_a);
            self.dead.own |= !is_alive;
            let weight = match (is_alive, spread.is_by_capacity()) {
                (false, _) => 0,
                (true, true) => capacities(node, port, dst),
                (true, false) => rate.as_bps(),
            };
            self.dead.beyond |= is_alive && weight == 0;
            self.weights.push((port, weight as f64));
        }
        if !spread.is_by_capacity() {
            // Ports of equal rates have the weight 1 exactly.
            let most = self.weights.iter().map(|(_, weight)| *weight).fold(f64::MIN_POSITIVE, f64::max);
            self.weights.iter_mut().for_each(|(_, weight)| *weight /= most);
        }
        &self.weights
    }

    fn cross(&mut self, ways: &PacketFreeNetwork<'_>, (node, port): (NodeId, u16), mass: f64, dst: HostId) {
        let at = self.topology.ports(node)[usize::from(port)];
        if !ways.direction(at.link, at.is_a).0 {
            self.dead.lost += mass;
            self.dead.beyond = true;
            return;
        }
        let port = ways.ports().ports(node.0).start + PortId::from(port);
        self.crossed.push(Crossing { port, share: mass, hop: self.hop });
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
