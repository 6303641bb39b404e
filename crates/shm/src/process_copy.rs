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

/// Bytes by which a process is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Their place in that process.
    pub address: u64,
    /// The bytes.
    pub bytes: [u8; 16],
}

/// Copies `len` bytes of process `pid` from `address` to `to`, if the process has the proof. The kernel reads both in one
/// call, so that a process that has taken the number of one that has ended is not mistaken for it.
///
/// # Errors
/// The errors of the kernel: EFAULT, EPERM. [`io::ErrorKind::NotFound`] if there is no such process or it lacks the
/// proof. The memory's content is not defined then.
///
/// # Safety
/// The bytes at `to` must be memory of this process that is not otherwise in use during the call.
pub unsafe fn copy_proven(pid: i32, proof: &Proof, to: *mut u8, len: usize, address: u64) -> io::Result<()> {
    let mut done = 0;
    loop {
        let mut found = [0_u8; 16];
        let (first, rest) = (found.as_mut_ptr().cast(), to.wrapping_add(done).cast());
        let here = [(first, found.len()), (rest, len - done)];
        let there =
            [proof.address, address.wrapping_add(done as u64)].map(|start| start as *mut libc::c_void);
        let here = here.map(|(iov_base, iov_len)| libc::iovec { iov_base, iov_len });
        let there = [(there[0], found.len()), (there[1], len - done)]
            .map(|(iov_base, iov_len)| libc::iovec { iov_base, iov_len });
        // SAFETY: the caller guarantees the memory here. The kernel checks the other process's memory.
        let moved = unsafe { libc::process_vm_readv(pid, here.as_ptr(), 2, there.as_ptr(), 2, 0) };
        if moved < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::ESRCH) => return Err(io::ErrorKind::NotFound.into()),
                _ => return Err(error),
            }
        }
        if (moved as usize) < found.len() || found != proof.bytes {
            return Err(io::ErrorKind::NotFound.into());
        }
        let moved = moved as usize - found.len();
        done += moved;
        if done == len {
            return Ok(());
        }
        // A short copy means that the rest is not readable, which the next call reports.
        if moved == 0 {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_from_a_process_with_the_proof_only() {
        let pid = std::process::id() as i32;
        let (known, from, mut to) = (Box::new([7_u8; 16]), vec![3_u8; 5_000], vec![0_u8; 5_000]);
        let proof = Proof { address: known.as_ptr() as u64, bytes: [7; 16] };
        let mut copy = |proof: Proof, address: u64| {
            // SAFETY: the vector is used by this call only.
            unsafe { copy_proven(pid, &proof, to.as_mut_ptr(), to.len(), address) }
        };
        copy(proof, from.as_ptr() as u64).unwrap();
        let other = Proof { bytes: [8; 16], ..proof };
        assert_eq!(copy(other, from.as_ptr() as u64).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(copy(proof, 8).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        let nowhere = Proof { address: 8, ..proof };
        assert_eq!(copy(nowhere, from.as_ptr() as u64).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        assert_eq!(to, from);
    }
}
