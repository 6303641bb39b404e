//! Datagram queue pairs: the oracles of the ERD mechanism, and arbitrarily bad channels.

mod congestion;
mod hostile;
mod ready;
mod world;

use pathweave_policy::{DatagramConfig, Delivery, EethPlace, Repair, RetryOrder, RttSource};
use pathweave_transport::rd::{MAX_RD_OUTSTANDING, PeerId, RdEvent, RdPostError, RdQp, SideMessage};
use pathweave_transport::{FreePorts, Status, Transport};
use pathweave_units::{Duration, HostId, PathId, QpNum, Time};
use pathweave_wire::{Body, PsnRun, RdData, RdFlow, Segment};
use proptest::prelude::*;
use world::{Channel, GOOD, World, peer, queue_pair};

const SECOND: Duration = Duration::from_ms(1_000);

fn behaviour() -> DatagramConfig {
    DatagramConfig::default()
}

fn data_of(segment: &Segment) -> RdData {
    match segment.body {
        Body::Rd(data) => data,
        _ => panic!("not a datagram: {segment:?}"),
    }
}

/// All packets of a message of 10,000 bytes between two hosts, with their side messages.
fn packets_of_ten_thousand(eeth: EethPlace) -> (Vec<Segment>, Vec<SideMessage>) {
    let mut qp = queue_pair(0, DatagramConfig { eeth, ..behaviour() }, 1, 1);
    qp.add_peer(Time::ZERO, peer(1), world::RTT);
    qp.post(Time::ZERO, peer(1), 7, 10_000).expect("room");
    let packets =
        std::iter::from_fn(|| qp.poll_transmit(Time::ZERO, FreePorts::OPEN)).map(|p| p.segment).collect();
    let side = std::iter::from_fn(|| qp.poll_side()).map(|(_, message)| message).collect();
    (packets, side)
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let insert = |rest: Vec<usize>| {
        (0..n).map(move |at| [&rest[..at], &[n - 1], &rest[at..]].concat()).collect::<Vec<_>>()
    };
    permutations(n - 1).into_iter().flat_map(insert).collect()
}

/// Oracle 6: in any order, with every packet twice, and the side messages `Start` and `Sent` anywhere between them.
/// The bytes are the same, reported once.
#[test]
fn packets_are_placed_in_any_order() {
    for eeth in [EethPlace::InsideMtu, EethPlace::OutsideMtu] {
        let (packets, side) = packets_of_ten_thousand(eeth);
        let parts: Vec<_> = packets.iter().map(|p| (data_of(p).offset, data_of(p).len)).collect();
        let expected = match eeth {
            EethPlace::InsideMtu => [(0, 4_087), (4_087, 4_087), (8_174, 1_826)],
            EethPlace::OutsideMtu => [(0, 4_096), (4_096, 4_096), (8_192, 1_808)],
        };
        assert_eq!(parts, expected);
        assert!(matches!(side[..], [SideMessage::Start { .. }, SideMessage::Sent { end_psn: 3, .. }]));
        for order in permutations(5) {
            let mut qp = queue_pair(1, DatagramConfig { eeth, ..behaviour() }, 1, 1);
            qp.add_peer(Time::ZERO, peer(0), world::RTT);
            let mut bytes = 0;
            for step in order {
                match packets.get(step) {
                    Some(packet) => {
                        let first = qp.on_packet(Time::ZERO, HostId(0), packet, false);
                        bytes += u64::from(first.expect("new").len);
                        assert_eq!(qp.on_packet(Time::ZERO, HostId(0), packet, false), None);
                    }
                    None => qp.on_side(Time::ZERO, HostId(0), &side[step - packets.len()]),
                }
            }
            assert_eq!((bytes, qp.counters().duplicates), (10_000, 3));
            assert!(qp.poll_event().is_some() && qp.poll_event().is_none());
            assert!(matches!(qp.poll_side(), Some((_, SideMessage::Done { first_psn: 0, .. }))));
            assert_eq!((qp.poll_side(), qp.open_flows()), (None, 0));
        }
    }
}

