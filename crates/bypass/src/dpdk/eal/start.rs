//! Start of DPDK.

#![allow(unsafe_code, reason = "calls of DPDK; each block says why it is sound")]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::ffi;
use crate::dpdk::config::Device;
use crate::dpdk::error::DpdkError;
use crate::dpdk::memory::Pages;

/// Largest amount of ordinary memory for DPDK, in megabytes. The system provides it as it is written to.
const ORDINARY_MEMORY_MB: &str = "1024";
/// Name of DPDK's folder for files of a process. Nothing is stored there.
const FILES: &str = "pathweave";

/// Starts DPDK with this memory and for this device. It can be started only once per process; later calls return the
/// first result.
///
/// # Errors
/// If DPDK does not start now, or did not start before.
pub(crate) fn start(device: &Device, pages: Pages) -> Result<(), DpdkError> {
    static STARTED: OnceLock<Result<(), DpdkError>> = OnceLock::new();
    STARTED.get_or_init(|| run_eal_init(arguments(device, pages, first_core()))).clone()
}

/// Returns the first core that this thread may run on. DPDK pins its main thread there, which does nothing.
fn first_core() -> usize {
    let allowed = sched_getaffinity(None).ok();
    let is_allowed = |core: &usize| allowed.as_ref().is_some_and(|set| set.is_set(*core));
    (0..CpuSet::MAX_CPU).find(is_allowed).unwrap_or(0)
}

fn arguments(device: &Device, pages: Pages, core: usize) -> Vec<String> {
    let fixed = ["pathweave", "--no-telemetry", "--log-level=error", "--file-prefix", FILES, "--lcores"];
    let mut all: Vec<String> = fixed.map(str::to_owned).into();
    all.push(format!("0@{core}"));
    let more: &[&str] = match pages {
        Pages::Huge => &["--in-memory"],
        // Replaces `--in-memory`, which DPDK does not accept together with ordinary pages.
        Pages::Ordinary => &["--no-huge", "--no-shconf", "-m", ORDINARY_MEMORY_MB],
    };
    all.extend(more.iter().map(|word| (*word).to_owned()));
    match device {
        Device::Pci(address) => all.extend(["--allow".to_owned(), address.clone()]),
        Device::Vdev(_) => all.extend(["--no-pci", "--iova-mode=va"].map(str::to_owned)),
    }
    all
}

fn run_eal_init(arguments: Vec<String>) -> Result<(), DpdkError> {
    let start = move || {
        let words: Vec<CString> = arguments.into_iter().filter_map(|word| CString::new(word).ok()).collect();
        // DPDK permutes the pointers.
        let mut pointers: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        // SAFETY: the pointers are to strings that live as long as the process, because they are leaked below. They
        // end in a null pointer like those of `main`.
        let result = unsafe { ffi::pathweave_dpdk_start(words.len() as c_int, pointers.as_mut_ptr()) };
        std::mem::forget(words);
        result
    };
    // Runs in a separate thread, because DPDK pins the thread to a core.
    match std::thread::Builder::new()
        .name("dpdk-start".into())
        .spawn(start)
        .map(std::thread::JoinHandle::join)
    {
        Ok(Ok(0)) => Ok(()),
        Ok(Ok(number)) => Err(DpdkError::Start { why: reason(number) }),
        Ok(Err(_)) => Err(DpdkError::Start { why: "it panics".into() }),
        Err(why) => Err(DpdkError::Start { why: why.to_string() }),
    }
}

/// Returns the reason for DPDK's refusal: its last log messages, or else the text of the error number.
pub(super) fn reason(number: c_int) -> String {
    let mut text = [0u8; 512];
    // SAFETY: the function writes at most `text.len()` bytes.
    let bytes = unsafe { ffi::pathweave_dpdk_said(text.as_mut_ptr().cast(), text.len()) };
    let said = String::from_utf8_lossy(&text[..bytes.min(text.len())]).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.split_last() {
        // The first line may be cut off, and the last lines only repeat that something has failed.
        Some((last, before)) => {
            before.iter().rev().take(2).rev().chain([last]).copied().collect::<Vec<_>>().join("; ")
        }
        None => io::Error::from_raw_os_error(number.abs()).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_dpdk() {
        let vdev = Device::Vdev("net_memif0".parse().unwrap());
        let words = arguments(&vdev, Pages::Ordinary, 3).join(" ");
        assert!(
            words.contains("--lcores 0@3 --no-huge --no-shconf -m 1024 --no-pci --iova-mode=va"),
            "{words}"
        );
        let pci = Device::Pci("0000:03:00.0".into());
        let words = arguments(&pci, Pages::Huge, 0).join(" ");
        assert!(words.ends_with("--lcores 0@0 --in-memory --allow 0000:03:00.0"), "{words}");
    }
}
