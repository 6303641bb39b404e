//! What hosts did over time: bars of computation and communication, a row a host.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Budget, rounded};
use crate::activities::{ActivityKind, ActivityRecord};
use crate::human::ns;
use crate::records::RunResult;

/// The timeline of hosts.
#[derive(Debug, Default, Serialize)]
pub(super) struct Hosts {
    /// Hosts that did something.
    of: usize,
    /// Those shown, by number.
    host: Vec<u32>,
    name: Vec<String>,
    labels: Vec<Label>,
    bars: Bars,
    /// Activities of these hosts that were too short for the page, and the longest of them.
    left_out: usize,
    left_out_up_to_ns: f64,
}

#[derive(Debug, Serialize)]
struct Label {
    activity: String,
    part: Option<String>,
    /// Of a collective.
    ranks: Option<u32>,
    size_bytes: Option<u64>,
}

/// A list a figure.
#[derive(Debug, Default, Serialize)]
struct Bars {
    /// Place of its host.
    row: Vec<u32>,
    /// Place of its label.
    label: Vec<u32>,
    /// 1: communication, 0: computation.
    communicates: Vec<u8>,
    job: Vec<Option<u32>>,
    start_ns: Vec<f64>,
    /// Nothing where the run ended before it.
    finish_ns: Vec<Option<f64>>,
    flows: Vec<u32>,
    bytes: Vec<u64>,
}

/// The timeline of a run, and the place there of each label of the run that it shows.
pub(super) fn hosts(run: &RunResult, budget: &Budget) -> (Hosts, BTreeMap<u32, u32>) {
    let all: BTreeSet<u32> = run.activities.iter().map(|a| a.host).collect();
    let shown = sample(run, &all, budget.hosts);
    let length = |a: &ActivityRecord| a.finish_ps.map_or(u64::MAX, |finish| finish - a.start_ps);
    let mut bars: Vec<&ActivityRecord> = run.activities.iter().filter(|a| shown.contains(&a.host)).collect();
    let mut out = Hosts { of: all.len(), ..Hosts::default() };
    if bars.len() > budget.bars {
        bars.sort_by_key(|a| (std::cmp::Reverse(length(a)), a.host, a.start_ps));
        out.left_out = bars.len() - budget.bars;
        out.left_out_up_to_ns =
            bars.get(budget.bars).map_or(0.0, |a| rounded(ns(length(a).min(run.info.simulated_ps))));
        bars.truncate(budget.bars);
        bars.sort_by_key(|a| (a.host, a.start_ps, a.finish_ps, a.label));
    }
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

/// Bars that follow each other must not overlap: whole nanoseconds, not so many digits.
fn exact(ps: u64) -> f64 {
    ns(ps).round()
}

fn label_of(run: &RunResult, label: u32) -> Label {
    let label = run.labels.get(label as usize).cloned().unwrap_or_default();
    Label {
        activity: label.activity,
        part: label.part,
        ranks: label.collective.map(|c| c.ranks),
        size_bytes: label.collective.and_then(|c| c.size_bytes),
    }
}

/// All of them, or so many at even distances, the one that is busy last among them.
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
        // In place of its neighbour.
        let nearest =
            shown.iter().copied().filter(|&host| host != last).min_by_key(|host| host.abs_diff(last));
        nearest.map(|host| shown.remove(&host));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activities::ActivityLabel;

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
        // Host 7 ends a picosecond later than all others, and stands for host 0; the others are 25 apart.
        assert_eq!((hosts.of, hosts.host.as_slice()), (100, [7, 25, 50, 75].as_slice()));
        // The two longest of the three of each: 6 of 12 bars have 3 ns or 2 ns.
        assert_eq!((hosts.left_out, hosts.left_out_up_to_ns), (6, 2.0));
        assert_eq!(hosts.bars.row.len(), 6);
    }
}
