//! Parallel execution of many runs, and their common progress.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration as Wall, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pathweave_sim::{Monitor, MonitorDecision, Snapshot};

use crate::interrupt::Interrupt;
use crate::live::ProgressFile;
use crate::options::ProgressBarMode;
use crate::progress::clock;
use crate::terminal;

/// Calls `work` with each index in `order`, in `jobs` threads. Each thread takes the next unclaimed index, until the
/// user interrupts.
pub(crate) fn in_threads(jobs: usize, order: &[usize], interrupt: &Interrupt, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupt.requested() {
                return;
            }
            work(index);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs.min(order.len())).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// Monitor that reports the progress of a run to the batch and stops the run on an interrupt.
pub(crate) struct Watcher<'a> {
    index: usize,
    batch: &'a Batch,
    interrupt: &'a Interrupt,
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
        let mut state = self.state.lock().expect("no thread panics while it holds the lock");
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
            let finished = self.state.lock().expect("no thread panics while it holds the lock").finished;
            terminal::note(&format!("{finished} runs in {}", clock(self.started.elapsed())));
        }
    }
}
