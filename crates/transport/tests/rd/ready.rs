//! Receivers that have neither a receive nor buffer space: their messages wait, and nothing is sent in vain.

use pathweave_transport::rd::SideMessage;
use pathweave_transport::{FreePorts, Status, Transport};
use pathweave_units::{Duration, HostId, Time};
use proptest::prelude::*;

use crate::world::{Channel, GOOD, RTT, World, peer, queue_pair};
use crate::{SECOND, behaviour};

/// Makes room at a host for all messages of a peer.
fn make_room(world: &mut World, host: usize, from: usize) {
    let now = world.now;
    world.no_room_from.remove(&(host, peer(from)));
    world.qps[host].release(now, peer(from));
    world.drain(host);
}

/// Packets in flight when the `Wait` arrives are dropped; nothing else is sent while there is no room.
#[test]
fn a_message_without_room_waits_and_nothing_is_sent_in_vain() {
    let mut world = World::new(3, behaviour(), 4, 1);
    world.no_room_from.insert((1, peer(0)), 1);
    for (wr_id, len) in [(0, 9_000), (1, 8 << 20), (2, 5), (3, 100_000)] {
        world.post(0, 1, wr_id, len);
    }
    // Other messages do not wait for it.
    world.post(0, 2, 4, 1 << 20);
    world.post(2, 1, 5, 1 << 20);
    assert!(world.run(SECOND), "no timer runs while a message waits");
    let done: Vec<u64> = world.completed.iter().map(|(_, wr_id, ..)| *wr_id).collect();
    assert_eq!((world.delivered.len(), done.len()), (3, 3), "{done:?}");
    assert_eq!(world.qps[1].waiting(peer(0)), Some((1, 8 << 20)));
    let sent = world.qps[0].counters().data_sent;
    // Packets that leave before the `Wait` arrives: announcement and `Wait` take 15 us each, a packet 335 ns.
    assert_eq!(world.retransmissions(), 0);
    assert!(sent < 3 + 257 + 150, "{sent} packets left, those of other messages included");
    assert_eq!(world.qps[1].counters().waits_sent, 1);
    // Nothing happens, however long it takes.
    assert!(world.run(SECOND) && world.qps[0].counters().data_sent == sent);
    make_room(&mut world, 1, 0);
    assert!(world.run(SECOND));
    let place = |from, wr_id| match (from, wr_id) {
        (0, 4) => (2, 0),
        (2, 5) => (1, 0),
        (_, wr_id) => (1, wr_id),
    };
    world.check_all_arrived(&place);
    // Only packets that left before the `Wait` arrived have been sent again.
    assert!(world.retransmissions() < 150, "{}", world.retransmissions());
}

/// Room is made message by message.
#[test]
fn messages_of_one_peer_come_as_there_is_room_for_them() {
    let mut world = World::new(2, behaviour(), 4, 1);
    world.no_room_from.insert((1, peer(0)), 0);
    (0..20).for_each(|wr_id| world.post(0, 1, wr_id, 20_000));
    for n in 1..=20 {
        assert!(world.run(SECOND));
        assert_eq!(world.delivered.len() as u64, n - 1);
        world.no_room_from.insert((1, peer(0)), n);
        let now = world.now;
        world.qps[1].release(now, peer(0));
        world.drain(1);
    }
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, wr_id| (1, wr_id));
}

/// A `Wait` or `Ready` is sent on a channel that breaks: it is repeated.
#[test]
fn a_side_channel_that_breaks_loses_neither_word() {
    let broken = |world: &mut World| {
        world.side_down = false;
        for host in [0, 1] {
            let now = world.now;
            world.qps[host].on_side_reset(now, HostId(1 - host as u32));
            world.drain(host);
        }
    };
    let mut world = World::new(2, behaviour(), 4, 1);
    world.no_room_from.insert((1, peer(0)), 0);
    world.post(0, 1, 0, 1 << 20);
    // The announcement is in flight; side messages from now on are lost.
    world.run(Duration::from_us(8));
    world.side_down = true;
    world.run(Duration::from_ms(1));
    assert_eq!(world.qps[0].counters().waits_received, 0);
    broken(&mut world);
    assert!(world.run(SECOND));
    assert_eq!(world.qps[0].counters().waits_received, 1);
    let sent = world.qps[0].counters().data_sent;
    world.side_down = true;
    make_room(&mut world, 1, 0);
    world.run(Duration::from_ms(1));
    assert_eq!((world.qps[0].counters().data_sent, world.delivered.len()), (sent, 0));
    broken(&mut world);
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, wr_id| (1, wr_id));
}

/// A side message was lost unnoticed: the sender asks again for the state of its message.
#[test]
fn a_reminder_brings_what_nobody_knows_to_be_lost() {
    let mut world = World::new(2, behaviour(), 1, 1);
    let lose = |world: &mut World, during: Duration| {
        world.side_down = true;
        world.run(during);
        world.side_down = false;
    };
    let remind = |world: &mut World| {
        let now = world.now;
        world.qps[0].remind(now, peer(1), 0, 64);
        world.drain(0);
        assert!(world.run(SECOND));
    };
    // `Done` is lost: 100 packets take 33 us and 5.
    world.post(0, 1, 0, 400_000);
    world.run(Duration::from_us(20));
    lose(&mut world, SECOND);
    assert_eq!((world.delivered.len(), world.completed.len()), (1, 0));
    remind(&mut world);
    assert_eq!(world.completed, [(0, 0, Status::Success, 0)]);
    // `Ready` is lost.
    world.no_room_from.insert((1, peer(0)), 1);
    world.post(0, 1, 1, 400_000);
    assert!(world.run(SECOND));
    world.side_down = true;
    make_room(&mut world, 1, 0);
    lose(&mut world, SECOND);
    assert_eq!(world.completed.len(), 1);
    remind(&mut world);
    world.check_all_arrived(&|_, wr_id| (1, wr_id));
}

