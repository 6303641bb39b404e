//! Export of a run's records in formats of other tools, for existing scripts and viewers.

mod csv;
mod fct;
mod perfetto;

pub use csv::flows_csv;
pub(crate) use csv::quoted;
pub use fct::{FctEnd, FctFormat, fct};
pub use perfetto::perfetto;
