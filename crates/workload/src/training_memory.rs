//! Memory that training needs on a GPU.

use serde::Serialize;

/// Memory that the fullest GPU of a job needs, in bytes. What frameworks and libraries take is left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrainingMemory {
    /// Name of the GPU.
    pub gpu: &'static str,
    /// Memory of the GPU.
    pub available: u64,
    /// Stage of the pipeline whose GPUs need the most.
    pub stage: u32,
    /// Weights.
    pub weights: u64,
    /// Gradients.
    pub gradients: u64,
    /// State of the optimizer: a copy of weights, and two moments, in 32 bits.
    pub optimizer: u64,
    /// Activations that the backward pass needs.
    pub activations: u64,
}

impl TrainingMemory {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.weights + self.gradients + self.optimizer + self.activations
    }
    /// Returns true if the GPU has enough memory.
    pub fn fits(&self) -> bool {
        self.total() <= self.available
    }
}
