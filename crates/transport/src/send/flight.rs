//! State of each packet between the oldest unacknowledged one and the newest sent one.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use pathweave_policy::Memo;
use pathweave_units::{PathId, Time};

use super::echoes::{Departure, Echo, Unechoed};
use crate::bits::BitRing;
use crate::warm::Prefetch;

/// State of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Sent, and neither acknowledged nor declared lost.
    InFlight,
    /// Declared lost, to be retransmitted.
    Lost,
    /// Arrived at the peer.
    Acked,
}

/// State of a packet's latest transmission: half a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Slot {
    pub(crate) sent_at: Time,
    pub(crate) memo: Memo,
    /// Number of the transmission, counted over all packets (modulo 2^32).
    pub(crate) tx: u32,
    pub(crate) path: PathId,
    pub(crate) wire_bytes: u16,
    pub(crate) state: State,
    pub(crate) retransmitted: bool,
    /// Result for the next echo of this transmission.
    next_echo: Echo,
}

/// Bytes kept for each packet.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();

const _: () = assert!(SLOT_BYTES == 32);

const EMPTY: Slot = Slot {
    sent_at: Time::ZERO,
    memo: Memo(0),
    tx: 0,
    path: PathId(0),
    wire_bytes: 0,
    state: State::Acked,
    retransmitted: false,
    next_echo: Echo::Again,
};

/// Initial number of slots of the ring, which doubles as the window opens and never shrinks. Few, because most of
/// many queue pairs send no more than a small message.
const FIRST_SLOTS: usize = 4;

/// Packets from `una` (the oldest unacknowledged one) up to `next` (the next new one), in a ring indexed by PSN.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flight {
    una: u64,
    next: u64,
    inflight_packets: u32,
    lost_packets: u32,
    /// Bitmap of [`State::Acked`], which shows in one step what an acknowledgement adds.
    // The tag of this enum has the largest niche in a queue pair, so the compiler encodes in it if a slot of the slab
    // is in use. It must stay in the first cache line of the queue pair, so that the test for that touches no further
    // one.
    acked: BitRing,
    inflight_bytes: u64,
    slots: Box<[Slot]>,
    next_tx: u32,
    /// Number of packets, from the oldest missing one on, that the receiver accepts.
    window: u32,
    /// Allocated at the first loss, copy or question.
    rare: Option<Box<Rare>>,
}

/// State that few queue pairs need, kept apart from fields that every packet touches.
#[derive(Debug, Default)]
struct Rare {
    /// PSNs to retransmit, in this order. Some may have been acknowledged since.
    resend: VecDeque<u64>,
    unechoed: Unechoed,
}

impl Flight {
    /// `window`: number of packets, from the oldest missing one on, that the receiver accepts.
    pub(crate) fn new(window: u32) -> Self {
        Flight {
            una: 0,
            next: 0,
            inflight_packets: 0,
            lost_packets: 0,
            inflight_bytes: 0,
            slots: Box::default(),
            acked: BitRing::new(),
            next_tx: 0,
            window,
            rare: None,
        }
    }

    /// Prefetches the state of a packet.
    #[inline]
    pub(crate) fn warm(&self, psn: u64, cache: &mut impl Prefetch) {
        if let Some(slot) = self.slots.get(psn as usize & self.slots.len().wrapping_sub(1)) {
            cache.warm(slot, 0);
        }
        self.acked.warm(psn, cache);
    }

    /// Oldest unacknowledged PSN.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }
    /// PSN of the next packet never sent.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }
    /// Number of packets, from the oldest missing one on, that the receiver accepts.
    #[inline]
    pub(crate) fn window(&self) -> u32 {
        self.window
    }
    #[inline]
    pub(crate) fn inflight_packets(&self) -> u32 {
        self.inflight_packets
    }
    /// Number of full packets with as many bytes, rounded up, but at most the number of packets. Windows in packets
    /// count this number, so that short packets use them in proportion to their size.
    #[inline]
    pub(crate) fn full_packets(&self, mtu_payload: u16) -> u32 {
        let (packets, full) = (self.inflight_packets, u64::from(mtu_payload));
        if self.inflight_bytes + full > u64::from(packets) * full {
            return packets;
        }
        self.inflight_bytes.div_ceil(full) as u32
    }
    #[inline]
    pub(crate) fn inflight_bytes(&self) -> u64 {
        self.inflight_bytes
    }
    /// Number of packets declared lost and not yet retransmitted.
    #[inline]
    pub(crate) fn lost_packets(&self) -> u32 {
        self.lost_packets
    }

