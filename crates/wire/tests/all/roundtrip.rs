//! Emitted frames parse back to the same segment, except for values that a frame does not carry.

use crate::common::{frame, payload, plain_route, route, segment};
use pathweave_units::{PathId, QpNum};
use pathweave_wire::{Body, Data, EmitError, Framing, Operation, Packet, Segment, emit, ip_packet_len};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parse_after_emit_is_the_carried_segment((segment, near) in segment(), route in route()) {
        let frame = frame(&segment, &route);
        let packet = match route.ethernet {
            Some(_) => Packet::parse_ethernet(&frame),
            None => Packet::parse_ipv4(&frame),
        }.map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(*packet.route(), route);
        prop_assert_eq!(packet.segment(near), segment.normalized());
        prop_assert_eq!(packet.payload(), payload(&segment));
        prop_assert_eq!((packet.dst_qp(), packet.src_qp(), packet.path()), (segment.dst_qp, segment.src_qp, segment.path));
    }

    #[test]
    fn carried_segments_need_no_further_change((segment, _) in segment()) {
        prop_assert_eq!(segment.normalized().normalized(), segment.normalized());
    }

    #[test]
    fn pathweave_framing_counts_the_frame((segment, _) in segment(), route in route()) {
        let len = frame(&segment, &route).len() - if route.ethernet.is_some() { 14 } else { 0 };
        prop_assert_eq!(len, ip_packet_len(&segment));
        // Ethernet 14, FCS 4, preamble 8, gap 12.
        prop_assert_eq!(Framing::Pathweave.wire_bytes(&segment) as usize, len + 14 + 24);
    }
}

fn write(offset: u32, len: u16) -> Data {
    Data { offset, len, op: Operation::Write, last: true, rkey: 1, ..Data::EMPTY }
}

fn try_emit(dst_qp: u32, body: Body, payload: &[u8], room: usize) -> Result<usize, EmitError> {
    let segment = Segment::new(QpNum(dst_qp), QpNum(0), PathId(0), body);
    let result = emit(&segment, &plain_route(), payload, &mut vec![0; room]);
    if result.is_ok() {
        // Every frame that was emitted can be parsed.
        let mut out = vec![0; room];
        let len = emit(&segment, &plain_route(), payload, &mut out)?;
        assert_eq!(Packet::parse_ipv4(&out[..len]).expect("our own frame").segment(0), segment.normalized());
    }
    result
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let too_large = |result: Result<usize, EmitError>| match result {
        Err(EmitError::OutOfRange { field, value, max }) => (field, value, max),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        too_large(try_emit(1 << 24, Body::Cnp, &[], 2048)),
        ("destination queue pair", 1 << 24, (1 << 24) - 1)
    );
    assert_eq!(try_emit(0, Body::Cnp, &[], 51), Err(EmitError::BufferTooSmall { needed: 52, available: 51 }));
    assert_eq!(try_emit(0, Body::Cnp, &[], 52), Ok(52));
    assert_eq!(
        try_emit(0, Body::Data(write(0, 2)), &[1], 2048),
        Err(EmitError::PayloadLength { expected: 2, given: 1 })
    );
    // The last byte of the largest message is its byte 2^32 - 1.
    assert!(try_emit(0, Body::Data(write(u32::MAX, 1)), &[1], 2048).is_ok());
    assert_eq!(
        too_large(try_emit(0, Body::Data(write(u32::MAX, 2)), &[1, 2], 2048)),
        ("end of the packet in its message", (1 << 32) + 1, 1 << 32)
    );
    // A packet before the last must end before the length of the message.
    let of = |bytes: u64| Body::Data(Data { last: false, imm: (bytes - 1) as u32, ..write(16, 2) });
    assert!(try_emit(0, of(19), &[1, 2], 2048).is_ok() && try_emit(0, of(1 << 32), &[1, 2], 2048).is_ok());
    assert_eq!(too_large(try_emit(0, of(18), &[1, 2], 2048)), ("end of the packet in its message", 18, 17));
    assert_eq!(
        too_large(try_emit(0, Body::Data(write(16, 0)), &[], 2048)),
        ("offset of a packet without payload", 16, 0)
    );
    // The last byte of memory is byte 2^64 - 1.
    let at = |remote_addr, offset, len| Body::Data(Data { remote_addr, ..write(offset, len) });
    assert!(try_emit(0, at(u64::MAX - 1, 0, 2), &[1, 2], 2048).is_ok());
    assert!(try_emit(0, at(u64::MAX - 1, 1, 1), &[1], 2048).is_ok());
    assert!(try_emit(0, at(u64::MAX, 0, 0), &[], 2048).is_ok());
    for (body, payload) in [(at(u64::MAX, 0, 2), &[1, 2][..]), (at(u64::MAX, 1, 1), &[1])] {
        assert_eq!(too_large(try_emit(0, body, payload, 2048)).0, "remote address");
    }
    let response = Data { op: Operation::ReadResponse, remote_addr: 1 << 32, ..write(0, 0) };
    assert_eq!(
        too_large(try_emit(0, Body::Data(response), &[], 2048)).0,
        "request's message sequence number"
    );
    let request = Data { op: Operation::ReadRequest, ..write(0, 3) };
    assert_eq!(too_large(try_emit(0, Body::Data(request), &[], 2048)), ("payload of a READ request", 3, 0));
}

#[test]
fn the_largest_payload_fills_an_ip_packet() {
    let send = |len| Body::Data(Data { op: Operation::Send, ..write(0, len) });
    let bytes = vec![7; 65_535];
    assert_eq!(try_emit(0, send(65_460), &bytes[..65_460], 70_000), Ok(65_532));
    assert_eq!(
        try_emit(0, send(65_461), &bytes[..65_461], 70_000),
        Err(EmitError::OutOfRange { field: "payload", value: 65_461, max: 65_460 })
    );
}
