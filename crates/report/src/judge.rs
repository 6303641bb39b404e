//! Judgement of the runs of a comparison: the measure, and the order of the runs by it.

use pathweave_records::{Distribution, Fidelity, FlowSummary, Quantity, Summary};
use serde::{Serialize, Serializer};

/// Figure by which runs are compared. Lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Time until the last message of the jobs is there, in nanoseconds: for traffic that is given at the start or
    /// begins when other traffic ends.
    JobTime,
    /// Slowdown that one flow in a hundred exceeds; among equals, the mean slowdown. For flows that arrive over time.
    TailSlowdown,
    /// Completion time that one flow in a hundred exceeds, and the mean; for such flows if their times on an idle network
    /// depend on the scheme. Slowdowns over unlike times say nothing of schemes.
    TailTime,
}

/// Relative difference below which figures are level.
pub(crate) const LEVEL: f64 = 0.005;

impl Measure {
    /// Returns the measure of a comparison: job time if every run has jobs.
    pub(crate) fn of(runs: &[&Summary]) -> Measure {
        match runs.iter().all(|summary| summary.jobs.count > 0) {
            true => Measure::JobTime,
            false if slower_idle(runs).is_empty() => Measure::TailSlowdown,
            false => Measure::TailTime,
        }
    }

    /// Returns the name of the measure.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Measure::JobTime => "job time",
            Measure::TailSlowdown => "P99 slowdown",
            Measure::TailTime => "P99 completion time",
        }
    }

    pub(crate) fn quantity(self) -> Quantity {
        match self {
            Measure::JobTime | Measure::TailTime => Quantity::TimeNs,
            Measure::TailSlowdown => Quantity::Plain,
        }
    }

    pub(crate) fn show(self, value: f64) -> String {
        self.quantity().format_short(value)
    }
}

impl Serialize for Measure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// Part of a run in the ranking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The run is ranked.
    #[default]
    Ranked,
    /// The run was stopped before its end, so its figures are not those of all its flows.
    Stopped,
    /// Flows beside runs by packets: an estimate of these rather than another scheme.
    Estimate,
}

/// Figures of a run that decide its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Name of the run.
    pub(crate) name: String,
    /// Value of the measure. `None` if a job, or for the slowdown a flow, did not finish.
    pub(crate) value: Option<f64>,
    /// Mean of that of which the P99 is the measure.
    pub(crate) mean: Option<f64>,
    /// Number of flows that did not finish.
    pub(crate) unfinished: u64,
    pub(crate) standing: Standing,
    /// True if a flow ended with an error.
    pub(crate) has_failed_flows: bool,
}

impl Figures {
    /// Returns the word for a run without a value. A flow that failed is not unfinished: it ended, with an error.
    pub(crate) fn without_value(&self) -> &'static str {
        match self.standing {
            Standing::Stopped => "stopped",
            _ if self.has_failed_flows => "failed",
            Standing::Ranked | Standing::Estimate => "unfinished",
        }
    }
}

/// Runs of a comparison with their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) measure: Measure,
    /// Figures in the order of the runs.
    pub(crate) runs: Vec<Figures>,
    /// Indices of the runs, best first. Runs without a value and then estimates come last.
    pub(crate) order: Vec<usize>,
}

impl Judgement {
    pub(crate) fn of(summaries: &[&Summary]) -> Judgement {
        let measure = Measure::of(summaries);
        let by_packets = |summary: &&Summary| summary.run.fidelity == Fidelity::Packet;
        let beside_packets = summaries.iter().any(by_packets);
        let figures = |summary: &&Summary| {
            let (value, mean) = match measure {
                Measure::JobTime => (summary.jobs.time_ns, None),
                Measure::TailSlowdown => of_all(summary, |flows| &flows.slowdown).unzip(),
                Measure::TailTime => of_all(summary, |flows| &flows.fct_ns).unzip(),
            };
            let standing = match () {
                () if summary.run.partial => Standing::Stopped,
                () if beside_packets && !by_packets(summary) => Standing::Estimate,
                () => Standing::Ranked,
            };
            let value = value.filter(|_| standing != Standing::Stopped);
            let flows = summary.measured();
            Figures {
                name: summary.run.name.clone(),
                value,
                mean,
                unfinished: flows.unfinished + flows.failed,
                standing,
                has_failed_flows: flows.failed > 0,
            }
        };
        Judgement::from_figures(measure, summaries.iter().map(figures).collect())
    }

    pub(crate) fn from_figures(measure: Measure, runs: Vec<Figures>) -> Judgement {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        let key =
            |run: &usize| [runs[*run].value, runs[*run].mean].map(|value| value.unwrap_or(f64::INFINITY));
        // The first of equals stays first.
        order.sort_by(|a, b| {
            let estimate = |run: &usize| runs[*run].standing == Standing::Estimate;
            let (left, right) = (key(a), key(b));
            let values = left[0].total_cmp(&right[0]).then(left[1].total_cmp(&right[1]));
            let unfinished = runs[*a].unfinished.cmp(&runs[*b].unfinished);
            estimate(a).cmp(&estimate(b)).then(values).then(unfinished)
        });
        Judgement { measure, runs, order }
    }

