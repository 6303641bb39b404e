//! Tests of the specification's oracles on messages: order, matching, truncation, cancellation, peeks, limits.

mod world;

use pathweave_tagged::*;
use world::*;

const EAGER: usize = 16 << 10;

fn config() -> Config {
    Config::default()
}

/// Returns the contexts of a node's completions: those of receives and those of sends.
fn contexts(completions: &[Completion]) -> (Vec<u64>, Vec<u64>) {
    let (receives, sends): (Vec<_>, Vec<_>) =
        completions.iter().partition(|c| matches!(c.kind, Kind::Receive(_)));
    let each = |list: Vec<&Completion>| list.iter().map(|c| c.context).collect();
    (each(receives), each(sends))
}

/// Oracles 1 and 2: messages of all sizes with one tag, half sent before and half after the receives are posted,
/// arrive in the order sent with exact contents.
#[test]
fn messages_of_all_sizes_are_received_in_the_order_sent() {
    for seed in 1..9 {
        let mut world = World::new(2, config(), seed);
        let sizes = [0, 1, 100, EAGER - 1, EAGER, EAGER + 1, 2012, 2013, 1 << 20];
        let mut expected = Vec::new();
        for number in 0..200 {
            let len = sizes[world.below(sizes.len())];
            expected.push(pattern(number, len));
            let payload = world.buffer(0, &expected[number as usize]);
            world.send(0, 1, 5, payload, number);
            for _ in 0..world.below(20) {
                world.step();
            }
            if number == 100 {
                // The first half is unexpected; receives wait for the second.
                for number in 0..200 {
                    let into = world.buffer(1, &vec![0xee; 1 << 20]);
                    assert_eq!(into.len, 1 << 20);
                    world.receive(1, Some(0), 5, 0, into, number);
                }
            }
        }
        world.run();
        let mut received = world.take_completions(1);
        received.sort_by_key(|completion| completion.context);
        assert_eq!(received.len(), 200, "seed {seed}");
        for (completion, expected) in received.iter().zip(&expected) {
            assert_eq!((completion.result, completion.len), (Ok(()), expected.len() as u64));
            assert!(world.nodes[1].ram.bytes(completion.into) == &expected[..], "seed {seed}: contents");
        }
        let sent = world.take_completions(0);
        assert_eq!((sent.len(), sent.iter().all(|c| c.result.is_ok())), (200, true));
        let node = &world.nodes[0];
        assert_eq!((node.ram.registered(), node.ram.kept()), (0, 0));
        assert!(node.engine.is_idle(peer(1)) && node.engine.room() == config().operations);
    }
}

/// A short limit for eager messages would make receives of busy peers shorter than the first ones; such receives are
/// never granted.
#[test]
fn receives_of_busy_peers_are_no_shorter_than_the_first() {
    let mut world = World::new(2, Config { eager: 1024, busy_receive: 1024 + 64, ..config() }, 1);
    for number in 0..200 {
        let len = [0, 1024, 1025, 5_000][number as usize % 4];
        let (payload, into) = (world.buffer(0, &pattern(number, len)), world.buffer(1, &vec![0; len]));
        world.send(0, 1, 5, payload, number);
        world.receive(1, Some(0), 5, 0, into, number);
    }
    world.run();
    for at in 0..2 {
        let done = world.take_completions(at);
        assert_eq!((done.len(), done.iter().all(|done| done.result.is_ok())), (200, true));
    }
}

/// Messages sent with `send_now` stay in order with queued ones, and need receives like them.
#[test]
fn messages_past_the_queues_keep_the_order() {
    for seed in 1..9 {
        let mut world = World::new(2, config(), seed);
        assert!(!world.send_now(0, 1, 5, b"x"), "nobody is connected");
        let mut past = 0;
        for number in 0..400u64 {
            let into = world.buffer(1, &[0; 2000]);
            world.receive(1, Some(0), 5, 0, into, number);
            let bytes = pattern(number, world.below(1500));
            if world.below(3) > 0 && world.send_now(0, 1, 5, &bytes) {
                past += 1;
            } else {
                let payload = world.buffer(0, &bytes);
                world.send(0, 1, 5, payload, number);
            }
            for _ in 0..world.below(12) {
                world.step();
            }
        }
        world.run();
        let received = world.take_completions(1);
        let order: Vec<u64> = received.iter().map(|completion| completion.context).collect();
        assert_eq!(order, (0..400).collect::<Vec<u64>>(), "seed {seed}");
        for completion in &received {
            let len = completion.len as usize;
            assert!(world.nodes[1].ram.bytes(completion.into)[..len] == pattern(completion.context, len)[..]);
        }
        // Both methods were used, and `send_now` gives no completion.
        assert!(past > 20 && past < 380, "seed {seed}: {past}");
        assert_eq!(world.take_completions(0).len(), 400 - past);
        assert!(world.nodes[0].engine.is_idle(peer(1)));
        assert!(!world.send_now(0, 1, 5, &[0; EAGER + 1]), "too long");
    }
}

