//! Random segments and routes that a frame can carry.
#![allow(dead_code, reason = "each test file uses its part")]

use pathweave_units::{PathId, QpNum, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, CreditNumber, Data, Ecn, EthernetAddresses, FrameAddressing, Missing, MissingCause,
    Nack, NackReason, NoticePermission, Operation, RdData, Segment, emit, entropy_port,
};
use proptest::prelude::*;

/// Range of the distance from `near` to the PSNs of a segment.
pub(crate) const NEAR: std::ops::Range<i64> = -(1 << 23)..(1 << 23);

fn time() -> impl Strategy<Value = Time> {
    any::<u64>().prop_map(Time::from_ps)
}

fn credit() -> impl Strategy<Value = CreditNumber> {
    any::<u64>().prop_map(CreditNumber::new)
}

/// A PSN near `near`.
fn psn(near: u64) -> impl Strategy<Value = u64> {
    NEAR.prop_map(move |ahead| near.saturating_add_signed(ahead))
}

fn data(near: u64) -> impl Strategy<Value = Body> {
    use Operation::{ReadRequest, ReadResponse, Send, SendImm, Write, WriteImm};
    let op = prop::sample::select(vec![Send, SendImm, Write, WriteImm, ReadRequest, ReadResponse]);
    let place = (prop_oneof![Just(0), any::<u32>()], 0..600u16, any::<(bool, bool)>());
    let fields = (any::<(u32, u64, u32, u32)>(), any::<u64>(), time());
    (op, psn(near), place, fields).prop_map(
        |(op, psn, (offset, len, (last, retransmit)), ((msn, rkey, imm, receive_index), addr, sent_at))| {
            let len = if op == ReadRequest {
                0
            } else {
                len.min((u32::MAX - offset).try_into().unwrap_or(u16::MAX))
            };
            // A WRITE packet without payload must be the only one of its message.
            let empty = matches!(op, Write | WriteImm) && len == 0;
            let (offset, last) = if empty { (0, true) } else { (offset, last) };
            let before_end = matches!(op, Write | WriteImm) && !last;
            let imm = if before_end { imm.max(offset + u32::from(len)) } else { imm };
            let remote_addr = match op {
                ReadResponse => addr >> 32,
                _ => addr >> 1,
            };
            Body::Data(Data {
                psn,
                msn,
                offset,
                len,
                op,
                last,
                retransmit,
                ack_request: !last && psn & 1 == 0,
                rkey,
                remote_addr,
                imm,
                receive_index,
                sent_at,
            })
        },
    )
}

fn notices(sack: u64) -> NoticePermission {
    if sack & 1 == 0 { NoticePermission::Welcome } else { NoticePermission::Paused }
}

