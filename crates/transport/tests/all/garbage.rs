//! Segments of any content, which queue pairs in any state must process without a panic.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{PathRto, Recovery, RingScope};
use pathweave_transport::{Op, ReceiveMode};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time, TrimmedAt};
use pathweave_wire::{
    Ack, Body, Control, CreditNumber, Data, Missing, MissingCause, Nack, NackReason, NoticePermission,
    Operation, Segment,
};
use proptest::prelude::*;

/// Numbers near those in use, and numbers far from them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..80, 1 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(1u64 << 32)]
}
fn number32() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0u32..20, 1 => any::<u32>(), 1 => Just(u32::MAX)]
}
fn time() -> impl Strategy<Value = Time> {
    number().prop_map(|n| Time::from_ps(n.wrapping_mul(1_000_000)))
}

fn data() -> impl Strategy<Value = Body> {
    let op = prop_oneof![
        Just(Operation::Send),
        Just(Operation::SendImm),
        Just(Operation::Write),
        Just(Operation::WriteImm),
        Just(Operation::ReadRequest),
        Just(Operation::ReadResponse)
    ];
    let len = prop_oneof![Just(0), Just(1), Just(MTU), Just(MTU + 1), any::<u16>()];
    let offset = prop_oneof![Just(0), Just(1), (0u32..9).prop_map(|n| n * u32::from(MTU)), any::<u32>()];
    let place = (number32(), offset, len, number(), number());
    let rest = (op, any::<bool>(), any::<bool>(), number32(), number32(), time());
    (number(), place, rest).prop_map(|(psn, place, rest)| {
        let (msn, offset, len, rkey, remote_addr) = place;
        let (op, last, retransmit, imm, receive_index, sent_at) = rest;
        Body::Data(Data {
            psn,
            msn,
            offset,
            len,
            op,
            last,
            retransmit,
            ack_request: imm & 1 == 1,
            rkey,
            remote_addr,
            imm,
            receive_index,
            sent_at,
        })
    })
}

fn body() -> impl Strategy<Value = Body> {
    let sack = || prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
    let ack = (number(), number(), sack(), time(), time(), any::<u16>(), any::<u16>()).prop_map(
        |(cumulative, psn, sack, echo_sent_at, received_at, packets, marked)| {
            let notices = if packets == 1 { NoticePermission::Paused } else { NoticePermission::Welcome };
            let back = (marked % 256) as u8;
            Body::Ack(Ack {
                cumulative,
                psn,
                back,
                sack,
                echo_sent_at,
                received_at,
                packets,
                marked,
                notices,
            })
        },
    );
    let reason = prop_oneof![
        4 => Just(NackReason::Sequence),
        4 => Just(NackReason::BeyondWindow),
        4 => Just(NackReason::ReceiverNotReady),
        1 => Just(NackReason::RemoteAccess),
        1 => Just(NackReason::InvalidRequest),
        2 => Just(NackReason::Trimmed(TrimmedAt::OnTheWay)),
        2 => Just(NackReason::Trimmed(TrimmedAt::LastHop))
    ];
    let nack = (number(), number(), sack(), reason).prop_map(|(expected, psn, sack, reason)| {
        Body::Nack(Nack { expected, psn, sack, reason, marked: sack & 1 == 1 })
    });
    prop_oneof![
        5 => data(),
        5 => ack,
        2 => nack,
        1 => Just(Body::Cnp),
        1 => (number(), number(), time()).prop_map(|(first, last, sent_at)| {
            Body::Control(Control::Notice { first, last, sent_at })
        }),
        1 => (time(), time(), any::<bool>()).prop_map(|(sent_at, received_at, marked)| {
            Body::Control(Control::NoticeReply { sent_at, received_at, marked })
        }),
        1 => (number(), sack(), any::<bool>()).prop_map(|(first, missing, late)| {
            let cause = if late { MissingCause::Late } else { MissingCause::Lost };
            Body::Missing(Missing { first, missing, cause })
        }),
        1 => time().prop_map(|sent_at| Body::Control(Control::Probe { sent_at })),
        1 => number().prop_map(|n| Body::Control(Control::Pull { granted: CreditNumber::new(n) })),
        1 => number().prop_map(|n| Body::Control(Control::PullRequest { target: CreditNumber::new(n) })),
        1 => time().prop_map(|sent_at| Body::Control(Control::EdgeEcho { sent_at })),
        1 => (time(), time()).prop_map(|(sent_at, received_at)| {
            Body::Control(Control::ProbeReply { sent_at, received_at })
        }),
    ]
}