/// Erratum E9: the printed algorithm 1 walks its input once and takes what fits at its pointer. Ours follows the
/// text.
#[test]
fn the_printed_listing_needs_input_in_order() {
    let printed = |order: [(u64, u64); 3]| {
        order
            .into_iter()
            .fold(0, |pointer, (offset, len)| if offset == pointer { pointer + len } else { pointer })
    };
    let [a, b, c] = [(0, 4_087), (4_087, 4_087), (8_174, 1_826)];
    assert_eq!(printed([a, b, c]), 10_000);
    assert!(printed([a, c, b]) < 10_000, "the sum it is compared with is 10,000: an error");
}

fn nack(runs: &[(u64, u16)]) -> SideMessage {
    let flow = RdFlow { src_qp: peer(0).qp, dst_qp: peer(1).qp };
    SideMessage::Nack { flow, runs: runs.iter().map(|&(first, count)| PsnRun { first, count }).collect() }
}

type Qp = RdQp<pathweave_policy::AnyPolicy>;

fn sender_of(packets: u64, retries: RetryOrder) -> (Qp, impl FnMut(&mut Qp) -> Option<(u64, bool)>) {
    let mut qp = queue_pair(0, DatagramConfig { retries, ..behaviour() }, 1, 1);
    qp.add_peer(Time::ZERO, peer(1), world::RTT);
    for message in 0..packets {
        qp.post(Time::ZERO, peer(1), message, 100).expect("room");
    }
    let next = |qp: &mut Qp| {
        let packet = qp.poll_transmit(Time::ZERO, FreePorts::OPEN)?;
        Some((data_of(&packet.segment).psn, data_of(&packet.segment).retransmit))
    };
    (qp, next)
}

/// Oracles 8 and 9.
#[test]
fn retransmissions_go_first_and_once() {
    let (mut qp, mut next) = sender_of(110, RetryOrder::First);
    (0..10).for_each(|psn| assert_eq!(next(&mut qp), Some((psn, false))));
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(2, 1), (5, 2)]));
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(5, 1)]));
    assert_eq!(qp.counters().asked_in_vain, 1);
    let order: Vec<_> = (0..4).filter_map(|_| next(&mut qp)).collect();
    assert_eq!(order, [(2, true), (5, true), (6, true), (10, false)]);
    // A packet that has not left is not lost.
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(50, 3)]));
    assert_eq!((next(&mut qp), qp.counters().asked_in_vain), (Some((11, false)), 4));

    let (mut qp, mut next) = sender_of(110, RetryOrder::Half);
    assert_eq!((0..10).filter_map(|_| next(&mut qp)).count(), 10);
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(5, 3)]));
    let order: Vec<_> = (0..5).filter_map(|_| next(&mut qp)).map(|(psn, _)| psn).collect();
    assert_eq!(order, [5, 10, 6, 11, 7]);

    let (mut qp, mut next) = sender_of(12, RetryOrder::Last);
    assert_eq!((0..10).filter_map(|_| next(&mut qp)).count(), 10);
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(5, 1)]));
    assert_eq!(std::iter::from_fn(|| next(&mut qp)).map(|(psn, _)| psn).collect::<Vec<_>>(), [10, 11, 5]);
}

/// Oracle 10.
#[test]
fn completed_messages_are_forgotten() {
    let (mut qp, mut next) = sender_of(2, RetryOrder::First);
    while next(&mut qp).is_some() {}
    let flow = RdFlow { src_qp: peer(0).qp, dst_qp: peer(1).qp };
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(1, 1)]));
    for psn in [0, 1] {
        let done = SideMessage::Done { flow, msg_id: psn, first_psn: u64::from(psn) };
        qp.on_side(Time::ZERO, HostId(1), &done);
        qp.on_side(Time::ZERO, HostId(1), &done);
    }
    assert_eq!((next(&mut qp), qp.has_ready_data(), qp.is_idle()), (None, false, true));
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(0, 2)]));
    assert!(!qp.has_ready_data() && qp.counters().messages_done == 2);
    assert_eq!(std::iter::from_fn(|| qp.poll_event()).count(), 2);
}

