//! Exposed communication, which no computation hides: by activity, by layer, and by iteration.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::activities::{ActivityKind, ActivityLabel, ActivityRecord, Parallelism};
use crate::described::described;
use crate::format::ns;
use crate::records::{JobRecord, Role, RunResult};

/// Returns the exposed time of each activity of a run in picoseconds: the time in which the activity was in progress
/// while its host computed nothing for the same job. Time shared by several activities is divided evenly among them,
/// so that sums are times. 0 for computations. Only time from `from_ps` of an activity counts.
pub(crate) fn exposed_ps(run: &RunResult, from_ps: impl Fn(&ActivityRecord) -> u64) -> Vec<u64> {
    exposed(run, from_ps).0
}

/// Returns the exposed times, and the number of ranks of each job.
fn exposed(
    run: &RunResult,
    from_ps: impl Fn(&ActivityRecord) -> u64,
) -> (Vec<u64>, BTreeMap<Option<u32>, u32>) {
    let mut exposed = vec![0; run.activities.len()];
    let mut counts = BTreeMap::new();
    for ((job, _), at) in ranks(run) {
        *counts.entry(job).or_default() += 1;
        sweep(run, &at, |span| {
            for &one in span.under_way {
                let begin_ps = from_ps(&run.activities[one]).clamp(span.from_ps, span.to_ps);
                exposed[one] += span.part_ps(one, span.to_ps - begin_ps);
            }
        });
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

/// Time in which a rank was busy with the same activities.
struct Span<'a> {
    from_ps: u64,
    to_ps: u64,
    /// The communication that is exposed in this time. Empty: the rank computed.
    under_way: &'a [usize],
}

impl Span<'_> {
    /// Returns the part of `time_ps` that one activity has, if all that are under way share it. The first has the
    /// remainder.
    fn part_ps(&self, one: usize, time_ps: u64) -> u64 {
        let number = self.under_way.len() as u64;
        time_ps / number + if self.under_way[0] == one { time_ps % number } else { 0 }
    }
}

/// Sweeps over the activities of one rank in time, and calls `take` with each span in which the rank is busy.
fn sweep(run: &RunResult, at: &[usize], mut take: impl FnMut(&Span<'_>)) {
    let mut ends: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * at.len());
    for &index in at {
        let activity = &run.activities[index];
        let finish_ps = activity.finish_ps.unwrap_or(run.info.simulated_ps);
        if finish_ps > activity.start_ps {
            ends.extend([(activity.start_ps, true, index), (finish_ps, false, index)]);
        }
    }
    ends.sort_unstable();
    let (mut computing, mut now) = (0u32, 0);
    let mut under_way: Vec<usize> = Vec::new();
    for (time, begins, index) in ends {
        if time > now && (computing > 0 || !under_way.is_empty()) {
            let under_way: &[usize] = if computing > 0 { &[] } else { &under_way };
            take(&Span { from_ps: now, to_ps: time, under_way });
        }
        now = time;
        match (run.activities[index].kind, begins) {
            (ActivityKind::Computation, true) => computing += 1,
            (ActivityKind::Computation, false) => computing -= 1,
            (ActivityKind::Communication, true) => under_way.push(index),
            (ActivityKind::Communication, false) => under_way.retain(|&one| one != index),
        }
    }
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
    let (exposed, ranks) = exposed(run, |activity| activity.start_ps);
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
    let times = run.info.times_recorded();
    let record = |((job, label, kind), sum): ((Option<u32>, u32, ActivityKind), Sums)| {
        let ranks = ranks[&job];
        let mean = |sum: u128| u64::try_from(sum / u128::from(ranks)).unwrap_or(u64::MAX);
        LayerRecord {
            job,
            label,
            kind,
            ranks: ranks * times,
            activities: sum.activities * u64::from(times),
            busy_ps: mean(sum.busy_ps),
            exposed_ps: mean(sum.exposed_ps),
            most_exposed_ps: sum.of_rank.into_values().max().unwrap_or(0),
        }
    };
    sums.into_iter().map(record).collect()
}

