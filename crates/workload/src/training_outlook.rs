//! Facts about training that are known before its messages are.

use pathweave_units::Duration;
use serde::Serialize;

use crate::training_memory::TrainingMemory;

/// Facts about the training of a transformer that are known before its messages are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainingOutlook {
    /// Sizes of the axes of parallelism.
    pub parallelism: Degrees,
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of microbatches of a replica in an iteration.
    pub microbatches: u32,
    /// Number of sequences in an iteration, over all replicas.
    pub global_batch: u64,
    /// Number of tokens of these sequences, times the scale of the workload.
    pub tokens: f64,
    /// Memory of the fullest GPU; `None` if the workload names no GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<TrainingMemory>,
    /// Time that an iteration takes at least; `None` if no bound is known.
    #[serde(skip)]
    pub bound: Option<Duration>,
}

/// Sizes of the axes of parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Degrees {
    /// Tensor parallelism.
    pub tp: u32,
    /// Pipeline parallelism.
    pub pp: u32,
    /// Context parallelism.
    pub cp: u32,
    /// Data parallelism.
    pub dp: u32,
    /// Expert parallelism.
    pub ep: u32,
    /// Chunks of layers of a pipeline stage.
    pub vp: u32,
}
