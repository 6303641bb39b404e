//! Archive of finished runs: a compressed file small enough for a repository, so that hours of simulation are spent
//! once.
//!
//! The key of a run names the version of the engine, but not each change of the engine between two versions. An
//! archived run therefore has the digest of its *start*, the first [`START`] of simulated time. Before a run of a
//! curve is taken from an archive, one run of that curve simulates its start again. If the digest differs, the engine
//! has changed for this curve, and its runs are repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use pathweave_scenario::Loaded;
use pathweave_units::Duration;
use serde::{Deserialize, Serialize};

use crate::paper::error::PaperError;
use crate::paper::plan::Plan;
use crate::paper::run_cache::{CachedRun, RunCache};

/// Simulated time that is repeated to recognise a changed engine.
const START: Duration = Duration::from_us(200);

/// Finished runs of a paper by key.
#[derive(Debug, Default)]
pub struct Archive {
    runs: BTreeMap<String, ArchivedRun>,
}

/// Archived run: a line of the file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ArchivedRun {
    /// Digest of the first [`START`] of the run.
    start: String,
    run: CachedRun,
}

/// Curve of a figure: indices of the figure in its plan and of the series in the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Curve {
    figure: usize,
    series: usize,
}

/// Check of the archived runs of a curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartCheck {
    /// Curve whose runs are checked.
    pub curve: Curve,
    /// Index of the run whose start is simulated.
    pub run: usize,
    /// Digest that the start must have.
    pub digest: String,
}

impl Archive {
    /// Reads the archive at `path`. A missing file gives an empty archive.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is not in the format of [`Archive::write`].
    pub fn read(path: &Path) -> Result<Self, PaperError> {
        let wrong = |message: String| PaperError::File { file: path.display().to_string(), message };
        let file = match fs::File::open(path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Archive::default()),
            file => file.map_err(|why| wrong(why.to_string()))?,
        };
        let mut archive = Archive::default();
        for (number, line) in (1..).zip(BufReader::new(GzDecoder::new(file)).lines()) {
            let line = line.map_err(|why| wrong(format!("no archive of runs (gzip): {why}")))?;
            let run: ArchivedRun = serde_json::from_str(&line)
                .map_err(|why| wrong(format!("line {number} is no finished run: {why}")))?;
            archive.runs.insert(run.run.key.clone(), run);
        }
        Ok(archive)
    }

    /// Writes the archive. Equal runs give equal bytes.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = GzEncoder::new(out, Compression::best());
        for run in self.runs.values() {
            serde_json::to_writer(&mut out, run)?;
            out.write_all(b"\n")?;
        }
        out.finish().map(drop)
    }

    /// Returns one check for each curve of `plan` that would take runs from the archive. `is_wanted` returns true for
    /// the runs that are not finished otherwise.
    pub fn checks(&self, plan: &Plan, is_wanted: impl Fn(usize) -> bool) -> Vec<StartCheck> {
        let mut checked = BTreeSet::new();
        let offered = (0..plan.runs.len()).filter(|run| is_wanted(*run));
        let with_start = offered.filter_map(|run| Some((run, self.runs.get(&plan.runs[run].key)?)));
        let mut checks = Vec::new();
        for (run, archived) in with_start {
            let curve = plan.curve(run);
            if checked.insert(curve) {
                checks.push(StartCheck { curve, run, digest: archived.start.clone() });
            }
        }
        checks
    }

    /// Copies the wanted runs of `plan` to the cache, except those of the curves in `changed`. Returns their number.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn restore(
        &self,
        plan: &Plan,
        cache: &RunCache,
        is_wanted: impl Fn(usize) -> bool,
        changed: &BTreeSet<Curve>,
    ) -> Result<usize, PaperError> {
        let mut restored = 0;
        for run in (0..plan.runs.len()).filter(|run| is_wanted(*run) && !changed.contains(&plan.curve(*run)))
        {
            if let Some(archived) = self.runs.get(&plan.runs[run].key) {
                cache.insert(&archived.run)?;
                restored += 1;
            }
        }
        Ok(restored)
    }

    /// Returns the simulated runs of `plan` that are finished in the cache and have other content in the archive, or
    /// none. The second value is the digest of the start, if the archive has it.
    pub fn missing(
        &self,
        plan: &Plan,
        cache: &RunCache,
        changed: &BTreeSet<Curve>,
    ) -> Vec<(usize, Option<String>)> {
        let simulated = (0..plan.runs.len()).filter(|run| !plan.runs[*run].measured);
        let lacks = |run: usize| {
            let key = &plan.runs[run].key;
            let finished = cache.get(key)?;
            let archived = self.runs.get(key).filter(|_| !changed.contains(&plan.curve(run)));
            match archived {
                Some(archived) if archived.run == finished => None,
                Some(archived) => Some((run, Some(archived.start.clone()))),
                None => Some((run, None)),
            }
        };
        simulated.filter_map(lacks).collect()
    }

    /// Adds a finished run of `plan` from the cache. `start` is the digest of its start.
    pub fn add(&mut self, plan: &Plan, run: usize, cache: &RunCache, start: String) {
        if let Some(finished) = cache.get(&plan.runs[run].key) {
            self.runs.insert(finished.key.clone(), ArchivedRun { start, run: finished });
        }
    }
}

