//! Verdicts on the rows of a heat map, each by the measure of its traffic, and their summary: rows with jobs by job time,
//! the others by the slowdowns of their flows.

use pathweave_records::Quantity;

use crate::paper::heat::{Row, row};
use crate::paper::model::{Judged, Metric};
use crate::paper::plan::{FigurePlan, Point, Traffic};
use crate::paper::table::quantity;

/// Rows that are judged by one measure.
pub(crate) struct Class {
    pub(crate) traffic: Traffic,
    pub(crate) measure: usize,
    pub(crate) rows: Vec<Row>,
}

/// Returns the rows by traffic and measure, those with jobs first. Rows with several measures are in several classes.
pub(crate) fn classes(figure: &FigurePlan) -> Vec<Class> {
    let file = &figure.figure.file;
    let Some(judged) = &file.plot.judged else { return Vec::new() };
    let index = |name: &String| file.measure.iter().position(|measure| measure.name == *name);
    let class = |traffic: Traffic, name: &String| {
        let measure = index(name)?;
        let panels = (0..figure.panels.len()).filter(|panel| figure.traffic.get(*panel) == Some(&traffic));
        let rows: Vec<Row> = panels.map(|panel| row(figure, panel, measure)).collect();
        (!rows.is_empty()).then_some(Class { traffic, measure, rows })
    };
    let jobs = std::iter::once(class(Traffic::Jobs, &judged.jobs));
    jobs.chain(judged.arrivals.iter().map(|name| class(Traffic::Arrivals, name))).flatten().collect()
}

/// Summary of a curve over rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mean {
    /// Index of the curve.
    pub(crate) series: usize,
    /// Number of rows with a number.
    pub(crate) rows: usize,
    /// Number of rows in which a job or flow did not finish, so that there is no number.
    pub(crate) unfinished: usize,
    /// Geometric mean of the ratios to the best of each row. `None` without a row.
    pub(crate) ratio: Option<f64>,
}

/// Returns the summary of each curve that the rows have: first those that finish all rows, best first.
pub(crate) fn means<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> Vec<Mean> {
    let curves = rows.clone().map(|row| row.cells.len()).max().unwrap_or(0);
    let mut all: Vec<Mean> = (0..curves).filter_map(|series| mean(rows.clone(), series)).collect();
    let key = |mean: &Mean| mean.ratio.unwrap_or(f64::INFINITY);
    all.sort_by(|a, b| (a.unfinished > 0).cmp(&(b.unfinished > 0)).then(key(a).total_cmp(&key(b))));
    all
}

fn mean<'r>(rows: impl Iterator<Item = &'r Row>, series: usize) -> Option<Mean> {
    let cells: Vec<_> = rows.filter_map(|row| row.cells[series]).collect();
    let logs: Vec<f64> = cells.iter().filter_map(|cell| cell.ratio).map(f64::ln).collect();
    let ratio = (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp());
    let unfinished = cells.iter().filter(|cell| cell.ratio.is_none() && cell.unfinished > 0).count();
    (!cells.is_empty()).then_some(Mean { series, rows: logs.len(), unfinished, ratio })
}

/// Returns one sentence for each class: the curves by geometric mean, best first. Another one is about spurious timeouts.
pub(crate) fn sentences(figure: &FigurePlan) -> Vec<String> {
    let classes = classes(figure);
    let of_timeouts = if classes.is_empty() { None } else { timeouts(figure) };
    classes.iter().map(|class| sentence(figure, class)).chain(of_timeouts).collect()
}

fn sentence(figure: &FigurePlan, class: &Class) -> String {
    let name = |mean: &Mean| figure.figure.file.series[mean.series].label();
    let all = means(class.rows.iter());
    let whole = all.iter().filter(|mean| mean.unfinished == 0);
    let ranked = whole.filter_map(|mean| Some(format!("{} {:.3}", name(mean), mean.ratio?)));
    let open: Vec<String> = all
        .iter()
        .filter(|mean| mean.unfinished > 0)
        .map(|mean| format!("{} in {}", name(mean), mean.unfinished))
        .collect();
    let rows = class.rows.len();
    let (which, what) = match class.traffic {
        Traffic::Jobs => ("with jobs", "a job"),
        Traffic::Arrivals => ("without jobs", "flows"),
    };
    let mut text = format!(
        "By {}, geometric mean over {rows} {} {which} of the ratio to the best of the row: {}",
        figure.figure.file.measure[class.measure].name,
        if rows == 1 { "row" } else { "rows" },
        ranked.collect::<Vec<_>>().join(", ")
    );
    if !open.is_empty() {
        text.push_str(&format!("; without a mean, because they left {what} unfinished: {}", open.join(", ")));
    }
    text + "."
}

