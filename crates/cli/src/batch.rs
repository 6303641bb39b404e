//! Parallel execution of many runs, and their common progress.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration as Wall, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pathweave_heap::usage;
use pathweave_records::{EndReason, RunResult};
use pathweave_scenario::Loaded;
use pathweave_sim::{Monitor, MonitorDecision, SimSpec, Snapshot};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::memory::{MemoryBudget, RunRefusal};
use crate::options::ProgressBarMode;
use crate::progress::clock;
use crate::terminal;

/// Executes the runs in `order`, `at_a_time` in parallel, and returns their results by index. Each thread takes the
/// next unclaimed run, until the user interrupts. `one` executes a run and returns `None` if it was interrupted.
///
/// # Errors
/// The error of a run, of the first one in their order if several fail. No further run starts after it, so that it is
/// reported at once and not after hours of other runs.
pub(crate) fn run_all<T: Send>(
    order: &[usize],
    at_a_time: usize,
    interrupt: &Interrupt,
    one: impl Fn(usize) -> Result<Option<T>, Failure> + Sync,
) -> Result<BTreeMap<usize, T>, Failure> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupt.requested() {
                return;
            }
            if let Some(result) = one(index).transpose() {
                if result.is_err() {
                    interrupt.request();
                }
                locked(&results).insert(index, result);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_a_time.min(order.len())).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let results = results.into_inner().expect("every thread has ended well");
    results.into_iter().map(|(index, result)| Ok((index, result?))).collect()
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().expect("no thread panics while it holds the lock")
}

/// Monitor that reports the progress of a run to the batch and stops the run on an interrupt.
pub(crate) struct Watcher<'a> {
    index: usize,
    batch: &'a Batch,
    interrupt: &'a Interrupt,
}

impl Watcher<'_> {
    /// Executes a scenario on the cores that `on_cores` determines, and records its times. Returns `None` after an
    /// interrupt, because an incomplete run gives no result.
    ///
    /// # Errors
    /// The scenario is wrong, or the run does not fit the memory.
    pub(crate) fn run(
        &mut self,
        loaded: &Loaded,
        room: &MemoryBudget,
        on_cores: impl FnOnce(&SimSpec) -> SimSpec,
    ) -> Result<Option<RunResult>, RunRefusal> {
        let (spec, _taken) = room.prepare(loaded, on_cores)?;
        let (started, cpu_s) = (Instant::now(), usage::thread_cpu_s());
        let run = pathweave_scenario::run(&spec, self);
        let mut run = run.map_err(|why| RunRefusal::Scenario(loaded.sim_error(&why)))?;
        run.info.wall_s = started.elapsed().as_secs_f64();
        run.info.cpu_s += usage::thread_cpu_s() - cpu_s;
        Ok((run.info.ended != EndReason::Interrupted).then_some(run))
    }
}

impl Monitor for Watcher<'_> {
    fn look(&mut self, at: &Snapshot) -> MonitorDecision {
        self.batch.update(self.index, Some(at.share_done()));
        if let Some(live) = &self.batch.live {
            live.update(self.index, at.into());
        }
        if self.interrupt.requested() { MonitorDecision::Stop } else { MonitorDecision::Continue }
    }
}

/// Progress of all runs of a batch: one bar on a terminal, otherwise a line every few seconds.
pub(crate) struct Batch {
    costs: Vec<f64>,
    labels: Vec<String>,
    started: Instant,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
    quiet: bool,
    live: Option<ProgressFile>,
}

struct State {
    done: f64,
    finished: usize,
    running: BTreeMap<usize, f64>,
    next_line: Instant,
}

/// Interval between progress lines without a terminal.
const LINE_EVERY: Wall = Wall::from_secs(5);
const BAR_STEPS: u64 = 1_000;

impl Batch {
    /// Creates a batch. `costs` are the costs of the runs in any unit, `labels` their names.
    pub(crate) fn new(costs: Vec<f64>, labels: Vec<String>, quiet: bool, show: ProgressBarMode) -> Self {
        let wanted = match show {
            ProgressBarMode::Always => true,
            ProgressBarMode::Never => false,
            ProgressBarMode::Auto => std::io::stderr().is_terminal(),
        };
        let bar = (!quiet && wanted).then(|| {
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("the template is valid");
            ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("=> "))
        });
        let started = Instant::now();
        let state =
            State { done: 0.0, finished: 0, running: BTreeMap::new(), next_line: started + LINE_EVERY };
        Batch { costs, labels, started, bar, state: Mutex::new(state), quiet, live: None }
    }

    /// Reports progress to `live`, too.
    pub(crate) fn with_progress_file(self, live: ProgressFile) -> Self {
        Batch { live: Some(live), ..self }
    }

    /// Executes all runs like [`run_all`], and shows their progress. The longest runs start first, so that no long run
    /// is left alone at the end.
    ///
    /// # Errors
    /// The error of a run.
    pub(crate) fn run_all<T: Send>(
        &self,
        at_a_time: usize,
        interrupt: &Interrupt,
        one: impl Fn(usize) -> Result<Option<T>, Failure> + Sync,
    ) -> Result<BTreeMap<usize, T>, Failure> {
        let mut order: Vec<usize> = (0..self.costs.len()).collect();
        order.sort_by(|&a, &b| self.costs[b].total_cmp(&self.costs[a]));
        let results = run_all(&order, at_a_time, interrupt, |index| {
            let result = one(index)?;
            if result.is_some() {
                self.update(index, None);
            }
            Ok(result)
        });
        self.finish();
        results
    }

    /// Creates a monitor for run `index`.
    pub(crate) fn watch<'a>(&'a self, index: usize, interrupt: &'a Interrupt) -> Watcher<'a> {
        Watcher { index, batch: self, interrupt }
    }

    /// Sets the fraction of run `index` that is done, or with `None` marks the run as finished.
    pub(crate) fn update(&self, index: usize, part: Option<f64>) {
        if let (Some(live), None) = (&self.live, part) {
            live.finish_run(index);
        }
        if self.quiet {
            return;
        }
        let mut state = locked(&self.state);
        match part {
            Some(part) => {
                state.running.insert(index, part);
            }
            None => {
                state.running.remove(&index);
                state.done += self.costs[index];
                state.finished += 1;
            }
        }
        let running: f64 = state.running.iter().map(|(&run, part)| self.costs[run] * part).sum();
        let share = (state.done + running) / self.costs.iter().sum::<f64>().max(1.0);
        let now = Instant::now();
        if self.bar.is_none() && now < state.next_line {
            return;
        }
        state.next_line = now + LINE_EVERY;
        let elapsed = now.saturating_duration_since(self.started);
        let left = if share > 0.0 {
            clock(Wall::from_secs_f64(elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share))
        } else {
            "-:--".to_owned()
        };
        let (finished, runs) = (state.finished, self.costs.len());
        let label = &self.labels[index];
        let line = format!("{:>3.0} %  {finished} of {runs} runs  {left} left  {label}", share * 100.0);
        match &self.bar {
            Some(bar) => {
                bar.set_position((share * BAR_STEPS as f64) as u64);
                bar.set_message(line);
            }
            None => terminal::note(&line),
        }
    }

    /// Prints a final line with the number of runs and the elapsed time.
    pub(crate) fn finish(&self) {
        if let Some(live) = &self.live {
            live.close();
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if !self.quiet {
            let finished = locked(&self.state).finished;
            terminal::note(&format!("{finished} runs in {}", clock(self.started.elapsed())));
        }
    }
}
