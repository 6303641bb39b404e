//! Memory of GPUs: weights, gradients, state of the optimizer, activations.
//!
//! Some of it is there for a short time only: weights that are gathered for a layer, its gradients before they are
//! scattered, activations that are computed again, and logits. All of these are at their largest in the backward pass
//! of one microbatch, so that they add up.

use super::Optimizer;
use super::Recomputation;
use super::gpu::GpuModel;
use super::layers::{ChunkParameters, STATE_BYTES};
use super::schedule::PipelineSchedule;
use super::staged::Staged;
use crate::training_memory::TrainingMemory;

/// Returns the memory of the stage that needs the most.
pub(super) fn of(job: &Staged<'_>, gpu: GpuModel) -> TrainingMemory {
    let stages = job.pipeline.stages;
    let all = (0..stages).map(|stage| of_stage(job, gpu, stage));
    all.max_by_key(TrainingMemory::total).expect("there is a stage")
}

/// Returns the places of a stage's chunks in the model.
fn places(job: &Staged<'_>, stage: u32) -> impl Iterator<Item = usize> {
    (stage as usize..job.chunks.len()).step_by(job.pipeline.stages as usize)
}

fn of_stage(job: &Staged<'_>, gpu: GpuModel, stage: u32) -> TrainingMemory {
    let (mut dense, mut experts, mut optimized) = (0, 0, 0.0);
    for place in places(job, stage) {
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
        gathered_weights: gathered_weights(job, stage),
        layer_gradients: gradients_of_layer(job, stage),
        recomputed: computed_again(job, stage),
        logits: logits(job, stage),
    }
}

/// Returns the largest number of parameters of adjacent units of a stage, of which ranks have parts otherwise.
fn largest(job: &Staged<'_>, stage: u32, adjacent: usize) -> u64 {
    let (data, expert_data) = job.sharers();
    let whole = |unit: ChunkParameters| {
        let of = |sharers: usize, parameters: u64| if sharers > 1 { parameters } else { 0 };
        of(data, unit.dense) + of(expert_data, unit.experts)
    };
    let of_chunk = |place: usize| {
        let units = job.layers.units(job.chunks[place].clone(), job.ends(place));
        let sizes: Vec<u64> = units.into_iter().map(whole).collect();
        let together = adjacent.min(sizes.len()).max(1);
        sizes.windows(together).map(|sizes| sizes.iter().sum()).max().unwrap_or(0)
    };
    places(job, stage).map(of_chunk).max().unwrap_or(0)
}

/// Returns the weights that are gathered at once if ranks share them: those of the layer that computes, and of the next
/// one.
fn gathered_weights(job: &Staged<'_>, stage: u32) -> u64 {
    match job.layers.optimizer {
        Optimizer::ShardedWeights => largest(job, stage, 2) * job.layers.weight_bytes(),
        _ => 0,
    }
}

/// Returns the gradients of a layer that ranks share, before they are scattered.
fn gradients_of_layer(job: &Staged<'_>, stage: u32) -> u64 {
    match job.layers.reduces_each_microbatch() {
        true => largest(job, stage, 1) * u64::from(job.layers.bytes_per_gradient),
        false => 0,
    }
}

/// Returns the activations of the layer that the backward pass computes again.
fn computed_again(job: &Staged<'_>, stage: u32) -> u64 {
    if job.layers.recompute != Recomputation::Full {
        return 0;
    }
    let again = |layer| of_layer(job, layer, Recomputation::None) - of_layer(job, layer, Recomputation::Full);
    let layers = places(job, stage).flat_map(|place| job.chunks[place].clone());
    layers.map(again).fold(0.0, f64::max) as u64
}

/// Bytes of a logit, and of its gradient.
const LOGIT_BYTES: u64 = 4;

/// Returns the logits of the last stage, and their gradients, in 32 bits each as the loss keeps them. A stage has those
/// of all microbatches that it holds. Of the gradients it has one, or of the logits if gradients of weights come later.
fn logits(job: &Staged<'_>, stage: u32) -> u64 {
    if stage + 1 < job.pipeline.stages {
        return 0;
    }
    let held = match job.pipeline.schedule {
        // The last chunk goes back at once.
        PipelineSchedule::Interleaved => 1,
        _ => u64::from(job.pipeline.held(stage)),
    };
    let architecture = &job.layers.architecture;
    let of_microbatch = job.layers.tokens() * u64::from(architecture.vocabulary) / job.layers.axes.tp as u64;
    of_microbatch * architecture.predictions() * LOGIT_BYTES * (held + 1)
}

/// Returns the activations that a stage holds at once.
fn activations(job: &Staged<'_>, stage: u32) -> u64 {
    let mut all = 0.0;
    let held = f64::from(job.pipeline.held(stage));
    let chunks = f64::from(job.pipeline.chunks);
    let recompute = job.layers.recompute;
    for place in places(job, stage) {
        let layers: f64 = job.chunks[place].clone().map(|layer| of_layer(job, layer, recompute)).sum();
        // With chunks, microbatches are counted for each of them.
        all += layers * held / chunks;
    }
    all as u64
}

/// Returns the activations of a layer for a microbatch on a GPU, bytes.
fn of_layer(job: &Staged<'_>, layer: u32, recompute: Recomputation) -> f64 {
    let layers = &job.layers;
    let values = match recompute {
        Recomputation::Full => layers.inputs(layer),
        Recomputation::None | Recomputation::Selective => layers.kept(layer),
    };
    let tokens = layers.tokens() as f64 / layers.axes.tp as f64;
    values as f64 * f64::from(layers.bytes_per_value) * tokens
}