fn body(near: u64) -> impl Strategy<Value = Body> {
    use NackReason::{BeyondWindow, InvalidRequest, ReceiverNotReady, RemoteAccess, Sequence, Trimmed};
    let reasons = vec![
        Sequence,
        BeyondWindow,
        ReceiverNotReady,
        RemoteAccess,
        InvalidRequest,
        Trimmed(TrimmedAt::OnTheWay),
        Trimmed(TrimmedAt::LastHop),
    ];
    let ack = (psn(near), psn(near), any::<(u64, u16, u16)>(), time(), time()).prop_map(
        |(cumulative, psn, (sack, packets, marked), echo_sent_at, received_at)| {
            Body::Ack(Ack {
                cumulative,
                psn,
                back: (sack % 64) as u8,
                sack,
                echo_sent_at,
                received_at,
                packets,
                marked,
                notices: notices(sack),
            })
        },
    );
    let nack = (psn(near), psn(near), any::<u64>(), prop::sample::select(reasons)).prop_map(
        |(expected, psn, sack, reason)| {
            let marked = matches!(reason, Trimmed(_)) && sack & 1 == 1;
            Body::Nack(Nack { expected, psn, sack, reason, marked })
        },
    );
    let rd = (psn(near), any::<(u16, bool, u32, bool)>(), 1..600u16).prop_map(
        |(psn, (msg_id, multi, offset, retransmit), len)| {
            let offset = if multi { offset.min(u32::MAX - u32::from(len)) } else { 0 };
            Body::Rd(RdData { psn, msg_id, multi, offset, len, retransmit })
        },
    );
    prop_oneof![
        4 => data(near),
        2 => rd,
        1 => ack,
        1 => nack,
        1 => Just(Body::Cnp),
        1 => (psn(near), 0..1u64 << 23, time()).prop_map(|(first, more, sent_at)| {
            Body::Control(Control::Notice { first, last: first + more, sent_at })
        }),
        1 => (time(), time(), any::<bool>()).prop_map(|(sent_at, received_at, marked)| {
            Body::Control(Control::NoticeReply { sent_at, received_at, marked })
        }),
        1 => (psn(near), any::<u64>(), any::<bool>()).prop_map(|(first, missing, late)| {
            let cause = if late { MissingCause::Late } else { MissingCause::Lost };
            Body::Missing(Missing { first, missing: missing | 1, cause })
        }),
        1 => time().prop_map(|sent_at| Body::Control(Control::Probe { sent_at })),
        1 => time().prop_map(|sent_at| Body::Control(Control::EdgeEcho { sent_at })),
        1 => (time(), time()).prop_map(|(sent_at, received_at)| {
            Body::Control(Control::ProbeReply { sent_at, received_at })
        }),
        1 => credit().prop_map(|granted| Body::Control(Control::Pull { granted })),
        1 => credit().prop_map(|target| Body::Control(Control::PullRequest { target })),
    ]
}

/// A segment, and a PSN near those in it.
pub(crate) fn segment() -> impl Strategy<Value = (Segment, u64)> {
    let near = prop_oneof![Just(0u64), 0..1u64 << 26, 0..u64::MAX >> 1];
    near.prop_flat_map(|near| {
        let target = prop::option::of(credit());
        (body(near), 0..1u32 << 24, 0..1u32 << 24, any::<u16>(), target).prop_map(
            move |(body, dst, src, path, pull_target)| {
                let (dst_qp, src_qp) = (QpNum(dst), QpNum(src));
                (Segment { dst_qp, src_qp, path: PathId(path), pull_target, body }, near)
            },
        )
    })
}

pub(crate) fn route() -> impl Strategy<Value = FrameAddressing> {
    let ecn = prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::Experienced]);
    let ethernet = prop::option::of(any::<([u8; 6], [u8; 6])>());
    (ethernet, any::<([u8; 4], [u8; 4], u16, u8)>(), 0..64u8, ecn).prop_map(
        |(ethernet, (src, dst, src_port, ttl), dscp, ecn)| FrameAddressing {
            ethernet: ethernet.map(|(dst, src)| EthernetAddresses { dst, src }),
            src_ip: src.into(),
            dst_ip: dst.into(),
            src_port,
            dscp,
            ecn,
            ttl,
        },
    )
}

/// A payload of the segment's length, with a different pattern at each position.
pub(crate) fn payload(segment: &Segment) -> Vec<u8> {
    let len = match &segment.body {
        Body::Data(data) => data.len,
        Body::Rd(data) => data.len,
        _ => 0,
    };
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// The frame of a segment.
pub(crate) fn frame(segment: &Segment, route: &FrameAddressing) -> Vec<u8> {
    let mut out = vec![0xee; 2048];
    let len = emit(segment, route, &payload(segment), &mut out).expect("the segment fits a frame");
    assert!(out[len..].iter().all(|b| *b == 0xee), "wrote beyond the frame");
    out.truncate(len);
    out
}

/// Addresses of the hand-checked frames: 10.1.2.3 to 10.4.5.6, without Ethernet.
pub(crate) fn plain_route() -> FrameAddressing {
    FrameAddressing {
        ethernet: None,
        src_ip: [10, 1, 2, 3].into(),
        dst_ip: [10, 4, 5, 6].into(),
        src_port: entropy_port(QpNum(0), QpNum(0), PathId(0)),
        dscp: 0,
        ecn: Ecn::NotCapable,
        ttl: 64,
    }
}
