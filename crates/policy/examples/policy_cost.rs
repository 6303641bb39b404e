//! CPU cost of a policy per packet: one poll, one commit, one acknowledgement.

use pathweave_policy::testing::{ACK, ENV, REQUEST, SENT};
use std::collections::VecDeque;
use std::time::Instant;

use pathweave_policy::{
    Feedback, Grant, MeasuredSection, Policy, PolicyCx, PolicyEnv, QueuePairId, SendRequest, Sent, Shared,
    find_scheme, schemes,
};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rng, Time};

const PACKETS: u64 = 10_000_000;

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    for info in schemes() {
        let best = (0..3).map(|_| nanoseconds(info.name)).fold(f64::INFINITY, f64::min);
        println!("{:20} {best:6.1} ns a packet", info.name);
    }
    let best = (0..3).map(|_| choice_among(8)).fold(f64::INFINITY, f64::min);
    println!("laps, a path among 8 {best:6.1} ns (asked, and the next draw)");
}

fn env(paths: u16) -> PolicyEnv {
    PolicyEnv {
        base_rtt: Duration::from_us(12),
        paths,
        measured: MeasuredSection { base_rtt: Duration::from_us(12), links: 4 },
        ..ENV
    }
}

/// Returns the nanoseconds to choose one of `paths` paths by the softmax of LAPS, each measured once and with a
/// different delay.
fn choice_among(paths: u16) -> f64 {
    let env = env(paths);
    let scheme = (find_scheme("laps").expect("a scheme").make)();
    let (mut rng, mut shared) = (Rng::for_component(1, "qp", 0), Shared::new());
    let mut policy = scheme.policy.build(&env, &mut rng);
    let mut cx = PolicyCx { rng: &mut rng, shared: &mut shared };
    policy.on_open(Time::ZERO, &QueuePairId { qp: QpNum(2), peer: HostId(1) }, &mut cx);
    let now = Time::from_us(1);
    for path in 0..paths {
        let one_way_ps = 5_000_000 + 500_000 * i64::from(path);
        let feedback = Feedback {
            path: PathId(path),
            rtt: Duration::from_us(12),
            one_way_ps,
            inflight_packets: 0,
            ..ACK
        };
        policy.on_feedback(now, &feedback, &mut cx);
    }
    let want = SendRequest { ..REQUEST };
    let started = Instant::now();
    for psn in 0..PACKETS {
        let Grant::Send(path) = policy.poll_send(now, &want, &mut cx) else {
            unreachable!("nothing is in flight")
        };
        let sent = Sent { path, psn, ..SENT };
        policy.on_sent(now, &sent, &mut cx);
    }
    started.elapsed().as_nanos() as f64 / PACKETS as f64
}

/// Returns the nanoseconds per packet of a lone sender at line rate, over paths that differ slightly in delay.
fn nanoseconds(scheme: &str) -> f64 {
    let scheme = (find_scheme(scheme).expect("a scheme").make)();
    let env = env(scheme.paths);
    let (mut rng, mut shared) = (Rng::for_component(1, "qp", 0), Shared::new());
    let mut policy = scheme.policy.build(&env, &mut rng);
    let member = QueuePairId { qp: QpNum(2), peer: HostId(1) };
    policy.on_open(Time::ZERO, &member, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
    let mut flying = VecDeque::with_capacity(256);
    let (mut now, mut psn) = (Time::ZERO, 0);
    let started = Instant::now();
    while psn < PACKETS {
        let inflight_packets = flying.len() as u32;
        let want = SendRequest {
            psn,
            inflight_packets,
            inflight_bytes: u64::from(inflight_packets) * 1_250,
            ..REQUEST
        };
        if policy.next_timer().is_some_and(|timer| timer <= now) {
            policy.on_timer(now, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
        }
        if let Grant::Send(path) =
            policy.poll_send(now, &want, &mut PolicyCx { rng: &mut rng, shared: &mut shared })
        {
            let sent = Sent { path, psn, inflight_packets: inflight_packets + 1, ..SENT };
            let memo = policy.on_sent(now, &sent, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
            flying.push_back((now, psn, path, memo));
            psn += 1;
        }
        now += Duration::from_ns(100);
        if let Some(&(sent_at, psn, path, memo)) = flying.front()
            && now - sent_at >= Duration::from_us(12)
        {
            flying.pop_front();
            let feedback = Feedback {
                path,
                psn,
                memo,
                rtt: now - sent_at + Duration::from_ps(u64::from(path.0) * 16),
                one_way_ps: 6_000_000,
                inflight_packets: flying.len() as u32,
                ..ACK
            };
            policy.on_feedback(now, &feedback, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
        }
    }
    started.elapsed().as_nanos() as f64 / PACKETS as f64
}