/// Oracle 13: equal numbers from two sources are two messages.
#[test]
fn sources_stay_apart() {
    let mut world = World::new(3, behaviour(), 2, 3);
    for from in [0, 1] {
        world.post(from, 2, 9, 20_000);
    }
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, _| (2, 0));
    assert_ne!(world.placed[&(2, peer(0), 0)].0, world.placed[&(2, peer(1), 0)].0);
}

/// Oracle 14: 10 % loss on one source leaves the mean completion time of another within 2 %.
#[test]
fn the_loss_of_one_source_is_not_anothers() {
    let mean_of_b = |loss| {
        let mut world = World::new(3, behaviour(), 2, 5);
        world.channels[0].loss = loss;
        for message in 0..200 {
            world.post(0, 2, message, 16_000);
            world.post(1, 2, message, 16_000);
        }
        assert!(world.run(SECOND));
        world.check_all_arrived(&|_, message| (2, message));
        assert!((world.retransmissions() > 0) == (loss > 0.0));
        let of_b = world.delivered.iter().filter(|(_, _, from, ..)| *from == peer(1));
        of_b.map(|(at, ..)| at.as_ps() as f64).sum::<f64>() / 200.0
    };
    let (alone, beside) = (mean_of_b(0.0), mean_of_b(0.1));
    assert!((beside / alone - 1.0).abs() < 0.02, "{alone} {beside}");
}

/// Oracle 15: nothing is requested, and the link carries only packets of 4,087 bytes in 4,190.
#[test]
fn without_loss_there_is_nothing_but_payload() {
    let mut world = World::new(2, behaviour(), 1, 1);
    world.post(0, 1, 0, 4_087 * 1_000);
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, _| (1, 0));
    assert_eq!((world.qps[1].counters().nacks_sent, world.wire_bytes), (0, 4_190 * 1_000));
    let (delivered, ..) = world.delivered[0];
    // The last bit leaves after the time of 1000 packets and arrives 5 us later.
    assert_eq!(delivered, Time::ZERO + world.rate.time_for(4_190 * 1_000) + world::DELAY);
}

/// Oracle 16.
#[test]
fn paths_have_equal_shares() {
    for paths in [1, 3, 4, 8] {
        let mut world = World::new(2, behaviour(), paths, 11);
        world.post(0, 1, 0, 1_000_000);
        world.post(0, 1, 1, 12_345);
        assert!(world.run(SECOND));
        let (least, most) = (world.per_path.values().min(), world.per_path.values().max());
        assert_eq!(world.per_path.len(), usize::from(paths));
        assert!(most.unwrap() - least.unwrap() <= 1, "{:?}", world.per_path);
    }
}

/// Oracle 17: paths that differ by less than the period cost nothing, except with the rule as printed.
#[test]
fn late_is_not_lost() {
    for (repair, none) in [(Repair::TwoScans, true), (Repair::Literal, false)] {
        let mut world = World::new(2, DatagramConfig { repair, ..behaviour() }, 2, 1);
        // The period is 25 us.
        world.channels[0].skew = Duration::from_us(20);
        world.post(0, 1, 0, 8_000_000);
        assert!(world.run(SECOND));
        world.check_all_arrived(&|_, _| (1, 0));
        let nacks = world.qps[1].counters().nacks_sent;
        assert_eq!((world.retransmissions() == 0, nacks == 0), (none, none), "{repair:?}");
    }
}

