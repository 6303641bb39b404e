//! Memory of GPUs: weights, gradients, state of the optimizer, activations.

use super::Optimizer;
use super::Recomputation;
use super::gpu::GpuModel;
use super::layers::STATE_BYTES;
use super::staged::Staged;
use crate::training_memory::TrainingMemory;

/// Returns the memory of the stage that needs the most.
pub(super) fn of(job: &Staged<'_>, gpu: GpuModel) -> TrainingMemory {
    let stages = job.pipeline.stages;
    let all = (0..stages).map(|stage| of_stage(job, gpu, stage));
    all.max_by_key(TrainingMemory::total).expect("there is a stage")
}

fn of_stage(job: &Staged<'_>, gpu: GpuModel, stage: u32) -> TrainingMemory {
    let places = || (stage as usize..job.chunks.len()).step_by(job.pipeline.stages as usize);
    let (mut dense, mut experts, mut optimized) = (0, 0, 0.0);
    for place in places() {
        let parameters = job.parameters(place);
        dense += parameters.dense;
        experts += parameters.experts;
        optimized += job.layers.optimized(parameters);
    }
    let (data, expert_data) = job.sharers();
    let whole = (dense + experts) as f64;
    let shared = dense as f64 / data as f64 + experts as f64 / expert_data as f64;
    let (weights, gradients) = match job.layers.optimizer {
        Optimizer::Replicated | Optimizer::Distributed => (whole, whole),
        Optimizer::ShardedGradients => (whole, shared),
        Optimizer::ShardedWeights => (shared, shared),
    };
    TrainingMemory {
        gpu: gpu.name(),
        available: (gpu.data().memory_gb * 1e9) as u64,
        stage,
        weights: (weights * f64::from(job.layers.bytes_per_value)) as u64,
        gradients: (gradients * f64::from(job.layers.bytes_per_gradient)) as u64,
        optimizer: (optimized * STATE_BYTES) as u64,
        activations: activations(job, stage),
    }
}

/// Returns the activations that a stage holds at once.
fn activations(job: &Staged<'_>, stage: u32) -> u64 {
    let mut all = 0.0;
    let held = f64::from(job.pipeline.held(stage));
    let chunks = f64::from(job.pipeline.chunks);
    for place in (stage as usize..job.chunks.len()).step_by(job.pipeline.stages as usize) {
        let layers: f64 = job.chunks[place].clone().map(|layer| of_layer(job, layer)).sum();
        // With chunks, microbatches are counted for each of them.
        all += layers * held / chunks;
    }
    all as u64
}

/// Returns the activations of a layer for a microbatch on a GPU, bytes. A token of a tensor-parallel group keeps the
/// inputs of its two norms and of its matrices, queries, keys, values and output of attention, and what is inside
/// the feed-forward part: 8 h + 4 A + 4 K + 6 f bytes with 2 bytes a value, where A and K are the values of queries
/// and of keys, and f those inside.
fn of_layer(job: &Staged<'_>, layer: u32) -> f64 {
    let layers = &job.layers;
    let architecture = &layers.architecture;
    let hidden = f64::from(architecture.hidden);
    let (queries, keys) = architecture.attention.widths();
    let inside = architecture.experts_of(layer).map_or(architecture.feed_forward_hidden, |experts| {
        experts.top_k * experts.hidden + experts.shared_hidden
    });
    let gated = f64::from(architecture.matrices);
    let values = match layers.recompute {
        Recomputation::Full => hidden,
        Recomputation::None | Recomputation::Selective => {
            4.0 * hidden + 2.0 * queries as f64 + 2.0 * keys as f64 + gated * f64::from(inside)
        }
    };
    let tokens = layers.tokens() as f64 / layers.axes.tp as f64;
    values * f64::from(layers.bytes_per_value) * tokens
}
