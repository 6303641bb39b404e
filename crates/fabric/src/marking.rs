//! Marking of packets with Congestion Experienced, with a probability that grows with the queue: RED on the
//! instantaneous queue, as in switches for DCQCN and DCTCP.

use pathweave_units::{Bytes, Rate, mix64};

use crate::config_error::{ConfigError, out_of_range};
use crate::numbers::PortNumbers;
use crate::packet::{CE, ECN_CAPABLE, Header, PortId};
use crate::pages::Pages;

/// RED on the instantaneous egress queue, marking instead of dropping. Packets are never marked up to `kmin`, with a
/// probability that rises linearly to `pmax` from there to `kmax`, and always above `kmax` (DCQCN, SIGCOMM'15).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EcnConfig {
    /// Enables marking in switches. Default true.
    pub enabled: bool,
    /// Lower threshold at `reference_rate`, at most `kmax`. Default 400 KB at 100 Gb/s (HPCC run.py: 4 KB a Gb/s).
    pub kmin: Bytes,
    /// Upper threshold at `reference_rate`. Default 1600 KB at 100 Gb/s (HPCC run.py: 16 KB a Gb/s).
    pub kmax: Bytes,
    /// Marking probability at `kmax`, 0 to 1. Default 0.2 (HPCC run.py).
    pub pmax: f64,
    /// Port rate to which `kmin` and `kmax` refer, above 0. Default 100 Gb/s.
    pub reference_rate: Rate,
    /// Scaling of the thresholds at ports of other rates. Default "by-rate".
    pub thresholds: Thresholds,
    /// Time at which the queue is compared with the thresholds. Default "dequeue", as in HPCC's switch.
    pub at: MarkAt,
    /// Marking by ports that lead to hosts. Default "mark". "leave" is for receivers that grant credit and manage
    /// their own link (Ultra Ethernet with RCCC).
    pub last_hop: LastHop,
}

impl Default for EcnConfig {
    fn default() -> Self {
        EcnConfig {
            enabled: true,
            kmin: Bytes::from_kb(400),
            kmax: Bytes::from_kb(1600),
            pmax: 0.2,
            reference_rate: Rate::from_gbps(100),
            thresholds: Thresholds::default(),
            at: MarkAt::default(),
            last_hop: LastHop::default(),
        }
    }
}

/// Scaling of thresholds on ports of different rates.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Thresholds {
    /// In proportion to the rate of the port, as in the HPCC configurations.
    #[default]
    ByRate,
    /// The same number of bytes on every port.
    Fixed,
}

/// Time at which a packet is marked.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MarkAt {
    /// On arrival, by the queue before the packet.
    Enqueue,
    /// On departure, by the queue that remains. The sender gets more recent information.
    #[default]
    Dequeue,
}

/// Marking by ports that lead to hosts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LastHop {
    /// These ports mark like all others.
    #[default]
    Mark,
    /// These ports mark nothing.
    Leave,
}

impl EcnConfig {
    /// Returns true if a switch's port marks, given that it leads to a host or not.
    pub(crate) fn marks(&self, to_host: bool) -> bool {
        !to_host || self.last_hop == LastHop::Mark
    }

    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        if !(0.0..=1.0).contains(&self.pmax) {
            return Err(out_of_range("ecn.pmax", self.pmax, "a probability, 0 to 1"));
        }
        if self.kmin > self.kmax {
            return Err(out_of_range("ecn.kmin", self.kmin, format!("at most kmax, {}", self.kmax)));
        }
        if self.reference_rate == Rate::ZERO {
            return Err(out_of_range("ecn.reference_rate", Rate::ZERO, "above 0"));
        }
        Ok(())
    }
}

/// Marking thresholds of one port.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Red {
    pub(crate) kmin_bytes: u32,
    kmax_bytes: u32,
    pmax: f64,
    at: MarkAt,
}

impl Red {
    pub(crate) fn new(rate: Rate, ecn: &EcnConfig) -> Self {
        let scaled = |bytes: Bytes| {
            let at = match ecn.thresholds {
                Thresholds::ByRate => rate.as_bps() as f64 / ecn.reference_rate.as_bps() as f64,
                Thresholds::Fixed => 1.0,
            };
            (bytes.get() as f64 * at).min(f64::from(u32::MAX)) as u32
        };
        Red { kmin_bytes: scaled(ecn.kmin), kmax_bytes: scaled(ecn.kmax), pmax: ecn.pmax, at: ecn.at }
    }

