//! Worked examples of the specification ("oracles"), then the invariants of the test bench.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::cc::CcConfig;
use crate::testing::{ACK, Host, REQUEST, SENT, Scenario, random_operations};
use crate::{PathState, Shared};
use pathweave_units::{Rate, Rng};

const US: u64 = 1_000_000;

fn us(n: u64) -> Time {
    Time::from_us(n)
}

/// Data waits instead of copies, and marks of a path that was left do not count.
fn waiting() -> DlbfConfig {
    DlbfConfig { on_switch: OnSwitch::Wait, marked_rate: MarkedRate::OfItsPath, ..DlbfConfig::default() }
}

/// A queue pair without congestion control, and the host state it uses.
struct Alone {
    dlbf: Dlbf,
    host: Host,
    next: u64,
}

impl Alone {
    fn new(config: DlbfConfig, paths: u16) -> Self {
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(400),
            base_rtt: Duration::from_us(1),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths,
            ..Scenario::steady().env
        };
        let cc = CcConfig::None(Default::default());
        let config = DlbfConfig { cc, scope: DlbfScope::QueuePair, ..config };
        assert_eq!(config.validate(), Ok(()));
        let mut host = Host { rng: Rng::for_component(7, "dlbf", 0), shared: Shared::new() };
        let dlbf = config.build(&env, &mut host.rng);
        Alone { dlbf, host, next: 0 }
    }
    fn table(&mut self) -> &mut PathTable {
        self.dlbf.state.place.table(&mut self.host.shared)
    }
    /// Starts on the given path, with the one-way delays in microseconds, all measured at `now`.
    fn on(mut self, now: u64, path: u16, delays: &[i64]) -> Self {
        for (id, delay) in (0..).zip(delays) {
            self.table().on_ack(us(now), PathId(id), false, delay * US as i64);
        }
        self.dlbf.state.current = Some(PathId(path));
        self.dlbf.state.msn = Some(0);
        self.dlbf.state.sent_at = us(now);
        self
    }
    fn poll(&mut self, now: u64) -> Grant {
        let want = SendRequest { psn: self.next, payload_bytes: 1_000, wire_bytes: 1_048, ..REQUEST };
        self.dlbf.poll_send(us(now), &want, &mut self.host.cx())
    }
    fn send(&mut self, now: u64) -> PathId {
        let Grant::Send(path) = self.poll(now) else { panic!("{:?} at {now}", self.poll(now)) };
        let sent = Sent { path, psn: self.next, payload_bytes: 1_000, wire_bytes: 1_048, ..SENT };
        let mut cx = self.host.cx();
        self.dlbf.on_sent(us(now), &sent, &mut cx);
        self.next += 1;
        path
    }
    fn feed(&mut self, now: u64, kind: FeedbackKind, path: u16, psn: u64, rtt: u64, delay: i64) {
        let feedback = Feedback {
            kind,
            path: PathId(path),
            psn,
            wire_bytes: 1_048,
            rtt: Duration::from_us(rtt),
            one_way_ps: delay * US as i64,
            ..ACK
        };
        let mut cx = self.host.cx();
        self.dlbf.on_feedback(us(now), &feedback, &mut cx);
    }
    /// Feeds a marked packet whose PSN does not matter.
    fn mark(&mut self, now: u64, path: u16, delay: i64) {
        self.feed(now, FeedbackKind::Duplicate { marked: true }, path, 0, 1, delay);
    }
    /// Sends the notice that was granted.
    fn notice(&mut self, now: u64, path: u16) {
        let mut cx = self.host.cx();
        self.dlbf.make_control(us(now), PathId(path), 0..self.next, &mut cx);
    }
    /// Sends all copies granted at `now` and returns their PSNs in order.
    fn copies(&mut self, now: u64) -> Vec<u64> {
        let mut list = Vec::new();
        while let Grant::Copy { psn, path } = self.poll(now) {
            list.push(psn);
            let mut cx = self.host.cx();
            self.dlbf.on_copy_sent(us(now), psn, path, 1_048, &mut cx);
        }
        list
    }
}

