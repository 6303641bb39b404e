//! Critical paths of jobs: chains of computations and messages that end with the job's last one, with a description
//! in words.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::activities::{ActivityKind, ActivityLabel, ActivityRecord};
use crate::described::described;
use crate::exposure::IterationSummary;
use crate::format::{Quantity, ns};
use crate::names::named_enum;
use crate::records::{LinkTotals, RunResult};

named_enum! {
    /// Kind of a step of a critical path.
    #[derive(Default)]
    StepKind {
        /// A computation.
        #[default] Computation = "computation",
        /// A message, from its post until its successor could begin.
        Message = "message",
        /// Time between two tasks: a delay of the workload, a notification, or a core busy with another computation.
        Wait = "wait",
    }
}

/// A step of the critical path of a job. Each step begins when the one before it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CriticalStep {
    /// Job of the path, an index into [`RunResult::jobs`].
    pub job: u32,
    /// Number of the step on the path.
    pub step: u32,
    /// Kind of the step.
    pub kind: StepKind,
    /// Host that computes, sends or waits.
    pub host: u32,
    /// Host that receives.
    pub peer_host: Option<u32>,
    /// Message of the step, an index into [`RunResult::flows`].
    pub flow: Option<u32>,
    /// Label of the step, an index into [`RunResult::labels`].
    pub label: Option<u32>,
    /// Begin of the step.
    pub start_ps: u64,
    /// End of the step.
    pub finish_ps: u64,
    /// Time of the message on an idle network.
    pub ideal_ps: Option<u64>,
}

impl CriticalStep {
    /// Returns the duration of the step.
    pub fn time_ps(&self) -> u64 {
        self.finish_ps.saturating_sub(self.start_ps)
    }
    /// Returns the time of a message beyond its time on an idle network.
    pub fn lost_ps(&self) -> Option<u64> {
        Some(self.time_ps().saturating_sub(self.ideal_ps?))
    }
}

described! {
    /// Critical path of a job.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct CriticalPathSummary {
        /// Number of the job.
        pub job: u32,
        /// Name of the job.
        pub name: String,
        /// Description in words: the computation, the collective, the link or rank that matters.
        pub words: String,
        /// Number of steps of the path; critical.parquet has them.
        pub steps: u64,
        /// Time from the begin of the first step to the end of the last one.
        pub time_ns: f64,
        /// Part of that time spent in computation.
        pub computation_ns: f64,
        /// Part of that time spent in messages, by kind: "DP all-reduce", "PP send".
        pub communication_ns: BTreeMap<String, f64>,
        /// Time of the messages beyond their times on an idle network.
        pub lost_ns: f64,
        /// Part of that time spent in delays, notifications, and waiting for cores busy with other computations.
        pub wait_ns: f64,
    }
}

/// Ratio to the median of the ranks from which a computation counts as slow.
const SLOW: f64 = 1.1;
/// Smallest share of a path that is mentioned.
const SMALL: f64 = 0.01;

/// Returns the critical path of a job in the order of time; empty if the job has none.
pub fn steps_of(run: &RunResult, job: u32) -> &[CriticalStep] {
    let first = run.critical.partition_point(|step| step.job < job);
    let steps = run.critical[first..].partition_point(|step| step.job == job);
    &run.critical[first..first + steps]
}

/// Returns the critical paths of the jobs in `iterations`, in their order. Jobs without a path are left out.
pub(crate) fn critical_paths(run: &RunResult, iterations: &[IterationSummary]) -> Vec<CriticalPathSummary> {
    let computations = Computations::new(run);
    let of = |iteration: &IterationSummary| {
        let steps = steps_of(run, iteration.job);
        (!steps.is_empty()).then(|| summary(run, &computations, iteration, steps))
    };
    iterations.iter().filter_map(of).collect()
}

fn kind_of(run: &RunResult, step: &CriticalStep) -> String {
    let label = step.label.and_then(|label| run.labels.get(label as usize));
    label.map_or_else(|| "messages".to_owned(), ActivityLabel::kind)
}

/// Computations of a run, sorted by job.
struct Computations<'a>(Vec<&'a ActivityRecord>);

impl<'a> Computations<'a> {
    fn new(run: &'a RunResult) -> Self {
        let mut all: Vec<_> =
            run.activities.iter().filter(|activity| activity.kind == ActivityKind::Computation).collect();
        all.sort_by_key(|activity| activity.job);
        Computations(all)
    }

    fn of(&self, job: u32) -> &[&'a ActivityRecord] {
        let first = self.0.partition_point(|activity| activity.job < Some(job));
        let count = self.0[first..].partition_point(|activity| activity.job == Some(job));
        &self.0[first..first + count]
    }
}

