//! Schema of the files in a paper's folder. Nothing here is computed from them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

mod claim;
mod measure;
mod plot;
mod variant;

pub use claim::*;
pub use measure::*;
pub use plot::*;
pub use variant::*;

/// `paper.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFile {
    /// Title of the publication.
    pub title: String,
    /// Authors, venue, year.
    pub citation: String,
    /// Remarks for the page: results of the evaluation and differences from ours. One entry per paragraph.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Figures and tables in the order of the page. Each has a file `NAME.toml` beside this one.
    pub figures: Vec<String>,
    /// Curves for figures that define none of their own.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Variant by which the paper's figures are judged. Default: as printed.
    pub judged: Option<Variant>,
    /// Readings of points that the publication leaves open.
    #[serde(default)]
    pub reading: Vec<Reading>,
    /// Every figure and table of the publication that shows a result, in the publication's order.
    #[serde(default)]
    pub shown: Vec<Shown>,
    /// Named sets of changes that panels refer to, so that a fabric or a traffic pattern is written once.
    #[serde(default)]
    pub part: BTreeMap<String, Part>,
    /// Settings of `--quick` for the whole paper.
    pub quick: Scale,
    /// Settings of `--full` for the whole paper.
    pub full: Scale,
}

/// Figure or table of the publication, or a part of one, under its published number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Name, for instance "Figure 4a" or "Table I".
    pub name: String,
    /// Description of the content, in our words.
    pub what: String,
    /// Figures of this project that repeat it.
    #[serde(default)]
    pub figures: Vec<String>,
    /// Reason why no figure of this project repeats it. Empty if one does.
    #[serde(default)]
    pub no_counterpart: String,
}

/// Named set of changes that panels combine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Scenario fields changed at both sizes.
    #[serde(default)]
    pub set: Table,
    /// Further fields changed by `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// Further fields changed by `--full`.
    #[serde(default)]
    pub full: Table,
}

/// Settings of `--quick` or `--full` for the whole paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Number of seeds. Runs use seeds 1 to this number.
    pub seeds: u32,
}

/// `NAME.toml`: a figure or table that is repeated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureFile {
    /// Caption, in our words.
    pub title: String,
    /// Place in the publication.
    pub section: String,
    /// Note that a reader needs to judge the comparison.
    #[serde(default)]
    pub note: String,
    /// Scenario: a file name relative to the paper's folder, or the scenario inline. Without it nothing runs.
    pub scenario: Option<Value>,
    /// Scenario fields changed in every run, as `--set` does.
    #[serde(default)]
    pub set: Table,
    /// Variations drawn side by side. Default: one panel without changes.
    #[serde(default)]
    pub panel: Vec<Panel>,
    /// Variations drawn as curves. Default: the curves of the paper.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Curves in addition to `series`.
    #[serde(default)]
    pub more: Vec<Series>,
    /// Names of readings under which every curve without a variant is run, once each.
    #[serde(default)]
    pub readings: Vec<String>,
    /// Field varied along the x axis.
    pub sweep: Option<Sweep>,
    /// Quantities over time.
    #[serde(default)]
    pub trace: Vec<Trace>,
    /// Numbers taken from each run.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// Description of the picture.
    pub plot: Plot,
    /// Measures by which curves are ranked in each panel. The smallest value is best, except for throughputs and
    /// Jain's index.
    #[serde(default)]
    pub rank: Vec<String>,
    /// Published results that are compared with ours.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Published curves, drawn beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Changes made by `--quick`.
    #[serde(default)]
    pub quick: Change,
    /// Changes made by `--full`.
    #[serde(default)]
    pub full: Change,
    /// Settings for repeating the figure in a lab. Present if the publication measured it on a testbed of hosts and
    /// switches.
    pub testbed: Option<Testbed>,
}

/// Settings for repeating a testbed figure in a lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// Schemes of the curves that are measured. Each is simulated as well.
    pub schemes: Vec<String>,
    /// Remark about this figure in a lab, for the page.
    #[serde(default)]
    pub says: String,
    /// Number of seeds, unless the user gives one. Default: the number that the simulation uses.
    pub seeds: Option<u32>,
    /// Fields changed in the measured and in the simulated run, after the scheme.
    #[serde(default)]
    pub set: Table,
}

/// Changes that `--quick` or `--full` makes to a figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Description of the changes, for the page.
    #[serde(default)]
    pub says: String,
    /// Number of seeds, unless the user gives one. Default: the number for the whole paper.
    pub seeds: Option<u32>,
    /// Scenario fields changed.
    #[serde(default)]
    pub set: Table,
}

/// One of the pictures drawn side by side.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Name of the panel. Claims refer to it.
    pub name: String,
    /// Heading above the panel in a heat map.
    #[serde(default)]
    pub group: String,
    /// Tags that this panel shares with others. Claims and curves refer to them.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Permitted use of the panel's results when defaults are chosen.
    pub role: Option<Role>,
    /// Size at which the panel runs. Default: both.
    pub only: Option<OnlySize>,
    /// Names of curves that this panel leaves out.
    #[serde(default)]
    pub without: Vec<String>,
    /// Factor on the values of the sweep in this panel, for instance where the published run had another load than
    /// the one it states.
    pub scale: Option<f64>,
    /// Names of `[part]` entries of the paper whose changes the panel applies, in order.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Scenario fields changed at both sizes.
    #[serde(default)]
    pub set: Table,
    /// Further fields changed by `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// Further fields changed by `--full`.
    #[serde(default)]
    pub full: Table,
}

impl Panel {
    /// Returns true if `name` is the panel's name, its heading or one of its tags.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || self.group == name || self.tags.iter().any(|tag| tag == name)
    }
}

/// Permitted use of a panel's results. Held-out panels exist because a check on the data that chose the defaults
/// proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The results may be used to choose defaults.
    Fit,
    /// The results may only check defaults that were chosen on other panels.
    HeldOut,
}

impl Role {
    /// Returns the name as files write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Fit => "fit",
            Role::HeldOut => "held-out",
        }
    }
}

/// Single size at which a panel runs or a claim is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnlySize {
    /// Only with `--quick`.
    Quick,
    /// Only with `--full`.
    Full,
}

/// Curve of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Name of the curve. Claims refer to it. Curves with the same name differ in `variant`.
    pub name: String,
    /// Variant: as printed, ours, or a reading. Absent if the curve has no variants.
    pub variant: Option<Variant>,
    /// Name of the scheme, as in a scenario. Default: the scenario's.
    pub scheme: Option<String>,
    /// Tags of the panels that have this curve; one match is enough. Default: all panels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Scenario fields changed, after the scheme.
    #[serde(default)]
    pub set: Table,
}

impl Series {
    /// Returns true if `panel` has this curve.
    pub fn is_in(&self, panel: &Panel) -> bool {
        let wanted = self.tags.is_empty() || self.tags.iter().any(|tag| panel.tags.contains(tag));
        wanted && !panel.without.contains(&self.name)
    }
}

/// Field varied along the x axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Name of the field.
    pub key: String,
    /// Values of the field with `--full`.
    pub values: Vec<Value>,
    /// Values of the field with `--quick`. Default: `values`.
    pub quick: Option<Vec<Value>>,
}

/// Returns a value as text, strings without their quotes.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
