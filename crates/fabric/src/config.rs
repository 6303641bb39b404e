//! Configuration of switches, NICs and faults, with defaults and where they come from.

use pathweave_units::{Bytes, Duration, Rate};

pub use crate::config_error::ConfigError;
use crate::config_error::out_of_range;
pub use crate::forwarding::{
    ConWeaveConfig, CongaConfig, CongaCounts, DrillConfig, DrillVariant, Forwarding, ForwardingConfig,
    LetFlowConfig, ReplyAfter, Shares, UgalConfig, WcmpConfig,
};
pub use crate::marking::{EcnConfig, LastHop, MarkAt, Thresholds};
pub use crate::middlebox::{CoolMode, ExternalConfig, NdtConfig, NsfConfig, OrderGuards};
pub use crate::trim::TrimConfig;

/// Traffic classes a packet can be in: class 0 is control (acknowledgements, notifications), the rest is data.
pub const MAX_CLASSES: usize = 8;

/// All switches of a fabric.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchConfig {
    /// Packet memory shared by all ports of a switch. Default 32 MB (UDMP, DLBF and HPCC set-ups).
    pub buffer: Bytes,
    /// Share of the free buffer one lossy egress queue may fill before packets are dropped. Default 1.0
    /// (dynamic threshold of Choudhury and Hahne, 1998). Where switches trim, `trim.queue` takes its place.
    pub egress_alpha: f64,
    /// Priority flow control for the data classes.
    pub pfc: PfcConfig,
    /// Congestion marking of the data classes.
    pub ecn: EcnConfig,
    /// Trimming of data packets for which a port has no room.
    pub trim: TrimConfig,
    /// Data classes and their weights: class i gets `weights[i]` shares of what strict-priority control traffic
    /// leaves. Default one class. At most 7.
    pub weights: Vec<u32>,
    /// Seeds of the hash that chooses among equal-cost next hops, where no other load balancing does.
    pub hash: EcmpHash,
    /// Load balancing in the switches.
    pub forwarding: ForwardingConfig,
    /// Class of acknowledgements and other control packets.
    pub acks: AckClass,
    /// Time from a link or switch failing (or coming back) until routing everywhere avoids (or uses) it again.
    /// Default 1 ms; until then packets for a dead link are lost.
    pub reroute_after: Duration,
    /// External switches, which join data centres: their buffer, and what they do beyond switching.
    pub external: ExternalConfig,
}

impl Default for SwitchConfig {
    fn default() -> Self {
        SwitchConfig {
            buffer: Bytes::from_mb(32),
            egress_alpha: 1.0,
            pfc: PfcConfig::default(),
            ecn: EcnConfig::default(),
            trim: TrimConfig::default(),
            weights: vec![1],
            hash: EcmpHash::default(),
            forwarding: ForwardingConfig::default(),
            acks: AckClass::default(),
            reroute_after: Duration::from_ms(1),
            external: ExternalConfig::default(),
        }
    }
}

/// Priority flow control (IEEE 802.1Qbb) with a threshold per ingress port and class.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PfcConfig {
    /// Whether data classes are lossless. Default true.
    pub enabled: bool,
    /// Threshold of XOFF of an ingress queue: "dynamic" (default) a share `alpha` of the free shared buffer; "static" an
    /// equal part of the shared buffer for each port, whatever is free (LAPS).
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "PfcThreshold::is_dynamic"))]
    pub threshold: PfcThreshold,
    /// XOFF when an ingress queue holds more than this share of the free shared buffer. Default 1/8 (HPCC, ConWeave).
    pub alpha: f64,
    /// XON when it has fallen this far below the XOFF threshold. Default 3 KB (HPCC).
    pub xon_gap: Bytes,
    /// Room kept for what arrives after XOFF was sent, per ingress port and class. Absent: computed from the link
    /// (two propagation delays, a frame at each end, the pause frame itself) which is always enough.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub headroom: Option<Bytes>,
    /// A cycle of paused ports none of which has sent for this long ends the run as a deadlock. Default 1 ms.
    pub deadlock_after: Duration,
    /// A port paused without a break for this long ends the run as a pause storm. Default 100 ms.
    pub storm_after: Duration,
}

impl Default for PfcConfig {
    fn default() -> Self {
        PfcConfig {
            enabled: true,
            threshold: PfcThreshold::Dynamic,
            alpha: PFC_ALPHA,
            xon_gap: Bytes::from_kb(3),
            headroom: None,
            deadlock_after: Duration::from_ms(1),
            storm_after: Duration::from_ms(100),
        }
    }
}

/// Default of [`PfcConfig::alpha`].
const PFC_ALPHA: f64 = 0.125;

/// Threshold of XOFF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PfcThreshold {
    /// A share of the free shared buffer.
    #[default]
    Dynamic,
    /// An equal part of the shared buffer for each port.
    Static,
}

impl PfcThreshold {
    /// True of the default.
    pub fn is_dynamic(&self) -> bool {
        *self == PfcThreshold::Dynamic
    }
}

/// How switches choose among equal-cost next hops: a hash of source, destination and path entropy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EcmpHash {
    /// A seed of its own in every switch.
    #[default]
    Seeded,
    /// The same seed everywhere: successive tiers repeat each other's choice (hash polarisation).
    Polarised,
}

/// Where acknowledgements queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AckClass {
    /// In a class of their own with strict priority.
    #[default]
    Control,
    /// In the class of the data they answer.
    Data,
}