/// Packets that are merely late are requested in vain if queues are longer than the period, unless the period follows
/// the queues. The rule of overtaking paths needs that less: packets seem lost only until the later path has
/// delivered its first one.
#[test]
fn a_measured_round_trip_tells_late_from_lost() {
    let in_vain = |repair, rtt| {
        let mut world = World::new(2, DatagramConfig { repair, rtt, ..behaviour() }, 2, 1);
        // Two scans are up to 50 us apart.
        world.channels[0].skew = Duration::from_us(100);
        world.post(0, 1, 0, 20_000_000);
        assert!(world.run(SECOND));
        world.check_all_arrived(&|_, _| (1, 0));
        world.retransmissions()
    };
    let by_scans = [RttSource::Configured, RttSource::Measured].map(|rtt| in_vain(Repair::TwoScans, rtt));
    let overtaken = [RttSource::Configured, RttSource::Measured].map(|rtt| in_vain(Repair::Overtaken, rtt));
    let [configured, measured] = by_scans;
    assert!(measured > 0 && measured * 5 < configured, "{by_scans:?}");
    assert!(overtaken[0] * 5 < configured && overtaken[1] < measured, "{overtaken:?} {by_scans:?}");
}

#[test]
fn raw_datagrams_are_not_repaired() {
    let mut world = World::new(2, DatagramConfig { repair: Repair::Never, ..behaviour() }, 4, 1);
    world.channels[0].loss = 0.3;
    (0..100).for_each(|message| world.post(0, 1, message, 1_000));
    assert!(world.run(SECOND));
    assert_eq!((world.completed.len(), world.retransmissions()), (100, 0));
    assert!((50..90).contains(&world.delivered.len()), "{}", world.delivered.len());
}

/// A lost channel loses announcements, requests and reports of completion. Those that may be lost are repeated.
#[test]
fn a_side_channel_that_breaks_loses_nothing() {
    let mut world = World::new(2, behaviour(), 4, 1);
    world.channels[0].loss = 0.1;
    world.side_down = true;
    (0..50).for_each(|message| world.post(0, 1, message, 9_000 * (message % 3) + 1));
    assert!(!world.run(Duration::from_ms(5)), "the scan goes on");
    assert!(world.completed.is_empty());
    world.side_down = false;
    for host in [0, 1] {
        let now = world.now;
        world.qps[host].on_side_reset(now, HostId(1 - host as u32));
        world.drain(host);
    }
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, message| (1, message));
}

/// Messages to an unreachable peer end with an error, and the peer forgets them.
#[test]
fn nothing_is_sent_for_ever() {
    let mut world = World::new(2, DatagramConfig { retry_limit: 5, ..behaviour() }, 1, 1);
    world.channels[0].loss = 1.0;
    world.post(0, 1, 0, 9_000);
    assert!(world.run(SECOND));
    assert_eq!(world.completed, [(0, 0, Status::RetryExceeded, 15)]);
    assert_eq!((world.abandoned, world.delivered.len(), world.qps[1].open_flows()), (1, 0, 0));
    // It continues with the next message.
    world.channels[0].loss = 0.0;
    world.post(0, 1, 1, 9_000);
    assert!(world.run(SECOND));
    assert_eq!((world.delivered.len(), world.completed.len()), (1, 2));
}

#[test]
fn impossible_posts_are_refused() {
    let mut qp = queue_pair(0, behaviour(), 1, 1);
    qp.add_peer(Time::ZERO, peer(1), world::RTT);
    let stranger = PeerId { host: HostId(9), qp: QpNum(3) };
    let says = |error: Option<RdPostError>| error.expect("refused").to_string();
    let mut post = |to, len| qp.post(Time::ZERO, to, 0, len).err();
    assert_eq!(says(post(stranger, 1)), "queue pair 3 of host 9 is not a known peer; it must be added first");
    assert_eq!(says(post(peer(1), 0)), "a message of 0 bytes; 1 to 4294967296 bytes are allowed");
    assert_eq!(
        says(post(peer(1), (1 << 32) + 1)),
        "a message of 4294967297 bytes; 1 to 4294967296 bytes are allowed"
    );
    (0..MAX_RD_OUTSTANDING).for_each(|_| assert_eq!(post(peer(1), 1), None));
    assert_eq!(
        says(post(peer(1), 1)),
        "32768 messages to queue pair 2 of host 1 are outstanding, as many as are allowed"
    );
}

