//! Time and memory this process used and may have, as the operating system tells.

use std::fs::read_to_string;

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, seconds.
pub fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU time of the process, all its threads.
pub fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Of that what was spent in the program's own code and not in the kernel; zero where unknown. The system divides the time by
/// samples, so of less than a second it is a rough figure.
pub fn process_user_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let time = usage.user_time();
    Duration::from_secs(time.tv_sec().unsigned_abs()) + Duration::from_micros(time.tv_usec().unsigned_abs())
}

/// Largest resident memory of the process so far, bytes; 0 where unknown. Runs side by side share it.
pub fn peak_rss_bytes() -> u64 {
    kilobytes(&read_to_string("/proc/self/status").unwrap_or_default(), "VmHWM:").unwrap_or(0)
}

/// Memory that this process could have now, bytes: what the machine has left, and no more than a limit on its control
/// group leaves. `None` where the system does not tell.
pub fn available_bytes() -> Option<u64> {
    let of_machine = kilobytes(&read_to_string("/proc/meminfo").ok()?, "MemAvailable:")?;
    Some(of_group().map_or(of_machine, |of_group| of_machine.min(of_group)))
}

/// What a line such as "VmRSS:   1234 kB" says, in bytes.
fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// What the limits on the control groups of this process leave, if there are any (version 2).
fn of_group() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let number = |name: String| read_to_string(name).ok()?.trim().parse::<u64>().ok();
    // A limit on a group is one on all groups within it.
    let folders = std::path::Path::new(own).ancestors().map(|folder| {
        let folder = std::path::Path::new("/sys/fs/cgroup").join(folder);
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        // "max" where there is no limit, which is no number.
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
        assert_eq!(kilobytes(text, "VmHWM:"), Some(2_048 * 1_024));
        assert_eq!(kilobytes(text, "VmRSS:"), None);
        assert_eq!(kilobytes("VmHWM: many kB", "VmHWM:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_memory_and_may_have_more() {
        assert!(0 < peak_rss_bytes());
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
