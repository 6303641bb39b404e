//! Verdict on a situation, in words derived from the runs: the best scheme, its advantage, and the schemes that lose.

use pathweave_records::figures::values;
use pathweave_records::{Quantity, RunResult, Summary};

use super::situation::SchemeComparison;

/// Relative difference below which figures are level.
const LEVEL: f64 = 0.005;

/// Figure by which schemes are compared. Lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// Time at which the last job is complete, in nanoseconds. For traffic that is given at the start.
    Completion,
    /// Slowdown that one flow in a hundred exceeds. For flows that arrive over time.
    TailSlowdown,
}

impl Measure {
    /// Returns the measure of a situation: completion if every run has jobs.
    pub(super) fn of(situation: &SchemeComparison<'_>) -> Measure {
        let jobs = situation.runs.iter().all(|(_, summary)| summary.jobs.count > 0);
        if jobs { Measure::Completion } else { Measure::TailSlowdown }
    }

    pub(super) fn show(self, value: f64) -> String {
        match self {
            Measure::Completion => Quantity::TimeNs.format_short(value),
            Measure::TailSlowdown => Quantity::Plain.format_short(value),
        }
    }

    /// Returns the title of the bars and curves.
    pub(super) fn title(self) -> &'static str {
        match self {
            Measure::Completion => "Time until everything has arrived",
            Measure::TailSlowdown => "P99 slowdown",
        }
    }

    fn value(self, summary: &Summary) -> Option<f64> {
        let flows = summary.measured();
        if flows.unfinished + flows.failed > 0 || summary.run.partial || flows.count == 0 {
            return None;
        }
        Some(match self {
            Measure::Completion => summary.jobs.completion_ns.max,
            Measure::TailSlowdown => flows.slowdown.p99,
        })
    }
}

/// Results of the schemes of a situation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparisonResult {
    pub(super) measure: Measure,
    /// Name and figure of each run, in their order. The figure is `None` if flows did not finish.
    pub(super) results: Vec<(String, Option<f64>)>,
    /// Run with the best figure.
    pub(super) best: Option<usize>,
    /// Runs whose slowdowns are relative to longer idle times than those of others.
    slower_idle: Vec<String>,
}

impl ComparisonResult {
    pub(super) fn of(situation: &SchemeComparison<'_>) -> ComparisonResult {
        let measure = Measure::of(situation);
        let one = |(_, summary): &(_, &Summary)| (summary.run.name.clone(), measure.value(summary));
        let verdict = ComparisonResult::from_figures(measure, situation.runs.iter().map(one).collect());
        let runs: Vec<&RunResult> = situation.runs.iter().map(|(run, _)| *run).collect();
        ComparisonResult { slower_idle: slower_idle(&runs), ..verdict }
    }

