//! The schemes of this crate on the test bench.

use crate::testing::{REQUEST, SENT};
use core::cell::RefCell;
use core::mem::discriminant;
use core::ops::Range;
use std::fmt::Write as _;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::ControlKind;

use super::*;
use crate::cc::{CcConfig, Dcqcn, DcqcnConfig, DcqcnPreset, Unlimited, UnlimitedConfig, Window};
use crate::picker::{AnyPicker, Ecmp, PerMessage, PickerConfig, RoundRobin, Rps};
use crate::{
    AnyPolicy, CnpPolicy, ControlFeedback, Feedback, FeedbackKind, Grant, MeasuredSection, Memo, MpRdma,
    Outgoing, PathView, PeerKind, Policy, PolicyConfig, PolicyCx, PolicyEnv, QueuePairId, SendRequest, Sent,
    Shared, SplitConfig, SplitPolicy, Udmp, find_scheme, schemes,
};

fn run(scheme: &str, scenario: &Scenario) -> Report {
    let policy = (find_scheme(scheme).expect("a scheme").make)().policy;
    scenario.run(|env, rng| policy.build(env, rng))
}

fn run_policy(policy: &PolicyConfig, scenario: &Scenario) -> Report {
    scenario.run(|env, rng| policy.build(env, rng))
}

fn totals(report: &Report) -> SenderReport {
    let mut sum = SenderReport { sent: std::vec![0; 4], ..SenderReport::default() };
    for sender in &report.senders {
        sum.sent.iter_mut().zip(&sender.sent).for_each(|(all, one)| *all += one);
        sum.retransmitted += sender.retransmitted;
        sum.marked += sender.marked;
        sum.cnps += sender.cnps;
    }
    sum
}

#[test]
fn an_idle_network_is_used_at_line_rate_by_every_scheme() {
    // The last packet leaves at 100 us, is served by its path for 100 ns, and is acknowledged 10 us later.
    for scheme in schemes() {
        let report = run(scheme.name, &Scenario::steady());
        // A token bucket that starts empty with the first acknowledgement costs a packet. In the published variant
        // two packets per acknowledgement hardly ever make up for it.
        let slack_ns = if scheme.name.starts_with("udmp") { 900 } else { 0 };
        let done_ns = report.done_at().as_ns();
        assert!((110_100..=110_100 + slack_ns).contains(&done_ns), "{}: {done_ns}", scheme.name);
        assert_eq!(totals(&report).sent.iter().sum::<u64>(), 1_000);
    }
}

#[test]
fn an_application_at_a_tenth_of_the_line_is_never_held_back() {
    for scheme in schemes() {
        let report = run(scheme.name, &Scenario::application_limited());
        assert_eq!(report.done_at(), Time::from_ns(999_000 + 10_200), "{}", scheme.name);
    }
}

#[test]
fn incast_without_congestion_control_keeps_the_receivers_link_busy() {
    // 8,000 packets of 100 ns, after the 200 ns and 5 us of the first one; acknowledged 5 us later.
    let report = run("rps-nocc", &Scenario::incast());
    assert_eq!(report.done_at(), Time::from_ns(800_000 + 10_200));
}

#[test]
fn dcqcn_shares_an_incast() {
    let scenario = Scenario { packets: 20_000, ..Scenario::incast() };
    let report = run("rps", &scenario);
    // Half-way, the eight rates add up to a few times the link rate at most; at the start they are eight times the
    // link rate.
    let at = report.senders[0].rates.len() / 2;
    let sum: u64 =
        report.senders.iter().filter_map(|sender| sender.rates.get(at)).map(|(_, rate)| rate.as_bps()).sum();
    assert!(sum < 200_000_000_000, "{sum}");
    let first = report.senders.iter().filter_map(|sender| sender.done_at).min().expect("eight senders");
    assert!(first.as_ps() * 2 > report.done_at().as_ps(), "{first} {}", report.done_at());
}