/// Oracle 1: delays of 40 and 25, packets sent at 0 and 10, switch at 20. Oracle 3: clocks a second apart.
#[test]
fn only_what_would_arrive_late_is_copied() {
    for offset in [0, 1_000_000, -1_000_000] {
        let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[40 + offset, 25 + offset]);
        qp.send(0);
        qp.send(10);
        qp.mark(20, 0, 40 + offset);
        assert_eq!(qp.dlbf.path(), Some(PathId(1)));
        // 20 in flight is more than the gap of 15; 10 is less.
        assert_eq!(qp.copies(20), [1], "offset {offset}");
        assert_eq!(qp.send(20), PathId(1));
        assert_eq!(qp.dlbf.counts(), DlbfCounts { switches: 1, copies: 1, ..Default::default() });
    }
}

/// Oracle 2.
#[test]
fn as_long_under_way_as_the_gap_is_in_time() {
    let switch_with = |delays: [i64; 2]| {
        let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &delays);
        qp.send(5);
        qp.mark(20, 0, delays[0]);
        qp.copies(20)
    };
    assert!(switch_with([40, 25]).is_empty());
    assert_eq!(switch_with([41, 25]), [0]);
    assert!(switch_with([25, 25]).is_empty());
    assert!(switch_with([25, 40]).is_empty());
}

/// Oracle 4: twenty packets a microsecond apart, gap 7.5. Oracle 15: the copies are the last ones sent.
#[test]
fn the_seven_most_recent_packets() {
    let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[30, 0]);
    let gap = 7_500_000;
    qp.table().on_ack(us(0), PathId(0), false, gap);
    for at in 0..20 {
        qp.send(at);
    }
    let mut cx = qp.host.cx();
    let feedback = Feedback {
        kind: FeedbackKind::Duplicate { marked: true },
        wire_bytes: 0,
        rtt: Duration::from_us(1),
        one_way_ps: gap,
        inflight_packets: 20,
        ..ACK
    };
    qp.dlbf.on_feedback(us(20), &feedback, &mut cx);
    assert_eq!(qp.copies(20), (13..20).collect::<Vec<_>>());
}

/// Oracle 5: path A (60), then B (30), then C (10). The printed rule has one gap, that of B and C.
#[test]
fn after_two_switches_each_packet_has_its_own_gap() {
    for (variant, copied) in [(DlbfVariant::Repaired, vec![0]), (DlbfVariant::Published, vec![])] {
        let config = DlbfConfig { variant, on_switch: OnSwitch::Copies, ..DlbfConfig::default() };
        let mut qp = Alone::new(config, 3).on(0, 0, &[60, 30, 10]);
        // State after a switch from A to B without copies: sent 25 and 20 before the next switch.
        qp.dlbf.state.history.sent(1, Sending { at: us(75), path: PathId(1) });
        qp.dlbf.state.history.sent(0, Sending { at: us(80), path: PathId(0) });
        qp.dlbf.state.current = Some(PathId(1));
        qp.dlbf.state.sent_at = us(80);
        qp.next = 2;
        qp.table().on_timeout(us(100), PathId(0));
        qp.table().on_ack(us(100), PathId(2), false, 10 * US as i64);
        qp.mark(100, 1, 30);
        assert_eq!(qp.dlbf.path(), Some(PathId(2)));
        assert_eq!(qp.copies(100), copied, "{variant}");
    }
}

