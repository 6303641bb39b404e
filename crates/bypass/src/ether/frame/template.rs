//! Prepared headers of frames to one peer on one path.

use std::net::{IpAddr, SocketAddr};

use pathweave_wire::Ecn;

use super::checksum::Sum;
use super::{ETHERNET, IPV4, IPV6, MAX_HEADERS, PROTOCOL_UDP, TYPE_IPV4, TYPE_IPV6, UDP};

/// Ethernet address.
pub type Mac = [u8; 6];

/// Addresses of the two ends of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAddresses {
    /// Ethernet address of this end.
    pub from_mac: Mac,
    /// Ethernet address of the next hop.
    pub to_mac: Mac,
    /// Address of this end, with the source port of the path.
    pub from: SocketAddr,
    /// Address of the peer, of the same address family.
    pub to: SocketAddr,
}

/// Hop limit of packets.
const HOPS: u8 = 64;
/// IPv4 flag that prevents fragmentation. Such packets need no identification (RFC 6864).
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// Offsets of the length fields of IPv4 and IPv6, from the IP header.
const IPV4_LENGTH: usize = 2;
const IPV6_LENGTH: usize = 4;
const IPV4_CHECKSUM: usize = 10;

/// Headers of frames between two ends, without the fields that differ between datagrams: lengths and checksums.
///
/// Over IPv4, datagrams have no UDP checksum (RFC 768: 0), like those of RoCEv2. Their payload has a CRC or an
/// authentication tag of its own, and a sum over all bytes would cost as much as a copy of them at either end. Over
/// IPv6 they must have one (RFC 8200, section 8.1).
#[derive(Clone, Copy, Debug)]
pub struct Template {
    bytes: [u8; MAX_HEADERS],
    ip_bytes: usize,
    /// Partial checksum for IPv6: both addresses and the protocol.
    addresses: Option<Sum>,
}

impl Template {
    /// Creates the headers. Returns `None` if the ends are of different address families.
    pub fn new(ends: FrameAddresses, ecn: Ecn) -> Option<Self> {
        let mut bytes = [0; MAX_HEADERS];
        bytes[..6].copy_from_slice(&ends.to_mac);
        bytes[6..12].copy_from_slice(&ends.from_mac);
        let ip = &mut bytes[ETHERNET..];
        let (kind, ip_bytes) = match (ends.from.ip(), ends.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                ip[0] = 0x45;
                ip[1] = ecn as u8;
                ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
                ip[8] = HOPS;
                ip[9] = PROTOCOL_UDP;
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..20].copy_from_slice(&to.octets());
                (TYPE_IPV4, IPV4)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                // The version, then the traffic class, which spans two bytes.
                ip[0] = 0x60;
                ip[1] = (ecn as u8) << 4;
                ip[6] = PROTOCOL_UDP;
                ip[7] = HOPS;
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..40].copy_from_slice(&to.octets());
                (TYPE_IPV6, IPV6)
            }
            _ => return None,
        };
        bytes[12..14].copy_from_slice(&kind.to_be_bytes());
        let udp = ETHERNET + ip_bytes;
        bytes[udp..udp + 2].copy_from_slice(&ends.from.port().to_be_bytes());
        bytes[udp + 2..udp + 4].copy_from_slice(&ends.to.port().to_be_bytes());
        let addresses =
            (ip_bytes == IPV6).then(|| Sum::of_addresses(ends.from.ip(), ends.to.ip(), PROTOCOL_UDP));
        Some(Template { bytes, ip_bytes, addresses })
    }

    /// Returns the size of the headers in bytes.
    pub fn len(&self) -> usize {
        ETHERNET + self.ip_bytes + UDP
    }

    /// Returns false, as headers are never empty.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes a frame with this datagram to `out` and returns its length. Returns `None` if it does not fit there or
    /// exceeds the size of an IP packet.
    #[inline]
    pub fn write(&self, datagram: &[u8], out: &mut [u8]) -> Option<usize> {
        let headers = self.len();
        let udp_bytes = u16::try_from(UDP + datagram.len()).ok()?;
        let frame = out.get_mut(..headers + datagram.len())?;
        let (header, body) = frame.split_at_mut(headers);
        header.copy_from_slice(&self.bytes[..headers]);
        let (ip, udp) = header[ETHERNET..].split_at_mut(self.ip_bytes);
        if self.ip_bytes == IPV4 {
            let ipv4_bytes = udp_bytes.checked_add(IPV4 as u16)?;
            ip[IPV4_LENGTH..IPV4_LENGTH + 2].copy_from_slice(&ipv4_bytes.to_be_bytes());
            let sum = Sum::default().with(ip).complement();
            ip[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&sum);
        } else {
            ip[IPV6_LENGTH..IPV6_LENGTH + 2].copy_from_slice(&udp_bytes.to_be_bytes());
        }
        udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
        body.copy_from_slice(datagram);
        if let Some(addresses) = self.addresses {
            let sum = addresses.with_length(udp_bytes).with(udp).with(body).complement();
            // Zero means that there is no checksum. All ones represent the same number.
            udp[6..8].copy_from_slice(&if sum == [0, 0] { [0xff, 0xff] } else { sum });
        }
        Some(headers + body.len())
    }
}
