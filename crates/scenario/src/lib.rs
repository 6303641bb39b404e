//! Scenario files: one TOML layout composed of every crate's configuration, checked before anything runs.

mod expand;
mod load;
mod model;
mod prepare;
mod resolved;
mod surroundings;
mod text;

pub use load::{Changes, Loaded};
pub use pathweave_units as units;
pub use prepare::Prepared;
pub use model::{
    NamedScheme, NetworkConfig, ObserveConfig, RetransmissionConfig, RunConfig, Scenario, Verb, WorkloadEntry,
};
pub use text::{Diagnostic, Diagnostics, FieldPath, Source, Span, Style, nearest};
