//! Privileges to create networks: those of the process, or those of a user namespace.
//!
//! Root creates labs in the machine's own list of network namespaces. Any other user gets a *workplace*: a separate
//! user and mount namespace, kept alive by a dedicated process ([`keep_workplace`]). Every command first enters it.
//! When the keeper ends for any reason, the kernel removes everything in the workplace.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getegid, geteuid, pause, setsid};

use crate::discovery;
use crate::error::{LabError, WithContext};
use crate::os::netns;

/// CAP_NET_ADMIN and CAP_SYS_ADMIN as bits of the effective set (capabilities(7)).
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];
/// Last arguments of a keeper, by which it is recognised.
pub const KEEPER_ARGUMENTS: [&str; 2] = ["lab", "keep-workplace"];
/// Line that a keeper prints when the workplace is ready.
const READY: &str = "ready";

/// Namespaces that contain the labs visible to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabNamespaces {
    /// The machine's own list of network namespaces.
    Machine,
    /// Namespaces of the user, which this process has entered.
    User {
        /// Process that keeps the namespaces alive.
        namespace_holder: u32,
    },
    /// The user has no workplace, and so no labs.
    None,
}

/// Returns a sentence on the capabilities that this process lacks to create a lab in its own namespaces, or `None` if
/// it lacks none.
pub fn missing_privileges() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    lacking(&status).map(|names| format!("making networks needs {names}, which root has"))
}

/// Returns the capabilities that a process with this `/proc/.../status` lacks.
fn lacking(status: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default();
    let names = NEEDED.iter().filter(|(bit, _)| effective >> bit & 1 == 0).map(|(_, name)| *name);
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

impl LabNamespaces {
    /// Enters the workplace if there is one. Must be called before the process starts a thread: the kernel allows
    /// only single-threaded processes to change their user namespace.
    pub fn enter() -> Result<LabNamespaces, LabError> {
        if missing_privileges().is_none() {
            return Ok(LabNamespaces::Machine);
        }
        let Some(keeper) = keepers().into_iter().min() else { return Ok(LabNamespaces::None) };
        join(keeper)?;
        Ok(LabNamespaces::User { namespace_holder: keeper })
    }

    /// Enters the workplace, and creates one if there is none. `keeper` is the command that runs [`keep_workplace`]:
    /// this program with [`KEEPER_ARGUMENTS`] as its last ones.
    pub fn enter_or_create(keeper: &mut Command) -> Result<LabNamespaces, LabError> {
        match LabNamespaces::enter()? {
            LabNamespaces::None => {}
            found => return Ok(found),
        }
        let own = start(keeper)?;
        // Two commands may each have started a keeper; the one with the lowest process number is used.
        let first = keepers().into_iter().min().unwrap_or(own);
        if first != own {
            end(own)?;
        }
        join(first)?;
        Ok(LabNamespaces::User { namespace_holder: first })
    }

    /// Ends the workplace if it has no more labs.
    pub fn close_if_empty(self) -> Result<(), LabError> {
        match self {
            LabNamespaces::User { namespace_holder: keeper } if discovery::namespaces()?.is_empty() => {
                end(keeper)
            }
            _ => Ok(()),
        }
    }
}

/// Runs the keeper of a new workplace: enters new namespaces, reports that or an error on standard output, and waits
/// to be ended.
pub fn keep_workplace() -> Result<std::convert::Infallible, LabError> {
    let made = make();
    let line = match &made {
        Ok(()) => READY.to_owned(),
        Err(why) => why.to_string().replace('\n', " "),
    };
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .context(|| "report that the workplace is ready".to_owned())?;
    made?;
    loop {
        pause();
    }
}

fn make() -> Result<(), LabError> {
    let refused = |step: &str, why: Errno| {
        let lacks = missing_privileges().unwrap_or_default();
        LabError::Privileges(format!(
            "{lacks}; run it as root, or allow user namespaces to everybody, which this system refuses ({step}: \
             {why}): see the settings user.max_user_namespaces, kernel.unprivileged_userns_clone and \
             kernel.apparmor_restrict_unprivileged_userns, and whether a container forbids them"
        ))
    };
    let (uid, gid) = (geteuid(), getegid());
    // A separate session, so that Ctrl-C in the terminal does not reach the keeper. The call fails only for a session
    // leader.
    let _ = setsid();
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)
        .map_err(|why| refused("unshare", why))?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {uid} 1")),
        ("gid_map", format!("0 {gid} 1")),
    ] {
        let written = fs::write(Path::new("/proc/self").join(file), text);
        written.map_err(|why| refused(file, Errno::from_raw(why.raw_os_error().unwrap_or_default())))?;
    }
    // A separate list of network namespaces in memory, visible only in this workplace.
    let folder = Path::new(netns::FOLDER);
    let place = if folder.is_dir() { folder } else { folder.parent().unwrap_or(folder) };
    mount(Some("pathweave-lab"), place, Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
        .map_err(|why| refused("mount", why))?;
    netns::prepare_folder()
}

