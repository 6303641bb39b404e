//! Configuration of NICs and hosts beyond their links, and of the side channel between hosts.

use pathweave_units::{Bytes, Duration, Rate};

use crate::spec::SimError;

/// Costs of a NIC and its host beyond the link: queue-pair contexts, PCIe, and host software. Software costs apply
/// only to receivers of datagrams; the NIC handles all other packets by itself.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NicConfig {
    /// Number of queue-pair contexts in use up to which the NIC sends at line rate: the size of its context cache.
    /// Default 1000 (ERD, Fig. 1a).
    pub qp_fits: u32,
    /// Number of contexts in use from which the NIC is slowest. Between `qp_fits` and this number it slows down with
    /// the logarithm of the number. At least `qp_fits`. Default 4000 (our reading of ERD, Fig. 1a).
    pub qp_thrash: u32,
    /// Fraction of line rate that remains with `qp_thrash` contexts or more, above 0, at most 1. 1.0 means that
    /// contexts cost nothing. Default 0.5 (ERD, Fig. 1a).
    pub qp_floor: f64,
    /// One-way latency of PCIe. Default 2 us (ERD, section 4).
    pub pcie_latency: Duration,
    /// Rate of PCIe, above 0. Default 256 Gbit/s (ERD, table 2).
    pub pcie_rate: Rate,
    /// Number of PCIe crossings between the post of a message and its first transmission, 1 to 16: 1 if the doorbell
    /// carries the work request, 3 if the NIC reads it from memory. Default 1.
    pub post_crossings: u32,
    /// Bytes of work requests or completions that cross PCIe with each packet. Default 64 B.
    pub entry_bytes: u32,
    /// Time that a core takes for a datagram that is the next of its flow. Each queue pair has its own core. Default
    /// 40 ns (ours: two cache misses; ERD shows a cost in Fig. 9 but no number).
    pub packet_cost: Duration,
    /// Additional time for a datagram that is out of order. Default 60 ns (ours).
    pub reorder_cost: Duration,
    /// Payload of out-of-order datagrams that the NIC can hold. With a buffer, the NIC restores the order before
    /// software handles the datagrams, which then costs no `reorder_cost`, and drops datagrams that do not fit.
    /// Default 0 B: software places datagrams out of order, as in ERD.
    pub reorder_buffer: Bytes,
}

impl Default for NicConfig {
    fn default() -> Self {
        NicConfig {
            qp_fits: 1_000,
            qp_thrash: 4_000,
            qp_floor: 0.5,
            pcie_latency: Duration::from_us(2),
            pcie_rate: Rate::from_gbps(256),
            post_crossings: 1,
            entry_bytes: 64,
            packet_cost: Duration::from_ns(40),
            reorder_cost: Duration::from_ns(60),
            reorder_buffer: Bytes::ZERO,
        }
    }
}

impl NicConfig {
    /// Checks the ranges of all fields. Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), SimError> {
        let refuse = |field, value: String, allowed: &str| {
            Err(SimError::Nic { field, value, allowed: allowed.to_owned() })
        };
        if self.qp_fits == 0 {
            return refuse("nic.qp_fits", "0".into(), "at least 1");
        }
        if self.qp_thrash < self.qp_fits {
            let allowed = format!("at least `qp_fits`, {}", self.qp_fits);
            return refuse("nic.qp_thrash", self.qp_thrash.to_string(), &allowed);
        }
        if !(self.qp_floor > 0.0 && self.qp_floor <= 1.0) {
            return refuse("nic.qp_floor", self.qp_floor.to_string(), "above 0, at most 1");
        }
        if self.pcie_rate == Rate::ZERO {
            return refuse("nic.pcie_rate", self.pcie_rate.to_string(), "above 0");
        }
        if !(1..=16).contains(&self.post_crossings) {
            return refuse("nic.post_crossings", self.post_crossings.to_string(), "1 to 16");
        }
        Ok(())
    }

    /// Returns the fraction of line rate at which the NIC sends with this number of contexts in use.
    pub fn rate_factor(&self, contexts: u32) -> f64 {
        let (n, fits, thrash) = (f64::from(contexts), f64::from(self.qp_fits), f64::from(self.qp_thrash));
        if n <= fits {
            1.0
        } else if n >= thrash {
            self.qp_floor
        } else {
            1.0 - (1.0 - self.qp_floor) * libm::log(n / fits) / libm::log(thrash / fits)
        }
    }

    /// Returns the time from the post of a message until the NIC has the work request.
    pub fn post_delay(&self) -> Duration {
        self.pcie_latency * u64::from(self.post_crossings)
    }

    /// Returns the time from the arrival of a packet until the host is notified.
    pub fn arrival_delay(&self, payload_bytes: u16) -> Duration {
        self.pcie_latency + self.pcie_rate.time_for(u64::from(payload_bytes) + u64::from(self.entry_bytes))
    }
}