/// Returns the spurious timeouts of each curve over all rows, or `None` if no run counts them.
fn timeouts(figure: &FigurePlan) -> Option<String> {
    let measure = figure.figure.file.measure.iter().position(|one| one.of == Metric::SpuriousTimeouts)?;
    let (mut some, mut none) = (Vec::new(), Vec::new());
    for (series, one) in figure.figure.file.series.iter().enumerate() {
        let points = figure.points.iter().filter(|point| point.series == series);
        let sums: Vec<u64> = points.filter_map(|point| spurious_of(point, measure)).collect();
        let (total, rows) = (sums.iter().sum::<u64>(), sums.iter().filter(|sum| **sum > 0).count());
        match sums.len() {
            0 => {}
            _ if total == 0 => none.push(one.label()),
            all => some.push((total, format!("{} {total} in {rows} of {all} rows", one.label()))),
        }
    }
    some.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
    let some: Vec<String> = some.into_iter().map(|(_, words)| words).collect();
    let none = (!none.is_empty()).then(|| format!("none under {}", none.join(", ")));
    let parts: Vec<String> = (!some.is_empty()).then(|| some.join(", ")).into_iter().chain(none).collect();
    (!parts.is_empty()).then(|| format!("Timeouts in runs that lost no packet: {}.", parts.join("; ")))
}

/// Returns the sum over the seeds of a point that lost no packet, or `None` without such a seed.
fn spurious_of(point: &Point, measure: usize) -> Option<u64> {
    let values = point.observed.iter().flatten().filter_map(|seen| seen.values[measure]);
    values.map(|value| value as u64).reduce(|a, b| a + b)
}

/// Number of curves behind the best one that a verdict on a row names.
const FOLLOWERS: usize = 3;

/// Returns the verdict on each row that has one: the row's panel, and a sentence for each measure.
pub(crate) fn row_verdicts(figure: &FigurePlan) -> Vec<(usize, Vec<String>)> {
    let mut found: Vec<(usize, Vec<String>)> = Vec::new();
    for class in classes(figure) {
        for row in &class.rows {
            let words = row_words(figure, &class, row);
            match found.iter_mut().find(|(panel, _)| *panel == row.panel) {
                Some((_, all)) => all.push(words),
                None => found.push((row.panel, vec![words])),
            }
        }
    }
    found.sort_by_key(|(panel, _)| *panel);
    found
}

fn row_words(figure: &FigurePlan, class: &Class, row: &Row) -> String {
    let file = &figure.figure.file;
    let measure = &file.measure[class.measure];
    let quantity: Quantity = quantity(measure.of, measure.stat);
    let name = |series: usize| file.series[series].label();
    let mut ranked: Vec<(f64, f64, usize)> = Vec::new();
    let mut open = Vec::new();
    for (series, cell) in row.cells.iter().enumerate() {
        let Some(cell) = cell else { continue };
        match cell.estimate.zip(cell.ratio) {
            Some((estimate, ratio)) => ranked.push((ratio, estimate.mean, series)),
            None if cell.unfinished > 0 => open.push(name(series)),
            None => {}
        }
    }
    // The first of equals stays first.
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = match ranked.first() {
        None => format!("by {}, nobody finishes", measure.name),
        Some((_, value, series)) => {
            format!("by {}, {} with {}", measure.name, name(*series), quantity.format(*value))
        }
    };
    let behind = |(ratio, _, series): &(f64, f64, usize)| format!("{} {ratio:.3}", name(*series));
    let mut rest: Vec<String> = ranked.iter().skip(1).take(FOLLOWERS).map(behind).collect();
    if ranked.len() > FOLLOWERS + 2 {
        rest.push("...".to_owned());
    }
    if ranked.len() > FOLLOWERS + 1 {
        rest.extend(ranked.last().map(behind));
    }
    if !rest.is_empty() {
        text.push_str(&format!("; {}", rest.join(", ")));
    }
    if !open.is_empty() {
        text.push_str(&format!("; unfinished: {}", open.join(", ")));
    }
    text
}

/// Spurious timeouts of the curves in a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Spurious {
    /// Packets were lost under every curve, so that none can be told to be spurious.
    Unknown,
    /// Curves with such timeouts, most first, and their numbers over all seeds without a loss.
    Counted(Vec<(usize, u64)>),
}

/// Returns the spurious timeouts of a row, or `None` if the figure does not count them.
pub(crate) fn spurious(figure: &FigurePlan, panel: usize) -> Option<Spurious> {
    let measure = figure.figure.file.measure.iter().position(|one| one.of == Metric::SpuriousTimeouts)?;
    let points = figure.points.iter().filter(|point| point.panel == panel);
    let mut counted: Vec<(usize, u64)> =
        points.filter_map(|point| Some((point.series, spurious_of(point, measure)?))).collect();
    if counted.is_empty() {
        return Some(Spurious::Unknown);
    }
    counted.retain(|(_, sum)| *sum > 0);
    counted.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    Some(Spurious::Counted(counted))
}

