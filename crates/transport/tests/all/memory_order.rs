//! Order of requests to the peer's memory: WRITEs and READs of the same bytes, fences, WRITEs that do not fit.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{AckPolicy, PathRto, Recovery, RingScope};
use pathweave_transport::{Access, Buffer, Event, MemoryRegion, Op, Scope, Status};
use pathweave_units::{Duration, HostId, PathId, Time};
use pathweave_wire::{Body, Data, Operation, Segment};
use proptest::prelude::*;

const LIMIT: Duration = Duration::from_ms(50);

/// A channel that drops only the first packet for which `is_it` holds.
fn losing(is_it: impl Fn(&Data) -> bool + 'static) -> Channel {
    let mut lost = false;
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| match &packet.segment.body {
        Body::Data(data) if !lost && is_it(data) => {
            lost = true;
            Some(false)
        }
        _ => None,
    }));
    channel
}

#[test]
fn of_two_writes_to_one_address_the_later_one_stays() {
    let channel = losing(|data| data.op == Operation::Write && data.psn == 0);
    let mut pair = Pair::new(channel, 1 << 16, |_| {});
    let rkey = pair.open_memory(1);
    (pair.hosts[0].memory[0], pair.hosts[0].memory[1]) = (1, 2);
    pair.post(0, 1, Op::Write { rkey, remote_addr: 100 }, 0, 1);
    pair.post(0, 2, Op::Write { rkey, remote_addr: 100 }, 1, 1);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.hosts[1].memory[100], 2);
}

#[test]
fn a_read_sees_nothing_of_the_write_behind_it() {
    let mut pair = Pair::new(Channel::new(1), 1 << 20, |_| {});
    let rkey = pair.open_memory(1);
    let n = 200_000;
    pair.hosts[1].memory[..n].fill(7);
    pair.hosts[0].memory[500_000..500_000 + n].fill(9);
    pair.post(0, 1, Op::Read { rkey, remote_addr: 0 }, 0, n as u64);
    pair.post(0, 2, Op::Write { rkey, remote_addr: 0 }, 500_000, n as u64);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
    assert!(pair.hosts[0].memory[..n].iter().all(|byte| *byte == 7), "what was there before");
    assert!(pair.hosts[1].memory[..n].iter().all(|byte| *byte == 9), "and then the WRITE");
}

#[test]
fn nor_where_the_read_is_lost() {
    let mut pair = Pair::new(losing(|data| data.op == Operation::ReadRequest), 1 << 20, |_| {});
    let rkey = pair.open_memory(1);
    pair.hosts[1].memory[..1_000].fill(7);
    pair.hosts[0].memory[5_000..6_000].fill(9);
    pair.post(0, 1, Op::Read { rkey, remote_addr: 0 }, 0, 1_000);
    pair.post(0, 2, Op::Write { rkey, remote_addr: 0 }, 5_000, 1_000);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.hosts[0].memory[..1_000], [7; 1_000]);
    assert_eq!(pair.hosts[1].memory[..1_000], [9; 1_000]);
}

#[test]
fn a_read_sees_the_write_before_it_though_that_is_lost() {
    let channel = losing(|data| data.op == Operation::Write && data.psn == 1);
    let mut pair = Pair::new(channel, 1 << 16, |_| {});
    let rkey = pair.open_memory(1);
    pair.hosts[0].memory[5_000..8_000].fill(9);
    pair.post(0, 1, Op::Write { rkey, remote_addr: 0 }, 5_000, 3_000);
    pair.post(0, 2, Op::Read { rkey, remote_addr: 0 }, 20_000, 3_000);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.hosts[0].memory[20_000..23_000], [9; 3_000]);
}

/// First departure of the packets of each request, by its number.
fn departures(pair: &Pair) -> Vec<(u32, Time)> {
    let mut seen = Vec::new();
    for (at, from, segment) in &pair.trace {
        if let Body::Data(data) = &segment.body
            && *from == 0
            && seen.iter().all(|(msn, _)| *msn != data.msn)
        {
            seen.push((data.msn, *at));
        }
    }
    seen
}