/// A message of 1 MiB moves in two chunks of 512 KiB: READs of the receiver, none of the sender.
#[test]
fn a_long_message_is_read_in_chunks() {
    let mut world = World::new(2, config(), 1);
    let payload = world.buffer(0, &pattern(1, 1 << 20));
    let into = world.buffer(1, &[0; 1 << 20]);
    world.receive(1, None, 0, u64::MAX, into, 1);
    world.send(0, 1, 9, payload, 2);
    world.run();
    assert_eq!((world.nodes[0].chunks, world.nodes[1].chunks), (0, 2));
    assert_eq!(world.nodes[1].ram.bytes(into), pattern(1, 1 << 20));
}

/// Oracle 3: of a wildcard and an exact receive, the older one takes the message.
#[test]
fn of_wildcard_and_exact_receive_the_older_takes_the_message() {
    for (first, second) in [(u64::MAX, 0), (0, u64::MAX)] {
        let mut world = World::new(2, config(), 3);
        let into = [0, 1].map(|_| world.buffer(1, &[0; 4]));
        let from = |ignore| (ignore == 0).then_some(0);
        world.receive(1, from(first), 5, first, into[0], 10);
        world.receive(1, from(second), 5, second, into[1], 11);
        let payload = world.buffer(0, b"abcd");
        world.send(0, 1, 5, payload, 1);
        world.run();
        assert_eq!(contexts(&world.take_completions(1)).0, [10]);
        assert_eq!(world.nodes[1].ram.bytes(into[0]), b"abcd");
    }
}

/// Oracle 4, computed by hand. Two senders, and receives in this order: tag 1 of any source, tag 1 of sender 0, tag 2
/// of any source with bits 63 and 0 ignored.
#[test]
fn the_oldest_receive_that_fits_takes_a_message() {
    let mut world = World::new(3, config(), 3);
    let high = 1 << 63;
    let into: Vec<_> = (0..4).map(|_| world.buffer(2, &[0; 8])).collect();
    world.receive(2, None, 1, 0, into[0], 10);
    world.receive(2, Some(0), 1, 0, into[1], 11);
    world.receive(2, None, 2, high | 1, into[2], 12);
    world.receive(2, Some(1), 1, 0, into[3], 13);
    let payload = world.buffer(1, b"from one");
    let other = world.buffer(0, b"from two");
    // Sender 1 with tag 1 matches the first, tag 2 with ignored bits the third. Tag 1 again matches only the fourth,
    // which names sender 1.
    for (tag, context) in [(1, 1), (high | 3, 2), (1, 3)] {
        world.send(1, 2, tag, payload, context);
        world.run();
    }
    assert_eq!(contexts(&world.take_completions(2)).0, [10, 12, 13]);
    world.send(0, 2, 1, other, 4);
    world.run();
    let last = world.take_completions(2)[0];
    assert_eq!((last.context, last.peer, last.tag()), (11, Some(peer(0)), 1));
}

/// Messages with a tag and messages without never match each other's receives.
#[test]
fn the_two_spaces_are_separate() {
    let mut world = World::new(2, config(), 3);
    let into = world.buffer(1, &[0; 4]);
    world.receive(1, None, 0, u64::MAX, into, 10);
    let payload = world.buffer(0, b"abcd");
    let send = Send { label: Label::Message, ..message(1, 0, payload, 1) };
    world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
    world.run();
    assert_eq!(world.take_completions(1).len(), 0);
    let receive = Receive {
        from: None,
        want: MatchOn::Message,
        into,
        take: ReceiveCount::One,
        report: Report::Entry,
        context: 11,
    };
    world.at(1, |engine, ram| engine.post_receive(receive, ram)).expect("lengths");
    assert_eq!(world.take_completions(1)[0].kind, Kind::Receive(Label::Message));
}

