//! A queue pair.

mod control;
mod credit;
mod data;
mod feedback;
mod order;
mod output;
mod recovery;
mod timing;
mod waiting;

use alloc::boxed::Box;

use pathweave_policy::{AckPolicy, PathView, Policy, PolicyCx, QueuePairId};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rng, Time};
use pathweave_wire::{Body, Nack, NackReason, NoticePermission, Operation, Segment};

use crate::common::EndpointShared;
use crate::config::{QpConfig, ReceiveMode, RnrConfig};
use crate::counters::{OrderCounters, QpCounters};
use crate::events::{Completion, Event, Opcode, Status};
use crate::line::CacheAligned;
use crate::receive::ReceiveStream;
use crate::recovery::contract::Setup;
use crate::recovery::{Sender, Slack, sender_window, timer};
use crate::scheduler::SchedState;
use crate::send::SendStream;
use crate::send::message::{Message, Start};
use crate::slab::Numbered;
use crate::timers::{Armed, TimerKind};
use crate::work::{MAX_MESSAGE_BYTES, PostError, RecvRequest, WorkRequest};

pub(crate) use output::Outcome;
pub use waiting::Waiting;

/// A queue pair: a sending and a receiving direction, and the policy of the sending one.
// With many queue pairs, a packet finds none of this in the cache, so its cost is the number of cache lines it
// touches. The first line holds the identity of the queue pair and the state that decides if it can send. A packet
// sent and its acknowledgement touch that line and the next ones. A packet received touches the first line, its
// counters and the beginning of `receive`. A test checks the boundaries.
#[repr(C, align(64))]
pub(crate) struct Qp<P> {
    num: QpNum,
    peer: HostId,
    /// Number of the queue pair at the peer, if `connected`.
    remote: QpNum,
    connected: bool,
    health: Health,
    answers: PeerFlags,
    pub(crate) turn: SchedState,
    pub(crate) send: SendStream,
    /// Time at which the pacing timer must fire, while `turn` is paced.
    paced_until: Time,
    /// End of the RNR back-off, while it lasts.
    backoff_until: Time,
    pub(crate) rnr: RnrConfig,
    /// Allocated at the first count.
    pub(crate) order: Option<Box<OrderCounters>>,
    pub(crate) armed: Armed,
    pub(crate) counters: QpCounters,
    pub(crate) rng: Rng,
    pub(crate) receive: ReceiveStream,
    pub(crate) policy: CacheAligned<P>,
}

/// Three flags in a byte: the peer's latest answer about notices, if this end requests acknowledgements that would be
/// delayed, and if either end sends only what it has credit for.
#[derive(Clone, Copy, Debug)]
struct PeerFlags(u8);

impl PeerFlags {
    const PAUSED: u8 = 1;
    const ASKED_FOR: u8 = 2;
    const CREDIT: u8 = 4;

    fn new(asked_for: bool, credit: bool) -> Self {
        PeerFlags(if asked_for { Self::ASKED_FOR } else { 0 } | if credit { Self::CREDIT } else { 0 })
    }
    #[inline]
    fn needs_credit(self) -> bool {
        self.0 & Self::CREDIT != 0
    }
    #[inline]
    fn are_asked_for(self) -> bool {
        self.0 & Self::ASKED_FOR != 0
    }
    #[inline]
    fn notices(self) -> NoticePermission {
        if self.0 & Self::PAUSED == 0 { NoticePermission::Welcome } else { NoticePermission::Paused }
    }
    fn note(&mut self, notices: NoticePermission) {
        self.0 = self.0 & !Self::PAUSED | if notices == NoticePermission::Paused { Self::PAUSED } else { 0 };
    }
}

/// State of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    /// The queue pair sends nothing until the RNR back-off ends.
    BackingOff,
    Failed,
}

/// Returns the random stream of a queue pair, from which its policy draws.
pub fn queue_pair_stream(seed: u64, host: HostId, num: QpNum) -> Rng {
    Rng::for_component(seed, "qp", u64::from(host.0) << 32 | u64::from(num.0))
}

impl<P> Numbered for Qp<P> {
    #[inline]
    fn number(&self) -> QpNum {
        self.num
    }
}

