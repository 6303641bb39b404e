//! Converts a [`Segment`] to bytes.

use super::checksum::{icrc, ipv4_checksum};
use super::error::EmitError;
use super::layout::{
    ETHERNET_LEN, ETHERTYPE_IPV4, ICRC_LEN, IP_PROTOCOL_UDP, IPV4_LEN, MAGIC, PKEY, PULL_TARGET_LEN,
    ROCE_PORT, UDP_LEN, VERSION, bth, ext, flag, reth,
};
use super::opcode::{Opcode, SYNDROME_ACK, Transfer, has_immediate, syndrome};
use super::psn::wire_psn;
use super::route::FrameAddressing;
use super::write::{put, put_u24};
use crate::credit::CreditNumber;
use crate::segment::{
    Ack, Body, Data, Missing, MissingCause, Nack, NackReason, NoticePermission, Operation, RdData, Segment,
};

/// Largest value of a 24-bit field.
const MAX_24: u64 = 0xff_ffff;

/// Bytes from the start of the IPv4 header to the end of the ICRC, that is of the frame without its Ethernet header.
pub fn ip_packet_len(segment: &Segment) -> usize {
    let inside = headers_len(segment) + payload_len(&segment.body);
    IPV4_LEN + UDP_LEN + inside.next_multiple_of(4) + ICRC_LEN
}

/// Writes `segment` with its payload as a frame at the start of `out`. Returns the length of the frame.
///
/// The frame has no Ethernet FCS, which adapters add. Fields that [`Segment::normalized`] clears are not written.
///
/// # Errors
/// If the buffer is too small, the length of the payload differs from the segment's, or a number does not fit its
/// field (queue pairs have 24 bits, a message ends within 2^32 bytes). The contents of `out` are then unspecified.
pub fn emit(
    segment: &Segment,
    route: &FrameAddressing,
    payload: &[u8],
    out: &mut [u8],
) -> Result<usize, EmitError> {
    check(segment)?;
    let expected = payload_len(&segment.body);
    if payload.len() != expected {
        return Err(EmitError::PayloadLength { expected, given: payload.len() });
    }
    let start = if route.ethernet.is_some() { ETHERNET_LEN } else { 0 };
    let needed = start + ip_packet_len(segment);
    if out.len() < needed {
        return Err(EmitError::BufferTooSmall { needed, available: out.len() });
    }
    let out = &mut out[..needed];
    if let Some(ethernet) = route.ethernet {
        put(out, 0, ethernet.dst);
        put(out, 6, ethernet.src);
        put(out, 12, ETHERTYPE_IPV4.to_be_bytes());
    }
    let packet = &mut out[start..];
    let end = packet.len() - ICRC_LEN;
    emit_ip_udp(route, packet);

    let body = &mut packet[IPV4_LEN + UDP_LEN..end];
    let headers = headers_len(segment);
    let pad = body.len() - headers - payload.len();
    emit_headers(segment, pad as u8, &mut body[..headers]);
    body[headers..headers + payload.len()].copy_from_slice(payload);
    body[headers + payload.len()..].fill(0);

    let crc = icrc(&packet[..end]);
    put(packet, end, crc.to_le_bytes());
    Ok(needed)
}

pub(super) fn payload_len(body: &Body) -> usize {
    match body {
        Body::Data(data) if data.op != Operation::ReadRequest => usize::from(data.len),
        Body::Rd(data) => usize::from(data.len),
        _ => 0,
    }
}

pub(super) fn headers_len(segment: &Segment) -> usize {
    let Segment { body, .. } = segment;
    let target = if pull_target(segment).is_some() { PULL_TARGET_LEN } else { 0 };
    Opcode::for_body(body).header_len(matches!(body, Body::Nack(_))) + target
}

/// Pull target that the frame carries: that of a data packet.
#[inline]
fn pull_target(segment: &Segment) -> Option<CreditNumber> {
    segment.pull_target.filter(|_| matches!(segment.body, Body::Data(_)))
}

