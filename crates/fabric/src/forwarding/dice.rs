//! Random numbers of switches.

use pathweave_units::{derive_seed, mix64};

/// Random numbers for every switch. They depend on the seed, the switch, and the number of its draws, so the draws of
/// one switch do not affect another's.
pub(crate) struct SwitchDice {
    seed: u64,
    drawn: Vec<u64>,
}

impl SwitchDice {
    pub(crate) fn new(run_seed: u64, switches: usize) -> Self {
        SwitchDice { seed: derive_seed(run_seed, "forwarding", 0), drawn: vec![0; switches] }
    }

    /// Returns the next random number of a switch.
    pub(crate) fn draw(&mut self, switch: u32) -> u64 {
        let drawn = &mut self.drawn[switch as usize];
        *drawn += 1;
        mix64(self.seed ^ mix64(u64::from(switch) << 40 ^ *drawn))
    }
}
