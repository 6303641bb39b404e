//! Running a program in a lab.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use pathweave_topo::NodeId;

use crate::error::{LabError, SystemError};
use crate::lab::Lab;

impl Lab {
    /// Becomes a program in the network of a node; returns only if that fails.
    ///
    /// `/sys` is the node's own there, so that programs which look for devices find the right ones.
    pub fn exec(&self, node: NodeId, program: &OsStr, arguments: &[impl AsRef<OsStr>]) -> LabError {
        if let Err(why) = self.enter(node) {
            return why;
        }
        show_own_devices();
        let why = Command::new(program).args(arguments).exec();
        LabError::System { doing: format!("run {}", program.display()), why: SystemError::from(why) }
    }
}

/// Mounts the namespace's own `/sys`. A process that may not do that still has the network, so failures do not matter.
fn show_own_devices() {
    let none = None::<&str>;
    let _ = unshare(CloneFlags::CLONE_NEWNS)
        // Mounts of ours stay here; those of others still come.
        .and_then(|()| mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none))
        .and_then(|()| umount2("/sys", MntFlags::MNT_DETACH))
        .and_then(|()| mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none));
}