fn summary(
    run: &RunResult,
    computations: &Computations<'_>,
    iteration: &IterationSummary,
    steps: &[CriticalStep],
) -> CriticalPathSummary {
    let mut out = CriticalPathSummary {
        job: iteration.job,
        name: iteration.name.clone(),
        steps: steps.len() as u64,
        ..CriticalPathSummary::default()
    };
    for step in steps {
        let time_ns = ns(step.time_ps());
        out.time_ns += time_ns;
        match step.kind {
            StepKind::Computation => out.computation_ns += time_ns,
            StepKind::Wait => out.wait_ns += time_ns,
            StepKind::Message => {
                *out.communication_ns.entry(kind_of(run, step)).or_default() += time_ns;
                out.lost_ns += ns(step.lost_ps().unwrap_or(0));
            }
        }
    }
    out.words = words(run, computations, &out, steps);
    out
}

/// Sums times by key, and returns the sums, largest first.
fn ranked<K: Ord + Clone>(times: impl Iterator<Item = (K, f64)>) -> Vec<(K, f64)> {
    let mut sums: BTreeMap<K, f64> = BTreeMap::new();
    times.for_each(|(key, time)| *sums.entry(key).or_default() += time);
    let mut all: Vec<(K, f64)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn words(
    run: &RunResult,
    computations: &Computations<'_>,
    path: &CriticalPathSummary,
    steps: &[CriticalStep],
) -> String {
    let share = |time_ns: f64| Quantity::Percent.format(time_ns / path.time_ns.max(f64::MIN_POSITIVE));
    let label = |step: &CriticalStep| run.labels.get(step.label? as usize);
    let part = |step: &CriticalStep| label(step).map(ActivityLabel::description);
    let mut parts: Vec<(f64, String)> = Vec::new();
    let computed = || steps.iter().filter(|step| step.kind == StepKind::Computation);
    if path.computation_ns > 0.0 {
        let all = ranked(computed().map(|step| ((part(step), step.host), ns(step.time_ps()))));
        let most = all.first().map(|((name, host), time)| {
            let name = name.clone().unwrap_or_else(|| "computation without a name".to_owned());
            format!(", most of it \"{name}\" at {}: {}", node(run, *host), Quantity::TimeNs.format(*time))
        });
        parts.push((path.computation_ns, format!("computation{}", most.unwrap_or_default())));
    }
    for (kind, &time_ns) in &path.communication_ns {
        let of_kind =
            || steps.iter().filter(|step| step.kind == StepKind::Message && kind_of(run, step) == *kind);
        let all = ranked(of_kind().filter_map(|step| Some((part(step)?, ns(step.time_ps())))));
        let most = match all.as_slice() {
            [] | [_] => String::new(),
            [(name, time), ..] => format!(", most of it \"{name}\": {}", Quantity::TimeNs.format(*time)),
        };
        parts.push((time_ns, format!("{kind}{most}")));
    }
    if path.wait_ns > 0.0 {
        parts.push((path.wait_ns, "waiting between tasks".to_owned()));
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let large = parts.iter().filter(|(time, _)| *time >= SMALL * path.time_ns);
    let mut sentences: Vec<String> = vec![format!(
        "{}: {}",
        Quantity::TimeNs.format(path.time_ns),
        large.map(|(time, what)| format!("{} {what}", share(*time))).collect::<Vec<_>>().join("; ")
    )];
    sentences.extend(slow_rank(run, computations.of(path.job), steps));
    sentences.extend(slow_message(run, path, steps));
    sentences.join(". ")
}

/// Time that a host spent on the computations of a label, and the time that they take without stragglers.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    time_ps: u64,
    work_ps: u64,
}

impl Spent {
    /// Returns the time over that without stragglers.
    fn pace(self) -> f64 {
        self.time_ps as f64 / self.work_ps.max(1) as f64
    }
}

/// Excess of a rank on the path over the median of all ranks.
struct Excess {
    beyond_ps: u64,
    label: u32,
    host: u32,
    times: f64,
}

/// Describes the rank on the path whose computations take longer than the same ones of other ranks: because it is
/// slower at its work, or because it has more of it.
fn slow_rank(run: &RunResult, of_job: &[&ActivityRecord], steps: &[CriticalStep]) -> Vec<String> {
    let on_path: BTreeSet<(u32, u32)> = steps
        .iter()
        .filter(|step| step.kind == StepKind::Computation)
        .filter_map(|step| Some((step.label?, step.host)))
        .collect();
    let mut sums: BTreeMap<u32, BTreeMap<u32, Spent>> = BTreeMap::new();
    for activity in of_job {
        if let Some(finish_ps) = activity.finish_ps {
            let spent = sums.entry(activity.label).or_default().entry(activity.host).or_default();
            spent.time_ps += finish_ps - activity.start_ps;
            spent.work_ps += activity.nominal_ps.unwrap_or(finish_ps - activity.start_ps);
        }
    }
    let (mut slowest, mut busiest): (Option<Excess>, Option<Excess>) = (None, None);
    let put = |worst: &mut Option<Excess>, excess: Excess| {
        if excess.times >= SLOW && worst.as_ref().is_none_or(|worst| excess.beyond_ps > worst.beyond_ps) {
            *worst = Some(excess);
        }
    };
    for (&label, of_host) in sums.iter().filter(|(_, of_host)| of_host.len() > 2) {
        let usual_pace = median(of_host.values().map(|spent| spent.pace()));
        let usual_work = median(of_host.values().map(|spent| spent.work_ps as f64));
        for (&host, spent) in of_host.iter().filter(|(host, _)| on_path.contains(&(label, **host))) {
            let usual_ps = (spent.work_ps as f64 * usual_pace) as u64;
            let beyond_ps = spent.time_ps.saturating_sub(usual_ps);
            put(&mut slowest, Excess { beyond_ps, label, host, times: spent.pace() / usual_pace });
            let beyond_ps = spent.work_ps.saturating_sub(usual_work as u64);
            put(
                &mut busiest,
                Excess { beyond_ps, label, host, times: spent.work_ps as f64 / usual_work.max(1.0) },
            );
        }
    }
    let say = |excess: Excess, why: &str, it: &str| {
        let name = run.labels.get(excess.label as usize)?.description();
        Some((
            excess.beyond_ps,
            format!(
                "{} {why}: \"{name}\" {it} {:.2} times the median of all ranks, {} more",
                node(run, excess.host),
                excess.times,
                Quantity::TimeNs.format(ns(excess.beyond_ps))
            ),
        ))
    };
    let slow = slowest.and_then(|excess| say(excess, "is slow", "takes it"));
    let busy = busiest.and_then(|excess| say(excess, "has more to compute", "is"));
    let mut said: Vec<(u64, String)> = slow.into_iter().chain(busy).collect();
    said.sort_by_key(|(beyond_ps, _)| std::cmp::Reverse(*beyond_ps));
    said.into_iter().map(|(_, sentence)| sentence).collect()
}

/// Returns the lower median.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = values.collect();
    all.sort_unstable_by(f64::total_cmp);
    all[(all.len() - 1) / 2]
}

