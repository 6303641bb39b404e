//! Errors of topologies, with the information needed to correct them.

use std::fmt;

use pathweave_units::{GlobError, suggestion};

/// Error in a topology, in its file, or in a name that refers to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopoError {
    /// A field of a configuration has a value that is not allowed.
    #[error("topology field `{field}` = {value}: {allowed}")]
    Field {
        /// Name of the field as written in the configuration.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// Permitted values.
        allowed: String,
    },
    /// A file violates its grammar or describes a network that cannot be built.
    #[error("{at}: {what}")]
    File {
        /// Location of the error.
        at: Location,
        /// Description of the error, and what is allowed.
        what: String,
    },
    /// A file cannot be read.
    #[error("cannot read file {path}: {why}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the operating system, or the limit exceeded.
        why: String,
    },
    /// The nodes and links do not form a usable network.
    #[error("topology \"{topology}\": {what}")]
    Graph {
        /// Name of the topology.
        topology: String,
        /// Description of the error, and what is allowed.
        what: String,
    },
    /// A name does not exist.
    #[error("no {kind} is named \"{name}\"{}", hint(.nearest, .known))]
    UnknownName {
        /// Kind of the object: "node", "link", "preset".
        kind: &'static str,
        /// Name that was looked up.
        name: String,
        /// The most similar name that exists.
        nearest: Option<String>,
        /// Existing names by kind: "host0 to host63, gpu0.0 to gpu7.7".
        known: String,
    },
    /// A pattern of names is malformed.
    #[error(transparent)]
    Pattern(GlobError),
}

/// Creates the error of a field whose value is not allowed.
pub(crate) fn refuse(field: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> TopoError {
    TopoError::Field { field, value: value.to_string(), allowed: allowed.into() }
}

fn hint(nearest: &Option<String>, known: &str) -> String {
    match nearest {
        None if !known.is_empty() => format!("; there are {known}"),
        _ => suggestion(nearest.as_deref()),
    }
}

/// Location in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the file as the user specified it.
    pub file: String,
    /// Line, from 1; 0 if the error concerns the whole file.
    pub line: u32,
    /// Column in characters, from 1; 0 if the error concerns the whole line.
    pub column: u32,
}

impl Location {
    /// Returns the location of byte `offset` in `text`.
    pub(crate) fn of_offset(file: &str, text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Location {
            file: file.to_owned(),
            line: count(before.bytes().filter(|&b| b == b'\n').count() + 1),
            column: count(before[line_start..].chars().count() + 1),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for part in [self.line, self.column] {
            if part > 0 {
                write!(f, ":{part}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_columns() {
        let text = "ab\ncdé\nf";
        assert_eq!(Location::of_offset("x", text, 0).to_string(), "x:1:1");
        assert_eq!(Location::of_offset("x", text, 4).to_string(), "x:2:2");
        assert_eq!(Location::of_offset("x", text, text.len()).to_string(), "x:3:2");
        assert_eq!(Location::of_offset("x", text, 6).to_string(), "x:2:3", "inside a character");
    }
}
