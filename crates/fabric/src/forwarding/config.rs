//! Which load balancing the switches do, and its parameters.

use pathweave_units::{Bytes, Duration};

use crate::config::{ConfigError, out_of_range};

/// Load balancing in switches: how one chooses among equal-cost next hops.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ForwardingConfig {
    /// What all switches do. Absent: what the schemes in use are made for, "ecmp" where they do not say.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub kind: Option<Forwarding>,
    /// Parameters of "wcmp" and "weighted-rps".
    pub wcmp: WcmpConfig,
    /// Parameters of "letflow".
    pub letflow: LetFlowConfig,
    /// Parameters of "drill".
    pub drill: DrillConfig,
    /// Parameters of "ugal".
    pub ugal: UgalConfig,
    /// Parameters of "conga".
    pub conga: CongaConfig,
    /// Parameters of "conweave".
    pub conweave: ConWeaveConfig,
}

/// How a switch chooses among equal-cost next hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Forwarding {
    /// By a hash of source, destination and path entropy.
    #[default]
    Ecmp,
    /// By that hash, with shares by the capacity that each next hop has to the destination (WCMP, EuroSys 2014).
    Wcmp,
    /// A random one for every packet.
    Rps,
    /// A random one for every packet, with shares by capacity.
    WeightedRps,
    /// A random one for every flowlet (LetFlow, NSDI 2017).
    #[cfg_attr(feature = "serde", serde(rename = "letflow"))]
    LetFlow,
    /// For every packet the shortest queue among a few random ones and the best one seen before (DRILL, SIGCOMM 2017).
    Drill,
    /// For every packet the shortest way, or one by a random other switch where less waits for that (UGAL-L, ISCA 2008;
    /// made for Dragonfly). Each host must be at one switch.
    Ugal,
    /// For every flowlet the way that is least congested as far as the leaf of the receiver (CONGA, SIGCOMM 2014). Each
    /// host must be at one switch.
    Conga,
    /// Flows leave ways with a long round trip, and the switch of the receiver puts them in order (ConWeave, SIGCOMM 2023).
    /// Each host must be at one switch.
    #[cfg_attr(feature = "serde", serde(rename = "conweave"))]
    ConWeave,
}

impl Forwarding {
    /// All there are.
    pub const ALL: [Forwarding; 9] = [
        Forwarding::Ecmp,
        Forwarding::Wcmp,
        Forwarding::Rps,
        Forwarding::WeightedRps,
        Forwarding::LetFlow,
        Forwarding::Drill,
        Forwarding::Ugal,
        Forwarding::Conga,
        Forwarding::ConWeave,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Forwarding::Ecmp => "ecmp",
            Forwarding::Wcmp => "wcmp",
            Forwarding::Rps => "rps",
            Forwarding::WeightedRps => "weighted-rps",
            Forwarding::LetFlow => "letflow",
            Forwarding::Drill => "drill",
            Forwarding::Ugal => "ugal",
            Forwarding::Conga => "conga",
            Forwarding::ConWeave => "conweave",
        }
    }
}

/// What routing gives the next hops of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// As much to each.
    Equal,
    /// In proportion to the capacity there is beyond them.
    ByCapacity {
        /// Entries a set of next hops may take, beyond one for each.
        most_entries: u32,
    },
}

impl ForwardingConfig {
    /// What routing gives the next hops of a switch.
    pub fn shares(&self) -> Shares {
        match self.kind.unwrap_or_default() {
            Forwarding::Wcmp | Forwarding::WeightedRps => {
                Shares::ByCapacity { most_entries: self.wcmp.most_entries }
            }
            _ => Shares::Equal,
        }
    }
}

/// Parameters of weighted next hops. Weights follow the rates of links and links that fail, `switch.reroute_after` later.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WcmpConfig {
    /// Entries of a switch's table that a set of next hops may take (one for each it takes in any case): how finely the
    /// capacities are told apart. Default 64 (ours; the paper studies how few will do).
    pub most_entries: u32,
}

