//! Verdict on a situation, in words derived from the runs: the best scheme, its advantage, and the schemes that lose.

use pathweave_records::Summary;

use super::situation::SchemeComparison;
use crate::few_flows::{Unsure, few_flows};
use crate::judge::{Judgement, LEVEL, Measure, Standing, slower_idle};

/// Results of the schemes of a situation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComparisonResult {
    pub(super) judged: Judgement,
    /// Names of the groups of jobs, if the job time is that of several.
    groups: Vec<String>,
    /// Runs whose flows take longer on an idle network than those of others.
    slower_idle: Vec<String>,
    /// Smallest number of finished flows of a run.
    flows: u64,
}

impl ComparisonResult {
    pub(super) fn of(situation: &SchemeComparison<'_>) -> ComparisonResult {
        let summaries: Vec<&Summary> = situation.runs.iter().map(|(_, summary)| *summary).collect();
        ComparisonResult::from_summaries(&summaries)
    }

    fn from_summaries(summaries: &[&Summary]) -> ComparisonResult {
        let judged = Judgement::of(summaries);
        let jobs = summaries
            .first()
            .filter(|_| judged.measure == Measure::JobTime)
            .map(|first| &first.jobs.by_group);
        let groups = jobs.filter(|jobs| jobs.len() > 1).into_iter().flatten().map(|jobs| jobs.group.clone());
        let flows = summaries.iter().map(|summary| summary.measured().finished).min().unwrap_or(0);
        let slower_idle = names_of(summaries, &slower_idle(summaries));
        ComparisonResult {
            groups: groups.collect(),
            slower_idle,
            flows,
            ..ComparisonResult::from_judgement(judged)
        }
    }

    fn from_judgement(judged: Judgement) -> ComparisonResult {
        ComparisonResult { judged, groups: Vec::new(), slower_idle: Vec::new(), flows: 0 }
    }

    /// Returns the ratio of the figure of the run that others are compared with to the best one.
    pub(super) fn gain(&self) -> Option<f64> {
        self.judged.over_best(self.judged.base())
    }

