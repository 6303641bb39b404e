//! Exposed communication, which no computation hides: by activity, by layer, and by iteration.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::activities::{ActivityKind, ActivityLabel, Parallelism};
use crate::described::described;
use crate::format::ns;
use crate::records::{Role, RunResult};

/// Returns the exposed time of each activity of a run in picoseconds: the time in which the activity was in progress
/// while its host computed nothing for the same job. Time shared by several activities is divided evenly among them,
/// so that sums are times. 0 for computations.
pub(crate) fn exposed_ps(run: &RunResult) -> Vec<u64> {
    exposed(run).0
}

/// Returns the exposed times, and the number of ranks of each job.
fn exposed(run: &RunResult) -> (Vec<u64>, BTreeMap<Option<u32>, u32>) {
    let mut exposed = vec![0; run.activities.len()];
    let mut counts = BTreeMap::new();
    for ((job, _), at) in ranks(run) {
        *counts.entry(job).or_default() += 1;
        sweep(run, &at, &mut exposed);
    }
    (exposed, counts)
}

/// Returns the indices of activities by job and host.
fn ranks(run: &RunResult) -> BTreeMap<(Option<u32>, u32), Vec<usize>> {
    let mut ranks: BTreeMap<(Option<u32>, u32), Vec<usize>> = BTreeMap::new();
    for (index, activity) in run.activities.iter().enumerate() {
        ranks.entry((activity.job, activity.host)).or_default().push(index);
    }
    ranks
}

/// Sweeps over the activities of one rank in time. Adds to `exposed`, and returns the time spent computing.
fn sweep(run: &RunResult, at: &[usize], exposed: &mut [u64]) -> u64 {
    let mut ends: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * at.len());
    for &index in at {
        let activity = &run.activities[index];
        let finish_ps = activity.finish_ps.unwrap_or(run.info.simulated_ps);
        if finish_ps > activity.start_ps {
            ends.extend([(activity.start_ps, true, index), (finish_ps, false, index)]);
        }
    }
    ends.sort_unstable();
    let (mut computed_ps, mut computing, mut now) = (0, 0u32, 0);
    let mut under_way: Vec<usize> = Vec::new();
    for (time, begins, index) in ends {
        let passed = time - now;
        now = time;
        if computing > 0 {
            computed_ps += passed;
        } else if let Some(&first) = under_way.first() {
            let each = passed / under_way.len() as u64;
            under_way.iter().for_each(|&one| exposed[one] += each);
            exposed[first] += passed % under_way.len() as u64;
        }
        match (run.activities[index].kind, begins) {
            (ActivityKind::Computation, true) => computing += 1,
            (ActivityKind::Computation, false) => computing -= 1,
            (ActivityKind::Communication, true) => under_way.push(index),
            (ActivityKind::Communication, false) => under_way.retain(|&one| one != index),
        }
    }
    computed_ps
}

/// Activities of one kind that the ranks of a job had for one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerRecord {
    /// Job of the activities, an index into [`RunResult::jobs`].
    pub job: Option<u32>,
    /// Operation, layer and ranks: the first of the labels that are equal in these, an index into
    /// [`RunResult::labels`].
    pub label: u32,
    /// Computation or communication.
    pub kind: ActivityKind,
    /// Number of ranks of the job.
    pub ranks: u32,
    /// Number of activities of all ranks.
    pub activities: u64,
    /// Time of a rank in these activities, the mean over all ranks of the job.
    pub busy_ps: u64,
    /// Exposed part of that time; 0 for computation.
    pub exposed_ps: u64,
    /// The largest exposed part of a rank.
    pub most_exposed_ps: u64,
}

/// Returns for each label the first one that is equal apart from its collective.
fn same_labels(run: &RunResult) -> Vec<u32> {
    let mut first: BTreeMap<(&str, Option<&str>, Option<Parallelism>), u32> = BTreeMap::new();
    let mut same = Vec::with_capacity(run.labels.len());
    for (label, number) in run.labels.iter().zip(0..) {
        let ActivityLabel { activity, object: part, parallelism, .. } = label;
        same.push(*first.entry((activity, part.as_deref(), *parallelism)).or_insert(number));
    }
    same
}

