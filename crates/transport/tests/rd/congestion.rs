//! Congestion control for each destination, and probes.

use pathweave_policy::{DatagramConfig, NotificationScope};
use pathweave_transport::rd::RdQp;
use pathweave_transport::{Class, FreePorts, Transport};
use pathweave_units::{Duration, HostId, PathId, Rate, Time};
use pathweave_wire::{Body, Control, RdData, Segment};

use crate::world::{self, RTT, World, peer, queue_pair, queue_pair_of};

type Qp = RdQp<pathweave_policy::AnyPolicy>;

/// Queue pair of host 0 with ten full packets for each of hosts 1 and 2.
fn sender(scheme: &str) -> Qp {
    sender_that(scheme, DatagramConfig::default())
}

fn sender_that(scheme: &str, behaviour: DatagramConfig) -> Qp {
    let mut qp = queue_pair_of(scheme, 0, behaviour, 4, 1);
    for to in [1, 2] {
        qp.add_peer(Time::ZERO, peer(to), RTT);
        qp.post(Time::ZERO, peer(to), to as u64, 10 * 4_087).expect("room");
    }
    qp
}

fn to_sender(from: usize, body: Body) -> Segment {
    Segment::new(peer(0).qp, peer(from).qp, PathId(3), body)
}

/// Destination hosts of the packets that leave now.
fn now_to(qp: &mut Qp, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| qp.poll_transmit(now, FreePorts::OPEN)).map(|packet| packet.to.0).collect()
}

/// Time at which the rate falls: one decrease interval of DCQCN after the first notification.
const CUT: Time = Time::from_us(4);

/// Notifications of host 1 from the beginning on, one in each period of alpha, which therefore stays 1.
fn notify_until_cut(qp: &mut Qp) {
    for ns in [0, 500, 1_500, 2_500, 3_500] {
        assert_eq!(qp.on_packet(Time::from_ns(ns), HostId(1), &to_sender(1, Body::Cnp), false), None);
    }
}

/// The first cut halves the rate to one destination (alpha is 1): a packet of 4,190 bytes takes 670.4 ns at 50 Gb/s.
/// The other destination gets packets as fast as the port accepts them.
#[test]
fn a_mark_slows_one_destination_and_no_other() {
    let mut qp = sender("erd");
    let first = [0, 1].map(|_| qp.poll_transmit(Time::ZERO, FreePorts::OPEN).expect("at line rate"));
    assert_eq!(first.map(|packet| (packet.to.0, packet.ecn_capable)), [(1, true), (2, true)]);
    notify_until_cut(&mut qp);
    // One packet that was due, and then the nine of the other destination.
    assert_eq!(now_to(&mut qp, CUT), [&[1][..], &[2; 9]].concat());
    assert!(!qp.has_ready_data() && !qp.is_idle());
    for packet in 1..=8 {
        let at = CUT + Duration::from_ps(670_400 * packet);
        assert_eq!(qp.poll_timer(), Some(at));
        assert_eq!(now_to(&mut qp, at), [1]);
    }
    assert_eq!((qp.poll_timer(), qp.counters().cnps_received), (None, 5));
}

/// With one rate for all destinations, the same notification halves the rate to both, and they continue to take
/// turns.
#[test]
fn a_mark_slows_all_destinations_of_a_queue_pair() {
    let mut qp = sender_that(
        "erd",
        DatagramConfig { slows: NotificationScope::QueuePair, ..DatagramConfig::default() },
    );
    let first = [0, 1].map(|_| qp.poll_transmit(Time::ZERO, FreePorts::OPEN).expect("at line rate"));
    assert_eq!(first.map(|packet| (packet.to.0, packet.ecn_capable)), [(1, true), (2, true)]);
    assert_eq!(qp.slowest(Time::ZERO), Some(Rate::from_gbps(100)));
    notify_until_cut(&mut qp);
    assert_eq!(qp.slowest(CUT), Some(Rate::from_gbps(50)));
    // One packet that was due, and then one every 670.4 ns.
    assert_eq!(now_to(&mut qp, CUT), [1]);
    for packet in 1..=17 {
        let at = CUT + Duration::from_ps(670_400 * packet);
        assert_eq!(qp.poll_timer(), Some(at));
        assert_eq!(now_to(&mut qp, at), [1 + (packet % 2) as u32]);
    }
    assert_eq!(qp.poll_timer(), None);
}

/// Nobody slows down, as in the paper: packets leave in the order of posting, and switches must not mark them.
#[test]
fn without_rate_control_marks_say_nothing() {
    let mut qp = sender("erd-uncontrolled");
    qp.on_packet(Time::ZERO, HostId(1), &to_sender(1, Body::Cnp), false);
    let packet = qp.poll_transmit(Time::ZERO, FreePorts::OPEN).expect("at line rate");
    assert!(!packet.ecn_capable);
    assert_eq!(now_to(&mut qp, Time::ZERO), [&[1; 9][..], &[2; 10]].concat());
}