#[test]
fn overlapping_requests_hold_back_later_ones_and_others_do_not_wait() {
    let mut pair = Pair::new(Channel::new(1), 1 << 16, |_| {});
    let rkey = pair.open_memory(1);
    // A ring of four slots, then its first slot again, then another address.
    for (n, slot) in [0, 1, 2, 3, 0, 9].into_iter().enumerate() {
        pair.post(0, n as u64, Op::Write { rkey, remote_addr: slot * 500 }, 0, 500);
    }
    pair.run(LIMIT);
    assert!(pair.statuses(0).iter().all(|(_, status)| *status == Status::Success));
    let left = departures(&pair);
    // A round trip takes 2 us.
    let late: Vec<u32> = left.iter().filter(|(_, at)| *at >= Time::from_us(2)).map(|(msn, _)| *msn).collect();
    assert_eq!((left.len(), late), (6, vec![4, 5]), "{left:?}");
}

#[test]
fn where_packets_are_taken_in_order_writes_need_not_wait() {
    let mut pair = Pair::new(losing(|data| data.psn == 0), 1 << 16, |config| {
        config.recovery = Recovery::GoBackN;
    });
    let rkey = pair.open_memory(1);
    (0..3).for_each(|n| pair.hosts[0].memory[n] = n as u8);
    (0..3).for_each(|n| pair.post(0, n, Op::Write { rkey, remote_addr: 100 }, n, 1));
    pair.run(LIMIT);
    assert!(departures(&pair).iter().all(|(_, at)| *at < Time::from_us(1)), "all at once");
    assert_eq!(pair.hosts[1].memory[100], 2);
}

#[test]
fn a_fence_waits_for_all_before_it() {
    // The bytes that a READ fetches are sent on. The READ request is lost once.
    let mut pair = Pair::new(losing(|data| data.op == Operation::ReadRequest), 1 << 16, |_| {});
    let rkey = pair.open_memory(1);
    pair.hosts[1].memory[..1_000].fill(7);
    pair.post_recv(1, 5, 20_000, 1_000);
    pair.post(0, 1, Op::Read { rkey, remote_addr: 0 }, 5_000, 1_000);
    pair.post_fenced(0, 2, Op::Send, 5_000, 1_000);
    pair.post_fenced(0, 3, Op::Write { rkey, remote_addr: 40_000 }, 5_000, 10);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success), (3, Status::Success)]);
    assert_eq!(pair.hosts[1].memory[20_000..21_000], [7; 1_000]);
    assert_eq!(pair.hosts[1].memory[40_000..40_010], [7; 10]);
}

#[test]
fn a_fence_orders_writes_under_two_keys_of_one_memory() {
    let channel = losing(|data| data.op == Operation::Write && data.psn == 0);
    let mut pair = Pair::new(channel, 1 << 16, |_| {});
    let (one, other) = (pair.open_memory(1), pair.open_memory(1));
    (pair.hosts[0].memory[0], pair.hosts[0].memory[1]) = (1, 2);
    pair.post(0, 1, Op::Write { rkey: one, remote_addr: 100 }, 0, 1);
    pair.post_fenced(0, 2, Op::Write { rkey: other, remote_addr: 100 }, 1, 1);
    pair.run(LIMIT);
    assert_eq!(pair.statuses(0), [(1, Status::Success), (2, Status::Success)]);
    assert_eq!(pair.hosts[1].memory[100], 2);
}

#[test]
fn a_fence_does_not_wait_for_answers_to_the_other_end() {
    let mut pair = Pair::new(Channel::new(1), 1 << 16, |_| {});
    let keys = [pair.open_memory(0), pair.open_memory(1)];
    for host in 0..2 {
        let rkey = keys[1 - host];
        for n in 0..20 {
            pair.post_fenced(host, n, Op::Read { rkey, remote_addr: 0 }, 30_000 + n * 1_000, 1_000);
        }
    }
    pair.run(LIMIT);
    for host in 0..2 {
        assert_eq!(pair.statuses(host).iter().filter(|(_, status)| *status == Status::Success).count(), 20);
    }
}

#[test]
fn nothing_lands_of_a_write_that_does_not_fit() {
    for (len, at) in [(3 * u64::from(MTU), 0), (2 * u64::from(MTU), 2 * u64::from(MTU) + 1)] {
        let mut pair = Pair::new(Channel::new(1), 10_000, |_| {});
        let room = 3 * u64::from(MTU) - 1;
        let region = MemoryRegion {
            buffer: Buffer(0),
            addr: 0,
            len: room,
            access: Access::READ_WRITE,
            scope: Scope::DEFAULT,
        };
        let rkey = pair.hosts[1].endpoint.register(region, 0).unwrap();
        let before = pair.hosts[1].memory.clone();
        pair.post(0, 1, Op::Write { rkey, remote_addr: at }, 0, len);
        pair.run(LIMIT);
        assert_eq!(pair.statuses(0), [(1, Status::RemoteAccess)]);
        assert!(pair.hosts[1].memory == before, "{len} bytes at {at}");
    }
}

