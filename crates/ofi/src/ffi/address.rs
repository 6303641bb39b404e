//! Socket addresses in C's form.

use std::ffi::c_void;
use std::mem::size_of;
use std::net::SocketAddr;

pub(crate) use pathweave_door::sockaddr::read;

use super::text;

/// Returns the size of an address of this family, bytes.
pub(crate) fn length_of(address: SocketAddr) -> usize {
    if address.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() }
}

/// Writes as many bytes of the address as fit. Returns the number of bytes of the whole address.
///
/// # Safety
///
/// `to` points to `room` bytes, or `room` is 0.
pub(crate) unsafe fn write(address: SocketAddr, to: *mut c_void, room: usize) -> usize {
    let bytes = bytes_of(address);
    // SAFETY: guaranteed by the caller.
    unsafe { to.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len().min(room)) };
    bytes.len()
}

/// Returns a copy that `free` can free.
pub(super) fn duplicate(address: SocketAddr) -> *mut c_void {
    let bytes = bytes_of(address);
    let to = text::zeroed_bytes(bytes.len());
    if !to.is_null() {
        // SAFETY: the allocation has this size.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    to.cast()
}

/// Returns the bytes of the address as C stores them.
fn bytes_of(address: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![0; length_of(address)];
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET as libc::sa_family_t).to_ne_bytes());
            bytes[4..8].copy_from_slice(&address.ip().octets());
        }
        SocketAddr::V6(address) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET6 as libc::sa_family_t).to_ne_bytes());
            bytes[8..24].copy_from_slice(&address.ip().octets());
            bytes[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_to_c_and_come_back() {
        for text in ["10.1.2.3:4567", "[2001:db8::7]:80"] {
            let address: SocketAddr = text.parse().unwrap();
            let mut raw = [0xffu8; 32];
            // SAFETY: the array has this many bytes.
            let len = unsafe { write(address, raw.as_mut_ptr().cast(), raw.len()) };
            assert_eq!(len, if address.is_ipv4() { 16 } else { 28 });
            // SAFETY: as above.
            assert_eq!(unsafe { read(raw.as_ptr().cast(), len) }, Some(address));
            // SAFETY: as above.
            assert_eq!(unsafe { read(raw.as_ptr().cast(), len - 1) }, None, "too short");
            assert!(raw[len..].iter().all(|byte| *byte == 0xff));
        }
        let unix = [libc::AF_UNIX as u8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14];
        // SAFETY: the array has this many bytes.
        assert_eq!(unsafe { read(unix.as_ptr().cast(), unix.len()) }, None);
    }
}