/// A marked packet is answered on its path, at most once in the period of DCQCN's alpha, 1 us.
#[test]
fn marks_are_told_once_in_a_while() {
    let marked_at = |scheme: &str, instants_ns: &[u64]| {
        let mut qp = queue_pair_of(scheme, 0, DatagramConfig::default(), 4, 1);
        qp.add_peer(Time::ZERO, peer(1), RTT);
        let mut told = vec![];
        for (psn, &at) in (0..).zip(instants_ns) {
            let data = RdData { psn, msg_id: psn as u16, multi: false, offset: 0, len: 9, retransmit: false };
            let now = Time::ZERO + Duration::from_ns(at);
            assert!(qp.on_packet(now, HostId(1), &to_sender(1, Body::Rd(data)), true).is_some());
            while let Some(packet) = qp.poll_transmit(now, FreePorts::CONTROL) {
                assert_eq!((packet.to, packet.class, packet.ecn_capable), (HostId(1), Class::Control, false));
                let expected = Segment::new(peer(1).qp, peer(0).qp, PathId(3), Body::Cnp);
                assert_eq!(packet.segment, expected);
                told.push(at);
            }
        }
        assert_eq!(qp.counters().marked_received, instants_ns.len() as u64);
        told
    };
    assert_eq!(marked_at("erd", &[0, 999, 1_000, 1_500, 2_700]), [0, 1_000, 2_700]);
    assert!(marked_at("erd-uncontrolled", &[0, 5_000]).is_empty());
}

/// Every packet is marked: the rate falls until the receiver gets almost none, but everything arrives. It takes
/// several times as long as at line rate.
#[test]
fn rates_follow_marks() {
    let took = |mark| {
        let mut world = World::of("erd", 2, DatagramConfig::default(), 4, 1);
        world.channels[0].mark = mark;
        world.post(0, 1, 0, 4_087 * 1_000);
        assert!(world.run(Duration::from_ms(1_000)));
        world.check_all_arrived(&|_, _| (1, 0));
        let told = [world.qps[1].counters().cnps_sent, world.qps[0].counters().cnps_received];
        assert!(told[0] == told[1] && (told[0] > 0) == (mark > 0.0), "{told:?}");
        world.delivered[0].0 - Time::ZERO
    };
    let (free, marked) = (took(0.0), took(1.0));
    assert_eq!(
        free,
        World::new(1, DatagramConfig::default(), 1, 1).rate.time_for(4_190 * 1_000) + world::DELAY
    );
    assert!(marked > free * 5, "{marked} {free}");
}

/// A destination that was removed and added again has the rate of an unused one.
#[test]
fn a_destination_that_comes_anew_starts_at_line_rate() {
    let mut qp = sender("erd");
    notify_until_cut(&mut qp);
    assert_eq!(now_to(&mut qp, CUT).len(), 11);
    qp.remove_peer(CUT, peer(1));
    assert!(qp.is_idle() || qp.poll_timer().is_none());
    qp.add_peer(CUT, peer(1), RTT);
    qp.post(CUT, peer(1), 7, 3 * 4_087).expect("room");
    assert_eq!(now_to(&mut qp, CUT), [1, 1, 1]);
}

/// Any end that knows the sender answers a probe.
#[test]
fn probes_are_answered() {
    let behaviour = DatagramConfig::default();
    let (mut near, mut far) = (queue_pair(0, behaviour, 4, 1), queue_pair(1, behaviour, 4, 1));
    near.add_peer(Time::ZERO, peer(1), RTT);
    near.probe(Time::from_us(3), peer(2));
    near.probe(Time::from_us(3), peer(1));
    let probe = near.poll_transmit(Time::from_us(3), FreePorts::CONTROL).expect("one for whom it knows");
    assert_eq!((near.poll_transmit(Time::from_us(3), FreePorts::CONTROL), probe.to), (None, HostId(1)));
    far.on_packet(Time::from_us(8), HostId(0), &probe.segment, false);
    assert_eq!((far.poll_transmit(Time::from_us(8), FreePorts::CONTROL), far.counters().foreign), (None, 1));
    far.add_peer(Time::from_us(8), peer(0), RTT);
    far.on_packet(Time::from_us(9), HostId(0), &probe.segment, false);
    let answer = far.poll_transmit(Time::from_us(9), FreePorts::CONTROL).expect("an answer").segment;
    let body =
        Body::Control(Control::ProbeReply { sent_at: Time::from_us(3), received_at: Time::from_us(9) });
    assert_eq!((answer.body, answer.dst_qp), (body, peer(0).qp));
    near.on_packet(Time::from_us(12), HostId(1), &answer, false);
    assert_eq!(
        (near.poll_transmit(Time::from_us(12), FreePorts::CONTROL), near.counters().malformed),
        (None, 0)
    );
    assert!(!near.awaits(peer(1)));
    let data = RdData { psn: 0, msg_id: 0, multi: true, offset: 0, len: 4_087, retransmit: false };
    assert!(near.on_packet(Time::from_us(12), HostId(1), &to_sender(1, Body::Rd(data)), false).is_some());
    assert!(near.awaits(peer(1)), "a message has come in part");
}
