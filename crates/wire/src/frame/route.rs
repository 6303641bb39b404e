//! Values that a frame needs besides the segment: addresses and the fields of the IP header.

use core::net::Ipv4Addr;
use pathweave_units::{PathId, QpNum, mix64};

/// Explicit congestion notification codepoint (RFC 3168): the two low bits of the type of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable: a congested switch drops the packet.
    NotCapable = 0,
    /// ECN-capable, ECT(1).
    Capable1 = 1,
    /// ECN-capable, ECT(0), the default: the codepoint that senders use.
    #[default]
    Capable0 = 2,
    /// Congestion experienced: a switch marked the packet.
    Experienced = 3,
}

impl Ecn {
    /// Decodes the two low bits; the others are ignored.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotCapable,
            1 => Ecn::Capable1,
            2 => Ecn::Capable0,
            _ => Ecn::Experienced,
        }
    }
}

/// Ethernet addresses of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EthernetAddresses {
    /// Destination address.
    pub dst: [u8; 6],
    /// Source address.
    pub src: [u8; 6],
}

/// Addresses and IP fields of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameAddressing {
    /// Ethernet addresses, or `None` if frames start with the IPv4 header.
    pub ethernet: Option<EthernetAddresses>,
    /// Source address.
    pub src_ip: Ipv4Addr,
    /// Destination address.
    pub dst_ip: Ipv4Addr,
    /// UDP source port: the entropy that equal-cost routing hashes. See [`entropy_port`].
    pub src_port: u16,
    /// Differentiated services codepoint, 0 to 63.
    pub dscp: u8,
    /// Explicit congestion notification codepoint.
    pub ecn: Ecn,
    /// Time to live.
    pub ttl: u8,
}

/// Returns the UDP source port for a path of a queue pair, within RoCEv2's range of 0xc000 to 0xffff (annex A17.3.1).
/// Ports start at a point that depends on both queue pairs. Up to 16,384 paths of one queue pair have different
/// ports.
pub const fn entropy_port(src_qp: QpNum, dst_qp: QpNum, path: PathId) -> u16 {
    let start = mix64((src_qp.0 as u64) << 32 | dst_qp.0 as u64) as u16;
    0xc000 | (start.wrapping_add(path.0) & 0x3fff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn paths_of_a_queue_pair_have_different_ports() {
        let port = |path| entropy_port(QpNum(7), QpNum(9), PathId(path));
        let ports: BTreeSet<u16> = (0..16_384).map(port).collect();
        assert_eq!(ports.len(), 16_384);
        assert_eq!(*ports.first().unwrap(), 0xc000);
        assert_eq!(port(16_384), port(0));
    }

    #[test]
    fn queue_pairs_start_at_different_ports() {
        let starts: BTreeSet<u16> = (0..100).map(|qp| entropy_port(QpNum(qp), QpNum(1), PathId(0))).collect();
        assert!(starts.len() > 95, "{}", starts.len());
    }
}
