//! Results read back from a folder of any version of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pathweave_records::{SCHEMA_NAME, SCHEMA_VERSION};
use serde_json::Value;

use super::error::DiffError;
use super::figures::{FIGURES, format_of};
use crate::metrics::name;

/// Schema of the summary of a comparison and of a sweep.
const COMPARISON: &str = "pathweave.comparison";
const SWEEP: &str = "pathweave.sweep";
/// Name of all workloads of a run together.
pub(super) const ALL: &str = "all";
/// Largest number of result folders that an error names.
const NAMED: usize = 6;

/// Name of the number of finished flows among the figures.
pub(super) const FINISHED: &str = "finished";

/// Values by name of the figure.
pub(super) type Figures = BTreeMap<String, f64>;

/// Kind of a result folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Comparison,
    /// Folders of comparisons, as `pathweave demo` writes them.
    Comparisons,
    Sweep,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Comparison => "comparison",
            Kind::Comparisons => "comparisons",
            Kind::Sweep => "sweep",
        }
    }
}

/// A run, or the mean of the runs of a cell.
pub(super) struct Entry {
    pub(super) name: String,
    /// Name of the scheme of the scenario.
    pub(super) scheme: String,
    pub(super) version: String,
    /// Digest of the event trace; empty for a cell.
    pub(super) digest: String,
    /// Complete scenario, if the folder has it.
    pub(super) scenario: toml::Table,
    /// Parts of schemes that the calling program supplied, each with its name.
    pub(super) supplied: BTreeMap<String, String>,
    /// Figures of each workload, and of all if there are several.
    pub(super) workloads: Vec<(String, Figures)>,
    /// Names of the workloads of which a flow did not finish, or all of them if the run was stopped. Their figures are
    /// those of the flows that did.
    pub(super) incomplete: BTreeSet<String>,
}

impl Entry {
    /// Returns true if a flow of a workload did not finish. A single workload may have another name in the other folder.
    pub(super) fn is_open(&self, workload: &str) -> bool {
        match self.workloads[..] {
            [_] => !self.incomplete.is_empty(),
            _ => self.incomplete.contains(workload),
        }
    }
}

/// Results in a folder.
pub(super) struct Contents {
    pub(super) kind: Kind,
    pub(super) entries: Vec<Entry>,
}

impl Contents {
    pub(super) fn read(folder: &Path) -> Result<Contents, DiffError> {
        let no_results = |why: &str| DiffError::NoResults {
            path: folder.to_owned(),
            why: why.to_owned(),
            found: results_within(folder),
        };
        if !folder.is_dir() {
            let why = if folder.exists() { "it is a file" } else { "there is no such folder" };
            return Err(no_results(why));
        }
        let path = folder.join("summary.json");
        if !path.exists() {
            let inside = comparisons(folder)?;
            if inside.is_empty() {
                return Err(no_results("there is no summary.json"));
            }
            return Ok(Contents { kind: Kind::Comparisons, entries: inside });
        }
        let summary = read_summary(&path)?;
        let contents = match schema(&summary) {
            SCHEMA_NAME => Contents { kind: Kind::Run, entries: vec![entry(folder, &summary)] },
            COMPARISON => Contents { kind: Kind::Comparison, entries: of_comparison(folder, &summary)? },
            _ => Contents { kind: Kind::Sweep, entries: of_sweep(folder, &summary) },
        };
        if contents.entries.is_empty() {
            return Err(no_results("no run of it has finished"));
        }
        Ok(contents)
    }

    /// Returns the versions of the program that made the runs.
    pub(super) fn versions(&self) -> Vec<String> {
        let all: BTreeSet<_> = self.entries.iter().map(|entry| entry.version.clone()).collect();
        all.into_iter().filter(|version| !version.is_empty()).collect()
    }
}

fn schema(summary: &Value) -> &str {
    summary["schema"].as_str().unwrap_or("")
}

