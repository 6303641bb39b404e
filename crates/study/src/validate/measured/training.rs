//! Step times of published training runs beside simulated ones, without packets.
//!
//! One row of a GPU and precision determines the part of its peak rate that matrix products reach. All other rows of
//! the GPU and precision are held out.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pathweave_records::RunResult;
use pathweave_scenario::{Changes, Loaded};
use serde::Deserialize;

use super::rows::Role;
use super::training_report::{BAR, FittedEfficiency, TrainingReport, TrainingRow};
use crate::validate::error::{RunError, ValidateError, in_file, unknown};
use crate::validate::judge::{CaseRuns, Row};
use crate::validate::model::Measured;

const TABLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/truth/training.csv"));
const FILE: &str = "data/truth/training.csv";
/// Parts of the peak rate at which the row of a fit runs first.
const FIRST: [f64; 2] = [0.5, 0.7];

/// Measured step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    id: String,
    model: String,
    gpus: u32,
    gpu: String,
    precision: String,
    sequences: u32,
    sequence: u32,
    tp: u32,
    cp: u32,
    pp: u32,
    vp: u32,
    role: Role,
    series: String,
    step_s: f64,
    source: String,
    assume: String,
}

impl Step {
    fn replicas(&self) -> u32 {
        self.gpus / (self.tp * self.cp * self.pp)
    }
    fn key(&self) -> String {
        format!("{} {}", self.gpu, self.precision)
    }
    fn what(&self) -> String {
        let Step { model, gpus, sequences, tp, cp, pp, vp, .. } = self;
        format!("{model} on {gpus}, batch {sequences}, TP {tp} CP {cp} PP {pp} VP {vp}")
    }

    /// Returns the scenario: servers at one switch, a network without oversubscription.
    fn scenario(&self, efficiency: f64) -> String {
        let Step { id, model, gpus, gpu, precision, sequence, tp, cp, pp, vp, .. } = self;
        let (servers, microbatches) = (gpus / 8, self.sequences / self.replicas());
        let precision = if gpu == "a100" { String::new() } else { format!("precision = \"{precision}\"\n") };
        let preset = format!("dgx-{gpu}");
        let rate = if gpu == "a100" { "200Gbps" } else { "400Gbps" };
        format!(
            "name = \"{id}\"\nscheme = \"rps\"\n\
             run = {{ fidelity = \"flow\", calibrate = \"off\" }}\n\
             [switch]\npfc = {{ enabled = false }}\n\
             [network]\nmtu = \"4KB\"\n\
             [topology]\nkind = \"cluster\"\nservers = {servers}\nserver = {{ preset = \"{preset}\" }}\n\
             attach = \"server\"\n\
             scale_out = {{ kind = \"star\", hosts = {gpus}, rate = \"{rate}\" }}\n\
             [[workload]]\nkind = \"transformer\"\nmodel = \"{model}\"\nsequence = {sequence}\n\
             tp = {tp}\ncp = {cp}\npp = {pp}\nvp = {vp}\nmicrobatches = {microbatches}\n\
             gpu = \"{gpu}\"\n{precision}efficiency = {efficiency}\n"
        )
    }

    fn loaded(&self, efficiency: f64) -> Result<Loaded, ValidateError> {
        Loaded::parse(&self.scenario(efficiency), FILE, "", &Changes::default())
            .map_err(|findings| ValidateError::Scenario { case: self.id.clone(), findings })
    }
}

/// Reads the table.
fn steps() -> Result<Vec<Step>, ValidateError> {
    let mut steps = Vec::new();
    for row in csv::Reader::from_reader(TABLE.as_bytes()).deserialize() {
        let step: Step = row.map_err(|why| in_file(FILE, why.to_string()))?;
        let wrong = |message: String| Err(in_file(FILE, format!("row {}: {message}", step.id)));
        let each = step.tp * step.cp * step.pp;
        if !step.gpus.is_multiple_of(each) || !step.gpus.is_multiple_of(8) {
            return wrong(format!("gpus = {}: expected a multiple of {each} and of 8", step.gpus));
        }
        if !step.sequences.is_multiple_of(step.replicas()) {
            let replicas = step.replicas();
            return wrong(format!("sequences = {}: expected a multiple of {replicas}", step.sequences));
        }
        steps.push(step);
    }
    Ok(steps)
}

type Make<'a> = dyn FnMut(&Loaded) -> Result<RunResult, RunError> + 'a;