described! {
    /// Time of an iteration by kind. Times are means over its ranks and add up to `time_ns`. They are those from the
    /// beginning of `time_ns` to its end, in which a rank may already be in the next iteration.
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
        /// Number of hosts with activities in it, those of ranks that recorded ones represent included.
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
    let mut of_job: BTreeMap<u32, Sums> = BTreeMap::new();
    let wanted = longest_jobs(run);
    for ((_, host), at) in rows(run) {
        let mut present: Vec<u32> = at.iter().filter_map(|&index| run.activities[index].job).collect();
        present.sort_unstable();
        present.dedup();
        let mut windows: Vec<Window<'_>> =
            present.iter().filter_map(|job| wanted.get(job)).map(|of| Window::of(of)).collect();
        windows.sort_by_key(|window| (window.from_ps, window.job.job));
        let mut first = 0;
        sweep(run, &at, |span| {
            while windows.get(first).is_some_and(|window| window.to_ps <= span.from_ps) {
                first += 1;
            }
            let met = windows[first..].iter_mut().take_while(|window| window.from_ps < span.to_ps);
            met.for_each(|window| window.add(run, span));
        });
        for window in windows {
            of_job.entry(window.job.job).or_default().add(host, &window);
        }
    }
    let of = |(job, sums): (u32, Sums)| sums.summary(run, wanted[&job]);
    let mut all: Vec<IterationSummary> = of_job.into_iter().map(of).collect();
    all.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns).then(a.job.cmp(&b.job)));
    all
}

/// Returns the jobs to summarise, by number.
fn longest_jobs(run: &RunResult) -> BTreeMap<u32, &JobRecord> {
    let foreground = run.jobs.iter().filter(|job| run.info.role(job.group) == Role::Foreground);
    let mut jobs: Vec<_> = foreground.filter_map(|job| Some((job.completion_ps()?, job))).collect();
    jobs.sort_by_key(|&(time_ps, job)| (std::cmp::Reverse(time_ps), job.job));
    jobs.truncate(MOST_ITERATIONS);
    jobs.into_iter().map(|(_, job)| (job.job, job)).collect()
}

/// A job of its own, or all jobs of a group of which some follow others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Series {
    Job(u32),
    Group(u16),
}

/// Returns the indices of activities of jobs by series and host.
fn rows(run: &RunResult) -> BTreeMap<(Series, u32), Vec<usize>> {
    let mut follow = vec![false; usize::from(u16::MAX) + 1];
    run.jobs.iter().for_each(|job| follow[usize::from(job.group)] |= job.before_ps.is_some());
    let mut rows: BTreeMap<(Series, u32), Vec<usize>> = BTreeMap::new();
    for (index, activity) in run.activities.iter().enumerate() {
        let Some(job) = activity.job else { continue };
        let group = run.jobs[job as usize].group;
        let series = if follow[usize::from(group)] { Series::Group(group) } else { Series::Job(job) };
        rows.entry((series, activity.host)).or_default().push(index);
    }
    rows
}

/// Time of a rank in an iteration.
struct Window<'a> {
    job: &'a JobRecord,
    from_ps: u64,
    to_ps: u64,
    computed_ps: u64,
    /// Exposed time of each label.
    exposed_ps: BTreeMap<u32, u64>,
}

impl<'a> Window<'a> {
    fn of(job: &'a JobRecord) -> Self {
        let (from_ps, to_ps) = (job.from_ps(), job.finish_ps.unwrap_or(0));
        Window { job, from_ps, to_ps, computed_ps: 0, exposed_ps: BTreeMap::new() }
    }

    fn add(&mut self, run: &RunResult, span: &Span<'_>) {
        let passed_ps = self.to_ps.min(span.to_ps).saturating_sub(self.from_ps.max(span.from_ps));
        if span.under_way.is_empty() {
            self.computed_ps += passed_ps;
        }
        for &one in span.under_way.iter().filter(|_| passed_ps > 0) {
            *self.exposed_ps.entry(run.activities[one].label).or_default() += span.part_ps(one, passed_ps);
        }
    }
}

