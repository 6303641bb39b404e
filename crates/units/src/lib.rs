//! Basic types of all other crates: [`Time`] and [`Duration`] in integer picoseconds, [`Rate`] in bits per second,
//! [`Bytes`], identifiers, seeded random streams, and [`closest_name()`], the rule behind every "did you mean".
//!
//! Nothing here reads a clock. Arithmetic is integer and panics on overflow in debug builds. Time never runs
//! backwards, so subtracting a later [`Time`] from an earlier one panics in every build rather than wrapping.
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "serde"))]
extern crate std;

mod closest_name;
mod data;
mod flow_counters;
mod forwarding;
mod glob;
mod ids;
mod parse;
mod random;
#[cfg(feature = "serde")]
mod serde_text;
mod spread;
mod telemetry;
mod time;
mod trim;

pub use closest_name::{closest_name, suggestion};
pub use data::{Bytes, Rate};
pub use forwarding::Forwarding;
pub use glob::{Glob, GlobError, matches_glob, name_kind, name_kinds};
pub use ids::{HostId, PathId, QpNum};
pub use parse::ParseUnitError;
pub use random::{Rng, derive_seed, mix64};
pub use spread::Spread;
pub use telemetry::{PortChange, PortReading, Telemetry, TelemetryUnits};
pub use time::{Duration, Time};
pub use trim::TrimmedAt;
