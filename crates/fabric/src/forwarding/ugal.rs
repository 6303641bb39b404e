//! UGAL-L (Kim et al., "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008, after Singh's UGAL). Each
//! packet takes the shortest path, or a detour over a random other switch if the queue for the detour is so much
//! shorter that it makes up for the extra hops.
//!
//! The switch of the sender makes the choice once, from local state only: the bytes waiting at the two ports, each
//! multiplied by the number of hops of its path. The intermediate switch is any switch with hosts (Valiant's choice
//! of a node). The paper draws a group, which in a Dragonfly differs only by the last hop inside that group.
//!
//! A lossless fabric needs a traffic class for each part of a detour, or its pauses may form a cycle. Here there is
//! one class, and the PFC watch reports the cycle if one forms.

use pathweave_units::{Bytes, HostId, Spread};

use super::balance::{Balance, Layout};
use super::dice::SwitchDice;
use super::leaves::ManyLeaves;
use super::routes::Candidates;
use super::view::{Action, ForwardingStats, SwitchView};
use crate::config_error::ConfigError;
use crate::packet::{Header, PortId};

/// Parameters of UGAL-L.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UgalConfig {
    /// Bytes added to the queue of a detour's port in the comparison. Default 0 (the published comparison). A larger
    /// value keeps packets on the shortest path while queues are short.
    pub bias: Bytes,
}

impl UgalConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

/// State of all switches.
pub(crate) struct Ugal {
    bias_bytes: u64,
    leaf_of_host: Vec<u32>,
    /// Switches with hosts, ascending, each with one of its hosts, which represents the switch in routes.
    leaves: Vec<(u32, HostId)>,
    /// Intermediate switch of each packet until the packet has reached it, as its representative host. Indexed by the
    /// slot of the packet's content.
    intermediate: Vec<Option<HostId>>,
    dice: SwitchDice,
    stats: ForwardingStats,
}

impl Ugal {
    fn of_leaves(config: &UgalConfig, seed: u64, leaf_of_host: Vec<u32>, switches: usize) -> Self {
        let mut leaves: Vec<(u32, HostId)> = leaf_of_host.iter().copied().zip((0..).map(HostId)).collect();
        leaves.sort_unstable();
        leaves.dedup_by_key(|(leaf, _)| *leaf);
        Ugal {
            bias_bytes: config.bias.get(),
            leaf_of_host,
            leaves,
            intermediate: Vec::new(),
            dice: SwitchDice::new(seed, switches),
            stats: ForwardingStats::default(),
        }
    }

    fn leaf(&self, host: HostId) -> u32 {
        self.leaf_of_host[host.index()]
    }

    /// Returns a random switch with hosts other than the two, as its representative host, if there is one.
    fn detour(&mut self, from: u32, to: u32) -> Option<HostId> {
        let others = self.leaves.len().checked_sub(2).filter(|&n| n > 0)? as u32;
        let mut drawn = Candidates::Range(0, others).by_hash(self.dice.draw(from)) as usize;
        let place = |leaf| self.leaves.binary_search_by_key(&leaf, |(leaf, _)| *leaf).expect("it has hosts");
        let (from, to) = (place(from), place(to));
        for skipped in [from.min(to), from.max(to)] {
            drawn += usize::from(drawn >= skipped);
        }
        Some(self.leaves[drawn].1)
    }

    fn set(&mut self, header: &Header, by: Option<HostId>) {
        let place = header.content();
        if self.intermediate.len() <= place {
            self.intermediate.resize(place + 1, None);
        }
        self.intermediate[place] = by;
    }
}

impl Balance for Ugal {
    const SPREAD: Option<Spread> = Some(Spread::ByCapacity);
    type Config = UgalConfig;
    type Note = Option<HostId>;

    fn new(config: &UgalConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        Ok(Ugal::of_leaves(config, fabric.seed, (fabric.leaf_of_host)()?, fabric.switches))
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        Action::Forward(self.port(at, header))
    }

    fn hand_over(&mut self, header: &Header) -> Option<Option<HostId>> {
        header.has_content().then(|| self.intermediate.get(header.content()).copied().flatten())
    }

    fn take_over(&mut self, header: Header, by: Option<HostId>) -> Header {
        self.set(&header, by);
        header
    }

    fn stats(&self) -> &ForwardingStats {
        &self.stats
    }
}

impl Ugal {
    fn port(&mut self, at: &mut impl SwitchView, header: &Header) -> PortId {
        let shortest = port_towards(at, header, header.dst());
        let (from, to) = (self.leaf(header.src()), self.leaf(header.dst()));
        // Control packets take the shortest path.
        if header.class() == 0 || from == to {
            return shortest;
        }
        if at.switch() != from {
            let by = self.intermediate.get(header.content()).copied().flatten();
            return match by {
                Some(host) if self.leaf(host) != at.switch() => port_towards(at, header, host),
                Some(_) => {
                    self.set(header, None);
                    shortest
                }
                None => shortest,
            };
        }
        let detour = self.detour(from, to);
        self.set(header, None);
        let Some(host) = detour else { return shortest };
        let longer = port_towards(at, header, host);
        let through = self.leaf(host);
        let (direct, first) = (hops(at, from, header.dst()), hops(at, from, host));
        let (Some(direct), Some(first), Some(second)) = (direct, first, hops(at, through, header.dst()))
        else {
            return shortest;
        };
        at.serve(shortest);
        at.serve(longer);
        let cost_direct = at.unsent_bytes(shortest) * direct;
        let cost_longer = (at.unsent_bytes(longer) + self.bias_bytes) * (first + second);
        if cost_direct <= cost_longer {
            return shortest;
        }
        self.set(header, Some(host));
        self.stats.reroutes += 1;
        longer
    }
}

fn port_towards(at: &impl SwitchView, header: &Header, host: HostId) -> PortId {
    let candidates = at.candidates(header.src(), host);
    match candidates.len() {
        // Routing has lost the intermediate switch: the packet continues to its destination.
        0 => at.candidates(header.src(), header.dst()).get(0),
        1 => candidates.get(0),
        _ => candidates.by_hash(at.hash(header)),
    }
}

/// Returns the number of links from a switch to that of a host.
fn hops(at: &impl SwitchView, mut switch: u32, host: HostId) -> Option<u64> {
    for hops in 0..u64::from(u8::MAX) {
        let candidates = at.candidates_at(switch, host, host);
        if candidates.len() == 0 {
            return None;
        }
        match at.next_switch(candidates.get(0)) {
            Some(next) => switch = next,
            None => return Some(hops),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detour_is_by_any_switch_but_the_two() {
        // Hosts 0 to 5 at switches 3, 3, 5, 7, 9, 9.
        let config = UgalConfig::default();
        let mut ugal = Ugal::of_leaves(&config, 1, vec![3, 3, 5, 7, 9, 9], 10);
        let mut count = [0; 10];
        for _ in 0..1_000 {
            let host = ugal.detour(7, 3).expect("there are others");
            count[ugal.leaf(host) as usize] += 1;
        }
        assert_eq!(count[5] + count[9], 1_000);
        assert!((400..600).contains(&count[5]), "{count:?}");
        let mut two = Ugal::of_leaves(&config, 1, vec![0, 1], 2);
        assert_eq!(two.detour(0, 1), None);
    }
}