/// Oracle 6: bytes beyond the receive are cut off, the sender succeeds, and the next message is whole.
#[test]
fn a_message_longer_than_its_receive_is_cut_off() {
    for len in [1000, 1 << 20] {
        for unexpected in [false, true] {
            let mut world = World::new(2, config(), 7);
            let payload = world.buffer(0, &pattern(1, len));
            let into = [600, len].map(|room| world.buffer(1, &vec![0; room]));
            if unexpected {
                (0..2).for_each(|n| world.send(0, 1, 5, payload, n));
                world.run();
            }
            for (number, into) in (10..).zip(into) {
                world.receive(1, Some(0), 5, 0, into, number);
            }
            if !unexpected {
                (0..2).for_each(|n| world.send(0, 1, 5, payload, n));
            }
            world.run();
            let received = world.take_completions(1);
            let cut = len as u64 - 600;
            assert_eq!(received[0].result, Err(Failure::Truncated { cut }));
            assert_eq!((received[0].context, received[0].len, received[0].tag()), (10, 600, 5));
            assert_eq!((received[1].result, received[1].len), (Ok(()), len as u64));
            assert_eq!(world.nodes[1].ram.bytes(into[0]), &pattern(1, len)[..600]);
            assert_eq!(world.nodes[1].ram.bytes(into[1]), pattern(1, len));
            assert!(world.take_completions(0).iter().all(|c| c.result.is_ok()));
        }
    }
}

/// Oracle 7: a cancelled receive completes once and takes no message.
#[test]
fn a_cancelled_receive_ends_once_and_takes_nothing() {
    let mut world = World::new(2, config(), 7);
    let into = world.buffer(1, &vec![7; 1 << 20]);
    let cancel = |world: &mut World, context| {
        world.at(1, |engine, _| engine.cancel(context));
        world.take_completions(1)
    };
    // Cancels a posted receive, the same one again, and one that never existed.
    world.receive(1, None, 5, 0, into, 10);
    let cancelled = cancel(&mut world, 10);
    assert_eq!(cancelled.len(), 1);
    assert_eq!((cancelled[0].context, cancelled[0].result), (10, Err(Failure::Cancelled)));
    assert_eq!(cancel(&mut world, 10), []);
    assert_eq!(cancel(&mut world, 99), []);
    let payload = world.buffer(0, &pattern(1, 1 << 20));
    world.send(0, 1, 5, payload, 1);
    world.run();
    assert_eq!(world.take_completions(1), []);
    assert!(world.nodes[1].ram.bytes(into).iter().all(|byte| *byte == 7), "untouched");
    // A receive whose message is in transfer cannot be cancelled.
    world.receive(1, None, 5, 0, into, 11);
    world.step();
    assert_eq!(cancel(&mut world, 11), []);
    world.run();
    let received = world.take_completions(1);
    assert_eq!((received.len(), received[0].context, received[0].result), (1, 11, Ok(())));
    assert_eq!(cancel(&mut world, 11), []);
}

fn peek(world: &mut World, found: Found, context: u64) -> Completion {
    let want = MatchOn::Tagged { tag: 5, ignore: 0 };
    world.at(1, |engine, ram| engine.peek(Peek { from: None, want, found, context }, ram));
    let mut answers = world.take_completions(1);
    assert_eq!(answers.len(), 1, "a peek always answers");
    answers.remove(0)
}

/// Oracle 8: a peek finds, claims or drops a message.
#[test]
fn a_peek_finds_claims_and_drops() {
    for len in [100, 1 << 20] {
        let mut world = World::new(2, config(), 7);
        let miss = peek(&mut world, Found::Stays, 20);
        assert_eq!((miss.result, miss.context, miss.tag()), (Err(Failure::NoMessage), 20, 5));

        for number in 1..=3 {
            let payload = world.buffer(0, &pattern(number, len));
            let send = Send { data: Some(number), ..message(1, 5, payload, number) };
            world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
        }
        world.run();
        for found in [Found::Stays, Found::Claimed] {
            let hit = peek(&mut world, found, 21);
            assert_eq!((hit.result, hit.len, hit.tag(), hit.data), (Ok(()), len as u64, 5, Some(1)));
            assert_eq!(hit.peer, Some(peer(0)));
        }
        // The first message is hidden, so another receive takes the second. The third is dropped.
        let into = world.buffer(1, &vec![0; len]);
        world.receive(1, None, 5, 0, into, 22);
        world.run();
        assert_eq!(world.take_completions(1)[0].data, Some(2));
        assert_eq!(peek(&mut world, Found::Dropped, 23).data, Some(3));
        assert_eq!(peek(&mut world, Found::Stays, 24).result, Err(Failure::NoMessage));
        let claim = |context, into| Claim { into, report: Report::Entry, context };
        assert_eq!(world.at(1, |e, ram| e.claim(claim(99, Some(into)), ram)), Err(PostError::NotClaimed));
        world.at(1, |e, ram| e.claim(claim(21, Some(into)), ram)).expect("claimed");
        world.run();
        let claimed = world.take_completions(1)[0];
        assert_eq!((claimed.context, claimed.data, claimed.len), (21, Some(1), len as u64));
        assert_eq!(world.nodes[1].ram.bytes(into), pattern(1, len));
        // All senders complete, also those of dropped messages.
        world.run();
        assert_eq!(world.take_completions(0).iter().filter(|c| c.result.is_ok()).count(), 3);
        assert_eq!(world.nodes[0].ram.registered(), 0);
        assert_eq!(world.nodes[1].engine.held_bytes(), 0);
    }
}

