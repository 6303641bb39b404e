//! Discovery of the files of a trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::error::{FileError, WorkloadError};
use crate::sink::WorkloadBuilder;

/// Returns the files of a trace by rank: the name for error messages, and the path.
pub(super) fn of_trace(
    out: &WorkloadBuilder<'_>,
    trace: &str,
) -> Result<Vec<(String, PathBuf)>, WorkloadError> {
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
    if let Some(missing) = missing(found.keys().copied()) {
        let last = found.keys().next_back().expect("there is a file");
        let what = format!("{missing}; the last file is of rank {last}, and each rank before it needs one");
        return Err(fail(what));
    }
    Ok(found.into_values().collect())
}

/// Returns a text that lists the missing files before the last one, or `None`.
fn missing(ranks: impl Iterator<Item = u32>) -> Option<String> {
    const MOST_LISTED: usize = 8;
    let (mut next, mut count, mut gaps) = (0, 0, Vec::new());
    for rank in ranks {
        match rank - next {
            0 => {}
            1 => gaps.push(next.to_string()),
            _ => gaps.push(format!("{next} to {}", rank - 1)),
        }
        count += rank - next;
        next = rank + 1;
    }
    let more = if gaps.len() > MOST_LISTED { ", ..." } else { "" };
    gaps.truncate(MOST_LISTED);
    let gaps = gaps.join(", ");
    match count {
        0 => None,
        1 => Some(format!("the file of rank {gaps} is missing")),
        _ => Some(format!("{count} files are missing: ranks {gaps}{more}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_listed() {
        assert_eq!(missing([0, 1, 2].into_iter()), None);
        assert_eq!(missing([0, 2].into_iter()).unwrap(), "the file of rank 1 is missing");
        let many = missing([2, 3, 7, 9].into_iter()).unwrap();
        assert_eq!(many, "6 files are missing: ranks 0 to 1, 4 to 6, 8");
        let odd = missing((0..40).filter(|rank| rank % 2 == 1)).unwrap();
        assert!(odd.starts_with("20 files are missing: ranks 0, 2, ") && odd.ends_with("14, ..."), "{odd}");
    }
}
