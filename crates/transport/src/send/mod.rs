//! The sending direction of a queue pair: messages, packets in flight, what to send next.

mod claims;
pub(crate) mod echoes;
pub(crate) mod flight;
pub(crate) mod message;
pub(crate) mod patience;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use pathweave_policy::Recovery;
use pathweave_units::{Duration, Time};
use pathweave_wire::Operation;

use crate::config::RetransmissionConfig;
use crate::recovery::timing::{Slack, Timing};
use crate::recovery::{self, Sender};
use claims::{Claims, Writes};
use flight::Flight;
use message::{Message, Start};

/// Messages that are counted exactly of those that wait.
const COUNTED_MESSAGES: usize = 32;

/// The sending direction of a queue pair.
// In the order of use, what every packet and every acknowledgement touches first; see `Qp`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendStream {
    /// PSN behind the last packet of the last message.
    end_psn: u64,
    /// Number of the first of `messages`.
    first_msn: u32,
    /// READs among `messages` that are not yet answered.
    reads_out: u16,
    /// Answers to READs of the other end that are not yet acknowledged.
    pub(crate) answers_out: u16,
    pub(crate) flight: Flight,
    /// Time from a packet to its timeout: the configured one, longer after timeouts in a row. Of recovery by time, the most
    /// that patience may be before it is measured.
    timeout: Duration,
    pub(crate) recovery: Sender,
    /// How long packets take; of use to recovery by time.
    timing: Timing,
    /// Timeouts in a row; of recovery by time, ends of patience.
    timeouts: u16,
    /// Back-offs for want of a receive in a row.
    pub(crate) rnr_backoffs: u8,
    /// How late hosts may be; of use to recovery by time.
    slack: Slack,
    /// Index in `messages` of the one new packets come from.
    current: u32,
    /// Last time `una` moved or the timer fired.
    timer_base: Time,
    /// PSN behind the first of `messages`, `u64::MAX` without one.
    first_end_psn: u64,
    /// A copy of that one, unless everything has been sent.
    pub(crate) sending: Message,
    /// Messages not yet done, oldest first; those of work requests stay until their completion is told.
    messages: VecDeque<Message>,
    rto: RetransmissionConfig,
    /// Last time anything came from the other end; kept only while READs are outstanding.
    pub(crate) last_heard: Time,
    /// Receives of the other end that messages so far consume.
    receives_used: u32,
    /// Most READs outstanding.
    max_reads_out: u16,
    /// Most queue pairs have none.
    held: Option<Box<Held>>,
}

/// What keeps requests in order where the packets of one must not overtake those of another.
#[derive(Debug)]
struct Held {
    /// Requests that wait for others: the first of them is a READ too many, a WRITE to bytes that others write or read, or
    /// behind a fence. They are not yet part of the stream, so that answers to the other end's READs do not wait for them;
    /// both ends could for ever.
    waiting: VecDeque<Message>,
    claims: Claims,
}

/// The packet to send next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) psn: u64,
    pub(crate) retransmit: bool,
    /// Its message, as index in the stream's list.
    index: u32,
    pub(crate) msn: u32,
}

impl SendStream {
    pub(crate) fn new(
        recovery: Recovery,
        rto: RetransmissionConfig,
        timing: Timing,
        slack: Slack,
        max_reads_out: u16,
    ) -> Self {
        SendStream {
            end_psn: 0,
            reads_out: 0,
            answers_out: 0,
            flight: Flight::new(recovery::sender_window(recovery)),
            timeout: rto.timeout,
            recovery: Sender::new(recovery),
            timing,
            slack,
            timeouts: 0,
            rnr_backoffs: 0,
            timer_base: Time::ZERO,
            first_end_psn: u64::MAX,
            first_msn: 0,
            current: 0,
            sending: Message::NONE,
            messages: VecDeque::new(),
            rto,
            last_heard: Time::ZERO,
            receives_used: 0,
            max_reads_out: max_reads_out.max(1),
            held: None,
        }
    }

