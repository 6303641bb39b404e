//! Scale-up networks: the direct connections of the GPUs of a server or rack, such as NVLink.
//!
//! A *domain* is a set of hosts (GPUs) with consecutive numbers that one scale-up network joins. All domains of a
//! topology are alike. The network is a graph of directed links. Traffic between two GPUs is divided among all
//! shortest paths, in proportion to the rates of their links.

mod parts;

pub(crate) use parts::usable_rate;
pub use parts::{NamedLink, NamedNode, PartState, ScaleUpPart, ScaleUpPartKind};

use std::collections::VecDeque;

use pathweave_units::{Duration, HostId, Rate};

/// Directed link of a scale-up network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleUpLink {
    /// Node at which the link begins: a GPU, counted within the domain, or a switch after them.
    pub from: u32,
    /// Node at which the link ends.
    pub to: u32,
    /// Usable rate.
    pub rate: Rate,
}

/// Use of a link by the traffic between two GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkShare {
    /// Index of the link.
    pub link: u32,
    /// Bytes over the link for each byte of the message. Above 0, at most 1.
    pub share: f64,
}

/// Nodes that packets pass between the GPUs of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketNodes {
    /// The chips of the switch.
    Chips,
    /// None: each pair of GPUs has a link.
    None,
    /// The routers of GPUs. A GPU has one, which has the GPU's links and forwards for others.
    Routers,
}

/// Scale-up networks of all domains of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleUp {
    domain: u32,
    delay: Duration,
    /// Number of chips of the switch, among which each GPU divides its links evenly; 0 without a switch. In a network
    /// without faults, they are one node.
    chips: u32,
    /// Usable part of the rate of a link.
    efficiency: f64,
    links: Vec<ScaleUpLink>,
    /// Links that begin at node `n` are `links[first[n]..first[n + 1]]`.
    first: Vec<u32>,
}

impl ScaleUp {
    /// Creates the networks of domains of `domain` GPUs with `nodes` nodes each, GPUs first. Every link has its
    /// reverse direction among `links`; parallel links become one. A message takes `delay` in addition to the time of
    /// its bytes.
    pub(crate) fn new(domain: u32, nodes: u32, mut links: Vec<ScaleUpLink>, delay: Duration) -> Self {
        links.sort_by_key(|link| (link.from, link.to));
        links.dedup_by(|next, kept| {
            let parallel = (next.from, next.to) == (kept.from, kept.to);
            if parallel {
                kept.rate = kept.rate.saturating_add(next.rate);
            }
            parallel
        });
        let first = (0..=nodes).map(|node| links.partition_point(|link| link.from < node) as u32).collect();
        ScaleUp { domain, delay, chips: 0, efficiency: 1.0, links, first }
    }

    /// Returns the network with the number of chips of its switch and the usable part of rates, which is already part
    /// of the rates of its links.
    #[must_use]
    pub(crate) fn with_parts(self, chips: u32, efficiency: f64) -> Self {
        ScaleUp { chips, efficiency, ..self }
    }

    /// Returns the number of GPUs of a domain.
    pub fn domain_size(&self) -> u32 {
        self.domain
    }

    /// Returns the number of chips of the switch; 0 without a switch.
    pub fn chips(&self) -> u32 {
        self.chips
    }

    /// Returns the time that a message takes in addition to that of its bytes.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// Returns the links of a domain.
    pub fn links(&self) -> &[ScaleUpLink] {
        &self.links
    }

    /// Returns the domain of a host.
    #[inline]
    pub fn domain_of(&self, host: HostId) -> u32 {
        host.0 / self.domain
    }

    /// Returns true if both hosts belong to one domain.
    #[inline]
    pub fn joins(&self, a: HostId, b: HostId) -> bool {
        self.domain_of(a) == self.domain_of(b)
    }

    /// Returns the total rate of the links that begin at a host, an upper bound of what it can send over scale-up.
    pub fn rate_of(&self, host: HostId) -> Rate {
        self.links_from(host.0 % self.domain)
            .iter()
            .fold(Rate::ZERO, |sum, link| sum.saturating_add(link.rate))
    }

    /// Returns the links that carry traffic from one host to another of its domain, with the share of each; none if no
    /// path is left.
    ///
    /// # Panics
    /// The hosts belong to different domains.
    pub fn uses(&self, src: HostId, dst: HostId) -> Vec<LinkShare> {
        assert!(self.joins(src, dst), "{src} and {dst} belong to different domains");
        let (src, dst) = (src.0 % self.domain, dst.0 % self.domain);
        let (order, distance) = self.search(src);
        let reaching = self.rates_reaching((&order, &distance), src);
        let mut uses = Vec::new();
        // Part of the traffic that passes each node, and that arrives over each link, from `dst` backwards.
        let mut part = vec![0.0; distance.len()];
        part[dst as usize] = 1.0;
        for &node in order.iter().rev() {
            let here = part[node as usize];
            if here == 0.0 || node == src {
                continue;
            }
            let nearer = |link: &&ScaleUpLink| distance[link.to as usize] + 1 == distance[node as usize];
            let arriving =
                || self.links_from(node).iter().filter(nearer).map(|link| self.index(link.to, node));
            let rate = |link: u32| self.rate_by(link, &reaching);
            let total: f64 = arriving().map(rate).sum();
            for link in arriving() {
                let share = here * rate(link) / total;
                part[self.links[link as usize].from as usize] += share;
                uses.push(LinkShare { link, share });
            }
        }
        uses
    }

