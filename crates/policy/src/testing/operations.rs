//! Random operations, with the invariants after every one and a liveness phase at the end.

use crate::testing::REQUEST;
use alloc::format;
use alloc::vec::Vec;

use pathweave_units::{Duration, HostId, PathId, QpNum, Rng, Time, TrimmedAt};
use pathweave_wire::{Control, ControlKind, NoticePermission};

use super::checked::Checked;
use super::host::Host;
use crate::{
    ControlFeedback, Feedback, FeedbackKind, Grant, Memo, PathState, PathView, Policy, PolicyEnv,
    QueuePairId, SendRequest, Sent,
};

#[derive(Clone, Copy)]
struct Flying {
    psn: u64,
    path: PathId,
    memo: Memo,
    sent_at: Time,
}

struct Model<P> {
    env: PolicyEnv,
    policy: Checked<P>,
    host: Host,
    now: Time,
    next_psn: u64,
    flying: Vec<Flying>,
}

/// Applies `steps` random operations to the policy that `make` builds: sends, unused grants, feedback of every kind
/// in any order, paths that go down and up, time that passes. Then acknowledges everything and requires that another
/// 100 packets can be sent. Panics with seed and step if an invariant breaks.
pub fn random_operations<P: Policy>(
    seed: u64,
    steps: u32,
    env: &PolicyEnv,
    make: impl FnOnce(&PolicyEnv, &mut Rng) -> P,
) {
    let mut dice = Rng::for_component(seed, "operations", 0);
    let mut host = Host::new(seed);
    let policy = Checked::new(make(env, &mut host.rng), env);
    let mut model = Model { env: *env, policy, host, now: Time::ZERO, next_psn: 0, flying: Vec::new() };
    let member = QueuePairId { qp: QpNum(2), peer: HostId(1) };
    model.policy.on_open(model.now, &member, &mut model.host.cx());
    for step in 0..steps {
        model.policy.context = format!("seed {seed}, step {step}");
        model.step(&mut dice);
        if let Some(rate) = model.policy.rate(model.now) {
            let context = &model.policy.context;
            assert!(rate.as_bps() > 0 && rate <= env.line_rate, "{context}: the rate is {rate}");
        }
    }
    model.policy.context = format!("seed {seed}, liveness");
    model.must_send(100);
}

/// Returns every kind of feedback once, with arbitrary flags.
pub(super) fn every_kind() -> impl Iterator<Item = FeedbackKind> {
    let first = FeedbackKind::Ack { timed: true, marked: false };
    core::iter::successors(Some(first), |&kind| kind_after(kind))
}

/// Returns the kind after this one. Has no wildcard, so that a new kind does not compile before it has a place here.
fn kind_after(kind: FeedbackKind) -> Option<FeedbackKind> {
    Some(match kind {
        FeedbackKind::Ack { .. } => FeedbackKind::Cnp,
        FeedbackKind::Cnp => FeedbackKind::Lost,
        FeedbackKind::Lost => FeedbackKind::Trimmed { at: TrimmedAt::OnTheWay, marked: false },
        FeedbackKind::Trimmed { .. } => FeedbackKind::Timeout,
        FeedbackKind::Timeout => FeedbackKind::EdgeRtt,
        FeedbackKind::EdgeRtt => FeedbackKind::PathSample,
        FeedbackKind::PathSample => FeedbackKind::Duplicate { marked: false },
        FeedbackKind::Duplicate { .. } => FeedbackKind::Late,
        FeedbackKind::Late => FeedbackKind::NoticeFlow(NoticePermission::Welcome),
        FeedbackKind::NoticeFlow(_) => return None,
    })
}

/// Number of kinds of credit, at the end of the table: the endpoint processes them, and policies do not receive them.
const CREDIT_KINDS: u32 = 2;

impl<P: Policy> Model<P> {
    fn step(&mut self, dice: &mut Rng) {
        match dice.below(20) {
            0..6 => {
                self.try_send();
            }
            6 => {
                self.poll();
            }
            7..11 => self.feed_any(dice, |dice| FeedbackKind::Ack {
                timed: dice.bernoulli(0.9),
                marked: dice.bernoulli(0.3),
            }),
            11..18 => {
                let kinds: Vec<FeedbackKind> = every_kind().collect();
                let kind = kinds[dice.below(kinds.len() as u32) as usize];
                self.feed_kind(kind, dice);
            }
            18 if dice.bernoulli(0.5) => self.feed_control(dice),
            18 => self.change_paths(dice),
            _ => {
                let most_ps = [1_000, 1_000_000, 100_000_000][dice.below(3) as usize];
                self.advance(self.now + Duration::from_ps(u64::from(dice.below(most_ps))));
            }
        }
    }

