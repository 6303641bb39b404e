//! Scenario files: one TOML layout composed of every crate's configuration, and checked before anything runs.

mod acks;
mod calibrate;
pub mod catalogue;
pub mod convert;
mod doubt;
mod estimate;
mod expand;
mod fold;
mod idle;
mod inspect;
mod latency;
mod load;
mod memory;
mod model;
mod prepare;
mod resolved;
mod run;
mod schema;
mod surroundings;
mod text;
mod windows;

pub use estimate::{Beginning, Estimate, Progress};
pub use inspect::{BoundTimes, ExplicitPaths, GroupSize, Inspection, NetworkSize, Paths, Tier, TrafficSize};
pub use load::{Changes, Loaded};
pub use memory::{Memory, MemoryPart, Process, Records};
pub use model::{
    Calibrate, Fidelity, Fold, NamedScheme, NetworkConfig, ObserveConfig, RetransmissionConfig, RunConfig,
    Scenario, Verb, WorkloadEntry,
};
pub use pathweave_topo::read_text_file;
pub use pathweave_units as units;
pub use prepare::Prepared;
pub use run::run;
pub use schema::schema;
pub use text::{
    Diagnostic, Diagnostics, Document, FieldPath, Setting, Source, Span, Style, Unknown, Wanted,
    did_you_mean, nearby, nearest,
};