/// Describes the message on the path with the largest delay, and the busier link at its ends.
fn slow_message(run: &RunResult, path: &CriticalPathSummary, steps: &[CriticalStep]) -> Option<String> {
    if path.lost_ns < SMALL * path.time_ns {
        return None;
    }
    let lost = |step: &&CriticalStep| step.lost_ps().unwrap_or(0);
    let message = steps.iter().filter(|step| step.kind == StepKind::Message).max_by_key(lost)?;
    let (from, to) = (message.host, message.peer_host?);
    let flow = message.flow?;
    let at_ends = run.links.iter().filter(|link| link.from_node == from || link.to_node == to);
    let busy = |link: &LinkTotals| link.utilisation(run.info.simulated_ps);
    let busiest = at_ends.max_by(|a, b| busy(a).total_cmp(&busy(b)));
    let link = busiest.map(|link| {
        format!(
            "; of the links at its ends {} to {} was busiest, {} of the run",
            node(run, link.from_node),
            node(run, link.to_node),
            Quantity::Percent.format(busy(link))
        )
    });
    Some(format!(
        "Messages took {} more than on an idle network, most flow {flow} from {} to {}: {}{}",
        Quantity::TimeNs.format(path.lost_ns),
        node(run, from),
        node(run, to),
        Quantity::TimeNs.format(ns(message.lost_ps()?)),
        link.unwrap_or_default()
    ))
}

