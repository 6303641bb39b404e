//! Pairs of runs of a scenario, under each scheme of a case and with each of its seeds.

use pathweave_records::{EndReason, FlowRecord, FlowStatus, RunResult};
use pathweave_scenario::Loaded;
use toml::Table;

use crate::validate::catalogue::Case;
use crate::validate::error::RunError;
use crate::validate::judge::CaseRuns;

/// One run of the pair.
pub(crate) struct Side {
    /// Name of the run in error messages about unfinished messages.
    pub(crate) name: &'static str,
    /// Fields that it sets in addition to those of the case.
    pub(crate) set: Table,
}

/// Runs both sides. `add` receives each run with the index of its side. Its results are meaningless if the trial
/// fails.
///
/// # Errors
/// If `make` fails, or a scenario is invalid.
pub(crate) fn run(
    case: &Case,
    scheme: &str,
    sides: &[Side; 2],
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
    mut add: impl FnMut(usize, &RunResult),
) -> Result<CaseRuns, RunError> {
    let mut trial = CaseRuns { title: Some(scheme.to_owned()), ..CaseRuns::default() };
    for seed in 1..=u64::from(case.file.seeds.get()) {
        for (place, side) in sides.iter().enumerate() {
            let run = make(&case.load_under(scheme, seed, &side.set)?)?;
            trial.cpu_s += run.info.cpu_s;
            let open = run.flows.iter().filter(|flow| flow.status != FlowStatus::Finished).count();
            if run.info.ended != EndReason::Completed || open > 0 {
                let (all, name) = (run.flows.len(), side.name);
                trial.wrong = Some(format!("{name}: {open} of {all} messages did not finish"));
                return Ok(trial);
            }
            add(place, &run);
            trial.outside.extend(run.info.model_limits_exceeded);
        }
    }
    Ok(trial)
}

/// Returns the mean completion time of the messages in microseconds, or 0 without messages.
pub(crate) fn mean_us(run: &RunResult) -> f64 {
    let times: Vec<u64> = run.flows.iter().filter_map(FlowRecord::fct_ps).collect();
    times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 * 1e-6
}