    fn from_figures(measure: Measure, standing: Vec<(String, Option<f64>)>) -> ComparisonResult {
        let figures = standing.iter().enumerate().filter_map(|(i, (_, figure))| Some((i, (*figure)?)));
        // The first of equals.
        let best = figures.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i);
        ComparisonResult { measure, results: standing, best, slower_idle: Vec::new() }
    }

    /// Returns the ratio of the first run's figure to the best one.
    pub(super) fn gain(&self) -> Option<f64> {
        let best = self.results[self.best?].1?;
        self.results[0].1.map(|base| base / best.max(f64::MIN_POSITIVE))
    }

    /// Returns the verdict in words, without a title and a full stop.
    pub(super) fn words(&self) -> String {
        let (base_name, base) = (&self.results[0].0, self.results[0].1);
        let Some((best, figure)) = self.best.and_then(|i| Some((i, self.results[i].1?))) else {
            return "no scheme finishes all flows".to_owned();
        };
        let name = &self.results[best].0;
        let mut parts = vec![match self.measure {
            Measure::Completion => format!("{name} is done first, after {}", self.measure.show(figure)),
            Measure::TailSlowdown => {
                format!("{name} has the lowest P99 slowdown, {}", self.measure.show(figure))
            }
        }];
        if let Some(base) = base.filter(|_| best > 0) {
            parts.push(self.beside_base(base, figure));
        }
        let (mut follow, mut level, mut lose, mut open) = (vec![], vec![], vec![], vec![]);
        for (i, (name, value)) in self.results.iter().enumerate().filter(|&(i, _)| i != best) {
            match (value, base) {
                (None, _) => open.push(name.clone()),
                _ if i == 0 => {}
                (Some(value), Some(base)) if (value / base - 1.0).abs() < LEVEL => level.push(name.clone()),
                (Some(value), Some(base)) if *value > base => lose.push((value / base, name)),
                (Some(value), _) => follow.push((value / figure, name)),
            }
        }
        let verb = |n: usize, one: &str, many: &str| if n == 1 { one.to_owned() } else { many.to_owned() };
        for (mut ranked, one, many) in [
            (follow, "follows".to_owned(), "follow".to_owned()),
            (lose, format!("loses to {base_name}"), format!("lose to {base_name}")),
        ] {
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let names: Vec<_> = ranked.iter().map(|(r, name)| format!("{name} ({})", more(*r))).collect();
            if !names.is_empty() {
                parts.push(format!("{} {}", list(&names), verb(names.len(), &one, &many)));
            }
        }
        if !level.is_empty() {
            parts.push(format!("{} {} level with {base_name}", list(&level), verb(level.len(), "is", "are")));
        }
        if !open.is_empty() {
            parts.push(format!("{} {} flows unfinished", list(&open), verb(open.len(), "leaves", "leave")));
        }
        if self.measure == Measure::TailSlowdown && !self.slower_idle.is_empty() {
            parts.push(idle_times(&self.slower_idle));
        }
        parts.join("; ")
    }

    fn beside_base(&self, base: f64, figure: f64) -> String {
        let (name, shown, ratio) = (&self.results[0].0, self.measure.show(base), base / figure);
        let (verb, twice, little) = match self.measure {
            Measure::Completion => ("takes", "as long", "longer"),
            Measure::TailSlowdown => ("has", "as much", "more"),
        };
        if ratio - 1.0 < LEVEL {
            format!("{name} is level ({shown})")
        } else if ratio < 1.5 {
            format!("{name} {verb} {} {little} ({shown})", &more(ratio)[1..])
        } else {
            format!("{name} {verb} {ratio:.1} times {twice} ({shown})")
        }
    }
}

/// Formats a ratio as "+4 %", or as "2.4x" from a factor of two on.
fn more(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent {
        p if p >= 100.0 => format!("{ratio:.1}x"),
        p if p >= 9.95 => format!("+{p:.0} %"),
        p => format!("+{p:.1} %"),
    }
}

/// Formats a list as "a, b and c".
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// Returns the runs whose flows take longer on an idle network than the same flows of another run, because their
/// messages take only one of several paths. Empty if a flow is unfinished, because the runs then measure different
/// flows.
fn slower_idle(runs: &[&RunResult]) -> Vec<String> {
    let idle = |run: &RunResult| {
        let figures = run.figures();
        let flows = figures.foreground();
        let count = flows.iter().map(|group| group.count).sum::<u64>();
        let ideals = values(&flows, |flow| Some(flow.ideal_fct_ps as f64));
        (count > 0 && ideals.len() as u64 == count).then(|| ideals.iter().sum::<f64>())
    };
    let Some(times) = runs.iter().map(|run| idle(run)).collect::<Option<Vec<f64>>>() else {
        return Vec::new();
    };
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let slower = runs.iter().zip(times).filter(|(_, time)| time / least - 1.0 > LEVEL);
    slower.map(|(run, _)| run.info.name.clone()).collect()
}

fn idle_times(slower: &[String]) -> String {
    let takes = if slower.len() == 1 { "takes" } else { "take" };
    format!(
        "slowdowns are over the idle time of a scheme's own paths: {} {takes} longer there, so compare times",
        list(slower)
    )
}

/// Returns a note for the table of a comparison in which slowdowns have different idle times; empty if they agree.
pub fn unlike_idle_times(runs: &[&RunResult]) -> String {
    let slower = slower_idle(runs);
    if slower.is_empty() { String::new() } else { format!("Note: {}.\n", idle_times(&slower)) }
}

