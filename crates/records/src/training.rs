//! Training in the words of those who train: tokens a second, use of the GPUs' peak rate, pipeline bubble.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::activities::{ActivityLabel, Parallelism};
use crate::described::described;
use crate::exposure::IterationSummary;
use crate::format::ns;
use crate::records::{JobRecord, RunResult};
use crate::training_record::TrainingRecord;

described! {
    /// Training of a workload group, as means over its finished iterations. The first is left out if there are more,
    /// since nothing precedes it.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct TrainingSummary {
        /// Name of the group.
        pub group: String,
        /// Number of GPUs.
        pub gpus: u32,
        /// Number of iterations in the means.
        pub iterations: u64,
        /// Time from the end of an iteration to the end of the next, or the time of the only one.
        pub iteration_ns: f64,
        /// Number of sequences of an iteration: the global batch.
        pub global_batch: u64,
        /// Number of tokens of an iteration.
        pub tokens: u64,
        /// Ratio of `tokens`, times the scale of the workload, to `iteration_ns`.
        pub tokens_per_s: f64,
        /// The same for each GPU.
        pub tokens_per_s_per_gpu: f64,
        /// Operations of the model per second and GPU, in 10^12: two for each parameter that a token passes forward,
        /// four backward, and those of causal attention, without recomputation.
        pub tflops_per_gpu: f64,
        /// Model FLOP utilisation: the same over the peak rate of the GPU; null if the workload names none.
        pub mfu: Option<f64>,
        /// Pipeline bubble: time in which a GPU would wait if messages took no time, over the time in which it
        /// computes; null if nothing computes, or with one stage.
        pub pipeline_bubble: Option<f64>,
        /// Time in which a rank communicated and did not compute, by kind: "DP all-gather", "PP send"; of those
        /// iterations whose activities are known.
        pub exposed_ns: BTreeMap<String, f64>,
    }
}

impl TrainingSummary {
    /// Returns the time in which a rank communicated and did not compute.
    pub fn all_exposed_ns(&self) -> f64 {
        self.exposed_ns.values().sum()
    }
}

/// Returns the figures of each group that trains.
pub(crate) fn training(run: &RunResult, iterations: &[IterationSummary]) -> Vec<TrainingSummary> {
    let mut groups: BTreeMap<u16, Vec<(&JobRecord, TrainingRecord)>> = BTreeMap::new();
    for job in &run.jobs {
        if let Some(work) = job.training.filter(|_| job.finish_ps.is_some()) {
            groups.entry(job.group).or_default().push((job, work));
        }
    }
    groups.into_iter().map(|(group, jobs)| of_group(run, group, jobs, iterations)).collect()
}

fn of_group(
    run: &RunResult,
    group: u16,
    mut jobs: Vec<(&JobRecord, TrainingRecord)>,
    iterations: &[IterationSummary],
) -> TrainingSummary {
    if jobs.iter().any(|(job, _)| job.before_ps.is_some()) {
        jobs.retain(|(job, _)| job.before_ps.is_some());
    }
    let count = jobs.len() as f64;
    let mean = |of: &dyn Fn(&JobRecord, TrainingRecord) -> f64| {
        jobs.iter().map(|(job, work)| of(job, *work)).sum::<f64>() / count
    };
    let work = jobs[0].1;
    let iteration_ns = mean(&|job, _| job.completion_ps().map_or(0.0, ns));
    let busy = mean(&|_, work| work.busy_ps as f64);
    let span = mean(&|job, _| job.compute_ps as f64);
    let per_second = |amount: f64| if iteration_ns > 0.0 { amount / (iteration_ns * 1e-9) } else { 0.0 };
    let gpus = f64::from(work.gpus.max(1));
    let gigaflops_per_gpu = per_second(mean(&|_, work| work.megaflops as f64 * 1e-3 * work.scale())) / gpus;
    let tokens_per_s = per_second(mean(&|_, work| work.tokens as f64 * work.scale()));
    TrainingSummary {
        group: run.info.groups.get(usize::from(group)).cloned().unwrap_or_default(),
        gpus: work.gpus,
        iterations: jobs.len() as u64,
        iteration_ns,
        global_batch: work.sequences,
        tokens: work.tokens,
        tokens_per_s,
        tokens_per_s_per_gpu: tokens_per_s / gpus,
        tflops_per_gpu: gigaflops_per_gpu / 1e3,
        mfu: work.peak_gigaflops.filter(|peak| *peak > 0).map(|peak| gigaflops_per_gpu / peak as f64),
        pipeline_bubble: (busy > 0.0 && has_stages(run, &jobs)).then(|| (span / busy - 1.0).max(0.0)),
        exposed_ns: exposed(&jobs, iterations),
    }
}

