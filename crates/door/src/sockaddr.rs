//! Socket addresses in C's form.
#![allow(unsafe_code, reason = "reads memory of C")]

use std::ffi::c_void;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Reads an address of either family. Returns `None` for another family, or if there are too few bytes.
///
/// # Safety
///
/// `from` is NULL or points to `len` bytes.
pub unsafe fn read(from: *const c_void, len: usize) -> Option<SocketAddr> {
    if from.is_null() || len < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: there are enough bytes; they need not be aligned.
    let family = unsafe { from.cast::<libc::sa_family_t>().read_unaligned() };
    match i32::from(family) {
        libc::AF_INET if len >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: there are enough bytes.
            let raw = unsafe { from.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from_bits(u32::from_be(raw.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: there are enough bytes.
            let raw = unsafe { from.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(raw.sin6_port), 0, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}
