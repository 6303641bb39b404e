//! Copies from the memory of another process by the kernel's `process_vm_readv`. No process writes to the memory of
//! another: it might be stopped right before the call, and the memory be reused when it continues.
#![allow(unsafe_code, reason = "names memory by address, here and in another process")]

use std::io;
use std::sync::Once;

use rustix::process::{PTracer, getppid, set_ptracer};

/// Largest number of parts of our memory in one copy.
const MOST_PARTS: usize = 8;

/// Copies memory of process `pid` from `address` on to all bytes of at most 8 parts, which are addresses and lengths.
///
/// # Errors
/// The errors of the kernel: EFAULT, EPERM, ESRCH. [`io::ErrorKind::InvalidInput`] for more parts.
///
/// # Safety
/// The parts must be memory of this process that is not otherwise in use during the call.
pub unsafe fn copy(pid: i32, parts: &[(usize, usize)], address: u64) -> io::Result<()> {
    let mut here = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST_PARTS];
    if parts.len() > MOST_PARTS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let total: usize = parts.iter().map(|(_, len)| len).sum();
    let mut done = 0;
    while done < total {
        let (mut count, mut skip) = (0, done);
        for (start, len) in parts {
            let skipped = skip.min(*len);
            skip -= skipped;
            if skipped < *len {
                let rest = (start + skipped) as *mut libc::c_void;
                here[count] = libc::iovec { iov_base: rest, iov_len: len - skipped };
                count += 1;
            }
        }
        let there = libc::iovec {
            iov_base: address.wrapping_add(done as u64) as *mut libc::c_void,
            iov_len: total - done,
        };
        let here = here.as_ptr();
        // SAFETY: the caller guarantees the parts. The kernel checks the other process's memory.
        let moved = unsafe { libc::process_vm_readv(pid, here, count as u64, &there, 1, 0) };
        match moved {
            0 => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            // A short copy means that the rest is not readable, which the next call reports.
            1.. => done += moved as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Under Yama's scope 1, only ancestors may access a process. Permits the descendants of our parent as well, which
/// are the other processes of our launcher.
pub fn permit_sibling_access() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        let restricted = scope.is_ok_and(|text| text.trim() == "1");
        // If the parent has exited, its replacement is an ancestor of every process.
        if let Some(parent) = getppid().filter(|parent| restricted && !parent.is_init()) {
            // On failure, copies go through the ring instead.
            let _ = set_ptracer(PTracer::ProcessID(parent));
        }
    });
}
