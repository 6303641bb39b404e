//! Path of a field within a document.

use std::fmt;

/// Step from a value to one within it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Path of a value in a document: `topology.pods`, `workload[1].size`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(Vec<Step>);

/// Step of a path, by reference.
#[derive(Clone, Copy)]
pub(crate) enum StepRef<'a> {
    Key(&'a str),
    Index(usize),
}

impl FieldPath {
    /// Returns the path of the document itself.
    pub fn root() -> Self {
        FieldPath::default()
    }
    /// Returns the path of the field `name` of this table. A dotted name descends several levels, `name[2]` into an
    /// array.
    pub fn key(&self, name: &str) -> Self {
        let mut steps = self.0.clone();
        for part in name.split('.') {
            let (name, indices) = part.split_once('[').unwrap_or((part, ""));
            if !name.is_empty() {
                steps.push(Step::Key(name.to_owned()));
            }
            let indices = indices.trim_end_matches(']').split("][");
            steps.extend(indices.filter_map(|index| index.parse().ok()).map(Step::Index));
        }
        FieldPath(steps)
    }
    /// Returns the path of the field with exactly this name, which may contain dots.
    pub fn literal_key(&self, name: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(name.to_owned()));
        FieldPath(steps)
    }
    /// Returns the path of item `index` of this array, from 0.
    pub fn index(&self, index: usize) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        FieldPath(steps)
    }
    pub(crate) fn steps(&self) -> impl Iterator<Item = StepRef<'_>> {
        self.0.iter().map(|step| match step {
            Step::Key(name) => StepRef::Key(name),
            Step::Index(index) => StepRef::Index(*index),
        })
    }
    /// Returns the last key of the path, ignoring indices.
    pub(crate) fn last_key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Key(name) => Some(name.as_str()),
            Step::Index(_) => None,
        })
    }
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) => write!(f, "{}{name}", if i > 0 { "." } else { "" })?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl From<&serde_path_to_error::Path> for FieldPath {
    fn from(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment;
        let steps = path.iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            // A variant is not a level of the document, and an unknown segment has no name.
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        FieldPath(steps.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_as_they_are_written() {
        let path = FieldPath::root().key("workload").index(1).key("sizes.fixed[2]");
        assert_eq!(path.to_string(), "workload[1].sizes.fixed[2]");
        assert_eq!(path.last_key(), Some("fixed"));
        assert_eq!(FieldPath::root().to_string(), "");
    }
}
