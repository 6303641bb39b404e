//! Network interfaces of this host.

use std::ptr;

use crate::getinfo::{Interface, Link};

use super::{address, text};

/// Returns all interfaces, each once for each of its addresses, in the kernel's order.
pub(crate) fn list() -> Vec<Interface> {
    let mut first = ptr::null_mut();
    // SAFETY: on success getifaddrs writes a list, which is freed below.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at: *mut libc::ifaddrs = first;
    while !at.is_null() {
        // SAFETY: an element of the list, which is not freed yet.
        let element = unsafe { &*at };
        // SAFETY: as above.
        found.extend(unsafe { interface(element) });
        at = element.ifa_next;
    }
    // SAFETY: the list comes from getifaddrs and is freed once.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// # Safety
///
/// `element` is an element of a list of getifaddrs.
unsafe fn interface(element: &libc::ifaddrs) -> Option<Interface> {
    if element.ifa_addr.is_null() {
        return None;
    }
    let link = if element.ifa_flags & libc::IFF_UP as u32 == 0 { Link::Down } else { Link::Up };
    let room = size_of::<libc::sockaddr_in6>();
    // SAFETY: the address has the size of its family, which is the size read.
    let length = |family: libc::sa_family_t| match i32::from(family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => room,
        _ => 0,
    };
    // SAFETY: not NULL, and every address begins with its family.
    let len = length(unsafe { (*element.ifa_addr).sa_family });
    // SAFETY: the address has the size of its family.
    let found = unsafe { address::read(element.ifa_addr.cast(), len) }?;
    // SAFETY: a mask is NULL, or has the family of the address.
    let mask = unsafe { address::read(element.ifa_netmask.cast(), len) };
    let prefix_bits = match mask.map(|mask| mask.ip()) {
        Some(std::net::IpAddr::V4(mask)) => mask.to_bits().count_ones() as u8,
        Some(std::net::IpAddr::V6(mask)) => mask.to_bits().count_ones() as u8,
        None if found.is_ipv4() => 32,
        None => 128,
    };
    // SAFETY: a string of the list.
    let name = unsafe { text::read(element.ifa_name) }?;
    Some(Interface { name, address: found.ip(), prefix_bits, link })
}
