//! An egress port with its queues and the link it feeds.

use pathweave_units::{Bytes, Duration, Rate, Time};

use crate::config::{EcnConfig, Thresholds};
use crate::packet::{Header, MIN_WIRE_BYTES};
use crate::ring::Ring;

/// Index of a port: hosts' ports first, then the switches', each node's in a row.
pub type PortId = u32;

/// The link is down: what is sent vanishes.
pub(crate) const DOWN: u8 = 1;
/// A host's port that is on the list of those with packets queued.
pub(crate) const LISTED: u8 = 1 << 1;
/// Paused by a broken neighbour, whatever resume frames say.
pub(crate) const STORM: u8 = 1 << 2;

/// A port with all that a hop looks at: two cache lines for the usual two classes, the second one mostly for a packet
/// that has to wait.
#[repr(C, align(64))]
pub(crate) struct Port<const C: usize> {
    /// When the transmitter is free again.
    pub(crate) tx_free: Time,
    pub(crate) queued_bytes: [u32; C],
    /// What the switch holds that came *in* by this port.
    pub(crate) held_bytes: [u32; C],
    /// Classes with packets queued, a bit each.
    pub(crate) backlog: u8,
    /// Classes the neighbour has paused.
    pub(crate) paused: u8,
    /// Classes for which the neighbour is paused.
    pub(crate) xoff_sent: u8,
    pub(crate) flags: u8,
    /// The node this port belongs to.
    pub(crate) node: u32,
    /// The port at the far end of the cable, and its node.
    pub(crate) peer: PortId,
    pub(crate) peer_node: u32,
    /// Of its [`LinkSpec`].
    delay: Duration,
    ps_per_byte: u32,
    pub(crate) mark_above_bytes: u32,
    pub(crate) sent_packets: u64,
    /// By class.
    pub(crate) queues: [Ring<Header>; C],
    pub(crate) sent_bytes: u64,
    /// Largest queue so far, all classes together.
    pub(crate) max_queue_bytes: u32,
    /// Index of its [`LinkSpec`].
    pub(crate) spec: u16,
}

const _: () = assert!(size_of::<Port<2>>() == 128);

impl<const C: usize> Port<C> {
    pub(crate) fn new(node: u32, peer: PortId, peer_node: u32, spec: u16, specs: &[LinkSpec]) -> Self {
        let mut port = Port {
            tx_free: Time::ZERO,
            queued_bytes: [0; C],
            held_bytes: [0; C],
            backlog: 0,
            paused: 0,
            xoff_sent: 0,
            flags: 0,
            node,
            peer,
            peer_node,
            delay: Duration::ZERO,
            ps_per_byte: 0,
            mark_above_bytes: 0,
            sent_packets: 0,
            queues: std::array::from_fn(|_| Ring::new()),
            sent_bytes: 0,
            max_queue_bytes: 0,
            spec,
        };
        port.set_spec(spec, specs);
        port
    }

    /// From now on its link is of this kind.
    pub(crate) fn set_spec(&mut self, index: u16, specs: &[LinkSpec]) {
        let spec = &specs[usize::from(index)];
        self.spec = index;
        self.delay = spec.delay;
        self.ps_per_byte = spec.ps_per_byte;
        self.mark_above_bytes = spec.mark_above_bytes;
    }

    #[inline(always)]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Classes that have something to send and may, a bit each.
    #[inline(always)]
    pub(crate) fn eligible(&self) -> u8 {
        self.backlog & !self.paused
    }

    #[inline(always)]
    pub(crate) fn total_queued_bytes(&self) -> u32 {
        self.queued_bytes.iter().sum()
    }

    /// Lets the transmitter send so many bytes from when it is free; returns when they are at the far end.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, wire_bytes: u16, specs: &[LinkSpec]) -> Time {
        self.tx_free += if self.ps_per_byte != 0 {
            Duration::from_ps(u64::from(wire_bytes) * u64::from(self.ps_per_byte))
        } else {
            specs[usize::from(self.spec)].time_for(wire_bytes)
        };
        self.tx_free + self.delay
    }
}

/// Rate, delay and marking thresholds. Few are distinct in a fabric, so ports share them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    /// Picoseconds a byte where that is whole, and the link not slower than 2 kb/s, else 0: a multiplication instead of a division.
    ps_per_byte: u32,
    /// Queues above this may be marked; [`u32::MAX`] where marking is off.
    pub(crate) mark_above_bytes: u32,
    /// Absent where marking is off.
    pub(crate) red: Option<Red>,
}

impl LinkSpec {
    pub(crate) fn new(rate: Rate, delay: Duration, ecn: &EcnConfig) -> Self {
        let bit_ps = 8_000_000_000_000;
        let ps_per_byte = if bit_ps % rate.as_bps() == 0 { bit_ps / rate.as_bps() } else { 0 };
        let ps_per_byte = u32::try_from(ps_per_byte).unwrap_or(0);
        let red = ecn.enabled.then(|| Red::new(rate, ecn));
        let mark_above_bytes = red.as_ref().map_or(u32::MAX, |red| red.kmin_bytes);
        LinkSpec { rate, delay, ps_per_byte, mark_above_bytes, red }
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