#[test]
fn unknown_and_invalid_packets_are_counted_and_dropped() {
    let mut qp = queue_pair(1, behaviour(), 1, 1);
    qp.add_peer(Time::ZERO, peer(0), world::RTT);
    let good = RdData { psn: 0, msg_id: 0, multi: true, offset: 0, len: 100, retransmit: false };
    let segment = |data| Segment::new(peer(1).qp, peer(0).qp, PathId(0), Body::Rd(data));
    assert_eq!(qp.on_packet(Time::ZERO, HostId(7), &segment(good), false), None);
    let other = Segment { src_qp: QpNum(77), ..segment(good) };
    assert_eq!(qp.on_packet(Time::ZERO, HostId(0), &other, false), None);
    assert_eq!(qp.counters().foreign, 2);
    let nonsense = [
        RdData { len: 0, ..good },
        RdData { len: 5_000, ..good },
        RdData { multi: false, offset: 4, ..good },
        RdData { offset: u32::MAX, ..good },
        RdData { psn: 1 << 40, ..good },
    ];
    for data in nonsense {
        assert_eq!(qp.on_packet(Time::ZERO, HostId(0), &segment(data), false), None, "{data:?}");
    }
    assert_eq!(qp.counters().malformed, 5);
    assert_eq!(qp.on_packet(Time::ZERO, HostId(0), &segment(RdData { psn: 4_096, ..good }), false), None);
    assert_eq!(qp.counters().beyond_window_drops, 1);
    let flow = RdFlow { src_qp: peer(0).qp, dst_qp: peer(1).qp };
    let start =
        |packets, total| SideMessage::Start { flow, msg_id: 0, first_psn: 0, packets, total, again: false };
    qp.on_side(Time::ZERO, HostId(0), &start(2_000_000_000, 1 << 32));
    qp.on_side(Time::ZERO, HostId(0), &start(5, 4));
    qp.on_side(Time::ZERO, HostId(5), &start(2, 5_000));
    qp.on_side(Time::ZERO, HostId(0), &SideMessage::Done { flow, msg_id: 0, first_psn: 0 });
    assert_eq!((qp.counters().malformed, qp.counters().foreign), (7, 4));
    assert!(qp.poll_event().is_none() && qp.poll_side().is_none());
}

/// A removed peer leaves nothing behind, and a new one in its slot starts afresh.
#[test]
fn a_peer_that_is_removed_leaves_nothing_to_the_next() {
    let mut qp = queue_pair(0, behaviour(), 1, 1);
    for to in [1, 2] {
        qp.add_peer(Time::ZERO, peer(to), world::RTT);
        for wr_id in 0..3 {
            qp.post(Time::ZERO, peer(to), to as u64 * 10 + wr_id, 10_000).expect("room");
        }
    }
    // Two packets of the first message to 1 have left, and one of them is requested.
    (0..2).for_each(|_| assert!(qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some()));
    qp.on_side(Time::ZERO, HostId(1), &nack(&[(0, 1)]));
    qp.remove_peer(Time::ZERO, peer(1));
    let ended: Vec<_> = std::iter::from_fn(|| qp.poll_event()).collect();
    let failed = |wr_id| {
        ended.iter().any(|event| {
            matches!(event, RdEvent::Completion { wr_id: id, status: Status::RetryExceeded, .. } if *id == wr_id)
        })
    };
    assert!(ended.len() == 3 && (10..13).all(failed), "{ended:?}");
    assert!(qp.poll_side().is_none(), "what was to be said to it is not said");
    assert_eq!(qp.post(Time::ZERO, peer(1), 1, 1), Err(RdPostError::UnknownPeer(peer(1))));
    qp.add_peer(Time::ZERO, peer(3), world::RTT);
    qp.post(Time::ZERO, peer(3), 30, 100).expect("room");
    let sent: Vec<_> = std::iter::from_fn(|| qp.poll_transmit(Time::ZERO, FreePorts::OPEN)).collect();
    let to: Vec<_> = sent.iter().map(|packet| (packet.to.0, data_of(&packet.segment).psn)).collect();
    let expected = (0..9).map(|psn| (2, psn)).chain([(3, 0)]);
    assert_eq!(to, expected.collect::<Vec<_>>());
}

