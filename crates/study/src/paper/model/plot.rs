//! How a figure is drawn.

use serde::Deserialize;

use super::Of;

/// The picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Kind of picture.
    pub kind: PlotKind,
    /// For `cdf`: of what.
    pub of: Option<Of>,
    /// For `lines` and `bars`: which measure.
    pub measure: Option<String>,
    /// For `lines` and `bars`: further measures, each in pictures of its own.
    #[serde(default)]
    pub also: Vec<String>,
    /// For `bars`, instead: several, beside each other, in a picture a panel and curve. For `heat-map`: a map each.
    #[serde(default)]
    pub measures: Vec<String>,
    /// Unit of the values: "ms", "us", "Gbps", "KB", "MB", "packets", "%" or nothing.
    #[serde(default)]
    pub unit: String,
    /// For `traces`: unit of the time axis, "us" (default) or "ms".
    pub time: Option<String>,
    /// Label of the x axis.
    #[serde(default)]
    pub x: String,
    /// Label of the y axis.
    #[serde(default)]
    pub y: String,
    /// Logarithmic axis of values.
    #[serde(default)]
    pub log: bool,
    /// Horizontal lines.
    #[serde(default)]
    pub level: Vec<Level>,
}

/// A horizontal line in a picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What it is.
    pub name: String,
    /// Where, in the unit of the plot.
    pub at: f64,
}

/// Kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Cumulative distribution, one curve a series.
    Cdf,
    /// A measure over the sweep, one curve a series.
    Lines,
    /// A measure, a group of bars for each sweep value or panel.
    Bars,
    /// Traces over time, one picture a series.
    Traces,
    /// Measures of which the smallest is best: a row a panel, a column a curve, coloured by how far from the row's best.
    HeatMap,
    /// No picture: the table of measures says it all.
    Table,
}

/// A curve that was published.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Of which measure.
    pub measure: String,
    /// Of which curve.
    pub series: String,
    /// In which panel. Default: in all.
    pub panel: Option<String>,
    /// A value for each of the sweep's `values`, in the unit of the plot.
    pub values: Vec<f64>,
}

/// How much of the base unit (nanoseconds, bits per second, bytes, a share) a plot's unit is.
pub(crate) fn unit_factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "packets" | "B" | "ns" => 1.0,
        "us" | "KB" => 1e3,
        "ms" | "MB" => 1e6,
        "s" | "Gbps" | "GB" => 1e9,
        "%" => 0.01,
        _ => return None,
    })
}
