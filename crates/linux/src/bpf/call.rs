//! The bpf(2) system call.

// libc is the only route to the call; each block states why it is sound.
#![allow(unsafe_code, reason = "bpf(2) takes pointers; each block says why they are valid")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Calls bpf(2) with a command that returns a descriptor.
///
/// # Safety
/// See [`call`].
pub(crate) unsafe fn new_descriptor<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: guaranteed by the caller.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: the command returned a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Calls bpf(2).
///
/// # Safety
/// `attributes` is the beginning of the command's `union bpf_attr`, without padding. All pointers in it are valid for
/// the accesses that the command makes.
pub(crate) unsafe fn call<T>(command: libc::c_int, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes, all of them within `attributes`; the caller guarantees the
    // rest.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    // Results of the commands used here are descriptors or zero.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}
