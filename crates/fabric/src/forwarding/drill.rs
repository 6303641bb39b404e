//! DRILL (Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017). Each
//! packet takes the shortest queue among a few random ones and the best one of the packet before.
//!
//! The published scheme is for Clos networks whose equal-cost paths are symmetric. After link failures it divides the
//! paths into symmetric groups, which is not implemented here.

use std::collections::BTreeMap;

use pathweave_units::{HostId, Spread};

use super::balance::{Balance, Layout};
use super::dice::SwitchDice;
use super::leaves::ManyLeaves;
use super::routes::Candidates;
use super::view::{Action, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

/// Parameters of DRILL.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DrillConfig {
    /// Number of queues sampled at random for each packet, 1 to 64. The variant "published" draws each by itself, so
    /// that two may be the same. Default 2 (DRILL(2,1), the choice of its paper).
    pub samples: u32,
    /// Number of best queues remembered from the packets before, 0 or 1. Default 1 (DRILL(2,1)).
    pub memory: u32,
    /// Variant of DRILL: "published" (default), or "conweave-ns3", as in that simulator.
    pub variant: DrillVariant,
}

/// Variant of DRILL.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub enum DrillVariant {
    /// One memory for each set of next hops, which wins only if it is better. A queue includes the rest of the packet
    /// in transmission.
    #[default]
    #[serde(rename = "published")]
    Published,
    /// The variant of conweave-ns3. One memory for each destination, which wins also if others are equally good. All
    /// sampled ports differ. The packet in transmission does not count, and control packets are forwarded
    /// by hash.
    #[serde(rename = "conweave-ns3")]
    ConweaveNs3,
}

impl Default for DrillConfig {
    fn default() -> Self {
        DrillConfig { samples: 2, memory: 1, variant: DrillVariant::default() }
    }
}

impl DrillConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(1..=64).contains(&self.samples) {
            return Err(out_of_range("forwarding.drill.samples", self.samples, "1 to 64"));
        }
        if self.memory > 1 {
            return Err(out_of_range("forwarding.drill.memory", self.memory, "0 or 1"));
        }
        Ok(())
    }
}

/// State of all switches.
pub(crate) struct Drill {
    config: DrillConfig,
    dice: SwitchDice,
    best: Best,
}

/// Best port of the last decision.
enum Best {
    /// Best port of each set of next hops, indexed by the first port of the set.
    OfNextHops(Vec<PortId>),
    /// Best port of each switch and destination.
    OfDestinations(BTreeMap<(u32, HostId), PortId>),
}

const NONE: PortId = PortId::MAX;

impl Balance for Drill {
    const SPREAD: Option<Spread> = Some(Spread::Even);
    type Config = DrillConfig;
    type Note = ();

    fn new(config: &DrillConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        let dice = SwitchDice::new(fabric.seed, fabric.switches);
        let best = match config.variant {
            DrillVariant::Published => Best::OfNextHops(vec![NONE; fabric.ports as usize]),
            DrillVariant::ConweaveNs3 => Best::OfDestinations(BTreeMap::new()),
        };
        Ok(Drill { config: config.clone(), dice, best })
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let (src, dst) = (header.src(), header.dst());
        let first = at.candidates(src, dst).get(0);
        if at.candidates(src, dst).len() == 1 {
            return Action::Forward(first);
        }
        let port = match self.config.variant {
            DrillVariant::Published => self.published(at, header, first),
            // In this variant only data is balanced.
            DrillVariant::ConweaveNs3 if header.class() == 0 => {
                return Action::Forward(at.default_port(header));
            }
            DrillVariant::ConweaveNs3 => self.conweave_ns3(at, header),
        };
        self.remember((at.switch(), first, header), port);
        Action::Forward(port)
    }
}

impl Drill {
    fn published(&mut self, at: &mut impl SwitchView, header: &Header, first: PortId) -> PortId {
        let (src, dst) = (header.src(), header.dst());
        let mut choice = (u64::MAX, NONE);
        for turn in 0..self.config.samples + self.config.memory {
            let port = if turn < self.config.samples {
                at.candidates(src, dst).by_hash(self.dice.draw(at.switch()))
            } else {
                self.remembered(at.switch(), first, header)
            };
            // The memory may be empty, or older than the routes.
            if at.candidates(src, dst).contains(port) {
                at.serve(port);
                let bytes = at.unsent_bytes(port);
                // The memory is compared last and wins only if it is better. Empty queues are all equal, and a memory
                // that won ties would attract all packets.
                if bytes < choice.0 {
                    choice = (bytes, port);
                }
            }
        }
        choice.1
    }

    fn conweave_ns3(&mut self, at: &mut impl SwitchView, header: &Header) -> PortId {
        let (src, dst, switch) = (header.src(), header.dst(), at.switch());
        let remembered = self.remembered(switch, NONE, header);
        let mut choice = (u64::MAX, NONE);
        // The memory is compared first and wins ties.
        if self.config.memory > 0 && at.candidates(src, dst).contains(remembered) {
            at.serve(remembered);
            choice = (at.waiting_bytes(remembered), remembered);
        }
        let all = at.candidates(src, dst).len();
        let start = Candidates::Range(0, all).by_hash(self.dice.draw(switch));
        let step = Candidates::Range(1, all - 1).by_hash(self.dice.draw(switch));
        for turn in 0..self.config.samples.min(all) {
            let port = at.candidates(src, dst).get(sampled(turn, start, step, all));
            at.serve(port);
            let bytes = at.waiting_bytes(port);
            if bytes < choice.0 {
                choice = (bytes, port);
            }
        }
        choice.1
    }

    fn remembered(&self, switch: u32, first: PortId, header: &Header) -> PortId {
        match &self.best {
            Best::OfNextHops(best) => best[first as usize],
            Best::OfDestinations(best) => *best.get(&(switch, header.dst())).unwrap_or(&NONE),
        }
    }

    fn remember(&mut self, (switch, first, header): (u32, PortId, &Header), port: PortId) {
        match &mut self.best {
            Best::OfNextHops(best) => best[first as usize] = port,
            Best::OfDestinations(best) => drop(best.insert((switch, header.dst()), port)),
        }
    }
}

/// Returns the index of a sampled port: ports at a constant distance from each other, beginning with `start`. Each
/// round that comes back to its first port moves on by one, so that all of the first `all` ports differ.
fn sampled(turn: u32, start: u32, step: u32, all: u32) -> u32 {
    let round = all / greatest_common_divisor(step, all);
    (start + turn * step + turn / round) % all
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// With 4 ports and a step of 2, ports 1 and 3 would come up twice.
    #[test]
    fn no_port_is_sampled_twice() {
        assert_eq!([0, 1, 2, 3].map(|turn| sampled(turn, 1, 2, 4)), [1, 3, 2, 0]);
        for all in 2..=64 {
            for (start, step) in (0..all).flat_map(|start| (1..all).map(move |step| (start, step))) {
                let ports: BTreeSet<u32> = (0..all).map(|turn| sampled(turn, start, step, all)).collect();
                assert_eq!(ports.len(), all as usize, "{start}, {step} of {all}");
            }
        }
    }
}