/// Oracle 9, and the bound on held payload: 64 KiB here.
#[test]
fn unexpected_messages_are_received_last_to_first() {
    for (count, len) in [(1000, 1000), (30, 1 << 20)] {
        let (limit, pool) = (64 << 10, 32 << 10);
        let mut world = World::new(2, Config { unexpected_bytes: limit, pool, ..config() }, 7);
        for number in 0..count {
            let payload = world.buffer(0, &pattern(number, len));
            world.send(0, 1, number, payload, number);
            world.run();
        }
        let engine = &world.nodes[1].engine;
        assert_eq!(engine.unexpected_messages() as u64, count);
        assert!(engine.held_bytes() <= limit + pool, "{} are held", engine.held_bytes());
        if len == 1000 {
            assert!(engine.held_bytes() >= limit, "what is allowed is used: {}", engine.held_bytes());
        }
        for number in (0..count).rev() {
            let into = world.buffer(1, &vec![0; len]);
            world.receive(1, Some(0), number, 0, into, number);
            world.run();
            assert_eq!(world.nodes[1].ram.bytes(into), pattern(number, len));
            assert_eq!(world.take_completions(1).len(), 1);
            world.nodes[1].ram.free(into);
        }
        assert_eq!(world.nodes[1].engine.held_bytes(), 0);
        assert_eq!(world.take_completions(0).len() as u64, count);
    }
}

/// Oracle 10: many senders and one receiver whose application posts nothing. Memory stays bounded, no operation
/// fails, and all messages arrive.
#[test]
fn a_sleeping_application_is_not_overrun() {
    let (senders, each, len) = (20, 300, 900);
    let limits = Config { unexpected_bytes: 256 << 10, pool: 512 << 10, ..config() };
    let mut world = World::new(senders + 1, limits, 7);
    let at = senders;
    for number in 0..each {
        for sender in 0..senders {
            let payload = world.buffer(sender, &pattern(number, len));
            world.send(sender, at, number, payload, number);
        }
        for _ in 0..200 {
            world.step();
        }
        let engine = &world.nodes[at].engine;
        assert!(engine.held_bytes() <= limits.unexpected_bytes + limits.pool);
        assert!(engine.pool_bytes() <= limits.pool, "{}", engine.pool_bytes());
    }
    world.run();
    assert_eq!(world.nodes[at].engine.unexpected_messages() as u64, senders as u64 * each);
    for number in 0..each {
        for sender in 0..senders {
            let into = world.buffer(at, &vec![0; len]);
            world.receive(at, Some(sender), number, 0, into, number);
            world.run();
            assert_eq!(world.nodes[at].ram.bytes(into), pattern(number, len));
        }
    }
    assert_eq!(world.take_completions(at).len() as u64, senders as u64 * each);
    for sender in 0..senders {
        let sent = world.take_completions(sender);
        assert!(sent.len() as u64 == each && sent.iter().all(|c| c.result.is_ok()));
    }
}

