//! Tests of the engine above the real transport, over a network with loss, duplication and reordering.

#[allow(unreachable_pub)]
mod network;
#[path = "../../../transport/tests/pair/mod.rs"]
mod pair;

use network::{Network, Weather};
use pathweave_tagged::*;
use pathweave_units::{Duration, Time};

const STORM: Weather = Weather { loss: 0.05, duplicate: 0.05, jitter: Duration::from_us(20), cut: None };

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (seed.wrapping_mul(31).wrapping_add(i.wrapping_mul(seed | 1)) >> 3) as u8)
        .collect()
}

fn send(network: &mut Network, from: usize, to: usize, tag: u64, bytes: &[u8], context: u64) {
    let payload = network.hosts[from].driver.buffer(bytes);
    let hold =
        if bytes.len() as u64 <= MAX_INJECT { BufferLifetime::ThisCall } else { BufferLifetime::UntilDone };
    let send = Send {
        to: PeerId(to as u32),
        label: Label::Tagged(tag),
        payload,
        data: Some(context),
        hold,
        done: DoneWhen::Delivered,
        report: Report::Entry,
        context,
    };
    network.at(from, |engine, driver| engine.post_send(send, driver)).expect("room");
}

fn receive(network: &mut Network, at: usize, from: usize, tag: u64, room: usize, context: u64) {
    let into = network.hosts[at].driver.buffer(&vec![0xee; room]);
    let receive = Receive {
        from: Some(PeerId(from as u32)),
        want: MatchOn::Tagged { tag, ignore: 0 },
        into,
        take: ReceiveCount::One,
        report: Report::Entry,
        context,
    };
    network.at(at, |engine, driver| engine.post_receive(receive, driver)).expect("lengths");
}

/// Exchanges messages of all sizes in both directions, and checks that they arrive in order and whole and always find
/// a receive.
fn exchange(network: &mut Network, count: u64) {
    let sizes = [0, 1, 100, 1024, 2012, 2013, 16_383, 16_384, 16_385, 100_000, 700_000];
    let mut expected = [Vec::new(), Vec::new()];
    for number in 0..count {
        for (at, sent) in expected.iter_mut().enumerate() {
            let len = sizes[network.rng.below(sizes.len() as u32) as usize];
            let bytes = pattern(number + 1000 * at as u64, len);
            // Half of the receives are posted before their messages, half after.
            if number % 2 == 0 {
                receive(network, 1 - at, at, number, 700_000, number);
            }
            send(network, at, 1 - at, number, &bytes, number);
            sent.push(bytes);
            if number % 2 == 1 {
                for _ in 0..network.rng.below(50) {
                    network.step();
                }
                receive(network, 1 - at, at, number, 700_000, number);
            }
        }
    }
    network.run(Duration::from_ms(2000));
    for at in 0..2 {
        let all = network.take_completions(at);
        assert!(all.iter().all(|c| c.result.is_ok()), "{:?}", all.iter().find(|c| c.result.is_err()));
        let mut received: Vec<_> = all.iter().filter(|c| matches!(c.kind, Kind::Receive(_))).collect();
        received.sort_by_key(|c| c.context);
        assert_eq!((received.len() as u64, all.len() as u64), (count, 2 * count));
        for (completion, bytes) in received.iter().zip(&expected[1 - at]) {
            assert_eq!((completion.data, completion.len), (Some(completion.context), bytes.len() as u64));
            assert!(network.hosts[at].driver.bytes(completion.into) == &bytes[..], "contents");
        }
        let host = &network.hosts[at];
        assert!(host.driver.is_clean() && host.faults == 0);
    }
    assert_eq!(network.not_ready(), 0, "every message finds a receive");
    assert!(network.retransmitted() > 100, "the storm is one: {}", network.retransmitted());
}

/// Oracles 1 and 2 above the real transport, with loss, duplication and reordering.
#[test]
fn messages_arrive_in_a_storm() {
    for seed in 1..6 {
        let mut network = Network::new(2, Config::default(), STORM, seed);
        exchange(&mut network, 60);
    }
}

/// Oracle 1: 10,000 messages of one tag over 16 paths, with packets that overtake each other by up to 20 round-trip
/// times.
#[test]
fn ten_thousand_messages_of_one_tag_arrive_in_the_order_sent() {
    let mut network = Network::new(2, Config::default(), Weather { duplicate: 0.0, ..STORM }, 6);
    network.paths = 16;
    let count = 10_000;
    (0..count).for_each(|number| receive(&mut network, 1, 0, 7, 8, number));
    for number in 0..count {
        while network.hosts[0].engine.room() == 0 {
            network.step();
        }
        send(&mut network, 0, 1, 7, &number.to_le_bytes(), number);
    }
    network.run(Duration::from_ms(2000));
    let received = network.take_completions(1);
    assert_eq!(received.len() as u64, count);
    for (number, completion) in (0..count).zip(received) {
        assert_eq!((completion.context, completion.data, completion.result), (number, Some(number), Ok(())));
        assert_eq!(network.hosts[1].driver.bytes(completion.into), number.to_le_bytes());
    }
    assert_eq!((network.take_completions(0).len() as u64, network.not_ready()), (count, 0));
}

/// Some of the four paths are cut for half a millisecond.
#[test]
fn messages_arrive_while_paths_are_cut() {
    for paths in 1..4 {
        let cut = Some((Time::ZERO + Duration::from_us(20), Time::ZERO + Duration::from_us(520), paths));
        let mut network = Network::new(2, Config::default(), Weather { cut, ..STORM }, 3);
        exchange(&mut network, 40);
    }
}