/// Returns the processes that keep a workplace of this user.
fn keepers() -> Vec<u32> {
    let user_namespace = |pid: &str| fs::metadata(format!("/proc/{pid}/ns/user")).map(|file| file.ino()).ok();
    let own = user_namespace("self");
    let is_keeper = |pid: &str| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mine =
            fs::metadata(format!("/proc/{pid}")).is_ok_and(|folder| folder.uid() == geteuid().as_raw());
        mine && is_keepers(&line) && user_namespace(pid).is_some_and(|namespace| Some(namespace) != own)
    };
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && is_keeper(name))
        .filter_map(|name| name.parse().ok())
        .collect()
}

/// Returns true if this is the command line of a keeper.
fn is_keepers(line: &[u8]) -> bool {
    let arguments: Vec<&[u8]> = line.strip_suffix(&[0]).unwrap_or(line).split(|byte| *byte == 0).collect();
    arguments.len() > KEEPER_ARGUMENTS.len() && arguments.ends_with(&KEEPER_ARGUMENTS.map(str::as_bytes))
}

fn start(keeper: &mut Command) -> Result<u32, LabError> {
    let doing = || "start the process that keeps the workplace".to_owned();
    let keeper = keeper.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = keeper.spawn().context(doing)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).context(doing)?;
    }
    match line.trim() {
        READY => Ok(child.id()),
        why => {
            let _ = child.wait();
            let why = if why.is_empty() { "the process that keeps the workplace ended at once" } else { why };
            Err(LabError::Privileges(why.to_owned()))
        }
    }
}

fn join(keeper: u32) -> Result<(), LabError> {
    let doing = || format!("enter the workplace of process {keeper}");
    let open = |kind: &str| fs::File::open(format!("/proc/{keeper}/ns/{kind}")).context(doing);
    let (user, mounts) = (open("user")?, open("mnt")?);
    setns(user, CloneFlags::CLONE_NEWUSER).context(doing)?;
    let folder = std::env::current_dir();
    setns(mounts, CloneFlags::CLONE_NEWNS).context(doing)?;
    // Entering other mounts changes the working folder to their root, so the original one is restored.
    match folder {
        Ok(folder) => {
            std::env::set_current_dir(&folder).context(|| format!("return to {}", folder.display()))
        }
        Err(_) => Ok(()),
    }
}

fn end(keeper: u32) -> Result<(), LabError> {
    match kill(Pid::from_raw(keeper.cast_signed()), Signal::SIGTERM) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(why) => Err(why).context(|| format!("end the workplace's process {keeper}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_bits_of_the_effective_set() {
        assert_eq!(lacking("Name:\tx\nCapEff:\t000001ffffffffff\n"), None);
        assert_eq!(
            lacking("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000001000\n").unwrap(),
            "CAP_SYS_ADMIN"
        );
        for nothing in ["CapEff:\t0000000000000000\n", "", "CapEff:\tzz\n"] {
            assert_eq!(lacking(nothing).unwrap(), "CAP_NET_ADMIN and CAP_SYS_ADMIN");
        }
    }

    #[test]
    fn keepers_are_known_by_their_last_arguments() {
        assert!(is_keepers(b"/usr/bin/pathweave\0lab\0keep-workplace\0"));
        for other in ["", "lab\0keep-workplace\0", "pathweave\0lab\0list\0", "x\0lab\0keep-workplace\0more\0"]
        {
            assert!(!is_keepers(other.as_bytes()), "{other:?}");
        }
    }
}
