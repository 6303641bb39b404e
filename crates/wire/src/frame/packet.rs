//! From bytes to a [`Segment`]: [`Packet`] is a view of a frame that was checked once and for all.

use super::error::ParseError;
use super::layout::{
    BTH_LEN, ETHERNET_LEN, ETHERTYPE_IPV4, ICRC_LEN, IMMDT_LEN, IPV4_LEN, MAGIC, VERSION, bth, ext, flag,
    reth,
};
use super::opcode::{Opcode, Position, Transfer, nack_reason};
use super::outer::{bth_and_lengths, check_icrc, ipv4, udp_payload};
use super::psn::extend_psn;
use super::read::{array, take, time_at, u16_at, u24_at, u32_at, u64_at, zero};
use super::route::{Ecn, EthernetRoute, Route};
use crate::segment::{Ack, Body, Data, Nack, Operation, Segment};
use core::net::Ipv4Addr;
use pathweave_units::{PathId, QpNum};

/// A frame that holds a packet of ours: every length, checksum and field has been checked.
///
/// A receiver looks up the queue pair by [`Packet::dst_qp`], asks it what PSN it is near, and has the value with
/// [`Packet::segment`], which cannot fail.
///
/// ```
/// # use pathweave_wire::*; use pathweave_units::*;
/// let segment = Segment { dst_qp: QpNum(5), src_qp: QpNum(6), path: PathId(1), body: Body::Cnp };
/// let route = Route {
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
    route: Route,
    opcode: Opcode,
    /// From the BTH to the end of the payload.
    bytes: &'a [u8],
    /// Length of BTH, standard headers and extension.
    headers_len: usize,
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
        packet.route.ethernet = Some(EthernetRoute { dst: array(header, 0), src: array(header, 6) });
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
        let route = Route {
            ethernet: None,
            src_ip: Ipv4Addr::from(array(header, 12)),
            dst_ip: Ipv4Addr::from(array(header, 16)),
            src_port: u16_at(udp, 0),
            dscp: header[1] >> 2,
            ecn: Ecn::from_bits(header[1]),
            ttl: header[8],
        };
        let (opcode, headers_len, end) = bth_and_lengths(&roce[..roce.len() - ICRC_LEN])?;
        let packet = Packet { route, opcode, bytes: &roce[..end], headers_len };
        packet.check_extension()?;
        Ok(packet)
    }

    /// Addresses, entropy, and whether a switch marked the packet ([`Ecn::Experienced`]).
    pub fn route(&self) -> &Route {
        &self.route
    }
    /// The queue pair the packet is for.
    pub fn dst_qp(&self) -> QpNum {
        QpNum(u24_at(self.bytes, bth::DEST_QP))
    }
    /// The queue pair that sent it.
    pub fn src_qp(&self) -> QpNum {
        QpNum(u24_at(self.extension(), ext::SRC_QP))
    }
    /// The path it says it took.
    pub fn path(&self) -> PathId {
        PathId(u16_at(self.extension(), ext::PATH))
    }
    /// Payload without padding.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.headers_len..]
    }

    /// The value of the packet. `near` is a PSN within 2^23 of those in the packet (see [`extend_psn`]): the next
    /// expected PSN for data, the first unacknowledged PSN for answers.
    pub fn segment(&self, near: u64) -> Segment {
        let extension = self.extension();
        let psn = extend_psn(u24_at(self.bytes, bth::PSN), near);
        let body = match self.opcode {
            Opcode::Transfer(..) | Opcode::ReadRequest => Body::Data(self.data(psn)),
            Opcode::Acknowledge => match nack_reason(self.standard()[0]) {
                Some(reason) => Body::Nack(Nack {
                    expected: extend_psn(u24_at(extension, ext::NACK_EXPECTED + 1), near),
                    psn,
                    sack: u64_at(extension, ext::NACK_SACK),
                    reason,
                }),
                None => Body::Ack(ack(extension, psn, near)),
            },
            Opcode::Cnp => Body::Cnp,
            Opcode::Probe => Body::Probe { sent_at: time_at(extension, ext::PROBE_SENT_AT) },
            Opcode::ProbeReply => Body::ProbeReply {
                sent_at: time_at(extension, ext::PROBE_SENT_AT),
                received_at: time_at(extension, ext::PROBE_RECEIVED_AT),
            },
        };
        Segment { dst_qp: self.dst_qp(), src_qp: self.src_qp(), path: self.path(), body }
    }

    /// RETH, AETH and ImmDt.
    fn standard(&self) -> &'a [u8] {
        &self.bytes[BTH_LEN..BTH_LEN + self.opcode.standard_len()]
    }
    fn extension(&self) -> &'a [u8] {
        &self.bytes[BTH_LEN + self.opcode.standard_len()..self.headers_len]
    }
    fn payload_len(&self) -> u16 {
        (self.bytes.len() - self.headers_len) as u16
    }

    fn data(&self, psn: u64) -> Data {
        let (standard, extension) = (self.standard(), self.extension());
        let flags = extension[ext::FLAGS];
        let offset = u32_at(extension, ext::DATA_OFFSET);
        let reference = u32_at(extension, ext::DATA_REFERENCE);
        let immediate = flags & flag::IMMEDIATE != 0;
        let mut data = Data {
            psn,
            msn: u32_at(extension, ext::DATA_MSN),
            offset,
            len: self.payload_len(),
            op: Operation::ReadRequest,
            last: true,
            retransmit: flags & flag::RETRANSMIT != 0,
            rkey: 0,
            remote_addr: 0,
            imm: 0,
            receive_index: 0,
            sent_at: time_at(extension, ext::DATA_SENT_AT),
        };
        match self.opcode {
            Opcode::Transfer(transfer, position, with_imm) => {
                data.last = position.is_last();
                if with_imm {
                    data.imm = u32_at(standard, standard.len() - IMMDT_LEN);
                }
                match transfer {
                    Transfer::Send => {
                        data.op = if immediate { Operation::SendImm } else { Operation::Send };
                        data.receive_index = reference;
                    }
                    Transfer::Write => {
                        data.op = if immediate { Operation::WriteImm } else { Operation::Write };
                        data.receive_index = reference;
                        data.rkey = u32_at(standard, reth::R_KEY);
                        data.remote_addr = u64_at(standard, reth::VIRTUAL_ADDRESS) - u64::from(offset);
                    }
                    Transfer::ReadResponse => {
                        data.op = Operation::ReadResponse;
                        data.remote_addr = reference.into();
                    }
                }
            }
            _ => {
                data.rkey = u32_at(standard, reth::R_KEY);
                data.remote_addr = u64_at(standard, reth::VIRTUAL_ADDRESS);
                data.imm = u32_at(standard, reth::DMA_LENGTH);
            }
        }
        data
    }

    fn check_extension(&self) -> Result<(), ParseError> {
        let extension = self.extension();
        if extension[ext::MAGIC] != MAGIC {
            return Err(ParseError::Magic(extension[ext::MAGIC]));
        }
        if extension[ext::VERSION] != VERSION {
            return Err(ParseError::Version(extension[ext::VERSION]));
        }
        let flags = extension[ext::FLAGS];
        let allowed = match self.opcode {
            // An ImmDt header without the flag would be a contradiction too; it is found below.
            Opcode::Transfer(Transfer::Send | Transfer::Write, ..) => flag::RETRANSMIT | flag::IMMEDIATE,
            Opcode::Transfer(Transfer::ReadResponse, ..) | Opcode::ReadRequest => flag::RETRANSMIT,
            _ => 0,
        };
        if flags & !allowed != 0 {
            return Err(ParseError::Flags { flags, allowed });
        }
        match self.opcode {
            Opcode::Transfer(transfer, position, with_imm) => {
                let immediate = flags & flag::IMMEDIATE != 0;
                if position.is_last() && immediate != with_imm {
                    let expected = if with_imm { allowed } else { flag::RETRANSMIT };
                    return Err(ParseError::Flags { flags, allowed: expected });
                }
                self.check_transfer(transfer, position, immediate)
            }
            Opcode::ReadRequest => {
                zero("reference of a READ request", u32_at(extension, ext::DATA_REFERENCE))
            }
            Opcode::Acknowledge => {
                zero("AETH message sequence number", u24_at(self.standard(), 1))?;
                // ACK_CUMULATIVE and NACK_EXPECTED are at the same place.
                zero("high byte of the acknowledged PSN", extension[ext::ACK_CUMULATIVE].into())
            }
            Opcode::Cnp | Opcode::Probe | Opcode::ProbeReply => zero("PSN", u24_at(self.bytes, bth::PSN)),
        }
    }

    fn check_transfer(&self, transfer: Transfer, position: Position, imm: bool) -> Result<(), ParseError> {
        let (extension, standard, len) = (self.extension(), self.standard(), self.payload_len());
        let offset = u32_at(extension, ext::DATA_OFFSET);
        if Position::of(offset, position.is_last()) != position {
            return Err(ParseError::Position { offset, position: position.name() });
        }
        if u64::from(offset) + u64::from(len) > 1 << 32 {
            return Err(ParseError::OffsetOverflow { offset, len });
        }
        if transfer == Transfer::Write {
            let dma = u32_at(standard, reth::DMA_LENGTH);
            if dma != u32::from(len) {
                return Err(ParseError::DmaLength { dma, len });
            }
            let address = u64_at(standard, reth::VIRTUAL_ADDRESS);
            let last_byte = address.checked_add(u64::from(len.saturating_sub(1)));
            if address < u64::from(offset) || last_byte.is_none() {
                return Err(ParseError::Address { address, offset, len });
            }
            if !imm {
                zero("reference of a WRITE without immediate", u32_at(extension, ext::DATA_REFERENCE))?;
            }
        }
        Ok(())
    }
}

fn ack(extension: &[u8], psn: u64, near: u64) -> Ack {
    Ack {
        cumulative: extend_psn(u24_at(extension, ext::ACK_CUMULATIVE + 1), near),
        psn,
        sack: u64_at(extension, ext::ACK_SACK),
        echo_sent_at: time_at(extension, ext::ACK_ECHO_SENT_AT),
        received_at: time_at(extension, ext::ACK_RECEIVED_AT),
        packets: u16_at(extension, ext::ACK_PACKETS),
        marked: u16_at(extension, ext::ACK_MARKED),
    }
}
