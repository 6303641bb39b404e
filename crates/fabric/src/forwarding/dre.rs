//! The discounting rate estimator of CONGA (SIGCOMM 2014, section 3.2): recent utilisation of a link.
//!
//! A register counts the bytes sent, and loses the share `alpha` of its value every `interval`. At a constant rate R
//! it settles at R * interval / alpha. The ratio of its value to the one at the full link rate C is the utilisation
//! over about `interval / alpha`.

use std::ops::Range;

use pathweave_units::{Duration, Time};

use super::view::Ports;
use crate::packet::PortId;

/// Registers of all ports of all switches.
///
/// A register is computed from the total of bytes that its port has sent, so that sending a packet costs nothing.
/// Ports must be up to date: the tick at an instant counts the bytes sent up to and including that instant.
pub(crate) struct Dre {
    interval: Duration,
    /// Share that a tick removes, as 16-bit fixed point.
    alpha: u64,
    /// Averaging time: `interval / alpha`.
    window: Duration,
    levels: u64,
    /// Largest metric.
    ceiling: u64,
    registers: Vec<Register>,
    /// Time of the next tick of each switch.
    next_tick: Vec<Time>,
}

#[derive(Clone, Copy, Default)]
struct Register {
    /// Value after the last tick.
    bytes: u64,
    /// Total of bytes that the port had sent at the last tick.
    sent_bytes: u64,
}

impl Dre {
    /// Creates empty registers. Metrics range from 0 to `2^bits - 1`; a link that is always busy has the largest.
    pub(crate) fn new(interval: Duration, alpha: f64, bits: u32, switches: usize, ports: usize) -> Self {
        let alpha = (alpha * 65_536.0).round() as u64;
        Dre {
            interval,
            alpha,
            window: Duration::from_ps((u128::from(interval.as_ps()) * 65_536 / u128::from(alpha)) as u64),
            levels: 1 << bits,
            ceiling: (1 << bits) - 1,
            registers: vec![Register::default(); ports],
            next_tick: vec![Time::ZERO + interval; switches],
        }
    }

    /// Removes that limit from the metrics, for registers that count more than a link can send.
    pub(crate) fn without_ceiling(self) -> Self {
        Dre { ceiling: u64::from(u8::MAX), ..self }
    }

    /// Returns the time at which the registers of a switch decay next.
    pub(crate) fn next_tick(&self, switch: u32) -> Time {
        self.next_tick[switch as usize]
    }

    /// Decays the registers of a switch at its next tick. The switch's ports are up to date to that time. If all
    /// registers are zero and nothing can be sent before `until`, later ticks before `until` are skipped, since they
    /// change nothing.
    pub(crate) fn tick(&mut self, switch: u32, ports: Range<PortId>, at: &impl Ports, until: Time) {
        let mut busy = false;
        for (register, port) in self.registers[ports.start as usize..].iter_mut().zip(ports) {
            let sent_bytes = at.sent_bytes(port);
            let bytes = register.bytes + (sent_bytes - register.sent_bytes);
            // Rounded up, so that a register reaches zero in the end.
            let decay = (bytes * self.alpha).div_ceil(65_536);
            *register = Register { bytes: bytes - decay, sent_bytes };
            busy |= register.bytes > 0 || at.is_serving(port);
        }
        let next = &mut self.next_tick[switch as usize];
        let skip = if busy { 0 } else { until.saturating_since(*next).as_ps() / self.interval.as_ps() };
        *next += self.interval * (skip + 1);
    }

    /// Returns the congestion metric of a port that is up to date.
    pub(crate) fn metric(&self, port: PortId, at: &impl Ports) -> u8 {
        let register = &self.registers[port as usize];
        let bytes = register.bytes + (at.sent_bytes(port) - register.sent_bytes);
        let full = at.link(port).rate.bytes_in(self.window).max(1);
        (bytes * self.levels / full).min(self.ceiling) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{EcnConfig, TrimConfig};
    use crate::link::LinkSpec;
    use pathweave_units::Rate;

    /// An idle port.
    struct One {
        sent_bytes: u64,
        link: LinkSpec,
    }

    impl Ports for One {
        fn sent_bytes(&self, _: PortId) -> u64 {
            self.sent_bytes
        }
        fn is_serving(&self, _: PortId) -> bool {
            false
        }
        fn link(&self, _: PortId) -> &LinkSpec {
            &self.link
        }
    }

    /// One port of 100 Gb/s at switch 0. A tick every 20 us removes one eighth, so the averaging time is 160 us or 2
    /// MB.
    fn port() -> (Dre, One) {
        let link = LinkSpec::new(
            Rate::from_gbps(100),
            Duration::ZERO,
            &EcnConfig::default(),
            &TrimConfig::default(),
        );
        (Dre::new(Duration::from_us(20), 0.125, 3, 1, 1), One { sent_bytes: 0, link })
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    #[test]
    fn the_register_by_hand() {
        let (mut dre, mut port) = port();
        assert_eq!(dre.metric(0, &port), 0);
        // An eighth of 2 MB is the first level.
        port.sent_bytes = 249_999;
        assert_eq!(dre.metric(0, &port), 0);
        port.sent_bytes = 250_000;
        assert_eq!(dre.metric(0, &port), 1);
        port.sent_bytes = 1_000_000;
        assert_eq!(dre.metric(0, &port), 4);
        // 1,000,000 * 7/8 = 875,000 is 3.5 eighths.
        dre.tick(0, 0..1, &port, us(20));
        assert_eq!((dre.registers[0].bytes, dre.metric(0, &port)), (875_000, 3));
        assert_eq!(dre.next_tick(0), us(40));
        // 765,625 plus 2,000,000 exceeds the largest metric.
        dre.tick(0, 0..1, &port, us(40));
        port.sent_bytes += 2_000_000;
        assert_eq!((dre.registers[0].bytes, dre.metric(0, &port)), (765_625, 7));
    }

    #[test]
    fn without_a_ceiling_what_waits_counts() {
        let (dre, mut port) = port();
        port.sent_bytes = 5_000_000;
        assert_eq!(dre.metric(0, &port), 7);
        // 5 MB are 20 eighths of 2 MB.
        assert_eq!(dre.without_ceiling().metric(0, &port), 20);
    }

    #[test]
    fn a_busy_link_is_at_the_top_and_half_a_load_in_the_middle() {
        for (share, metric) in [(1, 6..=7), (2, 3..=4)] {
            let (mut dre, mut port) = port();
            for _ in 0..200 {
                // 100 Gb/s for 20 us are 250,000 bytes.
                port.sent_bytes += 250_000 / share;
                dre.tick(0, 0..1, &port, Time::ZERO);
            }
            assert!(metric.contains(&dre.metric(0, &port)));
        }
    }

    #[test]
    fn an_idle_register_empties_and_skips() {
        let (mut dre, mut port) = port();
        port.sent_bytes = 2_000_000;
        let mut ticks = 0;
        while dre.next_tick(0) <= us(1_000_000) {
            dre.tick(0, 0..1, &port, us(1_000_000));
            ticks += 1;
        }
        // A factor of 7/8 a tick, until rounding removes the rest: far fewer ticks than the 50,000 of one second.
        assert!((50..150).contains(&ticks), "{ticks}");
        assert_eq!(dre.next_tick(0), us(1_000_020));
    }
}
