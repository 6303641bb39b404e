//! Random requests over a channel that loses, duplicates and reorders. Bytes are exact, every completion comes
//! exactly once and in order, and every run ends. The harness checks invariants after every step.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{AckPolicy, PathRto, Recovery, RingScope};
use pathweave_transport::{Completion, Event, Op, Opcode, Status};
use pathweave_units::{Bytes, Duration, Time};
use pathweave_wire::Operation;
use proptest::prelude::*;

/// A verb and a size.
#[derive(Clone, Copy, Debug)]
struct Work {
    verb: Verb,
    len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
}

/// Memory for one message.
const ROOM: u64 = 40 * MTU as u64;
const MOST_WORK: u64 = 12;

fn work() -> impl Strategy<Value = Work> {
    let mtu = u64::from(MTU);
    let verb = prop_oneof![
        Just(Verb::Send),
        Just(Verb::SendImm),
        Just(Verb::Write),
        Just(Verb::WriteImm),
        Just(Verb::Read)
    ];
    let len = prop_oneof![
        Just(0),
        Just(1),
        Just(mtu - 1),
        Just(mtu),
        Just(mtu + 1),
        2..3 * mtu,
        3 * mtu..ROOM + 1,
    ];
    (verb, len).prop_map(|(verb, len)| Work { verb, len })
}

fn recovery() -> impl Strategy<Value = Recovery> {
    prop_oneof![
        Just(Recovery::GoBackN),
        (prop_oneof![Just(0), 1u32..20], prop_oneof![1u32..5, 5u32..200]).prop_map(
            |(reorder_packets, window)| Recovery::SelectiveRepeat {
                reorder_packets,
                window_packets: Some(window),
                sender_window_packets: None
            }
        ),
        (prop_oneof![Just(0), 1u32..20], prop_oneof![1u32..5, 5u32..200]).prop_map(
            |(reorder_packets, window)| Recovery::Timed { reorder_packets, window_packets: Some(window) }
        ),
        (any::<bool>(), 1u32..200, 20u64..200).prop_map(|(own, window, rto_us)| {
            Recovery::PathOrder {
                window_packets: Some(window),
                scope: if own { RingScope::QueuePair } else { RingScope::Host },
                rto: PathRto::Guarded,
                rto_min: Duration::from_us(rto_us),
                rto_slack: Duration::ZERO,
            }
        }),
        prop_oneof![1u32..5, 5u32..200].prop_map(|window| Recovery::sleek().with_window_packets(window)),
    ]
}

#[derive(Clone, Debug)]
struct Setup {
    work: [Vec<Work>; 2],
    recovery: Recovery,
    every_packets: u16,
    window: u32,
    pace_ns: u64,
    reads: u16,
    loss: f64,
    duplicate: f64,
    mark: f64,
    jitter_ns: u64,
    seed: u64,
    /// True if receives are posted only over time.
    late_receives: bool,
}

fn setup() -> impl Strategy<Value = Setup> {
    let works = || prop::collection::vec(work(), 0..MOST_WORK as usize);
    let channel = (
        prop_oneof![Just(0.0), 0.0..0.2f64],
        prop_oneof![Just(0.0), 0.0..0.2f64],
        prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64],
        prop_oneof![Just(0), 0u64..20_000],
        any::<u64>(),
    );
    let sender = (recovery(), 1u16..20, 1u32..100, prop_oneof![Just(0), 0u64..5_000], 1u16..4, any::<bool>());
    (works(), works(), channel, sender).prop_map(|(a, b, channel, sender)| {
        let (loss, duplicate, mark, jitter_ns, seed) = channel;
        let (recovery, every_packets, window, pace_ns, reads, late_receives) = sender;
        Setup {
            work: [a, b],
            recovery,
            every_packets,
            window,
            pace_ns,
            reads,
            loss,
            duplicate,
            mark,
            jitter_ns,
            seed,
            late_receives,
        }
    })
}

/// Address of the source of a request. Memory of each host holds the sources of its own requests, then the
/// destinations of the peer's, then those of its READs.
fn source(index: usize) -> u64 {
    index as u64 * ROOM
}
fn landing(index: usize) -> u64 {
    (MOST_WORK + index as u64) * ROOM
}
fn read_into(index: usize) -> u64 {
    (2 * MOST_WORK + index as u64) * ROOM
}

