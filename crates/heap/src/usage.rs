//! Time and memory this process used, as the operating system tells.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the calling thread, seconds.
pub fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// CPU time of the process, all its threads.
pub fn process_cpu() -> std::time::Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Largest resident memory of the process so far, bytes; 0 where unknown. Runs side by side share it.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kb.unwrap_or(0) * 1_024
}
