//! Claims and measures as text for the terminal and as CSV.

use crate::paper::claims::Verdict;
use crate::paper::model::{Metric, PlotKind, Stat, Variant};
use crate::paper::plan::{FigurePlan, Plan};
use pathweave_records::Quantity;
use pathweave_report::Estimate;

/// Returns the claims as text: the published result, then each variant's number with its state, the rule, and the
/// reason.
pub fn claims_text(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    let mut figure = "";
    let mut claim = "";
    for verdict in verdicts {
        if verdict.figure != figure {
            text.push_str(&format!("Figure {}\n", verdict.figure));
            (figure, claim) = (&verdict.figure, "");
        }
        if verdict.claim != claim {
            text.push_str(&format!("  {}\n", verdict.claim));
            text.push_str(&format!(
                "    published           {} ({})\n",
                verdict.published, verdict.detail.source
            ));
            claim = &verdict.claim;
        }
        let who = if verdict.variant.is_empty() { "measured" } else { &verdict.variant };
        let word = verdict.state.word();
        text.push_str(&format!("    {who:<18}  {}: {word} ({})\n", verdict.measured, verdict.detail.rule));
        if !verdict.why.is_empty() {
            text.push_str(&format!("    {:<18}  why: {}\n", "", verdict.why));
        }
    }
    text
}

/// Entry of a ranking.
pub(crate) struct Ranked {
    pub(crate) series: String,
    pub(crate) value: Option<Estimate>,
    /// True if the curve cannot be distinguished from the best, because the confidence intervals overlap.
    pub(crate) best: bool,
}

/// Returns the curves of a panel, from best to worst by a measure.
pub(crate) fn ranking(figure: &FigurePlan, panel: usize, measure: usize) -> Vec<Ranked> {
    let m = &figure.figure.file.measure[measure];
    let more_is_better = m.of == Metric::Throughput || m.stat == Stat::Jain;
    let points = figure.points.iter().filter(|point| point.panel == panel);
    let mut ranked: Vec<Ranked> = points
        .map(|point| Ranked {
            series: figure.figure.file.series[point.series].label(),
            value: figure.estimate(point, measure),
            best: false,
        })
        .collect();
    let key = |r: &Ranked| r.value.map_or(f64::INFINITY, |e| if more_is_better { -e.mean } else { e.mean });
    ranked.sort_by(|a, b| key(a).total_cmp(&key(b)));
    if let Some(first) = ranked.first().and_then(|first| first.value) {
        for one in &mut ranked {
            one.best = one.value.is_some_and(|e| {
                (e.mean - first.mean).abs() <= e.ci95.unwrap_or(0.0) + first.ci95.unwrap_or(0.0)
            });
        }
    }
    ranked
}

/// Returns the ranking of schemes in each panel, for the figures that define one.
pub fn rankings_text(plan: &Plan) -> String {
    let mut text = String::new();
    for figure in &plan.figures {
        let file = &figure.figure.file;
        for name in &file.rank {
            let Some(m) = file.measure.iter().position(|measure| measure.name == *name) else { continue };
            let quantity = quantity(file.measure[m].of, file.measure[m].stat);
            text.push_str(&format!(
                "{}: {name}, best first; * does not differ significantly from the best\n",
                file.title
            ));
            for (p, panel) in figure.panels.iter().enumerate() {
                let show = |r: &Ranked| {
                    let mark = if r.best { "*" } else { "" };
                    let value = r.value.map_or("none".to_owned(), |e| quantity.format(e.mean));
                    format!("{}{mark} {value}", r.series)
                };
                let all: Vec<String> = ranking(figure, p, m).iter().map(show).collect();
                text.push_str(&format!("  {:<16} {}\n", panel.name, all.join("; ")));
            }
        }
    }
    text
}

