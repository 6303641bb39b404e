//! Execution of a program in a lab.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::sethostname;
use pathweave_linux::netlink::SystemError;
use pathweave_topo::NodeId;

use crate::application::HostName;
use crate::error::{LabError, WithContext};
use crate::lab::Lab;

impl Lab {
    /// Replaces this process with a program in the network of a node. Returns only if that fails.
    ///
    /// The program sees the node's own `/sys`, so that it finds the node's devices there.
    pub fn exec(&self, node: NodeId, program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> LabError {
        if let Err(why) = self.enter(node) {
            return why;
        }
        mount_sysfs();
        exec_program(program, arguments)
    }

    /// Replaces this process with a program on a host, as programs of a cluster see it: with the host's own name, and
    /// with the names of all hosts in `/etc/hosts`, for which the file `names` is used.
    pub fn exec_on_host(
        &self,
        host: &HostName,
        names: &Path,
        program: &OsStr,
        arguments: &[impl AsRef<OsStr>],
    ) -> LabError {
        if let Err(why) = self.enter(host.node) {
            return why;
        }
        mount_sysfs();
        match set_host_identity(&host.name, names) {
            Ok(()) => exec_program(program, arguments),
            Err(why) => why,
        }
    }
}

fn exec_program(program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> LabError {
    let why = Command::new(program).args(arguments).exec();
    LabError::System { doing: format!("run {}", program.display()), why: SystemError::from(why) }
}

/// Gives this process its own host name and list of hosts.
fn set_host_identity(name: &str, names: &Path) -> Result<(), LabError> {
    const NAMES: &str = "/etc/hosts";
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWUTS)
        .and_then(|()| sethostname(name))
        .context(|| format!("take the host name {name}"))?;
    unshare(CloneFlags::CLONE_NEWNS)
        // Mounts of this process stay private; those of the parent still propagate.
        .and_then(|()| mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none))
        .and_then(|()| mount(Some(names), NAMES, none, MsFlags::MS_BIND, none))
        .context(|| format!("show {} as {NAMES}", names.display()))
}

/// Mounts the namespace's own `/sys`. Failures are ignored: a process that may not mount still has the network.
fn mount_sysfs() {
    let none = None::<&str>;
    let _ = unshare(CloneFlags::CLONE_NEWNS)
        // Mounts of this process stay private; those of the parent still propagate.
        .and_then(|()| mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none))
        .and_then(|()| umount2("/sys", MntFlags::MNT_DETACH))
        .and_then(|()| mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none));
}