impl Spurious {
    pub(crate) fn words(&self, figure: &FigurePlan) -> String {
        match self {
            Spurious::Unknown => "packets are lost".to_owned(),
            Spurious::Counted(all) if all.is_empty() => "none".to_owned(),
            Spurious::Counted(all) => {
                let one = |(series, sum): &(usize, u64)| {
                    format!("{} {sum}", figure.figure.file.series[*series].label())
                };
                all.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns the rows with jobs of each kind of fabrics that has any, by the name of the kind. Returns nothing if the figure
/// names no kinds.
pub(crate) fn fabrics(figure: &FigurePlan) -> Vec<(String, Vec<Row>)> {
    let Some(Judged { fabrics, .. }) = &figure.figure.file.plot.judged else { return Vec::new() };
    let Some(jobs) = classes(figure).into_iter().find(|class| class.traffic == Traffic::Jobs) else {
        return Vec::new();
    };
    let of = |name: &String| {
        let is_of = |row: &&Row| figure.panels[row.panel].matches_name(name);
        let rows: Vec<Row> = jobs.rows.iter().filter(is_of).cloned().collect();
        (!rows.is_empty()).then(|| (name.clone(), rows))
    };
    fabrics.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::testing::judged_map;

    /// Two rows with jobs and one without. Values are job time, P99 and spurious timeouts of the curves a, b and c.
    fn plan() -> FigurePlan {
        judged_map(&[
            (
                Traffic::Jobs,
                [
                    [Some(2e6), Some(9.0), Some(0.0)],
                    [Some(1e6), Some(9.5), Some(7.0)],
                    [Some(4e6), Some(1.0), None],
                ],
            ),
            (
                Traffic::Jobs,
                [[Some(1e6), Some(9.0), None], [Some(2e6), Some(9.5), None], [None, Some(1.0), None]],
            ),
            (
                Traffic::Arrivals,
                [[None, Some(4.0), Some(0.0)], [None, Some(2.0), Some(1.0)], [None, Some(3.0), Some(5.0)]],
            ),
        ])
    }

    #[test]
    fn each_row_is_judged_by_its_own_measure() {
        let found = row_verdicts(&plan());
        let words: Vec<&str> = found.iter().map(|(_, words)| words[0].as_str()).collect();
        assert_eq!(
            words,
            [
                "by job time, b with 1.000 ms; a 2.000, c 4.000",
                "by job time, a with 1.000 ms; b 2.000; unfinished: c",
                "by P99 slowdown, b with 2.000; c 1.500, a 2.000",
            ]
        );
        assert!(found.iter().all(|(_, words)| words.len() == 1));
    }

    #[test]
    fn the_summary_does_not_flatter_who_leaves_a_job_unfinished() {
        // a: 2 and 1. b: 1 and 2. c would have 4 from one row.
        assert_eq!(
            sentences(&plan()),
            [
                "By job time, geometric mean over 2 rows with jobs of the ratio to the best of the row: a 1.414, b 1.414; \
                 without a mean, because they left a job unfinished: c in 1.",
                "By P99 slowdown, geometric mean over 1 row without jobs of the ratio to the best of the row: b 1.000, c 1.500, \
                 a 2.000.",
                "Timeouts in runs that lost no packet: b 8 in 2 of 2 rows, c 5 in 1 of 1 rows; none under a.",
            ]
        );
    }

    #[test]
    fn timeouts_are_counted_where_nothing_was_lost() {
        let plan = plan();
        let words = |panel| spurious(&plan, panel).unwrap().words(&plan);
        assert_eq!([0, 1, 2].map(words), ["b 7", "packets are lost", "c 5, b 1"]);
        let none = judged_map(&[(Traffic::Jobs, [[Some(1.0), Some(1.0), Some(0.0)]; 3])]);
        assert_eq!(spurious(&none, 0).unwrap().words(&none), "none");
    }

    #[test]
    fn many_curves_are_named_by_the_first_and_the_last() {
        let plan = plan();
        let mut class = classes(&plan).remove(0);
        let cell = class.rows[0].cells[0].unwrap();
        let ratios = [1.0, 1.5, 1.1, 1.2, 1.3, 1.4];
        class.rows[0].cells =
            ratios.map(|ratio| Some(crate::paper::heat::Cell { ratio: Some(ratio), ..cell })).to_vec();
        let mut many = plan.clone();
        many.figure.file.series = (0..6)
            .map(|i| {
                let mut series = plan.figure.file.series[0].clone();
                series.name = format!("s{i}");
                series
            })
            .collect();
        assert_eq!(
            row_words(&many, &class, &class.rows[0]),
            "by job time, s0 with 2.000 ms; s2 1.100, s3 1.200, s4 1.300, ..., s1 1.500"
        );
    }

    #[test]
    fn rows_with_jobs_are_summed_up_by_fabric() {
        let plan = plan();
        let found = fabrics(&plan);
        let names: Vec<_> = found.iter().map(|(name, rows)| (name.as_str(), rows.len())).collect();
        // The third row is of the kind y as well, and has no jobs.
        assert_eq!(names, [("x", 1), ("y", 1)]);
        assert_eq!(
            crate::paper::heat::rows(&plan, 0).len(),
            2,
            "the map of job time has rows with jobs only"
        );
        assert_eq!(crate::paper::heat::rows(&plan, 1).len(), 3);
    }
}