/// Checks that every number fits its field.
pub(super) fn check(segment: &Segment) -> Result<(), EmitError> {
    let at_most = |field, value: u64, max: u64| {
        if value <= max { Ok(()) } else { Err(EmitError::OutOfRange { field, value, max }) }
    };
    at_most("destination queue pair", segment.dst_qp.0.into(), MAX_24)?;
    at_most("source queue pair", segment.src_qp.0.into(), MAX_24)?;
    if let Body::Control(control) = &segment.body {
        control.fits()?;
    }
    if let Body::Missing(Missing { missing, .. }) = segment.body {
        at_most("packets before the first that is missing", missing.trailing_zeros().into(), 0)?;
    }
    if let Body::Ack(ack) = &segment.body {
        at_most("distance from the acknowledged PSN to the trigger", ack.back.into(), Ack::MAX_BACK.into())?;
    }
    if let Body::Data(data) = &segment.body {
        let (offset, len) = (u64::from(data.offset), u64::from(data.len));
        match data.op {
            Operation::ReadRequest => at_most("payload of a READ request", len, 0)?,
            Operation::ReadResponse => {
                at_most("request's message sequence number", data.remote_addr, u32::MAX.into())?;
            }
            Operation::Write | Operation::WriteImm => {
                let total = data.message_bytes();
                if len == 0 {
                    // A packet without payload is its whole message.
                    at_most("offset of a packet without payload", offset, 0)?;
                }
                at_most(
                    "end of the packet in its message",
                    offset + len,
                    if data.last { total } else { total - 1 },
                )?;
                // The last byte of the message must have an address. A message of 0 bytes counts as one of 1 byte
                // here.
                at_most("remote address", data.remote_addr, u64::MAX - total.saturating_sub(1))?;
            }
            Operation::Send | Operation::SendImm => {}
        }
        at_most("end of the packet in its message", offset + len, 1 << 32)?;
        let room = u64::from(u16::MAX) - (IPV4_LEN + UDP_LEN + headers_len(segment) + ICRC_LEN + 3) as u64;
        at_most("payload", len, room)?;
    }
    if let Body::Rd(data) = &segment.body {
        let (offset, len) = (u64::from(data.offset), u64::from(data.len));
        at_most("end of the packet in its message", offset + len, 1 << 32)?;
        let headers = IPV4_LEN + UDP_LEN + headers_len(segment) + ICRC_LEN + 3;
        at_most("payload", len, u64::from(u16::MAX) - headers as u64)?;
        if len == 0 {
            return Err(EmitError::NoPayload);
        }
        if !data.multi {
            at_most("offset in a message of one packet", offset, 0)?;
        }
    }
    Ok(())
}

pub(super) fn emit_ip_udp(route: &FrameAddressing, packet: &mut [u8]) {
    let total = packet.len() as u16;
    // The packet may not be fragmented and therefore needs no identification (RFC 6864).
    put(packet, 0, [0x45, (route.dscp & 0x3f) << 2 | route.ecn as u8]);
    put(packet, 2, total.to_be_bytes());
    put(packet, 4, [0, 0, 0x40, 0, route.ttl, IP_PROTOCOL_UDP, 0, 0]);
    put(packet, 12, route.src_ip.octets());
    put(packet, 16, route.dst_ip.octets());
    let checksum = ipv4_checksum(&packet[..IPV4_LEN]);
    put(packet, 10, checksum.to_be_bytes());

    let udp = &mut packet[IPV4_LEN..];
    put(udp, 0, route.src_port.to_be_bytes());
    put(udp, 2, ROCE_PORT.to_be_bytes());
    put(udp, 4, (total - IPV4_LEN as u16).to_be_bytes());
    put(udp, 6, [0, 0]); // the ICRC protects more than the UDP checksum would
}

/// Writes BTH, RETH, AETH, ImmDt and extension.
pub(super) fn emit_headers(segment: &Segment, pad: u8, out: &mut [u8]) {
    out.fill(0);
    let opcode = Opcode::for_body(&segment.body);
    let (psn, ack_request) = match &segment.body {
        Body::Data(data) => (data.psn, data.last || data.ack_request),
        Body::Rd(data) => (data.psn, false),
        Body::Ack(ack) => (ack.psn, false),
        Body::Nack(nack) => (nack.psn, false),
        Body::Missing(missing) => (missing.first, false),
        Body::Control(control) => (control.psn(), false),
        Body::Cnp => (0, false),
    };
    put(out, bth::OPCODE, [opcode.to_byte(), pad << 4]);
    put(out, bth::PKEY, PKEY.to_be_bytes());
    put_u24(out, bth::DEST_QP, segment.dst_qp.0);
    put(out, bth::ACK_REQ, [if ack_request { 0x80 } else { 0 }]);
    put_u24(out, bth::PSN, wire_psn(psn));

    let (standard, extension) = out[super::layout::BTH_LEN..].split_at_mut(opcode.standard_len());
    put(extension, ext::MAGIC, [MAGIC, VERSION]);
    put(extension, ext::PATH, segment.path.0.to_be_bytes());
    put_u24(extension, ext::SRC_QP, segment.src_qp.0);
    match &segment.body {
        Body::Data(data) => {
            emit_data(data, opcode, standard, extension);
            if let Some(target) = pull_target(segment) {
                extension[ext::FLAGS] |= flag::PULL_TARGET;
                let at = extension.len() - PULL_TARGET_LEN;
                put(extension, at, target.to_wire().to_be_bytes());
            }
        }
        Body::Ack(ack) => {
            standard[0] = SYNDROME_ACK;
            emit_ack(ack, extension);
        }
        Body::Nack(nack) => {
            standard[0] = syndrome(nack.reason);
            emit_nack(nack, extension);
        }
        Body::Cnp => {}
        Body::Rd(data) => emit_rd(data, extension),
        Body::Control(control) => control.write(extension),
        Body::Missing(missing) => {
            extension[ext::FLAGS] = if missing.cause == MissingCause::Late { flag::LATE } else { 0 };
            put(extension, ext::MISSING_BITS, missing.missing.to_be_bytes());
        }
    }
}