/// Time of a step and figures of a run.
struct Simulated {
    step_s: f64,
    training: pathweave_records::TrainingSummary,
    cpu_s: f64,
}

fn simulate(step: &Step, efficiency: f64, make: &mut Make<'_>) -> Result<Simulated, RunError> {
    let run = make(&step.loaded(efficiency)?)?;
    let summary = pathweave_records::Summary::from_run(&run);
    let Some(training) = summary.training.into_iter().next() else {
        return Err(in_file(FILE, format!("row {}: its iteration did not end", step.id)).into());
    };
    Ok(Simulated { step_s: training.iteration_ns * 1e-9, training, cpu_s: run.info.cpu_s })
}

/// Returns the part of the peak rate with which a step takes `wanted_s`. The time is a / efficiency + b, where b is the
/// part of communication; two runs determine both.
fn solve([(first, first_s), (second, second_s)]: [(f64, f64); 2], wanted_s: f64) -> Option<f64> {
    let a = (first_s - second_s) / (1.0 / first - 1.0 / second);
    let b = first_s - a / first;
    let efficiency = a / (wanted_s - b);
    (efficiency.is_finite() && efficiency > 0.0).then(|| efficiency.min(1.0))
}

/// Simulates the rows of the table and judges those that are held out. `make` runs a scenario.
///
/// # Errors
/// If a run is impossible, or the case names a row that does not exist.
pub(crate) fn trial(
    measured: &Measured,
    make: &mut Make<'_>,
) -> Result<(CaseRuns, TrainingReport), RunError> {
    let steps = steps()?;
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for miss in &measured.known {
        for id in &miss.rows {
            if !steps.iter().any(|step| step.id == *id) {
                let why = unknown("row", id, steps.iter().map(|step| step.id.as_str()));
                return Err(in_file("measured.known.rows", why.to_string()).into());
            }
            known.insert(id, &miss.text);
        }
    }
    let mut trial = CaseRuns::default();
    let mut efficiencies: BTreeMap<String, FittedEfficiency> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.role == Role::Fit) {
        let mut points = [(0.0, 0.0); 2];
        for (point, efficiency) in points.iter_mut().zip(FIRST) {
            let run = simulate(step, efficiency, make)?;
            trial.cpu_s += run.cpu_s;
            *point = (efficiency, run.step_s);
        }
        let Some(efficiency) = solve(points, step.step_s) else {
            let why = format!("row {}: no efficiency gives {} s", step.id, step.step_s);
            return Err(in_file(FILE, why).into());
        };
        // Three digits are more than the fit is worth, and keep the scenario short.
        let efficiency = (efficiency * 1e3).round() / 1e3;
        let fitted = FittedEfficiency { gpu: step.key(), efficiency, row: step.id.clone() };
        efficiencies.insert(step.key(), fitted);
    }
    let mut rows = Vec::new();
    for step in &steps {
        let Some(fitted) = efficiencies.get(&step.key()) else {
            return Err(
                in_file(FILE, format!("row {}: no row of {} is for the fit", step.id, step.key())).into()
            );
        };
        let run = simulate(step, fitted.efficiency, make)?;
        trial.cpu_s += run.cpu_s;
        let row = TrainingRow {
            id: step.id.clone(),
            what: step.what(),
            series: step.series.clone(),
            role: step.role,
            measured_s: step.step_s,
            simulated_s: run.step_s,
            error: run.step_s / step.step_s - 1.0,
            along: 0.0,
            tflops_per_gpu: run.training.tflops_per_gpu,
            mfu: run.training.mfu,
            pipeline_bubble: run.training.pipeline_bubble,
            known: known.contains_key(step.id.as_str()),
            why: known.get(step.id.as_str()).map_or(String::new(), |why| (*why).to_owned()),
            assume: step.assume.clone(),
            source: step.source.clone(),
        };
        let first = rows.iter().find(|row: &&TrainingRow| row.series == step.series);
        let row = TrainingRow {
            along: first.map_or(0.0, |first| (1.0 + row.error) / (1.0 + first.error) - 1.0),
            ..row
        };
        let band = (step.role == Role::Test && !row.known).then_some(BAR);
        trial.rows.push(Row::new(&row.id, "s", row.simulated_s, row.measured_s, band));
        rows.push(row);
    }
    Ok((trial, TrainingReport { fitted: efficiencies.into_values().collect(), rows }))
}

