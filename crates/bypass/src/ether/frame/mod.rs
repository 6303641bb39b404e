//! Ethernet, IP and UDP headers around a datagram: written by [`Template`], read by [`parse()`].

mod checksum;
mod parse;
mod template;

pub(crate) use checksum::Sum;
pub use parse::{ParseError, Parsed, parse};
pub use template::{FrameAddresses, Mac, Template};

/// Size of an Ethernet header in bytes.
pub const ETHERNET: usize = 14;
/// Size of an IPv4 header without options in bytes.
const IPV4: usize = 20;
/// Size of an IPv6 header in bytes.
pub(crate) const IPV6: usize = 40;
/// Size of a UDP header in bytes.
const UDP: usize = 8;

/// EtherTypes of the following header.
const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_IPV6: u16 = 0x86dd;
/// EtherTypes of VLAN tags: IEEE 802.1Q, and the outer tag of two.
const TYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
/// IP protocol numbers of the following header.
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_FRAGMENT: u8 = 44;

/// Size of the largest headers of a frame in bytes: Ethernet, IPv6 and UDP.
pub const MAX_HEADERS: usize = ETHERNET + IPV6 + UDP;