/// Returns true if ranks of neighbouring stages communicate: in the first of these jobs, or in any if activities are not
/// kept.
fn has_stages(run: &RunResult, jobs: &[(&JobRecord, TrainingRecord)]) -> bool {
    let between = |label: &ActivityLabel| label.parallelism == Some(Parallelism::Pipeline);
    let of_first = |job: Option<u32>| job == jobs.first().map(|(job, _)| job.job);
    let mut kept = run.activities.iter().filter(|activity| of_first(activity.job)).peekable();
    if kept.peek().is_none() {
        return run.labels.iter().any(between);
    }
    kept.any(|activity| run.labels.get(activity.label as usize).is_some_and(between))
}

fn exposed(jobs: &[(&JobRecord, TrainingRecord)], iterations: &[IterationSummary]) -> BTreeMap<String, f64> {
    let is_one = |of: &&IterationSummary| jobs.iter().any(|(job, _)| job.job == of.job);
    let known: Vec<&IterationSummary> = iterations.iter().filter(is_one).collect();
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (kind, ns) in known.iter().flat_map(|iteration| &iteration.exposed_ns) {
        *sums.entry(kind.clone()).or_default() += ns / known.len() as f64;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activities::ActivityRecord;

    const MS: u64 = 1_000_000_000;

    fn job(number: u32, before: Option<u64>, finish: Option<u64>) -> JobRecord {
        let training = TrainingRecord {
            gpus: 8,
            sequences: 16,
            tokens: 32_768,
            megaflops: 800_000_000,
            scale_ppb: 500_000_000,
            peak_gigaflops: Some(1_000_000),
            busy_ps: 80 * MS,
        };
        JobRecord {
            job: number,
            before_ps: before.map(|at| at * MS),
            finish_ps: finish.map(|at| at * MS),
            compute_ps: 90 * MS,
            training: Some(training),
            ..JobRecord::default()
        }
    }

    /// Periods of 100 ms after a first iteration of 150 ms, at a scale of a half: 16,384 tokens in 0.1 s on 8 GPUs, and 400 TFLOP in 0.1 s:
    /// 500 TFLOP/s a GPU, half of its peak. A GPU computes for 80 of the 90 ms that stages would take alone.
    #[test]
    fn figures_by_hand() {
        let mut run = RunResult {
            jobs: vec![
                job(0, None, Some(150)),
                job(1, Some(150), Some(250)),
                job(2, Some(250), Some(350)),
                job(3, Some(350), None),
                JobRecord::default(),
            ],
            ..RunResult::default()
        };
        run.info.groups = vec!["training".to_owned()];
        let label =
            |parallelism| ActivityLabel { parallelism: Some(parallelism), ..ActivityLabel::default() };
        run.labels = vec![label(Parallelism::Data), label(Parallelism::Pipeline)];
        let exposed = |of: u32, ns: f64| IterationSummary {
            job: of,
            exposed_ns: [("DP all-gather".to_owned(), ns)].into(),
            ..IterationSummary::default()
        };
        let iterations = [exposed(0, 100.0), exposed(1, 20.0), exposed(2, 40.0)];
        let found = training(&run, &iterations);
        assert_eq!(found.len(), 1);
        let of = &found[0];
        assert_eq!((of.group.as_str(), of.gpus, of.iterations, of.global_batch), ("training", 8, 2, 16));
        assert_eq!((of.iteration_ns, of.tokens), (1e8, 32_768));
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        assert!(near(of.tokens_per_s, 163_840.0) && near(of.tokens_per_s_per_gpu, 20_480.0), "{of:?}");
        assert!(near(of.tflops_per_gpu, 500.0) && near(of.mfu.unwrap(), 0.5), "{of:?}");
        assert!(near(of.pipeline_bubble.unwrap(), 0.125), "{of:?}");
        assert!(near(of.all_exposed_ns(), 30.0), "{of:?}");
        // Of one stage, no other waits: slow ranks are no bubble.
        let activity = |label| ActivityRecord { job: Some(1), label, ..ActivityRecord::default() };
        run.activities = vec![activity(0)];
        assert_eq!(training(&run, &iterations)[0].pipeline_bubble, None);
        run.activities.push(activity(1));
        assert!(training(&run, &iterations)[0].pipeline_bubble.is_some());
        run.activities.clear();
        run.labels.truncate(1);
        assert_eq!(training(&run, &iterations)[0].pipeline_bubble, None);
        // A single iteration counts from its start.
        run.jobs.truncate(1);
        assert_eq!(training(&run, &[])[0].iteration_ns, 1.5e8);
        run.jobs.clear();
        assert_eq!(training(&run, &[]), []);
    }
}
