//! One direction of a cable: what is between a transmitter and the far end.

use pathweave_units::Time;

use crate::packet::{Header, LOST};
use crate::port::PortId;
use crate::ring::Ring;

/// The packets on their way into a port, in order of arrival. Kept at the receiving end, so that a switch finds all it
/// has to look at in a row.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Link {
    packets: Ring<Header>,
    /// When the first of them arrives; [`Time::MAX`] when there is none.
    next: Time,
    /// When the last packet put on it arrives, or arrived.
    last: Time,
    /// Random loss or corruption is switched on.
    pub(crate) impaired: bool,
}

impl Link {
    pub(crate) fn new() -> Self {
        Link { packets: Ring::new(), next: Time::MAX, last: Time::ZERO, impaired: false }
    }

    /// Begins to load the next packets to arrive.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.packets.prefetch_first::<3>();
    }

    /// When the first packet arrives; [`Time::MAX`] when there is none.
    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        self.next
    }

    /// The packets on it, in order.
    #[inline(always)]
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Header> {
        self.packets.iter()
    }

    /// Begins to load the place of the packet that comes next.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        self.packets.prefetch_end();
    }

    /// Puts a packet on the link into port `ingress`, to arrive at `arrival` or together with the packet before it: a
    /// link whose delay has just shrunk still delivers in order.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: &Header, ingress: PortId, arrival: Time) {
        let arrival = arrival.max(self.last);
        self.last = arrival;
        self.next = self.next.min(arrival);
        self.packets.push(header.on_link(ingress, arrival));
    }

    /// Takes the first packet if it arrives before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Header> {
        if self.next >= end {
            return None;
        }
        let header = self.packets.pop();
        self.next = self.packets.front().map_or(Time::MAX, Header::arrival);
        Some(header)
    }

    /// The cable is cut: what is on it does not arrive.
    pub(crate) fn lose_all(&mut self) {
        self.packets.for_each_mut(|header| header.set(LOST));
    }
}
