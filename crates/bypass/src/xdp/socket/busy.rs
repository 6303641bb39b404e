//! Busy polling instead of interrupts.

#![allow(unsafe_code, reason = "setsockopt takes a pointer; the block says why it is valid")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Largest number of packets per poll.
const BUDGET: libc::c_int = 64;

/// Enables busy polling: a thread that waits for packets of this socket polls the driver for this time, and the
/// adapter's interrupts stay off meanwhile.
pub(super) fn poll(socket: BorrowedFd<'_>, time: Duration) -> io::Result<()> {
    let us = libc::c_int::try_from(time.as_micros()).unwrap_or(libc::c_int::MAX);
    set(socket, libc::SO_PREFER_BUSY_POLL, 1)?;
    set(socket, libc::SO_BUSY_POLL, us)?;
    set(socket, libc::SO_BUSY_POLL_BUDGET, BUDGET)
}

fn set(socket: BorrowedFd<'_>, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer is to `value`, whose size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            std::ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