/// Returns the activities of each job by layer, ordered by job and label.
pub fn layers(run: &RunResult) -> Vec<LayerRecord> {
    #[derive(Default)]
    struct Sums {
        activities: u64,
        busy_ps: u128,
        exposed_ps: u128,
        of_rank: BTreeMap<u32, u64>,
    }
    let (exposed, ranks) = exposed(run);
    let same = same_labels(run);
    let mut sums: BTreeMap<(Option<u32>, u32, ActivityKind), Sums> = BTreeMap::new();
    for (activity, exposed_ps) in run.activities.iter().zip(exposed) {
        let Some(&label) = same.get(activity.label as usize) else { continue };
        let finish_ps = activity.finish_ps.unwrap_or(run.info.simulated_ps);
        let sum = sums.entry((activity.job, label, activity.kind)).or_default();
        sum.activities += 1;
        sum.busy_ps += u128::from(finish_ps.saturating_sub(activity.start_ps));
        sum.exposed_ps += u128::from(exposed_ps);
        *sum.of_rank.entry(activity.host).or_default() += exposed_ps;
    }
    let record = |((job, label, kind), sum): ((Option<u32>, u32, ActivityKind), Sums)| {
        let ranks = ranks[&job];
        let mean = |sum: u128| u64::try_from(sum / u128::from(ranks)).unwrap_or(u64::MAX);
        LayerRecord {
            job,
            label,
            kind,
            ranks,
            activities: sum.activities,
            busy_ps: mean(sum.busy_ps),
            exposed_ps: mean(sum.exposed_ps),
            most_exposed_ps: sum.of_rank.into_values().max().unwrap_or(0),
        }
    };
    sums.into_iter().map(record).collect()
}

described! {
    /// Time of an iteration by kind. Times are means over its ranks and add up to `time_ns`.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct IterationSummary {
        /// Number of the job of the iteration.
        pub job: u32,
        /// Name of the job.
        pub name: String,
        /// Time at which its first task could start.
        pub start_ns: f64,
        /// Duration, from its start or from the end of the iteration before it, whichever is later.
        pub time_ns: f64,
        /// Number of hosts with activities in it.
        pub ranks: u32,
        /// Time in which a rank computed.
        pub computation_ns: f64,
        /// Computation time of the rank that computed longest.
        pub longest_computation_ns: f64,
        /// Host of that rank.
        pub longest_computation_host: u32,
        /// Time in which a rank communicated and did not compute, by kind: "DP all-reduce", "PP send".
        pub exposed_ns: BTreeMap<String, f64>,
        /// Time in which a rank neither computed nor communicated.
        pub idle_ns: f64,
    }
}

/// Largest number of iterations in a summary.
pub(crate) const MOST_ITERATIONS: usize = 64;