#[derive(Clone, Debug)]
enum Input {
    /// A segment with the right addresses.
    Garbage(usize, Body, bool),
    /// A segment with other addresses.
    Foreign(u32, u32, u32, Body),
    /// A regular step.
    Step,
    Post(usize, u64),
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        6 => (0usize..2, body(), any::<bool>()).prop_map(|(host, body, ce)| Input::Garbage(host, body, ce)),
        1 => (number32(), number32(), number32(), body()).prop_map(|(a, b, c, body)| Input::Foreign(a, b, c, body)),
        6 => Just(Input::Step),
        1 => (0usize..2, 0u64..5_000).prop_map(|(host, len)| Input::Post(host, len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_segment_panics(inputs in prop::collection::vec(input(), 1..120), kind in 0..4, discard: bool) {
        let mut pair = Pair::new(Channel::new(1), 1 << 17, |config| {
            config.recovery = match kind {
                0 => Recovery::GoBackN,
                1 => Recovery::SelectiveRepeat { reorder_packets: 3, window_packets: Some(32), sender_window_packets: None },
                2 => Recovery::sleek().with_window_packets(32),
                _ => Recovery::PathOrder {
                    window_packets: Some(32),
                    scope: RingScope::Host,
                    rto: PathRto::Published,
                    rto_min: Duration::from_us(50),
                    rto_slack: Duration::ZERO,
                },
            };
            if discard {
                config.receive = ReceiveMode::Discard;
            }
        });
        // The harness's memory checks reads and placements: every granted range must lie within it.
        let keys = [pair.open_memory(0), pair.open_memory(1)];
        for host in 0..2 {
            if !discard {
                (0..8).for_each(|i| pair.post_recv(host, i, 0, 10_000));
            }
            let rkey = keys[1 - host];
            pair.post(host, 0, Op::Send, 0, 20_000);
            pair.post(host, 1, Op::Read { rkey, remote_addr: 0 }, 0, 3_000);
            pair.post(host, 2, Op::Write { rkey, remote_addr: 5 }, 0, 30_000);
        }
        for input in inputs {
            match input {
                Input::Garbage(host, body, ce) => {
                    let segment =
                        Segment::new(pair.qps[host], pair.qps[1 - host], PathId(0), body);
                    let to = &mut pair.hosts[host];
                    let placement = to.endpoint.on_packet(pair.now, HostId(1 - host as u32), &segment, ce);
                    if let Some(placement) = placement {
                        let end = placement.buffer.0 + placement.offset + u64::from(placement.len);
                        prop_assert!(end <= to.memory.len() as u64);
                    }
                }
                Input::Foreign(from, dst, src, body) => {
                    let segment = Segment::new(QpNum(dst), QpNum(src), PathId(9), body);
                    pair.hosts[0].endpoint.on_packet(pair.now, HostId(from), &segment, false);
                }
                Input::Step => {
                    pair.step();
                }
                Input::Post(host, len) => {
                    let request = pathweave_transport::WorkRequest {
                        wr_id: 9, op: Op::Send, local: pathweave_transport::Buffer(0), len,
                    };
                    let _ = pair.hosts[host].endpoint.post(pair.now, pair.qps[host], request);
                }
            }
            pair.drain();
        }
    }
}
