//! Output under a name that the user gave. Files are there as a whole or not at all; what is no file is written to as it
//! is.

mod new_folder;
mod place;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
pub(crate) use new_folder::write_new_folder;
use place::Place;

/// Somewhere to write to.
#[derive(Debug)]
pub(crate) struct Output {
    /// As the user named it.
    name: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    /// Opened when there is something to write: a FIFO may get its reader later.
    Stream,
    Socket(UnixStream),
    File(Partial),
}

/// A file that gets its name when it is whole.
#[derive(Debug)]
struct Partial {
    target: PathBuf,
    path: PathBuf,
    file: File,
}

impl Output {
    /// Finds out what `path` stands for, and makes a file under another name beside it where it stands for one: what
    /// cannot be written is known before there is anything to write.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String| failure(path, &why);
        let to = match Place::at(path).map_err(failed)? {
            Place::Stdout => To::Stdout,
            Place::Stream => To::Stream,
            Place::Socket => {
                To::Socket(UnixStream::connect(path).map_err(|why| failure(path, &why.to_string()))?)
            }
            Place::File(target) => To::File(Partial::create(target).map_err(failed)?),
        };
        Ok(Output { name: path.to_owned(), to })
    }

    /// Whether `path` stands for a file, there or not, and for nothing else.
    pub(crate) fn is_file(path: &Path) -> bool {
        !matches!(Place::at(path), Ok(Place::Stdout | Place::Stream | Place::Socket))
    }

    /// Whether it goes to standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// Whether it goes where `other` goes.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        match (&self.to, &other.to) {
            (To::Stdout, To::Stdout) => true,
            (To::File(one), To::File(other)) => one.target == other.target,
            _ => self.name == other.name,
        }
    }

    /// As the user named it.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Writes it; a file gets its name. A reader that goes away has read what it wanted.
    pub(crate) fn write(
        self,
        content: impl FnOnce(&mut BufWriter<&mut dyn Write>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let written = match self.to {
            To::File(partial) => partial.write(content),
            To::Stdout => patient(buffered(&mut io::stdout().lock(), content)),
            To::Socket(mut socket) => patient(buffered(&mut socket, content)),
            To::Stream => {
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
        // What is left of it is not to be written when it is dropped.
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

/// Makes something with another name beside `target`, under which it may be unfinished.
///
/// # Errors
/// The reason why it cannot be made.
fn beside<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> Result<(PathBuf, T), String> {
    let Some(name) = target.file_name() else { return Err("it has no name".to_owned()) };
    for attempt in 0..1_000 {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".partial-{}", std::process::id()));
        if attempt > 0 {
            hidden.push(format!("-{attempt}"));
        }
        let path = target.with_file_name(hidden);
        match make(&path) {
            // Left by a killed process with this id, or in use by this one.
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) if why.kind() == io::ErrorKind::NotFound => {
                let folder = target.parent().unwrap_or(Path::new(""));
                return Err(format!("there is no folder {}", folder.display()));
            }
            Err(why) => return Err(why.to_string()),
            Ok(made) => return Ok((path, made)),
        }
    }
    Err("too many unfinished ones beside it".to_owned())
}

impl Partial {
    fn create(target: PathBuf) -> Result<Self, String> {
        if target.file_name().is_none() {
            return Err("it is a folder".to_owned());
        }
        let (path, file) = beside(&target, |path| File::create_new(path))?;
        Ok(Partial { target, path, file })
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

impl Drop for Partial {
    fn drop(&mut self) {
        // After a success it is gone already.
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
        // A reader that leaves is no mistake.
        let path = at("fifo");
        let reader = std::thread::spawn(move || {
            File::open(path).unwrap().read_exact(&mut [0; 10]).unwrap();
        });
        write(&at("fifo"), &text).unwrap();
        reader.join().unwrap();
        assert_eq!(names(folder.path()), ["fifo", "socket"]);
    }
}
