//! Processes that run in a lab, and their termination.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::LabError;
use crate::os::netns;

/// Process in a lab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process number.
    pub pid: u32,
    /// Short name of the process.
    pub name: String,
}

/// Time that a process may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(10);

/// Returns the processes in any of these namespaces (device and inode number), never this process.
pub(crate) fn in_namespaces(namespaces: &BTreeSet<(u64, u64)>) -> Vec<Process> {
    let own = netns::of_process(std::process::id());
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<Process> = pids
        .filter(|&pid| pid != std::process::id())
        .filter(|&pid| {
            let namespace = netns::of_process(pid);
            // A process in our own namespace is never part of a lab, whatever the list contains.
            namespace != own && namespace.is_some_and(|namespace| namespaces.contains(&namespace))
        })
        .map(|pid| Process { pid, name: name_of(pid) })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// Ends all processes in these namespaces with SIGTERM and, if needed, SIGKILL. Returns the processes that existed.
pub(crate) fn terminate_all(namespaces: &BTreeSet<(u64, u64)>) -> Result<Vec<Process>, LabError> {
    let all = in_namespaces(namespaces);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let left = in_namespaces(namespaces);
        if left.is_empty() {
            break;
        }
        for process in &left {
            // The process may have ended in the meantime; the checks below detect that.
            let _ = kill(Pid::from_raw(process.pid.cast_signed()), signal);
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !in_namespaces(namespaces).is_empty() {
            std::thread::sleep(POLL);
        }
    }
    match in_namespaces(namespaces).first() {
        None => Ok(all),
        Some(Process { pid, name }) => {
            let doing = format!("end process {pid} ({name}), which runs in the lab");
            Err(LabError::System { doing, why: std::io::Error::from(nix::errno::Errno::EPERM).into() })
        }
    }
}
