//! Kind of destination of an output path.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, access};

/// Largest number of symbolic links followed, as in Linux.
const MOST_LINKS: usize = 40;

/// Destination of output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OutputTarget {
    /// Standard output: `-`, or a path that denotes it.
    Stdout,
    /// A device, a FIFO or a descriptor of this process, which is written directly.
    Stream,
    /// A socket with a listener.
    Socket,
    /// A file, after symbolic links are resolved, which need not exist. It is replaced as a whole.
    File(PathBuf),
}

impl OutputTarget {
    /// Returns the destination that `path` denotes.
    ///
    /// # Errors
    /// The reason why the path cannot be written.
    pub(super) fn at(path: &Path) -> Result<OutputTarget, String> {
        if path.as_os_str() == "-" {
            return Ok(OutputTarget::Stdout);
        }
        if path.as_os_str().is_empty() {
            return Err("the name is empty".to_owned());
        }
        // Follows links, including those in /proc to objects without a name.
        let found = match fs::metadata(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return target(path).map(OutputTarget::File),
            found => found.map_err(|why| why.to_string())?,
        };
        if is_stdout(&found) {
            return Ok(OutputTarget::Stdout);
        }
        let kind = found.file_type();
        if kind.is_dir() {
            return Err("it is a folder".to_owned());
        }
        access(path, Access::WRITE_OK).map_err(|why| io::Error::from(why).to_string())?;
        if kind.is_socket() {
            return Ok(OutputTarget::Socket);
        }
        if !kind.is_file() || is_descriptor(path) {
            return Ok(OutputTarget::Stream);
        }
        target(path).map(OutputTarget::File)
    }
}

/// Returns the file to which `path` leads over symbolic links. The target of the last link need not exist.
fn target(path: &Path) -> Result<PathBuf, String> {
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&at) {
            // A link with an absolute target replaces the path.
            Ok(next) => at = at.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(at),
        }
    }
    Err("too many symbolic links".to_owned())
}

/// Returns true if the file `path` is `folder` or within it. Neither need exist.
pub(crate) fn is_within(path: &Path, folder: &Path) -> bool {
    let path = target(path).unwrap_or_else(|_| path.to_owned());
    real(&path).starts_with(real(folder))
}

/// Returns the absolute path, without symbolic links in the part that exists.
fn real(path: &Path) -> PathBuf {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut real = PathBuf::new();
    for part in full.components() {
        match part {
            Component::ParentDir => _ = real.pop(),
            part => real.push(part),
        }
        real = real.canonicalize().unwrap_or(real);
    }
    real
}

fn is_stdout(found: &Metadata) -> bool {
    let Ok(own) = rustix::fs::fstat(io::stdout().as_fd()) else { return false };
    (found.dev(), found.ino()) == (own.st_dev, own.st_ino) && !found.is_dir()
}

/// Returns true if `path` names an open descriptor, such as /dev/fd/3. The file behind it belongs to the process that
/// opened it.
fn is_descriptor(path: &Path) -> bool {
    let mut at = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = at.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = fs::canonicalize(folder).unwrap_or_default();
        if folder.starts_with("/proc") && folder.ends_with("fd") {
            return true;
        }
        match fs::read_link(&at) {
            Ok(next) => at = folder.join(next),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn links_lead_to_files_that_need_not_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/two", at("one")).unwrap();
        symlink("three", at("deep/two")).unwrap();
        assert_eq!(OutputTarget::at(&at("one")), Ok(OutputTarget::File(at("deep/three"))));
        fs::write(at("deep/three"), "here").unwrap();
        assert_eq!(OutputTarget::at(&at("one")), Ok(OutputTarget::File(at("deep/three"))));
        symlink("circle", at("circle")).unwrap();
        assert!(OutputTarget::at(&at("circle")).is_err());
        assert_eq!(OutputTarget::at(&at("deep")), Err("it is a folder".to_owned()));
    }

    #[test]
    fn a_file_is_within_a_folder_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("deep/here")).unwrap();
        symlink("deep", at("link")).unwrap();
        symlink("../deep/here/new", at("deep/out")).unwrap();
        for path in ["deep/here/f", "link/here/f", "deep/x/../here/sub/f", "deep/here", "deep/out"] {
            assert!(is_within(&at(path), &at("deep/here")), "{path}");
        }
        for path in ["deep/f", "deep/here-f", "f", "deep/here/../f"] {
            assert!(!is_within(&at(path), &at("link/here")), "{path}");
        }
        assert!(is_within(&at("new/f"), &at("new")), "neither is there");
    }

    #[test]
    fn devices_and_pipes_are_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        symlink("fifo", at("link")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(OutputTarget::at(&at("fifo")), Ok(OutputTarget::Stream));
        assert_eq!(OutputTarget::at(&at("link")), Ok(OutputTarget::Stream));
        assert_eq!(OutputTarget::at(&at("socket")), Ok(OutputTarget::Socket));
        assert_eq!(OutputTarget::at(Path::new("-")), Ok(OutputTarget::Stdout));
        // An open file belongs to the process that opened it.
        let open = fs::File::create(at("open")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        symlink(format!("/proc/self/fd/{number}"), at("descriptor")).unwrap();
        assert_eq!(OutputTarget::at(&at("descriptor")), Ok(OutputTarget::Stream));
        assert_eq!(OutputTarget::at(&at("open")), Ok(OutputTarget::File(at("open"))));
    }
}
