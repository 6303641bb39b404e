//! Differences between two result folders: of settings, and of results for each run and workload.

mod error;
mod figures;
mod folder;
mod settings;
mod text;
mod words;

use std::path::Path;

use pathweave_records::Quantity;
use serde::Serialize;

use crate::export::quoted;
use crate::judge::LEVEL;
use crate::metrics::{Better, Needs, name};
pub use error::DiffError;
use figures::{FIGURES, format_of, needs_of};
use folder::{Contents, Entry, Kind};
pub use settings::SettingDifference;

/// One of the two folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// Path of the folder, as given.
    pub folder: String,
    /// Kind of results: "run", "comparison", "comparisons" or "sweep".
    pub kind: &'static str,
    /// Versions of the program that made the runs.
    pub versions: Vec<String>,
    /// Number of runs, or of cells of a sweep.
    pub runs: usize,
}

/// A figure of a workload of a run in both folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResultDifference {
    /// Name of the run, or of the cell of a sweep.
    pub run: String,
    /// Name of the workload, or "all" for all workloads of the run.
    pub workload: String,
    /// Name of the figure with its unit, as in CSV files.
    pub figure: String,
    /// Label for people.
    pub label: &'static str,
    /// Format of the figure.
    pub quantity: Quantity,
    /// Direction of the better figure.
    pub better: Better,
    /// Value in the first folder; `None` if it has none.
    pub a: Option<f64>,
    /// Value in the second folder; `None` if it has none.
    pub b: Option<f64>,
    /// Relative change: 0.1 if the second value is 10 % larger. `None` without two values, from zero, or of a figure of what
    /// finished where a run left work undone.
    pub change_ratio: Option<f64>,
}

/// Differences between two result folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// First folder.
    pub a: Side,
    /// Second folder.
    pub b: Side,
    /// The differences in a few sentences.
    pub sentence: String,
    /// Scenario fields that differ.
    pub settings: Vec<SettingDifference>,
    /// Figures of the runs that are in both folders, equal ones included.
    pub results: Vec<ResultDifference>,
    /// Runs that only the first folder has.
    pub only_in_a: Vec<String>,
    /// Runs that only the second folder has.
    pub only_in_b: Vec<String>,
}

/// A run that is in both folders.
struct Pair {
    name: String,
    a: Entry,
    b: Entry,
}

/// Compares the results in two folders. Runs are paired by name; a single run pairs with a single run of any name.
///
/// # Errors
/// A folder has no results, a file cannot be read, or no run is in both.
pub fn diff(a: &Path, b: &Path) -> Result<Diff, DiffError> {
    let (first, second) = (Contents::read(a)?, Contents::read(b)?);
    let side = |path: &Path, contents: &Contents| Side {
        folder: path.display().to_string(),
        kind: contents.kind.name(),
        versions: contents.versions(),
        runs: contents.entries.len(),
    };
    let (side_a, side_b) = (side(a, &first), side(b, &second));
    let names = |contents: &Contents| {
        words::shortened(&contents.entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>())
    };
    let (all_a, all_b) = (names(&first), names(&second));
    // Cells of sweeps are means over seeds.
    let one_seed = first.kind != Kind::Sweep && second.kind != Kind::Sweep;
    let (pairs, only_in_a, only_in_b) = pair(first, second);
    if pairs.is_empty() {
        return Err(DiffError::NothingInCommon { a: all_a, b: all_b });
    }
    let results = pairs.iter().flat_map(of_pair).collect::<Vec<_>>();
    let settings = settings::of_pairs(&pairs);
    let mut diff =
        Diff { a: side_a, b: side_b, sentence: String::new(), settings, results, only_in_a, only_in_b };
    diff.sentence = words::sentence(&diff, &pairs, one_seed);
    Ok(diff)
}

/// Returns the kind of the results in a folder, as in [`Side`].
///
/// # Errors
/// The folder has no results, or a file cannot be read.
pub(crate) fn kind(folder: &Path) -> Result<&'static str, DiffError> {
    Ok(Contents::read(folder)?.kind.name())
}

