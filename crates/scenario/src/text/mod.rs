//! Parser from text to a checked tree of values with source locations. It handles TOML and JSON Schema and knows
//! nothing about networks.

mod diagnostic;
mod document;
mod nearby;
mod overrides;
mod parse;
mod path;
pub(crate) mod shape;
mod source;
mod tree;
mod unknown;

pub use diagnostic::{Diagnostic, Diagnostics, Style};
pub use document::Document;
pub use nearby::{Wanted, nearby};
pub use overrides::Setting;
pub(crate) use parse::{parse_document, read_document};
pub use path::FieldPath;
pub use pathweave_units::{did_you_mean, nearest};
pub use source::{Source, Span};
#[cfg(test)]
pub(crate) use tree::choice;
pub(crate) use tree::{Node, Table, Value, value_of};
pub use unknown::Unknown;
