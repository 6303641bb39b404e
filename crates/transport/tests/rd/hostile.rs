//! A malicious peer: the state that it causes is bounded, its messages are processed quickly, and other peers are not
//! affected.

use pathweave_policy::{AnyPolicy, DatagramConfig, EethPlace, MeasuredSection, PolicyEnv, find_scheme};
use pathweave_transport::rd::{RdConfig, RdPostError, RdQp, SideMessage};
use pathweave_transport::{FreePorts, Status, Transport};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Framing, PsnRun, RdData, RdFlow, Segment};
use proptest::prelude::*;

use crate::behaviour;
use crate::world::{World, peer, queue_pair};

/// The largest possible NACK, of packets that were never sent: nothing is queued, and all of them count as asked in
/// vain.
#[test]
fn nacks_are_clipped_to_sent_packets() {
    let mut qp = queue_pair(1, behaviour(), 1, 1);
    qp.add_peer(Time::ZERO, peer(0), crate::world::RTT);
    qp.post(Time::ZERO, peer(0), 1, 10).expect("room");
    assert!(qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some());
    let flow = RdFlow { src_qp: qp.num(), dst_qp: peer(0).qp };
    let runs: Vec<PsnRun> = (0..65_535u64).map(|i| PsnRun { first: 256 * i, count: 256 }).collect();
    qp.on_side(Time::ZERO, HostId(0), &SideMessage::Nack { flow, runs });
    assert_eq!(qp.counters().asked_in_vain, 65_535 * 256 - 1);
    assert!(qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some_and(|packet| packet.payload.is_some()));
    assert!(qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_none());
}

/// However much is outstanding, a NACK causes at most one receiver window of retransmissions.
#[test]
fn a_nack_sends_a_window_again_at_most() {
    let config = DatagramConfig { window_packets: 64, ..behaviour() };
    let mut qp = queue_pair(1, config, 1, 1);
    qp.add_peer(Time::ZERO, peer(0), crate::world::RTT);
    qp.post(Time::ZERO, peer(0), 1, 4_000_000).expect("room");
    while qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some() {}
    let flow = RdFlow { src_qp: qp.num(), dst_qp: peer(0).qp };
    let runs: Vec<PsnRun> = (0..4u64).map(|i| PsnRun { first: 256 * i, count: 256 }).collect();
    qp.on_side(Time::ZERO, HostId(0), &SideMessage::Nack { flow, runs });
    let again = std::iter::from_fn(|| qp.poll_transmit(Time::ZERO, FreePorts::OPEN)).count();
    assert_eq!((again, qp.counters().asked_in_vain), (64, 1_024 - 64));
}

fn of_mtu(mtu_payload: u16) -> RdQp<AnyPolicy> {
    let env = PolicyEnv {
        line_rate: Rate::from_gbps(100),
        base_rtt: crate::world::RTT,
        mtu_wire_bytes: u32::from(mtu_payload) + 100,
        mtu_payload_bytes: u32::from(mtu_payload),
        paths: 1,
        measured: MeasuredSection::with_rtt(crate::world::RTT),
        edge: None,
    };
    let scheme = (find_scheme("erd-uncontrolled").expect("a scheme").make)();
    let (policy, control) = scheme.datagram_policy(&env, &mut Rng::for_component(1, "policy", 1));
    RdQp::new(RdConfig {
        num: QpNum(1),
        policy,
        control,
        behaviour: DatagramConfig { eeth: EethPlace::OutsideMtu, ..behaviour() },
        mtu_payload,
        framing: Framing::Pathweave,
        paths: env.paths,
        nic_ports: 1,
        seed: 1,
        rtt: crate::world::RTT,
        nack_delay: Duration::ZERO,
    })
}

/// A 24-bit PSN distinguishes 2^23 packets: a longer message is always refused, with its length and the allowed one.
#[test]
fn the_longest_message_is_one_whose_packets_can_be_told_apart() {
    for (mtu, most) in [(256, 1 << 31), (511, 511 << 23), (512, 1 << 32), (8_960, 1 << 32)] {
        let mut qp = of_mtu(mtu);
        qp.add_peer(Time::ZERO, peer(1), crate::world::RTT);
        let error = qp.post(Time::ZERO, peer(1), 1, most + 1).expect_err("too long");
        assert_eq!(error, RdPostError::Length { len: most + 1, most });
        assert_eq!(qp.post(Time::ZERO, peer(1), 1, most), Ok(()), "{mtu}");
    }
}

/// Action of a hostile peer.
#[derive(Clone, Debug)]
enum Deed {
    Data(RdData),
    Side(SideMessage),
}

