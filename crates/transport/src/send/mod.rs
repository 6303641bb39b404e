//! The sending direction of a queue pair: messages, packets in flight, what to send next.

pub(crate) mod flight;
pub(crate) mod message;

use alloc::collections::VecDeque;

use pathweave_policy::Recovery;
use pathweave_units::{Duration, Time};
use pathweave_wire::Operation;

use crate::config::RtoConfig;
use crate::recovery::{self, Sender};
use flight::Flight;
use message::Message;

/// The sending direction of a queue pair.
#[derive(Debug)]
pub(crate) struct SendStream {
    pub(crate) flight: Flight,
    pub(crate) recovery: Sender,
    /// Messages not yet done, oldest first; those of work requests stay until their completion is told.
    messages: VecDeque<Message>,
    /// Number of the first of `messages`.
    first_msn: u32,
    /// Index in `messages` of the one new packets come from.
    current: usize,
    /// PSN behind the last packet of the last message.
    end_psn: u64,
    /// Packets the receiver takes from the oldest missing one on.
    window: u64,
    /// Receives of the other end that messages so far consume.
    receives_used: u32,
    /// READs among `messages` that are not yet answered, and how many may be.
    reads_out: u16,
    max_reads_out: u16,
    /// Requests that wait for a READ to be answered: the first of them is a READ too many. They are not yet part of
    /// the stream, so that answers to the other end's READs do not wait for them; both ends could for ever.
    waiting: VecDeque<Message>,
    rto: RtoConfig,
    /// Timeouts in a row.
    pub(crate) timeouts: u32,
    /// Back-offs for want of a receive in a row.
    pub(crate) rnr_backoffs: u32,
    /// Last time `una` moved or the timer fired.
    pub(crate) timer_base: Time,
    /// Last time anything came from the other end; kept only while READs are outstanding.
    pub(crate) last_heard: Time,
}

/// The packet to send next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) psn: u64,
    pub(crate) retransmit: bool,
    /// Its message, as index in the stream's list.
    index: usize,
    pub(crate) msn: u32,
}

impl SendStream {
    pub(crate) fn new(recovery: Recovery, rto: RtoConfig, max_reads_out: u16) -> Self {
        SendStream {
            flight: Flight::new(),
            recovery: Sender::new(recovery),
            messages: VecDeque::new(),
            first_msn: 0,
            current: 0,
            end_psn: 0,
            window: recovery::sender_window(recovery),
            receives_used: 0,
            reads_out: 0,
            max_reads_out: max_reads_out.max(1),
            waiting: VecDeque::new(),
            rto,
            timeouts: 0,
            rnr_backoffs: 0,
            timer_base: Time::ZERO,
            last_heard: Time::ZERO,
        }
    }

    /// Appends what the application asks for, or makes it wait.
    pub(crate) fn request(&mut self, message: Message, mtu_payload: u16) {
        if self.waiting.is_empty() && self.may_join(&message) {
            self.push(message, mtu_payload);
        } else {
            self.waiting.push_back(message);
        }
    }

    fn may_join(&self, message: &Message) -> bool {
        message.op != Operation::ReadRequest || self.reads_out < self.max_reads_out
    }

    /// Appends a message to the stream. Returns the PSN behind its last packet.
    pub(crate) fn push(&mut self, mut message: Message, mtu_payload: u16) -> u64 {
        message.start_psn = self.end_psn;
        message.end_psn = self.end_psn + message.packets(mtu_payload);
        if message.consumes_receive() {
            message.receive_index = self.receives_used;
            self.receives_used = self.receives_used.wrapping_add(1);
        }
        if message.op == Operation::ReadRequest {
            self.reads_out += 1;
        }
        self.end_psn = message.end_psn;
        self.messages.push_back(message);
        message.end_psn
    }

    pub(crate) fn messages(&self) -> impl ExactSizeIterator<Item = &Message> {
        self.messages.iter()
    }
    pub(crate) fn reads_out(&self) -> u16 {
        self.reads_out
    }

    /// Data waits: new, or to be sent again.
    #[inline]
    pub(crate) fn backlogged(&self) -> bool {
        self.flight.lost_packets() > 0 || self.flight.next() < self.end_psn
    }

    /// A packet could leave if the policy grants it: one is lost, or the receiver's window is open.
    #[inline]
    pub(crate) fn sendable(&self) -> bool {
        self.flight.lost_packets() > 0 || self.new_packet_allowed()
    }

    #[inline]
    fn new_packet_allowed(&self) -> bool {
        let next = self.flight.next();
        next < self.end_psn && next - self.flight.una() < self.window
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
        if !candidate.retransmit && candidate.psn + 1 == self.messages[candidate.index].end_psn {
            self.current += 1;
        }
    }

    #[inline]
    pub(crate) fn message(&self, candidate: &Candidate) -> &Message {
        &self.messages[candidate.index]
    }

