//! Work of the iterations of a training job.

/// Work of an iteration of training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrainingRecord {
    /// Number of GPUs.
    pub gpus: u32,
    /// Number of sequences.
    pub sequences: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Operations of the model for these tokens, in 10^6.
    pub megaflops: u64,
    /// Scale of the workload in 10^-9: its messages and computations are those of this part of the work.
    pub scale_ppb: u32,
    /// Peak rate of a GPU in 10^9 operations per second, if it is known.
    pub peak_gigaflops: Option<u64>,
    /// Time in which a GPU computes, the mean over GPUs.
    pub busy_ps: u64,
}

impl TrainingRecord {
    /// Returns the part of the work that the workload stands for.
    pub(crate) fn scale(&self) -> f64 {
        f64::from(self.scale_ppb) * 1e-9
    }
}
