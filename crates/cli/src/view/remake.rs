//! Reports of a sweep's runs that were not stored: created on request by running the scenario again.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration as Wall, Instant};

use hyper::body::Bytes;
use pathweave_records::{EndReason, Summary};
use pathweave_report::report_html;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::{Monitor, MonitorDecision, SimSpec, Snapshot};
use pathweave_study::sweep::{ENGINE, Record, read_stored_run, task_key};

use crate::memory::MemoryBudget;

/// Largest duration of a run. Longer runs must be executed from the command line.
const LONGEST: Wall = Wall::from_secs(120);

/// Creates one report at a time and caches the last one, because pages are loaded more than once.
#[derive(Default)]
pub(super) struct Remade {
    last: Mutex<Option<(PathBuf, Bytes)>>,
}

impl Remade {
    /// Returns the report of the run in `folder`, or `None` if it is not a folder of a sweep's run. The error states
    /// why the report cannot be created, and an alternative.
    pub(super) fn report(&self, folder: &Path) -> Option<Result<Bytes, String>> {
        let (record, scenario) = read_stored_run(folder)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, page)) = last.as_ref().filter(|(path, _)| path == folder) {
            return Some(Ok(page.clone()));
        }
        let made = make(&record, &scenario, LONGEST).map(Bytes::from).map_err(|why| {
            let file = folder.join("scenario.toml");
            format!(
                "no report of this run: {why}\n\nTo run it by itself:\n\n    pathweave run {}\n",
                file.display()
            )
        });
        if let Ok(page) = &made {
            *last = Some((folder.to_owned(), page.clone()));
        }
        Some(made)
    }
}

/// Runs the scenario of `record` again and returns its report.
fn make(record: &Record, scenario: &str, longest: Wall) -> Result<String, String> {
    let told = |findings: pathweave_scenario::Diagnostics| findings.to_string();
    if task_key(scenario).map_err(told)? != record.key {
        return Err(format!(
            "engine {ENGINE} is not the one that made it ({}), or a file that its scenario names has changed",
            record.engine
        ));
    }
    let loaded = Loaded::parse(scenario, "scenario.toml", "", &Changes::default()).map_err(told)?;
    let room = MemoryBudget::now(false);
    let (spec, _taken) = room.prepare(&loaded, SimSpec::clone).map_err(|why| why.to_string())?;
    let mut limit = Limit { ends: Instant::now() + longest };
    let mut run = pathweave_scenario::run(&spec, &mut limit).map_err(|why| told(loaded.sim_error(&why)))?;
    if run.info.ended == EndReason::Interrupted {
        return Err(format!("it takes longer than {} s (it took {:.0} s)", longest.as_secs(), record.cpu_s));
    }
    if run.info.digest_hex() != record.digest {
        return Err(format!(
            "it ran to digest {} and not to {}: this build of the program simulates otherwise",
            run.info.digest_hex(),
            record.digest
        ));
    }
    run.info.version = ENGINE.to_owned();
    run.info.cpu_s = record.cpu_s;
    let summary = Summary::from_run(&run);
    Ok(report_html(&[(&run, &summary)]))
}

/// Monitor that stops a run after a time limit.
struct Limit {
    ends: Instant,
}

impl Monitor for Limit {
    fn look(&mut self, _: &Snapshot) -> MonitorDecision {
        if Instant::now() < self.ends { MonitorDecision::Continue } else { MonitorDecision::Stop }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Long enough that the simulator calls its monitor.
    const SWEEP: &str = "
list = [{ name = 'a' }]
[scenario.topology]
kind = 'star'
hosts = 4
[[scenario.workload]]
kind = 'permutation'
size = '40MB'
";

    /// Creates the folder of a run as this sweep stores it.
    fn kept(root: &Path, sweep: &str) -> PathBuf {
        let plan = pathweave_study::sweep::Plan::parse(sweep, "s.toml", Path::new("")).unwrap();
        let run = &plan.runs[0];
        let loaded = Loaded::parse(&run.scenario, "s.toml", "", &Changes::default()).unwrap();
        let prepared = loaded.prepare().unwrap();
        let result = pathweave_scenario::run(&prepared.spec, &mut pathweave_sim::NoMonitor).unwrap();
        let files =
            pathweave_study::sweep::encode_files(&run.key, &result, &Summary::from_run(&result), &plan.keep)
                .unwrap();
        let folder = root.join(format!("run={}", run.key));
        fs::create_dir(&folder).unwrap();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
        folder
    }

    #[test]
    fn a_run_is_made_again_and_another_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = kept(place.path(), SWEEP);
        let remade = Remade::default();
        let page = remade.report(&folder).expect("it is the folder of a run").unwrap();
        assert!(std::str::from_utf8(&page).unwrap().contains("<!doctype html>"));
        // The last report is cached, so the scenario is not run again.
        assert_eq!(remade.report(&folder).unwrap().unwrap().as_ptr(), page.as_ptr());

        // The report is created by the engine that made the run.
        let fluid = kept(place.path(), &format!("{SWEEP}[scenario.run]\nfidelity = 'flow'\n"));
        remade.report(&fluid).expect("it is the folder of a run").unwrap();

        assert!(remade.report(place.path()).is_none());
        let (record, scenario) = read_stored_run(&folder).unwrap();
        let mut other = record.clone();
        other.digest = "0".repeat(16);
        assert!(make(&other, &scenario, LONGEST).unwrap_err().contains("simulates otherwise"));
        let changed = scenario.replace("seed = 1", "seed = 2");
        assert_ne!(changed, scenario);
        assert!(make(&record, &changed, LONGEST).unwrap_err().contains("has changed"));
        assert!(make(&record, &scenario, Wall::ZERO).unwrap_err().contains("longer than 0 s"));
    }
}
