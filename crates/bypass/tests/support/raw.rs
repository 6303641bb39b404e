//! Frames as nobody's network stack would send them.

#![allow(unsafe_code, reason = "packet sockets have no safe interface; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::namespaces::INDEX;

/// A packet socket at the interface of its namespace.
pub(crate) struct Raw {
    socket: OwnedFd,
    interface: u32,
}

impl Raw {
    /// Opened in the calling thread's namespace, at the interface that [`Net`](super::namespaces::Net) makes.
    pub(crate) fn open() -> io::Result<Raw> {
        Raw::open_at(INDEX)
    }

    /// At the interface of this number.
    pub(crate) fn open_at(interface: u32) -> io::Result<Raw> {
        // SAFETY: no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Raw { socket, interface })
    }

    /// Sends a frame as it is.
    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: all zeros is a valid address.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = self.interface.cast_signed();
        // SAFETY: frame and address are as long as said and live until the call is over.
        let sent = unsafe {
            libc::sendto(
                self.socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                std::ptr::from_ref(&to).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        assert_eq!(sent, frame.len() as isize, "{}", io::Error::last_os_error());
    }
}
