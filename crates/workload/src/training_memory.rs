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
    /// Weights that are gathered at once if ranks share them: those of two layers.
    pub gathered_weights: u64,
    /// Gradients of a layer that ranks share, before they are scattered.
    pub layer_gradients: u64,
    /// Activations of the layer that the backward pass computes again.
    pub recomputed: u64,
    /// Logits and their gradients, in 32 bits.
    pub logits: u64,
}

impl TrainingMemory {
    /// Returns the sum of all parts.
    pub fn total(&self) -> u64 {
        self.parts().into_iter().map(|(_, bytes)| bytes).sum()
    }
    /// Returns all parts with their names.
    pub fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("weights", self.weights),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("activations", self.activations),
            ("gathered weights", self.gathered_weights),
            ("gradients of a layer", self.layer_gradients),
            ("recomputed layer", self.recomputed),
            ("logits", self.logits),
        ]
    }
    /// Returns true if the GPU has enough memory.
    pub fn fits(&self) -> bool {
        self.total() <= self.available
    }
}
