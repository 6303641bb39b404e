//! Standard RoCEv2 frames, as an adapter on the market would send them: without the extension header, for programs
//! that do not know it. They carry less than our frames, so they cannot be turned back into a [`Segment`].

use super::checksum::icrc;
use super::emit::{check, emit_ip_udp, payload_len};
use super::error::EmitError;
use super::layout::{
    AETH_LEN, BTH_LEN, ETHERNET_LEN, ETHERTYPE_IPV4, ICRC_LEN, IMMDT_LEN, IPV4_LEN, PKEY, RETH_LEN, UDP_LEN,
    bth, reth,
};
use super::opcode::{Opcode, SYNDROME_ACK, syndrome};
use super::psn::wire_psn;
use super::route::FrameAddressing;
use super::write::{put, put_u24};
use crate::segment::{Body, Data, NackReason, Operation, Segment};

/// Congestion notification packet (annex A17.9.3).
const CNP_OPCODE: u8 = 0x81;
const CNP_RESERVED_LEN: usize = 16;
/// Mask of InfiniBand's reliable-connection opcodes, which are the low six bits of ours.
const RELIABLE_CONNECTION: u8 = 0x3f;

/// Writes `segment` as a standard RoCEv2 frame at the start of `out`, with a payload of zeros. Returns its length, or
/// `None` for packets that RoCEv2 does not have (probes, notices, datagrams).
///
/// `message_bytes` is the length of a WRITE, which its first packet carries. Acknowledgements carry the cumulative
/// PSN, and 0 as message number.
///
/// # Errors
/// If the buffer is too small, or a number does not fit its field.
pub fn emit_standard(
    segment: &Segment,
    message_bytes: u32,
    route: &FrameAddressing,
    out: &mut [u8],
) -> Result<Option<usize>, EmitError> {
    let Some(extended) = extended_len(&segment.body) else { return Ok(None) };
    check(segment)?;
    let padded = payload_len(&segment.body).next_multiple_of(4);
    let start = if route.ethernet.is_some() { ETHERNET_LEN } else { 0 };
    let needed = start + IPV4_LEN + UDP_LEN + BTH_LEN + extended + padded + ICRC_LEN;
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
    emit_ip_udp(route, packet);
    let end = packet.len() - ICRC_LEN;
    let body = &mut packet[IPV4_LEN + UDP_LEN..end];
    body.fill(0);
    headers(segment, message_bytes, (padded - payload_len(&segment.body)) as u8, body);
    let crc = icrc(&packet[..end]);
    put(packet, end, crc.to_le_bytes());
    Ok(Some(needed))
}

/// Bytes between BTH and payload, or `None` if the packet has no standard form.
fn extended_len(body: &Body) -> Option<usize> {
    match body {
        Body::Data(data) => {
            let immediate = data.last && matches!(data.op, Operation::SendImm | Operation::WriteImm);
            let first = match data.op {
                _ if has_reth(data) => RETH_LEN,
                Operation::ReadResponse if data.offset == 0 || data.last => AETH_LEN,
                _ => 0,
            };
            Some(first + if immediate { IMMDT_LEN } else { 0 })
        }
        Body::Ack(_) | Body::Nack(_) => Some(AETH_LEN),
        Body::Cnp => Some(CNP_RESERVED_LEN),
        _ => None,
    }
}

fn has_reth(data: &Data) -> bool {
    match data.op {
        Operation::Write | Operation::WriteImm => data.offset == 0,
        Operation::ReadRequest => true,
        _ => false,
    }
}

