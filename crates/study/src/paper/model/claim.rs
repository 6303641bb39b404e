//! What was published, and how it is judged.

use std::collections::BTreeMap;

use pathweave_results::Quantity;
use serde::Deserialize;
use toml::Value;

use super::{Only, Role};

/// What was published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In our words.
    pub text: String,
    /// Where it is stated.
    pub source: String,
    /// The published number or relation.
    pub published: String,
    /// The measure it is about.
    pub measure: String,
    /// The curve it is about; of one with variants, each is compared. `*` is about all curves together.
    pub series: String,
    /// Only these panels, by name, heading or tag. Default: all.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Only panels of this role. Default: of both.
    pub role: Option<Role>,
    /// Only these values of the sweep, as they are written there; those that do not run are left out. Default: all.
    #[serde(default)]
    pub at: Vec<Value>,
    /// What it is compared with.
    pub versus: Option<Versus>,
    /// Of each panel and curve the largest value of the sweep is compared, wherever it is: what is claimed of maxima.
    #[serde(default)]
    pub peak: bool,
    /// How.
    #[serde(default)]
    pub compare: Compare,
    /// From several panels and sweep values to one number.
    #[serde(default)]
    pub over: Over,
    /// Least number of the published band, or the bound that is published. A band has both.
    pub at_least: Option<f64>,
    /// Largest number of the published band, or the bound that is published.
    pub at_most: Option<f64>,
    /// The number of which there would be no effect: from there on the claim is contradicted. Default: 1 of a ratio, 0 of other
    /// comparisons, none without `versus`.
    pub without_effect: Option<f64>,
    /// Still counts as agreeing, in the unit compared.
    #[serde(default)]
    pub tolerance: f64,
    /// How the number is shown.
    pub show: Show,
    /// It is judged at this size only. Absent: at both.
    pub only: Option<Only>,
    /// Another reading of a claim that is there already: judged and shown, but how the figure stands does not hinge on it.
    #[serde(default)]
    pub aside: bool,
    /// The parameter that was fitted to this figure: a claim that holds by that reproduces nothing, and does not count.
    pub fitted: Option<String>,
    /// The reason why it does not agree, by variant, each with the experiment that shows it. `""` is any variant.
    #[serde(default)]
    pub why: BTreeMap<String, Why>,
}

impl Claim {
    /// Whether the publication states it. Of our own bars `source` begins with another word than "section", "table",
    /// "figure" or "appendix".
    pub fn is_published(&self) -> bool {
        ["section", "table", "figure", "appendix"].iter().any(|word| self.source.starts_with(word))
    }
}

/// The reason why a claim does not agree.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// In words.
    pub says: String,
    /// The figure of the same page that shows it.
    pub figure: String,
}

/// Another point of the same figure; what is absent is as in the claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Curve; of the same variant if it has any.
    pub series: Option<String>,
    /// Instead of a curve: one or all of the others, of measures of which the smallest is best.
    pub against: Option<Against>,
    /// Panel.
    pub panel: Option<String>,
    /// Measure.
    pub measure: Option<String>,
    /// Value of the sweep, as it is written there: what is claimed of growth.
    pub at: Option<Value>,
}

/// Which of the other curves. Those of which a flow did not finish are no rivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// In each panel the one of the smallest mean over seeds.
    BestOfPanel,
    /// Each of them over all panels that both have; the claim goes by the one for which it holds least.
    EveryOther,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Value over the other.
    #[default]
    Ratio,
    /// How much smaller it is, as a share of the other.
    Reduction,
    /// How much larger it is, as a share of the other.
    Increase,
    /// How much larger it is, in its own unit.
    Difference,
}

/// From several numbers to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// "1.30x".
    Ratio,
    /// "12.0 %", of a share.
    Percent,
    /// "1.20 ms", of nanoseconds.
    Time,
    /// "92.1 Gbps", of bits per second.
    Rate,
    /// "22 B".
    Bytes,
    /// "64", as it is.
    Plain,
}

impl Show {
    /// The number as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Show::Ratio => format!("{value:.2}x"),
            Show::Percent => format!("{:.1} %", value * 100.0),
            Show::Time => Quantity::TimeNs.show(value),
            Show::Rate => Quantity::RateBps.show(value),
            Show::Bytes => format!("{value:.0} B"),
            Show::Plain => Quantity::Plain.show(value),
        }
    }
}
