//! Ethernet, IP and UDP around a datagram, as bytes: written by [`Template`], read by [`parse`].

mod checksum;
mod parse;
mod template;

pub(crate) use checksum::Sum;
pub use parse::{Flaw, Parsed, parse};
pub use template::{Ends, Mac, Template};

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
const IPV4: usize = 20;
/// Bytes of an IPv6 header.
pub(crate) const IPV6: usize = 40;
/// Bytes of a UDP header.
const UDP: usize = 8;

/// What Ethernet says is behind its header.
const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_IPV6: u16 = 0x86dd;
/// Tags of virtual networks: IEEE 802.1Q, and the outer one of two.
const TYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
/// What IP says is behind its header.
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_FRAGMENT: u8 = 44;

/// The longest headers of a frame, in bytes: Ethernet, IPv6 and UDP.
pub const MAX_HEADERS: usize = ETHERNET + IPV6 + UDP;