/// Reads a summary of one of the three kinds.
fn read_summary(path: &Path) -> Result<Value, DiffError> {
    let refuse = |why: String| DiffError::File { path: path.to_owned(), why };
    let text = fs::read_to_string(path).map_err(|why| refuse(format!("cannot read the summary: {why}")))?;
    let summary: Value =
        serde_json::from_str(&text).map_err(|why| refuse(format!("the summary is not JSON: {why}")))?;
    let version = summary["schema_version"].as_u64().unwrap_or(0);
    match schema(&summary) {
        SCHEMA_NAME | COMPARISON if version > u64::from(SCHEMA_VERSION) => Err(refuse(format!(
            "a newer program wrote the summary: its format is version {version}, this program reads up to {SCHEMA_VERSION}"
        ))),
        SCHEMA_NAME | COMPARISON | SWEEP => Ok(summary),
        other => Err(refuse(format!(
            "it is not the summary of a run, a comparison or a sweep: `schema` is \"{other}\"; expected \"{SCHEMA_NAME}\", \"{COMPARISON}\" or \"{SWEEP}\""
        ))),
    }
}

/// Returns the folders in a folder, by name.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn results_within(folder: &Path) -> Vec<String> {
    let has_results = |path: &PathBuf| path.join("summary.json").is_file();
    let found = folders(folder).into_iter().filter(has_results).take(NAMED);
    found.map(|path| path.display().to_string()).collect()
}

/// Returns the runs of comparisons that stand side by side in a folder.
fn comparisons(folder: &Path) -> Result<Vec<Entry>, DiffError> {
    let mut all = Vec::new();
    for inner in folders(folder) {
        let path = inner.join("summary.json");
        // A folder of single runs is not one result.
        let Some(summary) = read_summary(&path).ok().filter(|summary| schema(summary) == COMPARISON) else {
            return Ok(Vec::new());
        };
        let situation = inner.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for entry in of_comparison(&inner, &summary)? {
            all.push(Entry { name: format!("{situation} {}", entry.name), ..entry });
        }
    }
    Ok(all)
}

