//! Addresses at which an end receives, as listed in its hello.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::hello::HelloError;

/// Largest number of addresses of an end.
pub const MAX_ADDRESSES: usize = 8;

/// Version of the addresses' protocol in the option.
const V4: u8 = 4;
const V6: u8 = 6;
/// Bytes of a port.
const PORT_LEN: usize = 2;

/// Checks that the addresses may be listed in a hello.
///
/// # Errors
/// [`HelloError::Addresses`] with all of the addresses.
pub(crate) fn validate(addresses: &[SocketAddr]) -> Result<(), HelloError> {
    let is_host = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast(),
        // A link-local address is valid only together with a link, which only its host knows.
        IpAddr::V6(ip) => !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local(),
    };
    let sound = |(index, address): (usize, &SocketAddr)| {
        let before = &addresses[..index];
        is_host(address.ip())
            && address.port() != 0
            && address.is_ipv4() == addresses[0].is_ipv4()
            && before.iter().all(|other| other.ip() != address.ip())
    };
    let count = addresses.is_empty() || (2..=MAX_ADDRESSES).contains(&addresses.len());
    if count && addresses.iter().enumerate().all(sound) {
        return Ok(());
    }
    let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    Err(HelloError::Addresses(all.join(" ")))
}

/// Encodes the content of the option: the version of the protocol, then port and address of each entry.
pub(crate) fn encode(addresses: &[SocketAddr]) -> Vec<u8> {
    let mut out = vec![if addresses.iter().all(SocketAddr::is_ipv4) { V4 } else { V6 }];
    for address in addresses {
        out.extend_from_slice(&address.port().to_be_bytes());
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    out
}

/// Decodes the addresses of an option. [`validate`] decides whether they are allowed.
pub(crate) fn decode(content: &[u8]) -> Result<Vec<SocketAddr>, HelloError> {
    let malformed = || HelloError::Addresses(format!("an option of {} bytes", content.len()));
    let (version, list) = content.split_first().ok_or_else(malformed)?;
    let each = match *version {
        V4 => PORT_LEN + 4,
        V6 => PORT_LEN + 16,
        _ => return Err(malformed()),
    };
    let addresses = list.chunks(each).map(|bytes| {
        let (port, ip) = bytes.split_first_chunk::<PORT_LEN>()?;
        let ip: IpAddr = match *version {
            V4 => Ipv4Addr::from(<[u8; 4]>::try_from(ip).ok()?).into(),
            _ => Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?).into(),
        };
        Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
    });
    let addresses: Vec<SocketAddr> = addresses.collect::<Option<_>>().ok_or_else(malformed)?;
    if addresses.is_empty() { Err(malformed()) } else { Ok(addresses) }
}