/// Oracle 11: both ends send before either receives, far beyond the limits of held payload and of the queue.
#[test]
fn both_ends_may_send_before_either_receives() {
    let count = 10_000;
    let limits = Config { unexpected_bytes: 64 << 10, pool: 64 << 10, operations: 64, ..config() };
    let mut world = World::new(2, limits, 7);
    let payload = [0, 1].map(|at| world.buffer(at, &pattern(3, 500)));
    for number in 0..count {
        for (at, payload) in payload.into_iter().enumerate() {
            let send = message(1 - at, number, payload, number);
            // The queue drains without any receive.
            while world.at(at, |engine, ram| engine.post_send(send, ram)) == Err(PostError::Full) {
                assert!(world.step(), "nothing moves");
            }
        }
    }
    world.run();
    for at in 0..2 {
        assert_eq!(world.nodes[at].engine.unexpected_messages() as u64, count);
        assert!(world.nodes[at].engine.held_bytes() <= limits.unexpected_bytes + limits.pool);
        for number in 0..count {
            let into = world.buffer(at, &[0; 500]);
            world.receive(at, None, number, 0, into, number);
        }
    }
    world.run();
    for at in 0..2 {
        let all = world.take_completions(at);
        let (received, sent) = contexts(&all);
        assert_eq!((received.len() as u64, sent.len() as u64), (count, count));
        assert!(all.iter().all(|c| c.result.is_ok()));
    }
}

/// The limit of unexpected messages is 100 for 1000 messages. Senders wait, and resume as soon as there is room.
#[test]
fn the_number_of_unexpected_messages_is_bounded() {
    let limits = Config { unexpected_messages: 100, ..config() };
    let mut world = World::new(2, limits, 7);
    let payload = world.buffer(0, b"x");
    for number in 0..1000 {
        world.send(0, 1, 5, payload, number);
    }
    world.run();
    assert!(world.nodes[1].engine.unexpected_messages() <= 100);
    for number in 0..1000 {
        let into = world.buffer(1, &[0]);
        world.receive(1, None, 5, 0, into, number);
        world.run();
        assert_eq!(world.take_completions(1)[0].context, number);
    }
    assert_eq!(world.take_completions(0).len(), 1000);
}

/// Oracle 13: a message without payload delivers its remote CQ data.
#[test]
fn a_message_without_bytes_brings_its_data() {
    let mut world = World::new(2, config(), 7);
    world.receive(1, None, 5, 0, Piece::NONE, 10);
    let send = Send { data: Some(u64::MAX), ..message(1, 5, Piece::NONE, 1) };
    world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
    world.run();
    let received = world.take_completions(1)[0];
    assert_eq!((received.len, received.data, received.result), (0, Some(u64::MAX), Ok(())));
}

/// Oracle 13: messages to this endpoint itself, matched before and after they are sent.
#[test]
fn messages_to_oneself_stay_here() {
    for len in [0, 100, 1 << 20] {
        for unexpected in [false, true] {
            let mut world = World::new(1, config(), 7);
            let payload = world.buffer(0, &pattern(4, len));
            let into = world.buffer(0, &vec![0; len]);
            let send = Send { to: PeerId::SELF, data: Some(3), ..message(0, 5, payload, 1) };
            let receive = |world: &mut World| {
                let want = MatchOn::Tagged { tag: 5, ignore: 0 };
                let from = Some(PeerId::SELF);
                let (take, report) = (ReceiveCount::One, Report::Entry);
                let receive = Receive { from, want, into, take, report, context: 2 };
                world.at(0, |engine, ram| engine.post_receive(receive, ram)).expect("lengths");
            };
            if !unexpected {
                receive(&mut world);
            }
            world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
            if unexpected {
                receive(&mut world);
            }
            let all = world.take_completions(0);
            let (received, sent) = contexts(&all);
            assert_eq!((received, sent), (vec![2], vec![1]), "{len} {unexpected}");
            let received = all.iter().find(|c| c.context == 2).expect("as above");
            assert_eq!((received.data, received.peer), (Some(3), Some(PeerId::SELF)));
            assert_eq!(world.nodes[0].ram.bytes(into), pattern(4, len));
            assert_eq!(world.nodes[0].sends, 0);
        }
    }
}

/// Oracle 14: the buffer of an inject is free when the call returns, no matter whether the message has left, waits
/// for a connection or can only be announced.
#[test]
fn an_inject_may_be_overwritten_at_once() {
    let mut world = World::new(2, Config { unexpected_bytes: 16 << 10, pool: 64 << 10, ..config() }, 7);
    let payload = world.buffer(0, &[0; 1000]);
    for number in 0..1000 {
        world.nodes[0].ram.set(payload, &pattern(number, 1000));
        let send = Send {
            hold: BufferLifetime::ThisCall,
            report: Report::Count,
            ..message(1, number, payload, number)
        };
        while world.at(0, |engine, ram| engine.post_send(send, ram)) == Err(PostError::Full) {
            assert!(world.step());
        }
        world.nodes[0].ram.set(payload, &[0xff; 1000]);
        if number % 3 == 0 {
            world.step();
        }
    }
    world.run();
    assert!(world.nodes[0].ram.registered() > 0, "some are announced");
    for number in 0..1000 {
        let into = world.buffer(1, &[0; 1000]);
        world.receive(1, None, number, 0, into, number);
        world.run();
        assert_eq!(world.nodes[1].ram.bytes(into), pattern(number, 1000));
    }
    // Successes are counted but give no entries.
    let sent = world.take_completions(0);
    assert_eq!(sent.len(), 1000);
    assert!(sent.iter().all(|c| c.report == Report::Count && c.result.is_ok()));
    assert_eq!((world.nodes[0].ram.kept(), world.nodes[0].ram.registered()), (0, 0));
}

