//! Progress file for `pathweave view`: [`Progress`], written about twice a second into the folder that a run fills.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration as Wall, Instant, SystemTime};

use pathweave_report::{Progress, ProgressPoint, RunProgress};

use crate::progress::Snapshot;

/// Interval between two writes.
const EVERY: Wall = Wall::from_millis(500);
/// Largest number of concurrent runs of a sweep in the file.
const MOST_RUNS: usize = 64;

/// Progress of the runs of one folder.
pub(crate) struct ProgressFile {
    folder: PathBuf,
    started: Instant,
    names: Vec<String>,
    costs: Vec<f64>,
    /// True if finished runs stay on the page, because there are few.
    keep: bool,
    state: Mutex<State>,
}

struct State {
    progress: Progress,
    /// Number of each run in `progress.runs`.
    numbers: Vec<usize>,
    cost_done: f64,
    next: Instant,
    closed: bool,
}

impl ProgressFile {
    /// Creates the progress of runs with these names and costs, which may be in any unit. The file is written into
    /// `folder`.
    pub(crate) fn new(
        folder: PathBuf,
        kind: &'static str,
        name: &str,
        seed: Option<u64>,
        runs: Vec<(String, f64)>,
    ) -> Self {
        let now = Instant::now();
        let (names, costs): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        let progress = Progress::new(kind, name.to_owned(), seed, names.len());
        let state = State { progress, numbers: Vec::new(), cost_done: 0.0, next: now, closed: false };
        let live = ProgressFile {
            folder,
            started: now,
            names,
            costs,
            keep: kind != "sweep",
            state: Mutex::new(state),
        };
        live.write(&mut live.locked());
        live
    }

    /// Records the progress of run `index`.
    pub(crate) fn update(&self, index: usize, at: Snapshot) {
        let mut state = self.locked();
        let place = state.numbers.iter().position(|&number| number == index);
        let place = place.or_else(|| {
            let room = state.numbers.len() < MOST_RUNS;
            room.then(|| {
                state.numbers.push(index);
                state.progress.runs.push(RunProgress::new(self.names[index].clone()));
                state.numbers.len() - 1
            })
        });
        if let Some(place) = place {
            let run = &mut state.progress.runs[place];
            run.done = at.done;
            run.flows = at.flows.1;
            run.add(ProgressPoint {
                time_ps: at.simulated.as_ps(),
                bytes: at.bytes,
                finished: at.flows.0,
                packet_hops: at.packet_hops,
            });
        }
        if Instant::now() >= state.next {
            self.write(&mut state);
        }
    }

    /// Records the end of run `index`.
    pub(crate) fn finish_run(&self, index: usize) {
        let mut state = self.locked();
        state.progress.finished += 1;
        state.cost_done += self.costs[index];
        if let Some(place) = state.numbers.iter().position(|&number| number == index) {
            if self.keep {
                let run = &mut state.progress.runs[place];
                (run.over, run.done) = (true, 1.0);
            } else {
                state.numbers.remove(place);
                state.progress.runs.remove(place);
            }
        }
        self.write(&mut state);
    }

    /// Stops writing and removes the file.
    pub(crate) fn close(&self) {
        let mut state = self.locked();
        state.closed = true;
        // If the file cannot be removed, the results cannot be put in place either, and the error is reported then.
        let _ = Progress::remove(&self.folder);
    }

    fn write(&self, state: &mut State) {
        if state.closed {
            return;
        }
        let now = Instant::now();
        state.next = now + EVERY;
        let under_way = state.numbers.iter().zip(&state.progress.runs).filter(|(_, run)| !run.over);
        let running: f64 = under_way.map(|(&number, run)| self.costs[number] * run.done).sum();
        let all: f64 = self.costs.iter().sum();
        let progress = &mut state.progress;
        progress.done = ((state.cost_done + running) / all.max(f64::MIN_POSITIVE)).min(1.0);
        progress.wall_s = now.saturating_duration_since(self.started).as_secs_f64();
        progress.written_unix_s =
            SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since_1970| since_1970.as_secs());
        // A failed write must not affect the run.
        let _ = progress.write(&self.folder);
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(folder: &std::path::Path) -> serde_json::Value {
        let text = std::fs::read(folder.join(pathweave_report::PROGRESS_FILE)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn shares_follow_from_costs_and_a_sweep_tells_of_what_is_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let runs = || vec![("a".to_owned(), 3.0), ("b".to_owned(), 1.0)];
        for (kind, left) in [("comparison", 2), ("sweep", 1)] {
            let live = ProgressFile::new(folder.path().to_owned(), kind, "n", None, runs());
            assert_eq!(told(folder.path())["done"], 0.0);
            live.update(1, Snapshot { done: 0.5, ..Snapshot::default() });
            live.update(0, Snapshot { done: 0.5, ..Snapshot::default() });
            live.finish_run(0);
            // Three quarters of the cost is finished, and half of one quarter.
            let file = told(folder.path());
            assert_eq!((file["done"].as_f64(), file["finished"].as_u64()), (Some(0.875), Some(1)));
            assert_eq!(file["runs"].as_array().unwrap().len(), left);
            assert_eq!(file["runs"][0]["name"], "b");
            live.close();
            live.finish_run(1);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
