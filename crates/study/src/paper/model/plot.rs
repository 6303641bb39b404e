//! Schema of the picture of a figure.

use serde::Deserialize;

use super::Metric;

/// Description of the picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Kind of picture.
    pub kind: PlotKind,
    /// Metric whose distribution a `cdf` shows.
    pub of: Option<Metric>,
    /// Measure that `lines` and `bars` show.
    pub measure: Option<String>,
    /// Further measures for `lines` and `bars`. Each gets pictures of its own.
    #[serde(default)]
    pub also: Vec<String>,
    /// Measures of a `bars` picture that shows several beside each other, in one picture per panel and curve. In a
    /// `heat-map`, one map per measure.
    #[serde(default)]
    pub measures: Vec<String>,
    /// Measures by which the rows of a `heat-map` are judged.
    pub judged: Option<Judged>,
    /// Unit of the values: "ms", "us", "Gbps", "KB", "MB", "packets", "%" or nothing.
    #[serde(default)]
    pub unit: String,
    /// Unit of the time axis of `traces`: "us" (default) or "ms".
    pub time: Option<String>,
    /// Label of the x axis.
    #[serde(default)]
    pub x: String,
    /// Label of the y axis.
    #[serde(default)]
    pub y: String,
    /// True if the axis of values is logarithmic.
    #[serde(default)]
    pub log: bool,
    /// Horizontal reference lines.
    #[serde(default)]
    pub level: Vec<Level>,
}

/// Measures by which the rows of a heat map are judged. The traffic of a row decides.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// Measure of rows with jobs, to which the map of this measure is limited.
    pub jobs: String,
    /// Measures of rows in which flows arrive over time.
    pub arrivals: Vec<String>,
    /// Kinds of fabrics by which rows with jobs are summed up: headings or tags of rows, in order.
    #[serde(default)]
    pub fabrics: Vec<String>,
}

/// A horizontal line in a picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Label of the line.
    pub name: String,
    /// Value at which the line is drawn, in the unit of the plot.
    pub at: f64,
}

/// Kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlotKind {
    /// Cumulative distribution, one curve per series.
    Cdf,
    /// Measure over the sweep, one curve per series.
    Lines,
    /// Measure as bars, one group per sweep value or panel.
    Bars,
    /// Traces over time, one picture per series.
    Traces,
    /// Table of measures of which the smallest is best. Rows are panels, columns are curves. The colour shows the
    /// ratio to the best value of the row.
    HeatMap,
    /// No picture. The table of measures is the whole result.
    Table,
}

/// Published curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Measure that the values belong to.
    pub measure: String,
    /// Curve that the values belong to.
    pub series: String,
    /// Panel in which the values are drawn. Default: every panel.
    pub panel: Option<String>,
    /// One value for each of the sweep's `values`, in the unit of the plot.
    pub values: Vec<f64>,
}

/// Returns the number of base units (nanoseconds, bits per second, bytes, or a share) in one unit of a plot.
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
