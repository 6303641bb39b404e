//! One direction of a cable: its rate and delay, and the packets in flight on it.

use pathweave_units::{Duration, Rate, Time};

use crate::marking::{EcnConfig, Red};
use crate::packet::{Header, LOST, MIN_WIRE_BYTES, PortId};
use crate::ring::Ring;
use crate::trim::{TrimConfig, TrimLimits};

/// Packets in flight to a port, in order of arrival. Stored at the receiving end, so that a switch reads its arrivals
/// from consecutive memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Link {
    packets: Ring<Header>,
    /// Arrival time of the first packet; [`Time::MAX`] if there is none.
    next: Time,
    /// Arrival time of the last packet put on the link, past or future.
    last: Time,
    /// True if random loss or corruption is enabled.
    pub(crate) impaired: bool,
}

impl Link {
    pub(crate) fn new() -> Self {
        Link { packets: Ring::new(), next: Time::MAX, last: Time::ZERO, impaired: false }
    }

    /// Returns the number of slots for packets, used or not.
    pub(crate) fn places(&self) -> usize {
        self.packets.slots()
    }

    /// Prefetches the next packets to arrive.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.packets.prefetch_first::<3>();
    }

    /// Returns the arrival time of the first packet; [`Time::MAX`] if there is none.
    #[inline(always)]
    pub(crate) fn next_arrival(&self) -> Time {
        self.next
    }

    /// Iterates over the packets on the link, in order.
    #[inline(always)]
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Header> {
        self.packets.iter()
    }

    /// Returns the packet at distance `behind` after the next one, or an arbitrary packet. Only for prefetching.
    #[inline(always)]
    pub(crate) fn peek(&self, behind: u32) -> Option<&Header> {
        self.packets.peek(behind)
    }

    /// Prefetches the slot of the next packet to be pushed.
    #[inline(always)]
    pub(crate) fn prefetch_end(&self) {
        self.packets.prefetch_end();
    }

    /// Puts a packet on the link into port `ingress`. It arrives at `arrival`, or together with the packet before it
    /// if that is later: a link whose delay has just decreased still delivers in order.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: &Header, ingress: PortId, arrival: Time) {
        let arrival = arrival.max(self.last);
        self.last = arrival;
        self.next = self.next.min(arrival);
        self.packets.push(header.on_link(ingress, arrival));
    }

    /// Appends a packet whose arrival time is known, and not before that of the packet before it. A call of
    /// [`Link::note_arrivals`] must follow.
    #[inline(always)]
    pub(crate) fn append(&mut self, header: &Header, ingress: PortId, arrival: Time) {
        self.packets.push(header.on_link(ingress, arrival));
    }

    /// Records the arrival times of the first and the last of the packets appended.
    #[inline(always)]
    pub(crate) fn note_arrivals(&mut self, first: Time, last: Time) {
        self.next = self.next.min(first);
        self.last = last;
    }

    /// Returns the arrival time of the last packet put on the link, past or future.
    #[inline(always)]
    pub(crate) fn last_arrival(&self) -> Time {
        self.last
    }

    /// Continues with a packet that was put on this link, with its arrival time, in another part of the fabric.
    pub(crate) fn take_over(&mut self, header: Header) {
        self.next = self.next.min(header.arrival());
        self.packets.push(header);
    }

    /// Removes the first packet if it arrives before `end`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, end: Time) -> Option<Header> {
        if self.next >= end {
            return None;
        }
        let header = self.packets.pop();
        self.next = self.packets.front().map_or(Time::MAX, Header::arrival);
        Some(header)
    }

    /// Removes the packets that arrive before `end`, in order, each after a call with it.
    #[inline(always)]
    pub(crate) fn drain_before(&mut self, end: Time, mut take: impl FnMut(&Header)) {
        if self.next >= end {
            return;
        }
        let (mut taken, mut next) = (0, Time::MAX);
        'packets: for slice in self.packets.slices() {
            for header in slice {
                if header.arrival() >= end {
                    next = header.arrival();
                    break 'packets;
                }
                take(header);
                taken += 1;
            }
        }
        self.packets.remove_first(taken);
        self.next = next;
    }

    /// Marks all packets on the link as lost, because the cable has failed.
    pub(crate) fn lose_all(&mut self) {
        self.packets.for_each_mut(|header| header.set(LOST));
    }
}

/// Rate, delay, marking thresholds and trimming limits of a kind of link. A fabric has few distinct kinds, so ports
/// share them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    /// Picoseconds a byte if that is an integer and fits, else 0. Allows a multiplication in place of a division.
    pub(crate) ps_per_byte: u32,
    /// Marking thresholds; `None` if marking is off.
    pub(crate) red: Option<Red>,
    /// Trimming limits; `None` if switches do not trim.
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

    /// Returns the shortest time that a packet takes from one end to the other.
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
