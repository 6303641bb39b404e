//! Configuration of switches, NICs and faults, with defaults and their sources.

use pathweave_units::{Bytes, Duration, Rate};

pub use crate::classes::{
    Asic, ClassError, EcnChange, PfcChange, SwitchClasses, SwitchFor, SwitchPlace, SwitchRole, TrimChange,
};
pub use crate::config_error::ConfigError;
use crate::config_error::out_of_range;
pub use crate::forwarding::{
    ConWeaveConfig, CongaConfig, CongaCounts, DrillConfig, DrillVariant, Forwarding, ForwardingConfig,
    LetFlowConfig, ReplyAfter, Shares, UgalConfig, WcmpConfig,
};
pub use crate::marking::{EcnConfig, LastHop, MarkAt, Thresholds};
pub use crate::middlebox::{CoolMode, ExternalConfig, HostStamp, NdtConfig, NsfConfig, OrderGuards};
pub use crate::trim::TrimConfig;

/// Largest number of traffic classes. Class 0 is control (acknowledgements, notifications), the others are data.
pub const MAX_CLASSES: usize = 8;

/// Settings of all switches of a fabric.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchConfig {
    /// Packet memory that all ports of a switch share, 64 KB to 4.29 GB. Default 32 MB (set-ups of UDMP, DLBF and
    /// HPCC).
    pub buffer: Bytes,
    /// Share of the free buffer that one lossy egress queue may fill before packets are dropped. Above 0, at
    /// most 1024. Default 1.0 (dynamic threshold of Choudhury and Hahne, 1998). Switches that trim use `trim.queue`
    /// instead.
    pub egress_alpha: f64,
    /// Priority flow control for the data classes.
    pub pfc: PfcConfig,
    /// Congestion marking of the data classes.
    pub ecn: EcnConfig,
    /// Trimming of data packets that do not fit in the queue of their port.
    pub trim: TrimConfig,
    /// Weights of the data classes, one entry a class, each 1 to 1000. Data classes are counted from 1, and class i gets
    /// `weights[i - 1]` shares of the rate that strict-priority control traffic leaves. Default `[1]`, one class. At
    /// most 7 classes.
    pub weights: Vec<u32>,
    /// Seeds of the hash that chooses among equal-cost next hops, in switches without other load balancing. Default
    /// "seeded".
    pub hash: EcmpHash,
    /// Load balancing in the switches.
    pub forwarding: ForwardingConfig,
    /// Class in which acknowledgements and other control packets are queued. Default "control".
    pub acks: AckClass,
    /// Time from the failure or the return of a link or switch until all routes avoid it or use it again. Default 1
    /// ms. Until then packets for a dead link are lost.
    pub reroute_after: Duration,
    /// External switches, which join data centres: their buffer, and their functions beyond forwarding.
    pub external: ExternalConfig,
    /// Time that each packet takes behind its egress port, in addition to the delay of the link: the fixed latency of
    /// the switch. Default 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub latency: Duration,
    /// Other settings for some switches: `[[switch.for]]`. Of several tables for a switch, the last one that sets a
    /// field counts.
    #[serde(rename = "for", skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<SwitchFor>,
}

fn is_zero(duration: &Duration) -> bool {
    *duration == Duration::ZERO
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
            latency: Duration::ZERO,
            tables: Vec::new(),
        }
    }
}

/// Priority flow control (IEEE 802.1Qbb) with a threshold for each ingress port and class.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PfcConfig {
    /// Makes the data classes lossless. Default true.
    pub enabled: bool,
    /// Kind of XOFF threshold of an ingress queue. "dynamic" (default): the share `alpha` of the free shared buffer.
    /// "static": an equal part of the shared buffer for each port, whatever is free (LAPS).
    #[serde(skip_serializing_if = "PfcThreshold::is_dynamic")]
    pub threshold: PfcThreshold,
    /// Share of the free shared buffer above which an ingress queue sends XOFF, above 0 and at most 1024. Default 1/8
    /// (HPCC, ConWeave).
    pub alpha: f64,
    /// Distance below the XOFF threshold at which an ingress queue sends XON. Default 3 KB (HPCC).
    pub xon_gap: Bytes,
    /// Buffer reserved for each ingress port and class for packets that arrive after XOFF was sent. Absent: computed
    /// from the link as two propagation delays, three frames of 9216 B and the pause frame, which always suffices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// Time after which a cycle of paused ports, none of which has sent, ends the run as a deadlock. Default 1 ms.
    pub deadlock_after: Duration,
    /// Time after which a port that was paused without interruption ends the run as a pause storm. Default 100 ms.
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

/// Kind of XOFF threshold.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PfcThreshold {
    /// A share of the free shared buffer.
    #[default]
    Dynamic,
    /// An equal part of the shared buffer for each port.
    Static,
}

impl PfcThreshold {
    /// Returns true for the default.
    pub fn is_dynamic(&self) -> bool {
        *self == PfcThreshold::Dynamic
    }
}

/// Seeds of the hash of source, destination and path entropy by which switches choose among equal-cost next hops.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EcmpHash {
    /// Each switch has a seed of its own.
    #[default]
    Seeded,
    /// All switches have the same seed: successive tiers repeat each other's choice (hash polarisation).
    Polarised,
}

