//! Progress of running runs: `progress.json`, in the folder that is being filled.

use std::fs;
use std::io;
use std::path::Path;

use pathweave_records::ns;
use serde::Serialize;

/// Name of the file.
pub const PROGRESS_FILE: &str = "progress.json";
/// Largest number of points of a curve. When it is reached, every other point is removed.
const MOST_POINTS: usize = 240;

/// Progress of the runs of one command that fill one folder. `pathweave view` reads it.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    schema: &'static str,
    schema_version: u32,
    /// "run", "comparison" or "sweep".
    pub kind: &'static str,
    /// Name of the scenario or sweep.
    pub name: String,
    /// Seed of the runs, or `None` if they have several.
    pub seed: Option<u64>,
    /// Id of the process that writes the file. If the process is gone, there will be no more updates.
    pub process: u32,
    /// Time of writing, in seconds since 1970.
    pub written_unix_s: u64,
    /// Wall-clock time since the command began, seconds.
    pub wall_s: f64,
    /// Share of the work that is done, 0 to 1.
    pub done: f64,
    /// Number of runs that are over.
    pub finished: usize,
    /// Number of all runs.
    pub of: usize,
    /// Running runs; for a run or a comparison also those that are over.
    pub runs: Vec<RunProgress>,
}

impl Progress {
    /// Creates the progress of `of` runs, none of which has begun.
    pub fn new(kind: &'static str, name: String, seed: Option<u64>, of: usize) -> Self {
        Progress {
            schema: "pathweave.progress",
            schema_version: 1,
            kind,
            name,
            seed,
            process: std::process::id(),
            written_unix_s: 0,
            wall_s: 0.0,
            done: 0.0,
            finished: 0,
            of,
            runs: Vec::new(),
        }
    }

    /// Writes the file into `folder` atomically: a reader finds the old text or the new one.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        let partial = folder.join(format!(".{PROGRESS_FILE}"));
        let text = serde_json::to_vec(self).expect("plain data with text keys serialises");
        fs::write(&partial, text)?;
        fs::rename(&partial, folder.join(PROGRESS_FILE))
    }

    /// Removes the file from `folder`, if it is there.
    pub fn remove(folder: &Path) -> io::Result<()> {
        for name in [PROGRESS_FILE.to_owned(), format!(".{PROGRESS_FILE}")] {
            match fs::remove_file(folder.join(name)) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Progress of one run, and its curves so far: cumulative sums at some instants.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunProgress {
    /// Name of the run: the scheme in a comparison, the cell and seed in a sweep.
    pub name: String,
    /// True once the run is over.
    pub over: bool,
    /// Share of the run that is done, 0 to 1.
    pub done: f64,
    /// Number of all flows.
    pub flows: u64,
    /// Instants of simulated time, in nanoseconds.
    pub time_ns: Vec<f64>,
    /// Payload bytes delivered by each instant.
    pub bytes: Vec<u64>,
    /// Number of flows finished by each instant.
    pub finished: Vec<u64>,
    /// Number of packet-hops by each instant.
    pub packet_hops: Vec<u64>,
    /// Shortest time between points.
    #[serde(skip)]
    step_ps: u64,
    #[serde(skip)]
    last_ps: u64,
}

/// Progress of a run at an instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgressPoint {
    /// Simulated time, picoseconds.
    pub time_ps: u64,
    /// Payload bytes delivered so far.
    pub bytes: u64,
    /// Number of flows finished so far.
    pub finished: u64,
    /// Number of packet-hops so far.
    pub packet_hops: u64,
}

impl RunProgress {
    /// Creates the progress of a run that has not begun.
    pub fn new(name: String) -> Self {
        RunProgress { name, ..RunProgress::default() }
    }

    /// Adds a point to the curves. When there are too many, every other point is removed; the sums stay exact.
    pub fn add(&mut self, at: ProgressPoint) {
        if at.time_ps < self.last_ps.saturating_add(self.step_ps.max(1)) {
            return;
        }
        self.last_ps = at.time_ps;
        self.time_ns.push(ns(at.time_ps));
        self.bytes.push(at.bytes);
        self.finished.push(at.finished);
        self.packet_hops.push(at.packet_hops);
        if self.time_ns.len() > MOST_POINTS {
            every_other(&mut self.time_ns);
            every_other(&mut self.bytes);
            every_other(&mut self.finished);
            every_other(&mut self.packet_hops);
            self.step_ps = (at.time_ps / (MOST_POINTS as u64 / 2)).max(1);
        }
    }
}

/// Keeps the last element, and every other one before it.
fn every_other<T>(values: &mut Vec<T>) {
    let last = values.len() - 1;
    let mut place = 0;
    values.retain(|_| {
        place += 1;
        (last - (place - 1)).is_multiple_of(2)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_bounded_keep_their_last_point_and_rise() {
        let mut run = RunProgress::new("a".to_owned());
        for t in 1..=10_000u64 {
            run.add(ProgressPoint { time_ps: t * 1_000, bytes: t * 10, finished: t / 100, packet_hops: t });
            run.add(ProgressPoint { time_ps: t * 1_000, bytes: 0, ..ProgressPoint::default() });
        }
        let n = run.time_ns.len();
        assert!((MOST_POINTS / 3..=MOST_POINTS).contains(&n), "{n}");
        assert!([run.bytes.len(), run.finished.len(), run.packet_hops.len()].iter().all(|&m| m == n));
        assert!(run.time_ns.windows(2).all(|w| w[0] < w[1]));
        // Ten bytes a nanosecond, whatever was removed.
        assert!(run.time_ns.iter().zip(&run.bytes).all(|(t, b)| t * 10.0 == *b as f64));
        assert!(run.time_ns[n - 1] > 9_800.0);
    }

    #[test]
    fn every_other_keeps_the_last() {
        for (mut values, left) in [(vec![1, 2, 3], vec![1, 3]), (vec![1, 2, 3, 4], vec![2, 4])] {
            every_other(&mut values);
            assert_eq!(values, left);
        }
    }

    #[test]
    fn the_file_is_whole_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut progress = Progress::new("run", "a".to_owned(), Some(7), 1);
        progress.runs.push(RunProgress::new("b".to_owned()));
        progress.write(folder.path()).unwrap();
        progress.done = 0.5;
        progress.write(folder.path()).unwrap();
        let text = fs::read(folder.path().join(PROGRESS_FILE)).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((value["done"].as_f64(), value["seed"].as_u64()), (Some(0.5), Some(7)));
        assert_eq!(value["schema"], "pathweave.progress");
        Progress::remove(folder.path()).unwrap();
        Progress::remove(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
