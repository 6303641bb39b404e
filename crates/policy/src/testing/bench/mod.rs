//! The event loop of a scenario.

mod send;

use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time, TrimmedAt};
use pathweave_wire::Control;

use super::channel::Hop;
use super::checked::Checked;
use super::host::Host;
use super::report::{Report, SenderReport};
use super::scenario::{AcksTell, Change, Overtaken, Scenario};
use crate::{
    ControlFeedback, Egress, Feedback, FeedbackKind, Grant, Memo, PathState, PathView, Policy, PolicyEnv,
    QueuePairId, SendRequest,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Poll the policy again, or let its timer expire.
    Wake,
    Ack {
        psn: u64,
        attempt: u32,
        marked: bool,
        one_way_ps: u64,
    },
    Cnp,
    /// The acknowledgement of a copy arrives.
    Heard {
        psn: u64,
        path: PathId,
        sent_at: Time,
        marked: bool,
        one_way_ps: u64,
    },
    /// The reply to a control packet arrives.
    Control {
        answer: Control,
        path: PathId,
    },
    Timeout {
        psn: u64,
        attempt: u32,
    },
    /// The report of a trimmed packet arrives.
    Trimmed {
        psn: u64,
        attempt: u32,
        at: TrimmedAt,
        marked: bool,
    },
    Sample,
    Change(usize),
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    path: PathId,
    memo: Memo,
    sent_at: Time,
    /// Time of arrival at the receiver; [`Time::MAX`] if it is lost.
    arrives: Time,
    attempt: u32,
    /// True if the receiver has reported it late.
    late: bool,
}

impl Flying {
    /// Returns an entry for something other than a data packet.
    fn other(path: PathId, sent_at: Time) -> Self {
        Flying { path, memo: Memo::default(), sent_at, arrives: Time::MAX, attempt: 0, late: false }
    }
}

struct Sender<P> {
    policy: Checked<P>,
    host: Host,
    next_psn: u64,
    resend: VecDeque<(u64, u32)>,
    flying: BTreeMap<u64, Flying>,
    /// Packets acknowledged by the acknowledgement of another packet; their own is still to arrive.
    told: BTreeMap<u64, Flying>,
    acked: u64,
    nic_free_at: Time,
    wake_at: Time,
    next_cnp: Time,
    report: SenderReport,
}

pub(super) struct Bench<'a, P> {
    scenario: &'a Scenario,
    paths: Vec<Hop>,
    edge: Option<Hop>,
    last_hop: Option<Hop>,
    senders: Vec<Sender<P>>,
    events: BinaryHeap<Reverse<(Time, u64, usize, Event)>>,
    pushed: u64,
    channel_rng: Rng,
    /// Paths as the senders see them.
    views: Vec<PathView>,
}

impl<'a, P: Policy> Bench<'a, P> {
    pub(super) fn new(scenario: &'a Scenario, mut make: impl FnMut(&PolicyEnv, &mut Rng) -> P) -> Self {
        assert_eq!(
            scenario.paths.len(),
            usize::from(scenario.env.paths),
            "paths of the scenario and its env"
        );
        let mut bench = Bench {
            scenario,
            paths: scenario.paths.clone(),
            edge: scenario.edge,
            last_hop: scenario.last_hop,
            senders: Vec::new(),
            events: BinaryHeap::new(),
            pushed: 0,
            channel_rng: Rng::for_component(scenario.seed, "channel", 0),
            views: (0..scenario.env.paths).map(|id| PathView::new(PathId(id), PathState::Up)).collect(),
        };
        for index in 0..scenario.senders as usize {
            let mut host = Host::with_stream(scenario.seed, index as u64);
            let mut policy = Checked::new(make(&scenario.env, &mut host.rng), &scenario.env);
            policy.context = format!("seed {}, sender {index}", scenario.seed);
            let member = QueuePairId { qp: QpNum(2), peer: HostId(index as u32) };
            policy.on_open(Time::ZERO, &member, &mut host.cx());
            bench.senders.push(Sender {
                policy,
                host,
                next_psn: 0,
                resend: VecDeque::new(),
                flying: BTreeMap::new(),
                told: BTreeMap::new(),
                acked: 0,
                nic_free_at: Time::ZERO,
                wake_at: Time::MAX,
                next_cnp: Time::ZERO,
                report: SenderReport { sent: vec![0; scenario.paths.len()], ..SenderReport::default() },
            });
            bench.wake(index, Time::ZERO);
            bench.push(Time::ZERO, index, Event::Sample);
        }
        for (change, &(at, _)) in scenario.changes.iter().enumerate() {
            bench.push(at, 0, Event::Change(change));
        }
        bench
    }