    /// The PSNs of a message, until its completion has been told.
    pub(crate) fn psns_of(&self, msn: u32) -> Option<Range<u64>> {
        let message = self.messages.get(msn.wrapping_sub(self.first_msn) as usize)?;
        Some(message.start_psn..message.end_psn)
    }

    /// Appends what the application asks for, or makes it wait.
    pub(crate) fn request(&mut self, message: Message, mtu_payload: u16) {
        if self.first_waiting().is_none() && self.may_join(&message) {
            self.push(message, mtu_payload);
        } else {
            self.held().waiting.push_back(message);
        }
    }

    fn may_join(&mut self, message: &Message) -> bool {
        // A READ need not wait for WRITEs: it is answered in its turn, when all before it has landed.
        let in_turn = match message.op {
            Operation::ReadRequest => self.reads_out < self.max_reads_out,
            Operation::Write | Operation::WriteImm if !self.messages.is_empty() => {
                self.held();
                let Some(held) = &mut self.held else { return true };
                held.claims.admit(message, &self.messages)
            }
            _ => true,
        };
        in_turn && (message.start == Start::InTurn || self.requests_are_complete())
    }

    /// Only answers to the other end's READs are under way.
    fn requests_are_complete(&self) -> bool {
        self.messages.iter().all(|message| message.op == Operation::ReadResponse)
    }

    fn held(&mut self) -> &mut Held {
        let writes = if self.recovery.lands_in_order() { Writes::LandInOrder } else { Writes::Claim };
        self.held
            .get_or_insert_with(|| Box::new(Held { waiting: VecDeque::new(), claims: Claims::new(writes) }))
    }

    #[inline]
    fn first_waiting(&self) -> Option<Message> {
        self.held.as_ref().and_then(|held| held.waiting.front()).copied()
    }

    /// Requests that need wait no longer join the stream.
    #[inline]
    pub(crate) fn admit_waiting(&mut self, mtu_payload: u16) {
        while let Some(message) = self.first_waiting()
            && self.may_join(&message)
        {
            self.held().waiting.pop_front();
            self.push(message, mtu_payload);
        }
    }

    /// Appends a message to the stream. Returns the PSN behind its last packet.
    pub(crate) fn push(&mut self, mut message: Message, mtu_payload: u16) -> u64 {
        message.start_psn = self.end_psn;
        message.end_psn = self.end_psn + message.packets(mtu_payload);
        if message.consumes_receive() {
            message.receive_index = self.receives_used;
            self.receives_used = self.receives_used.wrapping_add(1);
        }
        match message.op {
            Operation::ReadRequest => self.reads_out += 1,
            Operation::ReadResponse => self.answers_out += 1,
            _ => {}
        }
        self.end_psn = message.end_psn;
        if self.messages.is_empty() {
            self.first_end_psn = message.end_psn;
        }
        if self.current as usize == self.messages.len() {
            self.sending = message;
        }
        if self.messages.capacity() == 0 {
            // Many queue pairs never have more than one; a list that grows by itself begins with room for four.
            self.messages.reserve_exact(1);
        }
        self.messages.push_back(message);
        if let Some(held) = &mut self.held {
            held.claims.began(&message, &self.messages);
        }
        message.end_psn
    }

    pub(crate) fn messages(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.messages.iter()
    }

    /// The numbers of the messages that are part of the stream and not done.
    pub(crate) fn msns_under_way(&self) -> Range<u32> {
        self.first_msn..self.first_msn.saturating_add(self.messages.len() as u32)
    }

    /// Messages that are not done, those that wait for their turn included.
    pub(crate) fn under_way(&self) -> u64 {
        let waiting = self.held.as_ref().map_or(0, |held| held.waiting.len());
        (self.messages.len() + waiting) as u64
    }

    pub(crate) fn reads_out(&self) -> u16 {
        self.reads_out
    }