/// A scheduled fault. `at` is simulated time.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FaultConfig {
    /// Both directions of a link lose everything, queued or in flight, from `at` on (until `up_at`, if given).
    LinkDown {
        /// Link, named by its ends: "tor0-agg1".
        link: String,
        /// When.
        at: Duration,
        /// When it comes back.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        up_at: Option<Duration>,
    },
    /// A link goes down and up again and again.
    LinkFlap {
        /// Link, named by its ends.
        link: String,
        /// First time down.
        at: Duration,
        /// How long it is down each time.
        down_for: Duration,
        /// How long it is up in between.
        up_for: Duration,
        /// How often.
        times: u32,
    },
    /// A link runs at another rate.
    LinkRate {
        /// Link, named by its ends.
        link: String,
        /// When.
        at: Duration,
        /// The rate from then on; above 0.
        rate: Rate,
        /// When the old rate returns.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Duration>,
    },
    /// A link has another propagation delay. Packets on a link never overtake each other.
    LinkDelay {
        /// Link, named by its ends.
        link: String,
        /// When.
        at: Duration,
        /// The delay from then on.
        delay: Duration,
        /// When the old delay returns.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Duration>,
    },
    /// Packets vanish from a link with a probability each (Bernoulli).
    LinkLoss {
        /// Link, named by its ends.
        link: String,
        /// When. Default: from the start.
        #[cfg_attr(feature = "serde", serde(default))]
        at: Duration,
        /// Probability a packet, 0 to 1.
        probability: f64,
        /// When it ends.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Duration>,
    },
    /// Packets arrive with a bad checksum with a probability each and are dropped by who receives them.
    LinkCorruption {
        /// Link, named by its ends.
        link: String,
        /// When. Default: from the start.
        #[cfg_attr(feature = "serde", serde(default))]
        at: Duration,
        /// Probability a packet, 0 to 1.
        probability: f64,
        /// When it ends.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Duration>,
    },
    /// All links of a switch go down.
    SwitchDown {
        /// Its name.
        switch: String,
        /// When.
        at: Duration,
        /// When it comes back, with empty queues.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        up_at: Option<Duration>,
    },
    /// A broken NIC that sends pause frames without end for all data classes of its link.
    PauseStorm {
        /// The host, by name.
        host: String,
        /// When.
        at: Duration,
        /// When it stops.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        until: Option<Duration>,
    },
}

impl SwitchConfig {
    /// Traffic classes in use, control included.
    pub fn classes(&self) -> usize {
        1 + self.weights.len()
    }

    /// Checks every range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (low, high) = (Bytes::from_kb(64), Bytes::new(u64::from(u32::MAX)));
        if !(low..=high).contains(&self.buffer) {
            return Err(out_of_range("buffer", self.buffer, format!("{low} to {high}")));
        }
        for (field, value) in [("egress_alpha", self.egress_alpha), ("pfc.alpha", self.pfc.alpha)] {
            if !(value > 0.0 && value <= 1024.0) {
                return Err(out_of_range(field, value, "above 0, at most 1024"));
            }
        }
        if self.pfc.threshold == PfcThreshold::Static && self.pfc.alpha != PFC_ALPHA {
            return Err(out_of_range("pfc.alpha", self.pfc.alpha, "absent with pfc.threshold \"static\""));
        }
        self.ecn.validate()?;
        self.trim.validate(self.pfc.enabled)?;
        if self.weights.is_empty() || self.classes() > MAX_CLASSES {
            return Err(out_of_range("weights", format!("{:?}", self.weights), "1 to 7 data classes"));
        }
        if let Some(weight) = self.weights.iter().find(|&&w| w == 0 || w > 1_000) {
            return Err(out_of_range("weights", weight, "1 to 1000 each"));
        }
        for (field, span) in
            [("pfc.deadlock_after", self.pfc.deadlock_after), ("pfc.storm_after", self.pfc.storm_after)]
        {
            if span == Duration::ZERO {
                return Err(out_of_range(field, span, "above 0"));
            }
        }
        self.forwarding.validate()?;
        self.external.validate(self.weights.len())
    }
}

impl FaultConfig {
    /// Checks probabilities, rates and the order of times.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let after = |field, at: Duration, end: Option<Duration>| match end {
            Some(end) if end <= at => {
                Err(out_of_range(field, end, format!("after the start of the fault, {at}")))
            }
            _ => Ok(()),
        };
        match self {
            FaultConfig::LinkDown { at, up_at, .. } | FaultConfig::SwitchDown { at, up_at, .. } => {
                after("up_at", *at, *up_at)
            }
            FaultConfig::LinkRate { at, rate, until, .. } => {
                if *rate == Rate::ZERO {
                    return Err(out_of_range("rate", rate, "above 0; a dead link is kind = \"link-down\""));
                }
                after("until", *at, *until)
            }
            FaultConfig::LinkDelay { at, until, .. } | FaultConfig::PauseStorm { at, until, .. } => {
                after("until", *at, *until)
            }
            FaultConfig::LinkLoss { at, probability, until, .. }
            | FaultConfig::LinkCorruption { at, probability, until, .. } => {
                if !(0.0..=1.0).contains(probability) {
                    return Err(out_of_range("probability", probability, "0 to 1"));
                }
                after("until", *at, *until)
            }
            FaultConfig::LinkFlap { down_for, up_for, times, .. } => {
                for (field, span) in [("down_for", down_for), ("up_for", up_for)] {
                    if *span == Duration::ZERO {
                        return Err(out_of_range(field, span, "above 0"));
                    }
                }
                if !(1..=100_000).contains(times) {
                    return Err(out_of_range("times", times, "1 to 100000"));
                }
                Ok(())
            }
        }
    }
}
