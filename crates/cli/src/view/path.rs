//! Resolution of a request's path to a file below the served folder, and to no other file.

use std::path::{Path, PathBuf};

use pathweave_report::PROGRESS_FILE;

/// Longest accepted path, in bytes.
const LONGEST: usize = 4_096;

/// Returns the file or folder that a request's path names. Returns `None` if it must not be served: if it is hidden,
/// outside `root` (also by way of a link), or does not exist.
///
/// `root` must be canonical.
pub(super) fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let mut at = root.to_owned();
    for piece in pieces(path)? {
        at.push(piece);
    }
    let real = at.canonicalize().ok()?;
    // A link may lead elsewhere below the root, but not into a hidden folder.
    let below = real.strip_prefix(root).ok()?;
    let open = |piece: &std::ffi::OsStr| !piece.to_string_lossy().starts_with('.');
    below.iter().all(open).then_some(real)
}

/// Files by which a folder is known to have results.
const MARKS: [&str; 4] = ["summary.json", "index.html", "report.html", PROGRESS_FILE];
/// Endings of the files that results have.
const ENDINGS: [&str; 10] = ["html", "json", "csv", "parquet", "svg", "png", "toml", "md", "pcap", "pcapng"];

/// Returns true if a file below `root` is one of results: of their kinds, in a folder of results or below one. Everyone on
/// the machine can read what is served, so that nothing else is.
pub(super) fn is_of_results(root: &Path, file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    let folders = file.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let has_results = |folder: &Path| MARKS.iter().any(|mark| folder.join(mark).is_file());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && folders.into_iter().any(has_results)
}

/// Returns the decoded names that a path consists of, or `None` if one of them is invalid.
fn pieces(path: &str) -> Option<Vec<String>> {
    if path.len() > LONGEST {
        return None;
    }
    let path = path.strip_prefix('/')?;
    if path.is_empty() {
        return Some(Vec::new());
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').map(|piece| decoded(piece).filter(|name| is_name(name))).collect()
}

/// Returns true if the name is not hidden, not "..", and contains no separator.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Decodes percent-encoding (RFC 3986, section 2.1): "%20" is a space. Returns `None` if the result is not UTF-8, or
/// if a "%" is not followed by two digits.
fn decoded(piece: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(piece.len());
    let mut rest = piece.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_of_results_are_served() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("run/runs")).unwrap();
        let is_served = |name: &str| {
            fs::write(root.join(name), "").unwrap();
            is_of_results(&root, &root.join(name))
        };
        assert!(is_served("run/report.html"));
        assert!(is_served("run/flows.parquet") && is_served("run/runs/one.json"));
        assert!(!is_served("run/cluster.key") && !is_served("run/notes"), "of another kind");
        assert!(!is_served("settings.json"), "beside the results");
        assert!(is_served("index.html") && is_served("settings.json"), "the folder itself has results");
    }

    #[test]
    fn only_what_is_below_and_not_hidden_is_served() {
        let place = tempfile::tempdir().unwrap();
        let outside = place.path().canonicalize().unwrap();
        let root = outside.join("results");
        fs::create_dir_all(root.join("a b/.partial")).unwrap();
        fs::write(outside.join("secret"), "").unwrap();
        for name in ["a b/report.html", "a b/.partial/progress.json", ".hidden"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink(outside.join("secret"), root.join("out")).unwrap();
        symlink(&outside, root.join("up")).unwrap();
        symlink(root.join("a b"), root.join("inside")).unwrap();
        symlink(root.join(".hidden"), root.join("shown")).unwrap();
        for (path, found) in
            [("/", ""), ("/a%20b/report.html", "a b/report.html"), ("/inside/", "a b"), ("/a%20b", "a b")]
        {
            assert_eq!(resolve(&root, path), Some(root.join(found).components().collect()), "{path}");
        }
        for path in [
            "",
            "a%20b",
            "/..",
            "/../secret",
            "/%2e%2e/secret",
            "/%2E%2E%2Fsecret",
            "/a%20b/../../secret",
            "/a%20b//report.html",
            "/..%5csecret",
            "/out",
            "/up/secret",
            "/.hidden",
            "/shown",
            "/a%20b/.partial/progress.json",
            "/%",
            "/%2",
            "/%zz",
            "/%ff",
            "/a%00b",
            "/nothing",
            "//",
        ] {
            assert_eq!(resolve(&root, path), None, "{path}");
        }
        assert_eq!(resolve(&root, &format!("/{}", "a".repeat(5_000))), None);
    }
}