/// A peer that leaves a gap and tries keys behind it, to see which one is acknowledged.
#[test]
fn keys_cannot_be_tried_behind_a_gap() {
    for op in [Operation::Write, Operation::ReadRequest] {
        let mut pair = Pair::new(Channel::new(1), 10_000, |_| {});
        pair.open_memory(1);
        let mut refused = 0;
        for guess in 1..100u64 {
            let data = Data {
                psn: guess,
                msn: guess as u32,
                len: u16::from(op == Operation::Write),
                op,
                last: true,
                rkey: guess << 24,
                ..Data::EMPTY
            };
            let body = Body::Data(data);
            let segment = Segment::new(pair.qps[1], pair.qps[0], PathId(0), body);
            let placed = pair.hosts[1].endpoint.on_packet(Time::ZERO, HostId(0), &segment, false);
            assert_eq!(placed, None);
            refused += 1;
            // The same key again is no further guess.
            pair.hosts[1].endpoint.on_packet(Time::ZERO, HostId(0), &segment, false);
            let event = pair.hosts[1].endpoint.poll_event();
            if matches!(event, Some(Event::QpError { status: Status::LocalOperation, .. })) {
                break;
            }
            assert_eq!(event, None, "guess {guess}");
        }
        assert_eq!(refused, 5, "{op:?}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Send,
    Write,
    WriteImm,
    Read,
}

/// A request to the bytes that all requests share.
#[derive(Clone, Copy, Debug)]
struct Work {
    verb: Verb,
    at: u64,
    len: u64,
    fenced: bool,
}

/// Bytes at the beginning of memory that all requests of the peer share.
const SHARED: u64 = 6 * MTU as u64;
/// Memory for one message.
const ROOM: u64 = 3 * MTU as u64;
const MOST_WORK: u64 = 30;

fn work() -> impl Strategy<Value = Work> {
    let verb = prop_oneof![
        1 => Just(Verb::Send),
        4 => Just(Verb::Write),
        1 => Just(Verb::WriteImm),
        3 => Just(Verb::Read)
    ];
    let len = prop_oneof![Just(0), 1..50u64, Just(u64::from(MTU)), 1..=ROOM];
    // Frequently the same addresses.
    let at = prop_oneof![(0..6u64).prop_map(|slot| slot * u64::from(MTU)), 0..SHARED];
    (verb, at, len, prop::bool::weighted(0.1)).prop_map(|(verb, at, len, fenced)| Work {
        verb,
        at: at.min(SHARED - len),
        len,
        fenced,
    })
}

fn recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        1 => Just(Recovery::GoBackN),
        2 => (0u32..20, 1u32..200).prop_map(
            |(reorder_packets, window)| Recovery::SelectiveRepeat { reorder_packets, window_packets: Some(window), sender_window_packets: None }
        ),
        1 => (1u32..200, 20u64..200).prop_map(|(window, rto_us)| Recovery::PathOrder {
            window_packets: Some(window),
            scope: RingScope::QueuePair,
            rto: PathRto::Guarded,
            rto_min: Duration::from_us(rto_us),
            rto_slack: Duration::ZERO,
        }),
    ]
}

/// Address of the source of request `n`. The next functions give the destination of its READ and the receive buffer
/// of its message.
fn source(n: usize) -> u64 {
    SHARED + n as u64 * ROOM
}
fn landing(n: usize) -> u64 {
    source(n) + MOST_WORK * ROOM
}
fn room(n: usize) -> u64 {
    landing(n) + MOST_WORK * ROOM
}