impl<P: Policy> Qp<P> {
    pub(crate) fn new(now: Time, num: QpNum, config: QpConfig<'_, P>, common: &mut EndpointShared) -> Self {
        let QpConfig {
            peer,
            policy,
            paths,
            recovery,
            acks,
            cnp,
            reordering,
            credit,
            rto,
            idle_rtt,
            host_delay,
            evidence,
            rnr,
            receive,
            max_reads_out,
            max_reads_in,
            domain,
        } = config;
        assert!(recovery.window_packets() != Some(0), "window_packets is 0; at least 1 packet is needed");
        let rto = timer(recovery, rto, idle_rtt);
        let setup = Setup { peer, idle_wait: first_wait(idle_rtt, acks), max_timeout: rto.max_timeout };
        let mut qp = Qp {
            num,
            peer,
            remote: QpNum(0),
            connected: false,
            health: Health::Well,
            answers: PeerFlags::new(acks.every_bytes.is_some(), credit.is_some()),
            turn: SchedState::Off,
            rnr,
            policy: CacheAligned(policy),
            rng: queue_pair_stream(common.config.seed, common.config.host, num),
            send: SendStream::new(
                Sender::new(recovery, &setup, common),
                sender_window(recovery),
                rto,
                Slack::new(host_delay, evidence).with_answers_by_path(acks),
                max_reads_out,
            ),
            receive: ReceiveStream::new(recovery, acks, cnp, reordering, receive, domain, max_reads_in),
            armed: Armed::NONE,
            paced_until: Time::ZERO,
            backoff_until: Time::ZERO,
            counters: QpCounters::default(),
            order: None,
        };
        if let Some(terms) = credit {
            common.credit_mut().join(now, num, terms);
        }
        let member = QueuePairId { qp: num, peer };
        qp.policy.on_open(now, &member, &mut PolicyCx { rng: &mut qp.rng, shared: &mut common.shared });
        if !paths.is_empty() {
            qp.set_paths(now, paths, common);
        }
        qp.arm_policy(now, common);
        qp
    }

    /// Replaces the policy, before anything was posted.
    pub(crate) fn take_policy(&mut self, now: Time, policy: P, common: &mut EndpointShared) {
        assert!(
            !self.connected && self.send.messages().len() == 0,
            "a queue pair that has begun keeps its policy"
        );
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_close(&mut cx);
        self.policy = CacheAligned(policy);
        self.policy.on_open(now, &QueuePairId { qp: self.num, peer: self.peer }, &mut cx);
        self.arm_policy(now, common);
    }

    pub(crate) fn set_paths(&mut self, now: Time, paths: &[PathView], common: &mut EndpointShared) {
        assert!(!paths.is_empty(), "a queue pair needs a path");
        let mut cx = PolicyCx { rng: &mut self.rng, shared: &mut common.shared };
        self.policy.on_paths(now, paths, &mut cx);
        self.fail_paths(paths, common);
        self.repoll_policy(now, common);
    }

    /// Polls the policy again, because its answer may have changed.
    pub(crate) fn repoll_policy(&mut self, now: Time, common: &mut EndpointShared) {
        self.arm_policy(now, common);
        if self.turn == SchedState::Paced {
            // The pacing time was granted under the previous state.
            self.turn = SchedState::Off;
        }
        self.wake(common);
    }

    pub(crate) fn connect(&mut self, remote: QpNum, common: &mut EndpointShared) {
        self.remote = remote;
        self.connected = true;
        self.wake(common);
    }

