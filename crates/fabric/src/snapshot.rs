//! Positions of packets at an instant, for observers.

use crate::fabric::Fabric;
use crate::packet::{Header, LOST, PFC, PortId};
use crate::port::DOWN;

/// The reason why a packet is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Other packets are before it in the queue.
    Queued,
    /// PFC has paused the packet's class.
    Paused,
}

/// The reason why a port sends no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The link of the port is down.
    Down,
    /// PFC has paused a data class.
    Paused,
}

fn has_content(header: &Header) -> bool {
    header.has_content() && !header.is_message()
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    /// Iterates over the packets queued at a port, each with the reason. The port must have been settled.
    pub fn waiting_at(&self, port: PortId) -> impl Iterator<Item = (&Header, &P, Held)> {
        let at = &self.transit.lines.ports[port as usize];
        let queues = at.queues.iter().enumerate().flat_map(|(class, queue)| {
            let held = if at.paused >> class & 1 != 0 { Held::Paused } else { Held::Queued };
            queue.iter().map(move |header| (header, held))
        });
        let ours = queues.filter(|(header, _)| has_content(header));
        ours.map(|(header, held)| (header, self.transit.contents.get(header), held))
    }

    /// Iterates over the packets on the link into a port, without those that will not arrive.
    pub fn in_flight_to(&self, port: PortId) -> impl Iterator<Item = (&Header, &P)> {
        let packets = self.transit.lines.wires.links[port as usize].packets();
        let arrive = packets.filter(|header| !header.is(PFC | LOST) && has_content(header));
        arrive.map(|header| (header, self.transit.contents.get(header)))
    }

    /// Returns the port at the other end of a port's link.
    pub fn peer(&self, port: PortId) -> PortId {
        self.transit.lines.ports[port as usize].peer
    }

    /// Returns the reason why a port sends no data, if there is one.
    pub fn stopped(&self, port: PortId) -> Option<Stopped> {
        let at = &self.transit.lines.ports[port as usize];
        if at.is(DOWN) {
            return Some(Stopped::Down);
        }
        (at.paused & !1 != 0).then_some(Stopped::Paused)
    }
}
