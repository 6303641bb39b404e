//! State of the links of the whole network, as faults have left it. Every shard knows it.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_topo::{LinkId, Topology};
use pathweave_units::{Duration, Rate};

/// Links whose state differs from that at the start.
#[derive(Default)]
pub(crate) struct LinkStates {
    /// Number of faults that hold each direction of a link down: from its end `a`, and from `b`. Links that none holds
    /// down may be absent.
    held_down: BTreeMap<LinkId, [u32; 2]>,
    /// Rate and delay of directions that faults have changed, which begin at end `a` of a link or at `b`.
    changed: BTreeMap<(LinkId, bool), (Rate, Duration)>,
}

impl LinkStates {
    /// Returns the number of faults that hold a direction of a link down.
    pub(crate) fn held(&self, link: LinkId, from_a: bool) -> u32 {
        self.held_down.get(&link).map_or(0, |held| held[usize::from(!from_a)])
    }

    /// Returns the same number for a change.
    pub(crate) fn held_mut(&mut self, link: LinkId, from_a: bool) -> &mut u32 {
        &mut self.held_down.entry(link).or_default()[usize::from(!from_a)]
    }

    /// Returns true if a fault holds any direction of a link down.
    pub(crate) fn is_down(&self, link: LinkId) -> bool {
        self.held_down.get(&link).is_some_and(|held| *held != [0; 2])
    }

    /// Returns the links of which a fault holds any direction down.
    pub(crate) fn down(&self) -> BTreeSet<LinkId> {
        let down = self.held_down.iter().filter(|(_, held)| **held != [0; 2]);
        down.map(|(link, _)| *link).collect()
    }

    /// Returns the rate and the delay of a direction of a link.
    pub(crate) fn direction(&self, topology: &Topology, link: LinkId, from_a: bool) -> (Rate, Duration) {
        let unchanged = || {
            let direction = topology.direction(link, from_a);
            (direction.rate, direction.delay)
        };
        self.changed.get(&(link, from_a)).copied().unwrap_or_else(unchanged)
    }

    /// Records the rate and the delay of a direction of a link.
    pub(crate) fn set_direction(&mut self, link: LinkId, from_a: bool, now: (Rate, Duration)) {
        self.changed.insert((link, from_a), now);
    }
}
