//! Starts DPDK.

#![allow(unsafe_code, reason = "calls of DPDK; each block says why it is sound")]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity};

use super::ffi;
use crate::dpdk::config::Device;
use crate::dpdk::error::DpdkError;
use crate::dpdk::memory::Pages;

/// Megabytes that DPDK may take of ordinary memory. The system gives them as they are written to.
const ORDINARY_MEMORY_MB: &str = "1024";
/// Name of its folder for files of a process, in which nothing is put.
const FILES: &str = "pathweave";

/// Starts DPDK with the memory and for the device asked for, if this process has not yet: it can be started once.
///
/// # Errors
/// It does not start, and has not since.
pub(crate) fn start(device: &Device, pages: Pages) -> Result<(), DpdkError> {
    static STARTED: OnceLock<Result<(), DpdkError>> = OnceLock::new();
    STARTED.get_or_init(|| start_anew(arguments(device, pages, first_core()))).clone()
}

/// The first core this thread may run on: where DPDK ties its own thread to, which does nothing.
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
        // In place of "in memory only", which DPDK does not take together with ordinary pages.
        Pages::Ordinary => &["--no-huge", "--no-shconf", "-m", ORDINARY_MEMORY_MB],
    };
    all.extend(more.iter().map(|word| (*word).to_owned()));
    match device {
        Device::Pci(address) => all.extend(["--allow".to_owned(), address.clone()]),
        Device::Vdev(_) => all.extend(["--no-pci", "--iova-mode=va"].map(str::to_owned)),
    }
    all
}

fn start_anew(arguments: Vec<String>) -> Result<(), DpdkError> {
    let start = move || {
        let words: Vec<CString> = arguments.into_iter().filter_map(|word| CString::new(word).ok()).collect();
        // It permutes them.
        let mut pointers: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        pointers.push(std::ptr::null_mut());
        // SAFETY: the pointers are to strings that live as long as the process, for they are leaked below, and end in a null pointer
        // as those of `main` do.
        let result = unsafe { ffi::pathweave_dpdk_start(words.len() as c_int, pointers.as_mut_ptr()) };
        std::mem::forget(words);
        result
    };
    // In a thread of its own, for it ties the thread to a core.
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

/// Why DPDK has refused something: its own last words if there are any, or the number's.
pub(super) fn reason(number: c_int) -> String {
    let mut text = [0u8; 512];
    // SAFETY: it writes at most as many bytes as said.
    let bytes = unsafe { ffi::pathweave_dpdk_said(text.as_mut_ptr().cast(), text.len()) };
    let said = String::from_utf8_lossy(&text[..bytes.min(text.len())]).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.split_last() {
        // The first line may be cut, and the last ones only repeat that something has failed.
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
    fn what_dpdk_is_started_with() {
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