impl Default for WcmpConfig {
    fn default() -> Self {
        WcmpConfig { most_entries: 64 }
    }
}

/// Parameters of LetFlow.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LetFlowConfig {
    /// A pause longer than this begins a flowlet. Default 50 us (the evaluation of LAPS; that of ConWeave has 100 us, the
    /// LetFlow paper 500 us for slower networks).
    pub gap: Duration,
    /// Flowlets a switch can tell apart: entries of its table, a power of two. Flows whose hashes meet share a flowlet.
    /// Default 65,536 (the LetFlow paper, section 4).
    pub entries: u32,
}

impl Default for LetFlowConfig {
    fn default() -> Self {
        LetFlowConfig { gap: Duration::from_us(50), entries: 65_536 }
    }
}

/// Parameters of DRILL.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DrillConfig {
    /// Queues looked at for each packet, chosen at random. Default 2 (DRILL(2,1), the choice of its paper).
    pub samples: u32,
    /// Best queues remembered from the packets before. Default 1 (DRILL(2,1)). 0 or 1.
    pub memory: u32,
}

impl Default for DrillConfig {
    fn default() -> Self {
        DrillConfig { samples: 2, memory: 1 }
    }
}

/// Parameters of UGAL-L.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UgalConfig {
    /// Bytes by which the port of a detour counts as fuller than it is. Default 0 (the published comparison); more keeps
    /// packets on the shortest way where little waits anywhere.
    pub bias: Bytes,
}

/// Parameters of CONGA.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CongaConfig {
    /// A pause longer than this begins a flowlet. Default 50 us (the evaluation of LAPS; that of ConWeave has 100 us, the
    /// CONGA paper 500 us).
    pub gap: Duration,
    /// Flowlets a leaf can tell apart: entries of its table, a power of two. Default 65,536 (CONGA, section 3.4).
    pub entries: u32,
    /// How often the estimate of a link's load is discounted. Default 20 us, with `dre_alpha` the 160 us over which the
    /// CONGA paper averages (section 3.6). The class of conweave-ns3 has 200 us and 0.2, but what it runs (its
    /// `network-load-balance.cc`) sets 50 us and 0.2, which is 250 us, and lets figures age for 500 us; the study of LAPS
    /// has 200 us and 0.2.
    pub dre_interval: Duration,
    /// The share of the estimate taken away each time. Default 0.125.
    pub dre_alpha: f64,
    /// Bits of a congestion metric, 1 to 8. Default 3 (CONGA, section 3.6).
    pub metric_bits: u32,
    /// A metric not heard of for longer than this counts as 0. Default 10 ms (CONGA, section 3.3).
    pub ageing: Duration,
    /// Ways looked at for each flowlet, neighbours at a random place in their list; 0: all. Default 0 (CONGA, section 3.5);
    /// conweave-ns3 and the study of LAPS have 4.
    pub samples: u32,
    /// Whether a flowlet takes the way of the one before it unless another is better. Default true (CONGA, section 3.5);
    /// in conweave-ns3 and the study of LAPS chance decides among what is equally good.
    pub stay: bool,
}

impl Default for CongaConfig {
    fn default() -> Self {
        CongaConfig {
            gap: Duration::from_us(50),
            entries: 65_536,
            dre_interval: Duration::from_us(20),
            dre_alpha: 0.125,
            metric_bits: 3,
            ageing: Duration::from_ms(10),
            samples: 0,
            stay: true,
        }
    }
}

