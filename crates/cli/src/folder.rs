//! Folders named on the command line.

use std::io;
use std::path::{Path, PathBuf};

use pathweave_scenario::{EntryKind, suggest_path};

use crate::failure::Failure;

/// Returns the canonical path of a folder that must exist. `what` is the purpose for the error text, such as "serve".
pub(crate) fn existing(named: &Path, what: &str) -> Result<PathBuf, Failure> {
    let refuse = |why: String| Err(Failure::Input(format!("cannot {what} {}: {why}", named.display())));
    match named.canonicalize() {
        Ok(folder) if folder.is_dir() => Ok(folder),
        Ok(_) => refuse("it is not a folder; name the folder that contains it".to_owned()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let near = suggest_path(named, EntryKind::Folder);
            let near = near.map_or(String::new(), |near| format!("; nearest: {}", near.display()));
            refuse(format!("there is no such folder{near}"))
        }
        Err(why) => refuse(why.to_string()),
    }
}
