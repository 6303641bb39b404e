//! Differences between a lab and the network it represents: rates, packet sizes, queues.

use std::fmt;
use std::str::FromStr;

use pathweave_units::Rate;

use crate::error::LabError;

/// Allowed IPv4 MTU of a lab's links, in bytes.
pub const MTU_BYTES: std::ops::RangeInclusive<u32> = 576..=65_535;
/// Allowed size of the queue in front of a link, in bytes.
pub const QUEUE_BYTES: std::ops::RangeInclusive<u64> = 10_000..=1_000_000_000;
/// Slowest link of a lab. Below this rate, one packet takes too long.
pub(crate) const MIN_RATE: Rate = Rate::from_bps(100_000);
/// Largest rate of the fastest link after [`RateScale::automatic`]: software can forward it with few cores.
const COMFORTABLE_RATE: Rate = Rate::from_gbps(1);

/// Settings of a lab that are not in its topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Ratio of the lab's link rates to the topology's.
    pub rate_scale: RateScale,
    /// IPv4 MTU of every link, in bytes. Default 9,000.
    pub mtu_bytes: u32,
    /// Treatment of packets from one segmentation-offload send: as one packet or split. Default off: split.
    pub super_packets: SuperPackets,
    /// Queue in front of a switch's link, in bytes, beyond which packets are dropped. Default 16 MB.
    pub queue_bytes: u64,
    /// ECN marking in switches. Default: none.
    pub marking: Option<Marking>,
}

impl Settings {
    /// Default MTU: that of fabrics with jumbo frames.
    pub const DEFAULT_MTU_BYTES: u32 = 9_000;
    /// Default queue: the share of one queue in the simulator's default switch, half of 32 MB (dynamic threshold with
    /// alpha 1).
    pub const DEFAULT_QUEUE_BYTES: u64 = 16_000_000;

    /// Creates default settings with this rate scale.
    pub fn new(rate_scale: RateScale) -> Settings {
        Settings {
            rate_scale,
            mtu_bytes: Self::DEFAULT_MTU_BYTES,
            super_packets: SuperPackets::default(),
            queue_bytes: Self::DEFAULT_QUEUE_BYTES,
            marking: None,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), LabError> {
        let refuse = |what, value: String, allowed| Err(LabError::Value { what, value, allowed });
        let (mtu, queue) = (MTU_BYTES, QUEUE_BYTES);
        if !mtu.contains(&self.mtu_bytes) {
            let nearest = self.mtu_bytes.clamp(*mtu.start(), *mtu.end());
            let allowed = format!("{} to {} bytes; nearest: {nearest}", mtu.start(), mtu.end());
            return refuse("MTU", self.mtu_bytes.to_string(), allowed);
        }
        if !queue.contains(&self.queue_bytes) {
            let nearest = self.queue_bytes.clamp(*queue.start(), *queue.end());
            let allowed = format!("{} to {} bytes; nearest: {nearest}", queue.start(), queue.end());
            return refuse("queue", self.queue_bytes.to_string(), allowed);
        }
        match &self.marking {
            Some(marking) if marking.kmin_bytes > marking.kmax_bytes => {
                let allowed = format!("at most the upper threshold, {} bytes", marking.kmax_bytes);
                refuse("lower ECN threshold", marking.kmin_bytes.to_string(), allowed)
            }
            Some(marking) if marking.pmax_ppm > 1_000_000 => {
                let allowed = "at most 1000000 in a million".to_owned();
                refuse("ECN marking probability", marking.pmax_ppm.to_string(), allowed)
            }
            _ => Ok(()),
        }
    }
}

/// Ratio of the lab's link rates to the topology's: above 0, at most 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateScale(f64);

impl RateScale {
    /// Links at the topology's rates.
    pub const FULL: RateScale = RateScale(1.0);

    /// Returns the power of ten that brings the fastest of `rates` down to at most 1 Gb/s.
    pub fn automatic(rates: impl IntoIterator<Item = Rate>) -> RateScale {
        let fastest = rates.into_iter().max().unwrap_or(Rate::ZERO);
        let mut divisor = 1u64;
        while fastest.as_bps() / divisor > COMFORTABLE_RATE.as_bps() {
            divisor *= 10;
        }
        RateScale(1.0 / divisor as f64)
    }

    /// Returns a tenth of this scale.
    pub(crate) fn a_tenth(self) -> RateScale {
        RateScale(1.0 / (10.0 / self.0).round())
    }

    /// Creates a scale.
    ///
    /// # Errors
    ///
    /// The share is not above 0 and at most 1.
    pub fn new(share: f64) -> Result<RateScale, LabError> {
        if share > 0.0 && share <= 1.0 {
            return Ok(RateScale(share));
        }
        let allowed = "above 0, at most 1, as a fraction (1/1000) or a number (0.001)".to_owned();
        Err(LabError::Value { what: "rate scale", value: share.to_string(), allowed })
    }

