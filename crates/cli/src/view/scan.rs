//! Search for results in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use pathweave_report::PROGRESS_FILE;

/// Largest depth of folders searched.
const DEEPEST: usize = 8;
/// Largest number of folders searched.
const MOST_FOLDERS: usize = 20_000;

/// File that describes the content of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// `summary.json` of a run, a comparison or a sweep.
    Summary(PathBuf),
    /// `progress.json` of runs in progress.
    Progress(PathBuf),
    /// `index.html` that links to several results.
    Page(PathBuf),
}

/// Returns the files found below `root`, ordered by name, and true if the search is complete. Links to folders are
/// not followed.
pub(super) fn scan(root: &Path) -> (Vec<Place>, bool) {
    let mut found = Vec::new();
    let mut room = MOST_FOLDERS;
    look(root, 0, &mut room, &mut found);
    found.sort();
    (found, room > 0)
}

fn look(folder: &Path, depth: usize, room: &mut usize, found: &mut Vec<Place>) {
    if *room == 0 {
        return;
    }
    *room -= 1;
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut folders = Vec::new();
    let (mut summary, mut page) = (false, false);
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        match entry.file_name().to_str() {
            Some(name) if kind.is_dir() => folders.push(name.to_owned()),
            Some("summary.json") => summary = true,
            Some("index.html") => page = true,
            Some(PROGRESS_FILE) => found.push(Place::Progress(folder.join(PROGRESS_FILE))),
            _ => {}
        }
    }
    if summary {
        found.push(Place::Summary(folder.join("summary.json")));
    } else if page && depth > 0 {
        found.push(Place::Page(folder.join("index.html")));
    }
    for name in folders {
        let below = folder.join(&name);
        if name.starts_with('.') {
            // Folder that a run fills. All other hidden folders are ignored.
            let progress = below.join(PROGRESS_FILE);
            if name.contains(".partial-") && progress.is_file() {
                found.push(Place::Progress(progress));
            }
        } else if !(summary && name == "runs") && depth < DEEPEST {
            // The runs of a sweep are many and have no summaries.
            look(&below, depth + 1, room, found);
        }
    }
}