fn mark(row: &TrainingRow) -> &'static str {
    match (row.role, row.is_within(), row.known) {
        (Role::Fit, ..) => "f",
        (_, true, _) => "",
        (_, false, true) => "!",
        (_, false, false) => "!!",
    }
}

/// Returns the table for a terminal, at most 80 columns wide.
pub fn training_text(report: &TrainingReport) -> String {
    let mut text = String::from("  row   measured  simulated    error   along  TFLOP/s     MFU  bubble\n");
    let mut heading = "";
    for row in &report.rows {
        if row.series != heading {
            heading = &row.series;
            let _ = writeln!(text, "  {heading}");
        }
        let percent =
            |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1} %", 100.0 * part));
        let line = format!(
            "    {:4} {:>6.2} s   {:>6.2} s {:>+6.1} % {:>+5.1} %  {:>7.0} {:>7} {:>7}  {}",
            row.id,
            row.measured_s,
            row.simulated_s,
            100.0 * row.error,
            100.0 * row.along,
            row.tflops_per_gpu,
            percent(row.mfu),
            percent(row.pipeline_bubble),
            mark(row)
        );
        let _ = writeln!(text, "{}", line.trim_end());
        let _ = writeln!(text, "         {}", row.what);
    }
    for fitted in &report.fitted {
        let _ = writeln!(text, "  {}: efficiency {:.3}, by {}", fitted.gpu, fitted.efficiency, fitted.row);
    }
    text.push_str("  f fitted, ! outside of its bar of 10 %, !! likewise and unexplained\n");
    text
}

/// Returns the table for `docs/validation.md`.
pub fn training_markdown(report: &TrainingReport) -> String {
    let mut text = String::from(
        "| Run | GPUs, batch, parallelism | Measured, s | Simulated, s | Error, % | Along the series, % |\n|---|---|---|---|---|---|\n",
    );
    for row in &report.rows {
        let error = format!("{:+.1}", 100.0 * row.error);
        let error = match mark(row) {
            "" => error,
            "f" => format!("*{error}*"),
            _ => format!("**{error}**"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {error} | {:+.1} |",
            row.series,
            row.what,
            row.measured_s,
            row.simulated_s,
            100.0 * row.along
        );
    }
    text
}

/// Returns the table of the page.
pub(crate) fn training_section(report: &TrainingReport) -> String {
    let mut text = String::from(
        "<table><tr><th>row</th><th>what</th><th class=\"n\">measured s</th><th class=\"n\">simulated s</th>\
         <th class=\"n\">error</th><th>assumed; why</th><th>source</th></tr>\n",
    );
    let escape = pathweave_report::escape;
    for row in &report.rows {
        let class = match (row.role, row.is_within()) {
            (Role::Fit, _) => "note",
            (_, true) => "yes",
            (_, false) => "no",
        };
        let notes: Vec<&str> =
            [row.assume.as_str(), row.why.as_str()].into_iter().filter(|text| !text.is_empty()).collect();
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{:.3}</td><td class=\"n {class}\">{:+.1} %</td>\
             <td>{}</td><td>{}</td></tr>",
            escape(&row.id),
            escape(&row.what),
            row.measured_s,
            row.simulated_s,
            100.0 * row.error,
            escape(&notes.join("; ")),
            escape(&row.source)
        );
    }
    text.push_str("</table>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 6 / e + 2 s: 14 s at 0.5 and 10 s at 0.75. The step takes 12 s at 0.6.
    #[test]
    fn two_runs_determine_the_efficiency() {
        let found = solve([(0.5, 14.0), (0.75, 10.0)], 12.0).unwrap();
        assert!((found - 0.6).abs() < 1e-12, "{found}");
        assert_eq!(solve([(0.5, 14.0), (0.75, 10.0)], 2.0), None);
        assert_eq!(solve([(0.5, 14.0), (0.75, 10.0)], 3.0), Some(1.0), "no GPU beats its peak");
    }

    #[test]
    fn the_table_is_consistent() {
        let steps = steps().unwrap();
        assert_eq!(steps.len(), 24);
        for step in &steps {
            step.loaded(0.5).unwrap_or_else(|why| panic!("{}: {why}", step.id));
            let fits = steps.iter().filter(|other| other.key() == step.key() && other.role == Role::Fit);
            assert_eq!(fits.count(), 1, "one row of {} is for the fit", step.key());
        }
    }
}