/// Each message is announced again. That they have left is reported once for all of them. Otherwise a peer that
/// breaks the channel repeatedly would get twice as many side messages.
#[test]
fn how_far_messages_have_left_is_said_again_once() {
    let mut qp = queue_pair(0, behaviour(), 1, 1);
    qp.add_peer(Time::ZERO, peer(1), RTT);
    (0..4).for_each(|wr_id| qp.post(Time::ZERO, peer(1), wr_id, 10_000).expect("room"));
    // Three messages of three packets, and the first packet of the last message.
    for _ in 0..10 {
        assert!(qp.poll_transmit(Time::ZERO, FreePorts::OPEN).is_some());
    }
    while qp.poll_side().is_some() {}
    let words = |qp: &mut crate::Qp| -> Vec<(&str, u64)> {
        let word = |message| match message {
            SideMessage::Start { first_psn, again: true, .. } => ("Start", first_psn),
            SideMessage::Sent { end_psn, .. } => ("Sent", end_psn),
            other => panic!("{other:?}"),
        };
        std::iter::from_fn(|| qp.poll_side()).map(|(_, message)| word(message)).collect()
    };
    qp.on_side_reset(Time::ZERO, HostId(1));
    assert_eq!(words(&mut qp), [("Start", 0), ("Start", 3), ("Start", 6), ("Start", 9), ("Sent", 9)]);
    qp.remind(Time::ZERO, peer(1), 0, 2);
    assert_eq!(words(&mut qp), [("Start", 0), ("Start", 3), ("Sent", 6)]);
}

/// A peer is removed while a message to it must wait: the message ends like one to a dead peer.
#[test]
fn a_message_that_waits_ends_with_its_peer() {
    let mut world = World::new(2, behaviour(), 1, 1);
    world.no_room_from.insert((1, peer(0)), 0);
    world.post(0, 1, 7, 1 << 20);
    assert!(world.run(SECOND));
    let now = world.now;
    assert!(world.qps[1].awaits(peer(0)), "so that its driver notices when the sender is gone");
    world.qps[0].remove_peer(now, peer(1));
    world.drain(0);
    assert!(matches!(world.completed[..], [(0, 7, Status::RetryExceeded, 0)]));
    world.qps[1].remove_peer(now, peer(0));
    assert!(world.qps.iter().all(|qp| qp.is_idle() && qp.open_flows() == 0));
}

/// Side messages about unknown or future messages change nothing.
#[test]
fn words_out_of_place_do_nothing() {
    let mut world = World::new(2, behaviour(), 1, 1);
    world.post(0, 1, 0, 20_000);
    let flow = pathweave_wire::RdFlow { src_qp: peer(0).qp, dst_qp: peer(1).qp };
    for message in [
        SideMessage::Wait { flow, msg_id: 0, first_psn: 1 },
        SideMessage::Wait { flow, msg_id: 5, first_psn: 1 << 40 },
        SideMessage::Ready { flow, msg_id: 0, from_psn: 0 },
        SideMessage::Ready { flow, msg_id: 7, from_psn: 1 << 62 },
    ] {
        world.qps[0].on_side(Time::ZERO, HostId(1), &message);
    }
    assert!(world.run(SECOND));
    world.check_all_arrived(&|_, wr_id| (1, wr_id));
    assert_eq!((world.retransmissions(), world.qps[0].counters().waits_received), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// With any losses and any times without room, every byte of every message arrives once.
    #[test]
    fn any_channel_and_any_want_of_room(
        loss in prop::sample::select(vec![0.0, 0.01, 0.1]),
        scheme in prop::sample::select(vec!["erd-uncontrolled", "erd"]),
        sizes in prop::collection::vec(prop_oneof![1u64..4_000, 1u64..100_000, Just(600_000u64)], 1..24),
        steps in prop::collection::vec((1u64..4, 1u64..400), 1..30),
        breaks in prop::option::of(0usize..30),
        seed in 0u64..1_000,
    ) {
        let mut world = World::of(scheme, 2, behaviour(), 3, seed);
        world.channels = vec![Channel { loss, jitter: Duration::from_us(9), ..GOOD }; 2];
        let mut room = 0;
        world.no_room_from.insert((1, peer(0)), room);
        (0..).zip(&sizes).for_each(|(wr_id, &len)| world.post(0, 1, wr_id, len));
        for (n, (more, us)) in steps.into_iter().enumerate() {
            world.side_down = breaks == Some(n);
            world.run(Duration::from_us(us));
            world.side_down = false;
            room += more;
            world.no_room_from.insert((1, peer(0)), room);
            let now = world.now;
            world.qps[1].release(now, peer(0));
            world.drain(1);
        }
        make_room(&mut world, 1, 0);
        // Side messages sent while the side channel was down are found lost only by reminders, as drivers send them.
        // Until then an unannounced packet may be missed.
        for _ in 0..3 {
            world.run(SECOND);
            let now = world.now;
            world.qps[0].remind(now, peer(1), 0, 64);
            world.drain(0);
        }
        prop_assert!(world.run(SECOND), "still going");
        world.check_all_arrived(&|_, wr_id| (1, wr_id));
    }
}
