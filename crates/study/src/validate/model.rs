//! Schema of the catalogue's files.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use toml::Table;

use crate::validate::law::Law;

/// Simulator with which this one is compared: an entry of `peers.toml`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Short description.
    pub what: String,
    /// Address of the source code.
    pub source: String,
    /// Commit that was built.
    pub commit: String,
    /// Build procedure, and changes to the code that apply to all cases.
    pub built: String,
}

/// Comparison: `cases/NAME.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Short title of the comparison.
    pub title: String,
    /// Further explanation, if a reader needs it.
    #[serde(default)]
    pub about: String,
    /// Scheme of pathweave: a built-in one, or one that the scenario defines. Cases with `packets` or `one_port` list
    /// several there instead, and cases with `measured` have none.
    #[serde(default)]
    pub scheme: String,
    /// Traffic in one word: "incast", "websearch".
    pub traffic: String,
    /// Name of a file in `scenarios/`. Cases with `measured` have none.
    #[serde(default)]
    pub scenario: String,
    /// Scenario fields that this case sets.
    #[serde(default)]
    pub set: Table,
    /// Number of seeds. The runs use seeds 1 to this number, and their flows are pooled.
    #[serde(default = "one")]
    pub seeds: NonZeroU32,
    /// True if the case belongs to `--quick`.
    #[serde(default)]
    pub quick: bool,
    /// End of a completion time. Default: the acknowledgement.
    #[serde(default)]
    pub measure: Measure,
    /// Measurement of a peer, as the reference.
    pub theirs: Option<PeerMeasurement>,
    /// Exact law, as the reference.
    pub law: Option<Law>,
    /// Comparison of flow fidelity with packet fidelity.
    pub packets: Option<Packets>,
    /// Comparison of hosts with several NIC ports with hosts with one port of the same total rate.
    pub one_port: Option<OnePort>,
    /// Comparison of models with published measurements of hardware.
    pub measured: Option<Measured>,
    /// Allowed bands of the ratios of ours to the reference, if not the default.
    #[serde(default)]
    pub band: Bands,
    /// Reasons why a ratio is outside the default bands.
    #[serde(default)]
    pub cause: Vec<Cause>,
    /// Runs that isolate causes.
    #[serde(default)]
    pub experiment: Vec<Experiment>,
}

/// Published measurements of hardware, and the rows that are known to be outside of their bars.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Table of measurements.
    pub table: MeasuredTable,
    /// Rows that are outside of their bars, with the cause.
    #[serde(default)]
    pub known: Vec<KnownMiss>,
}

/// Table of measurements in `data/truth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredTable {
    /// Collectives of nccl-tests and rccl-tests.
    Collectives,
    /// Steps of training.
    Training,
}

/// Rows outside of their bars for one cause.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownMiss {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Description of the cause.
    pub text: String,
}

/// Network whose hosts have one NIC port, as fast as all ports of a host in the case's scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnePort {
    /// File of the topology, beside the scenario.
    pub topology: String,
    /// Schemes under which the two are compared.
    pub schemes: Vec<String>,
}

/// Runs at flow fidelity beside runs at packet fidelity.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Schemes under which the two are compared.
    pub schemes: Vec<String>,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// End of a completion time. It begins when the message is posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The sender has the acknowledgement of the last byte, as in the ns-3 simulators and htsim.
    #[default]
    Acknowledged,
    /// The receiver has the last byte.
    Delivered,
}

/// Measurement of a peer, for the flows of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PeerMeasurement {
    /// Name of an entry in `peers.toml`.
    pub peer: String,
    /// Command line, or content of the configuration.
    pub command: String,
    /// Settings and code changes that make both simulate the same.
    pub parameters: String,
    /// Date of the run, as YYYY-MM-DD.
    pub date: String,
    /// CPU time of the run in seconds.
    pub cpu_s: f64,
    /// Number of flows.
    pub flows: u64,
    /// Digest of the flows' hosts and sizes ([`crate::validate::flows_digest`]).
    pub digest: String,
    /// Mean completion time in microseconds.
    pub mean_us: f64,
    /// Completion times by rank in microseconds: the smallest, each percentile, the largest.
    pub curve_us: Vec<f64>,
}

/// Statistic of completion times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    /// Arithmetic mean.
    Mean,
    /// Median.
    P50,
    /// 99th percentile by nearest rank.
    P99,
    /// Largest.
    Max,
}

impl Stat {
    /// All statistics.
    pub const ALL: [Stat; 4] = [Stat::Mean, Stat::P50, Stat::P99, Stat::Max];

    /// Returns the name as shown.
    pub fn name(self) -> &'static str {
        match self {
            Stat::Mean => "mean",
            Stat::P50 => "P50",
            Stat::P99 => "P99",
            Stat::Max => "max",
        }
    }

    /// Returns the default band for comparisons with a peer: 5 % for the mean, 10 % for the others.
    pub fn usual_band(self) -> Band {
        match self {
            Stat::Mean => Band { low: 0.95, high: 1.05 },
            Stat::P50 | Stat::P99 | Stat::Max => Band { low: 0.90, high: 1.10 },
        }
    }
}

/// Band of the ratio of ours to the reference.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Band {
    /// Smallest ratio.
    pub low: f64,
    /// Largest ratio.
    pub high: f64,
}

impl Band {
    /// Band for laws of arithmetic: one part in a million, which covers rounding to picoseconds.
    pub const EXACT: Band = Band { low: 1.0 - 1e-6, high: 1.0 + 1e-6 };

    /// Returns true if a ratio is in the band.
    pub fn holds(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Returns true if the whole band is within `other`.
    pub(crate) fn within(self, other: Band) -> bool {
        other.holds(self.low) && other.holds(self.high)
    }
}

impl From<[f64; 2]> for Band {
    fn from([low, high]: [f64; 2]) -> Self {
        Band { low, high }
    }
}

impl From<Band> for [f64; 2] {
    fn from(band: Band) -> Self {
        [band.low, band.high]
    }
}

/// Bands that a case sets itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// Band of the mean.
    pub mean: Option<Band>,
    /// Band of the median.
    pub p50: Option<Band>,
    /// Band of the 99th percentile.
    pub p99: Option<Band>,
    /// Band of the largest value.
    pub max: Option<Band>,
}

impl Bands {
    /// Returns the band of a statistic, if the case sets one.
    pub fn of(&self, stat: Stat) -> Option<Band> {
        match stat {
            Stat::Mean => self.mean,
            Stat::P50 => self.p50,
            Stat::P99 => self.p99,
            Stat::Max => self.max,
        }
    }
}

/// Reason why figures of ours and of the peer differ.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Statistics that it concerns.
    pub figures: Vec<Stat>,
    /// Description of the difference, and of how it was found.
    pub text: String,
}

/// Run of ours that isolates a cause: the same case with further fields set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Short description of the change.
    pub title: String,
    /// Conclusion from the run.
    #[serde(default)]
    pub shows: String,
    /// Scenario fields that the experiment sets.
    pub set: Table,
    /// Bands of the ratios to the same figures of the peer. A ratio outside its band fails the case.
    #[serde(default)]
    pub band: Bands,
}
