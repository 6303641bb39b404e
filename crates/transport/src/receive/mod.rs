//! Receiving direction of a queue pair: arrived packets, positions of their payload, complete messages.

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

/// Receiving direction of a queue pair.
// In the order of use; see `Qp`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct ReceiveStream {
    /// Number (MSN) of the next message to be delivered.
    pub(crate) next_msn: u32,
    /// Index of the first posted receive, which equals the number of receives consumed so far.
    pub(crate) receives_done: u32,
    /// Low 32 bits of the PSN of the first packet of the message in progress.
    first_psn: u32,
    /// Purpose of the message in progress, once a packet of it has arrived.
    purpose: Option<Purpose>,
    pub(crate) mode: ReceiveMode,
    /// Domain whose memory regions the peer reaches.
    pub(crate) domain: Domain,
    pub(crate) recovery: Receiver,
    /// Highest PSN that has arrived, plus 1.
    pub(crate) highest: u64,
    pub(crate) acks: AckState,
    /// Judgement of gaps, if this end reports them.
    pub(crate) reorder: Option<Box<Reorder>>,
    pub(crate) cnp: CnpPolicy,
    /// Earliest time of the next congestion notification.
    pub(crate) next_cnp: Time,
    /// Messages that cannot be delivered yet, with packets that have overtaken others.
    ahead: Kept,
    /// Destination of the message in progress, for WRITEs and READ responses.
    target: Target,
    /// Number of accepted READ requests whose responses are not yet acknowledged, and its limit.
    pub(crate) reads_in: u16,
    pub(crate) max_reads_in: u16,
    /// Allocated when first needed.
    pub(crate) promised: Option<Box<Obligations>>,
}

/// Obligations of a queue pair to its peer.
#[derive(Debug, Default)]
pub(crate) struct Obligations {
    /// Receives that are posted and not consumed.
    pub(crate) receives: VecDeque<RecvRequest>,
    /// For each READ response in progress: the PSN behind it in this end's stream, and the key of the region that it
    /// reads.
    pub(crate) answers: VecDeque<(u64, u64)>,
    /// Keys that were refused to packets ahead of a gap.
    pub(crate) refused: RefusedKeys,
}

/// Count of refused keys. A refusal ahead of a gap is not reported, or the messages before it would not complete. But
/// a peer that leaves a gap must not be able to try one key after the other and see which one is acknowledged.
#[derive(Debug, Default)]
pub(crate) struct RefusedKeys {
    latest: u64,
    number: u8,
}

impl RefusedKeys {
    /// More keys than a benign peer gets wrong.
    const MOST: u8 = 4;

    /// Records that a packet was refused for its key or its use of the key. Returns true if there were too many keys.
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

    /// Returns true if an accepted packet must be acknowledged at once although too few packets have arrived for an
    /// acknowledgement. `expected` is its value before the packet.
    ///
    /// Packets out of order are no reason by themselves: with several paths they are normal, and the bitmap reports
    /// them as well a few packets later (as with the reordering threshold of QUIC's acknowledgement frequency,
    /// draft-ietf-quic-ack-frequency). The sender waits for:
    ///
    /// - the proof that the first missing packet is lost, which is the packet at the sender's reordering limit behind
    ///   it;
    /// - the arrival of a retransmission while there is a gap, because the gap keeps the sender's window from moving;
    /// - the end of a gap that completes a message, whose last packet was acknowledged too early to be of use;
    /// - the end of a gap with at least half a window behind it, because the sender may have exhausted its window.
    ///
    /// The end of a message and a duplicate are acknowledged at once in any case. Go-back-N refuses packets out of
    /// order with a NACK.
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

    /// Receive that a message of this index consumes, if one is posted. `Err` if it was consumed before.
    #[inline]
    pub(crate) fn receive(&self, index: u32) -> Result<Option<&RecvRequest>, Consumed> {
        let ahead = index.wrapping_sub(self.receives_done);
        if ahead >= 1 << 31 {
            return Err(Consumed);
        }
        Ok(self.promised.as_ref().and_then(|promised| promised.receives.get(ahead as usize)))
    }

    /// Returns the obligations for additions, and allocates them if necessary.
    pub(crate) fn promise(&mut self) -> &mut Obligations {
        self.promised.get_or_insert_default()
    }

    /// Returns the obligations, if there ever were any.
    pub(crate) fn promised(&mut self) -> Option<&mut Obligations> {
        self.promised.as_deref_mut()
    }

    /// Number of READ responses in progress.
    pub(crate) fn answers(&self) -> usize {
        self.promised.as_ref().map_or(0, |promised| promised.answers.len())
    }

    /// Drops all messages ahead: nothing more will be delivered.
    pub(crate) fn forget_messages(&mut self) {
        self.ahead = None;
    }
}

/// Error: another message has consumed the receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumed;
