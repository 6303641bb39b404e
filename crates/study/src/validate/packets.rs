//! Comparison of flow fidelity with packet fidelity: a scenario at both, under each scheme of a case.

use std::fmt::{self, Display, Formatter};

use pathweave_records::{JobRecord, RunResult};
use pathweave_scenario::Loaded;
use toml::{Table, Value};

use crate::validate::catalogue::{Case, PACKETS};
use crate::validate::error::RunError;
use crate::validate::judge::{CaseRuns, Outcome, Row};
use crate::validate::model::{Band, Packets};
use crate::validate::pair::{self, Side, mean_us};

/// Field that selects the fidelity.
const FIDELITY: &str = "run.fidelity";
/// Allowed ratio of flows to packets, unless the flow model reports that it is outside its validated range.
const BAND: Band = Band { low: 0.97, high: 1.03 };
/// Error below which such a report was unnecessary.
const CLOSE: f64 = 0.01;
/// Names of the rows of a trial.
const TIME: &str = "time";
const MEAN: &str = "mean";

/// Runs a trial for each scheme. The figures are the time and the mean completion time. The time is that of jobs, or
/// without jobs until the last flow ends.
pub(crate) fn trials(
    case: &Case,
    packets: &Packets,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<Vec<CaseRuns>, RunError> {
    packets.schemes.iter().map(|scheme| trial(case, scheme, make)).collect()
}

fn trial(
    case: &Case,
    scheme: &str,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<CaseRuns, RunError> {
    let side = |name, fidelity: &str| Side {
        name,
        set: Table::from_iter([(FIDELITY.to_owned(), Value::String(fidelity.to_owned()))]),
    };
    let sides = [side("flows", "flow"), side("packets", "packet")];
    let (mut times, mut means) = ([0.0; 2], [0.0; 2]);
    let mut trial = pair::run(case, scheme, &sides, make, |place, run| {
        times[place] += time_us(run);
        means[place] += mean_us(run);
    })?;
    if trial.wrong.is_some() {
        return Ok(trial);
    }
    let band = trial.outside.is_empty().then_some(BAND);
    trial.rows.push(Row::new(TIME, "us", times[0], times[1], band));
    trial.rows.push(Row::new(MEAN, "us", means[0], means[1], None));
    Ok(trial)
}

/// Returns the mean time of jobs, or without jobs the end of the last flow.
fn time_us(run: &RunResult) -> f64 {
    let jobs: Vec<u64> = run.jobs.iter().filter_map(JobRecord::completion_ps).collect();
    let last = || run.flows.iter().filter_map(|flow| flow.finish_ps).max().unwrap_or(0) as f64;
    let ps = if jobs.is_empty() { last() } else { jobs.iter().sum::<u64>() as f64 / jobs.len() as f64 };
    ps * 1e-6
}

/// Counts of runs, by whether the flow model reports that it is outside its validated range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidityCounts {
    /// Number of runs.
    pub runs: usize,
    /// Runs with a time within 3 % and without a report.
    pub inside: usize,
    /// Runs with a time beyond 3 % and without a report. There must be none.
    pub wrong: usize,
    /// Runs with a report.
    pub outside: usize,
    /// Runs with a report whose time is within 1 % all the same.
    pub unnecessary: usize,
}

impl ValidityCounts {
    /// Counts the runs of these outcomes.
    pub fn of(outcomes: &[Outcome]) -> Self {
        let mut tally = ValidityCounts::default();
        for trial in outcomes.iter().filter(|outcome| outcome.beside == PACKETS).flat_map(|of| &of.trials) {
            tally.runs += 1;
            match (trial.outside.is_empty(), trial.holds()) {
                (true, true) => tally.inside += 1,
                (true, false) => tally.wrong += 1,
                (false, _) => tally.outside += 1,
            }
            let close = error(trial, TIME).is_some_and(|error| error.abs() < CLOSE);
            tally.unnecessary += usize::from(!trial.outside.is_empty() && close);
        }
        tally
    }
}

impl Display for ValidityCounts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ValidityCounts { runs, inside, wrong, outside, unnecessary: in_vain } = self;
        write!(
            f,
            "{runs} runs: {inside} within 3 %, {outside} marked as outside of the model ({in_vain} of them within 1 %), {wrong} \
             neither"
        )
    }
}

/// Returns the relative error of flows against packets in a figure of a trial.
fn error(trial: &CaseRuns, figure: &str) -> Option<f64> {
    trial.rows.iter().find(|row| row.figure == figure).map(|row| row.ratio - 1.0)
}

/// Returns the error of the time in percent, with a star if the trial is outside the validated range.
pub fn table_cell(trial: &CaseRuns) -> String {
    match error(trial, TIME) {
        Some(time) => format!("{:+.1}{}", 100.0 * time, if trial.outside.is_empty() { "" } else { "*" }),
        None => "failed".to_owned(),
    }
}

/// Returns the table of docs/flow-fidelity.md, with a row per case and a column per scheme.
pub fn markdown(cases: &[&Case], outcomes: &[Outcome]) -> String {
    let of_packets = || outcomes.iter().filter(|outcome| outcome.beside == PACKETS);
    let Some(first) = of_packets().next() else { return String::new() };
    let schemes = || first.trials.iter().filter_map(|trial| trial.title.as_deref());
    let heads: String = schemes().map(|scheme| format!(" `{scheme}` |")).collect();
    let mut text = format!("| Job |{heads}\n|---|{}\n", "---|".repeat(schemes().count()));
    for outcome in of_packets() {
        let title = cases.iter().find(|case| case.name == outcome.case).map_or("", |case| &case.file.title);
        let cells: String = outcome
            .trials
            .iter()
            .map(|trial| {
                let mean =
                    error(trial, MEAN).map_or(String::new(), |mean| format!(" ({:+.1})", 100.0 * mean));
                format!(" {}{mean} |", table_cell(trial))
            })
            .collect();
        text.push_str(&format!("| {title} |{cells}\n"));
    }
    text + &format!("\n{}.\n", ValidityCounts::of(outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(flows: f64, outside: bool) -> CaseRuns {
        let band = (!outside).then_some(BAND);
        let rows = vec![Row::new(TIME, "us", flows, 100.0, band), Row::new(MEAN, "us", flows, 100.0, None)];
        let outside = if outside { vec!["why".to_owned()] } else { Vec::new() };
        CaseRuns { title: Some("rps".to_owned()), rows, outside, ..CaseRuns::default() }
    }

    /// A run counts as wrong only if its error is large and it has no report.
    #[test]
    fn runs_are_counted_by_what_they_say_of_themselves() {
        let trials = vec![trial(102.9, false), trial(96.0, false), trial(150.0, true), trial(100.5, true)];
        let holds: Vec<bool> = trials.iter().map(CaseRuns::holds).collect();
        assert_eq!(holds, [true, false, true, true]);
        let cells: Vec<String> = trials.iter().map(table_cell).collect();
        assert_eq!(cells, ["+2.9", "-4.0", "+50.0*", "+0.5*"]);
        let outcome = Outcome {
            case: "flow-ring".to_owned(),
            beside: PACKETS.to_owned(),
            holds: false,
            cpu_ratio: None,
            trials,
            measured: None,
            training: None,
        };
        let tally = ValidityCounts::of(std::slice::from_ref(&outcome));
        assert_eq!(tally, ValidityCounts { runs: 4, inside: 1, wrong: 1, outside: 2, unnecessary: 1 });
        assert!(markdown(&[], &[outcome]).contains("| +2.9 (+2.9) | -4.0 (-4.0) | +50.0* (+50.0) |"));
    }
}
