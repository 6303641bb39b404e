//! Frames written by hand from docs/wire.md, field by field, with CRCs computed by another program (zlib).

use crate::common::plain_route;
use pathweave_units::{PathId, QpNum, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, CreditNumber, Data, Ecn, FrameAddressing, Missing, MissingCause, Nack, NackReason,
    NoticePermission, Operation, Packet, RdData, Segment, emit,
};

fn bytes(lines: &[&str]) -> Vec<u8> {
    let digits = lines.join(" ");
    digits.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

/// Checks that `segment` becomes `lines`, and that they parse back to it.
fn check(segment: &Segment, route: &FrameAddressing, payload: &[u8], near: u64, lines: &[&str]) {
    let golden = bytes(lines);
    let mut out = [0; 256];
    let len = emit(segment, route, payload, &mut out).expect("a segment that fits");
    assert_eq!(out[..len], golden, "\nemitted  {:02x?}\nexpected {golden:02x?}", &out[..len]);
    let packet = Packet::parse_ipv4(&golden).expect("a valid frame");
    assert_eq!(packet.segment(near), *segment);
    assert_eq!(packet.payload(), payload);
    assert_eq!(packet.route(), route);
}

#[test]
fn last_packet_of_a_write_with_immediate() {
    let segment = Segment::new(
        QpNum(0xabc),
        QpNum(0xdef),
        PathId(7),
        Body::Data(Data {
            psn: 0x12_3434_5678,
            msn: 9,
            offset: 4096,
            len: 5,
            op: Operation::WriteImm,
            last: true,
            retransmit: true,
            ack_request: false,
            rkey: 0x0123_4567_0000_beef,
            remote_addr: 0x7f00_0001_0000,
            imm: 0xcafe_f00d,
            receive_index: 4,
            sent_at: Time::from_ps(1_000_001),
        }),
    );
    let route = FrameAddressing { src_port: 0xc123, dscp: 26, ecn: Ecn::Capable0, ..plain_route() };
    check(
        &segment,
        &route,
        &[1, 2, 3, 4, 5],
        0x12_3400_0000,
        &[
            // IPv4: 104 bytes, Don't Fragment, TTL 64, UDP
            "45 6a 00 68 00 00 40 00 40 11 1f 0e 0a 01 02 03 0a 04 05 06",
            // UDP: entropy, 4791, 84 bytes
            "c1 23 12 b7 00 54 00 00",
            // BTH: WRITE Last with immediate, pad 3; QP 0xabc; ack request, PSN
            "c9 30 ff ff 00 00 0a bc 80 34 56 78",
            // RETH: address 0x7f0000011000, low half of the key, 4,101 bytes in all
            "00 00 7f 00 00 01 10 00 00 00 be ef 00 00 10 04",
            // ImmDt
            "ca fe f0 0d",
            // extension: magic, version 2, path 7, retransmission and immediate, source QP
            "70 02 00 07 03 00 0d ef",
            // MSN 9, offset 4096, high half of the key, sent at 1,000,001 ps
            "00 00 00 09 00 00 10 00 01 23 45 67 00 00 00 00 00 0f 42 41",
            // receive 4
            "00 00 00 04",
            // payload and padding
            "01 02 03 04 05 00 00 00",
            "45 09 df a8",
        ],
    );
}

#[test]
fn last_packet_of_a_write_where_receivers_grant_credit() {
    let segment = Segment {
        dst_qp: QpNum(0xabc),
        src_qp: QpNum(0xdef),
        path: PathId(7),
        pull_target: Some(CreditNumber::new(0x12345)),
        body: Body::Data(Data {
            psn: 0x12_3434_5678,
            msn: 9,
            offset: 4096,
            len: 5,
            op: Operation::WriteImm,
            last: true,
            retransmit: true,
            ack_request: false,
            rkey: 0x0123_4567_0000_beef,
            remote_addr: 0x7f00_0001_0000,
            imm: 0xcafe_f00d,
            receive_index: 4,
            sent_at: Time::from_ps(1_000_001),
        }),
    };
    let route = FrameAddressing { src_port: 0xc123, dscp: 26, ecn: Ecn::Capable0, ..plain_route() };
    check(
        &segment,
        &route,
        &[1, 2, 3, 4, 5],
        0x12_3400_0000,
        &[
            // The frame above with 4 more bytes.
            "45 6a 00 6c 00 00 40 00 40 11 1f 0a 0a 01 02 03 0a 04 05 06",
            "c1 23 12 b7 00 58 00 00",
            "c9 30 ff ff 00 00 0a bc 80 34 56 78",
            "00 00 7f 00 00 01 10 00 00 00 be ef 00 00 10 04",
            "ca fe f0 0d",
            // flags: retransmission, immediate, pull target
            "70 02 00 07 23 00 0d ef",
            "00 00 00 09 00 00 10 00 01 23 45 67 00 00 00 00 00 0f 42 41",
            "00 00 00 04",
            // pull target: 0x12345 quanta
            "80 01 23 45",
            "01 02 03 04 05 00 00 00",
            "cf 74 14 4d",
        ],
    );
}

#[test]
fn credit_granted_and_asked_for() {
    let near = 0x7_ffff_ff00;
    check_answer(
        Body::Control(Control::Pull { granted: CreditNumber::new(0x8_0001_2385) }),
        near,
        &[
            "45 c0 00 38 00 00 40 00 40 11 1e e8 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 24 00 00",
            "d2 00 ff ff 00 00 0d ef 00 00 00 00",
            "70 02 00 07 00 00 0a bc",
            // 0x12385 quanta
            "80 01 23 85",
            "ac 68 31 6e",
        ],
    );
    check_answer(
        Body::Control(Control::PullRequest { target: CreditNumber::new(0x7fff_ffff) }),
        near,
        &[
            "45 c0 00 38 00 00 40 00 40 11 1e e8 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 24 00 00",
            "d3 00 ff ff 00 00 0d ef 00 00 00 00",
            "70 02 00 07 00 00 0a bc",
            // The largest number
            "ff ff ff ff",
            "aa f1 4f fe",
        ],
    );
}

#[test]
fn first_packet_of_a_write_of_four_gibibytes() {
    let segment = Segment::new(
        QpNum(0xabc),
        QpNum(0xdef),
        PathId(7),
        Body::Data(Data {
            psn: 5,
            msn: 9,
            len: 4,
            op: Operation::Write,
            last: false,
            rkey: 0xfedc_ba98_7654_3210,
            remote_addr: 0x7f00_0001_0000,
            imm: u32::MAX,
            sent_at: Time::from_ps(1_000_001),
            ..Data::EMPTY
        }),
    );
    let route = FrameAddressing { src_port: 0xc123, dscp: 26, ecn: Ecn::Capable0, ..plain_route() };
    check(
        &segment,
        &route,
        &[1, 2, 3, 4],
        0,
        &[
            "45 6a 00 5c 00 00 40 00 40 11 1f 1a 0a 01 02 03 0a 04 05 06",
            "c1 23 12 b7 00 48 00 00",
            // BTH: WRITE First, QP 0xabc, PSN 5
            "c6 00 ff ff 00 00 0a bc 00 00 00 05",
            // RETH: address, low half of the key, 2^32 bytes in all
            "00 00 7f 00 00 01 00 00 76 54 32 10 ff ff ff ff",
            "70 02 00 07 00 00 0d ef",
            // MSN 9, offset 0, high half of the key, sent at
            "00 00 00 09 00 00 00 00 fe dc ba 98 00 00 00 00 00 0f 42 41",
            "01 02 03 04",
            "7e ef 63 6c",
        ],
    );
}

#[test]
fn acknowledgement_across_a_wrap_of_the_psn() {
    let segment = Segment::new(
        QpNum(0xdef),
        QpNum(0xabc),
        PathId(7),
        Body::Ack(Ack {
            cumulative: 0x200_0005,
            psn: 0x1ff_fffe,
            sack: !0x10,
            echo_sent_at: Time::from_ps(1_000_001),
            received_at: Time::from_us(2),
            packets: 4,
            marked: 1,
            ..Ack::EMPTY
        }),
    );
    let route = FrameAddressing { src_port: 0xffff, dscp: 48, ..plain_route() };
    check(
        &segment,
        &route,
        &[],
        0x1ff_fff0,
        &[
            "45 c0 00 58 00 00 40 00 40 11 1e c8 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 44 00 00",
            "d1 00 ff ff 00 00 0d ef 00 ff ff fe",
            "1f 00 00 00",
            "70 02 00 07 00 00 0a bc",
            // cumulative 5, 4 packets, 1 marked, selective, echo, received at
            "00 00 00 05 00 04 00 01 ff ff ff ff ff ff ff ef 00 00 00 00 00 0f 42 41 00 00 00 00 00 1e 84 80",
            "a6 7c bc a8",
        ],
    );
}

#[test]
fn refusal_beyond_the_window() {
    let nack = Nack { expected: 3, psn: 5, sack: 1, reason: NackReason::BeyondWindow, marked: false };
    let segment = Segment::new(QpNum(0xdef), QpNum(0xabc), PathId(7), Body::Nack(nack));
    let route = FrameAddressing { src_port: 0xffff, dscp: 48, ..plain_route() };
    check(
        &segment,
        &route,
        &[],
        0,
        &[
            "45 c0 00 44 00 00 40 00 40 11 1e dc 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 30 00 00",
            "d1 00 ff ff 00 00 0d ef 00 00 00 05",
            "70 00 00 00",
            "70 02 00 07 00 00 0a bc",
            "00 00 00 03 00 00 00 00 00 00 00 01",
            "58 11 e3 91",
        ],
    );
}

#[test]
fn refusal_of_a_trimmed_packet_that_was_marked() {
    let reason = NackReason::Trimmed(TrimmedAt::LastHop);
    let nack = Nack { expected: 3, psn: 5, sack: 1, reason, marked: true };
    let segment = Segment::new(QpNum(0xdef), QpNum(0xabc), PathId(7), Body::Nack(nack));
    let route = FrameAddressing { src_port: 0xffff, dscp: 48, ..plain_route() };
    check(
        &segment,
        &route,
        &[],
        0,
        &[
            "45 c0 00 44 00 00 40 00 40 11 1e dc 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 30 00 00",
            "d1 00 ff ff 00 00 0d ef 00 00 00 05",
            "72 00 00 00",
            // flags: marked
            "70 02 00 07 08 00 0a bc",
            "00 00 00 03 00 00 00 00 00 00 00 01",
            "18 42 cb 3b",
        ],
    );
}

#[test]
fn part_of_a_message_between_datagram_queue_pairs() {
    let body = Body::Rd(RdData {
        psn: 0x1_0000_0203,
        msg_id: 0x1234,
        multi: true,
        offset: 8_174,
        len: 3,
        retransmit: true,
    });
    let segment = Segment::new(QpNum(0xdef), QpNum(0xabc), PathId(2), body);
    let route = FrameAddressing { src_port: 0xffff, ..plain_route() };
    check(
        &segment,
        &route,
        &[7, 8, 9],
        0x1_0000_0000,
        &[
            // 28, BTH to EETH 33, payload 3, no padding, ICRC 4: 68
            "45 00 00 44 00 00 40 00 40 11 1f 9c 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 30 00 00",
            "db 00 ff ff 00 00 0d ef 00 00 02 03",
            // RDETH
            "00 00 00 00",
            // Layout of a DETH: magic, version 2, path 2, retransmission, source QP
            "70 02 00 02 01 00 0a bc",
            // EETH: type, message 0x1234, 3 bytes, offset 8174
            "80 12 34 00 03 00 00 1f ee",
            "07 08 09",
            "52 07 ff c4",
        ],
    );
}

/// Checks a frame with the addresses used below. `lines` are the bytes behind the IPv4 and UDP headers.
fn check_answer(body: Body, near: u64, lines: &[&str]) {
    let segment = Segment::new(QpNum(0xdef), QpNum(0xabc), PathId(7), body);
    check(&segment, &FrameAddressing { src_port: 0xffff, dscp: 48, ..plain_route() }, &[], near, lines);
}

#[test]
fn acknowledgement_that_pauses_notices() {
    let ack = Ack {
        cumulative: 0x200_0005,
        psn: 0x1ff_fffe,
        back: 0,
        sack: !0x10,
        echo_sent_at: Time::from_ps(1_000_001),
        received_at: Time::from_us(2),
        packets: 4,
        marked: 1,
        notices: NoticePermission::Paused,
    };
    check_answer(
        Body::Ack(ack),
        0x1ff_fff0,
        &[
            "45 c0 00 58 00 00 40 00 40 11 1e c8 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 44 00 00",
            "d1 00 ff ff 00 00 0d ef 00 ff ff fe",
            "1f 00 00 00",
            "70 02 00 07 04 00 0a bc",
            "00 00 00 05 00 04 00 01 ff ff ff ff ff ff ff ef 00 00 00 00 00 0f 42 41 00 00 00 00 00 1e 84 80",
            "31 24 ec 90",
        ],
    );
}

#[test]
fn notice_across_a_wrap_of_the_psn() {
    let notice = Control::Notice { first: 0x1ff_fffe, last: 0x200_0005, sent_at: Time::from_ps(1_000_001) };
    check_answer(
        Body::Control(notice),
        0x1ff_fff0,
        &[
            "45 c0 00 40 00 00 40 00 40 11 1e e0 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 2c 00 00",
            "d5 00 ff ff 00 00 0d ef 00 ff ff fe",
            "70 02 00 07 00 00 0a bc",
            // last 5, sent at
            "00 00 00 05 00 00 00 00 00 0f 42 41",
            "ea d4 c9 71",
        ],
    );
}

#[test]
fn answer_to_a_marked_notice() {
    let (sent_at, received_at) = (Time::from_ps(1_000_001), Time::from_us(2));
    check_answer(
        Body::Control(Control::NoticeReply { sent_at, received_at, marked: true }),
        0,
        &[
            "45 c0 00 44 00 00 40 00 40 11 1e dc 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 30 00 00",
            "d6 00 ff ff 00 00 0d ef 00 00 00 00",
            "70 02 00 07 08 00 0a bc",
            "00 00 00 00 00 0f 42 41 00 00 00 00 00 1e 84 80",
            "f5 44 6d d0",
        ],
    );
}

#[test]
fn packets_that_are_late() {
    check_answer(
        Body::Missing(Missing { first: 0x1ff_fffe, missing: 5, cause: MissingCause::Late }),
        0x1ff_fff0,
        &[
            "45 c0 00 3c 00 00 40 00 40 11 1e e4 0a 01 02 03 0a 04 05 06",
            "ff ff 12 b7 00 28 00 00",
            "d7 00 ff ff 00 00 0d ef 00 ff ff fe",
            "70 02 00 07 10 00 0a bc",
            "00 00 00 00 00 00 00 05",
            "57 98 9b b9",
        ],
    );
}
