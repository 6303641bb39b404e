//! Trimming: if a port has no room for a data packet, it forwards the header alone and before data, so that the
//! receiver learns of the loss within a round trip (NDP, SIGCOMM'17; Ultra Ethernet 1.0, section 4.1; SAI 1.14).
//!
//! A port has two limits: one for waiting data plus the packet in transmission, and one for waiting headers and
//! control packets. A data packet beyond the first limit is trimmed, or instead of it the newest one in the queue;
//! the choice is random. The header keeps destination, path and Congestion Experienced, and records whether the port
//! leads to the receiver itself. A header beyond the second limit is lost.
//!
//! The decision is in `make_room.rs`.

use pathweave_units::{Bytes, Rate};

use crate::config_error::{ConfigError, out_of_range};
use crate::marking::{Dice, Purpose, Thresholds};
use crate::numbers::PortNumbers;
use crate::packet::{Header, MIN_WIRE_BYTES, PortId};

/// Trimming in switches: treatment of data packets that do not fit in the queue of their port. Replaces the limit of
/// `egress_alpha`. Cannot be combined with `pfc`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrimConfig {
    /// Enables trimming instead of dropping. Default false. Requires `pfc.enabled = false`.
    pub enabled: bool,
    /// Data that a port may hold at `reference_rate`, including the packet in transmission. At least 1 KB. Default
    /// 178450 B: 43 packets of 4150 bytes, a bandwidth-delay product of 14 us at 100 Gb/s (uet-htsim).
    pub queue: Bytes,
    /// Headers and control packets that a port may hold at `reference_rate`. Further ones are lost. At least `size`.
    /// Absent: twice `queue` (uet-htsim).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_queue: Option<Bytes>,
    /// Size of a trimmed packet on the link, 40 B to 512 B. Default 64 B (uet-htsim); SAI has 128 B.
    pub size: Bytes,
    /// Share of trims that apply to the arriving packet, 0 to 1. The others apply to the newest packet in the queue,
    /// and the arriving packet takes its place. Default 0.5 (uet-htsim).
    pub arriving: f64,
    /// Port rate to which `queue` and `header_queue` refer, above 0. Default 100 Gb/s.
    pub reference_rate: Rate,
    /// Scaling of `queue` and `header_queue` at ports of other rates. Default "by-rate".
    pub thresholds: Thresholds,
}

impl Default for TrimConfig {
    fn default() -> Self {
        TrimConfig {
            enabled: false,
            queue: Bytes::new(43 * 4_150),
            header_queue: None,
            size: Bytes::new(64),
            arriving: 0.5,
            reference_rate: Rate::from_gbps(100),
            thresholds: Thresholds::default(),
        }
    }
}

/// Largest size of a trimmed packet: the size of the smallest packet that is worth trimming.
const MAX_SIZE_BYTES: u64 = 512;

impl TrimConfig {
    pub(crate) fn validate(&self, pfc: bool) -> Result<(), ConfigError> {
        if self.enabled && pfc {
            let allowed = "false while switch.pfc.enabled is true: a switch that pauses its neighbours never has to trim";
            return Err(out_of_range("trim.enabled", true, allowed));
        }
        if self.queue < Bytes::from_kb(1) {
            return Err(out_of_range("trim.queue", self.queue, "at least 1KB"));
        }
        if let Some(headers) = self.header_queue
            && headers < self.size
        {
            return Err(out_of_range("trim.header_queue", headers, format!("at least size, {}", self.size)));
        }
        if !(u64::from(MIN_WIRE_BYTES)..=MAX_SIZE_BYTES).contains(&self.size.get()) {
            return Err(out_of_range(
                "trim.size",
                self.size,
                format!("{MIN_WIRE_BYTES}B to {MAX_SIZE_BYTES}B"),
            ));
        }
        if !(0.0..=1.0).contains(&self.arriving) {
            return Err(out_of_range("trim.arriving", self.arriving, "a share, 0 to 1"));
        }
        if self.reference_rate == Rate::ZERO {
            return Err(out_of_range("trim.reference_rate", Rate::ZERO, "above 0"));
        }
        Ok(())
    }
}

/// Trimming by ports of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrimLimits {
    /// Limit for data, including the packet in transmission.
    pub(crate) data_bytes: u64,
    /// Limit for headers and control packets.
    pub(crate) header_bytes: u64,
    /// Size of a trimmed packet.
    pub(crate) size_bytes: u16,
    /// Share of trims that apply to the arriving packet.
    pub(crate) arriving: f64,
}

impl TrimLimits {
    /// Returns the limits, or `None` if switches do not trim.
    pub(crate) fn new(rate: Rate, config: &TrimConfig) -> Option<Self> {
        let scaled = |bytes: Bytes| match config.thresholds {
            Thresholds::Fixed => bytes.get(),
            Thresholds::ByRate => {
                let product = u128::from(bytes.get()) * u128::from(rate.as_bps());
                (product / u128::from(config.reference_rate.as_bps())).min(u128::from(u32::MAX)) as u64
            }
        };
        let headers = config.header_queue.unwrap_or(Bytes::new(config.queue.get().saturating_mul(2)));
        config.enabled.then(|| TrimLimits {
            data_bytes: scaled(config.queue),
            // At least one header must fit, or no loss would ever be reported.
            header_bytes: scaled(headers).max(config.size.get()),
            size_bytes: config.size.get() as u16,
            arriving: config.arriving,
        })
    }

    /// Returns true if the packet may be trimmed and would become smaller.
    pub(crate) fn can_trim(&self, header: &Header) -> bool {
        header.is_trimmable() && header.wire_bytes() > self.size_bytes
    }
}

/// Random choices of trimmed packets, at all ports.
pub(crate) struct Trimmer {
    dice: Dice,
}

impl Trimmer {
    pub(crate) fn new(seed: u64, numbers: &PortNumbers) -> Self {
        Trimmer { dice: Dice::new(seed, Purpose::Trim, numbers) }
    }

    /// Draws the packet that is trimmed at a port. Returns true for the arriving one, false for the newest in the
    /// queue.
    pub(crate) fn chooses_arriving(&mut self, port: PortId, limits: &TrimLimits) -> bool {
        limits.arriving >= 1.0 || self.dice.roll(port) < limits.arriving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_scale_with_the_rate_of_the_port() {
        let config = TrimConfig { enabled: true, ..TrimConfig::default() };
        let limits = |gbps, config: &TrimConfig| {
            let limits = TrimLimits::new(Rate::from_gbps(gbps), config)?;
            Some((limits.data_bytes, limits.header_bytes))
        };
        assert_eq!(limits(100, &config), Some((178_450, 356_900)));
        assert_eq!(limits(25, &config), Some((44_612, 89_225)));
        let fixed = TrimConfig { thresholds: Thresholds::Fixed, ..config.clone() };
        assert_eq!(limits(25, &fixed), limits(100, &config));
        assert_eq!(limits(100, &TrimConfig::default()), None);
        let endless = TrimConfig { queue: Bytes::new(u64::MAX), ..fixed };
        assert_eq!(limits(100, &endless), Some((u64::MAX, u64::MAX)));
    }
}
