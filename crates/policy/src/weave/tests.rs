//! Worked examples, then the invariants of the test bench. 100 Gb/s, packets of 1,250 B (100 ns) and a round-trip
//! time of 10 us give a bandwidth-delay product of 100 packets and a largest window of 151. Its target is 0.7 us if each
//! message is awaited by itself.

use alloc::vec::Vec;

use pathweave_units::{Duration, PathId, Rate, Rng, Time, TrimmedAt};

use super::*;
use crate::testing::{ACK, REQUEST, SENT, Scenario, random_operations};
use crate::{
    Adapt, Awaited, Egress, FabricEnv, FullBufferAction, HostEnv, MeasuredSection, PathState, Policy, Shared,
};

fn env() -> PolicyEnv {
    PolicyEnv {
        line_rate: Rate::from_gbps(100),
        base_rtt: Duration::from_us(10),
        mtu_wire_bytes: 1_250,
        paths: 1_000,
        measured: MeasuredSection::with_rtt(Duration::from_us(10)),
        ..Scenario::steady().env
    }
}

fn fabric(awaited: Awaited) -> FabricEnv<'static> {
    FabricEnv {
        when_full: FullBufferAction::Pause,
        longest_path: None,
        longest_rtt: None,
        line_rate: Rate::from_gbps(100),
        port_rate: Rate::from_gbps(100),
        nic_ports: 1,
        packet_bytes: 1_250,
        awaited,
    }
}

/// A flow with its random stream and shared state.
struct Flow {
    weave: Weave,
    rng: Rng,
    shared: Shared,
    in_flight: u32,
}