/// Returns the quantity in which a measure is shown.
pub(crate) fn quantity(of: Metric, stat: Stat) -> Quantity {
    match (of, stat) {
        (_, Stat::Jain | Stat::MaxOverMean) => Quantity::Plain,
        (_, Stat::TimeBelow)
        | (Metric::Fct | Metric::AckedFct | Metric::JobTime | Metric::TimeOfJobs | Metric::Gaps, _) => {
            Quantity::TimeNs
        }
        (Metric::Throughput | Metric::HostThroughput | Metric::Trace | Metric::PolicyRate, _) => {
            Quantity::RateBps
        }
        (Metric::Queue | Metric::StateBytes | Metric::Held, _) => Quantity::Bytes,
        (
            Metric::AckShare
            | Metric::LossShare
            | Metric::Overhead
            | Metric::OooShare
            | Metric::GapShare
            | Metric::IsolatedShare,
            _,
        ) => Quantity::Percent,
        (
            Metric::Slowdown | Metric::OooDegree | Metric::OooPackets | Metric::Cnps | Metric::LengthShare,
            _,
        ) => Quantity::Plain,
        (
            Metric::Answers
            | Metric::IsolatedFlows
            | Metric::Copies
            | Metric::Notices
            | Metric::Pauses
            | Metric::Drops
            | Metric::Retransmissions
            | Metric::SpuriousTimeouts
            | Metric::Unfinished,
            _,
        ) => Quantity::Count,
    }
}

/// Returns every measure at every point and seed as CSV, one per line.
pub(crate) fn measures_csv(plan: &Plan) -> String {
    let mut text = "figure,panel,series,variant,x,seed,measure,value,digest,unit\n".to_owned();
    each_seed(plan, |figure, head, observed| {
        for (measure, value) in figure.figure.file.measure.iter().zip(&observed.values) {
            let value = value.map(|v| v.to_string()).unwrap_or_default();
            let unit = unit(quantity(measure.of, measure.stat));
            text.push_str(&format!("{head},{},{value},{},{unit}\n", quoted(&measure.name), observed.digest));
        }
    });
    text
}

/// Returns the unit of a value in CSV, which is empty for plain numbers.
fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::TimeNs => "ns",
        Quantity::RateBps => "bit/s",
        Quantity::Bytes => "bytes",
        Quantity::Percent => "ratio",
        Quantity::Count | Quantity::Plain => "",
    }
}

/// Returns the values of distributions as CSV.
pub(crate) fn samples_csv(plan: &Plan) -> String {
    let mut text = "figure,panel,series,variant,x,seed,value,unit\n".to_owned();
    each_seed(plan, |figure, head, observed| {
        let unit = figure.figure.file.plot.of.map_or("", |of| unit(quantity(of, Stat::Mean)));
        for value in &observed.samples {
            text.push_str(&format!("{head},{value},{unit}\n"));
        }
    });
    text
}

/// Returns the traces as CSV.
pub(crate) fn traces_csv(plan: &Plan) -> String {
    let mut text = "figure,panel,series,variant,x,seed,trace,time_ns,value,unit\n".to_owned();
    each_seed(plan, |figure, head, observed| {
        for (trace, samples) in figure.figure.file.trace.iter().zip(&observed.traces) {
            let unit = unit(trace.quantity());
            for (at, value) in samples {
                text.push_str(&format!("{head},{},{at},{value},{unit}\n", quoted(&trace.name)));
            }
        }
    });
    text
}

/// Returns the numbers behind the picture of a figure as CSV: its rows of the table of its kind.
pub(crate) fn figure_csv(plan: &Plan, figure: &FigurePlan) -> String {
    let all = match figure.figure.file.plot.kind {
        PlotKind::Cdf => samples_csv(plan),
        PlotKind::Traces => traces_csv(plan),
        PlotKind::Table | PlotKind::HeatMap | PlotKind::Lines | PlotKind::Bars => measures_csv(plan),
    };
    let own = format!("{},", quoted(&figure.figure.id));
    let rows = all.split_inclusive('\n').enumerate();
    rows.filter(|(place, row)| *place == 0 || row.starts_with(&own)).map(|(_, row)| row).collect()
}

fn each_seed(plan: &Plan, mut row: impl FnMut(&FigurePlan, &str, &crate::paper::observe::Observed)) {
    for figure in &plan.figures {
        for point in &figure.points {
            let series = &figure.figure.file.series[point.series];
            for (seed, observed) in figure.seeds.iter().zip(&point.observed) {
                let Some(observed) = observed else { continue };
                let head = [
                    figure.figure.id.as_str(),
                    &quoted(&figure.panels[point.panel].name),
                    &quoted(&series.name),
                    series.variant.as_ref().map(Variant::name).unwrap_or_default(),
                    &quoted(&figure.xs[point.x]),
                    &seed.to_string(),
                ];
                row(figure, &head.join(","), observed);
            }
        }
    }
}

pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
