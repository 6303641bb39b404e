//! Copies out of the memory of another process, by the kernel: `process_vm_readv`. Nobody writes into the memory of another:
//! a process may be stopped right before the call, and the memory be somebody else's when it goes on.
#![allow(unsafe_code, reason = "names memory by address, here and in another process")]

use std::io;
use std::sync::Once;

use rustix::process::{PTracer, getppid, set_ptracer};

/// Most parts of the memory here that one copy may have.
const MOST_PARTS: usize = 8;

/// Copies memory of the process `pid`, from `address` on, to the parts here, each an address and a length, all of it.
///
/// # Errors
/// What the kernel says: EFAULT, EPERM, ESRCH; EINVAL for more parts than [`MOST_PARTS`].
///
/// # Safety
/// The parts are memory of this process that nobody else uses meanwhile.
pub(crate) unsafe fn copy(pid: i32, parts: &[(usize, usize)], address: u64) -> io::Result<()> {
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
        // SAFETY: the parts are as the caller says; what is wrong with the other process's memory the kernel says.
        let moved = unsafe { libc::process_vm_readv(pid, here, count as u64, &there, 1, 0) };
        match moved {
            0 => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            // Less than all: what follows cannot be reached, which the next call says.
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

/// Where Yama lets only ancestors reach a process (scope 1), lets those that descend from our parent: the other processes that
/// our launcher has started, and nobody else.
pub(crate) fn let_siblings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
        let restricted = scope.is_ok_and(|text| text.trim() == "1");
        // A parent that is gone is replaced by one of which everything descends.
        if let Some(parent) = getppid().filter(|parent| restricted && !parent.is_init()) {
            // Where it fails copies go another way.
            let _ = set_ptracer(PTracer::ProcessID(parent));
        }
    });
}