    #[inline]
    pub(crate) fn is_peer(&self, from: HostId, remote: QpNum) -> bool {
        self.peer == from && self.remote == remote && self.connected
    }
    pub(crate) fn peer(&self) -> HostId {
        self.peer
    }
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.health == Health::Failed
    }

    pub(crate) fn post(
        &mut self,
        request: &WorkRequest,
        start: Start,
        common: &mut EndpointShared,
    ) -> Result<(), PostError> {
        if self.health == Health::Failed {
            return Err(PostError::QpFailed);
        }
        if request.len > MAX_MESSAGE_BYTES {
            return Err(PostError::TooLong { len: request.len });
        }
        let mut message = Message::from_request(request);
        message.start = start;
        self.send.request(message, common.mtu_payload(self.num));
        self.wake(common);
        Ok(())
    }

    pub(crate) fn post_recv(&mut self, request: RecvRequest) -> Result<(), PostError> {
        if self.health == Health::Failed {
            return Err(PostError::QpFailed);
        }
        debug_assert!(self.receive.mode == ReceiveMode::Posted, "this queue pair discards what it receives");
        self.receive.promise().receives.push_back(request);
        Ok(())
    }

    /// Puts the queue pair into the ready queue, if it has something to send and nothing known prevents that.
    #[inline]
    fn wake(&mut self, common: &mut EndpointShared) {
        if self.turn == SchedState::Off
            && self.health != Health::BackingOff
            && self.send.sendable()
            && self.connected
        {
            common.scheduler.ready(&mut self.turn, self.num);
        }
    }

    /// Arms the policy's timer.
    #[inline(always)]
    fn arm_policy(&mut self, now: Time, common: &mut EndpointShared) {
        if let Some(at) = self.policy.next_timer() {
            let at = at.max(next_instant(now));
            common.timers.arm(&mut self.armed, self.num, TimerKind::Policy, at);
        }
    }

    /// Queues a control packet for the peer.
    #[inline]
    pub(crate) fn control(&self, path: PathId, body: Body, common: &mut EndpointShared) {
        if !self.connected {
            return;
        }
        common.control.push(
            self.peer,
            Segment { dst_qp: self.remote, src_qp: self.num, path, pull_target: None, body },
        );
    }

    fn nack(&mut self, psn: u64, path: PathId, reason: NackReason, common: &mut EndpointShared) {
        self.nack_of(psn, path, reason, false, common);
    }

    /// Sends a NACK for a packet. `marked`: the packet carried Congestion Experienced, for reasons that report it.
    fn nack_of(
        &mut self,
        psn: u64,
        path: PathId,
        reason: NackReason,
        marked: bool,
        common: &mut EndpointShared,
    ) {
        let expected = self.receive.recovery.expected();
        let nack = Nack { expected, psn, sack: self.receive.recovery.sack(psn), reason, marked };
        self.counters.rare().nacks_sent += 1;
        self.control(path, Body::Nack(nack), common);
    }

    /// Reports the completions of the messages that are done.
    #[inline]
    fn complete_sends(&mut self, common: &mut EndpointShared) {
        while let Some(message) = self.send.pop_done() {
            if let Some(opcode) = message.opcode() {
                common.events.push_back(Event::Completion(Completion {
                    wr_id: message.wr_id(),
                    qp: self.num,
                    status: Status::Success,
                    opcode,
                    byte_len: message.len,
                    imm: None,
                }));
            }
        }
        // Requests that waited for one of these messages join the stream.
        self.send.admit_waiting(common.mtu_payload(self.num));
        if self.send.awaits_answer() && !self.armed.is_armed(TimerKind::Retransmit) {
            // The timer was not armed while packets were declared lost. Then they turned out to have arrived.
            if let Some((deadline, _)) = self.send.deadline() {
                common.timers.arm(&mut self.armed, self.num, TimerKind::Retransmit, deadline);
            }
        }
    }

    /// Moves the queue pair to the error state. The work request of message `culprit` (an index) or, at the receiver,
    /// the first receive ends with `status`; everything else that was posted is flushed.
    #[cold]
    fn fail(&mut self, status: Status, culprit: Option<usize>, common: &mut EndpointShared) {
        if self.health == Health::Failed {
            return;
        }
        self.health = Health::Failed;
        if self.turn == SchedState::Paced {
            self.turn = SchedState::Off;
        }
        self.release_memory(common);
        common.leave_credit(self.num);
        let complete = |wr_id, opcode, status| {
            Event::Completion(Completion { wr_id, qp: self.num, status, opcode, byte_len: 0, imm: None })
        };
        for (index, message) in self.send.abandon().iter().enumerate() {
            let status = if Some(index) == culprit { status } else { Status::Flushed };
            if let Some(opcode) = message.opcode() {
                common.events.push_back(complete(message.wr_id(), opcode, status));
            }
        }
        let mut status_of_receive = if status == Status::LocalLength { status } else { Status::Flushed };
        for request in self.receive.promised().iter_mut().flat_map(|promised| promised.receives.drain(..)) {
            common.events.push_back(complete(request.wr_id, Opcode::Recv, status_of_receive));
            status_of_receive = Status::Flushed;
        }
        self.receive.forget_messages();
        self.receive.acks.forget();
        common.events.push_back(Event::QpError { qp: self.num, status });
    }

    /// Closes a queue pair that is destroyed.
    pub(crate) fn close(&mut self, common: &mut EndpointShared) {
        self.policy.on_close(&mut PolicyCx { rng: &mut self.rng, shared: &mut common.shared });
        self.release_shared_state(common);
    }

    /// Releases the queue pair's share of the endpoint's state. Does not call the policy.
    #[cold]
    pub(crate) fn release_shared_state(&mut self, common: &mut EndpointShared) {
        self.send.recovery.close(common);
        common.leave_credit(self.num);
        common.set_mtu_payload(self.num, None);
        self.release_memory(common);
        common.memory.close_to(self.num);
    }

    /// Releases the memory regions whose READs were being answered.
    fn release_memory(&mut self, common: &mut EndpointShared) {
        for (_, rkey) in self.receive.promised().iter_mut().flat_map(|promised| promised.answers.drain(..)) {
            common.memory.release(rkey);
        }
    }

    /// Panics unless the queue pair is consistent.
    pub(crate) fn assert_invariants(&self, common: &EndpointShared) {
        self.send.assert_invariants();
        let queued = match self.turn {
            SchedState::Off | SchedState::Paced => (0, 0),
            SchedState::Ready => (1, 0),
            SchedState::Port => (0, 1),
        };
        assert_eq!(common.scheduler.count(self.num), queued, "{:?} in the queues", self.turn);
        if self.turn == SchedState::Paced {
            assert!(self.armed.is_armed(TimerKind::Pacing), "a paced queue pair will be woken");
        }
        if self.health == Health::BackingOff {
            assert!(self.armed.is_armed(TimerKind::RnrBackoff), "a queue pair that backs off will be woken");
        }
        let is_armed = self.armed.is_armed(TimerKind::Retransmit);
        self.send.recovery.assert_covered(self.num, &self.send.flight, common, is_armed);
        assert!(is_armed || !self.send.awaits_answer(), "a READ that waits for its response has a timer");
        if self.receive.acks.due().is_some() {
            assert!(self.armed.is_armed(TimerKind::DelayedAck), "a held acknowledgement has a timer");
        }
        if self.policy.next_timer().is_some() {
            assert!(self.armed.is_armed(TimerKind::Policy), "the policy's timer is armed");
        }
        let answers = self.send.messages().filter(|message| message.op == Operation::ReadResponse);
        assert!(answers.count() >= self.receive.answers(), "an answer under way is a message");
        assert!(self.receive.answers() <= usize::from(self.receive.reads_in), "answers are of READs taken");
        assert!(
            !self.is_stuck(common),
            "nothing in flight, data to send, no timer: the policy has blocked for ever (PSN {})",
            self.send.flight.next()
        );
    }

    /// Returns true if data could leave, but no event will ever poll the policy again.
    fn is_stuck(&self, common: &EndpointShared) -> bool {
        let asks =
            common.spender(self.num).is_some_and(|spender| !spender.can_send() && spender.due.is_some());
        !asks
            && self.turn == SchedState::Off
            && self.health != Health::BackingOff
            && self.connected
            && self.send.sendable()
            && self.send.flight.inflight_packets() == 0
            && self.policy.next_timer().is_none()
            && self.order.as_ref().is_none_or(|counts| counts.controls_sent.is_empty())
    }
}

