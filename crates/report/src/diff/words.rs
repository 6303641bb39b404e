//! Differences between two folders in sentences.

use super::folder::{ALL, Entry, FINISHED};
use super::{Diff, Pair, ResultDifference};
use crate::few_flows::{Unsure, few_flows_sentence};

/// Largest number of runs that a sentence names for one outcome.
const NAMED: usize = 4;

/// Returns the sentences: who is better by how much and how sure that is, then settings and versions. Each result is of
/// `one_seed`, or a mean over seeds.
pub(super) fn sentence(diff: &Diff, pairs: &[Pair], one_seed: bool) -> String {
    let mut sentences = vec![outcome(diff, pairs)];
    sentences.extend(caution(diff, pairs, one_seed));
    sentences.push(match diff.settings.len() {
        0 => "No setting differs".to_owned(),
        1 => "One setting differs".to_owned(),
        n => format!("{n} settings differ"),
    });
    let versions = (diff.a.versions.join(", "), diff.b.versions.join(", "));
    if versions.0 != versions.1 {
        sentences.push(format!("Version {} made A and version {} made B", versions.0, versions.1));
    }
    for (only, side) in [(&diff.only_in_a, "A"), (&diff.only_in_b, "B")] {
        if !only.is_empty() {
            sentences.push(format!("Only {side} has {}", shortened(only)));
        }
    }
    sentences.iter().map(|sentence| format!("{sentence}.")).collect::<Vec<_>>().join(" ")
}

/// Figure that decides, with the words for a lower and a higher one.
pub(super) struct Measure {
    pub(super) label: &'static str,
    name: &'static str,
    lower: &'static str,
    higher: &'static str,
}

const JOB_TIME: Measure = Measure { label: "Job time", name: "job time", lower: "shorter", higher: "longer" };
const SLOWDOWN: Measure =
    Measure { label: "Slowdown P99", name: "P99 slowdown", lower: "lower", higher: "higher" };

const TIME: Measure =
    Measure { label: "FCT P99", name: "P99 completion time", lower: "shorter", higher: "longer" };

/// Returns the figure that decides: job time, or else the P99 of the slowdown, or of the completion time where the same
/// flows have other ideal times.
pub(super) fn measure(diff: &Diff) -> Measure {
    let other_flows = diff.settings.iter().any(|setting| setting.field.starts_with("workload"));
    let unlike = |row: &ResultDifference| row.label == "Ideal FCT mean" && row.differs();
    match () {
        () if diff.results.iter().any(|row| row.label == JOB_TIME.label) => JOB_TIME,
        () if !other_flows && diff.results.iter().any(unlike) => TIME,
        () => SLOWDOWN,
    }
}

/// Returns a sentence on the part of chance in the differences of the figure that decides; `None` if no run differs.
fn caution(diff: &Diff, pairs: &[Pair], one_seed: bool) -> Option<String> {
    let measure = measure(diff);
    let judged: Vec<_> =
        pairs.iter().filter_map(|pair| Some((pair, judged(diff, pair, &measure)?))).collect();
    let both = |row: &ResultDifference| row.a.is_some() && row.b.is_some();
    if !judged.iter().any(|(_, row)| both(row) && row.differs()) {
        return None;
    }
    let flows = |(pair, row): &(&Pair, ResultDifference)| {
        let of = |entry: &Entry| {
            let same = entry.workloads.iter().find(|(name, _)| *name == row.workload);
            same.or(entry.workloads.first())?.1.get(FINISHED).copied()
        };
        of(&pair.a).into_iter().chain(of(&pair.b)).reduce(f64::min)
    };
    let fewest = judged.iter().filter_map(flows).reduce(f64::min).unwrap_or(0.0);
    let few = few_flows_sentence(fewest as u64, Unsure::Order).filter(|_| measure.label != JOB_TIME.label);
    few.or_else(|| {
        one_seed
            .then(|| "Each run is of one seed, and `pathweave sweep` shows the spread over seeds".to_owned())
    })
}