/// Oracle 6.
#[test]
fn the_table_of_algorithm_1() {
    let mut rng = Rng::for_component(1, "table", 0);
    let table = |states: [PathStatus; 3]| {
        let mut table = PathTable::new(3, Duration::from_us(100), Duration::from_us(100));
        for (id, known) in (0..).zip(states) {
            match known {
                PathStatus::Unprobed => {}
                PathStatus::Available => table.on_ack(us(1), PathId(id), false, 1),
                PathStatus::Unavailable => table.on_ack(us(1), PathId(id), true, 1),
            }
        }
        table
    };
    use PathStatus::{Available as A, Unavailable as U, Unprobed as N};
    let mut pick = |old: Option<u16>, states| table(states).select(us(2), old.map(PathId), &mut rng).0;
    assert_eq!(pick(None, [N, A, N]), 1);
    assert_eq!(pick(Some(0), [A, A, A]), 0);
    assert_eq!(pick(Some(0), [N, A, A]), 0);
    assert_eq!(pick(Some(0), [U, N, A]), 2);
    assert_eq!(pick(Some(0), [U, U, N]), 2);
    assert_eq!(pick(Some(1), [U, U, U]), 1);
    assert!(pick(None, [U, U, U]) < 3);
}

/// Oracle 7.
#[test]
fn known_delays_expire() {
    let mut table = PathTable::new(1, Duration::from_us(100), Duration::from_us(200));
    let path = PathId(0);
    let at = |ps: u64| Time::from_ps(ps);
    table.on_ack(at(0), path, false, 5);
    assert_eq!(table.knowledge(path, us(100)), PathStatus::Available);
    assert_eq!(table.knowledge(path, at(100 * US + 1)), PathStatus::Unprobed);
    table.on_ack(us(300), path, true, 5);
    assert_eq!(table.knowledge(path, us(500)), PathStatus::Unavailable);
    assert_eq!(table.knowledge(path, at(500 * US + 1)), PathStatus::Unprobed);
    // A second mark half-way restarts the time; an unmarked packet changes only the delay.
    table.on_ack(us(400), path, true, 5);
    table.on_ack(us(450), path, false, 9);
    assert_eq!(table.knowledge(path, us(600)), PathStatus::Unavailable);
    assert_eq!(table.knowledge(path, at(600 * US + 1)), PathStatus::Unprobed);
    assert_eq!(table.one_way_ps(path), Some(9));
    table.on_ack(us(700), path, false, 9);
    assert_eq!(table.knowledge(path, us(700)), PathStatus::Available);
}

/// Oracle 8, and the limit of one switch per round-trip time.
#[test]
fn late_marks_of_the_path_left_change_nothing() {
    let mut qp = Alone::new(DlbfConfig::default(), 4).on(0, 0, &[10, 10, 10, 10]);
    qp.send(0);
    qp.mark(5, 0, 10);
    let second = qp.dlbf.path();
    (6..20).for_each(|at| qp.mark(at, 0, 12));
    assert_eq!((qp.dlbf.path(), qp.dlbf.counts().switches), (second, 1));
    // A mark of the new path within a round trip of 8 us has no effect; one a round trip later has.
    let new = second.expect("in use").0;
    qp.feed(20, FeedbackKind::Duplicate { marked: false }, new, 0, 8, 10);
    qp.feed(21, FeedbackKind::Duplicate { marked: true }, new, 0, 8, 10);
    let third = qp.dlbf.path();
    assert_ne!(third, second);
    qp.feed(25, FeedbackKind::Duplicate { marked: true }, third.expect("in use").0, 0, 8, 10);
    assert_eq!((qp.dlbf.path(), qp.dlbf.counts().switches), (third, 2));
    qp.feed(29, FeedbackKind::Duplicate { marked: true }, third.expect("in use").0, 0, 8, 10);
    assert_eq!(qp.dlbf.counts().switches, 3);
}

/// Oracle 9.
#[test]
fn available_paths_are_equally_likely() {
    let mut table = PathTable::new(5, Duration::from_us(100), Duration::from_us(100));
    (1..5).for_each(|id| table.on_ack(us(0), PathId(id), false, 0));
    table.on_ack(us(0), PathId(0), true, 0);
    let mut rng = Rng::for_component(3, "uniform", 0);
    let mut count = [0u32; 5];
    for _ in 0..100_000 {
        count[table.select(us(1), Some(PathId(0)), &mut rng).index()] += 1;
    }
    assert_eq!(count[0], 0);
    assert!(count[1..].iter().all(|&n| (24_500..25_500).contains(&n)), "{count:?}");
}