/// Returns the runs of both, and the names of those that only one has.
fn pair(a: Contents, b: Contents) -> (Vec<Pair>, Vec<String>, Vec<String>) {
    // The run of `pathweave run` has the name of its scenario, that of a comparison the name of its scheme.
    let by_scheme = (a.kind == Kind::Run) != (b.kind == Kind::Run);
    let key = |contents: &Contents, entry: &Entry| match contents.kind {
        Kind::Run if by_scheme => entry.scheme.clone(),
        _ => entry.name.clone(),
    };
    let keys =
        |contents: &Contents| contents.entries.iter().map(|entry| key(contents, entry)).collect::<Vec<_>>();
    let (keys_a, keys_b) = (keys(&a), keys(&b));
    if let ([_], [_]) = (&a.entries[..], &b.entries[..]) {
        let name =
            if keys_a == keys_b { keys_a[0].clone() } else { format!("{} to {}", keys_a[0], keys_b[0]) };
        let (a, b) = (a.entries.into_iter().next(), b.entries.into_iter().next());
        let pair = a.zip(b).map(|(a, b)| Pair { name, a, b });
        return (pair.into_iter().collect(), Vec::new(), Vec::new());
    }
    let (mut pairs, mut only_in_a) = (Vec::new(), Vec::new());
    let all_a = keys_a.clone();
    let mut left: Vec<(String, Option<Entry>)> =
        keys_b.into_iter().zip(b.entries.into_iter().map(Some)).collect();
    for (name, entry) in keys_a.into_iter().zip(a.entries) {
        // A scheme with other settings has a star. It pairs with the scheme itself if that is nowhere else.
        let plain = name.trim_end_matches('*').to_owned();
        let exact = left.iter().any(|(other, entry)| *other == name && entry.is_some());
        let is_same = |other: &String| match exact {
            true => *other == name,
            false => other.trim_end_matches('*') == plain && !all_a.contains(other),
        };
        let same = left.iter_mut().find(|(other, entry)| entry.is_some() && is_same(other));
        match same.and_then(|(_, entry)| entry.take()) {
            Some(b) => pairs.push(Pair { name, a: entry, b }),
            None => only_in_a.push(name),
        }
    }
    let only_in_b = left.into_iter().filter_map(|(name, entry)| entry.map(|_| name)).collect();
    (pairs, only_in_a, only_in_b)
}

fn of_pair(pair: &Pair) -> Vec<ResultDifference> {
    let mut out = Vec::new();
    for (workload, a) in &pair.a.workloads {
        let same = pair.b.workloads.iter().find(|(other, _)| other == workload);
        // Of one workload each, the names do not matter.
        let only = || {
            if let ([_], [only]) = (&pair.a.workloads[..], &pair.b.workloads[..]) { Some(only) } else { None }
        };
        let Some((other, b)) = same.or_else(only) else { continue };
        let open = pair.a.is_open(workload) || pair.b.is_open(other);
        let workload = if other == workload { workload.clone() } else { format!("{workload} to {other}") };
        for &label in FIGURES {
            let (quantity, better) = format_of(label);
            let needs = needs_of(label);
            let better = needs.direction(better, open);
            let figure = name(label, quantity);
            let value = |figures: &folder::Figures| figures.get(&figure).copied();
            let (a, b) = (value(a), value(b));
            if a.is_none() && b.is_none() {
                continue;
            }
            // The fast flows finish first, so that a run which ends early seems the better one.
            let of_part = open && needs != Needs::Nothing;
            let change_ratio = a.zip(b).filter(|_| !of_part).and_then(|(a, b)| change(a, b));
            let (run, workload) = (pair.name.clone(), workload.clone());
            out.push(ResultDifference { run, workload, figure, label, quantity, better, a, b, change_ratio });
        }
    }
    out
}

/// Returns the relative change, or `None` for one from zero.
fn change(a: f64, b: f64) -> Option<f64> {
    if a == b {
        return Some(0.0);
    }
    (a != 0.0).then(|| b / a - 1.0)
}

impl ResultDifference {
    /// Returns true if the values differ by more than what counts as level.
    pub fn differs(&self) -> bool {
        match (self.a, self.b) {
            (Some(a), Some(b)) => (b - a).abs() > LEVEL * a.abs().max(f64::MIN_POSITIVE),
            (a, b) => a != b,
        }
    }
}

impl Diff {
    /// Returns a line for each figure of `results`; `a` and `b` are in the unit at the end of the figure's name.
    pub fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut text = "run,workload,figure,a,b,change_ratio\n".to_owned();
        for row in &self.results {
            text += &format!(
                "{},{},{},{},{},{}\n",
                quoted(&row.run),
                quoted(&row.workload),
                row.figure,
                number(row.a),
                number(row.b),
                number(row.change_ratio)
            );
        }
        text
    }

    /// Returns the differences for a terminal of 40 lines and 100 columns.
    pub fn table(&self) -> String {
        text::brief(self)
    }

    /// Returns every setting that differs and every figure for a terminal.
    pub fn long_table(&self) -> String {
        text::all(self)
    }
}

#[cfg(test)]
mod tests;