    /// The message `psn` belongs to, as index. `psn` is below `end_psn` and not yet acknowledged.
    fn index_of(&self, psn: u64) -> usize {
        // Retransmissions are mostly of the oldest message.
        match self.messages.front() {
            Some(first) if psn < first.end_psn => 0,
            _ => self.messages.partition_point(|message| message.end_psn <= psn),
        }
    }

    /// The work request or answer an unacknowledged `psn` belongs to, as index into [`SendStream::messages`].
    pub(crate) fn culprit(&self, psn: u64) -> Option<usize> {
        Some(self.index_of(psn)).filter(|&index| index < self.messages.len())
    }

    fn msn(&self, index: usize) -> u32 {
        self.first_msn.wrapping_add(index as u32)
    }

    /// Takes out the oldest message if it is done: acknowledged, and answered if it is a READ.
    #[inline]
    pub(crate) fn pop_done(&mut self) -> Option<Message> {
        let first = self.messages.front()?;
        if first.end_psn > self.flight.una() || (first.op == Operation::ReadRequest && !first.answered) {
            return None;
        }
        self.first_msn = self.first_msn.wrapping_add(1);
        self.current -= 1;
        self.messages.pop_front()
    }

    /// The READ of this number, if it was sent and waits for its answer.
    #[inline]
    pub(crate) fn read(&self, msn: u64) -> Option<&Message> {
        let index = u32::try_from(msn).ok()?.wrapping_sub(self.first_msn) as usize;
        let message = self.messages.get(index)?;
        (index < self.current && message.op == Operation::ReadRequest && !message.answered).then_some(message)
    }

    /// The READ of this number, which [`SendStream::read`] found, has its answer. Requests that waited for that join
    /// the stream.
    pub(crate) fn answered(&mut self, msn: u64, mtu_payload: u16) {
        let index = (msn as u32).wrapping_sub(self.first_msn) as usize;
        self.messages[index].answered = true;
        self.reads_out -= 1;
        while self.waiting.front().is_some_and(|message| self.may_join(message)) {
            let message = self.waiting.pop_front().expect("it was just looked at");
            self.push(message, mtu_payload);
        }
    }

    /// Whether the oldest request is a READ that the other end has acknowledged and not answered.
    pub(crate) fn awaits_answer(&self) -> bool {
        self.messages
            .front()
            .is_some_and(|m| m.op == Operation::ReadRequest && !m.answered && m.end_psn <= self.flight.una())
    }

    /// When the retransmission timer has to fire, and whether for want of an answer to a READ.
    pub(crate) fn deadline(&mut self) -> Option<(Time, Waiting)> {
        if let Some(sent_at) = self.recovery.oldest_in_flight(&self.flight) {
            let from = sent_at.max(self.timer_base);
            return Some((from.saturating_add(self.rto.after(self.timeouts)), Waiting::ForAck));
        }
        self.awaits_answer().then(|| {
            let from = self.last_heard.max(self.timer_base);
            (from.saturating_add(self.rto.give_up_after()), Waiting::ForAnswer)
        })
    }

    /// Time to the next timeout.
    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        if self.timeouts == 0 { self.rto.initial } else { self.rto.after(self.timeouts) }
    }
    pub(crate) fn rto_config(&self) -> &RtoConfig {
        &self.rto
    }

    /// Takes out every message, in order; nothing is in flight any more.
    pub(crate) fn abandon(&mut self) -> VecDeque<Message> {
        self.flight.abandon();
        self.end_psn = self.flight.next();
        self.current = 0;
        self.reads_out = 0;
        let mut messages = core::mem::take(&mut self.messages);
        messages.append(&mut self.waiting);
        messages
    }

    /// Panics unless the stream is consistent.
    pub(crate) fn assert_invariants(&self) {
        self.flight.assert_invariants();
        let (una, next) = (self.flight.una(), self.flight.next());
        assert!(una <= next && next <= self.end_psn, "PSNs in order: {una} {next} {}", self.end_psn);
        assert!(next - una <= self.window, "{} packets outstanding, window {}", next - una, self.window);
        let mut psn = self.messages.front().map_or(self.end_psn, |message| message.start_psn);
        for (index, message) in self.messages.iter().enumerate() {
            assert_eq!(message.start_psn, psn, "messages are adjacent");
            assert_eq!(
                index < self.current,
                message.end_psn <= next,
                "the current message is the first unsent"
            );
            psn = message.end_psn;
        }
        assert_eq!(psn, self.end_psn, "the last message ends the stream");
        assert!(self.current <= self.messages.len());
        let unanswered = self.messages.iter().filter(|m| m.op == Operation::ReadRequest && !m.answered);
        assert_eq!(unanswered.count(), usize::from(self.reads_out), "READs outstanding");
        assert!(self.reads_out <= self.max_reads_out);
        assert!(
            self.waiting.is_empty() || self.reads_out == self.max_reads_out,
            "somebody waits for no reason"
        );
    }
}

/// What the retransmission timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// The acknowledgement of a packet in flight.
    ForAck,
    /// The answer to a READ whose request was acknowledged.
    ForAnswer,
}
