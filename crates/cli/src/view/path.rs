//! Resolution of a request's path to a file below the served folder, and to no other file.

use std::path::{Path, PathBuf};

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
