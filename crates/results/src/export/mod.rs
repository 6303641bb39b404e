//! A run's records in formats of others, for the scripts and viewers people have.

mod csv;
mod fct;
mod perfetto;

pub use csv::flows_csv;
pub use fct::{FctEnd, FctFormat, fct};
pub use perfetto::perfetto;
