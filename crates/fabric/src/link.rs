//! One direction of a cable: its rate and delay, and what is between a transmitter and the far end.

use pathweave_units::{Duration, Rate, Time};

use crate::marking::{EcnConfig, Red};
use crate::packet::{Header, LOST, MIN_WIRE_BYTES, PortId};
use crate::ring::Ring;
use crate::trim::{TrimConfig, TrimLimits};

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

    /// Places for packets on it, used or not.
    pub(crate) fn places(&self) -> usize {
        self.packets.places()
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

    /// The packet that many behind the next, or some other; for who wants to load what it carries.
    #[inline(always)]
    pub(crate) fn peek(&self, behind: u32) -> Option<&Header> {
        self.packets.peek(behind)
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

    /// Goes on with a packet that was put on this link in another part of the fabric, where its arrival was reckoned.
    pub(crate) fn take_over(&mut self, header: Header) {
        self.next = self.next.min(header.arrival());
        self.packets.push(header);
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

/// Rate, delay, thresholds of marking and limits of trimming. Few are distinct in a fabric, so ports share them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    /// Picoseconds a byte where that is whole and fits, else 0: a multiplication instead of a division.
    pub(crate) ps_per_byte: u32,
    /// Absent where marking is off.
    pub(crate) red: Option<Red>,
    /// Absent where switches do not trim.
    pub(crate) trim: Option<TrimLimits>,
}

impl LinkSpec {
    pub(crate) fn new(rate: Rate, delay: Duration, ecn: &EcnConfig, trim: &TrimConfig) -> Self {
        let bit_ps = 8_000_000_000_000;
        let ps_per_byte = if bit_ps % rate.as_bps() == 0 { bit_ps / rate.as_bps() } else { 0 };
        let ps_per_byte = u32::try_from(ps_per_byte).unwrap_or(0);
        let red = ecn.enabled.then(|| Red::new(rate, ecn));
        LinkSpec { rate, delay, ps_per_byte, red, trim: TrimLimits::new(rate, trim) }
    }

    /// What a packet takes from one end to the other at least.
    pub(crate) fn shortest_hop(&self) -> Duration {
        self.time_for(MIN_WIRE_BYTES) + self.delay
    }

    #[inline]
    pub(crate) fn time_for(&self, wire_bytes: u16) -> Duration {
        if self.ps_per_byte != 0 {
            Duration::from_ps(u64::from(wire_bytes) * u64::from(self.ps_per_byte))
        } else {
            self.rate.time_for(u64::from(wire_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmission_times_are_exact_for_odd_rates() {
        let spec = |gbps| {
            let (ecn, trim) = (EcnConfig::default(), TrimConfig::default());
            LinkSpec::new(Rate::from_gbps(gbps), Duration::ZERO, &ecn, &trim)
        };
        assert_eq!(spec(3).time_for(3), Duration::from_ps(8_000));
        assert_eq!(spec(3).time_for(1), Duration::from_ps(2_667));
        assert_eq!(spec(100).time_for(4_178), Duration::from_ps(334_240));
    }
}
