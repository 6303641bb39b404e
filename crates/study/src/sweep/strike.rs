//! Reasons why candidates do not run, in words.

use std::fmt;

use pathweave_records::Quantity;
use pathweave_scenario::TrainingMemory;

use crate::sweep::cluster::Strike;

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strike::Memory(memory) => f.write_str(&memory_terms(memory)),
            Strike::Refused { why, .. } => f.write_str(why),
        }
    }
}

/// Returns the memory of a job with its terms: "92.10 GB of 80.00 GB (h100, stage 0): weights ...".
pub(crate) fn memory_terms(memory: &TrainingMemory) -> String {
    let bytes = |value: u64| Quantity::Bytes.format(value as f64);
    let verdict = if memory.fits() { "fits" } else { "does not fit" };
    format!(
        "{verdict}: {} of {} ({}, stage {}): weights {}, gradients {}, optimizer {}, activations {}",
        bytes(memory.total()),
        bytes(memory.available),
        memory.gpu,
        memory.stage,
        bytes(memory.weights),
        bytes(memory.gradients),
        bytes(memory.optimizer),
        bytes(memory.activations)
    )
}
