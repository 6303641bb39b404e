//! Receiving half of loss recovery, which decides which packets are accepted.

mod any_order;
mod arrival;
mod in_order;

use pathweave_policy::{MOST_WINDOW_PACKETS, Recovery};
use pathweave_units::{Duration, Time};

use crate::warm::Prefetch;
pub(crate) use arrival::{Arrival, TrimmedHeader};

/// Calls the method on whichever receiver it is.
macro_rules! both {
    ($on:expr, $kind:ident => $call:expr) => {
        match $on {
            Self::InOrder($kind) => $call,
            Self::AnyOrder($kind) => $call,
        }
    };
}

/// Receiving half, which knows the packets that have arrived.
#[derive(Debug)]
pub(crate) enum Receiver {
    InOrder(in_order::Receiver),
    AnyOrder(any_order::Receiver),
}

impl Receiver {
    /// Creates the receiver of go-back-N. `repeat`: interval after which the NACK of a gap is repeated, if it is.
    pub(super) fn in_order(repeat: Option<Duration>) -> Self {
        Receiver::InOrder(in_order::Receiver::new(repeat))
    }
    /// Creates a receiver that accepts `window` packets in any order. `proof`: number of packets behind a gap that
    /// prove it a loss to the sender, or 0.
    pub(super) fn any_order(window: u32, proof: u32) -> Self {
        Receiver::AnyOrder(any_order::Receiver::new(window, proof))
    }
    /// First PSN that has not arrived.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        both!(self, kind => kind.expected())
    }
    /// Prefetches the state of a packet.
    #[inline]
    pub(crate) fn warm(&self, psn: u64, cache: &mut impl Prefetch) {
        match self {
            Receiver::InOrder(_) => {}
            Receiver::AnyOrder(receiver) => receiver.warm(psn, cache),
        }
    }
    /// First PSN of `from..to` that has not arrived. Those beyond the window count as missing.
    pub(crate) fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.expected());
        if from < to { both!(self, kind => kind.first_missing(from, to)) } else { None }
    }
    /// First PSN beyond the window. No packet from there on is accepted or expected to be in flight.
    pub(crate) fn horizon(&self) -> u64 {
        let window = match self {
            Receiver::InOrder(_) => u64::from(MOST_WINDOW_PACKETS),
            Receiver::AnyOrder(receiver) => receiver.window(),
        };
        self.expected().saturating_add(window)
    }
    /// Distance behind the first gap at which a packet proves it lost to the sender; 0 if no packet does.
    pub(crate) fn proof_packets(&self) -> u64 {
        both!(self, kind => kind.proof_packets())
    }
    /// Number of packets from the first missing one on that can be accepted.
    pub(crate) fn window(&self) -> u64 {
        both!(self, kind => kind.window())
    }
    /// Number of packets held ahead of the gap.
    pub(crate) fn held(&self) -> u64 {
        both!(self, kind => kind.held())
    }
    /// Returns true if packets are held ahead of a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        both!(self, kind => kind.has_gap())
    }
    /// Judges a packet. The only state it changes is the time of the latest NACK.
    #[inline]
    pub(crate) fn judge(&mut self, now: Time, psn: u64) -> Arrival {
        match self {
            Receiver::InOrder(receiver) => receiver.judge(now, psn),
            Receiver::AnyOrder(receiver) => receiver.judge(psn),
        }
    }
    /// Judges the header of a trimmed packet. A receiver in order remembers one that has overtaken other packets.
    pub(crate) fn judge_header(&mut self, header: &TrimmedHeader) -> Arrival {
        match self {
            Receiver::InOrder(receiver) => receiver.judge_header(header),
            Receiver::AnyOrder(receiver) => receiver.judge(header.psn),
        }
    }
    /// Returns the header of the next packet that the receiver remembers, after a packet sent at `sent_at` was accepted. The
    /// sender is to be informed of it.
    #[inline]
    pub(crate) fn next_header(&mut self, now: Time, sent_at: Time) -> Option<TrimmedHeader> {
        match self {
            Receiver::InOrder(receiver) => receiver.next_header(now, sent_at),
            Receiver::AnyOrder(_) => None,
        }
    }
    /// Records that a packet judged `InOrder` or `Ahead` has no payload, and that the sender will be informed.
    pub(crate) fn misses(&mut self, now: Time, psn: u64) {
        match self {
            Receiver::InOrder(receiver) => receiver.misses(now, psn),
            Receiver::AnyOrder(_) => {}
        }
    }
    /// Accepts a packet that was judged `InOrder` or `Ahead`.
    #[inline]
    pub(crate) fn accept(&mut self, psn: u64) {
        both!(self, kind => kind.accept(psn));
    }
    /// Bitmap with bit i set if `psn - i` has arrived.
    #[inline]
    pub(crate) fn sack(&self, psn: u64) -> u64 {
        both!(self, kind => kind.sack(psn))
    }
}

/// Window of the receiver in packets. It drops packets beyond.
pub(super) fn window_packets(recovery: Recovery) -> u32 {
    recovery.window_packets().map_or(MOST_WINDOW_PACKETS, allowed)
}

/// Nearest number of packets that a window may have.
pub(super) fn allowed(window_packets: u32) -> u32 {
    window_packets.clamp(1, MOST_WINDOW_PACKETS)
}
