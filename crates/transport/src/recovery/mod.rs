//! Loss recovery, one file a kind. The sending half decides which packets count as lost; the receiving half
//! which packets are taken. Everything else (timers, back-off, what to send, feedback to the policy) is common.

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
use crate::warm::Warm;

/// The sender's half. Packets it declares lost are marked so in the [`Flight`] and appended to `lost`.
#[derive(Debug)]
pub(crate) enum Sender {
    SelectiveRepeat(selective_repeat::Sender),
    Other(OtherSender),
}

/// Those that keep less. Two levels, because the state of selective repeat has one value to spare that tells it from
/// others: so a queue pair finds all of it in one cache line.
#[derive(Debug)]
pub(crate) enum OtherSender {
    GoBackN(go_back_n::Sender),
    PathOrder(path_order::Sender),
    Sleek(Box<sleek::Sender>),
    Timeouts(Box<timeouts::Sender>),
}

/// Calls the method of whichever kind it is.
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
    /// Whether the other end takes packets in order only.
    pub(crate) fn lands_in_order(&self) -> bool {
        matches!(self, Sender::Other(OtherSender::GoBackN(_)))
    }

    /// Where the rings of the queue pair are, under [`Recovery::PathOrder`].
    #[inline(always)]
    pub(crate) fn rings(&self) -> Option<u32> {
        match self {
            Sender::Other(OtherSender::PathOrder(sender)) => Some(sender.group),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// The state of recovery by path order, where it is that.
    pub(crate) fn path_order(&mut self) -> Option<&mut path_order::Sender> {
        match self {
            Sender::Other(OtherSender::PathOrder(sender)) => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// The state of SLEEK, where it is that.
    #[inline]
    pub(crate) fn sleek(&mut self) -> Option<&mut sleek::Sender> {
        match self {
            Sender::Other(OtherSender::Sleek(sender)) => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// How often the retransmission timer has doubled after so many timeouts in a row.
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
    /// Whether a packet can be sent again without those after it.
    pub(crate) fn is_selective(&self) -> bool {
        !matches!(self, Sender::Other(OtherSender::GoBackN(_)))
    }
    /// Transmission number `tx` carried `psn`.
    #[inline]
    pub(crate) fn on_sent(&mut self, psn: u64, tx: u32) {
        each!(self, kind => kind.on_sent(psn, tx));
    }
    /// A packet was acknowledged. `certain`: it was this transmission that arrived, not an earlier one.
    #[inline]
    pub(crate) fn on_acked(&mut self, slot: &Slot, certain: bool) {
        each!(self, kind => kind.on_acked(slot, certain));
    }
    /// An acknowledgement has been taken in: which packets does it prove lost? True if there are any.
    #[inline]
    pub(crate) fn detect(&mut self, flight: &mut Flight, lost: &mut Vec<u64>) -> bool {
        each!(self, kind => kind.detect(flight, lost))
    }
    /// The other end refused a packet or misses one; what the message says has arrived is known already.
    pub(crate) fn on_nack(&mut self, nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_nack(nack, flight, lost));
    }
    /// The other end says that it misses these, which are in flight, and takes them for lost.
    pub(crate) fn on_missing(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_missing(psns, flight, lost));
    }
    /// The retransmission timer fired; `before`: packets sent until then count as lost.
    pub(crate) fn on_timeout(&mut self, before: Time, flight: &mut Flight, lost: &mut Vec<u64>) {
        each!(self, kind => kind.on_timeout(before, flight, lost));
    }
    /// The half that recovery by time has besides, where it is that.
    #[inline]
    pub(crate) fn timed(&mut self) -> Option<&mut selective_repeat::Sender> {
        match self {
            Sender::SelectiveRepeat(sender) if sender.is_timed() => Some(sender),
            Sender::SelectiveRepeat(_) | Sender::Other(_) => None,
        }
    }
    /// Whether losses are found by time.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        matches!(self, Sender::SelectiveRepeat(sender) if sender.is_timed())
    }
    /// When the oldest transmission still in flight left.
    pub(crate) fn oldest_in_flight(&mut self, flight: &Flight) -> Option<Time> {
        each!(self, kind => kind.oldest_in_flight(flight))
    }
}

/// The same for receivers: those of selective repeat serve any order of packets.
macro_rules! both {
    ($on:expr, $kind:ident => $call:expr) => {
        match $on {
            Self::GoBackN($kind) => $call,
            Self::SelectiveRepeat($kind) => $call,
        }
    };
}

/// The receiver's half. Knows which packets have arrived.
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
    /// Begins to load what is known of a packet.
    #[inline]
    pub(crate) fn warm(&self, psn: u64, cache: &mut impl Warm) {
        match self {
            Receiver::GoBackN(_) => {}
            Receiver::SelectiveRepeat(receiver) => receiver.warm(psn, cache),
        }
    }
    /// The first PSN of `from..to` that has not arrived. What is beyond the window counts as missing.
    pub(crate) fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let from = from.max(self.expected());
        if from < to { both!(self, kind => kind.first_missing(from, to)) } else { None }
    }
    /// The first PSN beyond the window: nothing from there on is taken, nor expected to be under way.
    pub(crate) fn horizon(&self) -> u64 {
        let window = match self {
            Receiver::GoBackN(_) => u64::from(MOST_WINDOW_PACKETS),
            Receiver::SelectiveRepeat(receiver) => receiver.window(),
        };
        self.expected().saturating_add(window)
    }
    /// How far behind the first gap a packet proves to the sender that it is a loss; 0: no packet does.
    pub(crate) fn proof_packets(&self) -> u64 {
        both!(self, kind => kind.proof_packets())
    }
    /// Packets from the first missing one on that can be taken.
    pub(crate) fn window(&self) -> u64 {
        both!(self, kind => kind.window())
    }
    /// Packets ahead of the gap that are held.
    pub(crate) fn held(&self) -> u64 {
        both!(self, kind => kind.held())
    }
    /// Whether packets ahead of a gap are held.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        both!(self, kind => kind.has_gap())
    }
    /// Judges a packet; takes note only of having complained about it.
    #[inline]
    pub(crate) fn judge(&mut self, now: Time, psn: u64) -> Arrival {
        match self {
            Receiver::GoBackN(receiver) => receiver.judge(now, psn),
            Receiver::SelectiveRepeat(receiver) => receiver.judge(psn),
        }
    }
    /// A packet that was judged `InOrder` or `Ahead` is not there, and the sender will be told so.
    pub(crate) fn misses(&mut self, now: Time, psn: u64) {
        match self {
            Receiver::GoBackN(receiver) => receiver.misses(now, psn),
            Receiver::SelectiveRepeat(_) => {}
        }
    }
    /// Takes a packet that was judged `InOrder` or `Ahead`.
    #[inline]
    pub(crate) fn accept(&mut self, psn: u64) {
        both!(self, kind => kind.accept(psn));
    }
    /// Bit i: `psn - i` has arrived.
    #[inline]
    pub(crate) fn sack(&self, psn: u64) -> u64 {
        both!(self, kind => kind.sack(psn))
    }
}

pub(crate) use arrival::Arrival;
pub(crate) use timeouts::timer;

/// The receiver's window, packets: it drops further ones.
fn receiver_window(recovery: Recovery) -> u32 {
    recovery.window_packets().map_or(MOST_WINDOW_PACKETS, window_of)
}

/// The sender's window, packets: the receiver's, unless the scheme sends what is dropped there.
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