    /// Returns the best run, or `None` if no ranked run has a value.
    pub(crate) fn best(&self) -> Option<usize> {
        let first = self.order.first().copied();
        first.filter(|&run| self.runs[run].value.is_some() && self.runs[run].standing == Standing::Ranked)
    }

    /// Returns the run that others are compared with: the first that is no estimate.
    pub(crate) fn base(&self) -> usize {
        self.runs.iter().position(|run| run.standing != Standing::Estimate).unwrap_or(0)
    }

    /// Returns the ratio of a run's value to the best one.
    pub(crate) fn over_best(&self, run: usize) -> Option<f64> {
        let best = self.runs[self.best()?].value?;
        self.runs[run]
            .value
            .map(|value| if value == best { 1.0 } else { value / best.max(f64::MIN_POSITIVE) })
    }

    /// Returns the run with the lowest mean slowdown among those with a value.
    pub(crate) fn lowest_mean(&self) -> Option<(usize, f64)> {
        let ranked = self.runs.iter().enumerate().filter(|(_, run)| run.standing == Standing::Ranked);
        let finished = ranked.filter(|(_, run)| run.value.is_some());
        let means = finished.filter_map(|(index, run)| Some((index, run.mean?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Returns P99 and mean of a figure of all flows, or `None` if a flow is missing among them.
fn of_all(summary: &Summary, figure: fn(&FlowSummary) -> &Distribution) -> Option<(f64, f64)> {
    let figure = figure(all_flows(summary)?);
    Some((figure.p99, figure.mean))
}

/// Returns the figures of the flows of a run in which each of them finished.
fn all_flows(summary: &Summary) -> Option<&FlowSummary> {
    let flows = summary.measured();
    let whole = flows.unfinished + flows.failed == 0 && !summary.run.partial && flows.count > 0;
    whole.then_some(flows)
}

/// Returns the runs, as indices, whose flows take longer on an idle network than the same flows of another run, because
/// their messages take only one of several paths. Only runs in which all flows finished count, and only if these are
/// equally many.
pub(crate) fn slower_idle(runs: &[&Summary]) -> Vec<usize> {
    let whole: Vec<(usize, &FlowSummary)> =
        runs.iter().enumerate().filter_map(|(run, summary)| Some((run, all_flows(summary)?))).collect();
    if whole.windows(2).any(|pair| pair[0].1.count != pair[1].1.count) {
        return Vec::new();
    }
    let mean = |(_, flows): &(usize, &FlowSummary)| flows.ideal_fct_ns.mean;
    let least = whole.iter().map(mean).fold(f64::INFINITY, f64::min);
    let slower = whole.iter().filter(|run| mean(run) > least * (1.0 + LEVEL));
    slower.map(|(run, _)| *run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{EndReason, FlowRecord, FlowStatus, JobRecord, RunResult};

    /// Run with flows of these slowdowns, and with a job in each group that takes these microseconds.
    fn run(name: &str, slowdowns: &[u64], jobs: &[Option<u64>]) -> Summary {
        let flow = |&slowdown: &u64| FlowRecord {
            finish_ps: Some(slowdown * 1_000),
            ideal_fct_ps: 1_000,
            status: FlowStatus::Finished,
            ..FlowRecord::default()
        };
        let job = |(group, us): (u16, &Option<u64>)| JobRecord {
            group,
            finish_ps: us.map(|us| us * 1_000_000),
            ..JobRecord::default()
        };
        let mut run = RunResult {
            flows: slowdowns.iter().map(flow).collect(),
            jobs: (0..).zip(jobs).map(job).collect(),
            ..RunResult::default()
        };
        run.info.name = name.to_owned();
        run.info.schemes = vec![name.to_owned()];
        run.info.groups = (0..jobs.len().max(1)).map(|group| format!("g{group}")).collect();
        run.info.roles = vec![pathweave_records::Role::Foreground; run.info.groups.len()];
        Summary::from_run(&run)
    }

    fn judged(runs: &[Summary]) -> Judgement {
        Judgement::of(&runs.iter().collect::<Vec<_>>())
    }

    fn names(judgement: &Judgement) -> Vec<&str> {
        judgement.order.iter().map(|&run| judgement.runs[run].name.as_str()).collect()
    }

    #[test]
    fn jobs_decide_although_the_slowdowns_say_otherwise() {
        let runs = [run("few late", &[1, 1, 9], &[Some(9)]), run("all late", &[6, 6, 6], &[Some(6)])];
        let found = judged(&runs);
        assert_eq!((found.measure, names(&found)), (Measure::JobTime, vec!["all late", "few late"]));
        assert_eq!((found.over_best(0), found.over_best(1)), (Some(1.5), Some(1.0)));
    }

    #[test]
    fn the_first_of_equal_job_times_is_first() {
        let runs = [run("c", &[9], &[Some(7)]), run("a", &[2], &[Some(5)]), run("b", &[1], &[Some(5)])];
        let found = judged(&runs);
        assert_eq!(names(&found), ["a", "b", "c"]);
        assert_eq!([0, 1, 2].map(|run| found.over_best(run)), [Some(1.4), Some(1.0), Some(1.0)]);
    }

    #[test]
    fn an_unfinished_job_has_no_time_and_the_last_place() {
        let runs = [run("open", &[1], &[Some(1), None]), run("slow", &[8], &[Some(80), Some(80)])];
        let found = judged(&runs);
        assert_eq!(names(&found), ["slow", "open"]);
        assert_eq!((found.runs[0].value, found.over_best(0)), (None, None));
        let none = judged(&runs[..1]);
        assert_eq!((none.best(), none.over_best(0)), (None, None));
    }

    #[test]
    fn runs_of_flows_do_not_compete_with_runs_of_packets() {
        let mut runs = [run("flow", &[1, 1], &[]), run("packet", &[2, 2], &[]), run("worse", &[3, 3], &[])];
        runs[0].run.fidelity = Fidelity::Flow;
        let found = judged(&runs);
        assert_eq!(names(&found), ["packet", "worse", "flow"]);
        assert_eq!((found.base(), found.best(), found.lowest_mean()), (1, Some(1), Some((1, 2.0))));
        // Among themselves they do.
        let flows = judged(&runs[..1]);
        assert_eq!((flows.base(), flows.best()), (0, Some(0)));
    }

    #[test]
    fn a_run_that_was_stopped_has_no_value() {
        let mut runs = [run("whole", &[5], &[]), run("stopped", &[1], &[])];
        runs[1].run.partial = true;
        let found = judged(&runs);
        assert_eq!((names(&found), found.runs[1].standing), (vec!["whole", "stopped"], Standing::Stopped));
        assert_eq!(found.best(), Some(0));
    }

    #[test]
    fn several_jobs_weigh_alike() {
        // The square root of 2 x 50 is 10, that of 4 x 36 is 12, although the sum of the second is smaller.
        let runs = [run("x", &[1], &[Some(4), Some(36)]), run("y", &[1], &[Some(2), Some(50)])];
        let found = judged(&runs);
        assert_eq!(names(&found), ["y", "x"]);
        assert!((found.over_best(0).unwrap() - 1.2).abs() < 1e-9);
    }

    #[test]
    fn without_jobs_the_p99_decides_and_then_the_mean() {
        let runs = [run("a", &[4, 4], &[]), run("b", &[2, 4], &[]), run("c", &[1, 5], &[])];
        let found = judged(&runs);
        assert_eq!((found.measure, names(&found)), (Measure::TailSlowdown, vec!["b", "a", "c"]));
        // Means 4, 3, 3.
        assert_eq!(found.lowest_mean(), Some((1, 3.0)));
        let mut open = run("open", &[1, 1], &[]);
        open.overall.unfinished = 1;
        let mut cut = run("cut", &[1, 1], &[]);
        cut.run.partial = true;
        cut.run.ended = EndReason::Interrupted;
        let mut failed = run("failed", &[1, 1], &[]);
        failed.overall.failed = 1;
        let found = judged(&[open, cut, run("a", &[4], &[]), failed]);
        assert_eq!(names(&found), ["a", "cut", "open", "failed"]);
        let words = [0, 1, 3].map(|run| found.runs[run].without_value());
        assert_eq!(words, ["unfinished", "stopped", "failed"]);
    }

    /// Two flows. Under "one" they take one of two paths, and twice as long on an idle network.
    #[test]
    fn slowdowns_over_unlike_idle_times_do_not_decide() {
        let run = |name: &str, ideal_ps: u64, finish_ps: [u64; 2]| {
            let flow = |finish_ps| FlowRecord {
                finish_ps: Some(finish_ps),
                ideal_fct_ps: ideal_ps,
                status: FlowStatus::Finished,
                ..FlowRecord::default()
            };
            let mut run = RunResult { flows: finish_ps.map(flow).to_vec(), ..RunResult::default() };
            run.info.name = name.to_owned();
            Summary::from_run(&run)
        };
        let (one, all) = (run("one", 8_000, [8_000, 8_000]), run("all", 4_000, [6_000, 7_000]));
        let found = judged(&[one.clone(), all.clone()]);
        assert_eq!((found.measure, names(&found)), (Measure::TailTime, vec!["all", "one"]));
        assert_eq!((found.runs[0].value, found.runs[1].mean), (Some(8.0), Some(6.5)));
        assert_eq!(slower_idle(&[&one, &all]), [0]);
        assert_eq!(judged(&[all.clone(), all.clone()]).measure, Measure::TailSlowdown);
        // What finished of another set of flows is no measure of idle times.
        let mut open = one;
        open.overall.unfinished = 1;
        assert_eq!(judged(&[open, all]).measure, Measure::TailSlowdown);
    }

    #[test]
    fn one_run_without_jobs_leaves_only_the_slowdowns() {
        let runs = [run("a", &[4], &[Some(4)]), run("b", &[2], &[])];
        assert_eq!(judged(&runs).measure, Measure::TailSlowdown);
    }
}
