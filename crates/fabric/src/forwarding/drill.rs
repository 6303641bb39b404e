//! DRILL (Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017): each
//! packet goes to the shortest queue among a few random ones and the best one of the packet before.
//!
//! The published scheme is for Clos networks whose equal-cost paths are alike; where links have failed it splits them
//! into groups that are, which is not built here.

use pathweave_units::Spread;

use super::balance::{Balance, Layout};
use super::dice::SwitchDice;
use super::leaves::ManyLeaves;
use super::view::{Action, SwitchView};
use crate::config_error::{ConfigError, out_of_range};
use crate::packet::{Header, PortId};

/// Parameters of DRILL.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrillConfig {
    /// Queues looked at for each packet, chosen at random. Default 2 (DRILL(2,1), the choice of its paper).
    pub samples: u32,
    /// Best queues remembered from the packets before. Default 1 (DRILL(2,1)). 0 or 1.
    pub memory: u32,
}

impl Default for DrillConfig {
    fn default() -> Self {
        DrillConfig { samples: 2, memory: 1 }
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

/// What all switches remember.
pub(crate) struct Drill {
    config: DrillConfig,
    dice: SwitchDice,
    /// By the first port of a set of next hops: the best of the ports looked at last.
    best: Vec<PortId>,
}

const NONE: PortId = PortId::MAX;

impl Balance for Drill {
    const SPREAD: Option<Spread> = Some(Spread::Even);
    type Config = DrillConfig;
    type Note = ();

    fn new(config: &DrillConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        let dice = SwitchDice::new(fabric.seed, fabric.switches);
        Ok(Drill { config: config.clone(), dice, best: vec![NONE; fabric.ports as usize] })
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let (src, dst) = (header.src(), header.dst());
        let first = at.candidates(src, dst).get(0);
        if at.candidates(src, dst).len() == 1 {
            return Action::Forward(first);
        }
        let mut choice = (u64::MAX, NONE);
        for turn in 0..self.config.samples + self.config.memory {
            let port = if turn < self.config.samples {
                at.candidates(src, dst).by_hash(self.dice.draw(at.switch()))
            } else {
                self.best[first as usize]
            };
            // The memory may be empty, or older than the routes.
            if at.candidates(src, dst).contains(port) {
                at.serve(port);
                let bytes = at.unsent_bytes(port);
                // The memory, looked at last, wins only if it is better: empty queues are all alike, and remembering one of
                // them would send everything there.
                if bytes < choice.0 {
                    choice = (bytes, port);
                }
            }
        }
        self.best[first as usize] = choice.1;
        Action::Forward(choice.1)
    }
}
