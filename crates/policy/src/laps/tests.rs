//! Tests of LAPS as a policy, with values computed by hand and on the test bench.

use std::vec::Vec;

use pathweave_units::{HostId, QpNum};

use super::*;
use crate::testing::{ACK, REQUEST, SENT, Scenario, random_operations};
use crate::{Adapt, Awaited, FabricEnv, FullBufferAction, PathState, Shared};

const US: fn(u64) -> Duration = Duration::from_us;
const LINE: Rate = Rate::from_gbps(100);

fn env(paths: u16) -> PolicyEnv {
    PolicyEnv {
        line_rate: LINE,
        base_rtt: US(11),
        mtu_wire_bytes: 1_048,
        mtu_payload_bytes: 1_000,
        paths,
        ..Scenario::steady().env
    }
}
/// Returns paths of 5 links of 1 us: 5,419,200 ps idle, 7,096,000 ps with the margin.
fn views(paths: u16) -> Vec<PathView> {
    let view = |id| PathView {
        base_one_way: Some(Duration::from_ps(5_419_200)),
        rate: Some(LINE),
        links: Some(5),
        ..PathView::new(PathId(id), PathState::Up)
    };
    (0..paths).map(view).collect()
}

/// A host with flows to one other host, driven step by step.
struct Host {
    flows: Vec<Laps>,
    rng: Rng,
    shared: Shared,
    now: Time,
    inflight: u32,
}

