//! Every scheme on a host with several NIC ports.

use crate::testing::{REQUEST, SENT};
use alloc::string::String;
use alloc::vec::Vec;

use pathweave_units::{Duration, HostId, PathId, QpNum, Rng, Time};

use super::Scenario;
use crate::fluid::AsFluid;
use crate::{
    AnyPolicy, Egress, Feedback, FeedbackKind, Grant, PathState, PathView, Policy, PolicyCx, PolicyEnv,
    PortSet, QueuePairId, SendRequest, Sent, Shared, schemes,
};

const PORTS: u8 = 4;
const PATHS: u16 = 64;

/// A policy whose packets leave by one free port at a time and are acknowledged at once.
struct Sender {
    policy: AnyPolicy,
    rng: Rng,
    shared: Shared,
    now: Time,
    psn: u64,
}

impl Sender {
    fn new(config: &crate::PolicyConfig) -> Self {
        let (mut rng, mut shared) = (Rng::for_component(7, "qp", 0), Shared::new());
        let env = PolicyEnv { paths: PATHS, ..Scenario::steady().env };
        let mut policy = config.build(&env, &mut rng);
        let member = QueuePairId { qp: QpNum(2), peer: HostId(1) };
        policy.on_open(Time::ZERO, &member, &mut PolicyCx { rng: &mut rng, shared: &mut shared });
        Sender { policy, rng, shared, now: Time::from_us(1), psn: 0 }
    }

    /// Returns the path of a data packet that leaves by `egress`, if the policy permits one.
    fn send(&mut self, egress: Egress) -> Option<PathId> {
        self.now += Duration::from_us(30);
        let want = SendRequest { psn: self.psn, payload_bytes: 1_000, wire_bytes: 1_048, egress, ..REQUEST };
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut self.shared };
        let path = match self.policy.poll_send(self.now, &want, &mut cx) {
            Grant::Send(path) => path,
            Grant::Control(path) => {
                self.policy.make_control(self.now, path, 0..self.psn, &mut cx);
                return None;
            }
            Grant::Copy { psn, path } => {
                self.policy.on_copy_sent(self.now, psn, path, 1_048, &mut cx);
                return None;
            }
            Grant::At(_) | Grant::Blocked => return None,
        };
        if !egress.is_free(path) {
            return Some(path);
        }
        let sent = Sent { path, psn: self.psn, payload_bytes: 1_000, wire_bytes: 1_048, ..SENT };
        let memo = self.policy.on_sent(self.now, &sent, &mut cx);
        let feedback = Feedback {
            kind: FeedbackKind::Ack { timed: true, marked: self.psn.is_multiple_of(5) },
            path,
            psn: self.psn,
            memo,
            wire_bytes: 1_048,
            rtt: Duration::from_us(10 + self.psn % 3),
            one_way_ps: 5_000_000,
            inflight_packets: 0,
            backlogged: true,
        };
        self.policy.on_feedback(self.now + Duration::from_us(15), &feedback, &mut cx);
        self.psn += 1;
        Some(path)
    }
}

/// Returns the schemes that spread the packets of a message over paths, and whose changes of path do not depend on
/// order.
fn spread() -> Vec<(String, crate::PolicyConfig)> {
    let all = schemes().iter().map(|info| (info.name.into(), (info.make)().policy));
    let spreads =
        |config: &crate::PolicyConfig| config.as_fluid().spread.is_some_and(|spread| !spread.is_single());
    all.filter(|(name, config): &(String, _)| spreads(config) && !name.starts_with("dlbf")).collect()
}

/// Schemes whose weights leave some paths next to nothing; they do not take such a path only because its port is
/// free.
const WAIT_FOR_GOOD_PATHS: [&str; 3] = ["laps-published", "laps-code-2025", "laps-hw"];

#[test]
fn spraying_policies_take_the_free_port() {
    let schemes = spread();
    assert!(schemes.len() > 20);
    for (name, config) in schemes {
        let mut sender = Sender::new(&config);
        let mut draw = Rng::for_component(7, "ports", 0);
        let mut sent = 0;
        for _ in 0..2_000 {
            let egress = Egress::new(PortSet::first(PORTS), 1 << draw.below(PORTS.into()));
            if let Some(path) = sender.send(egress) {
                let takes_it = egress.is_free(path);
                assert!(
                    takes_it || WAIT_FOR_GOOD_PATHS.contains(&name.as_str()),
                    "{name}: {path:?} after {sent} packets"
                );
                sent += u32::from(takes_it);
            }
        }
        assert!(sent > 100, "{name}: {sent}");
    }
}

#[test]
fn paths_that_are_down_stay_unused_whichever_port_is_free() {
    for (name, config) in spread() {
        let mut sender = Sender::new(&config);
        // Every second inner path of each port.
        let state = |path: u16| {
            if (path / u16::from(PORTS)).is_multiple_of(2) { PathState::Up } else { PathState::Down }
        };
        let views: Vec<PathView> = (0..PATHS).map(|path| PathView::new(PathId(path), state(path))).collect();
        let mut cx = PolicyCx { rng: &mut sender.rng, shared: &mut sender.shared };
        sender.policy.on_paths(sender.now, &views, &mut cx);
        let mut draw = Rng::for_component(8, "ports", 0);
        for _ in 0..500 {
            let egress = Egress::new(PortSet::first(PORTS), 1 << draw.below(PORTS.into()));
            if let Some(path) = sender.send(egress) {
                assert_eq!(state(path.0), PathState::Up, "{name}: {path:?}");
            }
        }
    }
}