/// Time from a packet to its acknowledgement in an idle network, or zero if unknown. Assumes that the peer delays
/// acknowledgements as this end does.
fn first_wait(idle_rtt: Duration, acks: AckPolicy) -> Duration {
    let is_held = acks.may_wait() && idle_rtt > Duration::ZERO;
    if is_held { idle_rtt + acks.max_delay } else { idle_rtt }
}

/// Earliest time for which a timer may be armed: after `now`, so that a timer that fires cannot fire again at once.
fn next_instant(now: Time) -> Time {
    Time::from_ps(now.as_ps().saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::LINE_BYTES;
    use core::mem::offset_of;

    #[test]
    fn an_idle_queue_pair_stays_below_a_kibibyte() {
        // Without its policy, whose size varies. Rings are allocated when packets are in flight.
        assert!(size_of::<Qp<()>>() <= 1_024, "{} bytes", size_of::<Qp<()>>());
    }

    #[test]
    fn fields_used_together_share_cache_lines() {
        let line = |offset: usize| (offset / LINE_BYTES, offset % LINE_BYTES);
        assert_eq!(line(offset_of!(Qp<()>, send.recovery)), (2, 0));
        assert_eq!(line(offset_of!(Qp<()>, send.sending)), (3, 0));
        assert_eq!(line(offset_of!(Qp<()>, armed)), (6, 0));
        assert_eq!(
            line(offset_of!(Qp<()>, counters.data_received)),
            (7, 0),
            "sender's counters before, receiver's behind"
        );
        assert_eq!(line(offset_of!(Qp<()>, receive.recovery)), (10, 0));
        assert_eq!(line(offset_of!(Qp<()>, receive.acks)), (10, 56));
        assert_eq!(line(offset_of!(Qp<()>, receive.reorder)), (11, 56));
        assert_eq!(size_of::<Qp<()>>(), 13 * LINE_BYTES);
        // The slab adds nothing.
        assert_eq!(size_of::<Option<Qp<()>>>(), size_of::<Qp<()>>());
    }
}