/// Returns the result in one sentence: the best scheme and its advantage, the next ones, and those that lose to the
/// first.
///
/// # Panics
/// Panics if the situation has no runs.
pub fn sentence(situation: &SchemeComparison<'_>) -> String {
    format!("{}: {}.", situation.title, ComparisonResult::of(situation).words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{FlowRecord, FlowStatus};

    fn words(measure: Measure, standing: &[(&str, Option<f64>)]) -> String {
        let standing = standing.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        ComparisonResult::from_figures(measure, standing).words()
    }

    #[test]
    fn the_best_is_named_with_what_the_first_takes_and_who_follows_or_loses() {
        let standing = [("ecmp", 10.52e6), ("udmp", 2.1349e6), ("slow", 21.04e6), ("weave", 2.1483e6)];
        assert_eq!(
            words(Measure::Completion, &standing.map(|(name, ns)| (name, Some(ns)))),
            "udmp is done first, after 2.13 ms; ecmp takes 4.9 times as long (10.5 ms); weave (+0.6 %) follows; \
             slow (2.0x) loses to ecmp"
        );
        let standing = [("ecmp", Some(10.08)), ("a", Some(5.79)), ("weave", Some(4.85)), ("b", Some(13.28))];
        assert_eq!(
            words(Measure::TailSlowdown, &standing),
            "weave has the lowest P99 slowdown, 4.85; ecmp has 2.1 times as much (10.1); a (+19 %) follows; \
             b (+32 %) loses to ecmp"
        );
    }

    /// One flow of 10 us, which takes one of two ports under ecmp.
    #[test]
    fn slowdowns_over_unlike_idle_times_are_said_to_be() {
        let run = |name: &str, ideal_fct_ps| {
            let flow = FlowRecord {
                finish_ps: Some(10_000_000),
                ideal_fct_ps,
                status: FlowStatus::Finished,
                ..FlowRecord::default()
            };
            let mut run = RunResult { flows: vec![flow], ..RunResult::default() };
            run.info.name = name.to_owned();
            run
        };
        let (ecmp, rps, weave) = (run("ecmp", 10_000_000), run("rps", 5_000_000), run("weave", 5_000_000));
        assert_eq!(
            unlike_idle_times(&[&ecmp, &rps, &weave]),
            "Note: slowdowns are over the idle time of a scheme's own paths: ecmp takes longer there, so compare times.\n"
        );
        assert_eq!(unlike_idle_times(&[&rps, &weave]), "");
        let open = RunResult { flows: vec![FlowRecord::default()], ..run("dctcp", 0) };
        assert_eq!(unlike_idle_times(&[&ecmp, &rps, &open]), "", "another set of flows");
    }

    #[test]
    fn a_baseline_that_wins_and_one_that_is_level_are_told_so() {
        let worse = [("ecmp", Some(2.0)), ("x", Some(2.004)), ("y", Some(2.2)), ("z", Some(2.3))];
        assert_eq!(
            words(Measure::TailSlowdown, &worse),
            "ecmp has the lowest P99 slowdown, 2; y (+10 %) and z (+15 %) lose to ecmp; x is level with ecmp"
        );
        let level = [("ecmp", Some(2.004)), ("x", Some(2.0)), ("y", Some(2.4))];
        assert_eq!(
            words(Measure::TailSlowdown, &level),
            "x has the lowest P99 slowdown, 2; ecmp is level (2); y (+20 %) loses to ecmp"
        );
        let near = [("ecmp", Some(2.2)), ("x", Some(2.0))];
        assert_eq!(
            words(Measure::TailSlowdown, &near),
            "x has the lowest P99 slowdown, 2; ecmp has 10 % more (2.2)"
        );
    }

    #[test]
    fn unfinished_runs_have_no_figure() {
        let standing = [("ecmp", None), ("x", Some(2e3)), ("y", Some(3e3)), ("z", None)];
        assert_eq!(
            words(Measure::Completion, &standing),
            "x is done first, after 2 us; y (+50 %) follows; ecmp and z leave flows unfinished"
        );
        assert_eq!(words(Measure::Completion, &[("ecmp", None)]), "no scheme finishes all flows");
    }
}