fn node(run: &RunResult, node: u32) -> String {
    run.nodes.get(node as usize).map_or_else(|| format!("node {node}"), |node| node.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activities::{ActivityRecord, Parallelism};

    const US: u64 = 1_000_000;

    /// Returns the sentences about four hosts with these times and amounts of work in microseconds. The path crosses
    /// host 1.
    fn about_host_1(times: [(u64, u64); 4]) -> String {
        let computed = |(host, (took, work)): (u32, (u64, u64))| ActivityRecord {
            host,
            finish_ps: Some(took * US),
            nominal_ps: Some(work * US),
            ..ActivityRecord::default()
        };
        let label = ActivityLabel { activity: "expert".to_owned(), ..ActivityLabel::default() };
        let run = RunResult { labels: vec![label], ..RunResult::default() };
        let activities: Vec<ActivityRecord> = (0..).zip(times).map(computed).collect();
        let step = CriticalStep { host: 1, label: Some(0), ..CriticalStep::default() };
        slow_rank(&run, &activities.iter().collect::<Vec<_>>(), &[step]).join(". ")
    }

    #[test]
    fn a_rank_with_more_work_is_not_slow() {
        let said = about_host_1([(10, 10), (29, 29), (10, 10), (8, 8)]);
        assert_eq!(
            said,
            "node 1 has more to compute: \"expert\" is 2.90 times the median of all ranks, 19.00 us more"
        );
        let said = about_host_1([(10, 10), (20, 10), (10, 10), (10, 10)]);
        assert_eq!(
            said,
            "node 1 is slow: \"expert\" takes it 2.00 times the median of all ranks, 10.00 us more"
        );
        // 20 us of work instead of 10 us, at a third of the speed: 60 us, 40 us more than others need for it.
        let said = about_host_1([(10, 10), (60, 20), (10, 10), (10, 10)]);
        assert_eq!(
            said,
            "node 1 is slow: \"expert\" takes it 3.00 times the median of all ranks, 40.00 us more. \
             node 1 has more to compute: \"expert\" is 2.00 times the median of all ranks, 10.00 us more"
        );
        // Everyone computes at half the speed, so that host 1 is not slow.
        assert_eq!(about_host_1([(20, 10), (20, 10), (20, 10), (20, 10)]), "");
    }

    /// Host 1 computes for 30 us where others take 10 us, and its message takes 20 us instead of 5 us.
    #[test]
    fn the_path_names_the_slow_rank_and_the_slow_message() {
        let label = |activity: &str, part: &str, parallelism| ActivityLabel {
            activity: activity.to_owned(),
            object: Some(part.to_owned()),
            parallelism,
            ..ActivityLabel::default()
        };
        let computed = |host, took: u64| ActivityRecord {
            host,
            job: Some(0),
            finish_ps: Some(took * US),
            nominal_ps: Some(10 * US),
            ..ActivityRecord::default()
        };
        let step = |step, kind, label, from: u64, to: u64| CriticalStep {
            step,
            kind,
            host: 1,
            label,
            start_ps: from * US,
            finish_ps: to * US,
            ..CriticalStep::default()
        };
        let message = CriticalStep {
            peer_host: Some(2),
            flow: Some(7),
            ideal_ps: Some(5 * US),
            ..step(2, StepKind::Message, Some(1), 31, 51)
        };
        let mut run = RunResult {
            labels: vec![
                label("forward", "layer 3", None),
                label("all-reduce", "b", Some(Parallelism::Data)),
            ],
            activities: vec![computed(0, 10), computed(1, 30), computed(2, 10)],
            critical: vec![
                step(0, StepKind::Computation, Some(0), 0, 30),
                step(1, StepKind::Wait, None, 30, 31),
                message,
                CriticalStep { job: 1, ..step(0, StepKind::Computation, None, 60, 70) },
            ],
            links: vec![
                LinkTotals { from_node: 9, to_node: 2, busy_ps: 40 * US, ..LinkTotals::default() },
                LinkTotals { from_node: 1, to_node: 9, busy_ps: 20 * US, ..LinkTotals::default() },
            ],
            ..RunResult::default()
        };
        run.info.simulated_ps = 100 * US;
        let iterations = [0, 2, 1].map(|job| IterationSummary { job, ..IterationSummary::default() });
        let paths = critical_paths(&run, &iterations);
        assert_eq!(paths.iter().map(|path| path.job).collect::<Vec<_>>(), [0, 1], "job 2 has none");
        let path = &paths[0];
        assert_eq!((path.steps, path.time_ns, path.computation_ns), (3, 51_000.0, 30_000.0));
        assert_eq!((path.lost_ns, path.wait_ns), (15_000.0, 1_000.0));
        assert_eq!(path.communication_ns["DP all-reduce"], 20_000.0);
        for said in [
            "computation, most of it \"forward, layer 3\" at node 1: 30",
            "DP all-reduce",
            "waiting between tasks",
            "node 1 is slow: \"forward, layer 3\" takes it 3.00 times the median of all ranks, 20",
            "most flow 7 from node 1 to node 2: 15",
            "node 9 to node 2 was busiest",
        ] {
            assert!(path.words.contains(said), "{said}: {}", path.words);
        }
        assert!(!paths[1].words.contains("slow") && !paths[1].words.contains("idle network"));
    }
}