impl Flow {
    fn new() -> Self {
        Flow::of(&WeaveConfig::default())
    }
    /// Returns a flow with a mean of 10 us and a mean deviation of 0.1 us.
    fn settled() -> Self {
        let mut flow = Flow::new();
        flow.weave.noise.deviation = 100_000.0;
        flow
    }
    /// Returns a flow whose application waits for messages of this unit.
    fn awaited(awaited: Awaited) -> Self {
        let mut config = WeaveConfig::default();
        config.adapt_to_fabric(&fabric(awaited));
        Flow::of(&config)
    }
    fn of(config: &WeaveConfig) -> Self {
        let mut rng = Rng::for_component(1, "policy", 0);
        let weave = config.build(&env(), &mut rng);
        Flow { weave, rng, shared: Shared::default(), in_flight: 0 }
    }
    /// Sends at most `most` packets, as far as the window allows. Returns their paths.
    fn send(&mut self, most: usize) -> Vec<u16> {
        let mut paths = Vec::new();
        while paths.len() < most {
            let want = SendRequest {
                payload_bytes: 1_186,
                inflight_packets: self.in_flight,
                inflight_bytes: u64::from(self.in_flight) * 1_250,
                ..REQUEST
            };
            let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
            let Grant::Send(path) = self.weave.poll_send(Time::ZERO, &want, &mut cx) else { break };
            self.in_flight += 1;
            let sent = Sent { path, payload_bytes: 1_186, inflight_packets: self.in_flight, ..SENT };
            self.weave.on_sent(Time::ZERO, &sent, &mut cx);
            paths.push(path.0);
        }
        paths
    }
    fn hear(&mut self, at_us: u64, kind: FeedbackKind, path: u16, rtt_ns: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let feedback = Feedback {
            kind,
            path: PathId(path),
            rtt: Duration::from_ns(rtt_ns),
            inflight_packets: self.in_flight,
            ..ACK
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.weave.on_feedback(Time::from_us(at_us), &feedback, &mut cx);
    }
    fn ack(&mut self, path: u16, rtt_ns: u64) {
        self.hear(10, FeedbackKind::Ack { timed: true, marked: false }, path, rtt_ns);
    }
}

fn close(found: f32, wanted: f64) -> bool {
    (f64::from(found) - wanted).abs() < 1e-6 * wanted
}

#[test]
fn the_first_window_is_the_bandwidth_delay_product() {
    let mut flow = Flow::new();
    assert_eq!(flow.send(1_000).len(), 100);
    assert!(flow.send(1).is_empty());
    for _ in 0..2_000 {
        flow.ack(0, 10_000);
    }
    assert!(close(flow.weave.window_packets(), 151.0));
}

#[test]
fn paths_that_returned_in_time_are_reused_once() {
    let mut flow = Flow::new();
    flow.send(1_000);
    flow.ack(7, 10_000);
    // A quarter of 151 per 100 packets.
    assert!(close(flow.weave.window_packets(), 100.3775));
    let random = flow.weave.thread.clone();
    assert_eq!(flow.send(1), [7]);
    flow.in_flight -= 1;
    assert_ne!(random.next(Egress::ONE), PathId(0));
    assert_eq!(flow.send(1), [flow_spray(&random)]);
}

/// Returns the random path that is drawn ahead.
fn flow_spray(thread: &RecycledPaths) -> u16 {
    let mut emptied = thread.clone();
    let mut rng = Rng::for_component(1, "unused", 0);
    for _ in 0..8 {
        if emptied.fresh() == 0 {
            break;
        }
        emptied.sent(emptied.next(Egress::ONE), &mut rng);
    }
    emptied.next(Egress::ONE).0
}

fn is_late(noise: &mut Noise, rtt: f32) -> bool {
    noise.judge(rtt) == Arrival::Late
}

/// Every thirteenth packet crosses a slow link. If it counted in full, the mean would be 16 us and the mean deviation
/// 11 us, so that 30 us were in time.
#[test]
fn packets_of_a_slow_link_do_not_make_others_timely() {
    let mut noise = Noise::new(&env());
    for _ in 0..200 {
        let of_fast = (0..12).filter(|packet| is_late(&mut noise, 10e6 + 5e5 * (packet % 3) as f32)).count();
        assert_eq!((of_fast, is_late(&mut noise, 90e6)), (0, true), "{noise:?}");
    }
    assert!(is_late(&mut noise, 30e6), "{noise:?}");
}

#[test]
fn a_new_flow_takes_four_idle_round_trips_for_late() {
    let late = |rtt| is_late(&mut Noise::new(&env()), rtt);
    assert!(!late(39.9e6) && late(40.1e6));
}

#[test]
fn late_is_three_deviations_or_a_packet() {
    let mut flow = Flow::settled();
    flow.ack(7, 10_300);
    assert_eq!(flow.weave.thread.next(Egress::ONE), PathId(7));
    let mut flow = Flow::settled();
    flow.ack(7, 10_310);
    assert_ne!(flow.weave.thread.next(Egress::ONE), PathId(7));
    assert!(close(flow.weave.noise.mean, 10_019_375.0), "{}", flow.weave.noise.mean);
    assert!(close(flow.weave.noise.deviation, 113_125.0), "{}", flow.weave.noise.deviation);
}

#[test]
fn the_low_round_trip_rises_slowly_and_falls_at_once() {
    let mut flow = Flow::new();
    flow.ack(7, 14_000);
    assert!(close(flow.weave.window.low, 10_125_000.0));
    flow.ack(7, 10_000);
    assert!(close(flow.weave.window.low, 10_062_500.0));
}

/// Returns a flow with half of the largest window, after a round trip that leaves the low round-trip time at `low_us`.
fn with_low(at_us: u64, low_us: f32) -> Flow {
    let mut flow = Flow::new();
    flow.weave.window.packets = 75.5;
    flow.weave.window.low = low_us * 1e6;
    flow.hear(at_us, FeedbackKind::Ack { timed: true, marked: false }, 7, (low_us * 1e3) as u64);
    flow
}

#[test]
fn the_extra_length_of_a_path_is_no_queue() {
    let path = |id, us| PathView {
        base_rtt: Some(Duration::from_us(us)),
        ..PathView::new(PathId(id), PathState::Up)
    };
    let mut flow = Flow::new();
    let mut cx = PolicyCx { rng: &mut flow.rng, shared: &mut flow.shared };
    flow.weave.on_paths(Time::ZERO, &[path(0, 10), path(1, 20)], &mut cx);
    for at in 0..2_000 {
        flow.hear(at, FeedbackKind::Ack { timed: true, marked: false }, 1, 20_000);
    }
    assert!(close(flow.weave.window_packets(), 151.0), "{}", flow.weave.window_packets());
}

/// Half of the largest window has a target of 8 x 0.7 = 5.6 us.
#[test]
fn the_window_grows_below_its_target_and_shrinks_above() {
    // The queue is half of the target: growth by 151 / 4 x 0.5 / 75.5.
    assert!(close(with_low(100, 12.8).weave.window_packets(), 75.75));
    // 24.4 us of 40 are above the target: a cut by 0.8 x 0.61.
    let mut flow = with_low(100, 40.0);
    assert!(close(flow.weave.window_packets(), 38.656), "{}", flow.weave.window_packets());
    // At most one cut in a low round-trip time.
    flow.hear(139, FeedbackKind::Ack { timed: true, marked: false }, 7, 40_000);
    assert!(close(flow.weave.window_packets(), 38.656));
    // The target of a window that is 3.9 times smaller than the largest is 18 x 0.7 = 12.6 us, not 60 x 0.7.
    flow.hear(140, FeedbackKind::Ack { timed: true, marked: false }, 7, 40_000);
    assert!(close(flow.weave.window_packets(), 38.656 * (1.0 - 0.8 * 17.4 / 40.0)));
    // Never a cut by more than half.
    assert!(close(with_low(2_000, 1_000.0).weave.window_packets(), 37.75));
}

/// Returns the window after this number of acknowledgements, one a microsecond, with this queue.
fn settled(mut flow: Flow, window: f32, queue_ns: u64, acks: u64) -> f32 {
    flow.weave.window.packets = window;
    (0..acks).for_each(|at| {
        flow.hear(at, FeedbackKind::Ack { timed: true, marked: false }, 7, 10_000 + queue_ns);
    });
    flow.weave.window_packets()
}

/// A queue of 8 targets belongs to half of the largest window. One of 7.2 targets, a tenth less, belongs to a window
/// that is only larger by the third root of 1 / 0.9, 3.6 %.
#[test]
fn the_window_follows_the_queue_by_its_third_root() {
    for window in [20.0, 75.0, 151.0] {
        let found = settled(Flow::new(), window, 5_600, 20_000);
        assert!((f64::from(found) / 75.5 - 1.0).abs() < 0.01, "{window} became {found}");
        let found = settled(Flow::new(), window, 5_040, 20_000);
        assert!((f64::from(found) / 78.2 - 1.0).abs() < 0.01, "{window} became {found}");
    }
}

/// The target of a step is 3 x 10 + 0.2 us. A queue of 20 us is longer than the 12.6 us that a small window of the
/// other kind allows.
#[test]
fn flows_of_a_step_keep_the_largest_window() {
    assert!(close(settled(Flow::awaited(Awaited::Step), 75.5, 20_000, 2_000), 151.0));
    assert!(settled(Flow::awaited(Awaited::Message), 75.5, 20_000, 250) < 75.5 / 2.0);
    // An explicit target is kept.
    let mut config = WeaveConfig { target: Some(0.3), ..WeaveConfig::default() };
    config.adapt_to_fabric(&fabric(Awaited::Step));
    assert_eq!(config.target, Some(0.3));
}

/// Returns a flow with this window, after a cut by a round trip with a queue of 30 us, to 0.652 of it.
fn cut_at(window: f32) -> Flow {
    let mut flow = with_low(100, 40.0);
    flow.weave.window.packets = window;
    flow.hear(140, FeedbackKind::Ack { timed: true, marked: false }, 7, 40_000);
    flow
}

#[test]
fn in_a_crowd_a_flow_draws_the_queue_that_it_may_keep() {
    // 0.652 of 19.4 is 12.65, and a twelfth of 151 is 12.58.
    assert_eq!(cut_at(19.4).weave.window.lot, 0.0);
    let mut lots: Vec<f32> = (0..8).map(|_| cut_at(19.2).weave.window.lot).collect();
    assert!(lots.iter().all(|lot| *lot > 0.0 && *lot < 60e6), "{lots:?}");
    lots.dedup();
    assert_eq!(lots.len(), 1, "the same generator draws the same");
}

#[test]
fn a_long_lot_grows_where_others_shrink() {
    let mut flow = cut_at(10.0);
    flow.weave.window.lot = 45e6;
    let before = f64::from(flow.weave.window.packets);
    flow.hear(150, FeedbackKind::Ack { timed: true, marked: false }, 7, 40_000);
    // The lot shrinks by a 6,040th, and a third of it is left for the queue.
    let lot = 45.0 * (1.0 - 1.0 / (40.0 * 151.0));
    assert!(close(flow.weave.window.lot, lot * 1e6), "{}", flow.weave.window.lot);
    assert!(close(flow.weave.window_packets(), before + 151.0 / 4.0 * (1.0 - 30.0 / lot) / before));
    // The queue is gone after 30 / 2^6 = 0.47 us, and the lot with it.
    for at in 160..166 {
        assert!(flow.weave.window.lot > 0.0);
        flow.hear(at, FeedbackKind::Ack { timed: true, marked: false }, 7, 10_000);
    }
    assert_eq!(flow.weave.window.lot, 0.0);
}

#[test]
fn late_paths_are_left_and_of_many_the_newest_stay() {
    let mut flow = Flow::settled();
    flow.ack(11, 10_000);
    flow.ack(12, 10_500);
    flow.ack(13, 10_000);
    let random = flow_spray(&flow.weave.thread);
    assert_eq!(flow.send(3), [11, 13, random]);
    (0..9).for_each(|path| flow.ack(path, 10_000));
    assert_eq!(flow.send(1), [1]);
}

/// Returns a flow with a round-trip time of 40 us and a window of 400 packets, on a host that
/// sends `batch_packets` packets at once.
fn in_runs(batch_packets: u8) -> Flow {
    let mut rng = Rng::for_component(1, "policy", 0);
    let env = PolicyEnv { base_rtt: Duration::from_us(40), ..env() };
    let mut config = WeaveConfig::default();
    config.adapt_to_host(&HostEnv {
        line_rate: env.line_rate,
        network_rtt: env.base_rtt,
        host_delay: Duration::ZERO,
        base_rtt: env.base_rtt,
        max_inflight_bdps: 1.0,
        batch_packets,
    });
    let weave = config.build(&env, &mut rng);
    Flow { weave, rng, shared: Shared::default(), in_flight: 0 }
}

#[test]
fn a_run_is_at_most_a_batch_an_eighth_of_the_window_and_a_part_of_the_round_trip() {
    let run = |batch, window| {
        let mut flow = in_runs(batch);
        flow.weave.window.packets = window;
        flow.weave.window.burst_packets()
    };
    // (0.3 x 40 us + 2 packets) / 16 is 7.6 packets of 100 ns.
    assert_eq!([run(4, 400.0), run(44, 400.0), run(44, 400e3)], [4, 7, 7]);
    assert_eq!([run(44, 24.0), run(44, 23.9), run(44, 1.0)], [3, 2, 1]);
    assert_eq!([run(1, 400.0), Flow::new().weave.window.burst_packets()], [1, 1]);
}

#[test]
fn a_loss_moves_paths_and_costs_the_window_one_packet() {
    let mut flow = Flow::new();
    [5, 6, 5].into_iter().for_each(|path| flow.ack(path, 10_000));
    let window = flow.weave.window_packets();
    flow.hear(11, FeedbackKind::Lost, 5, 0);
    let paths = flow.send(3);
    assert_eq!(paths[1], 6);
    assert!(paths[0] != 5 && paths[2] != 5, "{paths:?}");
    assert!(close(flow.weave.window_packets(), f64::from(window) - 1.0));
}

/// A packet on a new path that is lost shows that new paths may be dead. One on a known path, or one that was trimmed,
/// does not.
#[test]
fn only_losses_on_new_paths_raise_distrust() {
    let mut flow = Flow::new();
    let mut hear = |kind, memo| {
        let feedback = Feedback { kind, path: PathId(7), memo, rtt: Duration::from_us(10), ..ACK };
        let mut cx = PolicyCx { rng: &mut flow.rng, shared: &mut flow.shared };
        flow.weave.on_feedback(Time::from_us(10), &feedback, &mut cx);
        flow.weave.thread.distrust()
    };
    let (new, known) = (Standing::New.memo(), Standing::Known.memo());
    let trimmed = FeedbackKind::Trimmed { at: TrimmedAt::LastHop, marked: false };
    assert_eq!([hear(trimmed, new), hear(FeedbackKind::Lost, known)], [0, 0]);
    assert_eq!([hear(FeedbackKind::Lost, new), hear(FeedbackKind::Timeout, new)], [64, 128]);
    let acked = FeedbackKind::Ack { timed: true, marked: false };
    assert_eq!([hear(acked, known), hear(acked, new)], [128, 127]);
}

#[test]
fn paths_that_are_gone_are_not_taken() {
    let mut flow = Flow::new();
    [5, 6].into_iter().for_each(|path| flow.ack(path, 10_000));
    let paths: Vec<PathView> = (0..1_000u16)
        .map(|path| {
            let state = if path < 6 { PathState::Down } else { PathState::Up };
            PathView::new(PathId(path), state)
        })
        .collect();
    let mut cx = PolicyCx { rng: &mut flow.rng, shared: &mut flow.shared };
    flow.weave.on_paths(Time::ZERO, &paths, &mut cx);
    let sent = flow.send(50);
    assert_eq!(sent[1], 6);
    assert!(sent.iter().all(|&path| path >= 6), "{sent:?}");
}

/// Checks the shares of four paths of 4 links, one of 6 and one of 8. The weights are 1, 1, 1, 1, (2/3)^4 and
/// (1/2)^4; their sum is 4.26.
#[test]
fn a_long_way_round_is_rarely_drawn() {
    let mut flow = Flow::new();
    let links = [4, 4, 4, 4, 6, 8];
    let view = |path: u16| PathView {
        links: Some(links[usize::from(path)]),
        ..PathView::new(PathId(path), PathState::Up)
    };
    let paths: Vec<PathView> = (0..6).map(view).collect();
    let mut cx = PolicyCx { rng: &mut flow.rng, shared: &mut flow.shared };
    flow.weave.on_paths(Time::ZERO, &paths, &mut cx);
    let mut counts = [0u32; 6];
    for _ in 0..8_520 {
        let thread = &mut flow.weave.thread;
        let path = thread.next(Egress::ONE);
        counts[path.index()] += 1;
        thread.sent(path, &mut flow.rng);
    }
    // Standard deviations 39, 20 and 11.
    assert!(counts[..4].iter().all(|count| count.abs_diff(2_000) < 200), "{counts:?}");
    assert!(counts[4].abs_diff(395) < 100 && counts[5].abs_diff(125) < 55, "{counts:?}");
}

/// A mark tells that a link's queue is long, not that another one is shorter.
#[test]
fn a_marked_path_that_is_as_quick_as_others_stays() {
    let mut flow = Flow::new();
    flow.hear(10, FeedbackKind::Ack { timed: true, marked: true }, 12, 10_000);
    assert_eq!(flow.send(1), [12]);
}

#[test]
fn a_flow_keeps_less_than_two_cache_lines() {
    // 60 bytes of state: window, low, base, lot, mean, deviation (4 each), the last cut (8), the ring (18), a path
    // (2), and the pointer to the windows of hosts (8). The rest is the same for all flows of a NIC.
    assert!(size_of::<Weave>() <= 128, "{} bytes", size_of::<Weave>());
}

#[test]
fn random_operations_break_no_invariant() {
    let env = Scenario::steady().env;
    for seed in 0..60 {
        let max_bdp = [1.5, 0.01, 4.0][seed as usize % 3];
        let run_packets = [1, 4][seed as usize % 2];
        let choice = [PathChoice::CameBackWell, PathChoice::WindowEach][seed as usize / 2 % 2];
        let config = WeaveConfig { max_bdp, run_packets, choice, ..WeaveConfig::default() };
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 2_000, &env, |env, rng| config.build(env, rng));
    }
}
