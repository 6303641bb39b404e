//! An egress port with its queues and the link it feeds.

use pathweave_units::{Bytes, Duration, Rate, Time};

use crate::config::{EcnConfig, Thresholds};
use crate::packet::Queue;

/// Index of a port: hosts' ports first, then the switches', each node's in a row.
pub type PortId = u32;

/// The link is down: what is sent vanishes.
pub(crate) const DOWN: u8 = 1;
/// Somebody waits for this port's switch to drain: services are events of their own.
pub(crate) const EXPLICIT: u8 = 1 << 1;
/// Random loss or corruption is switched on.
pub(crate) const IMPAIRED: u8 = 1 << 2;
/// Paused by a broken neighbour, whatever resume frames say.
pub(crate) const STORM: u8 = 1 << 3;

/// What a hop touches, in one cache line for the usual two classes.
#[repr(C, align(64))]
pub(crate) struct Port<const C: usize> {
    /// When the transmitter is free again.
    pub(crate) tx_free: Time,
    /// Packets between this transmitter and the far end, in order of arrival.
    pub(crate) in_flight: Queue,
    pub(crate) queues: [Queue; C],
    pub(crate) queued_bytes: [u32; C],
    /// The node this port belongs to.
    pub(crate) node: u32,
    /// The port at the far end of the cable, and its node.
    pub(crate) peer: PortId,
    pub(crate) peer_node: u32,
    /// Index of its [`LinkSpec`].
    pub(crate) spec: u16,
    /// Classes with packets queued, a bit each.
    pub(crate) backlog: u8,
    /// Classes the neighbour has paused.
    pub(crate) paused: u8,
    pub(crate) flags: u8,
    /// Largest queue so far, all classes together.
    pub(crate) max_queue_bytes: u32,
}

const _: () = assert!(size_of::<Port<2>>() == 64);

impl<const C: usize> Port<C> {
    pub(crate) fn new(node: u32, peer: PortId, peer_node: u32, spec: u16) -> Self {
        Port {
            tx_free: Time::ZERO,
            in_flight: Queue::EMPTY,
            queues: [Queue::EMPTY; C],
            queued_bytes: [0; C],
            node,
            peer,
            peer_node,
            spec,
            backlog: 0,
            paused: 0,
            flags: 0,
            max_queue_bytes: 0,
        }
    }

    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn total_queued_bytes(&self) -> u32 {
        self.queued_bytes.iter().sum()
    }
}

/// What a switch holds that came *in* by a port. Apart from [`Port`], and small, because each hop touches two of
/// them that it touches for no other reason.
#[derive(Clone, Debug)]
pub(crate) struct Ingress<const C: usize> {
    pub(crate) bytes: [u32; C],
    /// Classes for which the neighbour behind the port is paused.
    pub(crate) xoff_sent: u8,
}

impl<const C: usize> Default for Ingress<C> {
    fn default() -> Self {
        Ingress { bytes: [0; C], xoff_sent: 0 }
    }
}

/// What a port has put on its link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

/// Rate, delay and marking thresholds. Few are distinct in a fabric, so ports share them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    /// Picoseconds a byte where that is whole, else 0: a multiplication instead of a division.
    ps_per_byte: u64,
    /// Queues above this may be marked; [`u32::MAX`] where marking is off.
    pub(crate) mark_above_bytes: u32,
    /// Absent where marking is off.
    pub(crate) red: Option<Red>,
}

impl LinkSpec {
    pub(crate) fn new(rate: Rate, delay: Duration, ecn: &EcnConfig) -> Self {
        let bit_ps = 8_000_000_000_000;
        let ps_per_byte = if bit_ps % rate.as_bps() == 0 { bit_ps / rate.as_bps() } else { 0 };
        let red = ecn.enabled.then(|| Red::new(rate, ecn));
        let mark_above_bytes = red.as_ref().map_or(u32::MAX, |red| red.kmin_bytes);
        LinkSpec { rate, delay, ps_per_byte, mark_above_bytes, red }
    }

    #[inline]
    pub(crate) fn time_for(&self, wire_bytes: u16) -> Duration {
        if self.ps_per_byte != 0 {
            Duration::from_ps(u64::from(wire_bytes) * self.ps_per_byte)
        } else {
            self.rate.time_for(u64::from(wire_bytes))
        }
    }
}

/// Marking thresholds of one port.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Red {
    kmin_bytes: u32,
    kmax_bytes: u32,
    pmax: f64,
}

impl Red {
    fn new(rate: Rate, ecn: &EcnConfig) -> Self {
        let scaled = |bytes: Bytes| {
            let at = match ecn.thresholds {
                Thresholds::ByRate => rate.as_bps() as f64 / ecn.reference_rate.as_bps() as f64,
                Thresholds::Fixed => 1.0,
            };
            (bytes.get() as f64 * at).min(f64::from(u32::MAX)) as u32
        };
        Red { kmin_bytes: scaled(ecn.kmin), kmax_bytes: scaled(ecn.kmax), pmax: ecn.pmax }
    }

    /// Probability of a mark at a queue of `bytes`: 0 up to kmin, linear to pmax at kmax, 1 above.
    #[inline]
    pub(crate) fn probability(&self, bytes: u32) -> f64 {
        if bytes <= self.kmin_bytes {
            0.0
        } else if bytes > self.kmax_bytes {
            1.0
        } else {
            self.pmax * f64::from(bytes - self.kmin_bytes) / f64::from(self.kmax_bytes - self.kmin_bytes)
        }
    }
}

/// Counters of a port.
#[derive(Clone, Debug, Default)]
pub struct PortStats {
    /// Bytes sent onto the link, gaps included.
    pub tx_bytes: u64,
    /// Packets sent onto the link.
    pub tx_packets: u64,
    /// Packets lost here: refused by the buffer, on a dead link, or by an impairment.
    pub dropped_packets: u64,
    /// Packets marked Congestion Experienced.
    pub marked_packets: u64,
    /// Largest queue, all classes together, in bytes.
    pub max_queue_bytes: u64,
    /// Times the neighbour paused this port.
    pub pauses: u64,
    /// Total time with a class paused.
    pub paused: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_probability_by_hand() {
        let red = Red::new(Rate::from_gbps(100), &EcnConfig::default());
        assert_eq!(red.probability(400_000), 0.0);
        assert_eq!(red.probability(1_000_000), 0.1); // half way from 400 KB to 1600 KB, Pmax 0.2
        assert_eq!(red.probability(1_600_000), 0.2);
        assert_eq!(red.probability(1_600_001), 1.0);
    }

    #[test]
    fn thresholds_scale_with_the_rate_of_the_port() {
        let red = Red::new(Rate::from_gbps(25), &EcnConfig::default());
        assert_eq!(red, Red { kmin_bytes: 100_000, kmax_bytes: 400_000, pmax: 0.2 });
        let fixed = EcnConfig { thresholds: Thresholds::Fixed, ..EcnConfig::default() };
        assert_eq!(Red::new(Rate::from_gbps(25), &fixed).kmin_bytes, 400_000);
    }

    #[test]
    fn transmission_times_are_exact_for_odd_rates() {
        let ecn = EcnConfig::default();
        let spec = LinkSpec::new(Rate::from_gbps(3), Duration::ZERO, &ecn);
        assert_eq!(spec.time_for(3), Duration::from_ps(8_000));
        assert_eq!(spec.time_for(1), Duration::from_ps(2_667));
        assert_eq!(
            LinkSpec::new(Rate::from_gbps(100), Duration::ZERO, &ecn).time_for(4_178),
            Duration::from_ps(334_240)
        );
    }
}