/// Expected contents of memory if requests are carried out one by one.
fn in_turn(works: &[Vec<Work>; 2], before: &[Vec<u8>; 2]) -> [Vec<u8>; 2] {
    let mut after = before.clone();
    for host in 0..2 {
        let copy = |to: &mut [u8], at: u64, from: &[u8], begin: u64, len: u64| {
            to[at as usize..(at + len) as usize]
                .copy_from_slice(&from[begin as usize..(begin + len) as usize]);
        };
        let mut receives = 0;
        for (n, work) in works[host].iter().enumerate() {
            match work.verb {
                Verb::Write | Verb::WriteImm => {
                    copy(&mut after[1 - host], work.at, &before[host], source(n), work.len);
                }
                Verb::Send => {
                    copy(&mut after[1 - host], room(receives), &before[host], source(n), work.len);
                }
                Verb::Read => {
                    let seen = after[1 - host].clone();
                    copy(&mut after[host], landing(n), &seen, work.at, work.len);
                }
            }
            receives += usize::from(matches!(work.verb, Verb::Send | Verb::WriteImm));
        }
    }
    after
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests of both ends share bytes at random, over paths that lose, duplicate and reorder packets. Memory must
    /// be as if each had been carried out before the next.
    #[test]
    fn memory_is_as_if_requests_were_carried_out_in_turn(
        works in [prop::collection::vec(work(), 0..MOST_WORK as usize), prop::collection::vec(work(), 0..MOST_WORK as usize)],
        recovery in recovery(),
        (window, paths, reads, every_packets) in (1u32..60, 1u16..5, 1u16..5, 1u16..10),
        (loss, duplicate, jitter_ns, seed) in
            (prop_oneof![Just(0.0), 0.0..0.2f64], 0.0..0.2f64, prop_oneof![Just(0), 0u64..20_000], any::<u64>()),
        at_a_time in 1usize..40,
    ) {
        let mut channel = Channel::new(seed);
        channel.jitter = Duration::from_ns(jitter_ns);
        channel.by_path = (0..4).map(|path| Duration::from_us(3 * path)).collect();
        (channel.loss, channel.duplicate) = (loss, duplicate);
        let bytes = room(MOST_WORK as usize) as usize;
        let mut pair = Pair::new(channel, bytes, |config| {
            config.recovery = recovery;
            config.acks = AckPolicy::by_packets(every_packets, Duration::from_us(5));
            (config.policy.window, config.policy.paths) = (window, paths);
            (config.max_reads_out, config.max_reads_in) = (reads, reads);
            config.rto.retry_limit = 60;
        });
        let keys = [pair.open_memory(0), pair.open_memory(1)];
        let before = [0, 1].map(|host: usize| pair.hosts[host].memory.clone());
        for host in 0..2 {
            let consumes = |work: &&Work| matches!(work.verb, Verb::Send | Verb::WriteImm);
            for n in 0..works[1 - host].iter().filter(consumes).count() {
                pair.post_recv(host, n as u64, room(n), ROOM);
            }
        }
        let mut posted = [0, 0];
        let mut steps = 0;
        loop {
            // Some requests at once, some while others are in progress.
            for host in 0..2 {
                for _ in 0..at_a_time {
                    let n = posted[host];
                    let Some(work) = works[host].get(n) else { break };
                    let (rkey, remote_addr) = (keys[1 - host], work.at);
                    let (op, local) = match work.verb {
                        Verb::Send => (Op::Send, source(n)),
                        Verb::Write => (Op::Write { rkey, remote_addr }, source(n)),
                        Verb::WriteImm => (Op::WriteImm { rkey, remote_addr, imm: 1 }, source(n)),
                        Verb::Read => (Op::Read { rkey, remote_addr }, landing(n)),
                    };
                    if work.fenced {
                        pair.post_fenced(host, n as u64, op, local, work.len);
                    } else {
                        pair.post(host, n as u64, op, local, work.len);
                    }
                    posted[host] += 1;
                }
            }
            let more = (0..20).any(|_| !pair.step());
            steps += 20;
            prop_assert!(pair.now < Time::from_us(2_000_000), "not done after two seconds, {steps} steps");
            if more && (0..2).all(|host| posted[host] == works[host].len()) {
                break;
            }
        }
        for (host, work) in works.iter().enumerate() {
            let sent: Vec<_> = pair
                .completions(host)
                .into_iter()
                .filter(|done| done.imm.is_none() && done.opcode != pathweave_transport::Opcode::Recv)
                .map(|done| (done.wr_id, done.status))
                .collect();
            let expected: Vec<_> = (0..work.len() as u64).map(|n| (n, Status::Success)).collect();
            prop_assert_eq!(sent, expected, "completions of host {}, in the order of their requests", host);
        }
        let expected = in_turn(&works, &before);
        for (host, expected) in expected.iter().enumerate() {
            let found = &pair.hosts[host].memory;
            let wrong = (0..bytes).find(|&at| found[at] != expected[at]);
            prop_assert!(wrong.is_none(), "host {host}, byte {wrong:?}");
        }
    }
}
