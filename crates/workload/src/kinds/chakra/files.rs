//! The files of a trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::error::{FileError, WorkloadError};
use crate::sink::Sink;

/// The files of a trace by rank: name for errors, and where it is.
pub(super) fn of_trace(out: &Sink<'_>, trace: &str) -> Result<Vec<(String, PathBuf)>, WorkloadError> {
    let path = out.env.base_dir.join(trace);
    let is_folder = path.is_dir();
    let folder = if is_folder { path.clone() } else { path.parent().map(PathBuf::from).unwrap_or_default() };
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
    let wanted =
        if is_folder { None } else { path.file_name().map(|name| name.to_string_lossy().into_owned()) };
    let fail = |what: String| WorkloadError::from(FileError::whole(trace, what));
    let entries = fs::read_dir(&folder).map_err(|why| fail(format!("cannot read the folder: {why}")))?;
    let mut found: BTreeMap<u32, (String, PathBuf)> = BTreeMap::new();
    let mut prefix: Option<String> = wanted;
    for entry in entries {
        let entry = entry.map_err(|why| fail(format!("cannot read the folder: {why}")))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some((before, rank)) = name.strip_suffix(".et").and_then(|name| name.rsplit_once('.')) else {
            continue;
        };
        let Ok(rank) = rank.parse::<u32>() else { continue };
        match &prefix {
            Some(prefix) if prefix != before && !is_folder => continue,
            Some(prefix) if prefix != before => {
                let what = format!(
                    "traces of \"{before}\" and of \"{prefix}\" are in it; name one, as {trace}/{prefix}"
                );
                return Err(fail(what));
            }
            Some(_) => {}
            None => prefix = Some(before.to_owned()),
        }
        if let Some((other, _)) = found.insert(rank, (name.clone(), entry.path())) {
            return Err(fail(format!("{other} and {name} are both of rank {rank}")));
        }
    }
    if found.is_empty() {
        return Err(fail("no files PREFIX.RANK.et; give their folder, or folder and prefix".to_owned()));
    }
    if let Some(missing) = (0..).zip(found.keys()).find_map(|(i, &rank)| (i != rank).then_some(i)) {
        let last = found.keys().next_back().expect("there is a file");
        return Err(fail(format!("the file of rank {missing} is missing; there is one of rank {last}")));
    }
    Ok(found.into_values().collect())
}