    #[inline]
    fn index(&self, psn: u64) -> usize {
        psn as usize & (self.slots.len() - 1)
    }
    /// Slot of a packet in `una..next`.
    #[inline]
    pub(crate) fn slot(&self, psn: u64) -> &Slot {
        debug_assert!(self.contains(psn));
        &self.slots[self.index(psn)]
    }
    #[inline]
    pub(crate) fn contains(&self, psn: u64) -> bool {
        psn >= self.una && psn < self.next
    }
    /// Returns true if transmission `tx` is the latest of `psn` and still in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self, psn: u64, tx: u32) -> bool {
        self.contains(psn) && {
            let slot = self.slot(psn);
            slot.state == State::InFlight && slot.tx == tx
        }
    }

    /// Returns true if the latest transmission of `psn` is the one that left at `sent_at`, and is still in flight.
    #[inline]
    pub(crate) fn is_outstanding(&self, psn: u64, sent_at: Time) -> bool {
        self.contains(psn) && {
            let slot = self.slot(psn);
            slot.state == State::InFlight && slot.sent_at == sent_at
        }
    }

    /// Next packet to retransmit.
    #[inline]
    pub(crate) fn first_to_resend(&mut self) -> Option<u64> {
        if self.lost_packets == 0 { None } else { Some(self.next_lost()) }
    }

    #[cold]
    fn next_lost(&mut self) -> u64 {
        while let Some(&psn) = self.resend().front() {
            if self.contains(psn) && self.slot(psn).state == State::Lost {
                return psn;
            }
            self.resend().pop_front();
        }
        unreachable!("{} lost packets, none of them in the queue", self.lost_packets)
    }

    fn resend(&mut self) -> &mut VecDeque<u64> {
        &mut self.rare.get_or_insert_default().resend
    }

    /// Records the departure of a packet that is not tracked as in flight, and may be echoed.
    pub(crate) fn also_left(&mut self, what: Departure, at: Time) {
        self.rare.get_or_insert_default().unechoed.left(what, at);
    }

    /// Records an echo of such a departure.
    pub(crate) fn also_echoed(&mut self, what: Departure, at: Time) -> Echo {
        self.rare.as_mut().map_or(Echo::Again, |rare| rare.unechoed.echoed(what, at))
    }

    /// Records the echo of the latest transmission of a packet that has just been acknowledged.
    #[inline]
    pub(crate) fn latest_echoed(&mut self, psn: u64) {
        let index = self.index(psn);
        self.slots[index].next_echo = Echo::Again;
    }

    /// Records an echo of the transmission of a packet that left at `sent_at` on `path`. A packet that left longer
    /// ago than a window is unknown, unless it was declared lost.
    #[cold]
    pub(crate) fn echoed(&mut self, psn: u64, sent_at: Time, path: PathId) -> Echo {
        let echo = self.also_echoed(Departure::Packet(psn), sent_at);
        if self.slots_kept().contains(&psn) {
            let index = self.index(psn);
            let slot = &mut self.slots[index];
            // A switch on the path may have written a later stamp.
            if slot.path == path && slot.sent_at <= sent_at {
                let latest = core::mem::replace(&mut slot.next_echo, Echo::Again);
                return if echo == Echo::First { echo } else { latest };
            }
        }
        echo
    }

    /// Packets whose slots are in the ring, including acknowledged ones.
    fn slots_kept(&self) -> Range<u64> {
        self.next.saturating_sub(self.slots.len() as u64)..self.next
    }

    /// Records that a lost packet was retransmitted or has arrived after all.
    #[cold]
    fn found(&mut self) {
        self.lost_packets -= 1;
        if self.lost_packets == 0 {
            self.resend().clear();
        }
    }

    /// Records that a packet has left: `next`, or the one that [`Flight::first_to_resend`] returned. Returns the
    /// number of the transmission.
    #[inline(always)]
    pub(crate) fn sent(&mut self, psn: u64, sent_at: Time, path: PathId, wire_bytes: u32, memo: Memo) -> u32 {
        let retransmitted = psn != self.next;
        if retransmitted {
            debug_assert_eq!(self.slot(psn).state, State::Lost);
            let first = self.resend().pop_front();
            debug_assert_eq!(first, Some(psn));
            self.found();
        } else {
            if self.next - self.una >= self.slots.len() as u64 {
                self.grow();
            }
            self.next += 1;
        }
        let tx = self.next_tx;
        self.next_tx = tx.wrapping_add(1);
        self.inflight_packets += 1;
        self.inflight_bytes += u64::from(wire_bytes);
        let index = self.index(psn);
        let wire_bytes =
            u16::try_from(wire_bytes).expect("a packet has at most MAX_MTU_PAYLOAD bytes and its headers");
        self.slots[index] = Slot {
            sent_at,
            memo,
            tx,
            path,
            wire_bytes,
            state: State::InFlight,
            retransmitted,
            next_echo: Echo::First,
        };
        tx
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![EMPTY; (self.slots.len() * 2).max(FIRST_SLOTS)].into_boxed_slice();
        let mut acked = BitRing::with_room_for(slots.len() as u64);
        let mask = slots.len() - 1;
        for psn in self.slots_kept() {
            let slot = self.slots[self.index(psn)];
            if psn >= self.una && slot.state == State::Acked {
                acked.set(psn);
            }
            slots[psn as usize & mask] = slot;
        }
        (self.slots, self.acked) = (slots, acked);
    }

    /// Returns the packets of `sack` (bit i: `psn - i`) in `una..next` that are not yet known to have arrived, as a
    /// bitmap of the same form.
    #[inline]
    pub(crate) fn news(&self, psn: u64, sack: u64) -> u64 {
        if !self.contains(psn) {
            return 0;
        }
        let above = psn - self.una;
        let known_range = if above >= 63 { u64::MAX } else { (1 << (above + 1)) - 1 };
        sack & known_range & !self.acked.down_from(psn)
    }

    /// Records the arrival of a packet at the peer. Returns its slot if the packet was in flight. The policy has been
    /// informed before of one that was declared lost.
    #[inline]
    pub(crate) fn ack(&mut self, psn: u64) -> Option<Slot> {
        let index = self.index(psn);
        let slot = &mut self.slots[index];
        match slot.state {
            State::Acked => None,
            State::Lost => {
                slot.state = State::Acked;
                self.acked.set(psn);
                self.found();
                None
            }
            State::InFlight => {
                slot.state = State::Acked;
                self.inflight_packets -= 1;
                self.inflight_bytes -= u64::from(slot.wire_bytes);
                let slot = *slot;
                self.acked.set(psn);
                Some(slot)
            }
        }
    }

    /// First packet of `from..to` that is not known to have arrived.
    #[inline]
    pub(crate) fn first_missing(&self, from: u64, to: u64) -> Option<u64> {
        let psn = from + self.acked.run_of_ones(from, to - from);
        (psn < to).then_some(psn)
    }

    /// Moves `una` to `cumulative`. All packets below it must have been through [`Flight::ack`].
    #[inline]
    pub(crate) fn advance(&mut self, cumulative: u64) {
        debug_assert!(self.una <= cumulative && cumulative <= self.next);
        if cumulative == self.una + 1 {
            self.acked.clear(self.una);
        } else {
            self.acked.clear_range(self.una, cumulative);
        }
        self.una = cumulative;
    }

    /// Moves `una` over packets that were acknowledged selectively. An honest receiver has moved its cumulative
    /// acknowledgement too.
    #[inline]
    pub(crate) fn advance_over_acked(&mut self) {
        if self.una < self.next && self.acked.get(self.una) {
            let run = self.acked.run_of_ones(self.una, self.next - self.una);
            self.advance(self.una + run);
        }
    }

    /// Declares a packet in flight lost, to be retransmitted after those lost before.
    pub(crate) fn lose(&mut self, psn: u64) {
        let index = self.index(psn);
        let slot = &mut self.slots[index];
        debug_assert_eq!(slot.state, State::InFlight);
        slot.state = State::Lost;
        let sent_at = slot.sent_at;
        self.inflight_packets -= 1;
        self.inflight_bytes -= u64::from(slot.wire_bytes);
        self.lost_packets += 1;
        self.resend().push_back(psn);
        self.also_left(Departure::Packet(psn), sent_at);
    }

    /// Returns true if the packet is in flight.
    pub(crate) fn can_lose(&self, psn: u64) -> bool {
        self.contains(psn) && self.slot(psn).state == State::InFlight
    }

    /// Queues everything unacknowledged for retransmission, in order. Packets in flight are declared lost and
    /// appended to `lost`.
    pub(crate) fn go_back(&mut self, lost: &mut Vec<u64>) {
        self.resend().clear();
        for psn in self.una..self.next {
            match self.slot(psn).state {
                State::Acked => {}
                State::Lost => self.resend().push_back(psn),
                State::InFlight => {
                    self.lose(psn);
                    lost.push(psn);
                }
            }
        }
    }

    /// Packets in flight.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = (u64, &Slot)> {
        let slots = (self.una..self.next).map(|psn| (psn, self.slot(psn)));
        slots.filter(|(_, slot)| slot.state == State::InFlight)
    }

    /// Collects the paths of the packets in flight, each once and sorted.
    pub(crate) fn paths(&self, paths: &mut Vec<PathId>) {
        paths.clear();
        paths.extend(self.in_flight().map(|(_, slot)| slot.path));
        paths.sort_unstable();
        paths.dedup();
    }

    /// Paths of the packets below the oldest unacknowledged one, newest first, as far as they are still in the ring.
    pub(crate) fn acked_paths(&self) -> impl Iterator<Item = PathId> {
        (self.slots_kept().start..self.una).rev().map(|psn| self.slots[self.index(psn)].path)
    }

    /// Drops all packets and releases memory.
    pub(crate) fn abandon(&mut self) {
        let (next, next_tx) = (self.next, self.next_tx);
        *self = Flight { una: next, next, next_tx, ..Flight::new(self.window) };
    }

    /// Panics unless the totals agree with the slots.
    pub(crate) fn assert_invariants(&self) {
        let (mut packets, mut bytes, mut lost) = (0, 0, 0);
        for psn in self.una..self.next {
            let slot = self.slot(psn);
            match slot.state {
                State::InFlight => {
                    packets += 1;
                    bytes += u64::from(slot.wire_bytes);
                }
                State::Lost => {
                    lost += 1;
                    assert_eq!(
                        self.rare.iter().flat_map(|rare| rare.resend.iter()).filter(|&&p| p == psn).count(),
                        1,
                        "lost PSN {psn} in the queue"
                    );
                }
                State::Acked => {}
            }
            assert_eq!(self.acked.get(psn), slot.state == State::Acked, "bit of PSN {psn}");
        }
        assert_eq!(self.inflight_packets, packets, "packets in flight");
        assert_eq!(self.inflight_bytes, bytes, "bytes in flight");
        assert_eq!(self.lost_packets, lost, "packets lost");
        if self.una < self.next {
            assert_ne!(self.slot(self.una).state, State::Acked, "the oldest unacknowledged packet");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight_of(packets: u64) -> Flight {
        let mut flight = Flight::new(1 << 20);
        for psn in 0..packets {
            flight.sent(psn, Time::from_ns(psn), PathId(0), 100, Memo(psn));
        }
        flight
    }

    #[test]
    fn an_acknowledgement_adds_only_what_is_new() {
        let mut flight = flight_of(40);
        flight.ack(30);
        assert_eq!(flight.news(31, 0b11), 0b01);
        assert_eq!(flight.news(31, u64::MAX), ((1 << 32) - 1) & !0b10);
        assert_eq!(flight.news(40, u64::MAX), 0);
        flight.ack(31);
        assert_eq!(flight.news(31, 0b11), 0);
        assert_eq!((flight.inflight_packets(), flight.inflight_bytes()), (38, 3_800));
        flight.assert_invariants();
    }

    /// Packet 1 is reported by another acknowledgement; packet 0 is lost and retransmitted at 9 ns. Each departure is
    /// echoed once, also after the ring has grown, and none after it has left the ring.
    #[test]
    fn a_departure_is_echoed_once() {
        let (mut flight, path) = (flight_of(2), PathId(0));
        let at = Time::from_ns;
        flight.ack(1);
        flight.lose(0);
        flight.sent(0, at(9), path, 100, Memo(0));
        (2..8).for_each(|psn| _ = flight.sent(psn, at(psn + 10), path, 100, Memo(psn)));
        flight.ack(0);
        flight.advance_over_acked();
        for (psn, sent_at) in [(1, at(1)), (0, Time::ZERO), (0, at(9))] {
            let echoes = [(); 2].map(|()| flight.echoed(psn, sent_at, path));
            assert_eq!(echoes, [Echo::First, Echo::Again], "{psn} of {sent_at}");
        }
        flight.latest_echoed(2);
        assert_eq!(flight.echoed(2, at(12), path), Echo::Again);
        assert_eq!(flight.echoed(5, at(15), PathId(1)), Echo::Again, "of another path");
        (8..12).for_each(|psn| {
            flight.ack(psn - 6);
            flight.advance_over_acked();
            flight.sent(psn, at(psn + 10), path, 100, Memo(psn));
        });
        assert_eq!([3, 4].map(|psn| flight.echoed(psn, at(psn + 10), path)), [Echo::Again, Echo::First]);
    }

    #[test]
    fn short_packets_count_by_what_they_weigh() {
        let full_packets = |sizes: &[u32]| {
            let mut flight = Flight::new(1 << 20);
            for (psn, bytes) in (0..).zip(sizes) {
                flight.sent(psn, Time::ZERO, PathId(0), *bytes, Memo(0));
            }
            flight.full_packets(4_096)
        };
        // Full packets count one each, whatever their headers, also with a short one behind them.
        assert_eq!([full_packets(&[]), full_packets(&[4_150]), full_packets(&[4_166; 9])], [0, 1, 9]);
        assert_eq!([full_packets(&[4_166, 4_150, 86]), full_packets(&[86])], [3, 1]);
        // 40 of 214 bytes are 8,560.
        assert_eq!([full_packets(&[214; 19]), full_packets(&[214; 40])], [1, 3]);
    }

    #[test]
    fn the_ring_keeps_its_packets_as_it_grows_and_wraps() {
        let mut flight = flight_of(10);
        (0..9).for_each(|psn| assert_eq!(flight.ack(psn).unwrap().memo, Memo(psn)));
        flight.advance(9);
        (10..200).for_each(|psn| {
            flight.sent(psn, Time::from_ns(psn), PathId(0), 100, Memo(psn));
        });
        flight.assert_invariants();
        (9..200).for_each(|psn| assert_eq!(flight.ack(psn).unwrap().memo, Memo(psn)));
        flight.advance(200);
        assert_eq!(flight.acked_paths().count(), 200, "as many as the ring has room for, or as there were");
        flight.sent(200, Time::ZERO, PathId(7), 100, Memo(0));
        flight.ack(200);
        flight.advance(201);
        assert_eq!(flight.acked_paths().take(2).collect::<Vec<_>>(), [PathId(7), PathId(0)]);
        assert_eq!((flight.inflight_packets(), flight.inflight_bytes()), (0, 0));
        flight.assert_invariants();
    }

    #[test]
    fn a_lost_packet_acknowledged_late_is_not_sent_again() {
        let mut flight = flight_of(3);
        flight.lose(0);
        flight.lose(1);
        assert!(flight.ack(0).is_none());
        assert_eq!(flight.first_to_resend(), Some(1));
        let tx = flight.sent(1, Time::from_us(1), PathId(0), 100, Memo(7));
        assert!(flight.is_in_flight(1, tx) && !flight.is_in_flight(1, 1));
        flight.assert_invariants_before_advance();
        assert_eq!(flight.first_to_resend(), None);
    }

    #[test]
    fn going_back_sends_in_order_again() {
        let mut flight = flight_of(4);
        let mut lost = Vec::new();
        flight.go_back(&mut lost);
        assert_eq!(lost, [0, 1, 2, 3]);
        flight.sent(0, Time::from_us(1), PathId(0), 100, Memo(0));
        lost.clear();
        flight.go_back(&mut lost);
        assert_eq!(lost, [0]);
        let order: Vec<u64> = (0..4)
            .map(|_| {
                let psn = flight.first_to_resend().unwrap();
                flight.sent(psn, Time::from_us(2), PathId(0), 100, Memo(0));
                psn
            })
            .collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    impl Flight {
        fn assert_invariants_before_advance(&self) {
            assert_eq!(u64::from(self.inflight_packets + self.lost_packets), 2);
        }
    }
}