/// Times of all ranks of an iteration.
#[derive(Default)]
struct Sums {
    ranks: u32,
    computed_ps: u128,
    longest: (u64, u32),
    /// Exposed time of each label.
    exposed_ps: BTreeMap<u32, u128>,
}

impl Sums {
    fn add(&mut self, host: u32, window: &Window<'_>) {
        self.ranks += 1;
        self.computed_ps += u128::from(window.computed_ps);
        if window.computed_ps > self.longest.0 {
            self.longest = (window.computed_ps, host);
        }
        for (&label, &ps) in &window.exposed_ps {
            *self.exposed_ps.entry(label).or_default() += u128::from(ps);
        }
    }

    fn summary(self, run: &RunResult, job: &JobRecord) -> IterationSummary {
        let mean_ns = |sum_ps: u128| sum_ps as f64 / 1e3 / f64::from(self.ranks);
        let mut exposed_ns: BTreeMap<String, f64> = BTreeMap::new();
        for (&label, &ps) in &self.exposed_ps {
            let kind = run.labels.get(label as usize).map_or_else(String::new, ActivityLabel::kind);
            *exposed_ns.entry(kind).or_default() += mean_ns(ps);
        }
        let time_ps = job.completion_ps().unwrap_or(0);
        let all_ps = u128::from(time_ps) * u128::from(self.ranks);
        let busy_ps = self.computed_ps + self.exposed_ps.values().sum::<u128>();
        IterationSummary {
            job: job.job,
            name: job.name.clone(),
            start_ns: ns(job.start_ps),
            time_ns: ns(time_ps),
            ranks: self.ranks * run.info.times_recorded(),
            computation_ns: mean_ns(self.computed_ps),
            longest_computation_ns: ns(self.longest.0),
            longest_computation_host: self.longest.1,
            exposed_ns,
            idle_ns: mean_ns(all_ps.saturating_sub(busy_ps)),
        }
    }
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
        assert_eq!(exposed_ps(&run, |activity| activity.start_ps), [0, 4 * US, 0, US, 0]);
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
        assert_eq!(exposed_ps(&run, |activity| activity.start_ps), [0, 10 * US]);
        run.activities[1].finish_ps = Some(5 * US);
        assert_eq!(
            exposed_ps(&run, |activity| activity.start_ps),
            [0, 0],
            "what takes no time is not exposed"
        );
    }

    /// Host 0 ends round 0 at 4 us and computes for round 1 until 6 us, then waits in the all-reduce of round 1. Host 1
    /// is late: round 0 ends at 10 us. Round 1 takes from there to 16 us.
    #[test]
    fn the_parts_of_overlapping_iterations_add_up_to_their_times() {
        let mut run =
            run(&[(0, 1, 0, 4), (0, 0, 4, 6), (0, 1, 6, 14), (1, 0, 0, 7), (1, 1, 7, 10), (1, 1, 10, 16)]);
        for (index, job) in [0, 1, 1, 0, 0, 1].into_iter().enumerate() {
            run.activities[index].job = Some(job);
        }
        run.jobs[0].finish_ps = Some(10 * US);
        run.jobs.push(JobRecord {
            job: 1,
            start_ps: 4 * US,
            before_ps: Some(10 * US),
            finish_ps: Some(16 * US),
            ..JobRecord::default()
        });
        let found = iterations(&run);
        let parts = |of: &IterationSummary| {
            (of.time_ns, of.ranks, of.computation_ns, of.exposed_ns["DP all-reduce"], of.idle_ns)
        };
        // Host 0: 4 + 4 us of all-reduces and 2 us of computation; host 1: 3 us and 7 us.
        assert_eq!(parts(&found[0]), (10_000.0, 2, 4_500.0, 5_500.0, 0.0));
        // Host 0: 4 us and 2 us idle; host 1: 6 us.
        assert_eq!(parts(&found[1]), (6_000.0, 2, 0.0, 5_000.0, 1_000.0));
    }
}