    /// Returns the ratio as a number.
    pub fn share(self) -> f64 {
        self.0
    }

    /// Converts a rate of the topology to the lab's rate.
    pub fn apply(self, rate: Rate) -> Rate {
        rate.scale(self.0)
    }
}

impl FromStr for RateScale {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let share = match text.split_once('/') {
            Some((over, under)) => number(over).zip(number(under)).map(|(over, under)| over / under),
            None => number(text),
        };
        share.and_then(|share| RateScale::new(share).ok()).ok_or_else(|| LabError::Value {
            what: "rate scale",
            value: text.to_owned(),
            allowed: "above 0, at most 1, as a fraction (1/1000) or a number (0.001)".to_owned(),
        })
    }
}

impl fmt::Display for RateScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divisor = (1.0 / self.0).round();
        if self.0 < 1.0 && 1.0 / divisor == self.0 {
            write!(f, "1/{divisor}")
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Treatment of one send with segmentation offload on a veth link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SuperPackets {
    /// One packet of up to 64 KB, cheap to forward. Queues count, drop and mark it as a whole.
    On,
    /// Packets of at most the MTU, as on real links. The default.
    #[default]
    Off,
}

/// RED that marks, on the queue in front of a switch's link. The thresholds apply at the rate `reference`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marking {
    /// Queue in bytes up to which no packet is marked.
    pub kmin_bytes: u64,
    /// Queue in bytes above which every packet is marked.
    pub kmax_bytes: u64,
    /// Share of packets marked at `kmax_bytes`, in millionths.
    pub pmax_ppm: u32,
    /// Rate of a link of the topology at which the thresholds apply; they scale with the rate of other links. `None`:
    /// the same thresholds on all links.
    pub reference: Option<Rate>,
}

impl Marking {
    /// Returns both thresholds in bytes for a link with this rate of the topology (not of the lab).
    pub(crate) fn thresholds_at(&self, rate: Rate) -> (u64, u64) {
        let Some(reference) = self.reference.filter(|reference| *reference != Rate::ZERO) else {
            return (self.kmin_bytes, self.kmax_bytes);
        };
        let scaled = |bytes: u64| {
            let scaled = u128::from(bytes) * u128::from(rate.as_bps()) / u128::from(reference.as_bps());
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        (scaled(self.kmin_bytes), scaled(self.kmax_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_fractions_or_numbers() {
        for (text, share, shown) in
            [("1/1000", 0.001, "1/1000"), ("0.001", 0.001, "1/1000"), ("1", 1.0, "1"), ("3/4", 0.75, "0.75")]
        {
            let scale: RateScale = text.parse().unwrap();
            assert_eq!((scale.share(), scale.to_string().as_str()), (share, shown), "{text}");
            assert_eq!(scale.to_string().parse::<RateScale>().unwrap(), scale);
        }
        assert_eq!("1/1000".parse::<RateScale>().unwrap().apply(Rate::from_gbps(100)), Rate::from_mbps(100));
        for wrong in ["0", "-1", "2", "1/0", "0/0", "nan", "inf", "fast", "", "1/2/3"] {
            let error = wrong.parse::<RateScale>().unwrap_err().to_string();
            assert!(error.contains("above 0, at most 1"), "{wrong}: {error}");
        }
    }

    #[test]
    fn automatic_is_the_power_of_ten_below_a_gigabit() {
        for (gbps, shown) in [(1, "1"), (2, "1/10"), (10, "1/10"), (100, "1/100"), (400, "1/1000")] {
            let rates = [Rate::from_mbps(10), Rate::from_gbps(gbps)];
            assert_eq!(RateScale::automatic(rates).to_string(), shown, "{gbps}G");
        }
    }

    #[test]
    fn tenths_of_powers_of_ten_are_exact() {
        let mut scale = RateScale::FULL;
        for shown in ["1/10", "1/100", "1/1000", "1/10000"] {
            scale = scale.a_tenth();
            assert_eq!(scale.to_string(), shown);
        }
    }

    #[test]
    fn thresholds_follow_the_topologys_rate() {
        let reference = Some(Rate::from_gbps(100));
        let marking = Marking { kmin_bytes: 400_000, kmax_bytes: 1_600_000, pmax_ppm: 200_000, reference };
        assert_eq!(marking.thresholds_at(Rate::from_gbps(25)), (100_000, 400_000));
        let fixed = Marking { reference: None, ..marking };
        assert_eq!(fixed.thresholds_at(Rate::from_gbps(25)), (400_000, 1_600_000));
    }

    #[test]
    fn settings_out_of_range_name_the_nearest() {
        let settings = Settings { mtu_bytes: 68, ..Settings::new(RateScale::FULL) };
        let error = settings.validate().unwrap_err().to_string();
        assert_eq!(error, "MTU \"68\": 576 to 65535 bytes; nearest: 576");
        assert!(Settings { queue_bytes: 1, ..Settings::new(RateScale::FULL) }.validate().is_err());
    }
}
