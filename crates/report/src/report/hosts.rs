//! Timeline of hosts: bars of computation and communication, one row a host.

use std::collections::{BTreeMap, BTreeSet};

use pathweave_records::{ActivityKind, ActivityRecord, RunResult, ns};
use serde::Serialize;

use super::thin::thin;
use super::{Budget, rounded};

/// The timeline of hosts.
#[derive(Debug, Default, Serialize)]
pub(super) struct Hosts {
    /// Number of hosts with activities.
    of: usize,
    /// Numbers of the hosts shown.
    host: Vec<u32>,
    name: Vec<String>,
    labels: Vec<Label>,
    bars: Bars,
    /// Number of ranks that each host represents, itself included; 1 if every rank is recorded.
    times_recorded: u32,
    /// Number of activities of these hosts that were omitted, and the length of the longest omitted one. They are short
    /// ones, an even part of those of each host.
    left_out: usize,
    left_out_up_to_ns: f64,
}

#[derive(Debug, Serialize)]
struct Label {
    activity: String,
    part: Option<String>,
    /// Operation and ranks, which determine the colour: "DP all-reduce".
    kind: String,
    /// Number of ranks, for a collective.
    ranks: Option<u32>,
    size_bytes: Option<u64>,
}

/// Bars, one list a figure.
#[derive(Debug, Default, Serialize)]
struct Bars {
    /// Index of the bar's host.
    row: Vec<u32>,
    /// Index of the bar's label.
    label: Vec<u32>,
    /// 1: communication, 0: computation.
    communicates: Vec<u8>,
    job: Vec<Option<u32>>,
    start_ns: Vec<f64>,
    /// End of the bar; `None` if the run ended before it.
    finish_ns: Vec<Option<f64>>,
    flows: Vec<u32>,
    bytes: Vec<u64>,
}

/// Builds the timeline of a run. Also returns the index in the timeline of each label of the run that it shows.
pub(super) fn hosts(run: &RunResult, budget: &Budget) -> (Hosts, BTreeMap<u32, u32>) {
    let length = |a: &ActivityRecord| a.finish_ps.map_or(u64::MAX, |finish| finish - a.start_ps);
    let mut of_host: BTreeMap<u32, Vec<&ActivityRecord>> = BTreeMap::new();
    run.activities.iter().for_each(|a| of_host.entry(a.host).or_default().push(a));
    let all: BTreeSet<u32> = of_host.keys().copied().collect();
    let shown = shown(run, &of_host, &all, budget);
    let times_recorded = run.info.times_recorded();
    let mut out = Hosts { of: all.len(), times_recorded, ..Hosts::default() };
    of_host.retain(|host, _| shown.contains(host));
    let each = if count(&of_host) > budget.bars { budget.bars / of_host.len().max(1) } else { usize::MAX };
    let mut longest_ps = 0;
    let mut bars = Vec::new();
    for mut activities in of_host.into_values() {
        activities.sort_by_key(|a| (a.start_ps, a.finish_ps, a.label));
        let lengths: Vec<u64> = activities.iter().map(|a| length(a)).collect();
        let mut kept = thin(&lengths, each).into_iter().peekable();
        for (index, activity) in activities.into_iter().enumerate() {
            if kept.next_if_eq(&index).is_some() {
                bars.push(activity);
            } else {
                out.left_out += 1;
                longest_ps = longest_ps.max(lengths[index].min(run.info.simulated_ps));
            }
        }
    }
    out.left_out_up_to_ns = rounded(ns(longest_ps));
    let mut places: BTreeMap<u32, u32> = BTreeMap::new();
    for bar in bars {
        let next = places.len() as u32;
        let label = *places.entry(bar.label).or_insert(next);
        if label == next {
            out.labels.push(label_of(run, bar.label));
        }
        if out.host.last() != Some(&bar.host) {
            let name = run.nodes.get(bar.host as usize).map(|node| node.name.clone());
            out.host.push(bar.host);
            out.name.push(name.unwrap_or_else(|| format!("host {}", bar.host)));
        }
        out.bars.row.push(out.host.len() as u32 - 1);
        out.bars.label.push(label);
        out.bars.communicates.push(u8::from(bar.kind == ActivityKind::Communication));
        out.bars.job.push(bar.job);
        out.bars.start_ns.push(exact(bar.start_ps));
        out.bars.finish_ns.push(bar.finish_ps.map(exact));
        out.bars.flows.push(bar.flows);
        out.bars.bytes.push(bar.sent_bytes + bar.received_bytes);
    }
    (out, places)
}

fn count(of_host: &BTreeMap<u32, Vec<&ActivityRecord>>) -> usize {
    of_host.values().map(Vec::len).sum()
}

/// Smallest number of hosts for which activities are left out. Of more hosts, whole ones are left out first, so that a
/// host that is shown has no gaps.
const FEWEST_HOSTS: usize = 4;

/// Selects hosts whose activities are within the budget together, or else the fewest.
fn shown(
    run: &RunResult,
    of_host: &BTreeMap<u32, Vec<&ActivityRecord>>,
    all: &BTreeSet<u32>,
    budget: &Budget,
) -> BTreeSet<u32> {
    let mut most = budget.hosts;
    loop {
        let shown = sample(run, all, most);
        let bars: usize = shown.iter().map(|host| of_host[host].len()).sum();
        if bars <= budget.bars || shown.len() <= FEWEST_HOSTS {
            return shown;
        }
        most = (shown.len() * budget.bars / bars).clamp(FEWEST_HOSTS, shown.len() - 1);
    }
}

