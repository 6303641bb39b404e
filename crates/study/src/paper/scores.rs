//! Scores of each curve over all rows of a heat map, in words and as CSV.

use crate::paper::by_jobs::{ByJobs, CSV_HEAD};
use crate::paper::heat::{Row, rows};
use crate::paper::judged;
use crate::paper::model::{Metric, PlotKind};
use crate::paper::plan::{FigurePlan, Plan};
use crate::paper::table::quoted;

/// Score of a curve, over the rows of a map that have it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Score {
    /// Name of the curve.
    pub(crate) series: String,
    /// Number of rows that have the curve.
    pub(crate) rows: usize,
    /// Number of rows in which the curve is best.
    pub(crate) best: usize,
    /// Number of rows in which the curve is within 2 % of the best.
    pub(crate) within_2: usize,
    /// Number of rows in which the curve is within 5 % of the best.
    pub(crate) within_5: usize,
    /// Geometric mean of the ratios to the best, over rows with a number.
    pub(crate) mean_ratio: Option<f64>,
    /// Largest of these ratios, with its row.
    pub(crate) worst: Option<(f64, String)>,
    /// Unfinished flows over all seeds.
    pub(crate) unfinished: usize,
    /// Number of rows with unfinished flows.
    pub(crate) unfinished_rows: usize,
}

/// Returns one score per curve.
pub(crate) fn scores(figure: &FigurePlan, measure: usize) -> Vec<Score> {
    let rows = rows(figure, measure);
    let series = figure.figure.file.series.iter().enumerate();
    series.map(|(index, one)| score(figure, &rows, index, one.label())).collect()
}

fn score(figure: &FigurePlan, rows: &[Row], index: usize, series: String) -> Score {
    let cells = || rows.iter().filter_map(|row| Some((row, row.cells[index]?)));
    let ratios = || cells().filter_map(|(row, cell)| Some((cell.ratio?, row)));
    let within = |limit: f64| ratios().filter(|(ratio, _)| *ratio <= limit).count();
    let known = ratios().count();
    let logs: f64 = ratios().map(|(ratio, _)| ratio.ln()).sum();
    let worst = ratios().max_by(|(a, _), (b, _)| a.total_cmp(b));
    Score {
        series,
        rows: cells().count(),
        best: cells().filter(|(_, cell)| cell.best()).count(),
        within_2: within(1.02),
        within_5: within(1.05),
        mean_ratio: (known > 0).then(|| (logs / known as f64).exp()),
        worst: worst.map(|(ratio, row)| (ratio, figure.panels[row.panel].name.clone())),
        unfinished: cells().map(|(_, cell)| cell.unfinished).sum(),
        unfinished_rows: cells().filter(|(_, cell)| cell.unfinished > 0).count(),
    }
}

impl Score {
    /// Returns the score as a sentence without the name.
    pub(crate) fn words(&self) -> String {
        let rows = |n: usize| if n == 1 { "row" } else { "rows" };
        let mut text = format!(
            "best in {} of {} {}, within 2 % of the best in {}, within 5 % in {}",
            self.best,
            self.rows,
            rows(self.rows),
            self.within_2,
            self.within_5
        );
        if let (Some(mean), Some((ratio, row))) = (self.mean_ratio, &self.worst) {
            text.push_str(&format!("; {mean:.3} of the best on average, at worst {ratio:.2} in {row}"));
        }
        match self.unfinished {
            0 => text.push_str("; every flow finished"),
            n => text.push_str(&format!(
                "; {n} {} failed or never ended, in {} {}",
                if n == 1 { "flow" } else { "flows" },
                self.unfinished_rows,
                rows(self.unfinished_rows)
            )),
        }
        text
    }
}

/// Returns the heat maps of a plan with the measures by which curves have scores.
pub(crate) fn maps(plan: &Plan) -> impl Iterator<Item = (&FigurePlan, usize)> {
    let figures = plan.figures.iter().filter(|figure| figure.figure.file.plot.kind == PlotKind::HeatMap);
    figures.flat_map(|figure| scored(figure).map(move |measure| (figure, measure)))
}

/// Returns the measures by which curves have scores. Spurious timeouts are not among them, because their best is 0.
pub(crate) fn scored(figure: &FigurePlan) -> impl Iterator<Item = usize> {
    let is_scored =
        move |measure: &usize| figure.figure.file.measure[*measure].of != Metric::SpuriousTimeouts;
    measures(figure).into_iter().filter(is_scored)
}

/// Returns the measures that a heat map draws.
pub(crate) fn measures(figure: &FigurePlan) -> Vec<usize> {
    let file = &figure.figure.file;
    let index = |name: &String| file.measure.iter().position(|measure| measure.name == *name);
    file.plot.measures.iter().filter_map(index).collect()
}

