//! Reading files of bounded size.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::TopoError;

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
