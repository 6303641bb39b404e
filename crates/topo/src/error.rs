//! What can be wrong with a topology, said so that it can be repaired.

use std::fmt;

use pathweave_units::did_you_mean;

/// Why a topology, its file or a name in it was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopoError {
    /// A field of a configuration has a value that is not allowed.
    #[error("topology field `{field}` = {value}: {allowed}")]
    Field {
        /// The field as written in the configuration.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A file breaks its grammar, or describes something that cannot be built.
    #[error("{at}: {what}")]
    File {
        /// Where in which file.
        at: Location,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// A file cannot be read.
    #[error("cannot read file {path}: {why}")]
    Read {
        /// The file.
        path: String,
        /// The operating system's answer, or the limit exceeded.
        why: String,
    },
    /// The parts do not make a usable network.
    #[error("topology \"{topology}\": {what}")]
    Graph {
        /// Name of the topology.
        topology: String,
        /// What is wrong, and what is allowed.
        what: String,
    },
    /// A name that nothing has.
    #[error("no {kind} is named \"{name}\"{}", hint(.nearest, .known))]
    UnknownName {
        /// What was looked for: "node", "link", "preset".
        kind: &'static str,
        /// The name.
        name: String,
        /// The most similar name that exists.
        nearest: Option<String>,
        /// The names there are, by kind: "host0 to host63, gpu0.0 to gpu7.7".
        known: String,
    },
}

/// The error of a field whose value is not allowed.
pub(crate) fn refuse(field: &'static str, value: impl fmt::Display, allowed: impl Into<String>) -> TopoError {
    TopoError::Field { field, value: value.to_string(), allowed: allowed.into() }
}

fn hint(nearest: &Option<String>, known: &str) -> String {
    match nearest {
        None if !known.is_empty() => format!("; there are {known}"),
        _ => did_you_mean(nearest.as_deref()),
    }
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, as the user named it.
    pub file: String,
    /// Line, from 1; 0 where the error is about the file as a whole.
    pub line: u32,
    /// Column in characters, from 1; 0 where the error is about the line as a whole.
    pub column: u32,
}

impl Location {
    /// The place of byte `offset` in `text`.
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
