//! CPU time of choosing a path per packet: LAPS's random choice among the explicit paths of a host pair, and the
//! update by the delay in each acknowledgement.

use std::hint::black_box;

use pathweave_heap::usage::process_cpu;
use pathweave_policy::{
    AnyPolicy, Egress, Feedback, FeedbackKind, MeasuredSection, Memo, PathState, PathView, Policy, PolicyCx,
    PolicyEnv, QueuePairId, SendRequest, Sent, Shared, find_scheme,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use serde_json::{Value, json};

use crate::transport::Floor;

/// Name on the command line and in the report.
pub(crate) const NAME: &str = "choice";

/// Numbers of paths of a host pair: those of rails and of a Dragonfly, and a large one.
const PATHS: [u16; 3] = [8, 64, 1_024];
/// Floor of the project for 8 paths, in nanoseconds.
const AT_MOST_NS: f64 = 30.0;
const PACKETS: u32 = 1_000_000;
const RUNS: usize = 5;

/// Measures and prints. Returns true if the floor is met.
#[allow(clippy::print_stdout)]
pub(crate) fn run() -> (Value, bool) {
    println!("{NAME}  LAPS: a path for a packet, by the delays of all of them");
    let mut rows = Vec::new();
    let mut floor = None;
    for paths in PATHS {
        let least = |measure: fn(&mut Sender) -> f64| {
            (0..RUNS).map(|_| measure(&mut Sender::new(paths))).fold(f64::INFINITY, f64::min)
        };
        let (choose, learn) = (least(Sender::choose), least(Sender::measure_feedback));
        println!("    {paths} paths: {choose:.1} ns to choose, {learn:.1} ns to take in a delay");
        floor.get_or_insert(Floor {
            what: format!("nanoseconds to choose among {paths} paths"),
            measured: choose,
            at_most: AT_MOST_NS,
        });
        rows.push(json!({ "paths": paths, "choose_ns": choose, "learn_ns": learn }));
    }
    let floor = floor.expect("PATHS is not empty");
    println!("{}", floor.line());
    (json!({ "rows": rows, "floors": [floor.json()] }), floor.is_met())
}

/// Policy of a LAPS queue pair, without an endpoint.
struct Sender {
    policy: AnyPolicy,
    shared: Shared,
    rng: Rng,
    paths: u16,
}

const NOW: Time = Time::from_us(10);

impl Sender {
    fn new(paths: u16) -> Self {
        let env = PolicyEnv {
            line_rate: Rate::from_gbps(200),
            base_rtt: Duration::from_us(18),
            mtu_wire_bytes: 1_048,
            mtu_payload_bytes: 1_000,
            paths,
            measured: MeasuredSection::with_rtt(Duration::from_us(18)),
            edge: None,
        };
        let scheme = (find_scheme("laps").expect("LAPS is in the program").make)();
        let mut rng = Rng::for_component(1, "bench", 0);
        let policy = scheme.policy.build(&env, &mut rng);
        let mut sender = Sender { policy, shared: Shared::new(), rng, paths };
        let views: Vec<PathView> = (0..paths)
            .map(|id| PathView {
                base_one_way: Some(Duration::from_ns(4_252 + 60 * u64::from(id % 72))),
                rate: Some(Rate::from_gbps(100)),
                links: Some(8),
                ..PathView::new(PathId(id), PathState::Up)
            })
            .collect();
        let mut cx = PolicyCx { rng: &mut sender.rng, shared: &mut sender.shared };
        sender.policy.on_open(Time::ZERO, &QueuePairId { qp: QpNum(2), peer: HostId(1) }, &mut cx);
        sender.policy.on_paths(Time::ZERO, &views, &mut cx);
        (0..paths).for_each(|path| sender.feed_delay(path, 4_252_000 + 60_000 * i64::from(path % 72)));
        sender
    }

    fn feed_delay(&mut self, path: u16, one_way_ps: i64) {
        let feedback = Feedback {
            kind: FeedbackKind::Ack { timed: true, marked: false },
            path: PathId(path),
            psn: 0,
            memo: Memo::default(),
            wire_bytes: 1_048,
            rtt: Duration::from_us(10),
            one_way_ps,
            inflight_packets: 1,
            backlogged: true,
        };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        self.policy.on_feedback(NOW, &feedback, &mut cx);
    }

    /// Returns the CPU nanoseconds of requesting a path and using it.
    fn choose(&mut self) -> f64 {
        let want = SendRequest {
            psn: 0,
            payload_bytes: 1_000,
            wire_bytes: 1_048,
            msn: 0,
            retransmit: false,
            inflight_packets: 1,
            inflight_bytes: 1_048,
            egress: Egress::ONE,
        };
        let mut sent = Sent {
            path: PathId(0),
            psn: 0,
            msn: 0,
            payload_bytes: 1_000,
            wire_bytes: 1_048,
            retransmit: false,
            inflight_packets: 1,
        };
        let start = process_cpu();
        for psn in 0..PACKETS {
            let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
            match self.policy.poll_send(NOW, black_box(&want), &mut cx) {
                pathweave_policy::Grant::Send(path) => sent.path = path,
                other => panic!("{other:?}: nothing is in the way of packet {psn}"),
            }
            black_box(self.policy.on_sent(NOW, &sent, &mut cx));
        }
        each(start)
    }

    /// Returns the CPU nanoseconds of the feedback of one packet, which changes one delay.
    fn measure_feedback(&mut self) -> f64 {
        let start = process_cpu();
        for n in 0..PACKETS {
            let path = (n % u32::from(self.paths)) as u16;
            self.feed_delay(path, 4_252_000 + i64::from(n * 7_919 % 4_000_000));
        }
        each(start)
    }
}

fn each(start: std::time::Duration) -> f64 {
    (process_cpu() - start).as_nanos() as f64 / f64::from(PACKETS)
}