    fn push(&mut self, at: Time, sender: usize, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((at, self.pushed, sender, event)));
    }
    fn wake(&mut self, sender: usize, at: Time) {
        if at < self.senders[sender].wake_at {
            self.senders[sender].wake_at = at;
            self.push(at, sender, Event::Wake);
        }
    }

    pub(super) fn run(mut self) -> Report {
        let mut events = 0;
        while let Some(Reverse((now, _, sender, event))) = self.events.pop() {
            let finished = self.senders.iter().all(|sender| sender.report.done_at.is_some());
            if finished || now > self.scenario.end {
                break;
            }
            events += 1;
            self.handle(now, sender, event);
        }
        Report { senders: self.senders.into_iter().map(|sender| sender.report).collect(), events }
    }

    fn handle(&mut self, now: Time, index: usize, event: Event) {
        let sender = &mut self.senders[index];
        match event {
            Event::Wake => {
                sender.wake_at = Time::MAX;
                if sender.policy.next_timer().is_some_and(|timer| timer <= now) {
                    sender.policy.on_timer(now, &mut sender.host.cx());
                }
            }
            Event::Ack { psn, attempt, marked, one_way_ps } => {
                self.acknowledged(now, index, psn, attempt, marked, one_way_ps);
            }
            Event::Timeout { psn, attempt } => {
                self.send_again(now, index, FeedbackKind::Timeout, psn, attempt);
            }
            Event::Trimmed { psn, attempt, at, marked } => {
                self.send_again(now, index, FeedbackKind::Trimmed { at, marked }, psn, attempt);
            }
            Event::Cnp => {
                sender.report.cnps += 1;
                let nothing = Flying::other(PathId(0), now);
                self.feed(now, index, FeedbackKind::Cnp, 0, nothing, 0);
            }
            Event::Control { answer, path } => {
                if let Some(told) = ControlFeedback::new(now, answer, path) {
                    let inflight_packets = sender.flying.len() as u32;
                    let backlogged = sender.next_psn < self.scenario.packets || !sender.resend.is_empty();
                    let told = ControlFeedback { inflight_packets, backlogged, ..told };
                    let mut cx = sender.host.cx();
                    sender.policy.on_control(now, &told, &mut cx);
                }
            }
            Event::Heard { psn, path, sent_at, marked, one_way_ps } => {
                if let Some(flying) = sender.flying.remove(&psn) {
                    sender.acked += 1;
                    if sender.acked == self.scenario.packets {
                        sender.report.done_at = Some(now);
                    }
                    let kind = FeedbackKind::Ack { timed: false, marked: false };
                    self.feed(now, index, kind, psn, flying, 0);
                }
                let copy = Flying::other(path, sent_at);
                self.feed(now, index, FeedbackKind::Duplicate { marked }, psn, copy, one_way_ps);
            }
            Event::Sample => {
                if let Some(rate) = sender.policy.rate(now) {
                    sender.report.rates.push((now, rate));
                }
                if sender.report.done_at.is_none() {
                    self.push(now + self.scenario.sample_every, index, Event::Sample);
                }
            }
            Event::Change(change) => return self.change(now, change),
        }
        self.drain(now, index);
    }

    /// Declares a transmission lost, if it has had no feedback.
    fn send_again(&mut self, now: Time, index: usize, kind: FeedbackKind, psn: u64, attempt: u32) {
        let sender = &mut self.senders[index];
        if sender.flying.get(&psn).is_some_and(|flying| flying.attempt == attempt) {
            let flying = sender.flying.remove(&psn).expect("just seen");
            sender.resend.push_back((psn, attempt + 1));
            self.feed(now, index, kind, psn, flying, 0);
        }
    }

    /// Processes the acknowledgement of a packet.
    fn acknowledged(
        &mut self,
        now: Time,
        index: usize,
        psn: u64,
        attempt: u32,
        marked: bool,
        one_way_ps: u64,
    ) {
        let sender = &mut self.senders[index];
        let this = |flying: &&Flying| flying.attempt == attempt;
        let echo = sender.told.get(&psn).filter(this).copied();
        let Some(answered) = echo.or_else(|| sender.flying.get(&psn).filter(this).copied()) else { return };
        let arrived = |flying: &Flying| flying.arrives <= answered.arrives;
        let all = self.scenario.acks_tell == AcksTell::AllArrived;
        let news = sender.flying.iter().filter(|&(&other, flying)| other == psn || all && arrived(flying));
        for other in news.map(|(&other, _)| other).collect::<Vec<_>>() {
            let sender = &mut self.senders[index];
            let flying = sender.flying.remove(&other).expect("just seen");
            sender.acked += 1;
            if sender.acked == self.scenario.packets {
                sender.report.done_at = Some(now);
            }
            if other == psn {
                sender.report.marked += u64::from(marked);
                let kind = FeedbackKind::Ack { timed: true, marked };
                self.feed(now, index, kind, psn, flying, one_way_ps);
            } else {
                sender.told.insert(other, flying);
                self.feed(now, index, FeedbackKind::Ack { timed: false, marked: false }, other, flying, 0);
            }
        }
        if let Some(flying) = echo {
            self.senders[index].told.remove(&psn);
            self.feed(now, index, FeedbackKind::PathSample, psn, flying, one_way_ps);
        }
        self.overtake(now, index, psn);
    }

    /// Processes the packets that were sent before `psn` and are still unacknowledged.
    fn overtake(&mut self, now: Time, index: usize, psn: u64) {
        let (packets, kind) = match self.scenario.overtaken {
            Overtaken::Waits => return,
            Overtaken::Lost(packets) => (packets, FeedbackKind::Lost),
            Overtaken::Late(packets) => (packets, FeedbackKind::Late),
        };
        let behind = self.senders[index].flying.range(..(psn + 1).saturating_sub(packets));
        let first = behind.filter(|(_, flying)| flying.attempt == 0 && !flying.late);
        for psn in first.map(|(&psn, _)| psn).collect::<Vec<_>>() {
            let sender = &mut self.senders[index];
            let flying = sender.flying.get_mut(&psn).expect("just seen");
            flying.late = true;
            let flying = *flying;
            if kind == FeedbackKind::Lost {
                sender.flying.remove(&psn);
                sender.resend.push_back((psn, 1));
            }
            self.feed(now, index, kind, psn, flying, 0);
        }
    }

    fn feed(
        &mut self,
        now: Time,
        index: usize,
        kind: FeedbackKind,
        psn: u64,
        flying: Flying,
        one_way_ps: u64,
    ) {
        let measured = matches!(
            kind,
            FeedbackKind::Ack { timed: true, .. }
                | FeedbackKind::Duplicate { .. }
                | FeedbackKind::Trimmed { .. }
                | FeedbackKind::PathSample
        );
        let sender = &mut self.senders[index];
        let feedback = Feedback {
            kind,
            path: flying.path,
            psn,
            memo: flying.memo,
            wire_bytes: self.scenario.env.mtu_wire_bytes,
            rtt: if measured { now - flying.sent_at } else { Duration::ZERO },
            one_way_ps: one_way_ps as i64,
            inflight_packets: sender.flying.len() as u32,
            backlogged: sender.next_psn < self.scenario.packets || !sender.resend.is_empty(),
        };
        sender.policy.on_feedback(now, &feedback, &mut sender.host.cx());
    }

    fn change(&mut self, now: Time, change: usize) {
        match self.scenario.changes[change].1 {
            Change::Competing(path, rate) => self.paths[path.index()].competing = rate,
            Change::Down(path) => {
                self.paths[path.index()].loss_permille = 1_000;
                self.views[path.index()].state = PathState::Down;
            }
            Change::Up(path) => {
                self.paths[path.index()].loss_permille = self.scenario.paths[path.index()].loss_permille;
                self.views[path.index()].state = PathState::Up;
            }
            Change::EdgeFree => self.edge.iter_mut().for_each(|edge| edge.competing = Rate::ZERO),
            Change::Known => {
                for (view, hop) in self.views.iter_mut().zip(&self.scenario.paths) {
                    self.scenario.know(view, hop);
                }
            }
            Change::Notices(notices) => {
                for index in 0..self.senders.len() {
                    let of = Flying::other(PathId(0), now);
                    self.feed(now, index, FeedbackKind::NoticeFlow(notices), 0, of, 0);
                    self.drain(now, index);
                }
                return;
            }
        }
        let views = self.views.clone();
        for index in 0..self.senders.len() {
            let sender = &mut self.senders[index];
            sender.policy.on_paths(now, &views, &mut sender.host.cx());
            self.drain(now, index);
        }
    }

    /// Sends all packets that may leave now, and schedules a wake-up for the rest.
    fn drain(&mut self, now: Time, index: usize) {
        // Without a bound, a policy that always sends control packets would hang here; none needs more than its
        // number of paths.
        for _ in 0..=self.paths.len() {
            let scenario = self.scenario;
            let sender = &mut self.senders[index];
            if let Some(timer) = sender.policy.next_timer() {
                self.wake(index, timer.max(now));
            }
            let sender = &mut self.senders[index];
            if sender.nic_free_at > now {
                let at = sender.nic_free_at;
                return self.wake(index, at);
            }
            let (psn, attempt) = match sender.resend.front() {
                Some(&resend) => resend,
                None if sender.next_psn == scenario.packets => return,
                None => (sender.next_psn, 0),
            };
            let ready_at = Time::ZERO + scenario.packet_every * psn;
            if ready_at > now {
                return self.wake(index, ready_at);
            }
            let want = SendRequest {
                psn,
                payload_bytes: scenario.env.mtu_payload_bytes,
                wire_bytes: scenario.env.mtu_wire_bytes,
                msn: (psn / scenario.packets_per_message) as u32,
                retransmit: attempt > 0,
                inflight_packets: sender.flying.len() as u32,
                inflight_bytes: sender.flying.len() as u64 * u64::from(scenario.env.mtu_wire_bytes),
                egress: Egress::ONE,
            };
            match sender.policy.poll_send(now, &want, &mut sender.host.cx()) {
                Grant::Send(path) => {
                    self.transmit(now, index, &want, attempt, path);
                    let at = self.senders[index].nic_free_at;
                    return self.wake(index, at);
                }
                Grant::Control(path) => self.control(now, index, path),
                Grant::Copy { psn, path } => {
                    self.copy(now, index, psn, path);
                    let at = self.senders[index].nic_free_at;
                    return self.wake(index, at);
                }
                Grant::At(when) => return self.wake(index, when),
                Grant::Blocked => {
                    // The poll may have set the timer.
                    let timer = self.senders[index].policy.next_timer();
                    return timer.into_iter().for_each(|timer| self.wake(index, timer.max(now)));
                }
            }
        }
        panic!("seed {}: more control packets at one instant than there are paths", self.scenario.seed);
    }
}