impl Setup {
    /// Returns true if acknowledgements are by bytes. With recovery by path order, each packet has its own
    /// acknowledgement.
    fn counts_bytes(&self) -> bool {
        self.seed % 4 < 2 && !matches!(self.recovery, Recovery::PathOrder { .. })
    }
}

fn build(setup: &Setup) -> Pair {
    let mut channel = Channel::new(setup.seed);
    channel.jitter = Duration::from_ns(setup.jitter_ns);
    (channel.loss, channel.duplicate, channel.mark) = (setup.loss, setup.duplicate, setup.mark);
    channel.trim = if setup.seed.is_multiple_of(3) { 0.1 } else { 0.0 };
    Pair::new(channel, (3 * MOST_WORK * ROOM) as usize, |config| {
        config.recovery = setup.recovery;
        config.acks = AckPolicy::by_packets(setup.every_packets, Duration::from_us(5));
        if setup.counts_bytes() {
            config.acks.every_bytes = Some(Bytes::new(u64::from(setup.every_packets) * 700));
        }
        config.policy.window = setup.window;
        config.policy.gap = Duration::from_ns(setup.pace_ns);
        (config.max_reads_out, config.max_reads_in) = (setup.reads, setup.reads);
        // The channel may lose a fifth in each direction: chance must not exceed the retry limit.
        config.rto.retry_limit = 60;
    })
}

fn receives(setup: &Setup, sender: usize) -> Vec<usize> {
    let consumes = |work: &Work| matches!(work.verb, Verb::Send | Verb::SendImm | Verb::WriteImm);
    (0..setup.work[sender].len()).filter(|&i| consumes(&setup.work[sender][i])).collect()
}

fn post_all(pair: &mut Pair, setup: &Setup) {
    let keys = [pair.open_memory(0), pair.open_memory(1)];
    for host in 0..2 {
        let rkey = keys[1 - host];
        for (i, work) in setup.work[host].iter().enumerate() {
            let remote_addr = landing(i);
            let (op, local) = match work.verb {
                Verb::Send => (Op::Send, source(i)),
                Verb::SendImm => (Op::SendImm { imm: i as u32 }, source(i)),
                Verb::Write => (Op::Write { rkey, remote_addr }, source(i)),
                Verb::WriteImm => (Op::WriteImm { rkey, remote_addr, imm: i as u32 }, source(i)),
                Verb::Read => (Op::Read { rkey, remote_addr: source(i) }, read_into(i)),
            };
            pair.post(host, i as u64, op, local, work.len);
        }
    }
}

fn check_bytes(pair: &Pair, setup: &Setup, before: &[Vec<u8>; 2]) {
    for host in 0..2 {
        let mut expected = [before[0].clone(), before[1].clone()];
        let copy = |expected: &mut [u8], from: &[u8], to: u64, at: u64, len: u64| {
            expected[to as usize..(to + len) as usize]
                .copy_from_slice(&from[at as usize..(at + len) as usize]);
        };
        for (i, work) in setup.work[host].iter().enumerate() {
            if work.verb == Verb::Read {
                copy(&mut expected[host], &before[1 - host], read_into(i), source(i), work.len);
            }
        }
        for (i, work) in setup.work[1 - host].iter().enumerate() {
            if work.verb != Verb::Read {
                copy(&mut expected[host], &before[1 - host], landing(i), source(i), work.len);
            }
        }
        assert!(expected[host] == pair.hosts[host].memory, "memory of host {host}");
    }
}