    /// Feeds feedback of this kind on any packet that it may concern, with random flags.
    fn feed_kind(&mut self, kind: FeedbackKind, dice: &mut Rng) {
        match kind {
            FeedbackKind::Ack { .. } => self.feed_any(dice, |dice| FeedbackKind::Ack {
                timed: dice.bernoulli(0.9),
                marked: dice.bernoulli(0.3),
            }),
            FeedbackKind::Lost | FeedbackKind::Timeout => self.feed_any(dice, |_| kind),
            FeedbackKind::Trimmed { .. } => self.feed_any(dice, |dice| FeedbackKind::Trimmed {
                at: if dice.bernoulli(0.5) { TrimmedAt::OnTheWay } else { TrimmedAt::LastHop },
                marked: dice.bernoulli(0.3),
            }),
            // The packet stays in flight.
            FeedbackKind::Late => {
                if !self.flying.is_empty() {
                    let of = self.flying[dice.below(self.flying.len() as u32) as usize];
                    self.feed(kind, of);
                }
            }
            FeedbackKind::Duplicate { .. } => {
                let kind = FeedbackKind::Duplicate { marked: dice.bernoulli(0.3) };
                let of = self.of_a_path(dice);
                self.feed(kind, of);
            }
            FeedbackKind::NoticeFlow(_) => {
                let notices =
                    if dice.bernoulli(0.5) { NoticePermission::Welcome } else { NoticePermission::Paused };
                let of = self.of_a_path(dice);
                self.feed(FeedbackKind::NoticeFlow(notices), of);
            }
            FeedbackKind::Cnp | FeedbackKind::EdgeRtt | FeedbackKind::PathSample => {
                let of = self.of_a_path(dice);
                self.feed(kind, of);
            }
        }
    }

    /// Feeds a control packet of any kind that policies receive, on any path.
    fn feed_control(&mut self, dice: &mut Rng) {
        let Flying { path, sent_at, .. } = self.of_a_path(dice);
        let told = ControlKind::ALL.len() as u32 - CREDIT_KINDS;
        let kind = ControlKind::ALL[dice.below(told) as usize];
        let first = self.next_psn.saturating_sub(u64::from(dice.below(64)));
        let packet = match kind {
            ControlKind::Probe | ControlKind::ProbeReply => Control::Probe { sent_at },
            ControlKind::Notice | ControlKind::NoticeReply => {
                Control::Notice { first, last: self.next_psn.max(first), sent_at }
            }
            ControlKind::EdgeEcho => Control::EdgeEcho { sent_at },
            ControlKind::Pull | ControlKind::PullRequest => unreachable!("the last ones"),
        };
        let control = packet.answer(self.now, dice.bernoulli(0.3)).unwrap_or(packet);
        let feedback =
            ControlFeedback::new(self.now, control, path).expect("answers have stamps of the past");
        let inflight_packets = self.flying.len() as u32;
        let feedback = ControlFeedback { inflight_packets, backlogged: true, ..feedback };
        let mut cx = self.host.cx();
        self.policy.on_control(self.now, &feedback, &mut cx);
    }

    /// Returns an entry of any path, sent a while ago, that is not a packet in flight.
    fn of_a_path(&self, dice: &mut Rng) -> Flying {
        let path = PathId(dice.below(u32::from(self.env.paths)) as u16);
        let ago = u64::from(dice.below(100_000_000)).min(self.now.as_ps());
        let sent_at = Time::from_ps(self.now.as_ps() - ago);
        Flying { psn: 0, path, memo: Memo::default(), sent_at }
    }

    fn poll(&mut self) -> (SendRequest, Grant) {
        let inflight_packets = self.flying.len() as u32;
        let want = SendRequest {
            psn: self.next_psn,
            payload_bytes: self.env.mtu_payload_bytes,
            wire_bytes: self.env.mtu_wire_bytes,
            msn: (self.next_psn / 7) as u32,
            inflight_packets,
            inflight_bytes: u64::from(inflight_packets) * u64::from(self.env.mtu_wire_bytes),
            ..REQUEST
        };
        (want, self.policy.poll_send(self.now, &want, &mut self.host.cx()))
    }