#[test]
fn an_unknown_path_gets_a_notice_unless_they_are_paused_or_off() {
    let unknown = |on_switch| {
        let config = DlbfConfig { on_switch, ..DlbfConfig::default() };
        let mut qp = Alone::new(config, 2).on(0, 0, &[40]);
        qp.send(0);
        qp.send(39);
        qp
    };
    let mut qp = unknown(OnSwitch::CopiesAndNotices);
    qp.mark(40, 0, 40);
    assert_eq!(qp.poll(40), Grant::Control(PathId(1)));
    assert_eq!(qp.poll(41), Grant::Control(PathId(1)), "asked again, the same");
    qp.notice(41, 1);
    assert_eq!(qp.send(41), PathId(0), "the delay of the other one is not known yet");
    // The reply: a delay of 30 on the new path, and the receiver misses the announced packets.
    qp.feed(45, FeedbackKind::Duplicate { marked: false }, 1, 0, 4, 30);
    qp.feed(45, FeedbackKind::Late, 0, 0, 0, 0);
    qp.feed(45, FeedbackKind::Late, 0, 1, 0, 0);
    assert_eq!(qp.copies(45), [1, 2], "6 and 4 under way, less than the gap of 10");
    assert_eq!(qp.send(45), PathId(1));
    assert_eq!(qp.dlbf.counts(), DlbfCounts { switches: 1, copies: 2, notices: 1, saturated: 0 });

    // Without another measured path the least delay is that of the old one, and the gap is zero.
    let mut qp = unknown(OnSwitch::CopiesAndNotices);
    qp.feed(39, FeedbackKind::NoticeFlow(NoticePermission::Paused), 0, 0, 0, 0);
    qp.mark(40, 0, 40);
    assert!(qp.copies(40).is_empty());
    assert_eq!(qp.send(40), PathId(1));
    let mut qp = unknown(OnSwitch::Nothing);
    qp.mark(40, 0, 40);
    assert_eq!(qp.send(40), PathId(1));
}

/// Published variant: data follows the notice at once, although it may overtake.
#[test]
fn as_printed_nobody_waits_for_the_answer() {
    let config = DlbfConfig { variant: DlbfVariant::Published, ..DlbfConfig::default() };
    let mut qp = Alone::new(config, 2).on(0, 0, &[40]);
    qp.send(0);
    qp.mark(40, 0, 40);
    assert_eq!(qp.poll(40), Grant::Control(PathId(1)));
    qp.notice(40, 1);
    assert_eq!(qp.send(40), PathId(1));
}

#[test]
fn an_unknown_path_that_is_congested_or_silent_is_not_used() {
    let asked = || {
        let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[40]);
        qp.send(0);
        qp.mark(40, 0, 40);
        qp.poll(40);
        qp.notice(40, 1);
        qp
    };
    let mut qp = asked();
    qp.feed(45, FeedbackKind::Duplicate { marked: true }, 1, 0, 4, 30);
    assert_eq!((qp.send(45), qp.table().knowledge(PathId(1), us(45))), (PathId(0), PathStatus::Unavailable));
    assert_eq!(qp.dlbf.counts().switches, 0);
    // Marks while the reply is outstanding probe no other path. A mark after the reply would be too old does.
    let mut qp = asked();
    qp.mark(140, 0, 40);
    assert_eq!((qp.dlbf.counts().saturated, qp.dlbf.state.awaits_answer(us(140))), (0, true));
    qp.mark(141, 0, 40);
    assert_eq!((qp.dlbf.counts().saturated, qp.dlbf.state.probed), (1, None));
    assert_eq!(qp.table().knowledge(PathId(1), us(141)), PathStatus::Unavailable);
    // The path in use has recovered by then.
    let mut qp = asked();
    qp.feed(241, FeedbackKind::Duplicate { marked: false }, 1, 0, 4, 30);
    assert_eq!(qp.send(241), PathId(0));
}

