//! Sending direction of a queue pair: messages, packets in flight, choice of the next packet.

mod claims;
pub(crate) mod echoes;
pub(crate) mod flight;
pub(crate) mod message;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::ops::Range;

use pathweave_units::{Duration, Time};
use pathweave_wire::Operation;

use crate::config::RetransmissionConfig;
use crate::recovery::{Clock, ClockValues, Sender, Slack};
use claims::{Claims, Writes};
use flight::Flight;
use message::{Message, Start};

/// Number of waiting messages whose bytes are counted exactly.
const COUNTED_MESSAGES: usize = 32;

/// Sending direction of a queue pair.
// In the order of use, with the fields that every packet and acknowledgement touches first; see `Qp`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SendStream {
    /// PSN behind the last packet of the last message.
    end_psn: u64,
    /// Number (MSN) of the first of `messages`.
    first_msn: u32,
    /// Number of READs among `messages` that have no response yet.
    reads_out: u16,
    /// Number of responses to the peer's READs that are not yet acknowledged.
    pub(crate) answers_out: u16,
    pub(crate) flight: Flight,
    /// Time from a packet to its timeout: the configured value, longer after successive timeouts. With recovery by
    /// time, the upper bound of patience before it is measured.
    timeout: Duration,
    pub(crate) recovery: Sender,
    /// Number of successive timeouts; with recovery by time, of successive ends of patience.
    timeouts: u16,
    /// Number of successive back-offs because the peer has no receive posted.
    pub(crate) rnr_backoffs: u8,
    /// Delay of hosts and evidence of losses, for recovery by time.
    slack: Slack,
    /// Index in `messages` of the message that new packets come from.
    current: u32,
    /// Latest time at which `una` moved or the timer fired.
    timer_base: Time,
    /// PSN behind the first of `messages`, or `u64::MAX` if there is none.
    first_end_psn: u64,
    /// Copy of the message at `current`, unless everything has been sent.
    pub(crate) sending: Message,
    /// Messages that are not done, oldest first. Those of work requests stay until their completion is reported.
    messages: VecDeque<Message>,
    rto: RetransmissionConfig,
    /// Latest time at which anything arrived from the peer. Maintained only while READs are outstanding.
    pub(crate) last_heard: Time,
    /// Number of receives of the peer that messages so far consume.
    receives_used: u32,
    /// Largest number of outstanding READs.
    max_reads_out: u16,
    /// Allocated when a request first has to wait. Most queue pairs need none.
    held: Option<Box<OrderingState>>,
}

/// State that keeps requests in order whose packets must not overtake those of others.
#[derive(Debug)]
struct OrderingState {
    /// Requests that wait for others. The first of them is a READ beyond the limit, a WRITE to bytes that earlier
    /// requests write or read, or behind a fence. They are not yet part of the stream, so that responses to the
    /// peer's READs do not wait for them. Otherwise both ends could wait for each other for ever.
    waiting: VecDeque<Message>,
    claims: Claims,
}

/// Packet to send next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) psn: u64,
    pub(crate) retransmit: bool,
    /// Index of its message in the stream's list.
    index: u32,
    pub(crate) msn: u32,
}

