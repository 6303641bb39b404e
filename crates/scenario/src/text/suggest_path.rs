//! Suggestion for the path of a file or folder that does not exist.

use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::closest_name;

/// Kind of file system entry that a path should name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File,
}

/// Returns the existing path that `named` probably means. Each component that does not exist is replaced with the
/// most similar name in its folder. Returns `None` if `named` exists or nothing is similar.
///
/// ```
/// # use pathweave_scenario::{EntryKind, suggest_path};
/// # let folder = std::env::temp_dir().join(format!("nearby-{}", std::process::id()));
/// # std::fs::create_dir_all(folder.join("results/incast")).unwrap();
/// let meant = suggest_path(&folder.join("result/incats"), EntryKind::Folder);
/// assert_eq!(meant, Some(folder.join("results/incast")));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// ```
pub fn suggest_path(named: &Path, wanted: EntryKind) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = named.components().collect();
    let mut found = PathBuf::new();
    for (number, part) in parts.iter().enumerate() {
        let kind = if number + 1 < parts.len() { EntryKind::Folder } else { wanted };
        let Component::Normal(name) = part else {
            found.push(part);
            continue;
        };
        let exact = found.join(name);
        found = if is(&exact, kind) { exact } else { found.join(in_folder(&found, name, kind)?) };
    }
    (found != named).then_some(found)
}

/// Returns the name in `folder` that is most similar to `name`. Hidden names, which results have until they are
/// complete, are not suggested for others.
fn in_folder(folder: &Path, name: &OsStr, kind: EntryKind) -> Option<String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).ok()?.flatten().filter(|entry| is(&entry.path(), kind));
    let is_hidden = |name: &str| name.starts_with('.');
    let name = name.to_str()?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|found| is_hidden(name) || !is_hidden(found))
        .collect();
    // The order in which a folder is read is not defined.
    names.sort();
    closest_name(name, names.iter().map(String::as_str)).map(str::to_owned)
}

fn is(path: &Path, kind: EntryKind) -> bool {
    match kind {
        EntryKind::Folder => path.is_dir(),
        EntryKind::File => path.is_file(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_path_is_what_it_is_nearest_to() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        fs::create_dir_all(root.join("results/incast-seed1")).unwrap();
        fs::write(root.join("results/incast.toml"), "").unwrap();
        let near = |named: &str, wanted| {
            suggest_path(&root.join(named), wanted).map(|found| found.strip_prefix(root).unwrap().to_owned())
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(near("resluts", EntryKind::Folder), path("results"));
        assert_eq!(near("resluts/incast-sed1", EntryKind::Folder), path("results/incast-seed1"));
        assert_eq!(near("result/incsat.toml", EntryKind::File), path("results/incast.toml"));
        fs::create_dir(root.join("results/.lg.partial-7")).unwrap();
        assert_eq!(near("results/lg.partial-7", EntryKind::Folder), None, "it is not complete");
        // A file is not a folder, and vice versa.
        assert_eq!(near("results/incast.tom", EntryKind::Folder), None);
        assert_eq!(near("results", EntryKind::Folder), None, "it exists");
        assert_eq!(near("nothing/at/all", EntryKind::Folder), None);
    }
}
