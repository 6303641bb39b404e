//! Summary of a sweep: for each cell the mean of every figure over seeds, with its confidence interval.

use std::collections::BTreeMap;

use pathweave_records::{Quantity, Summary};
use pathweave_report::{Better, DataFrame, Estimate, Figure, Needs, Series, figures};
use serde::Serialize;

use crate::sweep::ENGINE;
use crate::sweep::best::{Best, best, change, rivals};
use crate::sweep::cells::{Axis, AxisKind};
use crate::sweep::plan::Plan;
use crate::sweep::record::{
    IDEAL_TIME, ITERATION, JOB_TIME, Record, TAIL_SLOWDOWN, TAIL_TIME, TOKENS_PER_SECOND, digest,
};

/// Format identifier of a sweep's `summary.json`.
pub(crate) const SCHEMA: &str = "pathweave.sweep";
const SCHEMA_VERSION: u32 = 1;

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The run ended, with or without unfinished flows.
    Finished(Record),
    /// The run failed, for this reason.
    Failed(String),
    /// The run was not made, for this reason: its result cannot matter.
    LeftOut(String),
}

/// Figures of a sweep, the content of `summary.json`.
#[derive(Clone, Debug, Serialize)]
pub struct SweepSummary {
    /// Format identifier, "pathweave.sweep".
    pub schema: &'static str,
    /// Version of the format. It rises when a field is renamed, removed or changes meaning.
    pub schema_version: u32,
    /// Name of the sweep.
    pub name: String,
    /// Version of the engine.
    pub engine: &'static str,
    /// Digest of the dataset: of every run's key and digest, sorted by key. It does not depend on the order or the
    /// place in which runs were made.
    pub digest: String,
    /// True if runs are missing because the sweep was interrupted.
    pub partial: bool,
    /// Number of all runs. Equal ones count once.
    pub runs: usize,
    /// Number of runs that ended.
    pub finished_runs: usize,
    /// Number of runs that failed.
    pub failed_runs: usize,
    /// Number of runs that were not made because their results cannot matter.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out_runs: usize,
    /// Number of runs that ended with unfinished flows or jobs.
    pub open_runs: usize,
    /// Seeds of each cell.
    pub seeds: Vec<u64>,
    /// Axes of the sweep.
    pub axes: Vec<Axis>,
    /// Name of the figure by which cells are judged. Without one in the file, jobs are judged by their time, or by tokens
    /// per second if they train on unlike numbers of tokens. Flows are judged by the P99 of the slowdown, or of the
    /// completion time if the compared values have other ideal times of the same flows.
    pub metric: String,
    /// Figures of cells: name, label, and quantity.
    pub metrics: Vec<Metric>,
    /// Cells in the order of the file.
    pub cells: Vec<CellSummary>,
    /// Best value of the compared axis, for each figure and each setting of the other axes.
    pub best: Vec<Best>,
    #[serde(skip)]
    outcomes: BTreeMap<usize, Outcome>,
}

/// Description of a figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Key of the figure in `metrics` of cells.
    pub name: String,
    /// Label for people.
    pub label: &'static str,
    /// Quantity in which it is shown.
    pub quantity: Quantity,
    /// Direction in which the figure is better.
    pub better: Better,
    /// Work that has to be finished for the figure to stand for a cell.
    #[serde(skip)]
    pub needs: Needs,
}

/// Summary of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct CellSummary {
    /// Description for people.
    pub label: String,
    /// Index of the value on each axis.
    pub at: Vec<usize>,
    /// Keys of the cell's runs, by seed.
    pub runs: Vec<String>,
    /// Seeds whose runs ended. The other runs failed or have not been made.
    pub finished_seeds: Vec<u64>,
    /// Number of unfinished flows over all seeds.
    pub open_flows: u64,
    /// Reasons why seeds, or the whole cell, failed.
    pub failed: Vec<String>,
    /// Reason why runs were not made, if their results cannot matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Figures by name, without those for which no seed has a value, and those that are withheld.
    pub metrics: BTreeMap<String, Figures>,
    /// Names of figures without a value because flows or jobs that they are of did not finish under a seed. Those that
    /// finished are the fast ones, and do not stand for the cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Relative change of the figure by which cells are judged, from the cell with the first value of the compared axis,
    /// seed by seed. Cells of one seed have the same traffic, so a change varies less than its figures. The half width of
    /// its interval is that of the differences over the mean of the first value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Estimate>,
}

