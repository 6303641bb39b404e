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

/// Describes the rank on the path whose computations take longer than the same ones of other ranks.
fn slow_rank(run: &RunResult, of_job: &[&ActivityRecord], steps: &[CriticalStep]) -> Option<String> {
    let on_path: BTreeSet<(u32, u32)> = steps
        .iter()
        .filter(|step| step.kind == StepKind::Computation)
        .filter_map(|step| Some((step.label?, step.host)))
        .collect();
    let mut sums: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for activity in of_job {
        if let Some(finish_ps) = activity.finish_ps {
            *sums.entry(activity.label).or_default().entry(activity.host).or_default() +=
                finish_ps - activity.start_ps;
        }
    }
    let mut worst: Option<(u64, u32, u32, f64)> = None;
    for (label, of_host) in sums {
        let mut all: Vec<u64> = of_host.values().copied().collect();
        all.sort_unstable();
        let median = all[(all.len() - 1) / 2];
        for (host, time) in of_host {
            let times = time as f64 / median.max(1) as f64;
            let slow = all.len() > 2 && times >= SLOW && on_path.contains(&(label, host));
            if slow && worst.is_none_or(|(most, ..)| time - median > most) {
                worst = Some((time - median, label, host, times));
            }
        }
    }
    let (beyond_ps, label, host, times) = worst?;
    let name = run.labels.get(label as usize)?.description();
    Some(format!(
        "{} is slow: \"{name}\" takes it {times:.2} times the median of all ranks, {} more",
        node(run, host),
        Quantity::TimeNs.format(ns(beyond_ps))
    ))
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
