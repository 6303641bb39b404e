//! Scenario files: one TOML layout composed of every crate's configuration, checked before anything runs.

mod expand;
mod text;

pub use text::{Diagnostic, Diagnostics, FieldPath, Source, Span, Style, nearest};