fn check_completions(pair: &Pair, setup: &Setup) {
    for host in 0..2 {
        let completions = pair.completions(host);
        let (received, sent): (Vec<Completion>, Vec<Completion>) =
            completions.into_iter().partition(|c| matches!(c.opcode, Opcode::Recv | Opcode::RecvWriteImm));
        let expected: Vec<_> =
            setup.work[host].iter().enumerate().map(|(i, w)| (i as u64, Status::Success, w.len)).collect();
        assert_eq!(sent.iter().map(|c| (c.wr_id, c.status, c.byte_len)).collect::<Vec<_>>(), expected);
        let expected: Vec<_> = receives(setup, 1 - host)
            .iter()
            .map(|&i| {
                let work = setup.work[1 - host][i];
                (i as u64, Status::Success, work.len, (work.verb != Verb::Send).then_some(i as u32))
            })
            .collect();
        let received: Vec<_> = received.iter().map(|c| (c.wr_id, c.status, c.byte_len, c.imm)).collect();
        assert_eq!(received, expected);
        // Messages of the peer, in order and without gaps.
        let delivered: Vec<_> = pair.hosts[host]
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Delivered { msn, op, bytes, .. } => Some((*msn, *op, *bytes)),
                _ => None,
            })
            .collect();
        assert!(delivered.iter().enumerate().all(|(i, (msn, ..))| *msn == i as u32));
        let bytes: u64 = delivered.iter().map(|(.., bytes)| bytes).sum();
        let writes = setup.work[1 - host].iter().filter(|w| w.verb != Verb::Read).map(|w| w.len).sum::<u64>();
        let answers = setup.work[host].iter().filter(|w| w.verb == Verb::Read).map(|w| w.len).sum::<u64>();
        assert_eq!(bytes, writes + answers);
        let requests = delivered.iter().filter(|(_, op, _)| *op == Operation::ReadRequest).count();
        assert_eq!(requests, setup.work[1 - host].iter().filter(|w| w.verb == Verb::Read).count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_once_and_in_order(setup in setup()) {
        let mut pair = build(&setup);
        let before = [pair.hosts[0].memory.clone(), pair.hosts[1].memory.clone()];
        let mut waiting: Vec<(usize, usize)> =
            (0..2).flat_map(|host| receives(&setup, 1 - host).into_iter().map(move |i| (host, i))).rev().collect();
        let post_one = |pair: &mut Pair, (host, i): (usize, usize)| {
            pair.post_recv(host, i as u64, landing(i), ROOM);
        };
        if !setup.late_receives {
            while let Some(receive) = waiting.pop() {
                post_one(&mut pair, receive);
            }
        }
        post_all(&mut pair, &setup);
        let mut steps = 0;
        while pair.step() {
            steps += 1;
            // Sixty tries without a receive would exceed the retry limit.
            if steps % 10 == 0 && let Some(receive) = waiting.pop() {
                post_one(&mut pair, receive);
            }
            prop_assert!(pair.now < Time::from_us(2_000_000), "not done after two seconds");
        }
        prop_assert!(waiting.is_empty() || steps < 10);
        check_bytes(&pair, &setup, &before);
        check_completions(&pair, &setup);
        if setup.recovery != Recovery::GoBackN {
            let drops = pair.counters(0).beyond_window_drops + pair.counters(1).beyond_window_drops;
            prop_assert_eq!(drops, 0, "the sender keeps to the receiver's window");
        }
        // With recovery by time, an acknowledgement that is delayed longer than any before may count as missing.
        let is_held = setup.every_packets > 1 || setup.counts_bytes();
        let by_time = matches!(setup.recovery, Recovery::Timed { .. }) && is_held;
        if setup.loss == 0.0 && pair.channel.trim == 0.0 && setup.jitter_ns == 0 && !setup.late_receives && !by_time {
            prop_assert_eq!(pair.counters(0).retransmitted_packets + pair.counters(1).retransmitted_packets, 0);
        }
    }

    #[test]
    fn a_channel_that_dies_ends_every_request(setup in setup(), dead_us in 0u64..100) {
        let mut pair = build(&setup);
        pair.channel.dead_from = Time::from_us(dead_us);
        for host in 0..2 {
            for i in receives(&setup, 1 - host) {
                pair.post_recv(host, i as u64, landing(i), ROOM);
            }
        }
        post_all(&mut pair, &setup);
        while pair.step() {
            prop_assert!(pair.now < Time::from_us(2_000_000), "not done after two seconds");
        }
        for host in 0..2 {
            let sent: Vec<_> = pair
                .completions(host)
                .into_iter()
                .filter(|c| !matches!(c.opcode, Opcode::Recv | Opcode::RecvWriteImm))
                .collect();
            let ids: Vec<_> = sent.iter().map(|c| c.wr_id).collect();
            prop_assert_eq!(ids, (0..setup.work[host].len() as u64).collect::<Vec<_>>());
            // Successes, then at most one error among the flushed requests: the one that timed out may be behind a
            // READ that waits for its response.
            let failed = sent.iter().skip_while(|c| c.status == Status::Success);
            for completion in failed {
                let ok = matches!(completion.status, Status::Flushed | Status::RetryExceeded);
                prop_assert!(ok, "{completion:?}");
            }
            let reasons = sent.iter().filter(|c| c.status == Status::RetryExceeded).count();
            prop_assert!(reasons <= 1);
        }
    }
}
