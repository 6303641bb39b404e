//! Plans: the steps of one rank in a collective.
//!
//! A plan is made by each rank alone, from the call and its rank. Transfers between two ranks are numbered in the order
//! in which the plans of both ends list them, so both orders must be the same.

use crate::reduce::Order;

/// Bytes of the longest transfer that is combined, and of a part of those that are passed on.
pub const SEGMENT_BYTES: usize = 256 << 10;

/// Part of a buffer. Buffers are numbered by the caller of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Number of the buffer.
    pub buffer: u32,
    /// First byte.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Span {
    /// Returns the whole of a buffer of so many bytes.
    pub fn whole(buffer: u32, len: usize) -> Self {
        Span { buffer, start: 0, len }
    }

    /// Returns a part.
    pub(crate) fn part(self, start: usize, len: usize) -> Self {
        debug_assert!(start + len <= self.len, "{start} + {len} of {self:?}");
        Span { buffer: self.buffer, start: self.start + start, len }
    }

    /// Returns parts of at most [`SEGMENT_BYTES`], which end between elements.
    pub(crate) fn segments(self) -> impl Iterator<Item = Span> {
        let count = self.len.div_ceil(SEGMENT_BYTES);
        (0..count).map(move |index| {
            let start = index * SEGMENT_BYTES;
            self.part(start, SEGMENT_BYTES.min(self.len - start))
        })
    }
}

/// Buffer that the plan itself needs; its number in spans.
pub const TEMPORARY: u32 = u32::MAX;

/// Number of a step in its plan.
pub(crate) type StepId = u32;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends bytes to a rank.
    Send {
        /// Rank.
        to: u32,
        /// Number of the transfer.
        index: u32,
        /// Bytes.
        from: Span,
    },
    /// Receives bytes.
    Receive {
        /// Rank that sends them.
        from: u32,
        /// Number of the transfer.
        index: u32,
        /// Place for them.
        to: Span,
    },
    /// Receives bytes and combines them with own ones.
    Combine {
        /// Rank that sends them.
        from: u32,
        /// Number of the transfer.
        index: u32,
        /// Own bytes, of the same length.
        with: Span,
        /// Place for the result; it may be that of the own bytes.
        into: Span,
        /// Order of the operands.
        order: Order,
    },
    /// Copies own bytes.
    Copy {
        /// Source.
        from: Span,
        /// Destination.
        to: Span,
    },
    /// Divides sums by the number of ranks.
    Divide {
        /// Sums.
        of: Span,
    },
}

impl Action {
    /// Returns the other rank, of a transfer.
    pub(crate) fn peer(&self) -> Option<u32> {
        match self {
            Action::Send { to, .. } => Some(*to),
            Action::Receive { from, .. } | Action::Combine { from, .. } => Some(*from),
            Action::Copy { .. } | Action::Divide { .. } => None,
        }
    }
}

/// A step and its place in the order.
#[derive(Clone, Debug)]
pub struct Step {
    /// Work to do.
    pub action: Action,
    /// Steps that must be complete before, at most two.
    pub after: [Option<StepId>; 2],
}

/// Steps of one rank, in an order in which receives are posted.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Steps.
    pub steps: Vec<Step>,
    /// Bytes of the buffer [`TEMPORARY`].
    pub temporary_bytes: usize,
    /// Number of transfers so far, by the other rank: sent and received.
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Plan {
    pub(crate) fn new(ranks: u32) -> Self {
        let ranks = ranks as usize;
        Plan { steps: Vec::new(), temporary_bytes: 0, sent: vec![0; ranks], received: vec![0; ranks] }
    }

    /// Returns the ranks that the steps send to or receive from.
    pub fn ranks(&self) -> impl Iterator<Item = u32> {
        let used = (0..).zip(self.sent.iter().zip(&self.received));
        used.filter(|(_, (sent, received))| **sent + **received > 0).map(|(rank, _)| rank)
    }

    fn push(&mut self, action: Action, after: [Option<StepId>; 2]) -> Option<StepId> {
        let id = self.steps.len() as StepId;
        self.steps.push(Step { action, after });
        Some(id)
    }

    pub(crate) fn send(&mut self, to: u32, from: Span, after: Option<StepId>) -> Option<StepId> {
        let index = self.sent[to as usize];
        self.sent[to as usize] += 1;
        self.push(Action::Send { to, index, from }, [after, None])
    }

    pub(crate) fn receive(&mut self, from: u32, to: Span, after: Option<StepId>) -> Option<StepId> {
        let index = self.received[from as usize];
        self.received[from as usize] += 1;
        self.push(Action::Receive { from, index, to }, [after, None])
    }

    /// Receives bytes and combines them in place.
    pub(crate) fn combine(
        &mut self,
        from: u32,
        into: Span,
        order: Order,
        after: Option<StepId>,
    ) -> Option<StepId> {
        self.combine_into(from, into, into, order, [after, None])
    }

    pub(crate) fn combine_into(
        &mut self,
        from: u32,
        with: Span,
        into: Span,
        order: Order,
        after: [Option<StepId>; 2],
    ) -> Option<StepId> {
        let index = self.received[from as usize];
        self.received[from as usize] += 1;
        self.push(Action::Combine { from, index, with, into, order }, after)
    }

    pub(crate) fn copy(&mut self, from: Span, to: Span, after: Option<StepId>) -> Option<StepId> {
        if from == to || from.len == 0 {
            return after;
        }
        self.push(Action::Copy { from, to }, [after, None])
    }

    pub(crate) fn divide(&mut self, of: Span, after: Option<StepId>) -> Option<StepId> {
        self.push(Action::Divide { of }, [after, None])
    }
}

/// Returns part `index` of `count` parts of a span, which end between elements and differ by at most one element.
pub(crate) fn chunk(whole: Span, element: usize, count: u32, index: u32) -> Span {
    let (elements, count, index) = (whole.len / element, count as usize, index as usize);
    let start = |index: usize| elements * index / count;
    // Multiplication could overflow only beyond 2^32 ranks.
    let (first, end) = (start(index), start(index + 1));
    whole.part(first * element, (end - first) * element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_segments_cover_a_span_once() {
        for (elements, count) in [(0, 3), (1, 3), (10, 3), (17, 4), (1_000_003, 7)] {
            let whole = Span { buffer: 2, start: 16, len: elements * 8 };
            let mut at = 16;
            for index in 0..count {
                let part = chunk(whole, 8, count, index);
                assert_eq!((part.buffer, part.start, part.len % 8), (2, at, 0));
                let mut inner = at;
                for segment in part.segments() {
                    assert!(segment.start == inner && (1..=SEGMENT_BYTES).contains(&segment.len));
                    inner += segment.len;
                }
                at += part.len;
                assert_eq!(inner, at);
            }
            assert_eq!(at, 16 + elements * 8);
        }
    }
}