/// The reliable channel between each pair of hosts, which carries the requests and announcements of datagram queue
/// pairs. It stands for TCP connections.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SideChannelConfig {
    /// Way of the channel's packets. "beside" (default): they do not cross the fabric, and take the delay of the idle
    /// path. "fabric": they cross it as those of a connection under scheme "dctcp", so that they can queue and be
    /// lost.
    pub via: SideRoute,
    /// Time in the network stack of each end, in addition to the way. Default 5 us (ours: typical of a kernel's TCP).
    pub stack: Duration,
    /// Rate of each connection beside the fabric, above 0. Default 1 Gbit/s (ours).
    pub rate: Rate,
}

/// Way of the packets of side channels.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SideRoute {
    /// A delay and a rate.
    #[default]
    Beside,
    /// A connection on the fabric.
    Fabric,
}

impl Default for SideChannelConfig {
    fn default() -> Self {
        SideChannelConfig { via: SideRoute::default(), stack: Duration::from_us(5), rate: Rate::from_gbps(1) }
    }
}

impl SideChannelConfig {
    /// Checks the ranges of all fields. Returns an error that names the first invalid field.
    pub fn validate(&self) -> Result<(), SimError> {
        if self.rate == Rate::ZERO {
            let field = "side_channel.rate";
            return Err(SimError::Nic { field, value: self.rate.to_string(), allowed: "above 0".into() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate is line rate up to 1,000 contexts, half of it from 4,000, and never grows with more contexts.
    #[test]
    fn contexts_slow_a_nic_down() {
        let nic = NicConfig::default();
        assert_eq!([1, 1_000, 4_000, 10_000].map(|n| nic.rate_factor(n)), [1.0, 1.0, 0.5, 0.5]);
        // Half-way on a logarithmic scale.
        assert!((nic.rate_factor(2_000) - 0.75).abs() < 1e-12);
        let factors: Vec<f64> = (0..5_000).map(|n| nic.rate_factor(n)).collect();
        assert!(factors.windows(2).all(|pair| pair[0] >= pair[1]));
        let free = NicConfig { qp_floor: 1.0, ..nic };
        assert!((0..5_000).all(|n| free.rate_factor(n) == 1.0));
    }

    #[test]
    fn delays_by_hand() {
        let nic = NicConfig::default();
        // 4096 + 64 B at 256 Gb/s: 130 ns.
        assert_eq!(nic.arrival_delay(4_096), Duration::from_ns(2_130));
        assert_eq!(NicConfig { post_crossings: 3, ..nic }.post_delay(), Duration::from_us(6));
    }

    #[test]
    fn invalid_values_are_named() {
        let nic = NicConfig::default;
        let wrong = [
            NicConfig { qp_fits: 0, ..nic() },
            NicConfig { qp_thrash: 999, ..nic() },
            NicConfig { qp_floor: 0.0, ..nic() },
            NicConfig { pcie_rate: Rate::ZERO, ..nic() },
            NicConfig { post_crossings: 0, ..nic() },
        ];
        let fields = wrong.map(|config| match config.validate() {
            Err(SimError::Nic { field, .. }) => field,
            other => panic!("{other:?}"),
        });
        assert_eq!(
            fields,
            ["nic.qp_fits", "nic.qp_thrash", "nic.qp_floor", "nic.pcie_rate", "nic.post_crossings"]
        );
        assert!(SideChannelConfig { rate: Rate::ZERO, ..Default::default() }.validate().is_err());
    }
}