/// Memory that every peer costs, for any number of paths.
#[test]
#[expect(clippy::print_stdout, reason = "the size is the point; see it with --nocapture")]
fn bytes_of_a_peer() {
    let [free, controlled] = [false, true].map(Qp::bytes_a_peer);
    println!("a peer costs {free} B while idle, {controlled} B with congestion control, any number of paths");
    assert!(free <= 192 && controlled <= 512, "{free} {controlled}");
    for paths in [1, 64] {
        let mut world = World::new(2, behaviour(), paths, 1);
        world.post(0, 1, 0, 1_000_000);
        assert!(world.run(SECOND));
        assert_eq!(world.qps[0].open_flows() + world.qps[1].open_flows(), 0);
    }
}

fn any_channel() -> impl Strategy<Value = Channel> {
    (
        prop::sample::select(vec![0.0, 1e-3, 1e-2, 3e-2, 0.3]),
        prop::sample::select(vec![0.0, 0.05]),
        prop::sample::select(vec![0.0, 0.01, 0.3]),
        0..300u64,
        0..60u64,
    )
        .prop_map(|(loss, duplicate, mark, jitter, skew)| Channel {
            loss,
            duplicate,
            mark,
            jitter: Duration::from_us(jitter),
            skew: Duration::from_us(skew),
        })
}

fn any_behaviour() -> impl Strategy<Value = DatagramConfig> {
    use pathweave_policy::Announce;
    (
        prop::sample::select(vec![Repair::TwoScans, Repair::Literal]),
        prop::sample::select(vec![RetryOrder::First, RetryOrder::Half, RetryOrder::Last]),
        prop::sample::select(vec![Announce::FirstPacket, Announce::Post]),
        prop::sample::select(vec![Delivery::Unordered, Delivery::Ordered]),
        prop::sample::select(vec![64, 256, 4_096]),
        prop::sample::select(vec![RttSource::Configured, RttSource::Measured]),
    )
        .prop_map(|(repair, retries, announce, delivery, window_packets, rtt)| DatagramConfig {
            repair,
            rtt,
            retries,
            announce,
            delivery,
            window_packets,
            ..DatagramConfig::default()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With any losses, duplicates and delays, every byte of every message arrives once, and nothing hangs.
    #[test]
    fn any_channel_carries_every_byte_once(
        channel in any_channel(),
        behaviour in any_behaviour(),
        scheme in prop::sample::select(vec!["erd-uncontrolled", "erd"]),
        paths in 1u16..6,
        sizes in prop::collection::vec(prop_oneof![1u64..4_000, 1u64..100_000, Just(600_000u64)], 1..24),
        seed in 0u64..1_000,
    ) {
        let mut world = World::of(scheme, 3, behaviour, paths, seed);
        world.channels = vec![channel, Channel { loss: channel.loss / 2.0, ..channel }, GOOD];
        let mut place = std::collections::BTreeMap::new();
        let mut next = std::collections::BTreeMap::<_, u64>::new();
        for (wr_id, &len) in (0u64..).zip(&sizes) {
            let (from, to) = (wr_id as usize % 2, if wr_id % 3 == 0 { 1 - wr_id as usize % 2 } else { 2 });
            let msg = next.entry((from, to)).or_default();
            place.insert((from, wr_id), (to, *msg));
            *msg += 1;
            world.post(from, to, wr_id, len);
        }
        prop_assert!(world.run(Duration::from_ms(60_000)), "still going after a minute");
        world.check_all_arrived(&|from, wr_id| place[&(from, wr_id)]);
        if behaviour.delivery == Delivery::Ordered {
            let mut last = std::collections::BTreeMap::new();
            for (_, host, from, msg, _) in &world.delivered {
                let before = last.insert((*host, *from), *msg);
                prop_assert_eq!(*msg, before.map_or(0, |before| before + 1));
            }
        }
    }
}
