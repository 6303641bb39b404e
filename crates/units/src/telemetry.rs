//! In-band network telemetry: the state of each port on its way, which switches write into a packet (HPCC's INT).

use crate::{Duration, Rate, Time};

/// Bits of the counters, as in the simulator of HPCC's authors. They wrap.
const TIME_BITS: u32 = 24;
const SENT_BITS: u32 = 20;
const QUEUE_BITS: u32 = 17;
/// Bytes of a count of sent bytes and of queue length where hosts have 25 Gb/s.
const SENT_UNIT: u64 = 128;
const QUEUE_UNIT: u64 = 80;
/// Rate of hosts at which a unit is counted once.
const RATE_OF_UNITS: u64 = 25_000_000_000;

/// State of a port at the instant at which a packet left its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct PortReading {
    /// Time in nanoseconds, modulo 2^24.
    at_ns: u32,
    /// Units sent before the packet, modulo 2^20.
    sent: u32,
    /// Units left in the queue, at most 2^17 - 1.
    queue: u32,
    /// Rate of the link.
    rate: Rate,
}

/// Units in which the ports of a network count bytes: multiples of those at 25 Gb/s, so that counters wrap as seldom
/// at higher rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct TelemetryUnits(u32);

impl TelemetryUnits {
    /// Creates the units of a network whose hosts have this rate.
    pub fn for_hosts(rate: Rate) -> Self {
        TelemetryUnits(u32::try_from(rate.as_bps() / RATE_OF_UNITS).unwrap_or(u32::MAX).max(1))
    }
    fn of(self, unit: u64) -> u64 {
        unit * u64::from(self.0)
    }
}

/// Readings of the ports that a packet has passed, in their order. The ports of hosts write none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "packed", derive(borsh::BorshSerialize, borsh::BorshDeserialize))]
pub struct Telemetry {
    ports: [PortReading; Telemetry::MOST_PORTS],
    /// Number of ports passed; more than there is room for if readings are missing.
    passed: u8,
    units: TelemetryUnits,
}

/// Change of a port between two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// Time between the packets.
    pub span: Duration,
    /// Bytes sent in that time.
    pub sent_bytes: u64,
    /// Smaller one of the two queues, in bytes.
    pub queue_bytes: u64,
    /// Rate of the link at the later packet.
    pub rate: Rate,
}

impl Telemetry {
    /// Number of ports for which a packet has room.
    pub const MOST_PORTS: usize = 5;
    /// Bytes that the readings add to a packet on every link: 8 for each port, and 2.
    pub const WIRE_BYTES: u32 = 8 * Telemetry::MOST_PORTS as u32 + 2;

    /// Creates the telemetry of a packet that has passed no port.
    pub const fn new(units: TelemetryUnits) -> Self {
        const NONE: PortReading = PortReading { at_ns: 0, sent: 0, queue: 0, rate: Rate::ZERO };
        Telemetry { ports: [NONE; Telemetry::MOST_PORTS], passed: 0, units }
    }

    /// Adds the state of a port: the time at which the packet leaves, the bytes sent before it, and the bytes that
    /// remain in the queue. There is no room after [`Telemetry::MOST_PORTS`] ports.
    pub fn push(&mut self, at: Time, sent_bytes: u64, queue_bytes: u64, rate: Rate) {
        if let Some(port) = self.ports.get_mut(usize::from(self.passed)) {
            *port = PortReading {
                at_ns: (at.as_ps() / 1_000) as u32 & mask(TIME_BITS),
                sent: (sent_bytes / self.units.of(SENT_UNIT)) as u32 & mask(SENT_BITS),
                queue: (queue_bytes / self.units.of(QUEUE_UNIT)).min(u64::from(mask(QUEUE_BITS))) as u32,
                rate,
            };
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// Returns the number of ports passed.
    pub const fn passed(&self) -> u8 {
        self.passed
    }

    /// Returns true if the packet has passed more ports than it has room for.
    pub const fn is_incomplete(&self) -> bool {
        self.passed as usize > Telemetry::MOST_PORTS
    }

    /// Iterates over the ports' changes since an earlier packet of the same path.
    pub fn changes_since<'a>(&'a self, earlier: &'a Telemetry) -> impl Iterator<Item = PortChange> + 'a {
        let passed = usize::from(self.passed).min(Telemetry::MOST_PORTS);
        self.ports[..passed].iter().zip(&earlier.ports).map(|(now, then)| {
            let (sent, span) =
                (since(now.sent, then.sent, SENT_BITS), since(now.at_ns, then.at_ns, TIME_BITS));
            PortChange {
                span: Duration::from_ns(u64::from(span)),
                sent_bytes: u64::from(sent) * self.units.of(SENT_UNIT),
                queue_bytes: u64::from(now.queue.min(then.queue)) * self.units.of(QUEUE_UNIT),
                rate: now.rate,
            }
        })
    }
}

const fn mask(bits: u32) -> u32 {
    (1 << bits) - 1
}

/// Returns the difference of two values of a counter that wraps.
const fn since(now: u32, then: u32, bits: u32) -> u32 {
    now.wrapping_sub(then) & mask(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64, sent_bytes: u64, queue_bytes: u64) -> Telemetry {
        let mut telemetry = Telemetry::new(TelemetryUnits::for_hosts(Rate::from_gbps(100)));
        telemetry.push(Time::from_ns(ns), sent_bytes, queue_bytes, Rate::from_gbps(100));
        telemetry
    }

    #[test]
    fn changes_are_counted_in_units_of_the_hosts_rate() {
        // Four times 128 and 80 bytes: 10,300 are 20 units, 3,000 are 9.
        let (then, now) = (at(1_000, 5_120, 3_000), at(1_900, 15_420, 4_000));
        let change = now.changes_since(&then).next().expect("one port");
        assert_eq!((change.span, change.sent_bytes), (Duration::from_ns(900), 20 * 512));
        assert_eq!((change.queue_bytes, change.rate), (9 * 320, Rate::from_gbps(100)));
    }

    #[test]
    fn counters_wrap_and_queues_saturate() {
        // 2^24 ns are 16.8 ms, 2^20 units of 512 B are 537 MB.
        let (then, now) = (
            at((1 << 24) - 100, ((1 << 20) - 1) * 512, u64::MAX),
            at((1 << 24) + 50, (1 << 20) * 512 + 512, u64::MAX),
        );
        let change = now.changes_since(&then).next().expect("one port");
        assert_eq!((change.span, change.sent_bytes), (Duration::from_ns(150), 2 * 512));
        assert_eq!(change.queue_bytes, ((1 << 17) - 1) * 320);
    }

    #[test]
    fn the_sixth_port_finds_no_room() {
        let mut telemetry = Telemetry::new(TelemetryUnits::for_hosts(Rate::from_gbps(10)));
        for ports in 1..=6 {
            telemetry.push(Time::ZERO, 0, 0, Rate::from_gbps(10));
            assert_eq!((telemetry.passed(), telemetry.is_incomplete()), (ports, ports == 6));
        }
        assert_eq!(telemetry.changes_since(&telemetry).count(), 5);
        assert_eq!(Telemetry::WIRE_BYTES, 42);
    }
}
