//! What the summary of a run says about its longest iteration.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::Finding;
use crate::human::Quantity;

/// As much of `summary.json` as is needed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) run: Run,
    iterations: Vec<Iteration>,
    critical_paths: Vec<CriticalPath>,
}

/// What the figures of a run are, where they are not those of packets.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Run {
    pub(super) label: String,
    pub(super) outside: Vec<String>,
}

impl Summary {
    /// That of a folder; nothing is in it where the folder has none, or one of before there was what is asked for.
    pub(super) fn read(folder: &Path) -> Self {
        let text = fs::read_to_string(folder.join("summary.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
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
struct CriticalPath {
    job: u32,
    words: String,
}

/// Of the longest iteration, what its time went to and what it waited for.
pub(super) fn findings(summary: &Summary) -> Vec<Finding> {
    let Some(longest) = summary.iterations.iter().max_by(|a, b| a.time_ns.total_cmp(&b.time_ns)) else {
        return Vec::new();
    };
    let share = |ns: f64| Quantity::Percent.show(ns / longest.time_ns.max(f64::MIN_POSITIVE));
    let mut parts = vec![(longest.computation_ns, "computation".to_owned())];
    parts.extend(longest.exposed_ns.iter().map(|(kind, &ns)| (ns, format!("exposed {kind}"))));
    parts.push((longest.idle_ns, "neither".to_owned()));
    parts.retain(|(ns, _)| *ns > 0.0);
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let parts: Vec<String> = parts.into_iter().map(|(ns, what)| format!("{} {what}", share(ns))).collect();
    let which = match summary.iterations.len() {
        1 => String::new(),
        count => format!("the longest of {count}, "),
    };
    let mut found = vec![Finding {
        about: "iteration",
        words: format!(
            "{which}{}, took {}; in the mean of {} ranks {}",
            longest.name,
            Quantity::TimeNs.show(longest.time_ns),
            longest.ranks,
            parts.join(", ")
        ),
        evidence: "summary.json: iterations; layers.parquet: exposed_ns; collectives.parquet: exposed_ns",
    }];
    let path = summary.critical_paths.iter().find(|path| path.job == longest.job);
    found.extend(path.map(|path| Finding {
        about: "critical path",
        words: path.words.clone(),
        evidence: "critical.parquet; summary.json: critical_paths",
    }));
    found
}