#[test]
fn an_inject_that_is_too_long_is_refused() {
    let mut world = World::new(2, config(), 7);
    let payload = world.buffer(0, &[0; 1025]);
    let send = Send { hold: BufferLifetime::ThisCall, ..message(1, 1, payload, 1) };
    let refused = world.at(0, |engine, ram| engine.post_send(send, ram));
    assert_eq!(refused, Err(PostError::TooLong { len: 1025, most: 1024 }));
    assert!(!world.step(), "nothing has been done");
}

/// Oracle 15: when a send with delivery completion ends, its bytes are in the receiver's buffer or held by its
/// engine.
#[test]
fn delivery_completion_waits_for_the_receiver() {
    for (len, matched) in [(1000, true), (1000, false), (1 << 20, true)] {
        let mut world = World::new(2, config(), 7);
        let payload = world.buffer(0, &pattern(5, len));
        let into = world.buffer(1, &vec![0; len]);
        if matched {
            world.receive(1, None, 5, 0, into, 10);
        }
        let send = Send { done: DoneWhen::Delivered, ..message(1, 5, payload, 1) };
        world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
        while world.nodes[0].completions.is_empty() {
            assert!(world.step(), "the acknowledgement comes");
        }
        if matched {
            assert_eq!(world.nodes[1].ram.bytes(into), pattern(5, len));
        } else {
            assert_eq!(world.nodes[1].engine.held_bytes(), len as u64);
        }
    }
}

/// Oracle 16: a full queue drains without receives.
#[test]
fn a_full_queue_has_room_again_without_receives() {
    let mut world = World::new(2, Config { operations: 8, ..config() }, 7);
    let payload = world.buffer(0, &[1; 100]);
    for number in 0..8 {
        world.send(0, 1, 5, payload, number);
    }
    let send = message(1, 5, payload, 8);
    assert_eq!(world.at(0, |engine, ram| engine.post_send(send, ram)), Err(PostError::Full));
    world.run();
    assert_eq!(world.nodes[0].engine.room(), 8);
    assert_eq!(world.take_completions(0).len(), 8);
}

fn multi(into: Piece, least: u64, context: u64) -> Receive {
    let take = ReceiveCount::Many { least };
    Receive { from: None, want: MatchOn::Message, into, take, report: Report::Entry, context }
}

/// Oracle 24, for every size of the first message. The buffer has 100 bytes and is released when fewer than 10 are
/// left.
#[test]
fn a_multi_receive_is_released_with_its_last_message() {
    for first in 0..=100 {
        let mut world = World::new(2, config(), 7);
        let into = world.buffer(1, &[0; 100]);
        world.at(1, |engine, ram| engine.post_receive(multi(into, 10, 10), ram)).expect("room");
        let payload = world.buffer(0, &pattern(1, first));
        let small = world.buffer(0, &pattern(2, 3));
        for (number, payload) in [(0, payload), (1, small)] {
            let send = Send { label: Label::Message, ..message(1, 0, payload, number) };
            world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
        }
        world.run();
        let received = world.take_completions(1);
        // 100 - first bytes are left. Below 10 the buffer is released, and the second message finds no receive.
        let expected = if 100 - first < 10 {
            vec![(0, first as u64, Release::Released)]
        } else {
            let second = if 97 - first < 10 { Release::Released } else { Release::No };
            vec![(0, first as u64, Release::No), (first as u64, 3, second)]
        };
        let seen: Vec<_> = received.iter().map(|c| (c.into.offset, c.into.len, c.release)).collect();
        assert_eq!(seen, expected, "first message of {first}");
        assert_eq!(world.nodes[1].ram.bytes(received[0].into), pattern(1, first));
    }
}

