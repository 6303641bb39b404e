//! Network interfaces of this host.
#![allow(unsafe_code, reason = "reads a list of the C library")]

use std::ffi::CStr;
use std::ptr;

use crate::interfaces::{Interface, Link};
use crate::settings::Where;
use crate::sockaddr;

/// Returns all interfaces, each once for each of its addresses, in the kernel's order.
pub fn interfaces() -> Vec<Interface> {
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
    let found = unsafe { sockaddr::read(element.ifa_addr.cast(), len) }?;
    // SAFETY: a mask is NULL, or has the family of the address.
    let mask = unsafe { sockaddr::read(element.ifa_netmask.cast(), len) };
    let prefix_bits = match mask.map(|mask| mask.ip()) {
        Some(std::net::IpAddr::V4(mask)) => mask.to_bits().count_ones() as u8,
        Some(std::net::IpAddr::V6(mask)) => mask.to_bits().count_ones() as u8,
        None if found.is_ipv4() => 32,
        None => 128,
    };
    if element.ifa_name.is_null() {
        return None;
    }
    // SAFETY: a string of the list.
    let name = unsafe { CStr::from_ptr(element.ifa_name) }.to_string_lossy().into_owned();
    Some(Interface { name, address: found.ip(), prefix_bits, link })
}

/// Returns the interfaces that are to be used together as one, the first of them up, or a sentence about the reason
/// why there are none. If none is named, that is the first one that is up and is not loopback, or else loopback.
///
/// # Errors
/// One line for users.
pub fn interfaces_from(place: &Where, all: &[Interface]) -> Result<Vec<Interface>, String> {
    let all = place.all(all);
    if let Some(missing) = place.missing(&all) {
        let mut names: Vec<String> =
            all.iter().map(|other| format!("{} ({})", other.name, other.address)).collect();
        names.sort();
        names.dedup();
        return Err(format!("no interface has {missing}; there are {}", names.join(", ")));
    }
    let mut usable: Vec<&Interface> = all
        .iter()
        .filter(|interface| interface.is_up() && interface.is_routable())
        .filter(|interface| place.allows(interface, None, &all))
        .collect();
    // Loopback last, IPv4 before IPv6, otherwise in the kernel's order.
    usable.sort_by_key(|interface| (interface.is_loopback(), interface.address.is_ipv6()));
    let Some(first) = usable.first() else {
        return Err("no network interface that may be used is up and has an address".into());
    };
    let mut found = vec![(*first).clone()];
    found.extend(place.others(first, &all).unwrap_or_default());
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str, link: Link) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), prefix_bits: 24, link }
    }

    #[test]
    fn the_first_that_is_up_comes_first_and_the_others_of_its_family_follow() {
        let all = [
            interface("lo", "127.0.0.1", Link::Up),
            interface("eth0", "10.0.0.1", Link::Down),
            interface("eth1", "10.0.1.1", Link::Up),
            interface("eth1", "fd00::1", Link::Up),
        ];
        let names = |place: Where| {
            let found = interfaces_from(&place, &all)?;
            Ok::<_, String>(found.iter().map(|one| one.address.to_string()).collect::<Vec<_>>())
        };
        assert_eq!(names(Where::Anywhere).unwrap(), ["10.0.1.1"]);
        let both = Where::Interfaces(vec!["eth0".into(), "eth1".into()]);
        assert_eq!(names(both).unwrap(), ["10.0.1.1", "10.0.0.1"]);
        let three = ["127.0.0.1", "127.0.0.2", "127.0.0.3"].map(|text| text.parse().unwrap());
        assert_eq!(names(Where::Addresses(three.to_vec())).unwrap(), ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
        let error = names(Where::Interfaces(vec!["eth9".into()])).unwrap_err();
        assert!(error.contains("eth9") && error.contains("eth1 (10.0.1.1)"), "{error}");
        let error = names(Where::Interfaces(vec!["eth0".into()])).unwrap_err();
        assert!(error.contains("is up"), "{error}");
    }
}
