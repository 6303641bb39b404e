//! Socket filter that keeps packets of an interface from the kernel's UDP sockets, because DPDK receives them as
//! well.

#![allow(unsafe_code, reason = "setsockopt takes a pointer; the block says why it is valid")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Offset from which a filter reads the interface index (`SKF_AD_OFF + SKF_AD_IFINDEX`).
const INTERFACE: u32 = (-0x1000_i32 + 8).cast_unsigned();

/// Installs a filter that drops packets which arrive on this interface.
pub(crate) fn drop_from_interface(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, INTERFACE),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, interface),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the pointer is to `filter` of the given size, which points to the stated number of instructions. The
    // kernel copies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
