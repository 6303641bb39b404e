//! Warnings about the figures of a run.

use crate::format::{Quantity, ns};
use crate::latency;
use crate::records::RunResult;

/// Largest number of faults that a run names one by one.
const NAMED: usize = 5;

/// Returns the warnings about a run: those known before it, on faults that had no effect, and on latency. `latency_ratio`
/// is the share of latency in the time of jobs.
pub(crate) fn of_run(run: &RunResult, latency_ratio: Option<f64>) -> Vec<String> {
    let mut all = run.info.warnings.clone();
    all.extend(late_faults(run));
    all.extend(latency::warning(run, latency_ratio));
    all
}

/// Returns a warning for each fault that was to begin after the end of the run.
fn late_faults(run: &RunResult) -> Vec<String> {
    let end_ps = run.info.simulated_ps;
    let time = |ps: u64| Quantity::TimeNs.format(ns(ps));
    let late: Vec<_> = (1..).zip(&run.info.faults).filter(|(_, fault)| fault.at_ps > end_ps).collect();
    let of = run.info.faults.len();
    let mut found: Vec<String> = late
        .iter()
        .take(NAMED)
        .map(|(number, fault)| {
            format!(
                "fault {number} of {of} had no effect: {} was to begin at {}, and the run ended at {}",
                fault.name,
                time(fault.at_ps),
                time(end_ps)
            )
        })
        .collect();
    if late.len() > NAMED {
        found.push(format!("{} more faults had no effect, likewise", late.len() - NAMED));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::FaultInfo;

    #[test]
    fn faults_after_the_end_are_named_and_those_before_it_are_not() {
        let fault = |at_ps| FaultInfo { name: "link-down on a-b".to_owned(), at_ps };
        let mut run = RunResult::default();
        run.info.simulated_ps = 1_000_000;
        run.info.warnings = vec!["known before".to_owned()];
        run.info.faults = [0, 1_000_000].map(fault).to_vec();
        assert_eq!(of_run(&run, None), ["known before"]);
        run.info.faults.push(fault(50_000_000));
        let late = "fault 3 of 3 had no effect: link-down on a-b was to begin at 50.00 us, and the run ended at 1.000 us";
        assert_eq!(of_run(&run, None), ["known before", late]);
        run.info.faults.extend((0..6).map(|_| fault(50_000_000)));
        let many = of_run(&run, None);
        assert_eq!((many.len(), many[6].as_str()), (7, "2 more faults had no effect, likewise"));
    }
}
