//! Schema of published results and the rules by which they are judged.

use std::collections::BTreeMap;

use pathweave_records::Quantity;
use serde::Deserialize;
use toml::Value;

use super::{OnlySize, Role};

/// Published result that is compared with ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in our words.
    pub text: String,
    /// Section, figure or table that states it.
    pub source: String,
    /// The published number or relation.
    pub published: String,
    /// Measure that the claim is about.
    pub measure: String,
    /// Curve that the claim is about. Each of its variants is compared. `*` stands for all curves together.
    pub series: String,
    /// Panels that the claim is about, by name, heading or tag. Default: all.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Role that panels must have. Default: any.
    pub role: Option<Role>,
    /// Values of the sweep that the claim is about, as written there. Values that do not run at this size are
    /// skipped. Default: all.
    #[serde(default)]
    pub at: Vec<Value>,
    /// Point that the value is compared with. Without it the value itself is compared.
    pub versus: Option<Versus>,
    /// Compares the largest value over the sweep, for each panel and curve. For claims about maxima.
    #[serde(default)]
    pub peak: bool,
    /// Comparison of the two values. Default: their ratio.
    #[serde(default)]
    pub compare: Compare,
    /// Reduction of several panels and sweep values to one number. Default: the mean.
    #[serde(default)]
    pub over: Over,
    /// Lower end of the published band, or a published lower bound. A band has both ends.
    pub at_least: Option<f64>,
    /// Upper end of the published band, or a published upper bound.
    pub at_most: Option<f64>,
    /// Number that would mean no effect. The claim is contradicted from there on. Default: 1 for a ratio, 0 for other
    /// comparisons, none without `versus`.
    pub without_effect: Option<f64>,
    /// Distance outside the band that still counts as agreement, in the unit compared.
    #[serde(default)]
    pub tolerance: f64,
    /// Format in which the number is shown.
    pub show: Show,
    /// Size at which the claim is judged. Default: both.
    pub only: Option<OnlySize>,
    /// True for a second reading of a claim that is listed already. It is judged and shown, but does not count in the
    /// standing of the figure.
    #[serde(default)]
    pub aside: bool,
    /// Parameter that was fitted to this figure. The claim then reproduces nothing and does not count.
    pub fitted: Option<String>,
    /// Reasons why the claim does not agree, by variant, each with the figure that shows it. The key `""` stands for
    /// any variant.
    #[serde(default)]
    pub why: BTreeMap<String, Why>,
}

impl Claim {
    /// Returns true if the publication states the claim. The `source` of such a claim begins with "section", "table",
    /// "figure" or "appendix". Bars that this project set itself begin with another word.
    pub fn is_published(&self) -> bool {
        ["section", "table", "figure", "appendix"].iter().any(|word| self.source.starts_with(word))
    }
}

/// Reason why a claim does not agree.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The reason in words.
    pub says: String,
    /// Figure of the same page that shows the reason.
    pub figure: String,
}

/// Point that a claim is compared with. Absent fields are as in the claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Curve, of the same variant if it has variants.
    pub series: Option<String>,
    /// Rival curves, as an alternative to `series`. Only for measures of which the smallest is best.
    pub against: Option<Against>,
    /// Name of the panel.
    pub panel: Option<String>,
    /// Name of the measure.
    pub measure: Option<String>,
    /// Value of the sweep, as written there. For claims about growth along the sweep.
    pub at: Option<Value>,
}

/// Rival curves of a comparison. A curve with an unfinished flow is not a rival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The rival with the smallest mean over seeds, chosen in each panel.
    BestOfPanel,
    /// Each rival, over all panels that both curves have. The rival against which the claim holds least decides.
    EveryOther,
}

/// Comparison of a value with another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The value over the other.
    #[default]
    Ratio,
    /// Decrease against the other value, as a share of it.
    Reduction,
    /// Increase against the other value, as a share of it.
    Increase,
    /// Increase against the other value, in the unit of the measure.
    Difference,
}

/// Reduction of several numbers to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Their mean.
    #[default]
    Mean,
    /// Their geometric mean.
    GeometricMean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// Format of a number. Numbers below one have two significant digits at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// Ratio: "1.30x".
    Ratio,
    /// Share as a percentage: "12.0 %".
    Percent,
    /// Nanoseconds as a time: "1.20 ms".
    Time,
    /// Bits per second as a rate: "92.1 Gbps".
    Rate,
    /// Bytes: "22 B".
    Bytes,
    /// The number without a unit: "64".
    Plain,
}

impl Show {
    /// Returns the number as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Show::Ratio => format!("{}x", decimal(value, 2)),
            Show::Percent => format!("{} %", decimal(value * 100.0, 1)),
            Show::Time => Quantity::TimeNs.format(value),
            Show::Rate => Quantity::RateBps.format(value),
            Show::Bytes => format!("{} B", decimal(value, 0)),
            Show::Plain => Quantity::Plain.format(value),
        }
    }
}

/// Returns a number with this many decimals. Below one it has as many as two significant digits need, or, where these
/// are too many, an exponent.
fn decimal(value: f64, decimals: usize) -> String {
    /// Largest number of decimals of a number without an exponent.
    const MOST: usize = 6;
    if value == 0.0 || value.abs() >= 1.0 {
        return format!("{value:.decimals$}");
    }
    let needed = 1 - value.abs().log10().floor() as i64;
    match usize::try_from(needed).unwrap_or(0).max(decimals) {
        needed @ ..=MOST => format!("{value:.needed$}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits() {
        let percent = |share| Show::Percent.show(share);
        assert_eq!([0.0, 0.12, 0.0012, -0.000_034].map(percent), ["0.0 %", "12.0 %", "0.12 %", "-0.0034 %"]);
        assert_eq!(percent(0.000_000_001_2), "1.2e-7 %");
        assert_eq!([2.0, 0.52, 0.0041].map(|ratio| Show::Ratio.show(ratio)), ["2.00x", "0.52x", "0.0041x"]);
        assert_eq!([22.0, 0.25].map(|bytes| Show::Bytes.show(bytes)), ["22 B", "0.25 B"]);
    }
}