fn headers(segment: &Segment, message_bytes: u32, pad: u8, out: &mut [u8]) {
    let opcode = match segment.body {
        Body::Cnp => CNP_OPCODE,
        _ => Opcode::for_body(&segment.body).to_byte() & RELIABLE_CONNECTION,
    };
    let (psn, ask) = match &segment.body {
        Body::Data(data) => (data.psn, data.last || data.ack_request),
        Body::Ack(ack) => (ack.cumulative.wrapping_sub(1), false),
        Body::Nack(nack) => (nack.expected, false),
        _ => (0, false),
    };
    out[bth::OPCODE] = opcode;
    out[bth::FLAGS] = pad << 4;
    put(out, bth::PKEY, PKEY.to_be_bytes());
    put_u24(out, bth::DEST_QP, segment.dst_qp.0);
    out[bth::ACK_REQ] = if ask { 0x80 } else { 0 };
    put_u24(out, bth::PSN, wire_psn(psn));
    let rest = &mut out[BTH_LEN..];
    match &segment.body {
        Body::Data(data) => {
            let mut at = 0;
            if has_reth(data) {
                let length = match data.op {
                    // A READ of 0 bytes has a nonzero offset.
                    Operation::ReadRequest => data.imm.wrapping_add(u32::from(data.offset == 0)),
                    _ => message_bytes,
                };
                put(rest, reth::VIRTUAL_ADDRESS, data.remote_addr.to_be_bytes());
                // A standard key has 32 bits.
                put(rest, reth::R_KEY, (data.rkey as u32).to_be_bytes());
                put(rest, reth::DMA_LENGTH, length.to_be_bytes());
                at = RETH_LEN;
            } else if data.op == Operation::ReadResponse && (data.offset == 0 || data.last) {
                rest[0] = SYNDROME_ACK;
                at = AETH_LEN;
            }
            if data.last && matches!(data.op, Operation::SendImm | Operation::WriteImm) {
                put(rest, at, data.imm.to_be_bytes());
            }
        }
        Body::Ack(_) => rest[0] = SYNDROME_ACK,
        Body::Nack(nack) => {
            // The syndromes of these two reasons are our own, which other programs do not know.
            let known = match nack.reason {
                NackReason::BeyondWindow | NackReason::Trimmed(_) => NackReason::Sequence,
                reason => reason,
            };
            rest[0] = syndrome(known);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::control::Control;
    use crate::segment::{Ack, Nack};
    use crate::{Ecn, EthernetAddresses, Framing};
    use pathweave_units::{PathId, QpNum, Time};
    use proptest::prelude::*;

    const ROUTE: FrameAddressing = FrameAddressing {
        ethernet: Some(EthernetAddresses { dst: [2, 0, 0, 0, 0, 1], src: [2, 0, 0, 0, 0, 2] }),
        src_ip: Ipv4Addr::new(10, 0, 0, 2),
        dst_ip: Ipv4Addr::new(10, 0, 0, 1),
        src_port: 0xc123,
        dscp: 26,
        ecn: Ecn::Capable0,
        ttl: 64,
    };

    fn frame(body: Body, message_bytes: u32) -> Vec<u8> {
        let segment = Segment::new(QpNum(0x0a_0b0c), QpNum(7), PathId(3), body);
        let mut out = [0xee; 9_200];
        let len = emit_standard(&segment, message_bytes, &ROUTE, &mut out).unwrap().unwrap();
        // Bytes that the simulator counts, without preamble, gap and FCS.
        let counted = Framing::Rocev2.wire_bytes(&segment) as usize - 24;
        assert_eq!(len.max(60), counted);
        out[..len].to_vec()
    }

    fn data(op: Operation, offset: u32, len: u16, last: bool) -> Body {
        Body::Data(Data {
            psn: 0x1_2345_6789,
            msn: 4,
            offset,
            len,
            op,
            last,
            retransmit: true,
            rkey: 0xbeef,
            remote_addr: 0x1122_3344_5566_7788,
            imm: 0xcafe,
            ..Data::EMPTY
        })
    }

    #[test]
    fn headers_by_hand() {
        let bth = |frame: &[u8]| frame[42..54].to_vec();
        let write = frame(data(Operation::Write, 0, 5, false), 9_000);
        assert_eq!(bth(&write), [0x06, 0x30, 0xff, 0xff, 0, 0x0a, 0x0b, 0x0c, 0, 0x45, 0x67, 0x89]);
        let reth = [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0, 0, 0xbe, 0xef, 0, 0, 0x23, 0x28];
        assert_eq!(write[54..70], reth);
        assert_eq!(write[70..78], [0; 8]);
        let last = frame(data(Operation::WriteImm, 4_096, 4, true), 0);
        assert_eq!((last[42], last[50], &last[54..58]), (0x09, 0x80, &[0, 0, 0xca, 0xfe][..]));
        let read = frame(data(Operation::ReadRequest, 0, 0, true), 0);
        assert_eq!((read[42], &read[66..70]), (0x0c, &[0, 0, 0xca, 0xff][..]));
        let ack = Ack { cumulative: 0x100_0000, psn: 9, sack: 1, packets: 1, ..Ack::EMPTY };
        let ack = frame(Body::Ack(ack), 0);
        assert_eq!((ack[42], &ack[51..58]), (0x11, &[0xff, 0xff, 0xff, 0x1f, 0, 0, 0][..]));
        let nack = Nack { expected: 5, psn: 9, sack: 0, reason: NackReason::Sequence, marked: false };
        let nack = frame(Body::Nack(nack), 0);
        assert_eq!((nack[42], &nack[51..58]), (0x11, &[0, 0, 5, 0x60, 0, 0, 0][..]));
        let cnp = frame(Body::Cnp, 0);
        assert_eq!((cnp[42], &cnp[54..70]), (0x81, &[0; 16][..]));
    }

    #[test]
    fn segments_without_a_rocev2_packet_are_none() {
        let body = Body::Control(Control::Probe { sent_at: Time::ZERO });
        let segment = Segment::new(QpNum(1), QpNum(7), PathId(3), body);
        assert_eq!(emit_standard(&segment, 0, &ROUTE, &mut []), Ok(None));
    }

    proptest! {
        /// The length is what `Framing::Rocev2` counts; `frame` checks it.
        #[test]
        fn every_data_packet_is_as_long_as_counted(
            op in prop::sample::select(vec![Operation::Send, Operation::SendImm, Operation::Write, Operation::WriteImm, Operation::ReadResponse]),
            offset in prop::sample::select(vec![0u32, 4_096]),
            len in 0u16..9_000,
            last in any::<bool>(),
        ) {
            let Body::Data(data) = data(op, offset, len, last) else { unreachable!() };
            let remote_addr = if op == Operation::ReadResponse { 4 } else { data.remote_addr };
            frame(Body::Data(Data { remote_addr, ..data }), 9_000);
        }
    }
}