/// Statistics of a figure over the seeds of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Mean and half width of its 95 % confidence interval.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Figures {
    fn from_values(values: &[f64]) -> Option<Self> {
        let estimate = Estimate::from_values(values)?;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Figures { estimate, min, max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max) })
    }
}

impl CellSummary {
    /// Returns the word in place of a figure that the cell has no value of, as its work did not finish.
    pub(crate) fn without_value(&self, figure: &str) -> Option<&'static str> {
        let is_withheld = self.withheld.iter().any(|name| name == figure);
        let all_failed = self.finished_seeds.is_empty() && !self.failed.is_empty();
        match (is_withheld, all_failed) {
            (true, _) => Some("unfinished"),
            (false, true) => Some("failed"),
            (false, false) => None,
        }
    }
}

impl SweepSummary {
    /// Builds the summary of `plan` from the outcomes, by index of the run. A missing run has not been made.
    pub fn from_outcomes(plan: &Plan, outcomes: BTreeMap<usize, Outcome>) -> Self {
        let metrics: Vec<Metric> =
            figures(&Summary::from_run(&Default::default())).into_iter().map(metric).collect();
        let mut cells: Vec<CellSummary> =
            (0..plan.cells.len()).map(|cell| summarise(plan, cell, &metrics, &outcomes)).collect();
        let by_seed = |cell: usize, name: &str| {
            let runs = plan.runs_of[cell].as_deref().unwrap_or_default();
            let record = |run: &usize| match outcomes.get(run) {
                Some(Outcome::Finished(record)) => Some(record),
                Some(Outcome::Failed(_) | Outcome::LeftOut(_)) | None => None,
            };
            let needs =
                metrics.iter().find(|metric| metric.name == name).map_or(Needs::Nothing, |of| of.needs);
            let value = |run: &usize| record(run)?.comparable(name, needs);
            // A cell that fails or leaves work unfinished under one seed is not judged by its other seeds.
            let is_missing = |run: &usize| !outcomes.contains_key(run);
            let whole = runs.iter().all(|run| is_missing(run) || value(run).is_some());
            if whole { runs.iter().map(value).collect() } else { Vec::new() }
        };
        let metric =
            plan.metric.clone().unwrap_or_else(|| deciding_figure(plan, &outcomes, by_seed).to_owned());
        for (cell, change) in change(plan, |cell| by_seed(cell, &metric)) {
            cells[cell].change = Some(change);
        }
        let count = |of: fn(&Outcome) -> bool| outcomes.values().filter(|outcome| of(outcome)).count();
        SweepSummary {
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
            name: plan.name.clone(),
            engine: ENGINE,
            digest: dataset_digest(plan, &outcomes),
            partial: outcomes.len() < plan.runs.len(),
            runs: plan.runs.len(),
            finished_runs: count(|outcome| matches!(outcome, Outcome::Finished(_))),
            failed_runs: count(|outcome| matches!(outcome, Outcome::Failed(_))),
            left_out_runs: count(|outcome| matches!(outcome, Outcome::LeftOut(_))),
            open_runs: count(|outcome| matches!(outcome, Outcome::Finished(record) if !record.is_whole())),
            seeds: plan.seeds.clone(),
            axes: plan.axes.clone(),
            best: best(plan, &metrics, by_seed),
            metric,
            metrics,
            cells,
            outcomes,
        }
    }

    /// Returns true if a run or cell failed, or flows or jobs did not finish.
    pub fn has_failures(&self) -> bool {
        self.failed_runs > 0 || self.open_runs > 0 || self.cells.iter().any(|cell| !cell.failed.is_empty())
    }

