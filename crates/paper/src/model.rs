//! What the files of a paper's folder say: the schema, and nothing computed from it.

use serde::Deserialize;
use toml::{Table, Value};

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
    /// `--quick`.
    pub quick: Scale,
    /// `--full`.
    pub full: Scale,
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

/// A curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name; claims refer to it. Curves of one name differ in `variant`.
    pub name: String,
    /// The variant of the scheme the paper proposes. Absent for others.
    pub variant: Option<Variant>,
    /// Scheme, as in a scenario. Absent: the scenario's.
    pub scheme: Option<String>,
    /// Fields changed, after the scheme.
    #[serde(default)]
    pub set: Table,
}

/// As printed, or as we repaired it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// As printed.
    Published,
    /// With our repairs.
    Repaired,
}

impl Variant {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Variant::Published => "published",
            Variant::Repaired => "repaired",
        }
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

/// A quantity over time: a sum of what was sampled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// What is added up.
    pub terms: Vec<Term>,
}

/// One summand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Payload rate received by this host, bits per second.
    pub host: Option<String>,
    /// Rate on the wire of this directed link ("leaf0>spine0"), bits per second.
    pub link: Option<String>,
    /// Bytes queued for this directed link.
    pub queue: Option<String>,
    /// Rate the policy of this flow allows, bits per second; the scenario follows the flow.
    pub flow_rate: Option<u32>,
    /// Bytes the receiver of this flow holds ahead of a gap; the scenario follows the flow.
    pub flow_held: Option<u32>,
    /// Multiplies the sample.
    #[serde(default = "one")]
    pub factor: f64,
}

fn one() -> f64 {
    1.0
}

/// What a figure is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Completion time of each flow.
    Fct,
    /// Bytes over completion time of each flow.
    Throughput,
    /// Completion time over that of an idle network, of each flow.
    Slowdown,
    /// What was delivered until the last flow finished, for each host that sends.
    HostThroughput,
    /// Largest out-of-order degree of each flow, packets.
    OooDegree,
    /// Packets that arrived behind a later one, of each flow.
    OooPackets,
    /// The same as a share of the packets sent, in all.
    OooShare,
    /// Congestion notifications that reached the sender, of each flow.
    Cnps,
    /// Bytes on the wire of copies and notices over payload, in all.
    Overhead,
    /// Copies of packets in flight, in all.
    Copies,
    /// Notices of a change of path, in all.
    Notices,
    /// Rate the policies of a group allowed, mean over samples.
    PolicyRate,
    /// Bytes a receiver of a group held ahead of a gap, mean over samples.
    Held,
    /// Completion time of each job.
    JobTime,
    /// Largest egress queue of each link.
    Queue,
    /// Acknowledgements and other control packets: share of the bytes hosts send.
    AckShare,
    /// Times PFC paused a link, in all.
    Pauses,
    /// Answers that external switches gave in place of the far end.
    Answers,
    /// Flows that external switches found congested and kept apart.
    IsolatedFlows,
    /// Packets dropped, in all.
    Drops,
    /// Packets dropped, as a share of the data packets sent.
    LossShare,
    /// Packets sent again, in all.
    Retransmissions,
    /// Flows that did not finish.
    Unfinished,
    /// Times between packets of a message as they leave, to the next bound of six a decade; the scenario observes
    /// departures.
    Gaps,
    /// Share of them that are longer than `from_us`.
    GapShare,
    /// Share of the bytes that took paths of `links` links, over the share under uniform spraying; the scenario observes
    /// departures.
    LengthShare,
    /// A trace, over a span of time.
    Trace,
    /// Bytes of a connection's policy in memory.
    StateBytes,
}

/// One number from many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Sum.
    Sum,
    /// 1st percentile: the P99 tail of what should be large.
    P1,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Largest over mean.
    MaxOverMean,
    /// Jain's fairness index.
    Jain,
    /// Longest time a trace is below `below` without a break, nanoseconds.
    TimeBelow,
}

/// A figure of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Its name; plots and claims refer to it.
    pub name: String,
    /// What it is computed from.
    pub of: Of,
    /// How.
    #[serde(default)]
    pub stat: Stat,
    /// Only flows and jobs of this workload group.
    pub group: Option<String>,
    /// Only flows of more bytes than this.
    pub larger_than_bytes: Option<u64>,
    /// For traces: which one.
    pub trace: Option<String>,
    /// For traces: from this time, microseconds. For `gap-share`: longer than this.
    #[serde(default)]
    pub from_us: f64,
    /// For `length-share`: links from host to host.
    pub links: Option<u32>,
    /// For traces: to this time, microseconds.
    pub to_us: Option<f64>,
    /// For `time-below`: the level, in the unit of the trace.
    #[serde(default)]
    pub below: f64,
}

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
    /// For `bars`, instead: several, beside each other, in a picture a panel and curve.
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
    /// The curve it is about; of one with variants, each is compared.
    pub series: String,
    /// Only these panels. Default: all.
    #[serde(default)]
    pub panels: Vec<String>,
    /// Only these values of the sweep, as they are written there; those that do not run are left out. Default: all.
    #[serde(default)]
    pub at: Vec<Value>,
    /// What it is compared with.
    pub versus: Option<Versus>,
    /// How.
    #[serde(default)]
    pub compare: Compare,
    /// From several panels and sweep values to one number.
    #[serde(default)]
    pub over: Over,
    /// Holds from this on.
    pub at_least: Option<f64>,
    /// Holds up to this.
    pub at_most: Option<f64>,
    /// Still counts as agreeing, in the unit compared.
    #[serde(default)]
    pub tolerance: f64,
    /// How the number is shown.
    pub show: Show,
    /// Why it does not agree, where that is known.
    #[serde(default)]
    pub why: Why,
}

/// Why a claim does not agree.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// For the published variant.
    #[serde(default)]
    pub published: String,
    /// For the repaired variant.
    #[serde(default)]
    pub repaired: String,
}

/// Another point of the same figure; what is absent is as in the claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Versus {
    /// Curve; of the same variant if it has any.
    pub series: Option<String>,
    /// Panel.
    pub panel: Option<String>,
    /// Measure.
    pub measure: Option<String>,
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
