//! Time of the jobs of a run, by which runs with jobs are compared.

use serde::Serialize;

use crate::described::described;
use crate::format::ns;
use crate::records::{JobRecord, Role, RunResult};

/// Largest number of jobs in the list of a summary.
const LISTED: usize = 64;

described! {
    /// Jobs of a foreground workload group.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct GroupJobs {
        /// Name of the group.
        pub group: String,
        /// Number of jobs; each iteration is one.
        pub count: u64,
        /// Number of jobs that were unfinished at the end of the run.
        pub unfinished: u64,
        /// Time until the last message is there: that of the longest job, or, where jobs follow each other as
        /// iterations do, from the start of the first to the end of the last. Null if a job did not finish.
        pub time_ns: Option<f64>,
    }
}

described! {
    /// Time of one job.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct JobTime {
        /// Number of the job.
        pub job: u32,
        /// Name of the job.
        pub name: String,
        /// Time until its last message is there. Null if the job did not finish.
        pub time_ns: Option<f64>,
    }
}

/// Returns the jobs of each workload group that has any and for which `counts` is true, in order of declaration.
pub fn group_jobs(run: &RunResult, counts: impl Fn(u16) -> bool) -> Vec<GroupJobs> {
    let of = |(group, name): (u16, &String)| {
        let jobs: Vec<&JobRecord> = run.jobs.iter().filter(|job| job.group == group).collect();
        let unfinished = jobs.iter().filter(|job| job.finish_ps.is_none()).count();
        let time_ps = span_ps(&jobs).filter(|_| unfinished == 0);
        GroupJobs {
            group: name.clone(),
            count: jobs.len() as u64,
            unfinished: unfinished as u64,
            time_ns: time_ps.map(ns),
        }
    };
    let groups = (0..).zip(&run.info.groups).filter(|(group, _)| counts(*group));
    groups.map(of).filter(|jobs| jobs.count > 0).collect()
}

/// Returns the jobs of each foreground group that has any.
pub(crate) fn foreground_jobs(run: &RunResult) -> Vec<GroupJobs> {
    group_jobs(run, |group| run.info.role(group) == Role::Foreground)
}

/// Returns the time of the finished jobs of a group.
fn span_ps(jobs: &[&JobRecord]) -> Option<u64> {
    if jobs.iter().all(|job| job.before_ps.is_none()) {
        return jobs.iter().filter_map(|job| job.completion_ps()).max();
    }
    let start = jobs.iter().map(|job| job.start_ps).min()?;
    let end = jobs.iter().filter_map(|job| job.finish_ps).max()?;
    Some(end.saturating_sub(start))
}

/// Returns the job time of a run: the time of its group, or the geometric mean of the times of several groups. The ratio
/// of two runs is then the geometric mean of the ratios of their groups, and a short job weighs as much as a long one.
/// Returns `None` without jobs, or if one did not finish.
pub fn job_time_ns(groups: &[GroupJobs]) -> Option<f64> {
    let times: Vec<f64> = groups.iter().map(|jobs| jobs.time_ns).collect::<Option<_>>()?;
    match times[..] {
        [] => None,
        [time] => Some(time),
        _ => Some((times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64).exp()),
    }
}

/// Returns the longest foreground jobs, in the order of their numbers. Unfinished ones count as longest.
pub(crate) fn longest_jobs(run: &RunResult) -> Vec<JobTime> {
    let foreground = |job: &&JobRecord| run.info.role(job.group) == Role::Foreground;
    let mut jobs: Vec<&JobRecord> = run.jobs.iter().filter(foreground).collect();
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.completion_ps().unwrap_or(u64::MAX)), job.job));
    jobs.truncate(LISTED);
    jobs.sort_by_key(|job| job.job);
    let time = |job: &JobRecord| JobTime {
        job: job.job,
        name: job.name.clone(),
        time_ns: job.completion_ps().map(ns),
    };
    jobs.into_iter().map(time).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u32, group: u16, start_us: u64, finish_us: Option<u64>) -> JobRecord {
        JobRecord {
            job: number,
            name: format!("job {number}"),
            group,
            start_ps: start_us * 1_000_000,
            finish_ps: finish_us.map(|us| us * 1_000_000),
            ..JobRecord::default()
        }
    }

    fn run(groups: &[&str], jobs: Vec<JobRecord>) -> RunResult {
        let mut run = RunResult { jobs, ..RunResult::default() };
        run.info.groups = groups.iter().map(|&name| name.to_owned()).collect();
        run.info.roles = vec![Role::Foreground; groups.len()];
        run
    }

    fn times(run: &RunResult) -> Vec<Option<f64>> {
        foreground_jobs(run).iter().map(|jobs| jobs.time_ns).collect()
    }

    #[test]
    fn jobs_side_by_side_take_as_long_as_the_longest() {
        // 8 us, and 6 us that begin later and end last.
        let both = run(&["a"], vec![job(0, 0, 0, Some(8)), job(1, 0, 4, Some(10))]);
        assert_eq!(times(&both), [Some(8_000.0)]);
        assert_eq!(job_time_ns(&foreground_jobs(&both)), Some(8_000.0));
    }

    #[test]
    fn iterations_take_from_the_first_start_to_the_last_end() {
        let us = 1_000_000;
        let second = JobRecord { before_ps: Some(8 * us), ..job(1, 0, 7, Some(15)) };
        // Their periods are 6 us, 7 us and 9 us.
        let third = JobRecord { before_ps: Some(15 * us), ..job(2, 0, 14, Some(24)) };
        let all = run(&["a"], vec![job(0, 0, 2, Some(8)), second, third]);
        assert_eq!(times(&all), [Some(22_000.0)]);
        let listed: Vec<_> = longest_jobs(&all).iter().map(|job| job.time_ns).collect();
        assert_eq!(listed, [Some(6_000.0), Some(7_000.0), Some(9_000.0)]);
    }

    #[test]
    fn several_groups_count_alike() {
        let both = run(&["a", "none", "b"], vec![job(0, 0, 0, Some(2)), job(1, 2, 0, Some(8))]);
        let groups = foreground_jobs(&both);
        assert_eq!(groups.iter().map(|jobs| jobs.group.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        // The square root of 2 x 8.
        assert!((job_time_ns(&groups).unwrap() - 4_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_job_that_did_not_finish_leaves_no_time() {
        let open = run(&["a", "b"], vec![job(0, 0, 0, Some(2)), job(1, 1, 0, None), job(2, 1, 0, Some(9))]);
        assert_eq!(times(&open), [Some(2_000.0), None]);
        assert_eq!(foreground_jobs(&open)[1].unfinished, 1);
        assert_eq!(job_time_ns(&foreground_jobs(&open)), None);
        assert_eq!(longest_jobs(&open)[1].time_ns, None);
        assert_eq!(job_time_ns(&[]), None, "a run without jobs");
    }

    #[test]
    fn jobs_of_the_background_do_not_count() {
        let mut beside = run(&["a", "b"], vec![job(0, 0, 0, Some(2)), job(1, 1, 0, None)]);
        beside.info.roles[1] = Role::Background;
        assert_eq!(job_time_ns(&foreground_jobs(&beside)), Some(2_000.0));
        assert_eq!(longest_jobs(&beside).len(), 1);
        assert_eq!(group_jobs(&beside, |group| group == 1)[0].unfinished, 1);
    }
}