    fn try_send(&mut self) -> Grant {
        let (want, grant) = self.poll();
        if let Grant::Send(path) = grant {
            let sent = Sent {
                path,
                psn: want.psn,
                msn: want.msn,
                payload_bytes: want.payload_bytes,
                wire_bytes: want.wire_bytes,
                retransmit: false,
                inflight_packets: want.inflight_packets + 1,
            };
            let memo = self.policy.on_sent(self.now, &sent, &mut self.host.cx());
            self.flying.push(Flying { psn: want.psn, path, memo, sent_at: self.now });
            self.next_psn += 1;
        }
        match grant {
            Grant::Copy { psn, path } => {
                let flying = self.flying.iter().any(|flying| flying.psn == psn);
                assert!(flying, "{}: PSN {psn} is copied and not in flight", self.policy.context);
                let (now, bytes) = (self.now, want.wire_bytes);
                let mut cx = self.host.cx();
                self.policy.on_copy_sent(now, psn, path, bytes, &mut cx);
            }
            Grant::Control(path) => {
                let first = self.flying.iter().map(|flying| flying.psn).min();
                let in_flight = first.unwrap_or(self.next_psn)..self.next_psn;
                let mut cx = self.host.cx();
                self.policy.make_control(self.now, path, in_flight, &mut cx);
            }
            _ => {}
        }
        grant
    }

    fn feed_any(&mut self, dice: &mut Rng, kind: impl FnOnce(&mut Rng) -> FeedbackKind) {
        if self.flying.is_empty() {
            return;
        }
        let index = dice.below(self.flying.len() as u32) as usize;
        let flying = self.flying.remove(index);
        self.feed(kind(dice), flying);
    }

    fn feed(&mut self, kind: FeedbackKind, of: Flying) {
        let measured = match kind {
            FeedbackKind::Ack { timed, .. } => timed,
            FeedbackKind::Duplicate { .. }
            | FeedbackKind::Trimmed { .. }
            | FeedbackKind::EdgeRtt
            | FeedbackKind::PathSample => true,
            FeedbackKind::Cnp
            | FeedbackKind::Lost
            | FeedbackKind::Timeout
            | FeedbackKind::Late
            | FeedbackKind::NoticeFlow(_) => false,
        };
        let rtt = if measured { self.now - of.sent_at } else { Duration::ZERO };
        let feedback = Feedback {
            kind,
            path: of.path,
            psn: of.psn,
            memo: of.memo,
            wire_bytes: self.env.mtu_wire_bytes,
            rtt,
            one_way_ps: rtt.as_ps() as i64 / 2,
            inflight_packets: self.flying.len() as u32,
            backlogged: true,
        };
        self.policy.on_feedback(self.now, &feedback, &mut self.host.cx());
    }

    fn change_paths(&mut self, dice: &mut Rng) {
        let all_up = dice.bernoulli(0.3);
        let mut view = |id| {
            let state = if all_up || dice.bernoulli(0.7) { PathState::Up } else { PathState::Down };
            PathView::new(PathId(id), state)
        };
        let mut views: Vec<PathView> = (0..self.env.paths).map(&mut view).collect();
        if dice.bernoulli(0.3) {
            // The set may lack some paths.
            let one = views[dice.below(views.len() as u32) as usize];
            views.retain(|view| view.id == one.id || dice.bernoulli(0.6));
        }
        self.policy.on_paths(self.now, &views, &mut self.host.cx());
    }

    fn advance(&mut self, to: Time) {
        while let Some(timer) = self.policy.next_timer().filter(|&timer| timer <= to) {
            self.now = self.now.max(timer);
            self.policy.on_timer(self.now, &mut self.host.cx());
        }
        self.now = to;
    }

    /// Requires that `packets` packets leave within a second, with prompt acknowledgements.
    fn must_send(&mut self, packets: u32) {
        let deadline = self.now + Duration::from_ms(1_000);
        let mut left = packets;
        let mut controls = 0u32;
        while left > 0 {
            assert!(self.now < deadline, "{}: {left} packets not sent in a second", self.policy.context);
            match self.try_send() {
                Grant::Send(_) => left -= 1,
                Grant::At(when) => self.advance(when),
                Grant::Copy { .. } => {}
                // Polled again; control packets must not continue for ever.
                Grant::Control(_) => {
                    controls += 1;
                    let context = &self.policy.context;
                    assert!(controls < 100_000, "{context}: control packets and never data");
                }
                Grant::Blocked => {
                    let at = self.now + self.env.base_rtt;
                    self.advance(at);
                    for flying in core::mem::take(&mut self.flying) {
                        self.feed(FeedbackKind::Ack { timed: true, marked: false }, flying);
                    }
                }
            }
        }
    }
}
