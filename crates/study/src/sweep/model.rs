//! Schema of a sweep file.

use std::collections::BTreeMap;

use pathweave_report::RunTable;
use pathweave_scenario::FieldPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A sweep: a scenario and the values that its fields take. If several of `list`, `grid` and `latin-hypercube` are
/// given, every combination of their entries is a cell. Each cell runs once per seed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SweepFile {
    /// Name of the sweep. Default: the file's name without ".toml".
    pub name: Option<String>,
    /// The scenario: the path of a file, relative to this one, or a table in the format of a scenario file.
    #[schemars(with = "serde_json::Value")]
    pub scenario: Value,
    /// Fields set in every cell, by the names that `--set` takes.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, Value>,
    /// Seeds of each cell: a number, which is counted from 1, or a list. Default: 1.
    #[serde(default)]
    pub seeds: Seeds,
    /// Fields, each with all the values it takes.
    #[serde(default)]
    pub grid: Vec<GridAxis>,
    /// Cells with a name.
    #[serde(default)]
    pub list: Vec<NamedCell>,
    /// Random points that cover ranges evenly.
    pub latin_hypercube: Option<LatinHypercube>,
    /// Tables stored for each run. Default: flows, jobs, links.
    #[serde(default = "default_tables")]
    pub tables: Vec<TableName>,
    /// Initial view of the report.
    #[serde(default)]
    pub report: ReportConfig,
    /// Axes of plans, whose values set several fields.
    #[serde(skip)]
    pub(crate) bundles: Vec<Bundle>,
}

/// An axis whose values set several fields.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    pub(crate) key: &'static str,
    pub(crate) values: Vec<BundleValue>,
}

/// Fields that are set together, under a name.
#[derive(Clone, Debug)]
pub(crate) struct BundleValue {
    pub(crate) name: String,
    /// Fields with their values, and their places in the file.
    pub(crate) set: Vec<(String, Value, FieldPath)>,
}

/// Seeds of each cell.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Seeds {
    /// Number of seeds, counted from 1.
    Count(u64),
    /// List of seeds.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::Count(1)
    }
}

/// A field and the values that it takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridAxis {
    /// Name of the field, in the syntax of `--set`: `scheme`, `workload[0].size`.
    pub key: String,
    /// Values of the field, in the format of a scenario file.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// A cell with a name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedCell {
    /// Name of the cell.
    pub name: String,
    /// Fields with their values.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, Value>,
}

/// A Latin hypercube: each range is divided into as many slices as there are samples, and each slice of each range is
/// used exactly once (McKay, Beckman and Conover, 1979).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatinHypercube {
    /// Number of points.
    pub samples: u32,
    /// Seed of the points, independent of the seeds of runs. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Fields with their ranges.
    pub axis: Vec<HypercubeAxis>,
}

/// A field and the range from which its values are drawn.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HypercubeAxis {
    /// Name of the field, in the syntax of `--set`.
    pub key: String,
    /// Lower end: a number, or a text with a unit. Integers give integer values. A text gives values in its unit,
    /// with as many decimals as the ends have, or more in a slice without such a value.
    #[schemars(with = "Option<serde_json::Value>")]
    pub from: Option<Value>,
    /// Upper end, in the unit of the lower one.
    #[schemars(with = "Option<serde_json::Value>")]
    pub to: Option<Value>,
    /// Division of the range into slices. Default: linear.
    #[serde(default)]
    pub scale: Scale,
    /// Values as an alternative to a range. Each is drawn equally often.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// Division of a range into slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Slices of equal width.
    #[default]
    Linear,
    /// Slices of equal ratio.
    Log,
}

/// A table of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableName {
    /// One row per flow.
    Flows,
    /// One row per job.
    Jobs,
    /// Activity of each host, one row per computation, part in a collective, or run of messages.
    Activities,
    /// One row per collective.
    Collectives,
    /// Activity of ranks for each layer.
    Layers,
    /// Critical path of each job: what it waited for, step by step.
    Critical,
    /// Waiting times of the slowest flows.
    Waits,
    /// One row per directed link.
    Links,
    /// Samples over time.
    Series,
    /// Drops, pauses, retransmissions, faults.
    Events,
}

impl TableName {
    /// All tables.
    pub const ALL: [TableName; 10] = [
        TableName::Flows,
        TableName::Jobs,
        TableName::Activities,
        TableName::Collectives,
        TableName::Layers,
        TableName::Critical,
        TableName::Waits,
        TableName::Links,
        TableName::Series,
        TableName::Events,
    ];

    pub(crate) fn table(self) -> RunTable {
        match self {
            TableName::Flows => RunTable::Flows,
            TableName::Jobs => RunTable::Jobs,
            TableName::Activities => RunTable::Activities,
            TableName::Collectives => RunTable::Collectives,
            TableName::Layers => RunTable::Layers,
            TableName::Critical => RunTable::Critical,
            TableName::Waits => RunTable::Waits,
            TableName::Links => RunTable::Links,
            TableName::Series => RunTable::Series,
            TableName::Events => RunTable::Events,
        }
    }

    /// Returns the name of the file that stores the table.
    pub fn file(self) -> &'static str {
        self.table().file()
    }
}

/// Initial view of the report. Everything else can be selected in it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportConfig {
    /// Figure by which cells are judged: a name from the summary's `metrics`. Default: "job_time_ns" if every run has
    /// jobs, otherwise "slowdown_p99".
    pub metric: Option<String>,
    /// Axis whose values are compared, to find the best one. Default: "scheme" if it is an axis, otherwise the first
    /// axis.
    pub compare: Option<String>,
    /// Data stored for each run, to which the report links. Default: "figures".
    pub runs: StoredOutput,
}

/// Data stored for each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoredOutput {
    /// Figures and scenario, and the tables that `tables` lists. `pathweave view` creates a run's report on request,
    /// by repeating the run.
    #[default]
    Figures,
    /// Everything that `pathweave run` writes, including its report.
    Kept,
}

fn one() -> u64 {
    1
}

fn default_tables() -> Vec<TableName> {
    vec![TableName::Flows, TableName::Jobs, TableName::Links]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_a_run_can_be_named() {
        let named = TableName::ALL.map(TableName::file);
        for table in RunTable::ALL {
            assert!(named.contains(&table.file()), "{}", table.file());
        }
        assert_eq!(named.len(), RunTable::ALL.len());
    }
}
