//! Directions of links: rate, delay and error rate one way, with the latency of the switch at which the direction
//! begins.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Rate};

use crate::graph::{Link, LinkId, NodeId, PortRef, Topology};

/// One direction of a link, as packets meet it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direction {
    /// Rate.
    pub rate: Rate,
    /// Propagation delay, plus the latency of the switch at which the direction begins.
    pub delay: Duration,
    /// Probability that a packet is lost.
    pub error_rate: f64,
}

/// Directions of a link that a setting or a fault concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ways {
    /// Both directions.
    Both,
    /// Direction from end `a` of the link to end `b`.
    FromA,
    /// Direction from end `b` of the link to end `a`.
    FromB,
}

impl Ways {
    /// Iterates over the ends at which the directions begin: true for `a`.
    pub fn begin_at_a(self) -> impl Iterator<Item = bool> {
        [true, false].into_iter().filter(move |&at_a| match self {
            Ways::Both => true,
            Ways::FromA => at_a,
            Ways::FromB => !at_a,
        })
    }
}

/// Departures from links that are alike in both directions, and from switches without latency.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Directions {
    /// Properties from `b` to `a` of the links where they differ from those from `a` to `b`, without latency.
    pub(crate) back: BTreeMap<LinkId, Direction>,
    /// Latency of each switch. Empty if no switch has any.
    latency: Vec<Duration>,
}

impl Link {
    /// Returns the direction from `a` to `b`, without latency.
    pub(crate) fn forth(&self) -> Direction {
        Direction { rate: self.rate, delay: self.delay, error_rate: self.error_rate }
    }
}

impl Topology {
    /// Sets the latency behind each switch, in the order of the switches.
    ///
    /// # Panics
    /// Panics unless there is one for each switch.
    #[must_use]
    pub fn with_latencies(mut self, latency: Vec<Duration>) -> Self {
        assert_eq!(latency.len(), self.switches().len(), "one for each switch");
        let none = latency.iter().all(|latency| *latency == Duration::ZERO);
        self.directions_mut().latency = if none { Vec::new() } else { latency };
        self
    }

    /// Returns the latency behind a node: 0 for a host.
    pub fn latency(&self, node: NodeId) -> Duration {
        let latency = &self.directions().latency;
        match self.switch_index(node) {
            Some(switch) if !latency.is_empty() => latency[switch],
            _ => Duration::ZERO,
        }
    }

    /// Returns the direction of a link that begins at end `a`, or else at end `b`.
    pub fn direction(&self, link: LinkId, from_a: bool) -> Direction {
        let ends = self.link(link);
        let of_link = if from_a { ends.forth() } else { self.back(link) };
        let latency = self.latency(if from_a { ends.a } else { ends.b });
        let delay = Duration::from_ps(of_link.delay.as_ps().saturating_add(latency.as_ps()));
        Direction { delay, ..of_link }
    }

    /// Returns the direction that leads out of a port.
    #[inline]
    pub fn egress(&self, port: &PortRef) -> Direction {
        self.direction(port.link, port.is_a)
    }

    /// Returns the direction that leads into a port.
    #[inline]
    pub fn ingress(&self, port: &PortRef) -> Direction {
        self.direction(port.link, !port.is_a)
    }

    /// Returns the shortest delay of any direction, with the latency of its switch; 0 without links.
    pub fn shortest_delay(&self) -> Duration {
        self.delays().min().unwrap_or(Duration::ZERO)
    }

    /// Returns the longest time that a packet of so many bytes takes over any direction, with the latency of its switch; 0
    /// without links.
    pub fn longest_time_of(&self, bytes: u64) -> Duration {
        let time = |direction: Direction| direction.delay + direction.rate.time_for(bytes);
        self.all_directions().map(time).max().unwrap_or(Duration::ZERO)
    }

    fn all_directions(&self) -> impl Iterator<Item = Direction> {
        let links = (0..self.links().len() as u32).map(LinkId);
        links.flat_map(|link| [true, false].map(|from_a| self.direction(link, from_a)))
    }

    fn delays(&self) -> impl Iterator<Item = Duration> {
        self.all_directions().map(|direction| direction.delay)
    }

    /// Returns a link with directions that differ in themselves, if there is one.
    pub fn one_way_link(&self) -> Option<LinkId> {
        self.directions().back.keys().next().copied()
    }

    /// Returns true if some link has directions that differ, or some switch has latency.
    pub fn has_directions(&self) -> bool {
        !self.directions().back.is_empty() || !self.directions().latency.is_empty()
    }

    /// Returns the direction of a link from `b` to `a`, without latency.
    pub(crate) fn back(&self, link: LinkId) -> Direction {
        let known = self.directions().back.get(&link);
        known.copied().unwrap_or_else(|| self.link(link).forth())
    }
}
