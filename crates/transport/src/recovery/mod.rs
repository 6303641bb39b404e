//! Loss recovery, one file for each kind. The sending half decides which packets count as lost, the receiving half
//! which packets are accepted. Timers, back-off, the choice of the next packet and feedback to the policy are common
//! to all kinds.

mod arrival;
mod go_back_n;
pub(crate) mod path_order;
mod refused;
mod selective_repeat;
mod sleek;
pub(crate) mod timed;
mod timeouts;
pub(crate) mod timing;

use alloc::boxed::Box;
use alloc::vec::Vec;

use pathweave_policy::{MOST_WINDOW_PACKETS, Recovery};
use pathweave_units::Time;
use pathweave_wire::Nack;

use crate::send::flight::{Flight, Slot};
use crate::warm::Prefetch;

/// Sending half. Packets that it declares lost are marked in the [`Flight`] and appended to `lost`.
#[derive(Debug)]
pub(crate) enum Sender {
    SelectiveRepeat(selective_repeat::Sender),
    Other(OtherSender),
}

/// Kinds with less state. The enum has two levels so that [`Sender`] fits one cache line: the state of selective
/// repeat has a niche that encodes the outer tag.
#[derive(Debug)]
pub(crate) enum OtherSender {
    GoBackN(go_back_n::Sender),
    PathOrder(path_order::Sender),
    Sleek(Box<sleek::Sender>),
    Timeouts(Box<timeouts::Sender>),
}

/// Calls the method on whichever variant it is.
macro_rules! each {
    ($on:expr, $kind:ident => $call:expr) => {
        match $on {
            Self::SelectiveRepeat($kind) => $call,
            Self::Other(OtherSender::GoBackN($kind)) => $call,
            Self::Other(OtherSender::PathOrder($kind)) => $call,
            Self::Other(OtherSender::Sleek($kind)) => $call,
            Self::Other(OtherSender::Timeouts($kind)) => $call,
        }
    };
}

impl Sender {
    /// Returns true if the receiver accepts packets in order only.
    pub(crate) fn lands_in_order(&self) -> bool {
        matches!(self, Sender::Other(OtherSender::GoBackN(_)))
    }

