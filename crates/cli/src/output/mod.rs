//! Output to a path that the user specified. Files appear complete or not at all. Streams and sockets are written
//! directly.

mod new_folder;
mod place;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use pathweave_report::partial_file;

use crate::failure::Failure;
pub(crate) use new_folder::write_new_folder;
use place::OutputTarget;
pub(crate) use place::is_within;

/// Destination of output.
#[derive(Debug)]
pub(crate) struct Output {
    /// Path as the user specified it.
    name: PathBuf,
    to: Destination,
}

#[derive(Debug)]
enum Destination {
    Stdout,
    /// Opened at the time of writing, because a FIFO may get its reader later.
    Stream,
    Socket(UnixStream),
    File(TemporaryFile),
}

/// File that gets its final name when it is complete.
#[derive(Debug)]
struct TemporaryFile {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Output {
    /// Determines the kind of destination of `path`. For a file, creates a temporary file beside it, so that errors
    /// are found before there is anything to write.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String| failure(path, &why);
        let to = match OutputTarget::at(path).map_err(failed)? {
            OutputTarget::Stdout => Destination::Stdout,
            OutputTarget::Stream => Destination::Stream,
            OutputTarget::Socket => {
                Destination::Socket(UnixStream::connect(path).map_err(|why| failure(path, &why.to_string()))?)
            }
            OutputTarget::File(target) => Destination::File(TemporaryFile::create(target).map_err(failed)?),
        };
        Ok(Output { name: path.to_owned(), to })
    }

    /// Returns true if `path` denotes a file, which need not exist.
    pub(crate) fn is_file(path: &Path) -> bool {
        !matches!(
            OutputTarget::at(path),
            Ok(OutputTarget::Stdout | OutputTarget::Stream | OutputTarget::Socket)
        )
    }

    /// Returns true if the output goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.to, Destination::Stdout)
    }

    /// Returns true if both outputs have the same destination.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        match (&self.to, &other.to) {
            (Destination::Stdout, Destination::Stdout) => true,
            (Destination::File(one), Destination::File(other)) => one.target == other.target,
            _ => self.name == other.name,
        }
    }

    /// Returns the path as the user specified it.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Writes the output and renames a file to its final name. If a reader closes early, this is not an error.
    pub(crate) fn write(
        self,
        content: impl FnOnce(&mut BufWriter<&mut dyn Write>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = match self.to {
            Destination::File(partial) => partial.write(content),
            Destination::Stdout => patient(buffered(&mut io::stdout().lock(), content)),
            Destination::Socket(mut socket) => patient(buffered(&mut socket, content)),
            Destination::Stream => {
                let open = File::options().append(true).open(&self.name);
                patient(open.and_then(|mut stream| buffered(&mut stream, content)))
            }
        };
        written.map_err(|why| failure(&self.name, &why.to_string()))
    }
}

fn failure(path: &Path, why: &str) -> Failure {
    Failure::Input(format!("cannot write {}: {why}", path.display()))
}

fn buffered(
    out: &mut dyn Write,
    content: impl FnOnce(&mut BufWriter<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let written = content(&mut out).and_then(|()| out.flush());
    if written.is_err() {
        // The rest of the buffer must not be written on drop.
        let _ = out.into_parts();
    }
    written
}

fn patient(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Returns the reason why nothing can be created beside `target`.
fn creation_error(target: &Path, why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no folder {}", target.parent().unwrap_or(Path::new("")).display())
        }
        _ => why.to_string(),
    }
}

impl TemporaryFile {
    fn create(target: PathBuf) -> Result<Self, String> {
        if target.file_name().is_none() {
            return Err("it is a folder".to_owned());
        }
        let (path, file) = partial_file(&target).map_err(|why| creation_error(&target, &why))?;
        Ok(TemporaryFile { target, path, file })
    }

    fn write(
        mut self,
        content: impl FnOnce(&mut BufWriter<&mut dyn Write>) -> io::Result<()>,
    ) -> io::Result<()> {
        buffered(&mut self.file, content)?;
        if let Ok(old) = fs::metadata(&self.target) {
            self.file.set_permissions(old.permissions())?;
        }
        fs::rename(&self.path, &self.target)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After a success the file no longer exists.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn write(path: &Path, text: &str) -> Result<(), Failure> {
        Output::create(path)?.write(|out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_is_replaced_whole_with_its_permissions_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "old and long").unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        let output = Output::create(&at("link")).unwrap();
        let broken = output.write(|out| {
            out.write_all(b"half of it")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(matches!(broken, Err(Failure::Input(why)) if why.contains("link: the disk is full")));
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "old and long");
        write(&at("link"), "new").unwrap();
        assert_eq!(fs::read_to_string(at("file")).unwrap(), "new");
        assert_eq!(fs::metadata(at("file")).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        symlink("not/there", at("astray")).unwrap();
        let refused = Output::create(&at("astray")).unwrap_err();
        assert!(matches!(refused, Failure::Input(why) if why.contains("there is no folder")));
        assert_eq!(names(folder.path()), ["astray", "file", "link"]);
    }

    #[test]
    fn a_fifo_and_a_socket_get_what_is_written_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let text = "some lines\n".repeat(100_000);
        let read = |path: PathBuf| std::thread::spawn(move || fs::read_to_string(path).unwrap());
        let reader = read(at("fifo"));
        write(&at("fifo"), &text).unwrap();
        assert!(reader.join().unwrap() == text);
        let listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        });
        write(&at("socket"), &text).unwrap();
        assert!(reader.join().unwrap() == text);
        // A reader that closes early is not an error.
        let path = at("fifo");
        let reader = std::thread::spawn(move || {
            File::open(path).unwrap().read_exact(&mut [0; 10]).unwrap();
        });
        write(&at("fifo"), &text).unwrap();
        reader.join().unwrap();
        assert_eq!(names(folder.path()), ["fifo", "socket"]);
    }
}
