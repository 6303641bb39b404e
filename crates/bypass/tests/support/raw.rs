//! Raw frames that no network stack would send.

#![allow(unsafe_code, reason = "packet sockets have no safe interface; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::namespaces::INDEX;

/// Packet socket on the interface of its namespace.
pub(crate) struct Raw {
    socket: OwnedFd,
    interface: u32,
}

impl Raw {
    /// Opens a socket in the calling thread's namespace, on the interface that [`Net`](super::namespaces::Net)
    /// creates.
    pub(crate) fn open() -> io::Result<Raw> {
        Raw::open_at(INDEX)
    }

    /// Opens a socket on the interface with this index.
    pub(crate) fn open_at(interface: u32) -> io::Result<Raw> {
        // SAFETY: the call takes no pointers.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and no one else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(Raw { socket, interface })
    }

    /// Sends a frame unchanged.
    pub(crate) fn send(&self, frame: &[u8]) {
        // SAFETY: all zeros is a valid address.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_ifindex = self.interface.cast_signed();
        // SAFETY: the lengths of frame and address are as given, and both live until the call returns.
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
