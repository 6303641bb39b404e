//! Findings about the longest iteration of a run, from its summary.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use pathweave_records::{Quantity, SCHEMA_NAME};
use serde::Deserialize;

use super::{ExplainError, Finding};

/// The required part of `summary.json`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) run: Run,
    iterations: Vec<Iteration>,
    training: Vec<Training>,
    critical_paths: Vec<CriticalPath>,
}

/// Description of the figures of a run that did not simulate packets.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Run {
    pub(super) label: String,
    pub(super) outside: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) digest: String,
    pub(super) ignoring_marks: Vec<String>,
    /// Number of identical ranks that each recorded rank represents.
    pub(super) stands_for: Option<u64>,
}

impl Summary {
    /// Reads the summary of a folder. Fields that did not exist when it was written are absent.
    ///
    /// # Errors
    /// The file cannot be read, or is not the summary of a run.
    pub(super) fn read(folder: &Path) -> Result<Self, ExplainError> {
        let path = folder.join("summary.json");
        let wrong = |why: String| ExplainError::Summary { path: path.clone(), why };
        let text = fs::read_to_string(&path).map_err(|why| wrong(format!("cannot be read: {why}")))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|why| wrong(format!("is not JSON: {why}")))?;
        match value.get("schema").and_then(serde_json::Value::as_str) {
            Some(SCHEMA_NAME) => {}
            Some(other) => {
                return Err(wrong(format!("schema = \"{other}\" is not that of a run, \"{SCHEMA_NAME}\"")));
            }
            None => {
                return Err(wrong(format!("has no field `schema`; that of a run has \"{SCHEMA_NAME}\"")));
            }
        }
        serde_json::from_value(value).map_err(|why| wrong(why.to_string()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Iteration {
    job: u32,
    name: String,
    time_ns: f64,
    ranks: u32,
    computation_ns: f64,
    exposed_ns: BTreeMap<String, f64>,
    idle_ns: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Training {
    group: String,
    gpus: u32,
    iteration_ns: f64,
    global_batch: u64,
    tokens_per_s: f64,
    tokens_per_s_per_gpu: f64,
    tflops_per_gpu: f64,
    mfu: Option<f64>,
    pipeline_bubble: Option<f64>,
    exposed_ns: BTreeMap<String, f64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CriticalPath {
    job: u32,
    words: String,
}

/// Describes the training of each group.
fn of_training(training: &Training) -> Finding {
    let mut parts = vec![
        format!("global batch {}", Quantity::Count.format(training.global_batch as f64)),
        format!("{} tokens/s", Quantity::Count.format(training.tokens_per_s)),
        format!("{} tokens/s a GPU", Quantity::Plain.format(training.tokens_per_s_per_gpu)),
        format!("{} TFLOP/s a GPU", Quantity::Plain.format(training.tflops_per_gpu)),
    ];
    parts.extend(training.mfu.map(|mfu| format!("MFU {}", Quantity::Percent.format(mfu))));
    parts.extend(
        training
            .pipeline_bubble
            .map(|of| format!("pipeline bubble {} of the time of computation", Quantity::Percent.format(of))),
    );
    let mut exposed: Vec<_> = training.exposed_ns.iter().collect();
    exposed.sort_by(|a, b| b.1.total_cmp(a.1));
    let share = |ns: f64| Quantity::Percent.format(ns / training.iteration_ns.max(f64::MIN_POSITIVE));
    let exposed: Vec<String> =
        exposed.into_iter().map(|(kind, &ns)| format!("{kind} {}", share(ns))).collect();
    if !exposed.is_empty() {
        parts.push(format!("exposed, of the iteration: {}", exposed.join(", ")));
    }
    Finding {
        about: "training",
        words: format!(
            "{} on {} GPUs takes {} an iteration: {}",
            training.group,
            training.gpus,
            Quantity::TimeNs.format(training.iteration_ns),
            parts.join("; ")
        ),
        evidence: "summary.json: training",
    }
}

/// Describes training, and the longest iteration: its time by activity, and its critical path.
pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    let mut found: Vec<Finding> = summary.training.iter().map(of_training).collect();
    let Some(longest) = summary.iterations.iter().max_by(|a, b| a.time_ns.total_cmp(&b.time_ns)) else {
        return found;
    };
    let share = |ns: f64| Quantity::Percent.format(ns / longest.time_ns.max(f64::MIN_POSITIVE));
    let mut parts = vec![(longest.computation_ns, "computation".to_owned())];
    parts.extend(longest.exposed_ns.iter().map(|(kind, &ns)| (ns, format!("exposed {kind}"))));
    parts.push((longest.idle_ns, "idle".to_owned()));
    parts.retain(|(ns, _)| *ns > 0.0);
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts.into_iter().map(|(ns, what)| format!("{} {what}", share(ns))).collect();
    let which = match summary.iterations.len() {
        1 => String::new(),
        count => format!("the longest of {count}, "),
    };
    found.push(Finding {
        about: "iteration",
        words: format!(
            "{which}{}, took {}; in the mean of {} ranks {}",
            longest.name,
            Quantity::TimeNs.format(longest.time_ns),
            longest.ranks,
            parts.join(", ")
        ),
        evidence: "summary.json: iterations; layers.parquet: exposed_ns; collectives.parquet: exposed_ns",
    });
    let path = summary.critical_paths.iter().find(|path| path.job == longest.job);
    found.extend(path.map(|path| Finding {
        about: "critical path",
        words: path.words.clone(),
        evidence: "critical.parquet; summary.json: critical_paths",
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each share says of what it is one: the bubble of the time of computation, all others of the iteration. The rest of
    /// an iteration is called idle, as in the report.
    #[test]
    fn shares_name_their_whole() {
        let training = Training {
            iteration_ns: 100.0,
            pipeline_bubble: Some(0.25),
            exposed_ns: [("TP all-gather".to_owned(), 10.0)].into(),
            ..Training::default()
        };
        let iteration = Iteration {
            time_ns: 100.0,
            computation_ns: 72.0,
            exposed_ns: training.exposed_ns.clone(),
            idle_ns: 18.0,
            ..Iteration::default()
        };
        let summary = Summary { training: vec![training], iterations: vec![iteration], ..Summary::default() };
        let found = findings(&summary);
        let training = &found[0].words;
        assert!(training.contains("; pipeline bubble 25.00 % of the time of computation; "), "{training}");
        assert!(training.ends_with("; exposed, of the iteration: TP all-gather 10.00 %"), "{training}");
        let iteration = &found[1].words;
        assert!(
            iteration.ends_with("72.00 % computation, 18.00 % idle, 10.00 % exposed TP all-gather"),
            "{iteration}"
        );
    }
}
