//! Cache lines of an endpoint and its queue pairs that each kind of call touches, for a driver that prefetches them.

use core::mem::offset_of;

use pathweave_policy::Policy;
use pathweave_wire::{Body, Segment};

use crate::endpoint::Endpoint;
use crate::line::LINE_BYTES;
use crate::qp::Qp;
use crate::slab::Slot;
use crate::warm::Prefetch;

const fn line(offset: usize) -> usize {
    offset / LINE_BYTES
}

/// Indices of the cache lines that each kind of call touches.
impl<P> Qp<P> {
    /// Lines for sending a packet.
    const TO_SEND: [usize; 8] = [
        0,
        1,
        line(offset_of!(Self, send.recovery)),
        line(offset_of!(Self, send.sending)),
        line(offset_of!(Self, counters.sent_packets)),
        line(offset_of!(Self, rng)),
        line(offset_of!(Self, policy)),
        line(offset_of!(Self, policy)) + 1,
    ];
    /// Lines for receiving a data packet.
    const DATA: [usize; 7] = [
        0,
        line(offset_of!(Self, counters.data_received)),
        line(offset_of!(Self, counters.data_received)) + 1,
        line(offset_of!(Self, receive.next_msn)),
        line(offset_of!(Self, receive.recovery)),
        line(offset_of!(Self, receive.reorder)),
        line(offset_of!(Self, receive.cnp)),
    ];
    /// Lines for receiving any other packet.
    const ANSWER: [usize; 5] = [
        0,
        1,
        line(offset_of!(Self, send.recovery)),
        line(offset_of!(Self, counters.acks_received)),
        line(offset_of!(Self, policy)),
    ];
}

impl<P: Policy> Endpoint<P> {
    /// Prefetches the lines that every call touches first.
    #[inline]
    pub fn warm_endpoint(&self, cache: &mut impl Prefetch) {
        (0..Self::HOT_LINES).for_each(|line| cache.warm(self, line));
    }

    /// Prefetches the queue pair that an arriving packet will touch, once [`Endpoint::warm_endpoint`] has taken
    /// effect.
    #[inline]
    pub fn warm_packet(&self, segment: &Segment, cache: &mut impl Prefetch) {
        if let Some(place) = self.slot_of(segment.dst_qp) {
            match segment.body {
                Body::Data(_) => Qp::<P>::DATA.iter().for_each(|&line| cache.warm(place, line)),
                _ => Qp::<P>::ANSWER.iter().for_each(|&line| cache.warm(place, line)),
            }
        }
    }

    /// Prefetches the state outside the queue pair that the packet will touch, once [`Endpoint::warm_packet`] has
    /// taken effect.
    #[inline]
    pub fn prefetch_packet_state(&self, segment: &Segment, cache: &mut impl Prefetch) {
        let Some(Slot::Taken(qp)) = self.slot_of(segment.dst_qp) else { return };
        match &segment.body {
            Body::Data(data) => qp.receive.recovery.warm(data.psn, cache),
            Body::Ack(ack) => qp.send.flight.warm(ack.psn, cache),
            _ => {}
        }
    }

    /// Prefetches the state outside the queue pair that the next data packet to be sent will touch, once
    /// [`Endpoint::warm_next`] has taken effect.
    #[inline]
    pub fn warm_next_depths(&self, cache: &mut impl Prefetch) {
        if let Some(Slot::Taken(qp)) = self.next_ready().and_then(|qp| self.slot_of(qp)) {
            qp.send.flight.warm(qp.send.flight.next(), cache);
        }
    }

    /// Prefetches the queue pair of the next data packet to be sent, once [`Endpoint::warm_endpoint`] has taken
    /// effect.
    #[inline]
    pub fn warm_next(&self, cache: &mut impl Prefetch) {
        if let Some(place) = self.next_ready().and_then(|qp| self.slot_of(qp)) {
            Qp::<P>::TO_SEND.iter().for_each(|&line| cache.warm(place, line));
        }
    }
}
