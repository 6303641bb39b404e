//! Parser from text to a checked tree of values with source locations. It handles TOML and JSON Schema and knows
//! nothing about networks.

mod diagnostic;
mod document;
mod file_kind;
mod overrides;
mod parse;
mod path;
pub(crate) mod shape;
mod source;
mod suggest_path;
mod tree;
mod unknown;

pub use diagnostic::{Diagnostic, Diagnostics, Style};
pub use document::Document;
pub use file_kind::FileKind;
pub use overrides::Setting;
pub(crate) use parse::{parse_document, read_document};
pub use path::FieldPath;
pub use pathweave_units::{closest_name, suggestion};
pub use source::{Source, Span};
pub use suggest_path::{EntryKind, suggest_path};
#[cfg(test)]
pub(crate) use tree::single_table_key;
pub(crate) use tree::{Node, Table, Value, value_of};
pub use unknown::UnknownName;