/// The receiver has little room for payload, so messages are announced. All arrive.
#[test]
fn messages_arrive_where_there_is_little_room() {
    let config = Config { unexpected_bytes: 1000, pool: 16 << 10, chunk: 10_000, ..Config::default() };
    let mut network = Network::new(2, config, STORM, 4);
    exchange(&mut network, 60);
}

/// Oracles 21 to 23: memory of a peer under loss and reordering. All hosts add to one counter, and a read sees a
/// write.
#[test]
fn memory_of_a_peer_is_exact_in_a_storm() {
    let mut network = Network::new(4, Config::default(), STORM, 5);
    let there = network.hosts[0].driver.buffer(&vec![0; 800_000]);
    let (access, events) = (Access::ReadWrite, RegionEvents::All);
    let region = Region { key: 9, base: 0, piece: there, access, events };
    let id = network.at(0, |engine, _| engine.open_region(region)).expect("the key is free");
    let (to, report) = (PeerId(0), Report::Entry);
    let mut reads = Vec::new();
    for number in 0..100u64 {
        for at in 1..4usize {
            let one = network.hosts[at].driver.buffer(&1u64.to_ne_bytes());
            let atomic = Atomic {
                to,
                key: 9,
                address: 0,
                op: AtomicOp::Sum,
                kind: AtomicType::U64,
                count: 1,
                operand: one,
                fetch: Fetch::Nothing,
                done: DoneWhen::Transmitted,
                report,
                context: number,
            };
            network.at(at, |engine, driver| engine.post_atomic(atomic, driver)).expect("room");
            if number % 10 == 0 {
                let len = 20_000 * at;
                let address = 200_000 * at as u64;
                let bytes = pattern(number + at as u64, len);
                let from = network.hosts[at].driver.buffer(&bytes);
                let into = network.hosts[at].driver.buffer(&vec![0; len]);
                let segments = Segment { key: 9, address, len: len as u64 }.into();
                let (data, hold, context) = (Some(number), BufferLifetime::UntilDone, number);
                let write = Write { to, segments, from, data, hold, report, context };
                network.at(at, |engine, driver| engine.post_write(write, driver)).expect("room");
                let read = Read { to, segments, into, report, context };
                network.at(at, |engine, driver| engine.post_read(read, driver)).expect("room");
                reads.push((at, into, bytes));
            }
        }
        for _ in 0..20 {
            network.step();
        }
    }
    network.run(Duration::from_ms(2000));
    let word = there.part(0, 8).expect("within");
    assert_eq!(network.hosts[0].driver.bytes(word), 300u64.to_ne_bytes());
    for (at, into, bytes) in reads {
        assert!(network.hosts[at].driver.bytes(into) == &bytes[..], "a read sees the write before it");
    }
    let told = network.take_completions(0);
    let of = |kind, entry| told.iter().filter(|c| c.kind == kind && c.report == entry).count();
    assert_eq!(of(Kind::RemoteWrite, Report::Entry), 30);
    assert_eq!(of(Kind::RemoteWrite, Report::Count), 300);
    assert_eq!(of(Kind::RemoteRead, Report::Count), 30);
    for at in 1..4 {
        let done = network.take_completions(at);
        assert!(done.len() == 120 && done.iter().all(|c| c.result.is_ok()));
    }
    network.at(0, |engine, driver| engine.close_region(id, driver));
    network.run(Duration::from_ms(100));
    assert!(!network.hosts[0].engine.is_closing(id));
    assert!(network.hosts[0].driver.is_clean());
    assert_eq!(network.not_ready(), 0);
}

/// Oracle 18: a host dies during transfers. Operations on it fail once each within the transport's retry time, and
/// other peers continue.
#[test]
fn a_host_that_dies_fails_what_was_asked_of_it() {
    for seed in 1..8 {
        let mut network = Network::new(3, Config::default(), STORM, seed);
        for number in 0..60 {
            let len = [10, 5000, 300_000][number as usize % 3];
            for (from, to) in [(0, 1), (0, 2), (2, 0), (1, 0)] {
                let bytes = pattern(number, len);
                send(&mut network, from, to, 100 * from as u64 + number, &bytes, 1000 * to as u64 + number);
                receive(&mut network, to, from, 100 * from as u64 + number, len, 10_000 + number);
            }
        }
        for _ in 0..300 * seed {
            network.step();
        }
        network.kill(1);
        network.run(Duration::from_ms(2000));
        for at in [0, 2] {
            let all = network.take_completions(at);
            let (of_dead, others): (Vec<Completion>, Vec<Completion>) =
                all.into_iter().partition(|c| c.peer == Some(PeerId(1)));
            assert!(others.len() == 120 && others.iter().all(|c| c.result.is_ok()), "seed {seed}");
            let sends = of_dead.iter().filter(|c| matches!(c.kind, Kind::Send(_)));
            let mut contexts: Vec<_> = sends.map(|c| c.context).collect();
            contexts.sort_unstable();
            let expected: Vec<_> = if at == 0 { (1000..1060).collect() } else { vec![] };
            assert_eq!(contexts, expected, "seed {seed}: each ends once");
            let known =
                |c: &Completion| matches!(c.result, Ok(()) | Err(Failure::TimedOut | Failure::Refused));
            assert!(of_dead.iter().all(known));
            assert!(network.hosts[at].driver.is_clean());
        }
    }
}