/// A number near an edge of the sent range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..40, 0u64..5_000, 0u64..(1 << 25), (1u64 << 62) - 3..(1 << 62) + 1]
}

fn deed() -> impl Strategy<Value = Deed> {
    // The hostile peer is host 0, this end host 1.
    let to_here = RdFlow { src_qp: peer(0).qp, dst_qp: peer(1).qp };
    let from_here = RdFlow { src_qp: peer(1).qp, dst_qp: peer(0).qp };
    let data = (number(), any::<u16>(), any::<bool>(), 0u32..8, prop_oneof![Just(4_087u16), 0u16..5_000])
        .prop_map(|(psn, msg_id, multi, part, len)| {
            let offset = if multi { part * 4_087 } else { 0 };
            Deed::Data(RdData { psn, msg_id, multi, offset, len, retransmit: false })
        });
    let start = (number(), any::<u16>(), 1u32..5_000, any::<bool>()).prop_map(
        move |(first_psn, msg_id, packets, again)| {
            let total = u64::from(packets) * 4_087;
            Deed::Side(SideMessage::Start { flow: to_here, msg_id, first_psn, packets, total, again })
        },
    );
    let about =
        (number(), any::<u16>(), 0u8..4, 1u32..100_000).prop_map(move |(psn, msg_id, kind, packets)| {
            Deed::Side(match kind {
                0 => SideMessage::Abort { flow: to_here, msg_id, first_psn: psn, packets },
                1 => SideMessage::Wait { flow: from_here, msg_id, first_psn: psn },
                2 => SideMessage::Ready { flow: from_here, msg_id, from_psn: psn },
                _ => SideMessage::Nack { flow: from_here, runs: vec![PsnRun { first: psn, count: 256 }] },
            })
        });
    prop_oneof![data, start, about]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// An honest peer beside it loses nothing, and messages that wait for the hostile peer end when it is removed.
    #[test]
    fn an_honest_peer_does_not_notice_a_hostile_one(
        deeds in prop::collection::vec(deed(), 1..100),
        scheme in prop::sample::select(vec!["erd-uncontrolled", "erd"]),
        sizes in prop::collection::vec(prop_oneof![1u64..4_000, 1u64..100_000], 1..12),
        refuses in any::<bool>(),
    ) {
        let mut world = World::of(scheme, 3, behaviour(), 2, 1);
        // Host 0 is hostile; host 2 is honest, in both directions.
        world.post(1, 0, 99, 50_000);
        for (wr_id, &len) in (0..).zip(&sizes) {
            world.post(2, 1, wr_id, len);
            world.post(1, 2, wr_id, len);
        }
        if refuses {
            world.no_room_from.insert((1, peer(0)), 0);
        }
        for deed in deeds {
            world.run(Duration::from_us(2));
            let now = world.now;
            match deed {
                Deed::Side(message) => world.qps[1].on_side(now, HostId(0), &message),
                Deed::Data(data) => {
                    let (dst_qp, src_qp) = (peer(1).qp, peer(0).qp);
                    let segment = Segment::new(dst_qp, src_qp, PathId(0), Body::Rd(data));
                    if let Some(offer) = world.qps[1].judge(now, HostId(0), &segment, false) {
                        if refuses {
                            world.qps[1].refuse(now, offer);
                        } else {
                            world.qps[1].take(now, offer);
                        }
                    }
                }
            }
            world.drain(1);
        }
        world.run(Duration::from_ms(3));
        let honest = world.delivered.iter().filter(|(_, host, from, ..)| (*host, *from) == (1, peer(2)) || *host == 2);
        prop_assert_eq!(honest.count(), 2 * sizes.len());
        for (wr_id, _) in (0u64..).zip(&sizes) {
            for (host, from) in [(1, 2), (2, 1)] {
                prop_assert_eq!(&world.placed[&(host, peer(from), wr_id)].0, &world.sent[&(from, wr_id)]);
            }
        }
        let now = world.now;
        world.qps[1].remove_peer(now, peer(0));
        world.drain(1);
        prop_assert!(world.completed.iter().any(|(host, wr_id, ..)| (*host, *wr_id) == (1, 99)));
        let honest = world.completed.iter().filter(|(_, wr_id, ..)| *wr_id != 99);
        prop_assert!(honest.clone().all(|(_, _, status, _)| *status == Status::Success));
        prop_assert_eq!((honest.count(), world.qps[1].is_idle(), world.qps[1].open_flows()), (2 * sizes.len(), true, 0));
    }
}