    /// Returns the verdict in words, without a title and a full stop.
    pub(super) fn words(&self) -> String {
        let Judgement { measure, runs, .. } = &self.judged;
        let first = self.judged.base();
        let (base_name, base) = (&runs[first].name, runs[first].value);
        let stopped = runs.iter().filter(|run| run.standing == Standing::Stopped);
        let stopped: Vec<String> = stopped.map(|run| run.name.clone()).collect();
        let Some((best, figure)) = self.judged.best().and_then(|i| Some((i, runs[i].value?))) else {
            return match measure {
                _ if !stopped.is_empty() => format!("{}, so none is judged", Self::were_stopped(&stopped)),
                Measure::JobTime if runs.len() == 1 => {
                    format!("{base_name} does not finish its jobs, so it has no job time")
                }
                Measure::JobTime => "no scheme finishes its jobs, so none has a job time".to_owned(),
                Measure::TailSlowdown | Measure::TailTime if runs.len() == 1 => {
                    format!("{base_name} leaves flows unfinished")
                }
                Measure::TailSlowdown | Measure::TailTime => "no scheme finishes all flows".to_owned(),
            };
        };
        let mut parts = self.first(best, figure);
        if let Some(base) = base.filter(|_| best != first) {
            parts.push(self.beside_base(base, figure));
        }
        let (mut even, mut follow, mut level, mut lose) = (vec![], vec![], vec![], vec![]);
        let (mut open, mut failed) = (vec![], vec![]);
        let ranked = runs.iter().enumerate().filter(|(_, run)| run.standing == Standing::Ranked);
        for (i, run) in ranked.filter(|&(i, _)| i != best) {
            let name = &run.name;
            match (run.value, base) {
                (None, _) if *measure != Measure::JobTime && run.has_failed_flows => {
                    failed.push(name.clone());
                }
                (None, _) => open.push(name.clone()),
                _ if i == first => {}
                (Some(value), _) if best != first && value / figure - 1.0 < LEVEL => even.push(name.clone()),
                (Some(value), Some(base)) if (value / base - 1.0).abs() < LEVEL => level.push(name.clone()),
                (Some(value), Some(base)) if value > base => lose.push((value / figure, name)),
                (Some(value), _) => follow.push((value / figure, name)),
            }
        }
        let verb = |n: usize, one: &str, many: &str| if n == 1 { one.to_owned() } else { many.to_owned() };
        if !even.is_empty() {
            let best = &runs[best].name;
            parts.push(format!("{} {} level with {best}", list(&even), verb(even.len(), "is", "are")));
        }
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
            let left = match measure {
                Measure::JobTime => verb(open.len(), "does not finish its job", "do not finish their job"),
                Measure::TailSlowdown | Measure::TailTime => {
                    verb(open.len(), "leaves flows unfinished", "leave flows unfinished")
                }
            };
            parts.push(format!("{} {left}", list(&open)));
        }
        if !failed.is_empty() {
            parts.push(format!("flows of {} fail", list(&failed)));
        }
        if !stopped.is_empty() {
            parts.push(Self::were_stopped(&stopped));
        }
        let estimates: Vec<String> = runs
            .iter()
            .filter(|run| run.standing == Standing::Estimate)
            .map(|run| run.name.clone())
            .collect();
        if !estimates.is_empty() {
            let (are, no) = if estimates.len() == 1 { ("is", "an estimate") } else { ("are", "estimates") };
            parts.push(format!("{} {are} {no} of flows and not ranked", list(&estimates)));
        }
        if *measure == Measure::TailTime {
            parts.push(format!(
                "by time, since on an idle network {} {} longer over {} own paths than others",
                list(&self.slower_idle),
                verb(self.slower_idle.len(), "takes", "take"),
                verb(self.slower_idle.len(), "its", "their")
            ));
        }
        let unsure = if self.has_rivals() { Unsure::Order } else { Unsure::Value };
        parts.extend(few_flows(self.flows, unsure).filter(|_| *measure != Measure::JobTime));
        parts.join("; ")
    }

    /// Returns true if several runs compete. A single one wins nothing.
    fn has_rivals(&self) -> bool {
        self.judged.runs.iter().filter(|run| run.standing == Standing::Ranked).count() > 1
    }

    /// Returns true if a run was stopped before its end.
    pub(super) fn was_stopped(&self) -> bool {
        self.judged.runs.iter().any(|run| run.standing == Standing::Stopped)
    }

    fn were_stopped(stopped: &[String]) -> String {
        let was = if stopped.len() == 1 { "was" } else { "were" };
        format!("{} {was} stopped before the end", list(stopped))
    }

    /// Returns the best run with its figure, and the one with the lowest mean if that is another measure.
    fn first(&self, best: usize, figure: f64) -> Vec<String> {
        let Judgement { measure, runs, .. } = &self.judged;
        let (name, shown) = (&runs[best].name, measure.show(figure));
        let mean = self.judged.lowest_mean().map(|(run, mean)| (run, measure.show(mean)));
        let groups = match &self.groups[..] {
            [] => String::new(),
            groups => format!(", the geometric mean of {}", list(groups)),
        };
        match (measure, mean) {
            (Measure::JobTime, _) if !self.has_rivals() => {
                vec![format!("{name} has a job time of {shown}{groups}")]
            }
            (Measure::JobTime, _) => vec![format!("{name} has the shortest job time, {shown}{groups}")],
            (tail, mean) if !self.has_rivals() => {
                let mean = mean.map_or(String::new(), |(_, mean)| format!(" and a mean of {mean}"));
                vec![format!("{name} has a {} of {shown}{mean}", tail.name())]
            }
            (tail, None) => vec![format!("{name} has the lowest {}, {shown}", tail.name())],
            (tail, Some((run, mean))) if run == best => {
                vec![format!("{name} has the lowest {}, {shown}, and the lowest mean, {mean}", tail.name())]
            }
            (tail, Some((run, mean))) => {
                let own =
                    runs[best].mean.map_or(String::new(), |mean| format!(" ({name} {})", measure.show(mean)));
                let lowest = format!("{} has the lowest mean, {mean}{own}", runs[run].name);
                vec![format!("{name} has the lowest {}, {shown}", tail.name()), lowest]
            }
        }
    }

    fn beside_base(&self, base: f64, figure: f64) -> String {
        let Judgement { measure, runs, .. } = &self.judged;
        let (name, shown) = (&runs[self.judged.base()].name, measure.show(base));
        let ratio = base / figure;
        let (verb, twice, little) = match measure {
            Measure::JobTime => ("takes", "as long", "longer"),
            Measure::TailSlowdown | Measure::TailTime => ("has", "as much", "more"),
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
pub(super) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn names_of(runs: &[&Summary], indices: &[usize]) -> Vec<String> {
    indices.iter().map(|&run| runs[run].run.name.clone()).collect()
}

/// Returns a note for the table of a comparison in which slowdowns have different idle times; empty if they agree.
pub fn unlike_idle_times(runs: &[&Summary]) -> String {
    let slower = names_of(runs, &slower_idle(runs));
    if slower.is_empty() {
        return String::new();
    }
    let takes = if slower.len() == 1 { "takes" } else { "take" };
    format!(
        "Note: slowdowns are over the idle time of a scheme's own paths: {} {takes} longer there, so compare times.\n",
        list(&slower)
    )
}

/// Returns the result in one sentence: the best scheme and its advantage, the next ones, and those that lose to the
/// first.
///
/// # Panics
/// Panics if the situation has no runs.
pub fn sentence(situation: &SchemeComparison<'_>) -> String {
    let words = ComparisonResult::of(situation).words();
    format!("{}: {words}.{}", situation.title, situation.missing_words())
}

/// Returns the result of a comparison in one sentence without a title.
pub(crate) fn words(runs: &[&Summary]) -> String {
    format!("{}.", ComparisonResult::from_summaries(runs).words())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Figures;
    use pathweave_records::{FlowRecord, FlowStatus, RunResult};

    fn result(measure: Measure, standing: &[(&str, Option<f64>)]) -> ComparisonResult {
        let figures = |&(name, value): &(&str, Option<f64>)| Figures {
            name: name.to_owned(),
            value,
            ..Figures::default()
        };
        ComparisonResult::from_judgement(Judgement::from_figures(
            measure,
            standing.iter().map(figures).collect(),
        ))
    }

    fn words(measure: Measure, standing: &[(&str, Option<f64>)]) -> String {
        result(measure, standing).words()
    }

    #[test]
    fn the_best_is_named_with_what_the_first_takes_and_who_follows_or_loses() {
        let standing = [("ecmp", 10.52e6), ("udmp", 2.1349e6), ("slow", 21.04e6), ("weave", 2.1483e6)];
        assert_eq!(
            words(Measure::JobTime, &standing.map(|(name, ns)| (name, Some(ns)))),
            "udmp has the shortest job time, 2.13 ms; ecmp takes 4.9 times as long (10.5 ms); weave (+0.6 %) follows; \
             slow (9.9x) loses to ecmp"
        );
        let standing = [("ecmp", Some(10.08)), ("a", Some(5.79)), ("weave", Some(4.85)), ("b", Some(13.28))];
        assert_eq!(
            words(Measure::TailSlowdown, &standing),
            "weave has the lowest P99 slowdown, 4.85; ecmp has 2.1 times as much (10.1); a (+19 %) follows; \
             b (2.7x) loses to ecmp"
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
            Summary::from_run(&run)
        };
        let (ecmp, rps, weave) = (run("ecmp", 10_000_000), run("rps", 5_000_000), run("weave", 5_000_000));
        assert_eq!(
            unlike_idle_times(&[&ecmp, &rps, &weave]),
            "Note: slowdowns are over the idle time of a scheme's own paths: ecmp takes longer there, so compare times.\n"
        );
        assert_eq!(unlike_idle_times(&[&rps, &weave]), "");
        assert_eq!(
            ComparisonResult::from_summaries(&[&ecmp, &rps]).words(),
            "ecmp has the lowest P99 completion time, 10 us, and the lowest mean, 10 us; rps is level with ecmp; \
             by time, since on an idle network ecmp takes longer over its own paths than others; \
             a P99 of 1 flow rests on the slowest, so another seed may turn the order"
        );
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
        let ties =
            [("ecmp", Some(3.0)), ("x", Some(2.0)), ("y", Some(2.0)), ("z", Some(2.009)), ("u", Some(2.02))];
        assert_eq!(
            words(Measure::TailSlowdown, &ties),
            "x has the lowest P99 slowdown, 2; ecmp has 1.5 times as much (3); y and z are level with x; u (+1.0 %) \
             follows"
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
            words(Measure::JobTime, &standing),
            "x has the shortest job time, 2 us; y (+50 %) follows; ecmp and z do not finish their job"
        );
        assert_eq!(
            words(Measure::JobTime, &[("ecmp", None)]),
            "ecmp does not finish its jobs, so it has no job time"
        );
        assert_eq!(
            words(Measure::JobTime, &[("ecmp", None), ("x", None)]),
            "no scheme finishes its jobs, so none has a job time"
        );
        assert_eq!(
            words(Measure::TailSlowdown, &standing[..2]),
            "x has the lowest P99 slowdown, 2000; ecmp leaves flows unfinished"
        );
        assert_eq!(words(Measure::TailSlowdown, &standing[..1]), "ecmp leaves flows unfinished");
        let mut failed = result(Measure::TailSlowdown, &standing[..2]);
        failed.judged.runs[0].has_failed_flows = true;
        assert_eq!(failed.words(), "x has the lowest P99 slowdown, 2000; flows of ecmp fail");
    }

    #[test]
    fn a_single_run_wins_nothing() {
        assert_eq!(words(Measure::JobTime, &[("rps", Some(2e3))]), "rps has a job time of 2 us");
        let figures =
            Figures { name: "rps".to_owned(), value: Some(4.0), mean: Some(2.0), ..Figures::default() };
        let estimate =
            Figures { name: "rps flow".to_owned(), standing: Standing::Estimate, ..figures.clone() };
        let of = |runs| {
            ComparisonResult::from_judgement(Judgement::from_figures(Measure::TailSlowdown, runs)).words()
        };
        let alone = "rps has a P99 slowdown of 4 and a mean of 2";
        assert_eq!(of(vec![figures.clone()]), alone);
        assert_eq!(
            of(vec![figures, estimate]),
            format!("{alone}; rps flow is an estimate of flows and not ranked")
        );
    }

    #[test]
    fn a_p99_of_few_flows_is_said_to_be_one_where_it_decides() {
        let of = |measure, flows| {
            let standing = [("a", Some(2.0)), ("b", Some(3.0))];
            ComparisonResult { flows, ..result(measure, &standing) }.words()
        };
        let caution = "; a P99 of 133 flows rests on the 2 slowest, so another seed may turn the order";
        assert!(of(Measure::TailSlowdown, 133).ends_with(caution), "{}", of(Measure::TailSlowdown, 133));
        assert!(!of(Measure::TailSlowdown, 1_000).contains("seed"));
        assert!(!of(Measure::JobTime, 133).contains("seed"));
    }

    #[test]
    fn stopped_runs_and_estimates_are_told_from_runs_that_did_not_finish() {
        let of = |standings: [(Option<f64>, Standing); 3]| {
            let figures = |(name, (value, standing)): (&str, (Option<f64>, Standing))| Figures {
                name: name.to_owned(),
                value,
                standing,
                ..Figures::default()
            };
            let runs = ["a", "b", "c"].into_iter().zip(standings).map(figures).collect();
            ComparisonResult::from_judgement(Judgement::from_figures(Measure::TailSlowdown, runs)).words()
        };
        let (ranked, stopped, estimate) = (Standing::Ranked, Standing::Stopped, Standing::Estimate);
        assert_eq!(
            of([(Some(4.0), ranked), (None, stopped), (None, ranked)]),
            "a has the lowest P99 slowdown, 4; c leaves flows unfinished; b was stopped before the end"
        );
        assert_eq!(
            of([(None, stopped), (None, stopped), (None, ranked)]),
            "a and b were stopped before the end, so none is judged"
        );
        assert_eq!(
            of([(Some(1.0), estimate), (Some(4.0), ranked), (Some(2.0), ranked)]),
            "c has the lowest P99 slowdown, 2; b has 2.0 times as much (4); a is an estimate of flows and not ranked"
        );
    }

    #[test]
    fn the_jobs_are_named_if_the_time_is_of_several() {
        let several = ComparisonResult {
            groups: ["a", "b", "c"].map(str::to_owned).to_vec(),
            ..result(Measure::JobTime, &[("ecmp", Some(3e3)), ("x", Some(2e3))])
        };
        assert_eq!(
            several.words(),
            "x has the shortest job time, 2 us, the geometric mean of a, b and c; ecmp takes 1.5 times as long (3 us)"
        );
    }

    #[test]
    fn the_lowest_mean_is_named_beside_the_lowest_p99() {
        let of = |means: [f64; 2]| {
            let figures = |(name, value, mean): (&str, f64, f64)| Figures {
                name: name.to_owned(),
                value: Some(value),
                mean: Some(mean),
                ..Figures::default()
            };
            let runs = [("a", 4.0, means[0]), ("b", 5.0, means[1])].map(figures).to_vec();
            ComparisonResult::from_judgement(Judgement::from_figures(Measure::TailSlowdown, runs)).words()
        };
        assert_eq!(
            of([1.5, 2.0]),
            "a has the lowest P99 slowdown, 4, and the lowest mean, 1.5; b (+25 %) loses to a"
        );
        assert_eq!(
            of([2.0, 1.5]),
            "a has the lowest P99 slowdown, 4; b has the lowest mean, 1.5 (a 2); b (+25 %) loses to a"
        );
    }
}