    /// Returns a table with one row per run and cell: settings, seed, digest and figures.
    pub(crate) fn runs_frame(&self, plan: &Plan) -> DataFrame {
        let mut rows = Vec::new();
        for (cell, runs) in plan.runs_of.iter().enumerate() {
            let runs = runs.iter().flatten();
            rows.extend(runs.zip(&plan.seeds).map(|(&run, &seed)| (cell, run, seed)));
        }
        let record = |run: usize| match self.outcomes.get(&run) {
            Some(Outcome::Finished(record)) => Some(record),
            _ => None,
        };
        let mut frame = DataFrame::default();
        frame.add(
            "run",
            Series::Text(rows.iter().map(|&(_, run, _)| Some(plan.runs[run].key.clone())).collect()),
        );
        frame.add("cell", Series::Whole(rows.iter().map(|&(cell, ..)| Some(cell as u64)).collect()));
        self.add_settings(&mut frame, &rows.iter().map(|&(cell, ..)| cell).collect::<Vec<_>>());
        frame.add("seed", Series::Whole(rows.iter().map(|&(.., seed)| Some(seed)).collect()));
        let text = |of: fn(&Record) -> String| rows.iter().map(|&(_, run, _)| record(run).map(of)).collect();
        frame.add("digest", Series::Text(text(|record| record.digest.clone())));
        frame.add("ended", Series::Text(text(|record| record.ended.clone())));
        let open = rows.iter().map(|&(_, run, _)| record(run).map(|record| record.open_flows)).collect();
        frame.add("open_flows", Series::Whole(open));
        let why = rows.iter().map(|&(_, run, _)| match self.outcomes.get(&run) {
            Some(Outcome::Failed(why)) => Some(why.clone()),
            _ => None,
        });
        frame.add("error", Series::Text(why.collect()));
        for metric in &self.metrics {
            let of = |&(_, run, _): &(usize, usize, u64)| record(run)?.metrics.get(&metric.name).copied();
            frame.add(&metric.name, Series::Real(rows.iter().map(of).collect()));
        }
        frame
    }

    /// Returns a table with one row per cell and figure.
    pub(crate) fn frame(&self) -> DataFrame {
        let mut rows = Vec::new();
        for (number, cell) in self.cells.iter().enumerate() {
            let of = |metric: &Metric| Some((number, metric.name.clone(), *cell.metrics.get(&metric.name)?));
            rows.extend(self.metrics.iter().filter_map(of));
        }
        let mut frame = DataFrame::default();
        frame.add("cell", Series::Whole(rows.iter().map(|(cell, ..)| Some(*cell as u64)).collect()));
        self.add_settings(&mut frame, &rows.iter().map(|(cell, ..)| *cell).collect::<Vec<_>>());
        frame.add("metric", Series::Text(rows.iter().map(|(_, name, _)| Some(name.clone())).collect()));
        let mut add = |name: &str, of: fn(&Figures) -> Option<f64>| {
            frame.add(name, Series::Real(rows.iter().map(|(.., figures)| of(figures)).collect()));
        };
        add("mean", |f| Some(f.estimate.mean));
        add("ci95", |f| f.estimate.ci95);
        add("min", |f| Some(f.min));
        add("max", |f| Some(f.max));
        let n = rows.iter().map(|(.., figures)| Some(figures.estimate.n as u64)).collect();
        frame.add("runs", Series::Whole(n));
        frame
    }

