//! What the files of a paper's folder say: the schema, and nothing computed from it.

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
    /// What the evaluation shows and how ours differs, for the page; paragraphs.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Figures and tables in the order of the page; each is a file `NAME.toml` beside this one.
    pub figures: Vec<String>,
    /// Curves of the figures that have none of their own.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The variant by which the paper's figures stand or fall. Default: as printed.
    pub judged: Option<Variant>,
    /// Readings of what the publication leaves open.
    #[serde(default)]
    pub reading: Vec<Reading>,
    /// What the publication shows, in its order: every figure and table that has a result.
    #[serde(default)]
    pub shown: Vec<Shown>,
    /// Changes that panels name, so that a fabric or a traffic is written once.
    #[serde(default)]
    pub part: BTreeMap<String, Part>,
    /// `--quick`.
    pub quick: Scale,
    /// `--full`.
    pub full: Scale,
}

/// A figure, table or part of one, as the publication numbers it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// "Figure 4a", "Table I".
    pub name: String,
    /// What it shows, in our words.
    pub what: String,
    /// Ours that repeat it.
    #[serde(default)]
    pub figures: Vec<String>,
    /// Why nothing here repeats it.
    #[serde(default)]
    pub no_counterpart: String,
}

/// Changes under a name, for panels to put together.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Fields changed.
    #[serde(default)]
    pub set: Table,
    /// Fields changed by `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// Fields changed by `--full`.
    #[serde(default)]
    pub full: Table,
}

/// What `--quick` or `--full` means for the whole paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// Seeds, 1 to this.
    pub seeds: u32,
}

/// `NAME.toml`: a figure or a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureFile {
    /// Caption, in our words.
    pub title: String,
    /// Where in the paper.
    pub section: String,
    /// What a reader must know to judge the comparison.
    #[serde(default)]
    pub note: String,
    /// A scenario: its file relative to the paper's folder, or the scenario itself. Absent: nothing runs.
    pub scenario: Option<Value>,
    /// Fields changed in every run, as `--set` does.
    #[serde(default)]
    pub set: Table,
    /// Variations drawn side by side. Absent: one.
    #[serde(default)]
    pub panel: Vec<Panel>,
    /// Variations drawn as curves. Absent: those of the paper.
    #[serde(default)]
    pub series: Vec<Series>,
    /// Curves beside those.
    #[serde(default)]
    pub more: Vec<Series>,
    /// Readings of the paper by which every curve without a variant is run, once each.
    #[serde(default)]
    pub readings: Vec<String>,
    /// A field varied along the x axis.
    pub sweep: Option<Sweep>,
    /// Figures over time.
    #[serde(default)]
    pub trace: Vec<Trace>,
    /// Figures of a run.
    #[serde(default)]
    pub measure: Vec<Measure>,
    /// The picture.
    pub plot: Plot,
    /// Measures by which curves are ranked in each panel; the smallest is best unless it is a throughput or an index.
    #[serde(default)]
    pub rank: Vec<String>,
    /// What was published.
    #[serde(default)]
    pub claim: Vec<Claim>,
    /// Curves that were published, drawn beside ours.
    #[serde(default)]
    pub published: Vec<Published>,
    /// What `--quick` changes.
    #[serde(default)]
    pub quick: Change,
    /// What `--full` changes.
    #[serde(default)]
    pub full: Change,
    /// It was measured on a testbed of hosts and switches, and a lab can repeat it.
    pub testbed: Option<Testbed>,
}

/// How a figure that was measured on a testbed is repeated in a lab.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Testbed {
    /// The schemes of the curves that are measured; each is simulated, too.
    pub schemes: Vec<String>,
    /// What a reader must know of this figure in a lab, for the page.
    #[serde(default)]
    pub says: String,
    /// Seeds, unless the user says. Default: as many as are simulated.
    pub seeds: Option<u32>,
    /// Fields changed in both runs, after the scheme.
    #[serde(default)]
    pub set: Table,
}

/// What `--quick` or `--full` changes in a figure.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// In words, for the page.
    #[serde(default)]
    pub says: String,
    /// Seeds, unless the user says.
    pub seeds: Option<u32>,
    /// Fields changed.
    #[serde(default)]
    pub set: Table,
}

/// One of the pictures side by side.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Its name; claims refer to it.
    pub name: String,
    /// Heading it stands under in a heat map.
    #[serde(default)]
    pub group: String,
    /// What it has in common with others, for claims and curves to refer to.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether values may be chosen by its results.
    pub role: Option<Role>,
    /// It runs at this size only. Absent: at both.
    pub only: Option<Only>,
    /// Curves it does not have.
    #[serde(default)]
    pub without: Vec<String>,
    /// Values of the sweep are multiplied by this here: where the published run had another load than it names, say.
    pub scale: Option<f64>,
    /// Changes of the paper's `[part]` that it is made of, in order.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Fields changed.
    #[serde(default)]
    pub set: Table,
    /// Fields changed by `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// Fields changed by `--full`.
    #[serde(default)]
    pub full: Table,
}

impl Panel {
    /// Whether `name` is its name, its heading or one of its tags.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.group == name || self.tags.iter().any(|tag| tag == name)
    }
}

/// What the results of a panel may be used for. Who chooses values by all that can be seen learns nothing from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Defaults may be chosen by them.
    Fit,
    /// They check what was chosen by others.
    HeldOut,
}

impl Role {
    /// As files write it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Fit => "fit",
            Role::HeldOut => "held-out",
        }
    }
}

/// The only size at which a panel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// With `--quick`.
    Quick,
    /// With `--full`.
    Full,
}

/// A curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name; claims refer to it. Curves of one name differ in `variant`.
    pub name: String,
    /// The variant: as printed, ours, or a reading. Absent where there is one only.
    pub variant: Option<Variant>,
    /// Scheme, as in a scenario. Absent: the scenario's.
    pub scheme: Option<String>,
    /// Only in panels with one of these tags. Default: in all.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Fields changed, after the scheme.
    #[serde(default)]
    pub set: Table,
}

impl Series {
    /// Whether `panel` has this curve.
    pub fn is_in(&self, panel: &Panel) -> bool {
        let wanted = self.tags.is_empty() || self.tags.iter().any(|tag| panel.tags.contains(tag));
        wanted && !panel.without.contains(&self.name)
    }
}

/// A field varied along the x axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The field.
    pub key: String,
    /// Its values with `--full`.
    pub values: Vec<Value>,
    /// Its values with `--quick`. Default: `values`.
    pub quick: Option<Vec<Value>>,
}

/// A value as people write it.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
