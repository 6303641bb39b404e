//! The receiving direction of a queue pair: which packets have arrived, where their payload goes, which
//! messages are whole.

pub(crate) mod acks;
pub(crate) mod content;
mod messages;
pub(crate) mod reorder;

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use pathweave_policy::{AckPolicy, CnpPolicy, Recovery, Reordering};
use pathweave_units::Time;
use pathweave_wire::Data;

use crate::config::ReceiveMode;
use crate::memory::Domain;
use crate::recovery::Receiver;
use crate::work::RecvRequest;
use acks::AckState;
use messages::{Kept, Purpose, Target};
use reorder::Reorder;

/// The receiving direction of a queue pair.
// In the order of use; see `Qp`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReceiveStream {
    /// Number of the next message to be delivered.
    pub(crate) next_msn: u32,
    /// Index of the first of the receives posted: receives consumed so far.
    pub(crate) receives_done: u32,
    /// PSN of the first packet of the message in progress, its low 32 bits.
    first_psn: u32,
    /// What the message in progress is, once a packet of it has arrived.
    purpose: Option<Purpose>,
    pub(crate) mode: ReceiveMode,
    /// Whose memory regions the other end reaches.
    pub(crate) domain: Domain,
    pub(crate) recovery: Receiver,
    /// Highest PSN that has arrived, plus 1.
    pub(crate) highest: u64,
    pub(crate) acks: AckState,
    /// What it makes of gaps, where it says anything about them.
    pub(crate) reorder: Option<Box<Reorder>>,
    pub(crate) cnp: CnpPolicy,
    /// When the next congestion notification may be made.
    pub(crate) next_cnp: Time,
    /// Messages that cannot be delivered yet, of which packets have overtaken others.
    ahead: Kept,
    /// Where the message in progress goes, of WRITEs and answers to READs.
    target: Target,
    /// READ requests taken whose answers are not yet acknowledged, and how many there may be.
    pub(crate) reads_in: u16,
    pub(crate) max_reads_in: u16,
    /// Allocated by those who have any of it.
    pub(crate) promised: Option<Box<Promised>>,
}

/// What a queue pair has promised the other end.
#[derive(Debug, Default)]
pub(crate) struct Promised {
    /// Receives posted and not consumed.
    pub(crate) receives: VecDeque<RecvRequest>,
    /// For each answer under way: the PSN of this end's stream behind it, and the key of the region it reads.
    pub(crate) answers: VecDeque<(u64, u64)>,
    /// Keys that were refused to packets ahead of a gap.
    pub(crate) refused: RefusedKeys,
}

/// Keys that were refused. What is ahead of a gap is not told so, or the messages before it would not complete; but who
/// leaves a gap must not be able to try one key after the other, and see which of them is acknowledged.
#[derive(Debug, Default)]
pub(crate) struct RefusedKeys {
    latest: u64,
    number: u8,
}

impl RefusedKeys {
    /// More than a peer has that means well.
    const MOST: u8 = 4;

    /// Another packet was refused for its key, or what it does with it. True if there were too many keys.
    pub(crate) fn note(&mut self, rkey: u64) -> bool {
        if self.number == 0 || self.latest != rkey {
            self.latest = rkey;
            self.number = self.number.saturating_add(1);
        }
        self.number > RefusedKeys::MOST
    }
}

impl ReceiveStream {
    pub(crate) fn new(
        recovery: Recovery,
        acks: AckPolicy,
        cnp: CnpPolicy,
        reordering: Reordering,
        mode: ReceiveMode,
        domain: Domain,
        max_reads_in: u16,
    ) -> Self {
        let recovery = Receiver::new(recovery);
        ReceiveStream {
            reorder: match reordering {
                Reordering::Silent => None,
                Reordering::Reported(policy) => Some(Reorder::new(policy)),
            },
            first_psn: recovery.expected() as u32,
            recovery,
            highest: 0,
            next_msn: 0,
            purpose: None,
            ahead: None,
            target: Target::default(),
            mode,
            domain,
            receives_done: 0,
            reads_in: 0,
            max_reads_in: max_reads_in.max(1),
            acks: AckState::new(acks),
            cnp,
            next_cnp: Time::ZERO,
            promised: None,
        }
    }

    /// Whether a packet that was just taken must be acknowledged at once although fewer have come than make an
    /// acknowledgement; `expected` was so before it. Packets out of order are no reason by themselves: where several paths
    /// are used they are the rule, and the bitmap tells of them as well a few packets later (so the reordering threshold
    /// of QUIC's acknowledgement frequency, draft-ietf-quic-ack-frequency). What the sender waits for is:
    ///
    /// - the proof that the first missing packet is lost, which is the packet so many behind it as the sender lets
    ///   overtake;
    /// - the arrival of what it has sent again while there is a gap, as the gap keeps its window from moving;
    /// - the end of a gap that makes a message whole, whose end was acknowledged when it was of no use yet;
    /// - the end of a gap that had half of the window behind it, as the sender may have come to its end.
    ///
    /// The end of a message and a duplicate are acknowledged at once in any case; go-back-N refuses what is out of order
    /// with a NACK.
    #[inline]
    pub(crate) fn cannot_wait(&self, data: &Data, expected: u64) -> bool {
        let now_expected = self.recovery.expected();
        if data.psn != expected {
            return data.retransmit || data.psn - expected == self.recovery.proof_packets();
        }
        let passed = now_expected - expected;
        if passed == 1 {
            return data.retransmit && self.recovery.has_gap();
        }
        let makes_whole = self.passed_end().is_some();
        data.retransmit || makes_whole || passed * 2 >= self.recovery.window()
    }

    /// The receive a message of this index consumes, if one is posted; `Err` if it was consumed before.
    #[inline]
    pub(crate) fn receive(&self, index: u32) -> Result<Option<&RecvRequest>, Consumed> {
        let ahead = index.wrapping_sub(self.receives_done);
        if ahead >= 1 << 31 {
            return Err(Consumed);
        }
        Ok(self.promised.as_ref().and_then(|promised| promised.receives.get(ahead as usize)))
    }

    /// What is promised, to promise more.
    pub(crate) fn promise(&mut self) -> &mut Promised {
        self.promised.get_or_insert_default()
    }

    /// What is promised, if there ever was anything.
    pub(crate) fn promised(&mut self) -> Option<&mut Promised> {
        self.promised.as_deref_mut()
    }

    /// How many answers are under way.
    pub(crate) fn answers(&self) -> usize {
        self.promised.as_ref().map_or(0, |promised| promised.answers.len())
    }

    /// Nothing more will be delivered.
    pub(crate) fn forget_messages(&mut self) {
        self.ahead = None;
    }
}

/// The receive was consumed by another message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumed;