    /// Data waits: new, or to be sent again.
    #[inline]
    pub(crate) fn backlogged(&self) -> bool {
        self.flight.lost_packets() > 0 || self.flight.next() < self.end_psn
    }

    /// New data waits.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.flight.next() < self.end_psn
    }

    /// Wire bytes that wait, new or to be sent again, with `around` bytes around each payload. As far as `most`, and of many
    /// short messages as if those behind the first were of full packets.
    pub(crate) fn backlog_bytes(&self, mtu_payload: u16, around: u32, most: u64) -> u64 {
        let (mtu, around) = (u64::from(mtu_payload), u64::from(around));
        let mut bytes = u64::from(self.flight.lost_packets()) * (mtu + around);
        let mut next = self.flight.next();
        for message in self.messages.range(self.current as usize..).take(COUNTED_MESSAGES) {
            if bytes >= most {
                break;
            }
            let payload = match message.op {
                Operation::ReadRequest => 0,
                _ => message.len.saturating_sub((next - message.start_psn) * mtu),
            };
            bytes += payload + (message.end_psn - next) * around;
            next = message.end_psn;
        }
        bytes + (self.end_psn - next) * (mtu + around)
    }

    /// The message of the packet that is to leave next, as index into [`SendStream::messages`].
    pub(crate) fn first_unsent(&self) -> Option<usize> {
        match self.flight.lost_packets() {
            0 => Some(self.current as usize).filter(|&index| index < self.messages.len()),
            _ => self.culprit(self.flight.una()),
        }
    }

    /// A packet could leave if the policy grants it: one is lost, or the receiver's window is open.
    #[inline]
    pub(crate) fn sendable(&self) -> bool {
        self.flight.lost_packets() > 0 || self.new_packet_allowed()
    }

    #[inline]
    fn new_packet_allowed(&self) -> bool {
        let next = self.flight.next();
        next < self.end_psn && next - self.flight.una() < u64::from(self.flight.window())
    }

    /// What to send next: what was lost before what is new.
    #[inline]
    pub(crate) fn candidate(&mut self) -> Option<Candidate> {
        if let Some(psn) = self.flight.first_to_resend() {
            let index = self.index_of(psn);
            return Some(Candidate { psn, retransmit: true, index, msn: self.msn(index) });
        }
        self.new_packet_allowed().then(|| Candidate {
            psn: self.flight.next(),
            retransmit: false,
            index: self.current,
            msn: self.msn(self.current),
        })
    }

    /// The candidate has left.
    #[inline]
    pub(crate) fn committed(&mut self, candidate: &Candidate) {
        if !candidate.retransmit && candidate.psn + 1 == self.sending.end_psn {
            self.current += 1;
            if let Some(&message) = self.messages.get(self.current as usize) {
                self.sending = message;
            }
        }
    }

    #[inline]
    pub(crate) fn message(&self, candidate: &Candidate) -> &Message {
        if candidate.retransmit { &self.messages[candidate.index as usize] } else { &self.sending }
    }

    /// The message of a packet that is not yet acknowledged, and its number.
    pub(crate) fn message_of(&self, psn: u64) -> (&Message, u32) {
        let index = self.index_of(psn);
        (&self.messages[index as usize], self.msn(index))
    }

    /// The message `psn` belongs to, as index. `psn` is below `end_psn` and not yet acknowledged.
    fn index_of(&self, psn: u64) -> u32 {
        // Retransmissions are mostly of the oldest message.
        if psn < self.first_end_psn {
            0
        } else {
            self.messages.partition_point(|message| message.end_psn <= psn) as u32
        }
    }

    /// The work request or answer an unacknowledged `psn` belongs to, as index into [`SendStream::messages`].
    pub(crate) fn culprit(&self, psn: u64) -> Option<usize> {
        Some(self.index_of(psn) as usize).filter(|&index| index < self.messages.len())
    }

    fn msn(&self, index: u32) -> u32 {
        self.first_msn.wrapping_add(index)
    }

    /// Takes out the oldest message if it is done: acknowledged, and answered if it is a READ.
    #[inline]
    pub(crate) fn pop_done(&mut self) -> Option<Message> {
        if self.first_end_psn > self.flight.una() {
            return None;
        }
        let first = self.messages.front()?;
        if first.op == Operation::ReadRequest && !first.answered {
            return None;
        }
        self.first_msn = self.first_msn.wrapping_add(1);
        self.current -= 1;
        let done = self.messages.pop_front();
        self.first_end_psn = self.messages.front().map_or(u64::MAX, |message| message.end_psn);
        if let (Some(held), Some(done)) = (&mut self.held, &done) {
            held.claims.ended(done, &self.messages);
        }
        done
    }

    /// The READ of this number, if it was sent and waits for its answer.
    #[inline]
    pub(crate) fn read(&self, msn: u64) -> Option<&Message> {
        let index = u32::try_from(msn).ok()?.wrapping_sub(self.first_msn) as usize;
        let message = self.messages.get(index)?;
        (index < self.current as usize && message.op == Operation::ReadRequest && !message.answered)
            .then_some(message)
    }

    /// The READ of this number, which [`SendStream::read`] found, has its answer.
    pub(crate) fn answered(&mut self, msn: u64) {
        let index = (msn as u32).wrapping_sub(self.first_msn) as usize;
        self.messages[index].answered = true;
        self.reads_out -= 1;
    }

    /// Whether the oldest request is a READ that the other end has acknowledged and not answered.
    #[inline]
    pub(crate) fn awaits_answer(&self) -> bool {
        self.reads_out > 0
            && self.first_end_psn <= self.flight.una()
            && self.messages.front().is_some_and(|m| m.op == Operation::ReadRequest && !m.answered)
    }

    /// `una` has moved.
    #[inline]
    pub(crate) fn progressed(&mut self, now: Time) {
        if self.timeouts > 0 {
            self.timeouts = 0;
            self.timeout = self.rto.timeout;
        }
        self.rnr_backoffs = 0;
        self.timer_base = now;
    }

    /// Whether a timeout waits once more, because SLEEK is in recovery.
    pub(crate) fn is_recovering_first(&mut self, now: Time) -> bool {
        let waits = self.timeouts == 0 && self.recovery.sleek().is_some_and(|sleek| sleek.is_recovering());
        if waits {
            self.timeouts = 1;
            self.timer_base = now;
        }
        waits
    }

    /// The retransmission timer has fired: what was sent up to `before` counts as lost. False if that has happened too
    /// often.
    pub(crate) fn timed_out(&mut self, now: Time, before: Time, lost: &mut Vec<u64>) -> bool {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeout = self.rto.after(self.recovery.doublings(u32::from(self.timeouts)));
        if self.has_retried_enough() {
            return false;
        }
        self.recovery.on_timeout(before, &mut self.flight, lost);
        self.timer_base = now;
        true
    }

    /// The timer of a path has fired for packets of this queue pair. That counts as a timeout once in the time of one,
    /// since many paths may fail together. False if it has happened too often.
    pub(crate) fn path_timed_out(&mut self, now: Time) -> bool {
        if now < self.timer_base.saturating_add(self.timeout) {
            return true;
        }
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeout = self.rto.after(u32::from(self.timeouts));
        self.timer_base = now;
        !self.has_retried_enough()
    }

    /// More timeouts in a row than configured. A number that is beyond counting is reached when the count ends.
    fn has_retried_enough(&self) -> bool {
        self.timeouts == u16::MAX || u32::from(self.timeouts) > self.rto.retry_limit
    }

    /// When the retransmission timer has to fire, and whether for want of an answer to a READ.
    pub(crate) fn deadline(&mut self) -> Option<(Time, Waiting)> {
        let probe = self.recovery.sleek().and_then(|sleek| sleek.probe_at(&self.flight));
        let probe = probe.map(|at| (at, Waiting::Probe));
        self.deadline_of_data().into_iter().chain(probe).min_by_key(|(at, _)| *at)
    }

    fn deadline_of_data(&mut self) -> Option<(Time, Waiting)> {
        if self.is_timed() {
            if let Some(deadline) = self.end_of_patience() {
                return Some((deadline, Waiting::Ack));
            }
        } else if let Some(sent_at) = self.recovery.oldest_in_flight(&self.flight) {
            let from = sent_at.max(self.timer_base);
            return Some((from.saturating_add(self.timeout), Waiting::Ack));
        }
        self.awaits_answer().then(|| {
            let from = self.last_heard.max(self.timer_base);
            (from.saturating_add(self.rto.give_up_after()), Waiting::Answer)
        })
    }

    /// Time to the next timeout.
    #[inline]
    pub(crate) fn timeout(&self) -> Duration {
        if self.is_timed() { self.wait() } else { self.timeout }
    }
    pub(crate) fn rto_config(&self) -> &RetransmissionConfig {
        &self.rto
    }

    /// Takes out every message, in order; nothing is in flight any more.
    pub(crate) fn abandon(&mut self) -> VecDeque<Message> {
        self.flight.abandon();
        self.end_psn = self.flight.next();
        self.first_end_psn = u64::MAX;
        self.current = 0;
        self.reads_out = 0;
        self.answers_out = 0;
        let mut messages = core::mem::take(&mut self.messages);
        if let Some(mut held) = self.held.take() {
            messages.append(&mut held.waiting);
        }
        messages
    }

    /// Panics unless the stream is consistent.
    pub(crate) fn assert_invariants(&self) {
        self.flight.assert_invariants();
        let (una, next) = (self.flight.una(), self.flight.next());
        assert!(una <= next && next <= self.end_psn, "PSNs in order: {una} {next} {}", self.end_psn);
        assert!(
            next - una <= u64::from(self.flight.window()),
            "{} packets outstanding, window {}",
            next - una,
            self.flight.window()
        );
        let mut psn = self.messages.front().map_or(self.end_psn, |message| message.start_psn);
        for (index, message) in self.messages.iter().enumerate() {
            assert_eq!(message.start_psn, psn, "messages are adjacent");
            assert_eq!(
                index < self.current as usize,
                message.end_psn <= next,
                "the current message is the first unsent"
            );
            psn = message.end_psn;
        }
        assert_eq!(psn, self.end_psn, "the last message ends the stream");
        assert!(self.current as usize <= self.messages.len());
        let first = self.messages.front().map_or(u64::MAX, |message| message.end_psn);
        assert_eq!(self.first_end_psn, first, "the end of the first message");
        if let Some(message) = self.messages.get(self.current as usize) {
            assert_eq!(self.sending.start_psn, message.start_psn, "the copy of the current message");
        }
        let unanswered = self.messages.iter().filter(|m| m.op == Operation::ReadRequest && !m.answered);
        assert_eq!(unanswered.count(), usize::from(self.reads_out), "READs outstanding");
        assert!(self.reads_out <= self.max_reads_out);
        if let (Some(held), Some(first)) = (&self.held, self.first_waiting()) {
            let has_reason = match first.op {
                Operation::ReadRequest => self.reads_out == self.max_reads_out,
                Operation::Write | Operation::WriteImm => !held.claims.admits_slowly(&first, &self.messages),
                _ => false,
            };
            let is_fenced = first.start == Start::AfterAll && !self.requests_are_complete();
            assert!(has_reason || is_fenced, "{first:?} waits for no reason");
        }
    }
}

/// What the retransmission timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The instant at which a probe leaves.
    Probe,
    /// The acknowledgement of a packet in flight.
    Ack,
    /// The answer to a READ whose request was acknowledged.
    Answer,
}