#[test]
fn a_path_reported_down_is_left_at_once_and_used_again_later() {
    let report = run("rps-nocc", &Scenario::one_path_flaps());
    let all = totals(&report);
    assert_eq!((all.retransmitted, report.done_at()), (0, Time::from_ns(110_100)));
    // A quarter of the 600 packets sent while it was up; a binomial distribution with standard deviation 11.
    assert!((110..190).contains(&all.sent[0]), "{:?}", all.sent);

    let ecmp = SplitConfig { cc: CcConfig::None(UnlimitedConfig::default()), picker: PickerConfig::Ecmp };
    let report = Scenario::one_path_flaps().run(|env, rng| {
        let mut policy = ecmp.build(env, rng);
        while !matches!(&policy.picker, AnyPicker::Ecmp(ecmp) if ecmp.path().0 == 0) {
            policy.picker = AnyPicker::Ecmp(Ecmp::new(env.paths, rng));
        }
        policy
    });
    let all = totals(&report);
    assert_eq!(all.sent[0], 200); // until 20 us; the path is not used again
    assert_eq!(all.sent.iter().filter(|&&sent| sent == 800).count(), 1);
}

#[test]
fn a_window_of_one_bdp_fills_the_line_and_half_of_it_halves_the_rate() {
    let window = |window| {
        let cc = CcConfig::None(UnlimitedConfig { window });
        let config = PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::RoundRobin });
        Scenario::steady().run(|env, rng| config.build(env, rng)).done_at()
    };
    // A round trip is 10.2 us: 102 packets.
    assert_eq!(window(Window::Packets(102)), Time::from_ns(110_100));
    assert_eq!(window(Window::Bdp(1.0)), Time::from_ns(110_100));
    // 51 packets per round trip: 19 full ones, and in the twentieth the 31st packet is the last.
    assert_eq!(window(Window::Packets(51)), Time::from_ns(19 * 10_200 + 30 * 100 + 10_200));
}

#[test]
fn everything_through_every_scenario() {
    let mut table = String::new();
    for (name, scenario) in Scenario::all() {
        for Subject { label, scheme } in policies() {
            let scenario = Scenario { packets_per_message: 100, ..scenario.clone() };
            let report = run_policy(&scheme.policy, &scenario);
            let all = totals(&report);
            let done_ns = report.done_at().as_ns();
            let SenderReport { sent, retransmitted, marked, cnps, .. } = all;
            writeln!(table, "{name} | {label} | {done_ns} | {sent:?} | {retransmitted} {marked} {cnps}")
                .expect("a string takes any text");
        }
    }
    // scenario | scheme | done, ns | packets by path | retransmitted, marked, notifications
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/src/testing/snapshot.txt");
    if std::env::var_os("PATHWEAVE_BLESS").is_some() {
        std::fs::write(kept, &table).expect("the table can be written");
    }
    let kept = std::fs::read_to_string(kept).expect("the table");
    fn row_of(table: &str, row: usize) -> &str {
        table.lines().nth(row).unwrap_or("none")
    }
    let differs = (0..table.lines().count().max(kept.lines().count()))
        .find(|&row| row_of(&table, row) != row_of(&kept, row));
    if let Some(row) = differs {
        panic!(
            "snapshot.txt differs from line {}:\n  kept: {}\n  now:  {}\nIf that is meant, write it anew with PATHWEAVE_BLESS=1 and \
             review the change",
            row + 1,
            row_of(&kept, row),
            row_of(&table, row)
        );
    }
}

/// Returns the schemes driven by acknowledgements: without notifications, and with a limit of their own.
fn clocked() -> impl Iterator<Item = &'static str> {
    let all = schemes().iter().filter(|info| {
        let scheme = (info.make)();
        let unlimited =
            matches!(&scheme.policy, PolicyConfig::Split(split) if matches!(split.cc, CcConfig::None(_)));
        scheme.cnp == CnpPolicy::Off && scheme.service.is_connection() && !unlimited
    });
    all.map(|info| info.name)
}

#[test]
fn any_incast_completes_with_every_clocked_scheme() {
    for scheme in clocked() {
        for senders in [2, 16, 64, 256] {
            let scenario =
                Scenario { senders, packets: 300, timeout: Duration::from_ms(50), ..Scenario::incast() };
            let report = run(scheme, &scenario);
            // The receiver's link is busy for 30 us per sender; a restart of all at once may leave it idle for a
            // while.
            let (done, busy) = (report.done_at().as_ns(), 30_000 * u64::from(senders));
            assert!(done < 2 * busy + 400_000, "{scheme}, {senders} to 1: {done} ns");
            assert_eq!(totals(&report).retransmitted, 0, "{scheme}, {senders} to 1");
        }
    }
}

