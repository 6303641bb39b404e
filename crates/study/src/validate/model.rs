//! What the files of the catalogue say.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use toml::Table;

use crate::validate::law::Law;

/// A simulator we are held against: an entry of `peers.toml`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// What it is, in a few words.
    pub what: String,
    /// Where its code is.
    pub source: String,
    /// The commit that was built.
    pub commit: String,
    /// How it was built, and what of its code was changed for all cases.
    pub built: String,
}

/// A comparison: `cases/NAME.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// What is compared, in a few words.
    pub title: String,
    /// More of it, where a reader needs that.
    #[serde(default)]
    pub about: String,
    /// The scheme of pathweave: a built-in one, or one that the scenario defines. Those beside packets have several of their own.
    #[serde(default)]
    pub scheme: String,
    /// The traffic, in a word: "incast", "websearch".
    pub traffic: String,
    /// A file of `scenarios/`.
    pub scenario: String,
    /// Fields of the scenario that this case sets.
    #[serde(default)]
    pub set: Table,
    /// Runs with seeds 1 to this, whose flows are taken together.
    #[serde(default = "one")]
    pub seeds: NonZeroU32,
    /// Part of `--quick`.
    #[serde(default)]
    pub quick: bool,
    /// What a completion time ends with.
    #[serde(default)]
    pub measure: Measure,
    /// What a peer measured.
    pub theirs: Option<Theirs>,
    /// What is exact by arithmetic.
    pub law: Option<Law>,
    /// Flows are compared with packets.
    pub packets: Option<Packets>,
    /// Hosts with several NIC ports are compared with hosts with one of the same rate.
    pub one_port: Option<OnePort>,
    /// How far the ratio of ours and theirs may be from 1.
    #[serde(default)]
    pub band: Bands,
    /// Why a ratio is farther from 1 than the default bands.
    #[serde(default)]
    pub cause: Vec<Cause>,
    /// Runs that isolate causes.
    #[serde(default)]
    pub experiment: Vec<Experiment>,
}

/// The network whose hosts have one NIC port, as fast as all ports of a host of the case's scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnePort {
    /// Its file, beside the scenario.
    pub topology: String,
    /// Under each of these schemes.
    pub schemes: Vec<String>,
}

/// Runs without packets beside runs with them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// Under each of these schemes.
    pub schemes: Vec<String>,
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Where a completion time ends. It begins when a message is posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// When its sender has the acknowledgement of the last byte, as the ns-3 simulators and htsim have it.
    #[default]
    Acknowledged,
    /// When its receiver has the last byte.
    Delivered,
}

/// What a peer measured of the flows of a case.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Theirs {
    /// An entry of `peers.toml`.
    pub peer: String,
    /// The command line, or what its configuration said.
    pub command: String,
    /// What was set and what was changed in its code, so that both simulate the same.
    pub parameters: String,
    /// The day it was run, as YYYY-MM-DD.
    pub date: String,
    /// CPU time that it took, seconds.
    pub cpu_s: f64,
    /// Flows it had.
    pub flows: u64,
    /// Digest of hosts and sizes of these flows ([`crate::validate::flows_digest`]).
    pub digest: String,
    /// Mean completion time, microseconds.
    pub mean_us: f64,
    /// Completion times by rank, microseconds: the smallest, each percentile, the largest.
    pub curve_us: Vec<f64>,
}

/// A figure of completion times.
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
    /// All of them.
    pub const ALL: [Stat; 4] = [Stat::Mean, Stat::P50, Stat::P99, Stat::Max];

    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Stat::Mean => "mean",
            Stat::P50 => "P50",
            Stat::P99 => "P99",
            Stat::Max => "max",
        }
    }

    /// The band of comparisons with a peer that says nothing else: 5 % of a mean, 10 % of the rest.
    pub fn usual_band(self) -> Band {
        match self {
            Stat::Mean => Band { low: 0.95, high: 1.05 },
            Stat::P50 | Stat::P99 | Stat::Max => Band { low: 0.90, high: 1.10 },
        }
    }
}

/// The least and the largest ratio of ours to theirs.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Band {
    /// The least.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Band {
    /// A law of arithmetic: a part in a million, which is what rounding to picoseconds leaves.
    pub const EXACT: Band = Band { low: 1.0 - 1e-6, high: 1.0 + 1e-6 };

    /// Whether a ratio is inside.
    pub fn holds(self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio)
    }

    /// Whether all of `self` is inside `other`.
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

/// The bands that a case has of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// Of the mean.
    pub mean: Option<Band>,
    /// Of the median.
    pub p50: Option<Band>,
    /// Of the 99th percentile.
    pub p99: Option<Band>,
    /// Of the largest.
    pub max: Option<Band>,
}

impl Bands {
    /// What is said of a figure.
    pub fn of(&self, stat: Stat) -> Option<Band> {
        match stat {
            Stat::Mean => self.mean,
            Stat::P50 => self.p50,
            Stat::P99 => self.p99,
            Stat::Max => self.max,
        }
    }
}

/// Why figures of ours and theirs differ.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Which figures.
    pub figures: Vec<Stat>,
    /// What differs, and how that was found.
    pub text: String,
}

/// A run of ours that isolates a cause: the same case with something set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What is changed, in a few words.
    pub title: String,
    /// What it shows.
    #[serde(default)]
    pub shows: String,
    /// Fields of the scenario that it sets.
    pub set: Table,
    /// Bands of the ratios to the same figures of the peer. An experiment that leaves them fails the case.
    #[serde(default)]
    pub band: Bands,
}