/// Returns the longest finished jobs of the foreground for which activities of ranks are known, by start.
pub(crate) fn iterations(run: &RunResult) -> Vec<IterationSummary> {
    let mut exposed = vec![0; run.activities.len()];
    let mut of_job: BTreeMap<u32, IterationSummary> = BTreeMap::new();
    let wanted: BTreeMap<u32, u64> = {
        let mut jobs: Vec<_> = run
            .jobs
            .iter()
            .filter(|job| run.info.role(job.group) == Role::Foreground)
            .filter_map(|job| Some((job.completion_ps()?, job.job)))
            .collect();
        jobs.sort_by_key(|&(time_ps, job)| (std::cmp::Reverse(time_ps), job));
        jobs.truncate(MOST_ITERATIONS);
        jobs.into_iter().map(|(time_ps, job)| (job, time_ps)).collect()
    };
    for ((job, host), at) in ranks(run) {
        let Some((job, &time_ps)) = job.and_then(|job| Some((job, wanted.get(&job)?))) else { continue };
        let computed_ps = sweep(run, &at, &mut exposed);
        let of = &run.jobs[job as usize];
        let iteration = of_job.entry(job).or_insert_with(|| IterationSummary {
            job,
            name: of.name.clone(),
            start_ns: ns(of.start_ps),
            time_ns: ns(time_ps),
            ..IterationSummary::default()
        });
        iteration.ranks += 1;
        iteration.computation_ns += ns(computed_ps);
        if ns(computed_ps) > iteration.longest_computation_ns {
            iteration.longest_computation_ns = ns(computed_ps);
            iteration.longest_computation_host = host;
        }
        for index in at {
            let label = run.labels.get(run.activities[index].label as usize);
            let Some(label) = label.filter(|_| exposed[index] > 0) else { continue };
            *iteration.exposed_ns.entry(label.kind()).or_default() += ns(exposed[index]);
        }
    }
    let mut all: Vec<IterationSummary> = of_job.into_values().collect();
    for iteration in &mut all {
        let ranks = f64::from(iteration.ranks);
        iteration.computation_ns /= ranks;
        iteration.exposed_ns.values_mut().for_each(|sum| *sum /= ranks);
        let busy = iteration.computation_ns + iteration.exposed_ns.values().sum::<f64>();
        iteration.idle_ns = (iteration.time_ns - busy).max(0.0);
    }
    all.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns).then(a.job.cmp(&b.job)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activities::{ActivityLabel, ActivityRecord};
    use crate::records::JobRecord;

    const US: u64 = 1_000_000;

    fn run(bars: &[(u32, u32, u64, u64)]) -> RunResult {
        let label = |activity: &str, part: &str, parallelism| ActivityLabel {
            activity: activity.to_owned(),
            object: Some(part.to_owned()),
            parallelism,
            ..ActivityLabel::default()
        };
        let bar = |&(host, label, from, to): &(u32, u32, u64, u64)| ActivityRecord {
            host,
            label,
            job: Some(0),
            kind: if label == 0 { ActivityKind::Computation } else { ActivityKind::Communication },
            start_ps: from * US,
            finish_ps: Some(to * US),
            ..ActivityRecord::default()
        };
        let mut run = RunResult {
            labels: vec![
                label("forward", "a", None),
                label("all-reduce", "a", Some(Parallelism::Data)),
                label("send", "b", Some(Parallelism::Pipeline)),
            ],
            activities: bars.iter().map(bar).collect(),
            jobs: vec![JobRecord {
                name: "iteration 0".to_owned(),
                finish_ps: Some(20 * US),
                ..JobRecord::default()
            }],
            ..RunResult::default()
        };
        run.info.groups = vec!["training".to_owned()];
        run.info.simulated_ps = 20 * US;
        run
    }

    #[test]
    fn covered_time_is_hidden_and_the_rest_is_shared() {
        // Host 0 computes 0-6 and 8-9, reduces 4-12, and sends 10-12. Exposed are 6-8, 9-10 and half of 10-12.
        let mut run = run(&[(0, 0, 0, 6), (0, 1, 4, 12), (0, 0, 8, 9), (0, 2, 10, 12), (1, 0, 0, 20)]);
        assert_eq!(exposed_ps(&run), [0, 4 * US, 0, US, 0]);
        let iterations = iterations(&run);
        assert_eq!(iterations.len(), 1);
        let one = &iterations[0];
        assert_eq!((one.ranks, one.time_ns, one.computation_ns), (2, 20_000.0, 13_500.0));
        assert_eq!((one.longest_computation_host, one.longest_computation_ns), (1, 20_000.0));
        let kinds: Vec<(&str, f64)> = one.exposed_ns.iter().map(|(kind, &ns)| (kind.as_str(), ns)).collect();
        assert_eq!(kinds, [("DP all-reduce", 2_000.0), ("PP send", 500.0)]);
        assert_eq!(one.idle_ns, 20_000.0 - 13_500.0 - 2_500.0);
        // The second all-reduce is another collective of the same layer.
        let rows: Vec<_> =
            layers(&run).iter().map(|l| (l.label, l.activities, l.busy_ps / US, l.exposed_ps)).collect();
        assert_eq!(rows, [(0, 3, 13, 0), (1, 1, 4, 2 * US), (2, 1, 1, US / 2)]);
        run.labels.push(run.labels[1].clone());
        run.activities[3].label = 3;
        let rows: Vec<_> = layers(&run).iter().map(|l| (l.label, l.activities)).collect();
        assert_eq!(rows, [(0, 3), (1, 2)]);
    }

    #[test]
    fn another_jobs_computation_hides_nothing() {
        let mut run = run(&[(0, 0, 0, 10), (0, 1, 5, 15)]);
        run.activities[0].job = None;
        assert_eq!(exposed_ps(&run), [0, 10 * US]);
        run.activities[1].finish_ps = Some(5 * US);
        assert_eq!(exposed_ps(&run), [0, 0], "what takes no time is not exposed");
    }
}