    /// Adds a column per axis with the cell's value as text. Numbers without a unit stay numbers.
    fn add_settings(&self, frame: &mut DataFrame, cells: &[usize]) {
        for (a, axis) in self.axes.iter().enumerate() {
            let at = |&cell: &usize| self.cells[cell].at[a];
            match &axis.numbers {
                Some(numbers) if axis.quantity == Quantity::Plain && axis.kind != AxisKind::List => {
                    frame.add(
                        &axis.key,
                        Series::Real(cells.iter().map(|cell| Some(numbers[at(cell)])).collect()),
                    );
                }
                _ => {
                    let text = |cell| Some(axis.values[at(cell)].clone());
                    frame.add(&axis.key, Series::Text(cells.iter().map(text).collect()));
                }
            }
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn metric(figure: Figure) -> Metric {
    Metric {
        name: figure.name,
        label: figure.label,
        quantity: figure.quantity,
        better: figure.better,
        needs: figure.needs,
    }
}

fn summarise(
    plan: &Plan,
    cell: usize,
    metrics: &[Metric],
    outcomes: &BTreeMap<usize, Outcome>,
) -> CellSummary {
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let (mut open_flows, mut failed, mut finished_seeds, mut left_out) = (0, Vec::new(), Vec::new(), None);
    let runs = plan.runs_of[cell].as_deref().unwrap_or_default();
    if let Err(why) = &plan.runs_of[cell] {
        failed.push(why.clone());
    }
    let mut lacking = Vec::new();
    for (&run, &seed) in runs.iter().zip(&plan.seeds) {
        match outcomes.get(&run) {
            Some(Outcome::Finished(record)) => {
                lacking.extend([Needs::Flows, Needs::Jobs].into_iter().filter(|needs| record.lacks(*needs)));
                open_flows += record.open_flows;
                finished_seeds.push(seed);
                for (name, &value) in &record.metrics {
                    values.entry(name.clone()).or_default().push(value);
                }
            }
            Some(Outcome::Failed(why)) => failed.push(format!("seed {seed}: {why}")),
            Some(Outcome::LeftOut(why)) => left_out = Some(why.clone()),
            None => {}
        }
    }
    let withheld = metrics.iter().filter(|metric| lacking.contains(&metric.needs));
    let withheld: Vec<String> = withheld.map(|metric| metric.name.clone()).collect();
    CellSummary {
        label: plan.cells[cell].label.clone(),
        at: plan.cells[cell].value_indices.clone(),
        runs: runs.iter().map(|&run| plan.runs[run].key.clone()).collect(),
        finished_seeds,
        open_flows,
        failed,
        left_out,
        metrics: values
            .into_iter()
            .filter(|(name, _)| !withheld.contains(name))
            .filter_map(|(name, values)| Some((name, Figures::from_values(&values)?)))
            .collect(),
        withheld,
        change: None,
    }
}

/// Returns the figure by which runs are judged, as comparisons of schemes are: the job time if every run has jobs, or
/// tokens per second if jobs of rivals train on unlike numbers of tokens. Without jobs, the P99 of the slowdown, or of the
/// completion time if the same flows have other ideal times.
fn deciding_figure(
    plan: &Plan,
    outcomes: &BTreeMap<usize, Outcome>,
    by_seed: impl Fn(usize, &str) -> Vec<Option<f64>>,
) -> &'static str {
    let records = || {
        outcomes.values().filter_map(|outcome| match outcome {
            Outcome::Finished(record) => Some(record),
            Outcome::Failed(_) | Outcome::LeftOut(_) => None,
        })
    };
    let jobs = records().next().is_some() && records().all(Record::has_jobs);
    let differ = |figure: &dyn Fn(usize) -> Vec<Option<f64>>| {
        rivals(plan)
            .values()
            .any(|cells| cells.windows(2).any(|pair| unlike(&figure(pair[0]), &figure(pair[1]))))
    };
    let tokens = |cell: usize| {
        let per_second = by_seed(cell, TOKENS_PER_SECOND).into_iter();
        per_second.zip(by_seed(cell, ITERATION)).map(|(rate, time)| Some(rate? * time?)).collect()
    };
    let other_flows = plan.axes.get(plan.compare).is_some_and(|axis| axis.key.starts_with("workload"));
    match jobs {
        true if differ(&tokens) => TOKENS_PER_SECOND,
        true => JOB_TIME,
        false if !other_flows && differ(&|cell| by_seed(cell, IDEAL_TIME)) => TAIL_TIME,
        false => TAIL_SLOWDOWN,
    }
}

/// Returns true if a figure differs by more than two per cent under a seed that both have.
fn unlike(a: &[Option<f64>], b: &[Option<f64>]) -> bool {
    let pairs = a.iter().zip(b).filter_map(|(a, b)| Some(((*a)?, (*b)?)));
    pairs.into_iter().any(|(a, b)| (a - b).abs() > 0.02 * a.abs().max(b.abs()))
}

fn dataset_digest(plan: &Plan, outcomes: &BTreeMap<usize, Outcome>) -> String {
    let line = |(&run, outcome): (&usize, &Outcome)| {
        let digest = match outcome {
            Outcome::Finished(record) => record.digest.as_str(),
            Outcome::Failed(_) => "failed",
            Outcome::LeftOut(_) => "left out",
        };
        format!("{} {digest}\n", plan.runs[run].key)
    };
    let mut lines: Vec<String> = outcomes.iter().map(line).collect();
    lines.sort();
    digest(&lines.concat())
}
