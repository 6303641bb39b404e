//! Comparison of hosts with several NIC ports with hosts with one port of the same rate, under each scheme of a case.

use pathweave_records::{FlowRecord, RunResult};
use pathweave_scenario::Loaded;
use toml::{Table, Value};

use crate::validate::catalogue::Case;
use crate::validate::error::RunError;
use crate::validate::judge::{CaseRuns, Row};
use crate::validate::model::{Band, OnePort};
use crate::validate::pair::{self, Side, mean_us};

/// Field that selects the network.
const NETWORK: &str = "topology.path";
/// Allowed ratio of completion times. Several ports must reach at least 98 % of the throughput of one port.
const BAND: Band = Band { low: 0.9, high: 1.0 / 0.98 };
/// Names of the rows of a trial.
const TIME: &str = "time";
const LAST: &str = "last";

/// Runs a trial for each scheme. The figures are the mean completion time and that of the last message.
pub(crate) fn trials(
    case: &Case,
    one: &OnePort,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<Vec<CaseRuns>, RunError> {
    one.schemes.iter().map(|scheme| trial(case, scheme, one, make)).collect()
}

fn trial(
    case: &Case,
    scheme: &str,
    one: &OnePort,
    make: &mut dyn FnMut(&Loaded) -> Result<RunResult, RunError>,
) -> Result<CaseRuns, RunError> {
    let with_one = Table::from_iter([(NETWORK.to_owned(), Value::String(one.topology.clone()))]);
    let sides = [Side { name: "several ports", set: Table::new() }, Side { name: "one port", set: with_one }];
    let (mut means, mut lasts) = ([0.0; 2], [0.0; 2]);
    let mut trial = pair::run(case, scheme, &sides, make, |place, run| {
        means[place] += mean_us(run);
        let last = run.flows.iter().filter_map(FlowRecord::fct_ps).max();
        lasts[place] += last.unwrap_or(0) as f64 * 1e-6;
    })?;
    if trial.wrong.is_some() {
        return Ok(trial);
    }
    trial.rows.push(Row::new(TIME, "us", means[0], means[1], Some(BAND)));
    trial.rows.push(Row::new(LAST, "us", lasts[0], lasts[1], None));
    Ok(trial)
}
