//! The handle of a listener: the bytes that NCCL carries from the rank that listens to the one that connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::abi::HANDLE_BYTES;

const MAGIC: [u8; 8] = *b"pathweav";
/// Version of the handle and of the messages between plug-ins.
pub(crate) const VERSION: u16 = 1;
/// Flag of a handle whose addresses are IPv6.
const IPV6: u16 = 1;
/// Largest number of addresses.
pub(crate) const MAX_ADDRESSES: usize = 4;
/// Bytes in which the connecting end keeps the number of its attempt between calls.
const STATE: std::ops::Range<usize> = 96..104;

/// Number that tells listeners apart, and that a stranger does not guess.
pub(crate) type Cookie = [u8; 16];

/// Listener as the connecting end sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    pub(crate) cookie: Cookie,
    /// Addresses of the listening end, at least one.
    pub(crate) addresses: Vec<SocketAddr>,
}

impl Handle {
    /// Returns the bytes, without an attempt.
    pub(crate) fn encode(&self) -> [u8; HANDLE_BYTES] {
        let mut bytes = [0; HANDLE_BYTES];
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        let flags = if addresses.iter().any(SocketAddr::is_ipv6) { IPV6 } else { 0 };
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&flags.to_le_bytes());
        bytes[14] = addresses.len() as u8;
        bytes[16..32].copy_from_slice(&self.cookie);
        for (index, address) in addresses.iter().enumerate() {
            let at = 32 + 16 * index;
            match address.ip() {
                IpAddr::V4(ip) => bytes[at..at + 4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => bytes[at..at + 16].copy_from_slice(&ip.octets()),
            }
            let at = 104 + 2 * index;
            bytes[at..at + 2].copy_from_slice(&address.port().to_le_bytes());
        }
        bytes
    }

    /// Parses the bytes; `None` if they are not of this version of the plug-in.
    pub(crate) fn decode(bytes: &[u8; HANDLE_BYTES]) -> Option<Self> {
        let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let count = usize::from(bytes[14]);
        if bytes[..8] != MAGIC || number(8) != VERSION || !(1..=MAX_ADDRESSES).contains(&count) {
            return None;
        }
        let address = |index: usize| {
            let raw: [u8; 16] = bytes[32 + 16 * index..][..16].try_into().ok()?;
            let ip = match number(10) {
                0 => IpAddr::V4(Ipv4Addr::from(*raw.first_chunk()?)),
                IPV6 => IpAddr::V6(Ipv6Addr::from(raw)),
                _ => return None,
            };
            Some(SocketAddr::new(ip, number(104 + 2 * index)))
        };
        let addresses = (0..count).map(address).collect::<Option<_>>()?;
        Some(Handle { cookie: bytes[16..32].try_into().ok()?, addresses })
    }
}

/// Returns the number of the attempt that is kept in a handle; 0 if there is none.
pub(crate) fn attempt(bytes: &[u8; HANDLE_BYTES]) -> u64 {
    bytes[STATE].try_into().map_or(0, u64::from_le_bytes)
}

/// Keeps the number of an attempt in a handle.
pub(crate) fn set_attempt(bytes: &mut [u8; HANDLE_BYTES], number: u64) {
    bytes[STATE].copy_from_slice(&number.to_le_bytes());
}

/// Returns the private data with which a connection to a listener is opened.
pub(crate) fn greeting(cookie: &Cookie) -> Vec<u8> {
    let mut bytes = b"PWNC".to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(cookie);
    bytes
}

/// Returns the listener that a greeting asks for, if it is one of this version.
pub(crate) fn greeted(bytes: &[u8]) -> Option<Cookie> {
    let rest = bytes.strip_prefix(b"PWNC")?.strip_prefix(&VERSION.to_le_bytes()[..])?;
    rest.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_back_and_keep_an_attempt() {
        for addresses in
            [vec!["10.0.0.1:7"], vec!["[fd00::1]:80", "[fd00::2]:81"], vec!["127.0.0.1:65535"; 4]]
        {
            let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
            let handle = Handle { cookie: [7; 16], addresses };
            let mut bytes = handle.encode();
            assert_eq!(attempt(&bytes), 0);
            set_attempt(&mut bytes, u64::MAX - 5);
            assert_eq!((attempt(&bytes), Handle::decode(&bytes)), (u64::MAX - 5, Some(handle)));
            for broken in [0, 8, 10, 14] {
                let mut other = bytes;
                other[broken] = 0xee;
                assert_eq!(Handle::decode(&other), None, "byte {broken}");
            }
        }
        assert_eq!(Handle::decode(&[0; HANDLE_BYTES]), None);
    }

    #[test]
    fn a_greeting_names_its_listener() {
        let bytes = greeting(&[3; 16]);
        assert_eq!(greeted(&bytes), Some([3; 16]));
        assert_eq!((greeted(&bytes[..21]), greeted(b"PWFI")), (None, None));
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(greeted(&longer), None);
    }
}