impl Plan {
    /// Returns the curve that a run belongs to, the first one if several share the run.
    fn curve(&self, run: usize) -> Curve {
        let (figure, point) = self.uses(run).next().map(|seen| (seen.figure, seen.point)).unwrap_or_default();
        Curve { figure, series: self.figures[figure].points[point].series }
    }

    /// Returns the scenario of the start of a run.
    pub fn start_of(&self, run: usize) -> Loaded {
        let mut loaded = self.runs[run].loaded.clone();
        let until = &mut loaded.scenario.run.until;
        *until = Some(until.map_or(START, |until| until.min(START)));
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::catalogue::Catalogue;
    use crate::paper::select::{Selection, Size};
    use crate::paper::write::Destination;

    /// Plan of a small figure with two curves.
    fn plan() -> Plan {
        let folder = tempfile::tempdir().unwrap();
        let paper = folder.path().join("p");
        fs::create_dir_all(&paper).unwrap();
        fs::write(
            paper.join("paper.toml"),
            "title = 't'\ncitation = 'c'\nfigures = ['1']\n[quick]\nseeds = 2\n[full]\nseeds = 2\n",
        )
        .unwrap();
        let figure = "title = 't'\nsection = 's'\n[scenario]\nscheme = 'ecmp'\n\
                      topology = { kind = 'leaf-spine', leaves = 2, spines = 2, hosts_per_leaf = 2 }\n\
                      workload = [{ kind = 'permutation', size = '64kB' }]\n\
                      [[series]]\nname = 'ECMP'\nscheme = 'ecmp'\n[[series]]\nname = 'RPS'\nscheme = 'rps'\n\
                      [[measure]]\nname = 'mean FCT'\nof = 'fct'\n\
                      [plot]\nkind = 'bars'\nmeasure = 'mean FCT'\n";
        fs::write(paper.join("1.toml"), figure).unwrap();
        let paper = Catalogue::read(folder.path()).unwrap().paper("p").unwrap();
        let all = Selection { figure: None, panels: vec![], series: vec![] };
        Plan::new(paper, &all, Size::Quick, None).unwrap()
    }

    fn simulated(loaded: &Loaded) -> pathweave_records::RunResult {
        let spec = loaded.prepare().unwrap().spec;
        pathweave_scenario::run(&spec, &mut pathweave_sim::NoMonitor).unwrap()
    }

    #[test]
    fn archived_runs_are_taken_until_the_start_of_their_curve_differs() {
        let (plan, folder) = (plan(), tempfile::tempdir().unwrap());
        assert_eq!(plan.runs.len(), 4);
        let first = Destination::open(&folder.path().join("a")).unwrap();
        for run in 0..plan.runs.len() {
            first.kept().put(&plan, run, &plan.observe(run, &simulated(&plan.runs[run].loaded))).unwrap();
        }
        let mut archive = Archive::default();
        let none = BTreeSet::new();
        let missing = archive.missing(&plan, first.kept(), &none);
        assert_eq!(missing.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [0, 1, 2, 3]);
        for (run, start) in missing {
            assert_eq!(start, None);
            archive.add(&plan, run, first.kept(), simulated(&plan.start_of(run)).info.digest_hex());
        }
        assert_eq!(archive.missing(&plan, first.kept(), &none), []);

        let path = folder.path().join("runs.jsonl.gz");
        archive.write(fs::File::create(&path).unwrap()).unwrap();
        let archive = Archive::read(&path).unwrap();
        let second = Destination::open(&folder.path().join("b")).unwrap();
        let is_wanted = |run| second.kept().look(&plan, run).is_none();
        let checks = archive.checks(&plan, is_wanted);
        assert_eq!(checks.iter().map(|check| check.run).collect::<Vec<_>>(), [0, 2], "one for each curve");
        for check in &checks {
            assert_eq!(simulated(&plan.start_of(check.run)).info.digest_hex(), check.digest);
        }
        // The engine of the first curve has changed.
        let changed = BTreeSet::from([checks[0].curve]);
        assert_eq!(archive.restore(&plan, second.kept(), is_wanted, &changed).unwrap(), 2);
        let restored: Vec<bool> = (0..4).map(|run| second.kept().look(&plan, run).is_some()).collect();
        assert_eq!(restored, [false, false, true, true]);
        assert_eq!(archive.missing(&plan, second.kept(), &changed), []);
        assert!(archive.checks(&plan, |run| run < 2).len() == 1);
    }

    #[test]
    fn a_broken_archive_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl.gz");
        assert!(Archive::read(&path).unwrap().runs.is_empty());
        fs::write(&path, "not gzip").unwrap();
        assert!(Archive::read(&path).unwrap_err().to_string().contains("no archive of runs (gzip)"));
        let mut out = GzEncoder::new(fs::File::create(&path).unwrap(), Compression::best());
        out.write_all(b"{}\n").unwrap();
        out.finish().unwrap();
        assert!(Archive::read(&path).unwrap_err().to_string().contains("line 1 is no finished run"));
    }
}