/// Oracle 24: cancellation releases the buffer, at once or with the last message in transfer.
#[test]
fn a_cancelled_multi_receive_is_released_once() {
    for long in [false, true] {
        let mut world = World::new(2, config(), 7);
        let into = world.buffer(1, &vec![0; 4 << 20]);
        let receive = Receive { report: Report::Count, ..multi(into, 1, 10) };
        world.at(1, |engine, ram| engine.post_receive(receive, ram)).expect("room");
        if long {
            let payload = world.buffer(0, &pattern(1, 1 << 20));
            let send = Send { label: Label::Message, ..message(1, 0, payload, 1) };
            world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
            while world.nodes[1].chunks == 0 {
                assert!(world.step());
            }
        }
        world.at(1, |engine, _| engine.cancel(10));
        world.run();
        let told = world.take_completions(1);
        let entries: Vec<_> = told.iter().map(|c| (c.report, c.result, c.release)).collect();
        let cancelled = |release| (Report::Entry, Err(Failure::Cancelled), release);
        if long {
            // The release is an entry although the receive asks for counters only.
            let last = (Report::Entry, Ok(()), Release::Released);
            assert_eq!(entries, [cancelled(Release::No), last]);
        } else {
            assert_eq!(entries, [cancelled(Release::Released)]);
        }
    }
}

/// Oracle 18: operations on a dead peer end once each with an error. Others are unaffected.
#[test]
fn a_dead_peer_fails_what_was_asked_of_it_and_nothing_else() {
    for seed in 1..60 {
        let mut world = World::new(3, config(), seed);
        let lens = [0, 100, 5000, 1 << 20];
        for number in 0..40 {
            let len = lens[number as usize % lens.len()];
            for to in [1, 2] {
                let payload = world.buffer(0, &pattern(number, len));
                world.send(0, to, 5, payload, number + 100 * to as u64);
                let into = world.buffer(to, &vec![0; len]);
                world.receive(to, Some(0), 5, 0, into, number);
            }
        }
        for _ in 0..world.below(400) {
            world.step();
        }
        world.kill(0, 1, Failure::TimedOut);
        world.run();
        let (mut dead, mut alive) = (Vec::new(), Vec::new());
        for sent in world.take_completions(0) {
            let list = if sent.peer == Some(peer(1)) { &mut dead } else { &mut alive };
            list.push((sent.context, sent.result));
        }
        let mut contexts: Vec<_> = dead.iter().map(|(context, _)| *context).collect();
        contexts.sort_unstable();
        assert_eq!(contexts, (100..140).collect::<Vec<_>>(), "seed {seed}: once each");
        assert!(dead.iter().all(|(_, result)| matches!(result, Ok(()) | Err(Failure::TimedOut))));
        assert!(alive.len() == 40 && alive.iter().all(|(_, result)| result.is_ok()));
        let received = world.take_completions(2);
        assert!(received.len() == 40 && received.iter().all(|c| c.result.is_ok()));
        // On the peer that lost its connection, matched receives end and the others wait.
        let theirs = world.take_completions(1);
        assert_eq!(theirs.len() + world.nodes[1].engine.posted_receives(), 40, "seed {seed}");
        for node in &world.nodes {
            assert_eq!((node.ram.registered(), node.ram.kept()), (0, 0), "seed {seed}");
        }
        assert_eq!(world.nodes[0].engine.room(), config().operations);

        // The peer returns over a new connection, and the remaining receives take new messages.
        let left = world.nodes[1].engine.posted_receives();
        for number in 0..left as u64 {
            let payload = world.buffer(0, b"again");
            world.send(0, 1, 5, payload, 900 + number);
        }
        world.run();
        assert_eq!(world.take_completions(1).len(), left);
        assert!(world.take_completions(0).iter().all(|c| c.result.is_ok() && c.context >= 900));
        world.at(1, |engine, ram| engine.forget(peer(0), Failure::Reset, ram));
    }
}

/// Receives that only one peer could fill fail when that peer was killed or will not come back.
#[test]
fn a_peer_that_is_lost_fails_its_receives() {
    for forgotten in [true, false] {
        let mut world = World::new(2, config(), 3);
        let into = world.buffer(1, &[0; 4]);
        world.receive(1, Some(0), 5, 0, into, 10);
        world.receive(1, None, 5, 0, into, 11);
        world.at(1, |engine, ram| match forgotten {
            true => engine.forget(peer(0), Failure::Reset, ram),
            false => engine.lose_receives(peer(0), Failure::Reset),
        });
        let failed = world.take_completions(1);
        assert_eq!((failed.len(), failed[0].context, failed[0].result), (1, 10, Err(Failure::Reset)));
    }
}