    /// Returns the marking probability at a queue of `bytes`: 0 up to kmin, linear to pmax at kmax, 1 above.
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

/// Marks the packets of all ports.
pub(crate) struct Marker {
    /// True if the ports of any switch mark packets as they are queued.
    pub(crate) on_enqueue: bool,
    /// True if the ports of any switch mark packets as they leave.
    pub(crate) on_dequeue: bool,
    dice: Dice,
    /// Number of marked packets of each port.
    pub(crate) marked_packets: Pages<u64>,
}

impl Marker {
    /// Creates the marker of ports of switches with these configurations.
    pub(crate) fn new<'a>(
        configs: impl Iterator<Item = &'a EcnConfig> + Clone,
        numbers: &PortNumbers,
        seed: u64,
    ) -> Self {
        let any = |at| configs.clone().any(|ecn| ecn.at == at);
        Marker {
            on_enqueue: any(MarkAt::Enqueue),
            on_dequeue: any(MarkAt::Dequeue),
            dice: Dice::new(seed, Purpose::Mark, numbers),
            marked_packets: Pages::new(numbers.held(), 0),
        }
    }

    /// Returns the allocated bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.marked_packets.bytes() + self.dice.rolled.bytes()
    }

    /// Marks a packet with the probability that belongs to the queue that it meets or leaves behind. The queue is
    /// above the lower threshold of the port. Ports that mark at another time leave the packet as it is.
    #[cold]
    pub(crate) fn mark(
        &mut self,
        at: MarkAt,
        port: PortId,
        red: Option<&Red>,
        queued_bytes: u32,
        header: &Header,
    ) -> Header {
        let mut header = *header;
        if let Some(red) = red
            && red.at == at
            && header.is(ECN_CAPABLE)
        {
            let probability = red.probability(queued_bytes);
            if probability >= 1.0 || self.dice.roll(port) < probability {
                *self.marked_packets.at(port) += 1;
                header.set(CE);
            }
        }
        header
    }
}

/// Purposes for which a port draws random numbers. Each has a separate count, since services may run ahead of
/// arrivals.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Mark,
    Impair,
    Trim,
}

/// Random numbers of all ports for one purpose.
pub(crate) struct Dice {
    seed: u64,
    purpose: Purpose,
    /// Number of draws of each port.
    rolled: Pages<u32>,
    numbers: PortNumbers,
}

impl Dice {
    pub(crate) fn new(seed: u64, purpose: Purpose, numbers: &PortNumbers) -> Self {
        Dice { seed, purpose, rolled: Pages::new(numbers.held(), 0), numbers: numbers.clone() }
    }

    /// Returns a number in [0, 1) that depends on the seed, the port, the purpose, and the number of the port's draws
    /// for it.
    pub(crate) fn roll(&mut self, port: PortId) -> f64 {
        let rolled = self.rolled.at(port);
        *rolled += 1;
        let rolled = *rolled;
        let purpose = match self.purpose {
            Purpose::Mark => 0,
            Purpose::Impair => 1 << 33,
            // Larger than the bits of any port id.
            Purpose::Trim => 1 << 63,
        };
        let place = u64::from(self.numbers.global(port)) << 34 | purpose | u64::from(rolled);
        (mix64(self.seed ^ mix64(place)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_probability_by_hand() {
        let red = Red::new(Rate::from_gbps(100), &EcnConfig::default());
        assert_eq!(red.probability(400_000), 0.0);
        assert_eq!(red.probability(1_000_000), 0.1); // half way from 400 KB to 1600 KB, pmax 0.2
        assert_eq!(red.probability(1_600_000), 0.2);
        assert_eq!(red.probability(1_600_001), 1.0);
    }

    #[test]
    fn thresholds_scale_with_the_rate_of_the_port() {
        let red = Red::new(Rate::from_gbps(25), &EcnConfig::default());
        assert_eq!(red, Red { kmin_bytes: 100_000, kmax_bytes: 400_000, pmax: 0.2, at: MarkAt::Dequeue });
        let fixed = EcnConfig { thresholds: Thresholds::Fixed, ..EcnConfig::default() };
        assert_eq!(Red::new(Rate::from_gbps(25), &fixed).kmin_bytes, 400_000);
    }
}