fn outcome(diff: &Diff, pairs: &[Pair]) -> String {
    let digests = pairs.iter().all(|pair| !pair.a.digest.is_empty() && pair.a.digest == pair.b.digest);
    if digests && !diff.results.iter().any(ResultDifference::differs) {
        return "The results are equal: so is each digest".to_owned();
    }
    if diff.results.is_empty() {
        return "The runs have no workload in common, so no result is compared".to_owned();
    }
    let measure = measure(diff);
    let judged: Vec<ResultDifference> =
        pairs.iter().filter_map(|pair| judged(diff, pair, &measure)).collect();
    let (mut lower, mut higher, mut level, mut open) = (vec![], vec![], vec![], vec![]);
    for row in &judged {
        match (row.a, row.b) {
            (Some(_), Some(_)) if !row.differs() => level.push(row.run.clone()),
            (Some(a), Some(b)) if b < a => lower.push((row, b / a)),
            (Some(a), Some(b)) => higher.push((row, b / a)),
            _ => open.push(row),
        }
    }
    if let [row] = &judged[..] {
        return one(row, &measure);
    }
    let named = |rows: &[(&ResultDifference, f64)]| {
        let names: Vec<String> =
            rows.iter().map(|(row, over)| format!("{} {}", row.run, percent(*over))).collect();
        format!("{} of {} runs ({})", rows.len(), judged.len(), shortened(&names))
    };
    let mut parts = Vec::new();
    if !lower.is_empty() {
        parts.push(format!("B has a {} {} in {}", measure.lower, measure.name, named(&lower)));
    }
    if !higher.is_empty() {
        parts.push(format!("B has a {} {} in {}", measure.higher, measure.name, named(&higher)));
    }
    if !level.is_empty() {
        let are = if level.len() == 1 { "is" } else { "are" };
        parts.push(format!("{} of {} {are} level ({})", level.len(), judged.len(), shortened(&level)));
    }
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|row| row.run.clone()).collect();
        parts.push(format!("{} in A or B leaves work unfinished", shortened(&names)));
    }
    parts.join("; ")
}

/// Returns the figure of a run that decides: of all its workloads if there are several. A side whose flows did not all
/// finish has none.
fn judged(diff: &Diff, pair: &Pair, measure: &Measure) -> Option<ResultDifference> {
    let mut rows = diff.results.iter().filter(|row| row.run == pair.name && row.label == measure.label);
    let all = rows.clone().find(|row| row.workload == ALL);
    let row = all.or_else(|| rows.next())?;
    let whole = |entry: &Entry, value: Option<f64>| {
        value.filter(|_| measure.label == JOB_TIME.label || !entry.is_open(&row.workload))
    };
    Some(ResultDifference { a: whole(&pair.a, row.a), b: whole(&pair.b, row.b), ..row.clone() })
}

fn one(row: &ResultDifference, measure: &Measure) -> String {
    let show = |value: f64| row.quantity.format(value);
    match (row.a, row.b) {
        (Some(a), Some(b)) if !row.differs() => {
            format!("A and B have the same {}: {} and {}", measure.name, show(a), show(b))
        }
        (Some(a), Some(b)) => {
            let word = if b < a { measure.lower } else { measure.higher };
            format!("B has a {word} {}: {}, A has {} ({})", measure.name, show(b), show(a), percent(b / a))
        }
        (None, None) => {
            format!("A and B leave work unfinished, so neither has a {} of all flows", measure.name)
        }
        (None, _) => "A leaves work unfinished, B does not".to_owned(),
        (_, None) => "B leaves work unfinished, A does not".to_owned(),
    }
}

/// Formats a ratio as "+4.0 %", or as "2.4x" from a factor of two on.
pub(super) fn percent(over: f64) -> String {
    let percent = (over - 1.0) * 100.0;
    match percent {
        p if p >= 100.0 => format!("{over:.1}x"),
        p if p.abs() >= 9.95 => format!("{p:+.0} %"),
        p => format!("{p:+.1} %"),
    }
}

pub(super) fn shortened(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