    /// Returns the rate in bit/s at which traffic from `src` can reach each node over shortest paths.
    fn rates_reaching(&self, (order, distance): (&[u32], &[u32]), src: u32) -> Vec<f64> {
        let mut reaching = vec![0.0; distance.len()];
        reaching[src as usize] = f64::INFINITY;
        for &node in order {
            for link in self.links_from(node) {
                if distance[node as usize] + 1 == distance[link.to as usize] {
                    reaching[link.to as usize] += self.rate_by(self.index(node, link.to), &reaching);
                }
            }
        }
        reaching
    }

    /// Returns the rate in bit/s of a link, or that of what reaches it, if that is less.
    fn rate_by(&self, link: u32, reaching: &[f64]) -> f64 {
        let ScaleUpLink { from, rate, .. } = self.links[link as usize];
        reaching[from as usize].min(rate.as_bps() as f64)
    }

    /// Returns the rate of a message from one host to another of its domain that has the network to itself.
    pub fn alone(&self, src: HostId, dst: HostId) -> Rate {
        self.rate_over(&self.uses(src, dst))
    }

    /// Returns the rate of a message that has these links to itself.
    pub fn rate_over(&self, uses: &[LinkShare]) -> Rate {
        let limit = |used: &LinkShare| self.links[used.link as usize].rate.as_bps() as f64 / used.share;
        let least = uses.iter().map(limit).fold(f64::INFINITY, f64::min);
        Rate::from_bps(least.round() as u64)
    }

    fn links_from(&self, node: u32) -> &[ScaleUpLink] {
        &self.links[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Returns the index of the link between two adjacent nodes.
    fn index(&self, from: u32, to: u32) -> u32 {
        let place = self.links_from(from).partition_point(|link| link.to < to);
        self.first[from as usize] + place as u32
    }

    /// Returns the nodes in order of their distance from `src`, and the distances. A node that is not reached has
    /// distance `u32::MAX - 1`.
    fn search(&self, src: u32) -> (Vec<u32>, Vec<u32>) {
        let nodes = self.first.len() - 1;
        let mut distance = vec![u32::MAX - 1; nodes];
        distance[src as usize] = 0;
        let (mut order, mut queue) = (Vec::with_capacity(nodes), VecDeque::from([src]));
        while let Some(node) = queue.pop_front() {
            order.push(node);
            for link in self.links_from(node) {
                if distance[link.to as usize] == u32::MAX - 1 {
                    distance[link.to as usize] = distance[node as usize] + 1;
                    queue.push_back(link.to);
                }
            }
        }
        (order, distance)
    }

    /// Returns the nodes that packets pass between two GPUs, if messages are packets.
    pub(crate) fn packet_nodes(&self) -> PacketNodes {
        let pairs = u64::from(self.domain) * u64::from(self.domain - 1);
        match self.chips {
            0 if self.links.len() as u64 == pairs => PacketNodes::None,
            0 => PacketNodes::Routers,
            _ => PacketNodes::Chips,
        }
    }

    /// Returns the number of switches of a domain, if messages are packets: chips, or routers of GPUs.
    pub(crate) fn packet_switches(&self) -> u32 {
        match self.packet_nodes() {
            PacketNodes::Chips => self.chips,
            PacketNodes::None => 0,
            PacketNodes::Routers => self.domain,
        }
    }

    /// Returns a GPU of a domain that GPU 0 cannot reach, if there is one. Links have both directions, so GPU 0 cannot
    /// be reached from there either.
    pub(crate) fn unreachable(&self) -> Option<u32> {
        let (_, distance) = self.search(0);
        (1..self.domain).find(|&gpu| distance[gpu as usize] == u32::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two GPUs at two chips, with links of 100 Gb/s except for that of GPU 0 to the first chip.
    fn with_link(gbps: u64) -> ScaleUp {
        let link = |from, to, gbps| ScaleUpLink { from, to, rate: Rate::from_gbps(gbps) };
        let pairs = [(0, 2, gbps), (0, 3, 100), (1, 2, 100), (1, 3, 100)];
        let links = pairs.into_iter().filter(|(_, _, gbps)| *gbps > 0);
        let both = links.flat_map(|(a, b, gbps)| [link(a, b, gbps), link(b, a, gbps)]);
        ScaleUp::new(2, 4, both.collect(), Duration::from_ns(250))
    }

    #[test]
    fn a_slow_link_carries_its_part() {
        // Both paths together: 10 + 100 Gb/s, less than with the whole link and more than without it.
        for (a, b) in [(0, 1), (1, 0)] {
            let alone = [100, 10, 1, 0].map(|gbps| with_link(gbps).alone(HostId(a), HostId(b)));
            assert_eq!(alone, [200, 110, 101, 100].map(Rate::from_gbps));
        }
    }
}