/// Rounds to whole nanoseconds. The rounding to five digits used elsewhere could make successive bars overlap.
fn exact(ps: u64) -> f64 {
    ns(ps).round()
}

fn label_of(run: &RunResult, label: u32) -> Label {
    let label = run.labels.get(label as usize).cloned().unwrap_or_default();
    Label {
        kind: label.kind(),
        activity: label.activity,
        part: label.object,
        ranks: label.collective.map(|c| c.ranks),
        size_bytes: label.collective.and_then(|c| c.size_bytes),
    }
}

/// Selects all hosts, or `most` of them at equal distances including the one that is busy last.
fn sample(run: &RunResult, all: &BTreeSet<u32>, most: usize) -> BTreeSet<u32> {
    if all.len() <= most {
        return all.clone();
    }
    let last =
        run.activities.iter().max_by_key(|a| (a.finish_ps.unwrap_or(u64::MAX), std::cmp::Reverse(a.host)));
    let list: Vec<u32> = all.iter().copied().collect();
    let mut shown: BTreeSet<u32> = (0..most).map(|i| list[i * list.len() / most]).collect();
    if let Some(last) = last.map(|a| a.host)
        && shown.insert(last)
    {
        // The last host replaces the selected host with the nearest number.
        let nearest =
            shown.iter().copied().filter(|&host| host != last).min_by_key(|host| host.abs_diff(last));
        nearest.map(|host| shown.remove(&host));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::ActivityLabel;

    fn run(hosts: u32, each: u64) -> RunResult {
        let label =
            |activity: &str| ActivityLabel { activity: activity.to_owned(), ..ActivityLabel::default() };
        let mut run =
            RunResult { labels: ["never", "forward", "send"].map(label).to_vec(), ..RunResult::default() };
        run.info.simulated_ps = 1_000_000;
        for host in 0..hosts {
            for i in 0..each {
                let start_ps = i * 10_000;
                let kind = if i % 2 == 0 { ActivityKind::Computation } else { ActivityKind::Communication };
                run.activities.push(ActivityRecord {
                    host,
                    kind,
                    label: 1 + (i % 2) as u32,
                    start_ps,
                    finish_ps: Some(start_ps + 1_000 * (i + 1) + u64::from(host == 7)),
                    ..ActivityRecord::default()
                });
            }
        }
        run
    }

    #[test]
    fn every_bar_of_a_small_run_is_there() {
        let (hosts, places) = hosts(&run(2, 3), &Budget::for_runs(1));
        assert_eq!((hosts.of, hosts.host, hosts.left_out), (2, vec![0, 1], 0));
        assert_eq!(hosts.labels.iter().map(|l| l.activity.as_str()).collect::<Vec<_>>(), ["forward", "send"]);
        assert_eq!(places, BTreeMap::from([(1, 0), (2, 1)]));
        assert_eq!(
            (hosts.bars.row, hosts.bars.communicates),
            (vec![0, 0, 0, 1, 1, 1], vec![0, 1, 0, 0, 1, 0])
        );
        assert_eq!(hosts.bars.start_ns[..3], [0.0, 10.0, 20.0]);
        assert_eq!(hosts.bars.finish_ns[..3], [Some(1.0), Some(12.0), Some(23.0)]);
    }

    #[test]
    fn of_many_hosts_some_are_shown_and_the_last_to_end_is_one_of_them() {
        let budget = Budget { hosts: 4, bars: 6, ..Budget::for_runs(1) };
        let (hosts, _) = hosts(&run(100, 3), &budget);
        // Host 7 ends a picosecond later than all others, and replaces host 0. The others are 25 apart.
        assert_eq!((hosts.of, hosts.host.as_slice()), (100, [7, 25, 50, 75].as_slice()));
        // One of the three bars of each host: 4 of 12 bars, of 3 ns, remain.
        assert_eq!((hosts.left_out, hosts.left_out_up_to_ns), (8, 2.001));
        assert_eq!(hosts.bars.row, [0, 1, 2, 3]);
    }

    /// Hosts that do the same have bars to the end, whatever their number.
    #[test]
    fn bars_are_left_out_evenly() {
        let budget = Budget { hosts: 64, bars: 1_000, ..Budget::for_runs(1) };
        let (few, _) = hosts(&run(32, 100), &budget);
        assert_eq!((few.host.len(), few.left_out, few.bars.row.len()), (10, 0, 1_000));
        assert!(few.host.windows(2).all(|pair| (2..=4).contains(&(pair[1] - pair[0]))), "{:?}", few.host);
        let mut alike = run(32, 1_000);
        alike.activities.iter_mut().for_each(|a| a.finish_ps = Some(a.start_ps + 5_000));
        let (thinned, _) = hosts(&alike, &budget);
        assert_eq!((thinned.host.len(), thinned.left_out), (4, 3_000));
        for row in 0..4 {
            for tenth in 0..10 {
                let bars = thinned.bars.row.iter().zip(&thinned.bars.start_ns);
                let inside =
                    bars.filter(|(of, start)| **of == row && (**start / 1_000.0) as u32 == tenth).count();
                assert_eq!(inside, 25, "row {row}, tenth {tenth}");
            }
        }
    }
}
