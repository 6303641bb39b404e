//! Frames with their outer headers. [`Datagram`] interprets the UDP payload.

use super::datagram::Datagram;
use super::error::ParseError;
use super::layout::{ETHERNET_LEN, ETHERTYPE_IPV4, ICRC_LEN, IPV4_LEN};
use super::outer_headers::{check_icrc, ipv4, udp_payload};
use super::read::{array, take, u16_at};
use super::route::{Ecn, EthernetAddresses, FrameAddressing};
use core::net::Ipv4Addr;
use core::ops::Deref;

/// A frame that holds a packet of our format. Every length, checksum and field has been checked.
///
/// A receiver looks up the queue pair by [`dst_qp`](Datagram::dst_qp), asks it for a PSN near those in the packet,
/// and gets the value from [`segment`](Datagram::segment), which cannot fail.
///
/// ```
/// # use pathweave_wire::*; use pathweave_units::*;
/// let segment = Segment { dst_qp: QpNum(5), src_qp: QpNum(6), path: PathId(1), pull_target: None, body: Body::Cnp };
/// let route = FrameAddressing {
///     ethernet: None,
///     src_ip: [10, 0, 0, 1].into(),
///     dst_ip: [10, 0, 0, 2].into(),
///     src_port: entropy_port(segment.src_qp, segment.dst_qp, segment.path),
///     dscp: 48,
///     ecn: Ecn::NotCapable,
///     ttl: 64,
/// };
/// let mut buffer = [0; 128];
/// let len = emit(&segment, &route, &[], &mut buffer)?;
///
/// let packet = Packet::parse_ipv4(&buffer[..len]).expect("our own frame");
/// assert_eq!(packet.dst_qp(), QpNum(5));
/// assert_eq!(packet.segment(0), segment);
/// # Ok::<(), EmitError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    route: FrameAddressing,
    datagram: Datagram<'a>,
}

impl<'a> Packet<'a> {
    /// Checks a frame that starts with an Ethernet header. Bytes after the IPv4 packet (padding of short frames,
    /// a frame check sequence) are ignored.
    ///
    /// # Errors
    /// [`ParseError`] names the first field that is wrong, outermost header first.
    pub fn parse_ethernet(frame: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let header = take(frame, ETHERNET_LEN, "Ethernet header")?;
        let ethertype = u16_at(header, 12);
        if ethertype != ETHERTYPE_IPV4 {
            return Err(ParseError::EtherType(ethertype));
        }
        let mut packet = Packet::parse_ipv4(&frame[ETHERNET_LEN..])?;
        packet.route.ethernet = Some(EthernetAddresses { dst: array(header, 0), src: array(header, 6) });
        Ok(packet)
    }

    /// Checks a frame that starts with an IPv4 header. Bytes after the IPv4 packet are ignored.
    ///
    /// # Errors
    /// As [`Packet::parse_ethernet`].
    pub fn parse_ipv4(frame: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let ip = ipv4(frame)?;
        let (header, udp) = ip.split_at(IPV4_LEN);
        let roce = udp_payload(header, udp)?;
        check_icrc(ip, roce)?;
        let route = FrameAddressing {
            ethernet: None,
            src_ip: Ipv4Addr::from(array(header, 12)),
            dst_ip: Ipv4Addr::from(array(header, 16)),
            src_port: u16_at(udp, 0),
            dscp: header[1] >> 2,
            ecn: Ecn::from_bits(header[1]),
            ttl: header[8],
        };
        Ok(Packet { route, datagram: Datagram::parse(&roce[..roce.len() - ICRC_LEN])? })
    }

    /// Addresses, entropy port and ECN codepoint. [`Ecn::Experienced`]: a switch marked the packet.
    pub fn route(&self) -> &FrameAddressing {
        &self.route
    }
}

impl<'a> Deref for Packet<'a> {
    type Target = Datagram<'a>;
    fn deref(&self) -> &Datagram<'a> {
        &self.datagram
    }
}