/// Returns the verdict by the measure of each kind of rows, and the scores of each curve over all rows of each heat map,
/// by the first measure drawn.
pub fn scores_text(plan: &Plan) -> String {
    let mut text: String =
        plan.figures.iter().flat_map(judged::sentences).map(|words| words + "\n").collect();
    let mut last = "";
    for (figure, measure) in maps(plan) {
        if std::mem::replace(&mut last, &figure.figure.id) == figure.figure.id {
            continue;
        }
        let file = &figure.figure.file;
        text.push_str(&format!("{}: {}\n", file.title, file.measure[measure].name));
        for score in scores(figure, measure) {
            text.push_str(&format!("  {:<16} {}\n", score.series, score.words()));
        }
    }
    text
}

/// Returns the scores as CSV, or `None` without a heat map.
pub(crate) fn scores_csv(plan: &Plan) -> Option<String> {
    let mut text =
        "figure,measure,series,rows,best,within_2_percent,within_5_percent,mean_ratio,worst_ratio,worst_row,\
         unfinished_flows,unfinished_rows\n"
            .to_owned();
    let head = text.len();
    for (figure, measure) in maps(plan) {
        for score in scores(figure, measure) {
            let name = &figure.figure.file.measure[measure].name;
            let (ratio, row) =
                score.worst.map_or((String::new(), String::new()), |(r, row)| (r.to_string(), row));
            text.push_str(&format!(
                "{},{},{},{},{},{},{},{},{ratio},{},{},{}\n",
                quoted(&figure.figure.id),
                quoted(name),
                quoted(&score.series),
                score.rows,
                score.best,
                score.within_2,
                score.within_5,
                score.mean_ratio.map(|mean| mean.to_string()).unwrap_or_default(),
                quoted(&row),
                score.unfinished,
                score.unfinished_rows
            ));
        }
    }
    (text.len() > head).then_some(text)
}

/// Returns the rows of heat maps as CSV, or `None` without a heat map.
pub(crate) fn rows_csv(plan: &Plan) -> Option<String> {
    let mut text = "figure,panel,group,role,tags,parts,verdict,spurious_timeouts\n".to_owned();
    let head = text.len();
    for figure in plan.figures.iter().filter(|figure| figure.figure.file.plot.kind == PlotKind::HeatMap) {
        let verdicts = judged::row_verdicts(figure);
        for (number, panel) in figure.panels.iter().enumerate() {
            let verdict = verdicts.iter().find(|(of, _)| *of == number).map(|(_, words)| words.join("; "));
            let spurious = judged::spurious(figure, number).map(|of| of.words(figure));
            text.push_str(&format!(
                "{},{},{},{},{},{},{},{}\n",
                quoted(&figure.figure.id),
                quoted(&panel.name),
                quoted(&panel.group),
                panel.role.map_or("", |role| role.name()),
                quoted(&panel.tags.join(" ")),
                quoted(&panel.parts.join(" ")),
                quoted(&verdict.unwrap_or_default()),
                quoted(&spurious.unwrap_or_default())
            ));
        }
    }
    (text.len() > head).then_some(text)
}

/// Returns the charts by jobs as CSV, or `None` without one.
pub(crate) fn by_jobs_csv(plan: &Plan) -> Option<String> {
    let charts = plan.figures.iter().filter_map(|figure| Some(ByJobs::new(figure)?.csv(&figure.figure.id)));
    let text: String = charts.collect();
    (!text.is_empty()).then(|| format!("{CSV_HEAD}{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::testing::map;

    #[test]
    fn scores_by_hand() {
        let one = |value: f64| [Some(value)];
        let rows: [&[&[Option<f64>]]; 3] =
            [&[&one(1.0), &one(1.04), &[None]], &[&one(4.0), &one(2.0), &one(2.01)], &[&one(5.0), &one(5.0)]];
        let found = scores(&map("", &rows), 0);
        assert_eq!(
            found[0],
            Score {
                series: "a".to_owned(),
                rows: 3,
                best: 2,
                within_2: 2,
                within_5: 2,
                // The cube root of 1 x 2 x 1.
                mean_ratio: Some(found[0].mean_ratio.unwrap()),
                worst: Some((2.0, "second".to_owned())),
                unfinished: 0,
                unfinished_rows: 0,
            }
        );
        assert!((found[0].mean_ratio.unwrap() - 1.259_921).abs() < 1e-6);
        assert_eq!((found[1].best, found[1].within_2, found[1].within_5), (2, 2, 3));
        assert_eq!(
            found[2].words(),
            "best in 0 of 2 rows, within 2 % of the best in 1, within 5 % in 1; 1.005 of the best on average, at worst \
             1.00 in second; 1 flow failed or never ended, in 1 row"
        );
    }
}