/// Class in which acknowledgements are queued.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AckClass {
    /// Their own class, with strict priority.
    #[default]
    Control,
    /// The class of the data that they acknowledge.
    Data,
}

/// A scheduled fault. All times are simulated time since the start of the run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultConfig {
    /// A link loses all packets, queued or in flight, from `at` until `up_at`. If one direction fails, the other works
    /// until routes avoid the link, which they do in both directions.
    LinkDown {
        /// Link, named by its ends: "tor0-agg1". One direction of it: "tor0->agg1". Link of a scale-up network:
        /// "srv0.gpu0-srv0.chip1".
        link: String,
        /// Start of the fault.
        at: Duration,
        /// Time at which the link comes back. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_at: Option<Duration>,
    },
    /// A link goes down and up repeatedly.
    LinkFlap {
        /// Link or direction, named by its ends.
        link: String,
        /// Time at which the link goes down first.
        at: Duration,
        /// Duration of each failure, above 0.
        down_for: Duration,
        /// Time between the end of a failure and the next one, above 0.
        up_for: Duration,
        /// Number of failures, 1 to 100000.
        times: u32,
    },
    /// A link runs at another rate. Of several such faults at once, the smallest rate holds.
    LinkRate {
        /// Link or direction, named by its ends.
        link: String,
        /// Start of the fault.
        at: Duration,
        /// Rate during the fault, above 0.
        rate: Rate,
        /// End of the fault. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Duration>,
    },
    /// A link has another propagation delay. Packets on a link never overtake each other. Of several such faults at
    /// once, the longest delay holds.
    LinkDelay {
        /// Link or direction, named by its ends.
        link: String,
        /// Start of the fault.
        at: Duration,
        /// Propagation delay during the fault.
        delay: Duration,
        /// End of the fault. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Duration>,
    },
    /// Each packet on a link is lost with a fixed probability (Bernoulli). Several such faults at once are independent.
    LinkLoss {
        /// Link or direction, named by its ends.
        link: String,
        /// Start of the fault. Default: the start of the run.
        #[serde(default)]
        at: Duration,
        /// Probability of the loss of a packet, 0 to 1.
        probability: f64,
        /// End of the fault. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Duration>,
    },
    /// Each packet on a link arrives with a bad checksum with a fixed probability. The node that receives it drops
    /// it. Several such faults at once are independent.
    LinkCorruption {
        /// Link or direction, named by its ends.
        link: String,
        /// Start of the fault. Default: the start of the run.
        #[serde(default)]
        at: Duration,
        /// Probability of the corruption of a packet, 0 to 1.
        probability: f64,
        /// End of the fault. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Duration>,
    },
    /// All links of a switch go down.
    SwitchDown {
        /// Name of the switch, or of a chip of a scale-up network: "srv0.chip1".
        switch: String,
        /// Start of the fault.
        at: Duration,
        /// Time at which the switch comes back, with empty queues. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_at: Option<Duration>,
    },
    /// A broken NIC sends pause frames without end for all data classes of its link. A switch without PFC ignores them.
    PauseStorm {
        /// Name of the host.
        host: String,
        /// Start of the fault.
        at: Duration,
        /// Time at which the pause frames stop. Absent: never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Duration>,
    },
}

impl SwitchConfig {
    /// Returns the number of traffic classes in use, control included.
    pub fn classes(&self) -> usize {
        1 + self.weights.len()
    }

    /// Checks that every field is within its range.
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
    /// Returns the time at which a link or switch that the fault takes down works for good; `None` for other faults, and
    /// for one without end.
    pub fn up_again(&self) -> Option<Duration> {
        match *self {
            FaultConfig::LinkDown { up_at, .. } | FaultConfig::SwitchDown { up_at, .. } => up_at,
            FaultConfig::LinkFlap { at, down_for, up_for, times, .. } => {
                Some(at + (down_for + up_for) * u64::from(times))
            }
            _ => None,
        }
    }

    /// Returns the start of the fault.
    pub fn at(&self) -> Duration {
        match self {
            FaultConfig::LinkDown { at, .. }
            | FaultConfig::LinkFlap { at, .. }
            | FaultConfig::LinkRate { at, .. }
            | FaultConfig::LinkDelay { at, .. }
            | FaultConfig::LinkLoss { at, .. }
            | FaultConfig::LinkCorruption { at, .. }
            | FaultConfig::SwitchDown { at, .. }
            | FaultConfig::PauseStorm { at, .. } => *at,
        }
    }

    /// Returns the kind of the fault and its place: "link-down on leaf0-spine0".
    pub fn name(&self) -> String {
        let (kind, on) = match self {
            FaultConfig::LinkDown { link, .. } => ("link-down", link),
            FaultConfig::LinkFlap { link, .. } => ("link-flap", link),
            FaultConfig::LinkRate { link, .. } => ("link-rate", link),
            FaultConfig::LinkDelay { link, .. } => ("link-delay", link),
            FaultConfig::LinkLoss { link, .. } => ("link-loss", link),
            FaultConfig::LinkCorruption { link, .. } => ("link-corruption", link),
            FaultConfig::SwitchDown { switch, .. } => ("switch-down", switch),
            FaultConfig::PauseStorm { host, .. } => ("pause-storm", host),
        };
        format!("{kind} on {on}")
    }

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
