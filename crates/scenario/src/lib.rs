//! Scenario files: one TOML layout composed of every crate's configuration, and checked before anything runs.
//!
//! [`Loaded::read`] reads a file, applies [`Changes`] from the command line, and reports all mistakes as
//! [`Diagnostics`]. [`Loaded::prepare`] builds the topology and the workload. [`run()`] executes them with packets or
//! as flows. `load.rs` and `prepare.rs` are the places to start reading; `text/` parses, `model/` holds the layout.

mod acks;
mod calibrate;
pub mod catalogue;
pub mod convert;
mod default_collectives;
mod estimate;
mod expand;
mod fold;
mod ineffective_scheme;
mod ineffective_settings;
mod inspect;
mod latency;
mod load;
mod memory;
mod model;
mod named;
pub mod nccl;
mod outlook;
mod outside_check;
mod pools;
mod prepare;
mod recovery_windows;
mod resolved;
mod retransmission_timer;
mod run;
mod schema;
mod server_size;
mod switch_size;
mod text;
mod workload_env;

pub use estimate::{Estimate, MeasuredStart, Progress};
pub use inspect::{
    ExplicitPaths, GpuMemory, GroupSize, Inspection, LowerBounds, NetworkSize, Paths, SwitchOversubscription,
    Tier, TrafficSize,
};
pub use load::{Changes, Loaded};
pub use memory::{Memory, MemoryPart, Process, Records};
pub use model::{
    Calibrate, Fidelity, Fold, NamedScheme, NetworkConfig, ObserveConfig, PlacedPool, Pool, PoolHosts,
    PoolPlacement, RetransmissionConfig, RunConfig, Scenario, Verb, WorkloadEntry,
};
pub use pathweave_sim::payload_share;
pub use pathweave_topo::{Topology, read_text_file};
pub use pathweave_units as units;
pub use pathweave_workload::{Degrees, TrainingMemory, TrainingOutlook};
pub use prepare::Prepared;
pub use run::run;
pub use schema::schema;
pub use server_size::{ScaleUpSize, ServerHops, ServerSize};
pub use switch_size::SwitchClassSize;
pub use text::{
    Diagnostic, Diagnostics, Document, EntryKind, FieldPath, FileKind, Setting, Source, Span, Style,
    UnknownName, closest_name, suggest_path, suggestion,
};