fn emit_data(data: &Data, opcode: Opcode, standard: &mut [u8], extension: &mut [u8]) {
    match opcode {
        Opcode::Transfer(Transfer::Write, ..) => {
            let address = data.remote_addr.wrapping_add(data.offset.into());
            emit_reth(address, data.rkey, data.message_bytes().saturating_sub(1) as u32, standard);
        }
        Opcode::ReadRequest => emit_reth(data.remote_addr, data.rkey, data.imm, standard),
        _ => {}
    }
    if let Opcode::Transfer(_, _, true) = opcode {
        let at = standard.len() - super::layout::IMMDT_LEN;
        put(standard, at, data.imm.to_be_bytes());
    }
    let mut flags = 0;
    if data.retransmit {
        flags |= flag::RETRANSMIT;
    }
    if has_immediate(data.op) {
        flags |= flag::IMMEDIATE;
    }
    extension[ext::FLAGS] = flags;
    let reference = match data.op {
        Operation::ReadResponse => data.remote_addr as u32,
        Operation::Send | Operation::SendImm => data.receive_index,
        Operation::Write | Operation::WriteImm | Operation::ReadRequest => (data.rkey >> 32) as u32,
    };
    put(extension, ext::DATA_MSN, data.msn.to_be_bytes());
    put(extension, ext::DATA_OFFSET, data.offset.to_be_bytes());
    put(extension, ext::DATA_REFERENCE, reference.to_be_bytes());
    put(extension, ext::DATA_SENT_AT, data.sent_at.as_ps().to_be_bytes());
    if let Opcode::Transfer(Transfer::Write, _, true) = opcode {
        put(extension, ext::DATA_RECEIVE, data.receive_index.to_be_bytes());
    }
}

/// Writes the extension. The RDETH before it stays zero: there are no reliable-datagram contexts.
fn emit_rd(data: &RdData, out: &mut [u8]) {
    out[ext::FLAGS] = if data.retransmit { flag::RETRANSMIT } else { 0 };
    out[ext::RD_TYPE] = if data.multi { flag::MULTI } else { 0 };
    put(out, ext::RD_MSG_ID, data.msg_id.to_be_bytes());
    put(out, ext::RD_LEN, data.len.to_be_bytes());
    put(out, ext::RD_OFFSET, data.offset.to_be_bytes());
}

/// Writes the RETH with the low half of the key. The high half is in the extension.
fn emit_reth(address: u64, rkey: u64, length: u32, out: &mut [u8]) {
    put(out, reth::VIRTUAL_ADDRESS, address.to_be_bytes());
    put(out, reth::R_KEY, (rkey as u32).to_be_bytes());
    put(out, reth::DMA_LENGTH, length.to_be_bytes());
}

fn emit_ack(ack: &Ack, out: &mut [u8]) {
    out[ext::FLAGS] = if ack.notices == NoticePermission::Paused { flag::PAUSED } else { 0 };
    out[ext::ACK_BACK] = ack.back;
    put_u24(out, ext::ACK_CUMULATIVE, wire_psn(ack.cumulative));
    put(out, ext::ACK_PACKETS, ack.packets.to_be_bytes());
    put(out, ext::ACK_MARKED, ack.marked.to_be_bytes());
    put(out, ext::ACK_SACK, ack.sack.to_be_bytes());
    put(out, ext::ACK_ECHO_SENT_AT, ack.echo_sent_at.as_ps().to_be_bytes());
    put(out, ext::ACK_RECEIVED_AT, ack.received_at.as_ps().to_be_bytes());
}

fn emit_nack(nack: &Nack, out: &mut [u8]) {
    let marked = nack.marked && matches!(nack.reason, NackReason::Trimmed(_));
    out[ext::FLAGS] = if marked { flag::MARKED } else { 0 };
    put_u24(out, ext::NACK_EXPECTED + 1, wire_psn(nack.expected));
    put(out, ext::NACK_SACK, nack.sack.to_be_bytes());
}
