//! Bytes that are not frames of our format: cut, flipped, forged or random. They never cause a panic or a wrong
//! segment.

use crate::common::{frame, plain_route, route, segment};
use pathweave_units::{PathId, QpNum, Time};
use pathweave_wire::{
    Body, Control, CreditNumber, Data, Missing, MissingCause, Operation, Packet, ParseError, RdData, Segment,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_cut_is_noticed((segment, _) in segment(), route in route()) {
        let frame = frame(&segment, &route);
        for len in 0..frame.len() {
            let result = match route.ethernet {
                Some(_) => Packet::parse_ethernet(&frame[..len]),
                None => Packet::parse_ipv4(&frame[..len]),
            };
            prop_assert!(matches!(result, Err(ParseError::Truncated { .. })), "at {}: {:?}", len, result);
        }
    }

    /// The ICRC detects every flipped bit except those in fields that routers may change. The segment does not depend
    /// on these.
    #[test]
    fn no_flipped_bit_changes_the_segment((segment, near) in segment()) {
        let mut frame = frame(&segment, &plain_route());
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            if let Ok(packet) = Packet::parse_ipv4(&frame) {
                prop_assert_eq!(packet.segment(near), segment.normalized(), "bit {}", bit);
            }
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn bytes_after_the_packet_do_not_matter((segment, near) in segment(), tail in prop::collection::vec(any::<u8>(), 0..32)) {
        let mut frame = frame(&segment, &plain_route());
        frame.extend(tail);
        prop_assert_eq!(Packet::parse_ipv4(&frame).expect("our own frame").segment(near), segment.normalized());
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        let _ = Packet::parse_ethernet(&bytes);
        let _ = Packet::parse_ipv4(&bytes);
    }

    /// A change of bytes behind UDP, with a corrected CRC, gives an error or a segment that emits to the same bytes.
    #[test]
    fn forged_packets_are_refused_or_faithful(
        (segment, near) in segment(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let original = frame(&segment, &plain_route());
        let mut forged = original.clone();
        for (index, value) in changes {
            let at = 28 + index.index(forged.len() - 32);
            forged[at] = value;
        }
        seal(&mut forged);
        if let Ok(packet) = Packet::parse_ipv4(&forged) {
            let parsed = packet.segment(near);
            prop_assert_eq!(parsed, parsed.normalized());
            let mut again = vec![0; 2048];
            let len = pathweave_wire::emit(&parsed, packet.route(), packet.payload(), &mut again)
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            // Bits a receiver ignores: solicited event and migration, the unprotected byte, ack request.
            for frame in [&mut forged, &mut again] {
                frame[29] &= 0x3f;
                frame[32] = 0;
                frame[36] = 0;
                seal(&mut frame[..len]);
            }
            prop_assert_eq!(&forged, &again[..len]);
        }
    }
}

/// Sets the ICRC of an IPv4 packet. An independent implementation from docs/wire.md.
fn seal(packet: &mut [u8]) {
    let end = packet.len() - 4;
    let mut covered = vec![0xff; 8];
    covered.extend_from_slice(&packet[..end]);
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        covered[8 + masked] = 0xff;
    }
    let crc = crc32fast::hash(&covered);
    packet[end..].copy_from_slice(&crc.to_le_bytes());
}

/// Returns the error for a WRITE of 8 bytes at offset 16 after `change`, with corrected CRCs.
fn error_after(change: impl FnOnce(&mut Vec<u8>)) -> ParseError {
    let data = Data {
        psn: 1,
        msn: 2,
        offset: 16,
        len: 8,
        op: Operation::Write,
        last: false,
        rkey: 3,
        remote_addr: 0x1000,
        // A message of 100 bytes.
        imm: 99,
        ..Data::EMPTY
    };
    error_in(Body::Data(data), change)
}

fn error_in(body: Body, change: impl FnOnce(&mut Vec<u8>)) -> ParseError {
    let segment = Segment::new(QpNum(5), QpNum(6), PathId(7), body);
    let mut frame = frame(&segment, &plain_route());
    change(&mut frame);
    frame[10..12].fill(0);
    let sum: u32 = frame[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    frame[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    seal(&mut frame);
    Packet::parse_ipv4(&frame).expect_err("a malformed packet")
}

const EMPTY_WRITE: Data = Data {
    psn: 1,
    msn: 2,
    len: 0,
    op: Operation::Write,
    last: true,
    rkey: 3,
    remote_addr: 0x1000,
    ..Data::EMPTY
};

#[test]
fn errors_name_field_and_value() {
    use ParseError as E;
    // IPv4 at 0, UDP at 20, BTH at 28, RETH at 40, extension at 56, payload at 84, ICRC at 92.
    assert_eq!(error_after(|f| f[0] = 0x65), E::IpVersion(6));
    assert_eq!(error_after(|f| f[0] = 0x46), E::IpHeaderWords(6));
    assert_eq!(error_after(|f| f[6] = 0x60), E::IpFragment(0x6000));
    assert_eq!(error_after(|f| f[9] = 6), E::IpProtocol(6));
    assert_eq!(error_after(|f| f[23] = 0xb8), E::UdpPort(4792));
    assert_eq!(error_after(|f| f[25] = 75), E::UdpLength { udp: 75, ip: 76 });
    assert_eq!(error_after(|f| f[26] = 1), E::UdpChecksum(0x100));
    assert_eq!(error_after(|f| f[28] = 0x07), E::Opcode(0x07));
    assert_eq!(error_after(|f| f[29] = 1), E::BthVersion(1));
    assert_eq!(error_after(|f| f[30] = 0x7f), E::PartitionKey(0x7fff));
    assert_eq!(error_after(|f| f[29] = 0x10), E::Reserved { field: "padding", value: 7 });
    assert_eq!(error_after(|f| f[28] = 0xc6), E::Position { offset: 16, position: "First" });
    // Bytes 16 to 23 of 100: a middle packet.
    let (offset, len) = (16, 8);
    assert_eq!(error_after(|f| f[55] = 23), E::DmaLength { dma: 23, offset, len, position: "Middle" });
    assert_eq!(error_after(|f| f[28] = 0xc8), E::DmaLength { dma: 99, offset, len, position: "Last" });
    assert_eq!(
        error_in(Body::Data(EMPTY_WRITE), |f| f[55] = 1),
        E::DmaLength { dma: 1, offset: 0, len: 0, position: "Only" }
    );
    assert_eq!(
        error_after(|f| f[40..48].copy_from_slice(&15u64.to_be_bytes())),
        E::Address { address: 15, offset: 16, dma: 99 }
    );
    assert_eq!(
        error_after(|f| f[40..48].copy_from_slice(&(u64::MAX - 82).to_be_bytes())),
        E::Address { address: u64::MAX - 82, offset: 16, dma: 99 }
    );
    assert_eq!(error_after(|f| f[56] = 0x71), E::Magic(0x71));
    assert_eq!(error_after(|f| f[57] = 1), E::Version(1));
    assert_eq!(error_after(|f| f[60] = 0x84), E::Flags { flags: 0x84, allowed: 0x23 });
    // The first bytes of the payload are then read as the pull target, whose highest bit is 0.
    assert_eq!(error_after(|f| f[60] = 0x20), E::CreditNumber(0x0001_0203));
    assert_eq!(error_after(|f| f[68..72].fill(0xff)), E::OffsetOverflow { offset: u32::MAX, len: 8 });
    // RDETH at 40, common part at 44, EETH at 52, payload at 61.
    let rd = |multi, offset| Body::Rd(RdData { psn: 1, msg_id: 2, multi, offset, len: 7, retransmit: false });
    let part = rd(true, 8_174);
    assert_eq!(error_in(part, |f| f[41] = 1), E::Reserved { field: "RDETH", value: 0x1_0000 });
    assert_eq!(error_in(part, |f| f[45] = 1), E::Version(1));
    assert_eq!(error_in(part, |f| f[48] = 2), E::Flags { flags: 2, allowed: 1 });
    assert_eq!(
        error_in(part, |f| f[52] = 0xc0),
        E::Reserved { field: "reserved bits of the EETH", value: 0x40 }
    );
    assert_eq!(error_in(part, |f| f[56] = 8), E::EethLength { says: 8, len: 7 });
    assert_eq!(
        error_in(part, |f| f[52] = 0),
        E::Reserved { field: "offset in a message of one packet", value: 8_174 }
    );
    assert_eq!(error_in(part, |f| f[57..61].fill(0xff)), E::OffsetOverflow { offset: u32::MAX, len: 7 });
    assert!(matches!(
        error_in(part, |f| f[29] = 0x10),
        E::EethLength { says: 7, len: 6 } | E::Reserved { .. }
    ));

    // Extension at 40.
    let notice = Body::Control(Control::Notice { first: 3, last: 3, sent_at: Time::ZERO });
    assert_eq!(error_in(notice, |f| f[44] = 4), E::Flags { flags: 4, allowed: 0 });
    let field = "high byte of the last PSN of a notice";
    assert_eq!(error_in(notice, |f| f[48] = 9), E::Reserved { field, value: 9 });
    assert_eq!(error_in(notice, |f| f[51] = 2), E::Range { first: 3, last: 2 });
    assert_eq!(
        error_in(notice, |f| f[49..52].copy_from_slice(&[0x80, 0, 3])),
        E::Range { first: 3, last: 0x80_0003 }
    );
    let (sent_at, received_at) = (Time::ZERO, Time::ZERO);
    let reply = Body::Control(Control::NoticeReply { sent_at, received_at, marked: false });
    assert_eq!(error_in(reply, |f| f[44] = 0x18), E::Flags { flags: 0x18, allowed: 8 });
    assert_eq!(error_in(reply, |f| f[39] = 1), E::Reserved { field: "PSN", value: 1 });
    let missing = Body::Missing(Missing { first: 9, missing: 1, cause: MissingCause::Lost });
    assert_eq!(error_in(missing, |f| f[44] = 8), E::Flags { flags: 8, allowed: 0x10 });
    assert_eq!(error_in(missing, |f| f[55] = 2), E::NothingMissing(9));

    let pull = Body::Control(Control::Pull { granted: CreditNumber::new(64) });
    assert_eq!(error_in(pull, |f| f[48] = 0), E::CreditNumber(64));
    assert_eq!(error_in(pull, |f| f[44] = 0x20), E::Flags { flags: 0x20, allowed: 0 });
    assert_eq!(error_in(pull, |f| f[39] = 1), E::Reserved { field: "PSN", value: 1 });
    assert_eq!(
        error_in(Body::Data(EMPTY_WRITE), |f| f[60] = 0x20),
        E::Truncated { layer: "BTH, extended headers, extension and pull target", needed: 60, available: 56 }
    );

    let probe = Body::Control(Control::Probe { sent_at: Time::ZERO });
    assert_eq!(error_in(probe, |f| f[39] = 1), E::Reserved { field: "PSN", value: 1 });
    assert_eq!(error_in(probe, |f| f[44] = 1), E::Flags { flags: 1, allowed: 0 });
    assert_eq!(error_in(probe, |f| f[28] = 0xd8), E::BodyLength { opcode: "CNP", len: 8, expected: "none" });
    assert_eq!(error_in(Body::Cnp, |f| f[29] = 0x10), E::PadCount { pad: 1, available: 0 });
    assert_eq!(
        error_in(Body::Cnp, |f| f[28] = 0xd9),
        E::Truncated { layer: "BTH, extended headers and extension", needed: 28, available: 20 }
    );
    assert_eq!(
        error_in(Body::Cnp, |f| {
            f[28] = 0xd1;
            f[40] = 0x1e;
        }),
        E::Syndrome(0x1e)
    );
}

#[test]
fn checksums_name_both_values() {
    let segment = Segment::new(QpNum(5), QpNum(6), PathId(7), Body::Cnp);
    let good = frame(&segment, &plain_route());
    let mut bad = good.clone();
    bad[8] -= 1;
    let found = u16::from_be_bytes([good[10], good[11]]);
    assert_eq!(
        Packet::parse_ipv4(&bad).unwrap_err(),
        ParseError::IpChecksum { found, computed: found + 0x100 }
    );
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 0x80;
    let computed = u32::from_le_bytes(*good.last_chunk().unwrap());
    assert_eq!(
        Packet::parse_ipv4(&bad).unwrap_err(),
        ParseError::Icrc { found: computed ^ 0x8000_0000, computed }
    );
    let mut ethernet = vec![0; 14];
    ethernet[12..].copy_from_slice(&[0x86, 0xdd]);
    ethernet.extend(&good);
    let error = Packet::parse_ethernet(&ethernet).unwrap_err();
    assert_eq!(error.to_string(), "EtherType is 0x86dd, expected 0x0800 (IPv4)");
}

#[test]
fn a_marked_packet_is_still_intact() {
    let segment = Segment::new(QpNum(5), QpNum(6), PathId(7), Body::Cnp);
    let route = pathweave_wire::FrameAddressing { ecn: pathweave_wire::Ecn::Capable0, ..plain_route() };
    let mut frame = frame(&segment, &route);
    // Operation of a switch: set both ECN bits, decrement the TTL, and adjust the header checksum (RFC 1624).
    frame[1] |= 3;
    frame[8] -= 1;
    let sum = u16::from_be_bytes([frame[10], frame[11]]) - 1 + 0x100;
    frame[10..12].copy_from_slice(&sum.to_be_bytes());
    let packet = Packet::parse_ipv4(&frame).expect("marking does not break the invariant CRC");
    assert_eq!(packet.route().ecn, pathweave_wire::Ecn::Experienced);
    assert_eq!(packet.segment(0), segment);
}
