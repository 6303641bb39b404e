//! Collectives as a whole: the ranks that began and finished last, and the bandwidth achieved.

use std::collections::BTreeMap;

use crate::activities::{ActivityKind, ActivityRecord};
use crate::exposure::exposed_ps;
use crate::figures::{CollectiveState, CollectiveStats, Key};
use crate::records::RunResult;

/// A collective operation, assembled from the messages of all its ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectiveRecord {
    /// Number of the collective in the run, by start.
    pub collective: u32,
    /// Workload group, an index into [`RunInfo::groups`](crate::RunInfo::groups).
    pub group: u16,
    /// Job of the collective, an index into [`RunResult::jobs`].
    pub job: Option<u32>,
    /// Label of the collective, an index into [`RunResult::labels`].
    pub label: u32,
    /// Number of its messages.
    pub flows: u32,
    /// Time at which the first of its ranks began, that is, posted its first message.
    pub first_start_ps: u64,
    /// Time at which the last of its ranks began.
    pub last_start_ps: u64,
    /// Time at which the first rank finished: all its messages, sent and received, had arrived. `None` if none
    /// finished.
    pub first_finish_ps: Option<u64>,
    /// Time at which the last rank finished. `None` if the run ended before that.
    pub last_finish_ps: Option<u64>,
    /// Time from begin to end, the mean over ranks; ranks of a broadcast or reduction that wait for others begin with the
    /// first one. `None` if a rank did not finish.
    pub mean_ps: Option<u64>,
    /// Part of that time in which the rank computed nothing for the job, the mean over ranks.
    pub exposed_ps: u64,
    /// The largest such part of a rank.
    pub most_exposed_ps: u64,
    /// Host of the rank that began last.
    pub last_to_start_host: u32,
    /// Host of the rank that finished last.
    pub last_to_finish_host: Option<u32>,
    /// The message with the largest delay beyond its time on an idle network.
    pub slowest_flow: Option<u32>,
    /// Delay of that message.
    pub slowest_flow_lost_ps: Option<u64>,
}

impl CollectiveRecord {
    /// Returns the bandwidth in bits per second: bytes over the mean time of the ranks, as nccl-tests report it (`-a
    /// 1`).
    pub fn bandwidth_bps(&self, bytes: u64) -> Option<f64> {
        let ps = self.mean_ps.filter(|&ps| ps > 0)?;
        Some(bytes as f64 * 8e12 / ps as f64)
    }
}

impl CollectiveRecord {
    /// Creates the record from the messages of a collective, in which all ranks may have `equal` parts.
    fn of(parts: &CollectiveState, equal: bool) -> Self {
        let starts = || parts.ranks.iter().map(|(&host, rank)| (rank.start_ps, host));
        let finishes =
            || parts.ranks.iter().filter_map(|(&host, rank)| rank.finish_ps.map(|finish| (finish, host)));
        let (last_start_ps, last_to_start_host) = starts().max().unwrap_or_default();
        let all_through = finishes().count() == parts.ranks.len();
        let last = finishes().max().filter(|_| all_through);
        let mean = |times: Vec<u64>| {
            let sum: u128 = times.iter().map(|&ps| u128::from(ps)).sum();
            u64::try_from(sum / times.len().max(1) as u128).unwrap_or(u64::MAX)
        };
        CollectiveRecord {
            flows: parts.flows,
            first_start_ps: starts().map(|(start, _)| start).min().unwrap_or(0),
            last_start_ps,
            first_finish_ps: finishes().map(|(finish, _)| finish).min(),
            last_finish_ps: last.map(|(finish, _)| finish),
            mean_ps: parts.times_ps(equal).map(mean),
            last_to_start_host,
            last_to_finish_host: last.map(|(_, host)| host),
            slowest_flow: parts.slowest.map(|(_, flow)| flow),
            slowest_flow_lost_ps: parts.slowest.map(|(lost, _)| lost),
            ..CollectiveRecord::default()
        }
    }
}

