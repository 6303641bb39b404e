//! Runs of a case and their judgement.

use pathweave_records::{FlowStatus, RunResult};
use pathweave_scenario::Loaded;
use toml::{Table, Value};

use crate::validate::catalogue::Case;
use crate::validate::error::RunError;
use crate::validate::figures::{Figures, completion_us, flows_digest};
use crate::validate::judge::{CaseRuns, Outcome, judge};
use crate::validate::law::HEADROOM;
use crate::validate::model::{Bands, Experiment, MeasuredTable};

/// Makes the runs of a case with `make` and judges them. `make` must record the CPU time of each run. `experiments`
/// includes the experiments of the case.
///
/// # Errors
/// If `make` fails, or a scenario is invalid.
pub fn runs(
    case: &Case,
    experiments: bool,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<Outcome, RunError> {
    if let Some(packets) = &case.file.packets {
        return Ok(Outcome::new(case, crate::validate::packets::trials(case, packets, make)?));
    }
    if let Some(one) = &case.file.one_port {
        return Ok(Outcome::new(case, crate::validate::ports::trials(case, one, make)?));
    }
    if let Some(measured) = case.file.measured.as_ref().filter(|of| of.table == MeasuredTable::Training) {
        let (trial, report) = crate::validate::measured::training_trial(measured, make)?;
        return Ok(Outcome { training: Some(report), ..Outcome::new(case, vec![trial]) });
    }
    if let Some(measured) = &case.file.measured {
        let (trial, report) = crate::validate::measured::trial(measured)?;
        return Ok(Outcome { measured: Some(report), ..Outcome::new(case, vec![trial]) });
    }
    let mut trials = vec![trial(case, None, make)?];
    for experiment in case.file.experiment.iter().filter(|_| experiments) {
        trials.push(trial(case, Some(experiment), make)?);
    }
    Ok(Outcome::new(case, trials))
}

fn trial(
    case: &Case,
    experiment: Option<&Experiment>,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<CaseRuns, RunError> {
    let nothing = Table::new();
    let more = experiment.map_or(&nothing, |experiment| &experiment.set);
    let title = experiment.map(|experiment| experiment.title.clone());
    let bands = experiment.map_or(case.file.band, |experiment| experiment.band);
    if let Some((packets, bytes)) = case.file.law.as_ref().and_then(crate::validate::law::Law::headroom) {
        return headroom(case, more, title, (packets, bytes), make);
    }
    let (mut made, mut cpu_s) = (Vec::new(), 0.0);
    for seed in 1..=u64::from(case.file.seeds.get()) {
        let run = make(&case.load(seed, more)?)?;
        cpu_s += run.info.cpu_s;
        made.push(run);
    }
    let mut trial = CaseRuns { title, cpu_s, ..CaseRuns::default() };
    let flows = || made.iter().flat_map(RunResult::foreground);
    let open = flows().filter(|flow| flow.status != FlowStatus::Finished).count();
    if open > 0 {
        trial.wrong = Some(format!("{open} of {} flows did not finish", flows().count()));
        return Ok(trial);
    }
    if let Some(theirs) = &case.file.theirs {
        let (count, digest) = (flows().count() as u64, flows_digest(flows()));
        if (count, &digest) != (theirs.flows, &theirs.digest) {
            trial.wrong = Some(format!(
                "these are not the flows that the peer had: {count} flows with digest {digest}, not {} with {}",
                theirs.flows, theirs.digest
            ));
            return Ok(trial);
        }
    }
    let times = flows().filter_map(|flow| completion_us(flow, case.file.measure)).collect();
    match Figures::from_values(times) {
        Some(ours) => judge(case, &bands_of(case, experiment, bands), &made, ours, &mut trial),
        None => trial.wrong = Some("there are no completion times".to_owned()),
    }
    Ok(trial)
}

/// Returns the bands of a trial. An experiment without bands is only shown.
fn bands_of(case: &Case, experiment: Option<&Experiment>, bands: Bands) -> Option<Bands> {
    match experiment {
        Some(_) if bands == Bands::default() => None,
        Some(_) => Some(bands),
        None => Some(case.file.band),
    }
}

/// Searches the smallest headroom by bisection between a value that loses packets and one that does not.
fn headroom(
    case: &Case,
    more: &Table,
    title: Option<String>,
    (packets, law): (u32, f64),
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<CaseRuns, RunError> {
    let packet = law / f64::from(packets);
    let mut trial = CaseRuns { title, ..CaseRuns::default() };
    let mut loses = |count: u32| {
        let mut more = more.clone();
        let bytes = (f64::from(count) * packet).round() as i64;
        more.insert(HEADROOM.to_owned(), Value::String(format!("{bytes}B")));
        let run = make(&case.load(1, &more)?)?;
        trial.cpu_s += run.info.cpu_s;
        // Only losses of data count. An acknowledgement may be lost when the buffer is full to the last byte.
        Ok::<_, RunError>(run.flows.iter().any(|flow| flow.dropped_packets > 0))
    };
    let (mut too_few, mut enough) = (0, 4 * packets);
    if loses(enough)? {
        trial.wrong = Some(format!("{enough} packets of headroom lose packets"));
        return Ok(trial);
    }
    while enough - too_few > 1 {
        let middle = too_few.midpoint(enough);
        if loses(middle)? { too_few = middle } else { enough = middle }
    }
    trial.headroom(law, f64::from(enough) * packet);
    Ok(trial)
}