#[test]
fn with_nothing_to_overtake_an_unknown_path_is_used_at_once() {
    let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[40]);
    qp.send(0);
    qp.mark(40, 0, 40);
    qp.poll(40);
    qp.notice(40, 1);
    qp.feed(42, FeedbackKind::Ack { timed: false, marked: false }, 0, 0, 1, 40);
    assert_eq!(qp.send(43), PathId(1));
    assert_eq!(qp.dlbf.counts().switches, 1);
}

#[test]
fn nothing_of_the_new_path_is_copied() {
    let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[40, 25]);
    qp.send(0);
    qp.dlbf.state.history.sent(1, Sending { at: us(9), path: PathId(1) });
    qp.next = 2;
    qp.mark(10, 0, 40);
    assert_eq!(qp.copies(10), [0], "10 under way is less than 15");
}

#[test]
fn with_every_path_congested_it_stays_and_says_so() {
    let mut qp = Alone::new(DlbfConfig::default(), 2).on(0, 0, &[40, 25]);
    qp.send(0);
    qp.mark(1, 1, 25);
    qp.mark(2, 0, 40);
    assert_eq!(
        (qp.dlbf.path(), qp.dlbf.counts()),
        (Some(PathId(0)), DlbfCounts { saturated: 1, ..Default::default() })
    );
}

#[test]
fn marks_leave_the_rate_alone_where_asked_and_while_there_is_a_way_out() {
    let rate_after = |marked_rate, others_marked: bool| {
        let mut qp = Alone::new(DlbfConfig { marked_rate, ..DlbfConfig::default() }, 2);
        qp.dlbf.cc = DlbfConfig::default().cc.build(&qp.dlbf.state.env);
        let mut qp = qp.on(0, 0, &[40, 25]);
        qp.send(0);
        if others_marked {
            qp.mark(1, 1, 25);
        }
        qp.feed(2, FeedbackKind::Cnp, 0, 0, 0, 0);
        // The rate is reduced 4 us after the notification.
        qp.dlbf.rate(us(6)).expect("DCQCN has one").as_bps() / 1_000_000_000
    };
    // Alpha has decayed four times: 400 (1 - (255 / 256)^4 / 2).
    assert_eq!(rate_after(MarkedRate::Reduced, false), 203);
    assert_eq!(rate_after(MarkedRate::Kept, false), 400);
    assert_eq!(rate_after(MarkedRate::Kept, true), 203);
}

#[test]
fn queue_pairs_to_one_host_know_the_same() {
    let mut shared = Shared::new();
    let mut rng = Rng::for_component(1, "pair", 0);
    let env = Alone::new(DlbfConfig::default(), 4).dlbf.state.env;
    let mut open = |qp: u32, peer: u32, shared: &mut Shared| {
        let mut dlbf = DlbfConfig::default().build(&env, &mut rng);
        let member = QueuePairId { qp: pathweave_units::QpNum(qp), peer: pathweave_units::HostId(peer) };
        dlbf.on_open(Time::ZERO, &member, &mut PolicyCx { rng: &mut rng, shared });
        dlbf
    };
    let mut first = open(2, 9, &mut shared);
    let mut second = open(3, 9, &mut shared);
    let mut other = open(4, 8, &mut shared);
    first.state.place.table(&mut shared).on_ack(us(1), PathId(2), true, 5);
    let known =
        |dlbf: &mut Dlbf, shared: &mut Shared| dlbf.state.place.table(shared).knowledge(PathId(2), us(2));
    assert_eq!(known(&mut second, &mut shared), PathStatus::Unavailable);
    assert_eq!(known(&mut other, &mut shared), PathStatus::Unprobed);
}

