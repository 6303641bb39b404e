//! Fit of NCCL's collectives to measurements: those of `data/truth`, or the output of nccl-tests on a real system.

mod numbers;
mod user;

pub use numbers::{Numbers, fit};
pub use user::{FitError, FitRole, FitRow, UserFit, fit_measurements, snippet};