/// Parameters of ConWeave. The defaults are those of its authors' simulator (conweave-ns3, run.py) for two tiers and a
/// lossless fabric; for three tiers it has 64 us, 600 us and 1 ms for `flush_extra`, `flush_default` and `idle_after`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConWeaveConfig {
    /// The answer to a probe is late after an idle round trip and this. Default 4 us: 50 kB at 100 Gb/s.
    pub reply_extra: Duration,
    /// Which round trip that is. Where all ways cost the same it hardly matters.
    pub reply_after: ReplyAfter,
    /// How long a way is left alone after news of congestion. Default 16 us.
    pub path_pause: Duration,
    /// Held packets leave this long after the time at which the last packet before them was to come. Default 16 us.
    pub flush_extra: Duration,
    /// That time, from when the first packet is held, where nothing is known of the old way. Default 200 us.
    pub flush_default: Duration,
    /// A flow without a packet for longer than this has none under way and may change its way at once. Default 300 us.
    pub idle_after: Duration,
    /// The switch of the receiver forgets a flow after this long, if it needs the room. Default 2 ms.
    pub stale_after: Duration,
    /// Flows a switch can remember as sender's and as receiver's, a power of two from 4 on. Others are hashed. Default
    /// 16,384 (ours).
    pub entries: u32,
    /// Flows whose packets can be held for one port at a time; packets of others pass out of order. Default 31 (ours: all
    /// but one of 32 queues of a port).
    pub reorder_queues: u32,
}

impl Default for ConWeaveConfig {
    fn default() -> Self {
        ConWeaveConfig {
            reply_extra: Duration::from_us(4),
            reply_after: ReplyAfter::default(),
            path_pause: Duration::from_us(16),
            flush_extra: Duration::from_us(16),
            flush_default: Duration::from_us(200),
            idle_after: Duration::from_us(300),
            stale_after: Duration::from_ms(2),
            entries: 16_384,
            reorder_queues: 31,
        }
    }
}

/// The round trip within which ConWeave expects the answer to a probe on an idle network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplyAfter {
    /// That of the way the probe takes, from switch to switch.
    #[default]
    Way,
    /// Twice the propagation from host to host on a shortest way, whichever way the probe takes (the study of LAPS: on a
    /// longer one every answer is late, and the flow changes its way again).
    Shortest,
}

/// Largest table a switch may have.
pub(crate) const MOST_ENTRIES: u32 = 1 << 24;

impl ForwardingConfig {
    /// Checks every range, whether or not it is in use.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        let (conga, conweave) = (&self.conga, &self.conweave);
        for (field, gap) in [
            ("forwarding.letflow.gap", self.letflow.gap),
            ("forwarding.conga.gap", conga.gap),
            ("forwarding.conga.dre_interval", conga.dre_interval),
            ("forwarding.conga.ageing", conga.ageing),
            ("forwarding.conweave.idle_after", conweave.idle_after),
            ("forwarding.conweave.stale_after", conweave.stale_after),
        ] {
            if gap == Duration::ZERO {
                return Err(out_of_range(field, gap, "above 0"));
            }
        }
        for (field, entries) in [
            ("forwarding.letflow.entries", self.letflow.entries),
            ("forwarding.conga.entries", conga.entries),
            ("forwarding.conweave.entries", conweave.entries),
        ] {
            if !entries.is_power_of_two() || !(4..=MOST_ENTRIES).contains(&entries) {
                return Err(out_of_range(field, entries, format!("a power of two, 4 to {MOST_ENTRIES}")));
            }
        }
        if !(conga.dre_alpha >= 0.001 && conga.dre_alpha <= 1.0) {
            return Err(out_of_range("forwarding.conga.dre_alpha", conga.dre_alpha, "0.001 to 1"));
        }
        if !(1..=8).contains(&conga.metric_bits) {
            return Err(out_of_range("forwarding.conga.metric_bits", conga.metric_bits, "1 to 8"));
        }
        if !(1..=4_096).contains(&self.wcmp.most_entries) {
            return Err(out_of_range("forwarding.wcmp.most_entries", self.wcmp.most_entries, "1 to 4096"));
        }
        if !(1..=64).contains(&self.drill.samples) {
            return Err(out_of_range("forwarding.drill.samples", self.drill.samples, "1 to 64"));
        }
        if self.drill.memory > 1 {
            return Err(out_of_range("forwarding.drill.memory", self.drill.memory, "0 or 1"));
        }
        Ok(())
    }
}
