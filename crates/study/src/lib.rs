//! Studies: many runs of the simulator that answer one question.
//!
//! - [`paper`] repeats published evaluations and judges every number that they state.
//! - [`validate`] compares runs with other simulators and with laws of queues.
//! - [`fit`] fits numbers of NCCL's collectives to measurements of a real system.
//! - [`sweep`] varies fields of a scenario, keeps finished runs, and plans clusters.
//!
//! A study plans its runs and judges their results. The caller executes them.

pub mod fit;
pub mod paper;
pub mod sweep;
mod text_files;
pub mod validate;