impl Host {
    fn new(config: &LapsConfig, flows: u32, paths: u16) -> Self {
        let mut host = Host {
            flows: Vec::new(),
            rng: Rng::for_component(1, "qp", 0),
            shared: Shared::new(),
            now: Time::ZERO,
            inflight: 0,
        };
        for flow in 0..flows {
            let mut laps = Laps::new(config, &env(paths), &mut host.rng);
            let mut cx = PolicyCx { rng: &mut host.rng, shared: &mut host.shared };
            laps.on_open(host.now, &QueuePairId { qp: QpNum(2 + flow), peer: HostId(1) }, &mut cx);
            laps.on_paths(host.now, &views(paths), &mut cx);
            host.flows.push(laps);
        }
        host
    }
    fn poll(&mut self, flow: usize) -> Grant {
        let want = SendRequest {
            payload_bytes: 1_000,
            wire_bytes: 1_048,
            inflight_packets: self.inflight,
            inflight_bytes: u64::from(self.inflight) * 1_048,
            ..REQUEST
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.flows[flow].poll_send(self.now, &want, &mut cx)
    }
    fn sent(&mut self, flow: usize, path: PathId) {
        self.inflight += 1;
        let sent =
            Sent { path, payload_bytes: 1_000, wire_bytes: 1_048, inflight_packets: self.inflight, ..SENT };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.flows[flow].on_sent(self.now, &sent, &mut cx);
    }
    fn probe(&mut self, flow: usize, path: PathId) {
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.flows[flow].make_control(self.now, path, 0..0, &mut cx);
    }
    fn feed(&mut self, flow: usize, kind: FeedbackKind, path: u16, one_way_ps: i64) {
        let feedback = Feedback {
            kind,
            path: PathId(path),
            wire_bytes: 1_048,
            rtt: US(11),
            one_way_ps,
            inflight_packets: self.inflight,
            ..ACK
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.flows[flow].on_feedback(self.now, &feedback, &mut cx);
    }
    fn ack(&mut self, flow: usize, path: u16, one_way_ps: i64) {
        self.inflight = self.inflight.saturating_sub(1);
        self.feed(flow, FeedbackKind::Ack { timed: true, marked: false }, path, one_way_ps);
    }
}

#[test]
fn measurements_are_shared_by_flows_to_the_same_host() {
    let mut host = Host::new(&LapsConfig { alpha: 1e6, ..LapsConfig::default() }, 2, 4);
    host.now = Time::from_us(7);
    for path in [0, 1, 3] {
        host.ack(0, path, 6_000_000);
    }
    // Path 2 is not measured and its estimate is the idle delay, so all packets take it.
    assert_eq!([host.poll(0), host.poll(1)], [Grant::Send(PathId(2)); 2]);
    host.ack(1, 2, 6_500_000);
    assert_ne!(host.poll(0), Grant::Send(PathId(2)));
}

#[test]
fn a_flow_starts_at_line_rate_with_two_thresholds_in_flight() {
    let mut host = Host::new(&LapsConfig::default(), 1, 4);
    let mut sent = 0;
    while let Grant::Send(path) = host.poll(0) {
        host.sent(0, path);
        sent += 1;
    }
    assert_eq!(host.poll(0), Grant::Blocked);
    // 2 x 7.096 us at 100 Gb/s are 177,400 bytes, plus a packet: 170 packets.
    assert_eq!(sent, 178_448 / 1_048);
    assert_eq!(host.flows[0].rate(host.now), Some(LINE));
}

#[test]
fn a_halved_rate_is_paced() {
    let halving =
        LapsConfig { limit: Limit::RateAndWindow, decrease: RateCut::Half, ..LapsConfig::default() };
    let mut host = Host::new(&halving, 1, 1);
    host.now = Time::from_us(100);
    host.ack(0, 0, 8_000_000);
    assert_eq!(host.flows[0].rate(host.now), Some(Rate::from_gbps(50)));
    host.sent(0, PathId(0));
    // 1,048 bytes at 50 Gb/s.
    assert_eq!(host.poll(0), Grant::At(host.now + Duration::from_ps(167_680)));
    let mut unpaced = Host::new(&LapsConfig::code_2025(), 1, 1);
    unpaced.ack(0, 0, 80_000_000);
    unpaced.sent(0, PathId(0));
    assert_eq!(unpaced.poll(0), Grant::Send(PathId(0)));
}

#[test]
fn the_rate_limits_where_switches_drop_and_the_window_alone_elsewhere() {
    let after_congestion = |config: &LapsConfig| {
        let mut host = Host::new(config, 1, 1);
        host.now = Time::from_us(100);
        host.ack(0, 0, 80_000_000);
        host.sent(0, PathId(0));
        host.poll(0)
    };
    let (pausing, mut dropping) = (LapsConfig::default(), LapsConfig::default());
    let drops = FabricEnv {
        when_full: FullBufferAction::Drop,
        longest_path: None,
        longest_rtt: None,
        line_rate: LINE,
        port_rate: LINE,
        nic_ports: 1,
        packet_bytes: 1_048,
        awaited: Awaited::Message,
    };
    dropping.adapt_to_fabric(&drops);
    assert_eq!(after_congestion(&pausing), Grant::Send(PathId(0)));
    // 1,048 bytes at half of 100 Gb/s.
    assert_eq!(after_congestion(&dropping), Grant::At(Time::from_ps(100_167_680)));
    for (awaited, limit) in [(Awaited::Message, Limit::DelayWindow), (Awaited::Step, Limit::Window)] {
        let mut config = LapsConfig::default();
        config.adapt_to_fabric(&FabricEnv { when_full: FullBufferAction::Pause, awaited, ..drops });
        assert_eq!(config.limit, limit);
    }
    // An explicit choice is kept.
    let mut window = LapsConfig::code_2025();
    window.adapt_to_fabric(&drops);
    assert_eq!(window, LapsConfig::code_2025());
}

/// At 100 Gb/s two thresholds of 7,096 ns are 177,400 B. A queue pair may have one packet of 1,048 B more in flight.
#[test]
fn the_window_halves_where_the_fastest_path_takes_two_thresholds() {
    let mut host = Host::new(&LapsConfig { limit: Limit::DelayWindow, ..LapsConfig::default() }, 1, 1);
    let blocked_at = |host: &mut Host| {
        let blocked = |packets: &u32| {
            host.inflight = *packets;
            host.poll(0) == Grant::Blocked
        };
        (1..400).find(blocked)
    };
    let after = |host: &mut Host, one_way_ps| {
        for _ in 0..100 {
            // Long enough for the hold-off of the rate, at which delays are read.
            host.now += US(100);
            host.ack(0, 0, one_way_ps);
        }
    };
    after(&mut host, 6_000_000);
    assert_eq!(blocked_at(&mut host), Some(170));
    after(&mut host, 2 * 7_096_000);
    assert_eq!(blocked_at(&mut host), Some(85));
    after(&mut host, 7_096_000);
    assert_eq!(blocked_at(&mut host), Some(170));
    let mut fixed = Host::new(&LapsConfig::default(), 1, 1);
    after(&mut fixed, 2 * 7_096_000);
    assert_eq!(blocked_at(&mut fixed), Some(170));
}

#[test]
fn a_data_packet_brings_one_probe_or_as_the_paper_has_it_one_a_silent_path() {
    // Data takes paths 1 and 3: 14 us more with alpha 2.5 and a unit of 7.096 us are a weight of exp(-4.9).
    let mut host = Host::new(&LapsConfig::default(), 1, 4);
    for (path, one_way_ps) in [(1, 6_000_000), (3, 6_000_000), (0, 20_000_000), (2, 20_000_000)] {
        host.ack(0, path, one_way_ps);
    }
    host.now = Time::from_us(40);
    assert!(matches!(host.poll(0), Grant::Send(_)), "after twice the delay, not with it");
    host.now = Time::from_us(41);
    let Grant::Control(first) = host.poll(0) else { panic!("two paths are silent") };
    assert!([0, 2].contains(&first.0), "{first:?}");
    assert_eq!(host.poll(0), Grant::Control(first), "asking changes nothing");
    host.probe(0, first);
    let Grant::Send(path) = host.poll(0) else { panic!("one probe a packet") };
    host.sent(0, path);
    let Grant::Control(second) = host.poll(0) else { panic!("one more is silent") };
    assert_eq!(first.0 + second.0, 2, "{first:?} {second:?}");
    host.probe(0, second);
    let Grant::Send(path) = host.poll(0) else { panic!("one probe a packet") };
    host.sent(0, path);
    assert!(matches!(host.poll(0), Grant::Send(_)), "of paths 1 and 3 data tells");

    let mut all = Host::new(&LapsConfig::published(), 1, 4);
    all.now = Time::from_us(50);
    let mut probed = Vec::new();
    while let Grant::Control(path) = all.poll(0) {
        all.probe(0, path);
        probed.push(path.0);
    }
    probed.sort_unstable();
    assert_eq!(probed, [0, 1, 2, 3]);
}

#[test]
fn an_answered_probe_measures_and_leaves_the_rate_alone() {
    let mut host = Host::new(&LapsConfig::default(), 1, 1);
    host.now = Time::from_us(50);
    let (sent_at, received_at) = (Time::from_us(5), Time::from_us(35));
    let reply = Control::ProbeReply { sent_at, received_at };
    let reply = ControlFeedback::new(host.now, reply, PathId(0)).expect("an answer");
    let mut cx = PolicyCx { rng: &mut host.rng, shared: &mut host.shared };
    host.flows[0].on_control(host.now, &reply, &mut cx);
    assert_eq!(host.flows[0].rate(host.now), Some(LINE));
    // An echo counts as an acknowledgement.
    host.feed(0, FeedbackKind::PathSample, 0, 30_000_000);
    assert_eq!(host.flows[0].rate(host.now), Some(Rate::from_gbps(50)));
}

#[test]
fn flows_of_different_configurations_share_nothing() {
    let mut host = Host::new(&LapsConfig::default(), 1, 2);
    let mut other = Laps::new(&LapsConfig::code_2025(), &env(2), &mut host.rng);
    let mut cx = PolicyCx { rng: &mut host.rng, shared: &mut host.shared };
    other.on_open(host.now, &QueuePairId { qp: QpNum(9), peer: HostId(1) }, &mut cx);
    assert_ne!(other.joined.map(|(store, _)| store), host.flows[0].joined.map(|(store, _)| store));
}

#[test]
fn beta_zero_sprays_evenly_and_a_longer_path_gets_less_with_the_default() {
    let count = |alpha: f64| {
        let mut host = Host::new(&LapsConfig { alpha, ..LapsConfig::default() }, 1, 2);
        let (mut far, mut sent) = (0, 0);
        for i in 0..20_000u64 {
            host.now = Time::from_ns(100 * i);
            host.ack(0, 0, 5_419_200);
            host.ack(0, 1, 5_419_200 + 7_096_000);
            if let Grant::Send(path) = host.poll(0) {
                host.sent(0, path);
                far += i32::from(path.0);
                sent += 1;
            }
        }
        assert_eq!(sent, 20_000);
        far
    };
    assert!((9_600..10_400).contains(&count(0.0)));
    // 1/e against 1: a share of 0.2689.
    let far = count(1.0);
    assert!((5_100..5_660).contains(&far), "{far}");
}

#[test]
fn random_operations_break_no_invariant() {
    for seed in 0..60 {
        let config =
            [LapsConfig::default(), LapsConfig::published(), LapsConfig::code_2025()][seed as usize % 3];
        assert_eq!(config.validate(), Ok(()));
        random_operations(seed, 2_000, &Scenario::steady().env, |env, rng| config.build(env, rng));
    }
}

#[test]
fn errors_name_the_field() {
    let wrong = |change: fn(&mut LapsConfig)| {
        let mut config = LapsConfig::default();
        change(&mut config);
        config.validate().expect_err("must be refused").field
    };
    assert_eq!(wrong(|config| config.alpha = -1.0), "alpha");
    assert_eq!(wrong(|config| config.alpha = f64::NAN), "alpha");
    assert_eq!(wrong(|config| config.margin_packets = f64::INFINITY), "margin_packets");
    let long = |config: &mut LapsConfig| config.host_delay = Duration::from_ms(1_001);
    assert_eq!(wrong(long), "host_delay");
    assert_eq!(wrong(|config| config.fabric_threshold = Duration::from_ms(1_001)), "fabric_threshold");
}