/// Returns the runs of a comparison in the order of its summary.
fn of_comparison(folder: &Path, summary: &Value) -> Result<Vec<Entry>, DiffError> {
    let mut entries = Vec::new();
    for inner in folders(folder) {
        let path = inner.join("summary.json");
        if path.is_file() {
            entries.push(entry(&inner, &read_summary(&path)?));
        }
    }
    let order: Vec<&str> = summary["runs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|run| run["run"]["name"].as_str())
        .collect();
    entries.sort_by_key(|entry| order.iter().position(|name| *name == entry.name).unwrap_or(usize::MAX));
    Ok(entries)
}

fn scenario(folder: &Path) -> toml::Table {
    let text = fs::read_to_string(folder.join("scenario.toml")).unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn scheme(scenario: &toml::Table) -> String {
    let scheme = scenario.get("scheme").and_then(|scheme| scheme.get("name"));
    scheme.and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

fn entry(folder: &Path, summary: &Value) -> Entry {
    let text = |key: &str| summary["run"][key].as_str().unwrap_or_default().to_owned();
    let groups = summary["groups"].as_array().map_or(&[][..], Vec::as_slice);
    let mut workloads: Vec<(String, Figures)> = Vec::new();
    let mut incomplete = BTreeSet::new();
    let stopped = summary["run"]["partial"].as_bool().unwrap_or(false);
    let mut judge = |name: &str, flows: &Value| {
        let open = ["unfinished", "failed"].iter().filter_map(|state| flows[state].as_u64()).sum::<u64>();
        if stopped || open > 0 {
            incomplete.insert(name.to_owned());
        }
    };
    for group in groups {
        let name = group["group"].as_str().unwrap_or_default();
        judge(name, group);
        let jobs = summary["jobs"]["by_group"].as_array().into_iter().flatten();
        let job = jobs.into_iter().find(|job| job["group"] == name);
        workloads.push((name.to_owned(), figures(group, job.map(|job| &job["time_ns"]))));
    }
    if workloads.len() != 1 {
        // The foreground is never mixed with the background.
        let measured =
            if summary["foreground"].is_object() { &summary["foreground"] } else { &summary["overall"] };
        judge(ALL, measured);
        workloads.push((ALL.to_owned(), figures(measured, Some(&summary["jobs"]["time_ns"]))));
    }
    let scenario = scenario(folder);
    let supplied = summary["run"]["supplied"].as_array().into_iter().flatten();
    let supplied = supplied.filter_map(|part| Some((part["part"].as_str()?, part["name"].as_str()?)));
    Entry {
        supplied: supplied.map(|(part, name)| (part.to_owned(), name.to_owned())).collect(),
        name: text("name"),
        scheme: scheme(&scenario),
        version: text("version"),
        digest: text("digest"),
        scenario,
        workloads,
        incomplete,
    }
}

/// Returns the figures of a set of flows, and the time of their jobs.
fn figures(flows: &Value, job_time: Option<&Value>) -> Figures {
    let finished = flows["finished"].as_u64().unwrap_or(0) > 0;
    let of = |label: &str| match label {
        "Job time" => job_time?.as_f64(),
        "FCT mean" => flows["fct_ns"]["mean"].as_f64().filter(|_| finished),
        "FCT P99" => flows["fct_ns"]["p99"].as_f64().filter(|_| finished),
        "Ideal FCT mean" => flows["ideal_fct_ns"]["mean"].as_f64().filter(|_| finished),
        "Slowdown mean" => flows["slowdown"]["mean"].as_f64().filter(|_| finished),
        "Slowdown P99" => flows["slowdown"]["p99"].as_f64().filter(|_| finished),
        "Unfinished" => flows["unfinished"].as_f64(),
        "Failed" => flows["failed"].as_f64(),
        "Dropped packets" => flows["dropped_packets"].as_f64(),
        "Retransmissions" => flows["retransmitted_packets"].as_f64(),
        _ => None,
    };
    let finished = flows["finished"].as_f64().map(|flows| (FINISHED.to_owned(), flows));
    FIGURES
        .iter()
        .filter_map(|label| Some((name(label, format_of(label).0), of(label)?)))
        .chain(finished)
        .collect()
}

/// Returns the cells of a sweep, with the means over seeds.
fn of_sweep(folder: &Path, summary: &Value) -> Vec<Entry> {
    let engine = summary["engine"].as_str().unwrap_or_default();
    let cells = summary["cells"].as_array().into_iter().flatten();
    let of_cell = |cell: &Value| {
        let mean = |label: &&str| {
            let figure = name(label, format_of(label).0);
            let mean = cell["metrics"][&figure]["mean"].as_f64()?;
            Some((figure, mean))
        };
        let mut figures: Figures = FIGURES.iter().filter_map(mean).collect();
        if let Some(flows) = cell["metrics"]["flows"]["mean"].as_f64().filter(|_| !figures.is_empty()) {
            figures.insert(FINISHED.to_owned(), flows);
        }
        let run = cell["runs"][0].as_str().unwrap_or_default();
        let scenario = scenario(&folder.join("runs").join(format!("run={run}")));
        let seeds = cell["finished_seeds"].as_array().map(Vec::len);
        let whole = cell["open_flows"].as_u64().unwrap_or(0) == 0
            && cell["withheld"].as_array().is_none_or(Vec::is_empty)
            && seeds.is_none_or(|seeds| Some(seeds) == cell["runs"].as_array().map(Vec::len));
        (!figures.is_empty()).then(|| Entry {
            name: cell["label"].as_str().unwrap_or_default().to_owned(),
            scheme: scheme(&scenario),
            version: engine.to_owned(),
            digest: String::new(),
            supplied: BTreeMap::new(),
            scenario,
            workloads: vec![(ALL.to_owned(), figures)],
            incomplete: (!whole).then(|| ALL.to_owned()).into_iter().collect(),
        })
    };
    cells.filter_map(of_cell).collect()
}