/// A claimed message whose sender has died can still be claimed, with an error.
#[test]
fn a_claimed_message_of_a_dead_peer_fails() {
    let mut world = World::new(2, config(), 3);
    let payload = world.buffer(0, &pattern(1, 1 << 20));
    world.send(0, 1, 5, payload, 1);
    world.send(0, 1, 5, payload, 2);
    world.run();
    assert_eq!(peek(&mut world, Found::Claimed, 20).result, Ok(()));
    world.kill(1, 0, Failure::TimedOut);
    world.run();
    assert_eq!(world.nodes[1].engine.unexpected_messages(), 1, "the other is gone with its sender");
    let claim = Claim { into: None, report: Report::Entry, context: 20 };
    let into = world.buffer(1, &[0; 10]);
    world.at(1, |engine, ram| engine.claim(Claim { into: Some(into), ..claim }, ram)).expect("claimed");
    let claimed = world.take_completions(1);
    assert_eq!((claimed.len(), claimed[0].result), (1, Err(Failure::TimedOut)));
}

/// Oracle 12: both ends dial at once, in every order of events. One connection remains, and no message is lost or
/// duplicated.
#[test]
fn both_may_dial_at_once() {
    for seed in 1..200 {
        let mut world = World::new(2, config(), seed);
        for at in 0..2 {
            let into = world.buffer(at, &[0; 4]);
            world.receive(at, None, 5, 0, into, 10);
            let payload = world.buffer(at, b"abcd");
            world.send(at, 1 - at, 5, payload, 1);
        }
        world.run();
        for at in 0..2 {
            let (received, sent) = contexts(&world.take_completions(at));
            assert_eq!((received, sent), (vec![10], vec![1]), "seed {seed}");
        }
    }
}

/// An idle connection stays idle: messages that only grant do not cause each other without end.
#[test]
fn grants_come_to_an_end() {
    for pool in [16 << 10, 64 << 10, 64 << 20] {
        for count in 0..200 {
            let mut world = World::new(2, Config { pool, ..config() }, count + 1);
            let payload = world.buffer(0, &[1; 10]);
            for number in 0..count {
                world.send(0, 1, 5, payload, number);
            }
            world.run();
            let sends = world.nodes.iter().map(|node| node.sends).sum::<u64>();
            assert!(sends <= 2 * count + 8, "{sends} messages for {count}");
        }
    }
}

/// Both sides hold as many messages as they may, so neither grants, and both use up their grants. The receive
/// reserved for grants lets them continue once the applications receive.
#[test]
fn sides_that_hold_too_much_do_not_block_each_other_for_ever() {
    for limit in 8..40 {
        let limits = Config { unexpected_messages: limit, ..config() };
        let mut world = World::new(2, limits, limit);
        let payload = [0, 1].map(|at| world.buffer(at, &pattern(3, 10)));
        for number in 0..200 {
            for (at, payload) in payload.into_iter().enumerate() {
                world.send(at, 1 - at, 5, payload, number);
            }
        }
        for number in 0..200 {
            world.run();
            for at in 0..2 {
                let into = world.buffer(at, &[0; 10]);
                world.receive(at, None, 5, 0, into, number);
            }
        }
        world.run();
        for at in 0..2 {
            let (received, sent) = contexts(&world.take_completions(at));
            assert_eq!((received.len(), sent.len()), (200, 200), "limit {limit}");
        }
    }
}

/// Oracle 14: an inject that asks for counters only gives one entry when it fails.
#[test]
fn an_inject_to_a_dead_peer_is_told_once() {
    let mut world = World::new(2, config(), 7);
    let payload = world.buffer(0, b"abcd");
    for number in 0..3 {
        let send =
            Send { hold: BufferLifetime::ThisCall, report: Report::Count, ..message(1, 5, payload, number) };
        world.at(0, |engine, ram| engine.post_send(send, ram)).expect("room");
    }
    world.at(0, |engine, ram| engine.peer_down(peer(1), Failure::Refused, ram));
    let told = world.take_completions(0);
    let entries: Vec<_> = told.iter().map(|c| (c.context, c.report, c.result)).collect();
    let entry = |context| (context, Report::Entry, Err(Failure::Refused));
    assert_eq!(entries, [entry(0), entry(1), entry(2)]);
    assert_eq!(world.nodes[0].ram.kept(), 0);
}
