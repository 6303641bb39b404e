//! Recovery by time, on a channel with losses, reordering, pauses and dead paths. No message fails while the peer is
//! alive, and none hangs. It ends soon after the channel allows it, and few packets are retransmitted in vain.

use crate::pair::{Channel, MTU, Pair};
use pathweave_policy::{AckPolicy, FeedbackKind, Recovery};
use pathweave_transport::{LossEvidence, Op, RetransmissionConfig, Status};
use pathweave_units::{Duration, Time};
use pathweave_wire::{Body, ControlKind};
use proptest::prelude::*;

/// Round trip of a full packet on the idle channel: 1 us in each direction.
const IDLE: Duration = Duration::from_us(2);
const TIMED: Recovery = Recovery::Timed { reorder_packets: 0, window_packets: Some(512) };

fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

/// A WRITE of `packets` packets with this window, round robin over `paths` paths.
fn writing(channel: Channel, packets: u64, window: u32, paths: u16, every_packets: u16) -> Pair {
    written(channel, (packets, window, paths, every_packets), LossEvidence::Patience)
}

/// Like [`writing`], with the evidence that proves a packet lost.
fn written(
    channel: Channel,
    (packets, window, paths, every_packets): (u64, u32, u16, u16),
    evidence: LossEvidence,
) -> Pair {
    let bytes = packets * u64::from(MTU);
    let mut pair = Pair::new(channel, bytes as usize, |config| {
        config.recovery = TIMED;
        config.idle_rtt = IDLE;
        config.evidence = evidence;
        config.rto = RetransmissionConfig::default();
        config.acks = AckPolicy::by_packets(every_packets, us(3));
        (config.policy.window, config.policy.paths) = (window, paths);
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Write { rkey, remote_addr: 0 }, 0, bytes);
    pair
}

/// Time at which the message was done.
fn done_at(pair: &mut Pair, limit: Duration) -> Time {
    let end = pair.now + limit;
    while pair.completions(0).is_empty() {
        assert!(pair.step(), "nothing will ever happen again");
        assert!(pair.now <= end, "not done after {limit}");
    }
    assert_eq!(pair.statuses(0), [(7, Status::Success)]);
    pair.now
}

/// Departures of PSN 0 in nanoseconds.
fn departures(pair: &Pair) -> Vec<u64> {
    let of_zero = |(at, from, segment): &(Time, usize, _)| match segment {
        pathweave_wire::Segment { body: Body::Data(data), .. } if *from == 0 && data.psn == 0 => {
            Some(at.as_ps() / 1_000)
        }
        _ => None,
    };
    pair.trace.iter().filter_map(of_zero).collect()
}

/// A channel that passes every packet except the data packets for which `drops` holds.
fn dropping(mut drops: impl FnMut(u64, bool, u16) -> bool + 'static) -> Channel {
    let mut channel = Channel::new(1);
    channel.script = Some(Box::new(move |packet| match packet.segment.body {
        Body::Data(data) => Some(!drops(data.psn, data.retransmit, packet.segment.path.0)),
        _ => None,
    }));
    channel
}

#[test]
fn a_lost_packet_is_missed_within_three_idle_round_trips() {
    // Nothing was measured when it left. It is overtaken by seven packets that took 2 us each.
    let mut pair = writing(dropping(|psn, again, _| psn == 0 && !again), 8, 16, 1, 1);
    let done = done_at(&mut pair, us(100));
    let left = departures(&pair);
    assert_eq!(left.len(), 2);
    assert!((2_500..6_000).contains(&left[1]), "{left:?}");
    assert!(done < Time::from_us(9), "{done}");
    assert_eq!((pair.counters(0).retransmitted_packets, pair.counters(0).timeouts), (1, 0));
}

#[test]
fn alone_it_is_asked_for_after_patience_and_sent_again_when_the_answer_comes() {
    let mut tries = 0;
    let channel = dropping(move |_, _, _| {
        tries += 1;
        tries <= 4
    });
    let mut pair = writing(channel, 1, 16, 1, 1);
    done_at(&mut pair, us(1_000));
    // Three idle round trips are 6 us, and the probe takes 2 more. Then patience is 2 + 4, 2 + 3, 2 + 2.25 us.
    let left: Vec<u64> = departures(&pair).iter().map(|ns| (ns + 50) / 100).collect();
    assert_eq!(left, [0, 80, 160, 230, 292]);
    assert_eq!((pair.counters(0).timeouts, pair.counters(0).retransmitted_packets), (0, 4));
}

#[test]
fn where_probes_are_lost_too_it_is_sent_again_after_the_configured_time_then_after_twice_that() {
    let mut channel = Channel::new(1);
    let dead_until = Time::from_us(10_000);
    channel.dead_path = Some((Time::ZERO, dead_until));
    let mut pair = writing(channel, 1, 16, 1, 1);
    done_at(&mut pair, us(20_000));
    // The first timeout is configured to 4 ms.
    assert_eq!(departures(&pair), [0, 4_000_000, 12_000_000]);
    assert_eq!(pair.counters(0).timeouts, 2);
    // Probes after 6, 12, 24 us and so on. The last leaves after 3.066 ms, because the next would be after 6.138.
    let probes = pair.trace.iter().filter(|(at, from, segment)| {
        *from == 0 && *at < Time::from_us(4_000) && matches!(segment.body, Body::Control(_))
    });
    assert_eq!(probes.count(), 9);
}

#[test]
fn a_dead_path_costs_its_packets_once() {
    // Every second packet takes path 1, which is dead from the start; retransmissions may take it again.
    let mut pair = writing(dropping(|_, _, path| path == 1), 64, 16, 2, 1);
    let done = done_at(&mut pair, us(1_000));
    assert!(done < Time::from_us(150), "{done}");
    assert_eq!(pair.counters(1).duplicates, 0, "nothing was sent again that had arrived");
}

#[test]
fn a_window_of_dead_packets_does_not_block_what_is_sent_again() {
    // All first transmissions are lost. A window full of them must not block the retransmissions.
    let mut pair = writing(dropping(|_, again, _| !again), 64, 16, 1, 1);
    let done = done_at(&mut pair, us(5_000));
    assert!(done < Time::from_us(400), "{done}");
}

#[test]
fn a_pause_costs_nothing() {
    // The channel holds everything for 1 ms, probes too.
    let mut channel = Channel::new(1);
    channel.pauses = vec![(Time::ZERO, Time::from_us(1_000))];
    let mut pair = writing(channel, 64, 16, 1, 1);
    done_at(&mut pair, us(1_100));
    assert_eq!((pair.counters(0).timeouts, pair.counters(0).retransmitted_packets), (0, 0));
}

/// A path with a small MTU: probes are answered, and long packets never arrive.
#[test]
fn a_path_that_loses_all_data_and_answers_probes_is_given_up() {
    let mut pair = writing(dropping(|_, _, _| true), 4, 16, 1, 1);
    let schedule = RetransmissionConfig::default().give_up_after();
    while pair.step() {}
    assert_eq!(pair.statuses(0), [(7, Status::RetryExceeded)]);
    let done = pair.now - Time::ZERO;
    assert!(schedule <= done && done <= schedule + Duration::from_ms(65), "{done} for {schedule}");
}

/// A hundred losses of a packet prove nothing before the time is over.
#[test]
fn a_path_that_loses_data_for_less_than_all_timeouts_is_not_given_up() {
    let mut tries = 0;
    let channel = dropping(move |psn, _, _| {
        tries += u64::from(psn == 0);
        tries <= 100
    });
    let mut pair = writing(channel, 4, 16, 1, 1);
    while pair.step() {}
    assert_eq!(pair.statuses(0), [(7, Status::Success)]);
}

#[test]
fn the_retry_limit_is_that_of_the_configured_schedule() {
    let mut channel = Channel::new(1);
    channel.dead_from = Time::ZERO;
    let mut pair = writing(channel, 4, 16, 1, 1);
    let schedule = RetransmissionConfig::default().give_up_after();
    while pair.step() {}
    assert_eq!(pair.statuses(0), [(7, Status::RetryExceeded)]);
    let done = pair.now - Time::ZERO;
    assert!(schedule <= done && done <= schedule + Duration::from_ms(65), "{done} for {schedule}");
    let tries = pair.counters(0).sent_packets;
    assert!((12..80).contains(&tries), "{tries}");
}

#[test]
fn a_host_that_sleeps_has_not_waited() {
    // The sender is not scheduled for ten seconds, which is longer than all its timeouts. Then it finds its packets
    // lost.
    let mut pair = writing(dropping(|_, again, _| !again), 4, 16, 1, 1);
    pair.drain();
    pair.now = Time::from_us(10_000_000);
    done_at(&mut pair, us(1_000));
}

#[test]
fn a_read_is_answered_on_a_lossy_channel() {
    let mut channel = Channel::new(3);
    channel.loss = 0.1;
    let bytes = 64 * u64::from(MTU);
    let mut pair = Pair::new(channel, bytes as usize, |config| {
        config.recovery = TIMED;
        config.idle_rtt = IDLE;
        config.rto = RetransmissionConfig::default();
    });
    let rkey = pair.open_memory(1);
    pair.post(0, 7, Op::Read { rkey, remote_addr: 0 }, 0, bytes);
    let done = done_at(&mut pair, us(5_000));
    assert!(done < Time::from_us(500), "{done}");
}

/// A channel and its load.
#[derive(Clone, Debug)]
struct Weather {
    packets: u64,
    window: u32,
    paths: u16,
    every_packets: u16,
    loss: f64,
    jitter_us: u64,
    /// Additional delay per path: path i takes i times this longer, in microseconds.
    skew_us: u64,
    /// Starts and lengths of pauses, in microseconds.
    pauses: Vec<(u64, u64)>,
    /// Start and length of the time in which a path is dead, in microseconds.
    dead: Option<(u64, u64)>,
    seed: u64,
}

fn weather() -> impl Strategy<Value = Weather> {
    let load = (1u64..400, 1u32..64, 1u16..9, prop_oneof![Just(1u16), 1u16..17]);
    let channel = (
        prop_oneof![Just(0.0), 0.0..0.05f64, 0.05..0.3f64],
        prop_oneof![Just(0u64), 0u64..30],
        prop_oneof![Just(0u64), 0u64..20],
        prop::collection::vec((0u64..200, 1u64..500), 0..4),
        prop::option::of((0u64..100, 1u64..2_000)),
        any::<u64>(),
    );
    (load, channel).prop_map(|(load, channel)| {
        let (packets, window, paths, every_packets) = load;
        let (loss, jitter_us, skew_us, pauses, dead, seed) = channel;
        Weather { packets, window, paths, every_packets, loss, jitter_us, skew_us, pauses, dead, seed }
    })
}

/// Result of a run.
struct Trip {
    pair: Pair,
    status: Status,
    /// Time without an acknowledgement at the end.
    silent: Duration,
    /// Largest ratio of a time without acknowledgements to the one that the successive timeouts in it allow.
    worst_silence: f64,
}

impl Weather {
    fn run(&self) -> Trip {
        let mut channel = Channel::new(self.seed);
        (channel.loss, channel.jitter) = (self.loss, us(self.jitter_us));
        channel.by_path = (0..self.paths).map(|path| us(self.skew_us * u64::from(path))).collect();
        channel.pauses =
            self.pauses.iter().map(|&(from, len)| (Time::from_us(from), Time::from_us(from + len))).collect();
        channel.dead_path = self.dead.map(|(from, len)| (Time::from_us(from), Time::from_us(from + len)));
        let mut pair = writing(channel, self.packets, self.window, self.paths, self.every_packets);
        let longest_wait = us(2 * (self.over_us() + self.longest_round_trip_us()));
        // Number of acknowledgements so far, time of the latest one, and timeouts until then.
        let (mut acked, mut acked_at, mut timeouts_then) = (0, Time::ZERO, 0);
        let mut worst_silence = 0f64;
        // Ends of patience: each has one probe or two.
        let silences = |pair: &Pair| {
            let probes = pair.hosts[0].endpoint.order_counters(pair.qps[0]).unwrap().controls_sent;
            pair.counters(0).timeouts + probes[ControlKind::Probe]
        };
        while pair.completions(0).is_empty() {
            assert!(pair.step(), "nothing will ever happen again");
            let log = &pair.hosts[0].endpoint.policy(pair.qps[0]).unwrap().log;
            let acked_now =
                log.iter().filter(|(_, kind, _)| matches!(kind, FeedbackKind::Ack { .. })).count();
            let timeouts = silences(&pair);
            if acked_now > acked {
                (acked, acked_at, timeouts_then) = (acked_now, pair.now, timeouts);
            }
            let allowed = longest_wait.as_ps() as f64 * 2f64.powi((timeouts - timeouts_then) as i32 + 1);
            worst_silence = worst_silence.max((pair.now - acked_at).as_ps() as f64 / allowed);
        }
        let status = pair.completions(0)[0].status;
        Trip { silent: pair.now - acked_at, pair, status, worst_silence }
    }

    /// End of the last pause or dead path, in microseconds.
    fn over_us(&self) -> u64 {
        let trouble = self.pauses.iter().map(|&(from, len)| from + len);
        trouble.chain(self.dead.map(|(from, len)| from + len)).max().unwrap_or(0)
    }

    /// Longest round trip with all possible delays, in microseconds.
    fn longest_round_trip_us(&self) -> u64 {
        2 + 3 + 2 * (self.jitter_us + self.skew_us * u64::from(self.paths))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A message never hangs, and never fails before the configured silence. Doubled waits are the longest. Without
    /// pauses and dead paths, no packet is retransmitted more often than patience takes to be learned.
    #[test]
    fn messages_arrive_in_every_network(weather in weather()) {
        let Trip { pair, status, silent, worst_silence } = weather.run();
        let (sender, receiver) = (pair.counters(0), pair.counters(1));
        prop_assert!(sender.retransmitted_packets >= receiver.duplicates, "what arrives twice was sent twice");
        prop_assert!(worst_silence <= 1.0, "{worst_silence} times what the timeouts in a row allow");
        let gave_up = status == Status::RetryExceeded && silent >= RetransmissionConfig::default().give_up_after();
        prop_assert!(status == Status::Success || gave_up, "{status:?} after {silent} of silence");
        if weather.loss == 0.0 {
            prop_assert_eq!(status, Status::Success);
            // Once the channel works, one doubling at most, and the message itself.
            let round = weather.longest_round_trip_us();
            let windows = weather.packets.div_ceil(u64::from(weather.window)) + 1;
            let bound_us = 2 * weather.over_us() + 100 * round + 4 * round * windows + weather.packets;
            prop_assert!(pair.now <= Time::from_us(bound_us), "{}, not {bound_us} us", pair.now);
            if weather.dead.is_none() && weather.pauses.is_empty() {
                // All retransmissions are in vain. Until the longest round trip has been measured, a window may be
                // retransmitted each time that the patience of three idle round trips ends.
                let learning = u64::from(weather.window) * (2 + round / 6);
                let bound = 12 + weather.packets / 20 + learning;
                prop_assert!(receiver.duplicates <= bound, "{} copies for nothing of {}", receiver.duplicates, weather.packets);
            }
        }
    }

    /// Without losses nothing times out, however long packets wait within the configured time. A queue that many
    /// senders fill grows before it is measured, paths differ by less than an idle round trip, and switches pause.
    /// Nothing is retransmitted unless they pause.
    #[test]
    fn late_packets_are_not_lost(
        rate_share in 1u64..200,
        window in 1u32..64,
        packets in 1u64..300,
        paths in 1u16..9,
        skew_ns in 0u64..100,
        pauses in prop::collection::vec((0u64..200, 1u64..500), 0..4),
        every_packets in prop_oneof![Just(1u16), 1u16..17],
    ) {
        let mut channel = Channel::new(1);
        // The bottleneck serves one packet of this queue pair in `rate_share`.
        channel.bottleneck = Some(Duration::from_ns(100 * rate_share));
        channel.by_path = (0..paths).map(|path| Duration::from_ns(skew_ns * u64::from(path))).collect();
        channel.pauses = pauses.iter().map(|&(at, len)| (Time::from_us(at), Time::from_us(at + len))).collect();
        let calm = channel.pauses.is_empty();
        let mut pair = written(channel, (packets, window, paths, every_packets), LossEvidence::Probe);
        done_at(&mut pair, Duration::from_ms(10_000));
        let (sender, receiver) = (pair.counters(0), pair.counters(1));
        prop_assert_eq!(sender.timeouts, 0);
        // A pause that delays a probe's answer beyond patience can still cause copies of the packets in the window.
        let copies = if calm { 0 } else { u64::from(window) * 2 };
        prop_assert!(sender.retransmitted_packets <= copies && receiver.duplicates <= copies, "{sender:?} {receiver:?}");
    }
}