#[test]
fn clocked_schemes_finish_every_scenario_under_any_jitter() {
    for percent in [0, 1, 2, 5, 10] {
        for (name, scenario) in Scenario::all() {
            let scenario = scenario.with_jitter(percent);
            for scheme in clocked() {
                let done = run(scheme, &scenario).senders.iter().all(|sender| sender.done_at.is_some());
                assert!(done, "{scheme}, {name}, {percent} %");
            }
        }
    }
}

#[test]
fn jitter_changes_no_outcome_of_a_scheme_that_does_not_measure_delay() {
    for percent in [0, 1, 5, 10] {
        for (name, scenario) in Scenario::all() {
            let scenario = scenario.with_jitter(percent);
            for scheme in ["ecmp", "rps", "rps-nocc"] {
                let report = run(scheme, &scenario);
                assert!(
                    report.senders.iter().all(|sender| sender.done_at.is_some()),
                    "{scheme}, {name}, {percent} %"
                );
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_report() {
    for (_, scenario) in Scenario::all() {
        assert_eq!(run("rps", &scenario), run("rps", &scenario));
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails is one of a scheme")]
fn random_operations_break_no_invariant_of_anything() {
    for Subject { label, scheme } in policies() {
        std::println!("{label}");
        for seed in 0..12 {
            // In every second run a switch replies for the network behind it.
            let edge = (seed % 2 == 1).then_some(MeasuredSection::with_rtt(Duration::from_us(4)));
            let env = PolicyEnv { edge, ..Scenario::steady().env };
            random_operations(seed, 1_000, &env, |env, rng| scheme.policy.build(env, rng));
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails is one of a pair")]
fn random_operations_break_no_invariant_of_any_congestion_control_and_picker() {
    let env = Scenario::steady().env;
    for (_, cc) in CcConfig::every() {
        for (_, picker) in PickerConfig::every() {
            std::println!("{cc:?} {picker:?}");
            let config = PolicyConfig::Split(SplitConfig { cc: cc.clone(), picker: picker.clone() });
            assert_eq!(config.validate(), Ok(()));
            for seed in 0..4 {
                random_operations(seed, 1_000, &env, |env, rng| config.build(env, rng));
            }
        }
    }
}

/// A policy, with a record of the feedback it receives.
struct Listener {
    policy: AnyPolicy,
    heard: Rc<RefCell<Vec<FeedbackKind>>>,
    told: Rc<RefCell<Vec<ControlKind>>>,
}

impl Policy for Listener {
    crate::ignores!(window, path_beyond_window);
    fn on_open(&mut self, now: Time, member: &QueuePairId, cx: &mut PolicyCx<'_>) {
        self.policy.on_open(now, member, cx);
    }
    fn on_close(&mut self, cx: &mut PolicyCx<'_>) {
        self.policy.on_close(cx);
    }
    fn poll_send(&mut self, now: Time, want: &SendRequest, cx: &mut PolicyCx<'_>) -> Grant {
        self.policy.poll_send(now, want, cx)
    }
    fn make_control(
        &mut self,
        now: Time,
        path: PathId,
        in_flight: Range<u64>,
        cx: &mut PolicyCx<'_>,
    ) -> Outgoing {
        self.policy.make_control(now, path, in_flight, cx)
    }
    fn on_copy_sent(&mut self, now: Time, psn: u64, path: PathId, wire_bytes: u32, cx: &mut PolicyCx<'_>) {
        self.policy.on_copy_sent(now, psn, path, wire_bytes, cx);
    }
    fn on_control(&mut self, now: Time, feedback: &ControlFeedback, cx: &mut PolicyCx<'_>) {
        self.told.borrow_mut().push(feedback.control.kind());
        self.heard.borrow_mut().extend(feedback.midway().map(|midway| midway.kind));
        self.policy.on_control(now, feedback, cx);
    }
    fn on_sent(&mut self, now: Time, sent: &Sent, cx: &mut PolicyCx<'_>) -> Memo {
        self.policy.on_sent(now, sent, cx)
    }
    fn on_feedback(&mut self, now: Time, feedback: &Feedback, cx: &mut PolicyCx<'_>) {
        self.heard.borrow_mut().push(feedback.kind);
        self.policy.on_feedback(now, feedback, cx);
    }
    fn on_paths(&mut self, now: Time, paths: &[PathView], cx: &mut PolicyCx<'_>) {
        self.policy.on_paths(now, paths, cx);
    }
    fn on_timer(&mut self, now: Time, cx: &mut PolicyCx<'_>) {
        self.policy.on_timer(now, cx);
    }
    fn next_timer(&self) -> Option<Time> {
        self.policy.next_timer()
    }
    fn rate(&self, now: Time) -> Option<Rate> {
        self.policy.rate(now)
    }
}

#[test]
fn random_operations_draw_every_kind_of_feedback() {
    let (heard, told) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
    let config = (find_scheme("rps-nocc").expect("a scheme").make)().policy;
    random_operations(1, 1_000, &Scenario::steady().env, |env, rng| Listener {
        policy: config.build(env, rng),
        heard: heard.clone(),
        told: told.clone(),
    });
    every_answer_in(&told.borrow());
    for (kind, times) in times_of_each(&heard.borrow()) {
        assert!(times >= 10, "{kind:?} came {times} times in 1,000 steps");
    }
}

/// Returns the number of occurrences of each kind of feedback.
fn times_of_each(heard: &[FeedbackKind]) -> impl Iterator<Item = (FeedbackKind, usize)> {
    operations::every_kind().map(|kind| {
        let same = |other: &&FeedbackKind| discriminant(*other) == discriminant(&kind);
        (kind, heard.iter().filter(same).count())
    })
}

/// Asserts that every kind of control packet that policies receive occurs.
fn every_answer_in(told: &[ControlKind]) {
    for kind in [ControlKind::ProbeReply, ControlKind::NoticeReply, ControlKind::EdgeEcho] {
        assert!(told.contains(&kind), "no {kind:?}");
    }
}

#[test]
fn situations_give_every_kind_of_feedback() {
    let (heard, told) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(Vec::new())));
    for (_, scenario) in Scenario::all() {
        // LAPS has probes, DLBF has copies and notices.
        for scheme in ["laps", "dlbf"] {
            let config = (find_scheme(scheme).expect("a scheme").make)().policy;
            scenario
                .run(|env, rng| Listener {
                    policy: config.build(env, rng),
                    heard: heard.clone(),
                    told: told.clone(),
                })
                .done_at();
        }
    }
    every_answer_in(&told.borrow());
    // Copies need gaps of delay that no scenario has; random operations and DLBF's own tests cover their
    // acknowledgements.
    let is_of_copies = |kind: &FeedbackKind| matches!(kind, FeedbackKind::Duplicate { .. });
    for (kind, times) in times_of_each(&heard.borrow()).filter(|(kind, _)| !is_of_copies(kind)) {
        assert!(times > 0, "no situation gives {kind:?}");
    }
}

#[test]
fn random_operations_break_no_invariant() {
    let env = Scenario::steady().env;
    let pickers = [PickerConfig::Ecmp, PickerConfig::Rps, PickerConfig::PerMessage, PickerConfig::RoundRobin];
    for seed in 0..100 {
        let picker = pickers[seed as usize % 4].clone();
        let window = [Window::Unlimited, Window::Bdp(0.001), Window::Packets(3)][seed as usize % 3];
        let cc = match seed % 5 {
            0 => CcConfig::None(UnlimitedConfig { window }),
            1 => CcConfig::Dcqcn(DcqcnConfig::preset(DcqcnPreset::Paper)),
            2 => CcConfig::Dcqcn(DcqcnConfig { window: Some(window), ..DcqcnConfig::default() }),
            3 => CcConfig::Dcqcn(DcqcnConfig {
                window: Some(window),
                window_follows_rate: Some(true),
                ..DcqcnConfig::preset(DcqcnPreset::Conweave)
            }),
            _ => CcConfig::Dcqcn(DcqcnConfig {
                min_rate: Some(Rate::from_bps(1_000_000)),
                ..DcqcnConfig::preset(DcqcnPreset::Astra)
            }),
        };
        let config = PolicyConfig::Split(SplitConfig { cc, picker });
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 1_000, &env, |env, rng| config.build(env, rng));
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the sizes are the point; see them with --nocapture")]
fn sizes_of_the_policies() {
    let sizes = [
        ("Dcqcn x Ecmp", size_of::<SplitPolicy<Dcqcn, Ecmp>>()),
        ("Dcqcn x Rps", size_of::<SplitPolicy<Dcqcn, Rps>>()),
        ("Dcqcn x PerMessage", size_of::<SplitPolicy<Dcqcn, PerMessage>>()),
        ("Dcqcn x RoundRobin", size_of::<SplitPolicy<Dcqcn, RoundRobin>>()),
        ("Unlimited x Rps", size_of::<SplitPolicy<Unlimited, Rps>>()),
        ("Udmp", size_of::<Udmp>()),
        ("MpRdma", size_of::<MpRdma>()),
        ("AnyPolicy", size_of::<AnyPolicy>()),
    ];
    for (name, bytes) in sizes {
        std::println!("{name}: {bytes} bytes");
        assert!(bytes <= 336, "{name} takes {bytes} bytes for each direction of a queue pair");
    }
}

/// Sends a packet whenever the policy permits, and returns the paths taken.
fn paths_taken(policy: &mut AnyPolicy, rng: &mut Rng, shared: &mut Shared) -> Vec<PathId> {
    let mut taken = Vec::new();
    let (mut now, mut psn) = (Time::from_us(1), 0);
    for _ in 0..400 {
        now += Duration::from_us(30);
        let want = SendRequest { psn, payload_bytes: 1_000, wire_bytes: 1_048, msn: psn as u32, ..REQUEST };
        let mut cx = PolicyCx { rng: &mut *rng, shared: &mut *shared };
        match policy.poll_send(now, &want, &mut cx) {
            Grant::Send(path) => {
                let sent =
                    Sent { path, psn, msn: psn as u32, payload_bytes: 1_000, wire_bytes: 1_048, ..SENT };
                let memo = policy.on_sent(now, &sent, &mut cx);
                let feedback = Feedback {
                    kind: FeedbackKind::Ack { timed: true, marked: psn % 3 == 0 },
                    path,
                    psn,
                    memo,
                    wire_bytes: 1_048,
                    rtt: Duration::from_us(10 + psn % 7),
                    one_way_ps: 5_000_000 + (psn % 7) as i64 * 1_000_000,
                    inflight_packets: 0,
                    backlogged: true,
                };
                policy.on_feedback(now + Duration::from_us(15), &feedback, &mut cx);
                taken.push(path);
                psn += 1;
            }
            Grant::Control(path) => {
                policy.make_control(now, path, 0..psn, &mut cx);
                taken.push(path);
            }
            Grant::Copy { psn, path } => {
                policy.on_copy_sent(now, psn, path, 1_048, &mut cx);
                taken.push(path);
            }
            Grant::At(_) | Grant::Blocked => {}
        }
    }
    taken
}

/// Queue pairs with different numbers of paths share state; none may use a path it does not have.
#[test]
fn queue_pairs_to_one_peer_use_the_paths_they_have() {
    for info in schemes() {
        let config = (info.make)().policy;
        for peers in [PeerKind::Hosts, PeerKind::Connections] {
            let (mut rng, mut shared) = (Rng::for_component(1, "qp", 0), Shared::for_peers(peers));
            let mut open = Vec::new();
            for (qp, paths) in [8u16, 1, 3, 8].into_iter().enumerate() {
                let env = PolicyEnv { paths, ..Scenario::steady().env };
                let mut policy = config.build(&env, &mut rng);
                let member = QueuePairId { qp: QpNum(2 + qp as u32), peer: HostId(1) };
                policy.on_open(Time::ZERO, &member, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
                open.push((policy, paths));
            }
            for (policy, paths) in &mut open {
                let taken = paths_taken(policy, &mut rng, &mut shared);
                let most = taken.iter().max().expect("a packet leaves");
                assert!(most.0 < *paths, "{}: {most:?} of {paths}", info.name);
            }
        }
    }
}

/// The queue pair of a handshake is created with the paths of this end, and agrees on fewer. Closed connections leave
/// no state.
#[test]
fn connections_that_come_and_go_leave_nothing_in_the_stores() {
    for info in schemes() {
        let config = (info.make)().policy;
        let (mut rng, mut shared) =
            (Rng::for_component(1, "qp", 0), Shared::for_peers(PeerKind::Connections));
        for connection in 0..1_000 {
            for paths in [8, 1 + (connection % 8) as u16] {
                let env = PolicyEnv { paths, ..Scenario::steady().env };
                let mut policy = config.build(&env, &mut rng);
                let member = QueuePairId { qp: QpNum(2), peer: HostId(connection) };
                let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
                policy.on_open(Time::ZERO, &member, &mut cx);
                policy.on_close(&mut cx);
            }
        }
        assert_eq!(shared.stores(), 0, "{}", info.name);
    }
}