/// Returns the collectives of a run, by start.
pub fn collectives(run: &RunResult) -> Vec<CollectiveRecord> {
    match &run.streamed {
        Some(figures) => records(run, figures.collectives()),
        None => {
            let mut of_flows =
                CollectiveStats::new(&run.labels).with_representatives(&run.info.representative_of_host);
            run.flows.iter().for_each(|flow| of_flows.add(flow));
            records(run, &of_flows)
        }
    }
}

fn records(run: &RunResult, of_flows: &CollectiveStats) -> Vec<CollectiveRecord> {
    if of_flows.parts.is_empty() {
        return Vec::new();
    }
    let key = |activity: &ActivityRecord| (activity.group, activity.part.or(activity.job), activity.label);
    // Communication with a rank may begin before the rank does. Its own time counts.
    let from_ps = |activity: &ActivityRecord| {
        let parts = of_flows.parts.get(&key(activity));
        parts
            .and_then(|parts| parts.ranks.get(&activity.host))
            .map_or(activity.start_ps, |rank| rank.start_ps)
    };
    let mut of_ranks: BTreeMap<(Key, u32), u64> = BTreeMap::new();
    for (activity, exposed_ps) in run.activities.iter().zip(exposed_ps(run, from_ps)) {
        if activity.kind == ActivityKind::Communication && of_flows.knows(activity.label) {
            *of_ranks.entry((key(activity), activity.host)).or_default() += exposed_ps;
        }
    }
    // Sum and maximum over ranks.
    let mut exposed: BTreeMap<Key, (u128, u64)> = BTreeMap::new();
    for ((key, _), exposed_ps) in of_ranks {
        let of = exposed.entry(key).or_default();
        *of = (of.0 + u128::from(exposed_ps), of.1.max(exposed_ps));
    }
    let times = run.info.times_recorded();
    let equal = |label: u32| {
        let collective = run.labels.get(label as usize).and_then(|label| label.collective);
        collective.is_some_and(|collective| collective.bus_bytes.is_some())
    };
    let record = |(&key, parts): (&Key, &CollectiveState)| {
        let (sum, most_exposed_ps) = exposed.get(&key).copied().unwrap_or_default();
        let mean = u64::try_from(sum / parts.ranks.len().max(1) as u128).unwrap_or(u64::MAX);
        let (group, job, label) = key;
        CollectiveRecord {
            group,
            job,
            label,
            flows: parts.flows.saturating_mul(times),
            exposed_ps: mean,
            most_exposed_ps,
            ..CollectiveRecord::of(parts, equal(label))
        }
    };
    let mut all: Vec<CollectiveRecord> = of_flows.parts.iter().map(record).collect();
    all.sort_by_key(|c| (c.first_start_ps, c.group, c.job, c.label));
    all.iter_mut().zip(0..).for_each(|(record, number)| record.collective = number);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activities::{ActivityLabel, ActivityRecord, CollectiveLabel};
    use crate::records::FlowRecord;

    /// Two ranks exchange 1,000 bytes. Host 0 posts at 10 us and host 1 at 30 us. The messages arrive 20 us and 21 us
    /// later.
    #[test]
    fn a_late_rank_and_the_bandwidth_of_all() {
        const US: u64 = 1_000_000;
        let flow = |flow, src_host, dst_host, start: u64, took: u64| FlowRecord {
            flow,
            label: Some(1),
            job: Some(0),
            src_host,
            dst_host,
            size_bytes: 1_000,
            start_ps: start * US,
            finish_ps: Some((start + took) * US),
            ideal_fct_ps: 15 * US,
            ..FlowRecord::default()
        };
        let bar = |host, kind, label, from: u64, to: u64| ActivityRecord {
            host,
            kind,
            label,
            job: Some(0),
            start_ps: from * US,
            finish_ps: Some(to * US),
            ..ActivityRecord::default()
        };
        let collective = CollectiveLabel { ranks: 2, bus_bytes: Some(1_000), ..CollectiveLabel::default() };
        let of = |activity: &str, collective| ActivityLabel {
            activity: activity.to_owned(),
            collective,
            ..ActivityLabel::default()
        };
        let (computes, communicates) = (ActivityKind::Computation, ActivityKind::Communication);
        let mut run = RunResult {
            labels: vec![of("forward", None), of("all-reduce", Some(collective))],
            flows: vec![flow(0, 0, 1, 10, 20), flow(1, 1, 0, 30, 21)],
            // Host 1 computes until 30 us, host 0 until 10 us.
            activities: vec![
                bar(0, computes, 0, 0, 10),
                bar(0, communicates, 1, 10, 51),
                bar(1, computes, 0, 0, 30),
                bar(1, communicates, 1, 10, 51),
            ],
            ..RunResult::default()
        };
        let all = collectives(&run);
        assert_eq!(all.len(), 1);
        let one = &all[0];
        assert_eq!((one.first_start_ps, one.last_start_ps), (10 * US, 30 * US));
        assert_eq!((one.last_to_start_host, one.last_finish_ps), (1, Some(51 * US)));
        // 41 us at host 0, 21 us at host 1.
        assert_eq!(one.mean_ps, Some(31 * US));
        assert_eq!(one.bandwidth_bps(1_000), Some(8_000.0 / 31e-6));
        assert_eq!((one.exposed_ps, one.most_exposed_ps), (31 * US, 41 * US));
        assert_eq!((one.slowest_flow, one.slowest_flow_lost_ps), (Some(1), Some(6 * US)));
        // Without computation, host 1's own time is the same: it has begun when it posts its message.
        let all = std::mem::take(&mut run.activities);
        run.activities = all.into_iter().filter(|one| one.kind == communicates).collect();
        let one = &collectives(&run)[0];
        assert_eq!((one.mean_ps, one.exposed_ps, one.most_exposed_ps), (Some(31 * US), 31 * US, 41 * US));
        // A message that does not arrive leaves the collective without an end and without a bandwidth.
        run.flows[1].finish_ps = None;
        let one = &collectives(&run)[0];
        assert_eq!((one.last_finish_ps, one.mean_ps, one.last_to_finish_host), (None, None, None));
        run.labels[1].collective = None;
        assert!(collectives(&run).is_empty());
    }

    /// Four ranks, 10 us a message. Binomial trees: the root sends to rank 2, then both send on; backwards, ranks 1 and 3
    /// send to 0 and 2, then 2 to 0. nccl-tests start all ranks at once, so that the time of those that wait counts: 20 us
    /// at each rank of the broadcast, and 20, 10, 20 and 10 us in the reduction.
    #[test]
    fn ranks_that_wait_for_a_tree_began_with_the_first() {
        const US: u64 = 1_000_000;
        let run = |messages: &[(u32, u32, u64)], bus_bytes| RunResult {
            labels: vec![ActivityLabel {
                collective: Some(CollectiveLabel { ranks: 4, bus_bytes, ..CollectiveLabel::default() }),
                ..ActivityLabel::default()
            }],
            flows: (0u32..)
                .zip(messages)
                .map(|(flow, &(src_host, dst_host, start))| FlowRecord {
                    flow,
                    label: Some(0),
                    src_host,
                    dst_host,
                    start_ps: start * US,
                    finish_ps: Some((start + 10) * US),
                    ..FlowRecord::default()
                })
                .collect(),
            ..RunResult::default()
        };
        let of = |messages: &[_]| collectives(&run(messages, Some(1_000)))[0].clone();
        let broadcast = of(&[(0, 2, 0), (0, 1, 10), (2, 3, 10)]);
        assert_eq!((broadcast.mean_ps, broadcast.bandwidth_bps(1_000)), (Some(20 * US), Some(4e8)));
        assert_eq!(of(&[(1, 0, 0), (3, 2, 0), (2, 0, 10)]).mean_ps, Some(15 * US));
        // A rank of a ring that posts late has computed before.
        assert_eq!(of(&[(0, 1, 0), (1, 2, 5), (2, 0, 10)]).mean_ps, Some((20 + 10 + 10) * US / 3));
        // The experts of rank 0 get no tokens, and ranks 1 and 2 post late.
        let dispatch = run(&[(0, 1, 0), (0, 2, 0), (1, 2, 5), (2, 1, 10)], None);
        assert_eq!(collectives(&dispatch)[0].mean_ps, Some((10 + 15 + 10) * US / 3));
    }
}
