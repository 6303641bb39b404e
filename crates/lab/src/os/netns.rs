//! Named network namespaces as `ip netns` stores them: files in `/run/netns` on which a namespace is mounted.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{LabError, WithContext};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use pathweave_linux::netlink::Netlink;

/// Conventional folder of named namespaces.
pub(crate) const FOLDER: &str = "/run/netns";
const THREADS_OWN: &str = "/proc/thread-self/ns/net";

/// A named network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// Returns the namespace with this name, which need not exist.
    pub(crate) fn named(name: impl Into<String>) -> Namespace {
        Namespace { name: name.into() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Returns all named namespaces, in order. The list includes files on which nothing is mounted.
    pub(crate) fn all() -> Result<Vec<Namespace>, LabError> {
        let entries = match fs::read_dir(FOLDER) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.context(|| format!("list {FOLDER}"))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.context(|| format!("list {FOLDER}"))?;
            names.extend(entry.file_name().into_string());
        }
        names.sort();
        Ok(names.into_iter().map(Namespace::named).collect())
    }

    /// Creates the namespace. Returns `Ok(false)` if the name exists already.
    pub(crate) fn create(&self) -> Result<bool, LabError> {
        let path = self.path();
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            made => made.context(|| format!("create {}", path.display()))?,
        };
        let mounted = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            mount(Some(THREADS_OWN), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
        });
        if let Err(why) = mounted {
            // Nothing is mounted on the path, so this removes a plain file.
            let _ = fs::remove_file(&path);
            return Err(why).context(|| format!("make the network namespace {}", self.name));
        }
        Ok(true)
    }

    /// Removes the name. The namespace itself ends with its last process.
    pub(crate) fn remove(&self) -> Result<(), LabError> {
        let path = self.path();
        match umount2(&path, MntFlags::MNT_DETACH) {
            // Not mounted, because its creator was killed between two steps, or already removed.
            Ok(()) | Err(nix::errno::Errno::EINVAL | nix::errno::Errno::ENOENT) => {}
            Err(why) => return Err(why).context(|| format!("unmount {}", path.display())),
        }
        match fs::remove_file(&path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => {
                Err(why).context(|| format!("remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Opens the namespace. Returns an error if nothing is mounted there.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(self.path())
    }

    /// Returns the device and inode number, which identify the namespace of a process.
    pub(crate) fn identity(&self) -> io::Result<(u64, u64)> {
        fs::metadata(self.path()).map(|file| (file.dev(), file.ino()))
    }

    /// Runs `work` on a separate thread in the namespace.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let file = self.open().context(|| format!("open the namespace {}", self.name))?;
        on_thread(move || setns(file, CloneFlags::CLONE_NEWNET).map(|()| work()))
            .context(|| format!("enter the namespace {}", self.name))
    }

    /// Moves the calling thread into the namespace.
    pub(crate) fn enter(&self) -> Result<(), LabError> {
        let file = self.open().context(|| format!("open the namespace {}", self.name))?;
        setns(file, CloneFlags::CLONE_NEWNET).context(|| format!("enter the namespace {}", self.name))
    }

    /// Opens a netlink socket in the namespace.
    pub(crate) fn netlink(&self) -> Result<Netlink, LabError> {
        self.inside(Netlink::open)?.context(|| format!("open a netlink socket in {}", self.name))
    }
}

/// Makes mounts in `/run/netns` propagate to other mount namespaces, as `ip netns add` does. Otherwise copies of the
/// mounts there would keep removed namespaces alive.
pub(crate) fn prepare_folder() -> Result<(), LabError> {
    let none = None::<&str>;
    fs::create_dir_all(FOLDER).context(|| format!("create {FOLDER}"))?;
    let share = || mount(none, FOLDER, none, MsFlags::MS_SHARED | MsFlags::MS_REC, none);
    match share() {
        Err(nix::errno::Errno::EINVAL) => {
            mount(Some(FOLDER), FOLDER, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
                .and_then(|()| share())
                .context(|| format!("make {FOLDER} a shared mount"))
        }
        done => done.context(|| format!("make {FOLDER} a shared mount")),
    }
}

/// Returns the namespace of a process as device and inode number, or `None` if the process has ended or is not
/// accessible.
pub(crate) fn of_process(pid: u32) -> Option<(u64, u64)> {
    fs::metadata(format!("/proc/{pid}/ns/net")).ok().map(|file| (file.dev(), file.ino()))
}

/// Runs `work` on a separate thread, because the network namespace is a property of a thread.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
