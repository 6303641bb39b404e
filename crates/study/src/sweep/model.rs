//! The layout of a sweep file.

use std::collections::BTreeMap;

use pathweave_results::RunTable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A sweep: a scenario, and the values its fields take. Where there are several of `list`, `grid` and
/// `latin-hypercube`, every combination of them is a cell. Each cell runs once a seed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SweepFile {
    /// Name of the sweep. Default: the file's name without ".toml".
    pub name: Option<String>,
    /// The scenario: path of a file, relative to this one, or a table laid out as a scenario file is.
    #[schemars(with = "serde_json::Value")]
    pub scenario: Value,
    /// Fields set in every cell, by the names `--set` takes.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, Value>,
    /// Seeds of each cell: how many, counted from 1, or a list. Default 1.
    #[serde(default)]
    pub seeds: Seeds,
    /// Fields and all values each takes.
    #[serde(default)]
    pub grid: Vec<GridAxis>,
    /// Cells by name.
    #[serde(default)]
    pub list: Vec<NamedCell>,
    /// Random points that cover ranges evenly.
    pub latin_hypercube: Option<LatinHypercube>,
    /// Tables kept of each run. Default: flows, jobs, links.
    #[serde(default = "default_tables")]
    pub tables: Vec<TableName>,
    /// What the report opens with.
    #[serde(default)]
    pub report: ReportConfig,
}

/// Seeds of each cell.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Seeds {
    /// So many, counted from 1.
    Count(u64),
    /// These.
    List(Vec<u64>),
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds::Count(1)
    }
}

/// A field and the values it takes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GridAxis {
    /// The field, as `--set` names it: `scheme`, `workload[0].size`.
    pub key: String,
    /// Its values, laid out as in a scenario file.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// A cell with a name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NamedCell {
    /// Its name.
    pub name: String,
    /// Fields and their values.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub set: BTreeMap<String, Value>,
}

/// A Latin hypercube: each range is cut into as many slices as there are samples, and each slice of each range is used
/// exactly once (McKay, Beckman and Conover, 1979).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatinHypercube {
    /// Points.
    pub samples: u32,
    /// Seed of the points; has nothing to do with the seeds of runs. Default 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// The ranges.
    pub axis: Vec<HypercubeAxis>,
}

/// A field and the range its values are drawn from.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HypercubeAxis {
    /// The field, as `--set` names it.
    pub key: String,
    /// The low end: a number, or a text with a unit. Whole numbers give whole values; a text gives values in its unit
    /// with as many decimals as the ends are written with.
    #[schemars(with = "Option<serde_json::Value>")]
    pub from: Option<Value>,
    /// The high end, in the unit of the low one.
    #[schemars(with = "Option<serde_json::Value>")]
    pub to: Option<Value>,
    /// How the range is cut. Default linear.
    #[serde(default)]
    pub scale: Scale,
    /// Instead of a range: values, each drawn equally often.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub values: Vec<Value>,
}

/// How a range is cut into slices.
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
    /// One row a flow.
    Flows,
    /// One row a job.
    Jobs,
    /// What each host did, one row a computation, part in a collective, or run of messages.
    Activities,
    /// One row a collective.
    Collectives,
    /// What ranks did for each layer.
    Layers,
    /// What each job waited for, step by step.
    Critical,
    /// Where the slowest flows spent their time.
    Waits,
    /// One row a directed link.
    Links,
    /// Samples over time.
    Series,
    /// Drops, pauses, retransmissions, faults.
    Events,
}

impl TableName {
    /// Every table.
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

    /// The file it is kept in.
    pub fn file(self) -> &'static str {
        self.table().file()
    }
}

/// What the report opens with; all else can be chosen in it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportConfig {
    /// Figure: a name of the summary's `metrics`. Default "slowdown_p99".
    pub metric: String,
    /// Axis whose values are compared: which is best where? Default: "scheme" where that is an axis, else the first.
    pub compare: Option<String>,
    /// What is kept of each run, for the report to link to. Default "figures".
    pub runs: Kept,
}

/// What is kept of each run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Its figures, its scenario and the tables named by `tables`. `pathweave view` makes its report on request, by
    /// running it again.
    #[default]
    Figures,
    /// All that `pathweave run` writes, its report among it.
    Kept,
}

impl Default for ReportConfig {
    fn default() -> Self {
        ReportConfig { metric: "slowdown_p99".to_owned(), compare: None, runs: Kept::default() }
    }
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
