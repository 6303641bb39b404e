//! Hosts with several NIC ports beside hosts with one port of the same rate, under each scheme of a case.

use pathweave_results::{EndReason, FlowRecord, FlowStatus, RunResult};
use pathweave_scenario::Loaded;
use toml::{Table, Value};

use crate::catalogue::Case;
use crate::judge::{Row, Trial};
use crate::model::{Band, OnePort};
use crate::run::Missed;

/// The field that says which network it is.
const NETWORK: &str = "topology.path";
/// Several ports have at least 98 % of the throughput of one.
const BAND: Band = Band { low: 0.9, high: 1.0 / 0.98 };
/// The rows of a trial.
const TIME: &str = "time";
const LAST: &str = "last";

/// A trial for each scheme: the mean completion time, and that of the last message.
pub(crate) fn trials(
    case: &Case,
    one: &OnePort,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, Missed>,
) -> Result<Vec<Trial>, Missed> {
    one.schemes.iter().map(|scheme| trial(case, scheme, one, make)).collect()
}

fn trial(
    case: &Case,
    scheme: &str,
    one: &OnePort,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, Missed>,
) -> Result<Trial, Missed> {
    let mut trial = Trial { title: Some(scheme.to_owned()), ..Trial::default() };
    let (mut means, mut lasts) = ([0.0; 2], [0.0; 2]);
    let with_one = Table::from_iter([(NETWORK.to_owned(), Value::String(one.topology.clone()))]);
    for seed in 1..=u64::from(case.file.seeds.get()) {
        for (index, more) in [&Table::new(), &with_one].into_iter().enumerate() {
            let run = make(&case.load_under(scheme, seed, more)?)?;
            trial.cpu_s += run.info.cpu_s;
            let open = run.flows.iter().filter(|flow| flow.status != FlowStatus::Finished).count();
            if run.info.ended != EndReason::Completed || open > 0 {
                trial.wrong = Some(format!("{open} of {} messages did not finish", run.flows.len()));
                return Ok(trial);
            }
            let times: Vec<u64> = run.flows.iter().filter_map(FlowRecord::fct_ps).collect();
            means[index] += times.iter().sum::<u64>() as f64 / times.len().max(1) as f64 * 1e-6;
            lasts[index] += times.iter().max().copied().unwrap_or(0) as f64 * 1e-6;
        }
    }
    trial.rows.push(Row::new(TIME, "us", means[0], means[1], Some(BAND)));
    trial.rows.push(Row::new(LAST, "us", lasts[0], lasts[1], None));
    Ok(trial)
}
