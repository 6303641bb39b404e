//! Overhead of the NACK scan: a consistent reading of equation (1) of the ERD paper.
//!
//! The paper prints eta = T_pcie / ((P T / S - 1) RTT), "no less than 0.996". With S in bits, eta is the share of
//! time that a NACK costs, and 1 - eta is the value that must be no less than 0.996. As printed, the scan period
//! would have to be shorter than a round trip, which the paper excludes. The equation adds up packets times round
//! trips as if they were sequential, so it serves to choose a period and for nothing else.

use pathweave_units::{Duration, Rate};

/// Inputs for the choice of a scan period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOverhead {
    /// Rate at which packets arrive (P).
    pub rate: Rate,
    /// Bytes of a packet (S).
    pub packet_bytes: u32,
    /// Round-trip time.
    pub rtt: Duration,
    /// Time to hand over one NACK (T_pcie).
    pub nack: Duration,
}

impl ScanOverhead {
    /// Number of packets that arrive in a period: P T / S.
    pub fn packets(&self, period: Duration) -> f64 {
        self.rate.as_bps() as f64 * seconds(period) / (8.0 * f64::from(self.packet_bytes))
    }

    /// Share of time that a scan every `period` costs (eta). Infinite if at most one packet arrives in a period.
    pub fn share(&self, period: Duration) -> f64 {
        let others = self.packets(period) - 1.0;
        if others <= 0.0 { f64::INFINITY } else { seconds(self.nack) / (others * seconds(self.rtt)) }
    }

    /// Shortest period whose share is at most `share`, which is above 0.
    pub fn shortest_period(&self, share: f64) -> Duration {
        let packets = 1.0 + seconds(self.nack) / (share * seconds(self.rtt));
        let ps = 8e12 * f64::from(self.packet_bytes) * packets / self.rate.as_bps() as f64;
        Duration::from_ps(libm_ceil(ps))
    }
}

fn seconds(span: Duration) -> f64 {
    span.as_ps() as f64 * 1e-12
}

/// Rounds up to a whole number. The input is positive and far below 2^53.
fn libm_ceil(value: f64) -> u64 {
    let whole = value as u64;
    whole + u64::from((whole as f64) < value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(gbps: u64, rtt_us: u64) -> ScanOverhead {
        ScanOverhead {
            rate: Rate::from_gbps(gbps),
            packet_bytes: 4_096,
            rtt: Duration::from_us(rtt_us),
            nack: Duration::from_us(2),
        }
    }

    #[test]
    fn shares_by_hand() {
        let (eq, long, short) = (at(200, 10), Duration::from_us(20), Duration::from_us(10));
        assert!((eq.packets(long) - 122.07).abs() < 0.005);
        assert!((eq.share(long) - 0.00165).abs() < 5e-6);
        assert!((eq.share(short) - 0.00333).abs() < 5e-6);
        assert!(eq.share(Duration::from_ns(163)).is_infinite());
    }

    #[test]
    fn periods_by_hand() {
        // 2 to 3 round trips, as the paper advises: 16.55 us is 3.3, 8.27 us is 1.65 of them.
        for (eq, us) in [(at(200, 10), 8.36), (at(200, 5), 16.55), (at(400, 5), 8.27)] {
            let period = eq.shortest_period(0.004);
            assert!((seconds(period) * 1e6 - us).abs() < 0.005, "{period}");
            assert!(eq.share(period) <= 0.004);
        }
    }
}