impl SendStream {
    pub(crate) fn new(
        recovery: Sender,
        window_packets: u32,
        rto: RetransmissionConfig,
        slack: Slack,
        max_reads_out: u16,
    ) -> Self {
        SendStream {
            end_psn: 0,
            reads_out: 0,
            answers_out: 0,
            flight: Flight::new(window_packets),
            timeout: rto.timeout,
            recovery,
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

    /// PSNs of a message, until its completion has been reported.
    pub(crate) fn psns_of(&self, msn: u32) -> Option<Range<u64>> {
        let message = self.messages.get(msn.wrapping_sub(self.first_msn) as usize)?;
        Some(message.start_psn..message.end_psn)
    }

    /// Appends a request of the application, or makes it wait.
    pub(crate) fn request(&mut self, message: Message, mtu_payload: u16) {
        if self.first_waiting().is_none() && self.may_join(&message) {
            self.push(message, mtu_payload);
        } else {
            self.held().waiting.push_back(message);
        }
    }

    fn may_join(&mut self, message: &Message) -> bool {
        // A READ need not wait for WRITEs: the peer answers it in order, after all earlier requests have been carried
        // out.
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

    /// Returns true if only responses to the peer's READs are in progress.
    fn requests_are_complete(&self) -> bool {
        self.messages.iter().all(|message| message.op == Operation::ReadResponse)
    }

    fn held(&mut self) -> &mut OrderingState {
        let writes = if self.recovery.is_selective() { Writes::Claim } else { Writes::LandInOrder };
        self.held.get_or_insert_with(|| {
            Box::new(OrderingState { waiting: VecDeque::new(), claims: Claims::new(writes) })
        })
    }

    #[inline]
    fn first_waiting(&self) -> Option<Message> {
        self.held.as_ref().and_then(|held| held.waiting.front()).copied()
    }

    /// Moves requests that need not wait any longer into the stream.
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
            // Many queue pairs never have more than one message; a `VecDeque` that grows by itself begins with room
            // for four.
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

    /// Numbers of the messages that are part of the stream and not done.
    pub(crate) fn msns_under_way(&self) -> Range<u32> {
        self.first_msn..self.first_msn.saturating_add(self.messages.len() as u32)
    }

    /// Number of messages that are not done, including those that wait to join the stream.
    pub(crate) fn under_way(&self) -> u64 {
        let waiting = self.held.as_ref().map_or(0, |held| held.waiting.len());
        (self.messages.len() + waiting) as u64
    }

    pub(crate) fn reads_out(&self) -> u16 {
        self.reads_out
    }

    /// Returns true if data waits to be sent, new or lost.
    #[inline]
    pub(crate) fn backlogged(&self) -> bool {
        self.flight.lost_packets() > 0 || self.flight.next() < self.end_psn
    }

    /// Wire bytes that wait to be sent, new or lost, with `around` header bytes per packet. Counts only up to about
    /// `most`, and treats all messages behind the first [`COUNTED_MESSAGES`] as full packets.
    pub(crate) fn backlog_bytes(&self, mtu_payload: u16, around: u32, most: u64) -> u64 {
        let (mtu, around) = (u64::from(mtu_payload), u64::from(around));
        let mut bytes = u64::from(self.flight.lost_packets()) * (mtu + around);
        let first = self.flight.next();
        let mut next = first;
        // The current message may have been sent in full just now.
        let unsent =
            self.messages.range(self.current as usize..).skip_while(|message| message.end_psn <= first);
        for message in unsent.take(COUNTED_MESSAGES) {
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

    /// Index in [`SendStream::messages`] of the message of the next packet.
    pub(crate) fn first_unsent(&self) -> Option<usize> {
        match self.flight.lost_packets() {
            0 => Some(self.current as usize).filter(|&index| index < self.messages.len()),
            _ => self.message_index_of(self.flight.una()),
        }
    }

    /// Returns true if a packet could leave if the policy grants it: one is lost, or the receiver's window is open.
    #[inline]
    pub(crate) fn sendable(&self) -> bool {
        self.flight.lost_packets() > 0 || self.new_packet_allowed()
    }

    #[inline]
    fn new_packet_allowed(&self) -> bool {
        let next = self.flight.next();
        next < self.end_psn && next - self.flight.una() < u64::from(self.flight.window())
    }

    /// Returns the packet to send next: lost packets before new ones.
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

    /// Records that the candidate has left.
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

    /// Message of a packet that is not yet acknowledged, and its number.
    pub(crate) fn message_of(&self, psn: u64) -> (&Message, u32) {
        let index = self.index_of(psn);
        (&self.messages[index as usize], self.msn(index))
    }

    /// Index of the message that contains `psn`, which is below `end_psn` and not yet acknowledged.
    fn index_of(&self, psn: u64) -> u32 {
        // Retransmissions mostly belong to the oldest message.
        if psn < self.first_end_psn {
            0
        } else {
            self.messages.partition_point(|message| message.end_psn <= psn) as u32
        }
    }

    /// Index in [`SendStream::messages`] of the work request or response that contains an unacknowledged `psn`.
    pub(crate) fn message_index_of(&self, psn: u64) -> Option<usize> {
        Some(self.index_of(psn) as usize).filter(|&index| index < self.messages.len())
    }

    fn msn(&self, index: u32) -> u32 {
        self.first_msn.wrapping_add(index)
    }

    /// Removes and returns the oldest message if it is done: acknowledged, and answered if it is a READ.
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

    /// READ of this number, if it was sent and waits for its response.
    #[inline]
    pub(crate) fn read(&self, msn: u64) -> Option<&Message> {
        let index = u32::try_from(msn).ok()?.wrapping_sub(self.first_msn) as usize;
        let message = self.messages.get(index)?;
        (index < self.current as usize && message.op == Operation::ReadRequest && !message.answered)
            .then_some(message)
    }

    /// Records that the response to the READ of this number is complete. [`SendStream::read`] must have found it.
    pub(crate) fn answered(&mut self, msn: u64) {
        let index = (msn as u32).wrapping_sub(self.first_msn) as usize;
        self.messages[index].answered = true;
        self.reads_out -= 1;
    }

    /// Returns true if the oldest request is a READ that the peer has acknowledged and not answered.
    #[inline]
    pub(crate) fn awaits_answer(&self) -> bool {
        self.reads_out > 0
            && self.first_end_psn <= self.flight.una()
            && self.messages.front().is_some_and(|m| m.op == Operation::ReadRequest && !m.answered)
    }

    /// Resets timeouts and back-offs after `una` has moved.
    #[inline]
    pub(crate) fn progressed(&mut self, now: Time) {
        if self.timeouts > 0 {
            self.timeouts = 0;
            self.timeout = self.rto.timeout;
        }
        self.rnr_backoffs = 0;
        self.timer_base = now;
    }

    /// Splits the stream into its loss recovery and the state that this works on: packets in flight, retransmission
    /// timer, and the PSN behind the last packet.
    #[inline(always)]
    pub(crate) fn split(&mut self) -> (&mut Sender, &mut Flight, Clock<'_>, u64) {
        let Self { flight, timeout, recovery, timeouts, slack, timer_base, rto, end_psn, .. } = self;
        let clock = Clock { rto, timeout, timeouts, base: timer_base, slack: *slack };
        (recovery, flight, clock, *end_psn)
    }

    /// Time at which the retransmission timer must fire, and its reason.
    pub(crate) fn deadline(&mut self) -> Option<(Time, TimerReason)> {
        let (recovery, flight, clock, _) = self.split();
        let probe = recovery.probe_at(flight).map(|at| (at, TimerReason::Probe));
        let ack = recovery.deadline(flight, &clock).map(|at| (at, TimerReason::Ack));
        let data = ack.or_else(|| {
            self.awaits_answer().then(|| {
                let from = self.last_heard.max(self.timer_base);
                (from.saturating_add(self.rto.give_up_after()), TimerReason::Answer)
            })
        });
        data.into_iter().chain(probe).min_by_key(|(at, _)| *at)
    }

    /// Time to the next timeout.
    #[inline]
    pub(crate) fn timeout(&self) -> Duration {
        let Self { rto, timeout, timeouts, slack, .. } = self;
        self.recovery.timeout(ClockValues { rto, timeout: *timeout, timeouts: *timeouts, slack: *slack })
    }
    pub(crate) fn rto_config(&self) -> &RetransmissionConfig {
        &self.rto
    }

    /// Removes and returns all messages in order. Nothing is in flight afterwards.
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

/// Event that the retransmission timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerReason {
    /// The time at which a probe leaves.
    Probe,
    /// The acknowledgement of a packet in flight.
    Ack,
    /// The response to a READ whose request was acknowledged.
    Answer,
}