#[test]
fn a_dead_path_is_left_and_what_is_known_of_others_stays() {
    let mut qp = Alone::new(DlbfConfig::default(), 3).on(0, 0, &[40, 25, 25]);
    qp.send(0);
    let view = |id, state| PathView { base_rtt: None, ..PathView::new(PathId(id), state) };
    let views = [view(0, PathState::Down), view(1, PathState::Up), view(2, PathState::Up)];
    let mut cx = qp.host.cx();
    qp.dlbf.on_paths(us(1), &views, &mut cx);
    assert_ne!(qp.send(1), PathId(0));
    assert_eq!(qp.table().knowledge(PathId(2), us(1)), PathStatus::Available);
}

#[test]
fn history_takes_any_order() {
    let mut history = History::default();
    let at = |n| Sending { at: us(n), path: PathId(n as u16) };
    [5, 6, 8].into_iter().for_each(|psn| history.sent(psn, at(psn)));
    history.gone(5);
    history.sent(4, at(4)); // lost before, sent again
    assert_eq!(history.iter().map(|(psn, _)| psn).collect::<Vec<_>>(), [4, 6, 8]);
    assert_eq!((history.get(5), history.get(8), history.get(9)), (None, Some(at(8)), None));
    [8, 4, 6, 6, 3, 99].into_iter().for_each(|psn| history.gone(psn));
    assert!(history.is_empty());
    history.sent(1_000, at(1));
    assert_eq!(history.get(1_000), Some(at(1)));
}

#[test]
fn values_out_of_range_are_named() {
    let wrong = |config: DlbfConfig| config.validate().expect_err("refused").field;
    assert_eq!(wrong(DlbfConfig { available_for: Duration::ZERO, ..DlbfConfig::default() }), "available_for");
    assert_eq!(
        wrong(DlbfConfig { unavailable_for: Duration::from_ms(2_000), ..DlbfConfig::default() }),
        "unavailable_for"
    );
}

/// With a round trip of 2 ms no acknowledgement is younger than 100 us, so the state of paths must last longer.
#[test]
fn known_delays_outlast_a_long_round_trip() {
    let env = PolicyEnv { base_rtt: Duration::from_ms(2), ..Scenario::steady().env };
    let known = |config: DlbfConfig| {
        let dlbf = config.build(&env, &mut Rng::for_component(7, "dlbf", 0));
        (dlbf.state.config.available_for, dlbf.state.config.unavailable_for)
    };
    assert_eq!(known(DlbfConfig::default()), (Duration::from_ms(8), Duration::from_ms(16)));
    let published = DlbfConfig { variant: DlbfVariant::Published, ..DlbfConfig::default() };
    assert_eq!(known(published), (Duration::from_us(100), Duration::from_us(200)));
}

#[test]
fn a_marked_path_is_left_for_good() {
    let scenario = Scenario { packets: 10_000, ..Scenario::one_path_marked() };
    let config = DlbfConfig { cc: CcConfig::None(Default::default()), ..DlbfConfig::default() };
    let report = scenario.run(|env, rng| config.build(env, rng));
    let sent = &report.senders[0].sent;
    assert!(sent.iter().max().expect("paths") > &9_000, "{sent:?}");
}

#[test]
fn random_operations_break_no_invariant() {
    let env = Scenario::steady().env;
    for seed in 0..80 {
        let variant = [DlbfVariant::Published, DlbfVariant::Repaired][seed as usize % 2];
        let on_switch = [OnSwitch::CopiesAndNotices, OnSwitch::Copies, OnSwitch::Nothing, OnSwitch::Wait]
            [seed as usize / 2 % 4];
        let marked_rate = [MarkedRate::Reduced, MarkedRate::OfItsPath][seed as usize / 8 % 2];
        let config = DlbfConfig { variant, on_switch, marked_rate, ..DlbfConfig::default() };
        random_operations(seed, 2_000, &env, |env, rng| config.build(env, rng));
    }
}

