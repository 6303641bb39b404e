//! Reading files of bounded size, and saying where in them something is wrong.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use crate::error::{Location, TopoError};

/// Largest topology file, in bytes. The largest topology allowed takes less in either format.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Name (for errors) and text of a file.
pub(crate) fn read_text(base_dir: &Path, path: &Path) -> Result<(String, String), TopoError> {
    let full = base_dir.join(path);
    let name = full.display().to_string();
    let refuse = |why: String| TopoError::Read { path: name.clone(), why };
    let mut text = String::new();
    let file = File::open(&full).map_err(|error| refuse(error.to_string()))?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(refuse(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    Ok((name, text))
}

/// The text being read, for errors.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    pub(crate) fn refuse(&self, span: Range<usize>, what: impl Into<String>) -> TopoError {
        let at = Location::of_offset(self.file, self.text, span.start);
        let what = what.into();
        match self.field_before(span.start) {
            Some(field) => TopoError::File { at, what: format!("field `{field}`: {what}") },
            None => TopoError::File { at, what },
        }
    }

    /// The key of which the value begins at byte `offset`.
    fn field_before(&self, offset: usize) -> Option<&str> {
        let before = self.text.get(..offset)?.trim_end().strip_suffix('=')?.trim_end();
        let in_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let key = &before[before.trim_end_matches(in_key).len()..];
        (!key.is_empty()).then_some(key)
    }
}
