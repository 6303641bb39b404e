//! `--archive`: finished runs of a paper in a file that is part of its folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pathweave_study::paper::{Archive, Curve, Plan, RunCache};

use super::{PaperArgs, failure};
use crate::batch::Batch;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::ProgressBarMode;
use crate::output::Output;
use crate::terminal;

/// Open archive of a command.
pub(super) struct OpenArchive {
    archive: Archive,
    output: Output,
    /// Curves whose archived runs are not those of this engine.
    changed: BTreeSet<Curve>,
}

impl OpenArchive {
    /// Opens the archive at `path`, which need not exist.
    ///
    /// # Errors
    /// If the file is no archive, or cannot be written.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let archive = Archive::read(path).map_err(failure)?;
        Ok(OpenArchive { archive, output: Output::create(path)?, changed: BTreeSet::new() })
    }

    /// Returns true if `output` goes to the file of the archive.
    pub(super) fn is_in(&self, output: &Output) -> bool {
        self.output.is_same(output)
    }

    /// Copies the archived runs that `plan` needs to `cache`, if the engine still gives the digests of their starts.
    ///
    /// # Errors
    /// If a start cannot be simulated, or the cache cannot be written.
    pub(super) fn restore(
        &mut self,
        plan: &Plan,
        cache: &RunCache,
        args: &PaperArgs,
        interrupt: &Interrupt,
    ) -> Result<(), Failure> {
        let wanted = (0..plan.runs.len()).filter(|run| cache.look(plan, *run).is_none());
        let wanted: BTreeSet<usize> = wanted.collect();
        let is_wanted = |run: usize| wanted.contains(&run);
        let checks = self.archive.checks(plan, is_wanted);
        let runs: Vec<usize> = checks.iter().map(|check| check.run).collect();
        let digests = starts(plan, &runs, args, interrupt)?;
        let changed = checks.iter().filter(|check| digests.get(&check.run) != Some(&check.digest));
        self.changed = changed.map(|check| check.curve).collect();
        let restored = self.archive.restore(plan, cache, is_wanted, &self.changed).map_err(failure)?;
        if !args.quiet && restored > 0 {
            terminal::note(&format!("{restored} runs are taken from the archive"));
        }
        for check in
            checks.iter().filter(|check| self.changed.contains(&check.curve) && !interrupt.requested())
        {
            let label = &plan.runs[check.run].label;
            terminal::note(&format!(
                "the archived runs of this curve are of another engine and run again: {label}"
            ));
        }
        Ok(())
    }

    /// Adds the finished runs of `plan` to the archive and writes it.
    ///
    /// # Errors
    /// If a start cannot be simulated, or the file cannot be written.
    pub(super) fn store(mut self, plan: &Plan, cache: &RunCache, args: &PaperArgs) -> Result<(), Failure> {
        let missing = self.archive.missing(plan, cache, &self.changed);
        let unknown: Vec<usize> =
            missing.iter().filter(|(_, start)| start.is_none()).map(|(run, _)| *run).collect();
        // What is finished is also stored after an interrupt.
        let mut digests = starts(plan, &unknown, args, &Interrupt::default())?;
        for (run, start) in missing {
            if let Some(start) = start.or_else(|| digests.remove(&run)) {
                self.archive.add(plan, run, cache, start);
            }
        }
        let archive = self.archive;
        self.output.write(|out| archive.write(out))
    }
}

/// Simulates the starts of `runs` and returns their digests by run.
fn starts(
    plan: &Plan,
    runs: &[usize],
    args: &PaperArgs,
    interrupt: &Interrupt,
) -> Result<BTreeMap<usize, String>, Failure> {
    let label = |run: &usize| format!("start of {}", plan.runs[*run].label);
    let labels: Vec<String> = runs.iter().map(label).collect();
    let batch = Batch::new(vec![1.0; runs.len()], labels, true, ProgressBarMode::Never);
    let (room, count) = (args.cores.room(), runs.len());
    let digests = batch.run_all(args.cores.at_a_time(count), interrupt, |place| {
        let run = runs[place];
        let result = batch
            .watch(place, interrupt)
            .run(&plan.start_of(run), &room, |spec| args.cores.of(spec, count))
            .map_err(|why| why.of(&label(&run)))?;
        Ok(result.map(|result| result.info.digest_hex()))
    })?;
    Ok(digests.into_iter().map(|(place, digest)| (runs[place], digest)).collect())
}