/// Data waits until all packets on the path left are acknowledged or count as lost.
#[test]
fn data_waits_until_it_overtakes_nothing() {
    let left = || {
        let mut qp = Alone::new(waiting(), 2).on(0, 0, &[40, 25]);
        qp.send(0);
        qp.send(19);
        qp.feed(20, FeedbackKind::Duplicate { marked: true }, 0, 0, 10, 40);
        assert_eq!(qp.dlbf.path(), Some(PathId(1)));
        assert_eq!(qp.poll(20), Grant::Blocked);
        qp
    };
    let mut qp = left();
    qp.feed(21, FeedbackKind::Ack { timed: false, marked: false }, 0, 0, 10, 40);
    assert_eq!(qp.poll(21), Grant::Blocked);
    qp.feed(22, FeedbackKind::Ack { timed: false, marked: false }, 0, 1, 10, 40);
    assert_eq!(qp.poll(22), Grant::Send(PathId(1)));
    assert_eq!(qp.dlbf.counts(), DlbfCounts { switches: 1, ..Default::default() });
    let mut qp = left();
    assert_eq!(qp.poll(1_000), Grant::Blocked, "a switch may pause for long");
    qp.feed(1_001, FeedbackKind::Lost, 0, 1, 0, 0);
    assert_eq!(qp.poll(1_001), Grant::Blocked);
    qp.feed(1_002, FeedbackKind::Timeout, 0, 0, 0, 0);
    assert_eq!(qp.poll(1_002), Grant::Send(PathId(1)));
}

/// A round trip of 12 us over 1 us indicates a queue that the other path shares: a move avoids nothing.
#[test]
fn a_queue_that_the_other_path_has_as_well_is_no_reason_to_leave() {
    for (other, path) in [(36, 0), (34, 1)] {
        let mut qp = Alone::new(waiting(), 2).on(0, 0, &[40, other]);
        qp.send(0);
        qp.feed(20, FeedbackKind::Duplicate { marked: true }, 0, 0, 12, 40);
        assert_eq!(qp.dlbf.path(), Some(PathId(path)), "{other}");
    }
}

/// Back on the first path, data does not wait for packets in flight there, because a path keeps order. It waits for
/// packets on the second path.
#[test]
fn a_path_does_not_wait_for_itself() {
    let mut qp = Alone::new(waiting(), 2).on(0, 0, &[20, 20]);
    qp.send(10);
    let state = &mut *qp.dlbf.state;
    state.switch_to(us(11), PathId(1), None);
    assert!(state.overtakes());
    state.switch_to(us(12), PathId(0), None);
    assert!(!state.overtakes());
}

#[test]
fn marks_of_a_path_that_is_left_cut_nothing() {
    let begun = |others_marked: bool| {
        let mut qp = Alone::new(waiting(), 2);
        qp.dlbf.cc = DlbfConfig::default().cc.build(&qp.dlbf.state.env);
        let mut qp = qp.on(0, 0, &[40, 25]);
        qp.send(0);
        if others_marked {
            qp.mark(1, 1, 25);
        }
        qp.feed(2, FeedbackKind::Cnp, 0, 0, 0, 0);
        qp.mark(2, 0, 40);
        qp
    };
    let rate_at = |qp: &Alone, at| qp.dlbf.rate(us(at)).expect("DCQCN has one").as_bps() / 1_000_000_000;
    // After the move to path 1, neither the mark that caused it nor later marks of path 0 reduce the rate. Marks of
    // path 1 do, once the queue pair stays on it.
    let mut qp = begun(false);
    assert_eq!(qp.dlbf.path(), Some(PathId(1)));
    qp.feed(3, FeedbackKind::Cnp, 0, 0, 0, 0);
    qp.mark(3, 0, 40);
    assert_eq!(rate_at(&qp, 8), 400);
    qp.feed(9, FeedbackKind::Cnp, 1, 0, 0, 0);
    qp.mark(9, 1, 25);
    assert_eq!(qp.dlbf.path(), Some(PathId(1)), "the other one is congested, too");
    assert_eq!(rate_at(&qp, 8), 400);
    assert!(rate_at(&qp, 20) < 210);
    // Without another path the queue pair stays at once.
    assert!(rate_at(&begun(true), 12) < 210);
}
