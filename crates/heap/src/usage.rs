//! Time and memory that this process has used and may use, as the operating system reports them.

use std::fs::read_to_string;

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};

/// Returns the CPU time of the calling thread, seconds.
pub fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Returns the CPU time of all threads of the process.
pub fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Returns the part of the process's CPU time spent in user mode; zero if unknown. The system divides the time by
/// samples, so below a second the value is rough.
pub fn process_user_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let time = usage.user_time();
    Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(time.tv_usec().unsigned_abs())
}

/// Returns the largest resident memory of the process so far, bytes; 0 if unknown. Concurrent runs share it.
pub fn peak_rss_bytes() -> u64 {
    parse_kib_line(&read_to_string("/proc/self/status").unwrap_or_default(), "VmHWM:").unwrap_or(0)
}

/// Returns the memory that this process could still allocate, bytes: the free memory of the machine, limited by the
/// remainder of its control group. `None` if the system does not report it.
pub fn available_bytes() -> Option<u64> {
    let of_machine = parse_kib_line(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(cgroup_available_bytes().map_or(of_machine, |of_group| of_machine.min(of_group)))
}

/// Parses a line such as "VmRSS:   1234 kB" and returns its value in bytes.
fn parse_kib_line(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Returns the smallest remainder under the memory limits of this process's control groups (version 2), if there are
/// any.
fn cgroup_available_bytes() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let number = |name: String| read_to_string(name).ok()?.trim().parse::<u64>().ok();
    // A limit on a group applies to all groups within it.
    let folders = std::path::Path::new(own).ancestors().map(|folder| {
        let folder = std::path::Path::new("/sys/fs/cgroup").join(folder);
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        // The file holds "max" if there is no limit, which does not parse.
        Some(number(file("memory.max"))?.saturating_sub(number(file("memory.current"))?))
    });
    folders.flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_field() {
        let text = "VmPeak:\t    9 kB\nVmHWM:\t  2048 kB\nThreads:\t1\n";
        assert_eq!(parse_kib_line(text, "VmHWM:"), Some(2_048 * 1_024));
        assert_eq!(parse_kib_line(text, "VmRSS:"), None);
        assert_eq!(parse_kib_line("VmHWM: many kB", "VmHWM:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_memory_and_may_have_more() {
        assert!(0 < peak_rss_bytes());
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