    /// Index of the group of rings of the queue pair, under [`Recovery::PathOrder`].
    #[inline(always)]
    pub(crate) fn rings(&self) -> Option<u32> {
        match self {
            Sender::Other(OtherSender::PathOrder(sender)) => Some(sender.group),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// State of recovery by path order, if this is it.
    pub(crate) fn path_order(&mut self) -> Option<&mut path_order::Sender> {
        match self {
            Sender::Other(OtherSender::PathOrder(sender)) => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// State of SLEEK, if this is it.
    #[inline]
    pub(crate) fn sleek(&mut self) -> Option<&mut sleek::Sender> {
        match self {
            Sender::Other(OtherSender::Sleek(sender)) => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// Number of doublings of the retransmission timer after `timeouts` successive timeouts.
    pub(crate) fn doublings(&self, timeouts: u32) -> u32 {
        match self {
            Sender::Other(OtherSender::Timeouts(sender)) => sender.doublings(timeouts),
            _ => timeouts,
        }
    }
    pub(crate) fn new(recovery: Recovery) -> Self {
        match recovery {
            Recovery::GoBackN | Recovery::GoBackNRepeated { .. } => {
                Sender::Other(OtherSender::GoBackN(go_back_n::Sender))
            }
            Recovery::SelectiveRepeat { reorder_packets, .. } => {
                Sender::SelectiveRepeat(selective_repeat::Sender::new(reorder_packets))
            }
            Recovery::Timed { reorder_packets, .. } => {
                Sender::SelectiveRepeat(selective_repeat::Sender::timed(reorder_packets))
            }
            Recovery::PathOrder { .. } => Sender::Other(OtherSender::PathOrder(path_order::Sender::new())),
            Recovery::Timeouts { alike, .. } => {
                Sender::Other(OtherSender::Timeouts(Box::new(timeouts::Sender::new(alike))))
            }
            Recovery::Sleek { .. } => {
                Sender::Other(OtherSender::Sleek(Box::new(sleek::Sender::new(recovery))))
            }
        }
    }
    /// Returns true if a packet can be retransmitted without those after it.
    pub(crate) fn is_selective(&self) -> bool {
        !matches!(self, Sender::Other(OtherSender::GoBackN(_)))
    }
    /// Records that transmission number `tx` carried `psn`.
    #[inline]
    pub(crate) fn on_sent(&mut self, psn: u64, tx: u32) {
        each!(self, kind => kind.on_sent(psn, tx));
    }
    /// Records an acknowledged packet. `certain`: this very transmission has arrived, not an earlier one.
    #[inline]
    pub(crate) fn on_acked(&mut self, slot: &Slot, certain: bool) {
        each!(self, kind => kind.on_acked(slot, certain));
    }
    /// Declares packets lost that an acknowledgement proves lost. Returns true if there are any.
    #[inline]
    pub(crate) fn detect(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) -> bool {
        each!(self, kind => kind.detect(flight, lost))
    }
    /// Handles a packet that the peer refused or misses. Arrivals that the message reports have been processed
    /// before.
    pub(crate) fn on_nack(&mut self, nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_nack(nack, flight, lost));
    }
    /// Handles packets in flight that the peer reports as lost.
    pub(crate) fn on_missing(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_missing(psns, flight, lost));
    }
    /// Handles the retransmission timer. Packets sent at `before` or earlier count as lost.
    pub(crate) fn on_timeout(&mut self, before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_timeout(before, flight, lost));
    }
    /// State of recovery by time, if this is it.
    #[inline]
    pub(crate) fn timed(&mut self) -> Option<&mut selective_repeat::Sender> {
        match self {
            Sender::SelectiveRepeat(sender) if sender.is_timed() => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// Returns true if losses are found by time.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self, Sender::SelectiveRepeat(sender) if sender.is_timed())
    }
    /// Departure of the oldest transmission in flight.
    pub(crate) fn oldest_in_flight(&mut self, flight: &Flight) -> Option<Time> {
        each!(self, kind => kind.oldest_in_flight(flight))
    }
}

/// Calls the method on whichever receiver it is. That of selective repeat serves all kinds except go-back-N.
macro_rules! both {
    ($on:expr, $kind:ident => $call:expr) => {
        match $on {
            Self::GoBackN($kind) => $call,
            Self::SelectiveRepeat($kind) => $call,
        }
    };
}

/// Receiving half, which knows the packets that have arrived.
#[derive(Debug)]
pub(crate) enum Receiver {
    GoBackN(go_back_n::Receiver),
    SelectiveRepeat(selective_repeat::Receiver),
}

impl Receiver {
    pub(crate) fn new(recovery: Recovery) -> Self {
        let proof = match recovery {
            Recovery::GoBackN => return Receiver::GoBackN(go_back_n::Receiver::new(None)),
            Recovery::GoBackNRepeated { repeat } => {
                return Receiver::GoBackN(go_back_n::Receiver::new(Some(repeat)));
            }
            Recovery::SelectiveRepeat { reorder_packets, .. } | Recovery::Timed { reorder_packets, .. } => {
                reorder_packets
            }
            Recovery::PathOrder { .. } | Recovery::Sleek { .. } | Recovery::Timeouts { .. } => 0,
        };
        Receiver::SelectiveRepeat(selective_repeat::Receiver::new(receiver_window(recovery), proof))
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
            Receiver::GoBackN(_) => {}
            Receiver::SelectiveRepeat(receiver) => receiver.warm(psn, cache),
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
            Receiver::GoBackN(_) => u64::from(MOST_WINDOW_PACKETS),
            Receiver::SelectiveRepeat(receiver) => receiver.window(),
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
            Receiver::GoBackN(receiver) => receiver.judge(now, psn),
            Receiver::SelectiveRepeat(receiver) => receiver.judge(psn),
        }
    }
    /// Records that a packet judged `InOrder` or `Ahead` has no payload, and that the sender will be informed.
    pub(crate) fn misses(&mut self, now: Time, psn: u64) {
        match self {
            Receiver::GoBackN(receiver) => receiver.misses(now, psn),
            Receiver::SelectiveRepeat(_) => {}
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

pub(crate) use arrival::Arrival;
pub(crate) use timeouts::timer;

/// Window of the receiver in packets. It drops packets beyond.
fn receiver_window(recovery: Recovery) -> u32 {
    recovery.window_packets().map_or(MOST_WINDOW_PACKETS, window_of)
}

/// Window of the sender in packets: that of the receiver, unless the scheme sends packets that the receiver will
/// drop.
pub(crate) fn sender_window(recovery: Recovery) -> u32 {
    recovery.sender_window_packets().map_or_else(|| receiver_window(recovery), window_of)
}

fn window_of(window_packets: u32) -> u32 {
    window_packets.clamp(1, MOST_WINDOW_PACKETS)
}

#[cfg(test)]
mod tests {
    use pathweave_wire::NackReason;

    use super::*;

    #[test]
    fn a_sender_may_send_what_the_receiver_drops_and_names() {
        let of = |sender_window_packets| Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(108),
            sender_window_packets,
        };
        assert_eq!([of(None), of(Some(4_096))].map(sender_window), [108, 4_096]);
        let mut receiver = Receiver::new(of(Some(4_096)));
        assert_eq!(receiver.judge(Time::ZERO, 107), Arrival::Ahead);
        let refused = Arrival::Refused { reason: NackReason::BeyondWindow, tell: true };
        assert_eq!(receiver.judge(Time::ZERO, 108), refused);
    }
}
