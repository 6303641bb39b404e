//! What links and hosts did over time: a value for each row of the picture and each instant.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::fabric::Rows;
use super::plane::Plane;
use super::{Budget, rounded};
use crate::columns::ns;
use crate::human::Quantity;
use crate::records::{EventKind, RunResult, SeriesKind, SeriesSample};

/// Most instants shown.
const INSTANTS: usize = 256;

/// Pictures over time.
#[derive(Debug, Serialize)]
pub(super) struct Frames {
    /// Ends of the intervals, rising; none where nothing was sampled.
    time_ns: Vec<f64>,
    /// Rows are those of the fabric. Mean over the interval.
    utilisation: Option<Plane>,
    /// Largest sample of the interval, bytes.
    queue_bytes: Option<Plane>,
    /// Packets dropped in the interval, of those recorded one by one.
    dropped: Option<Plane>,
    /// Fraction of the interval in which PFC held a priority class.
    paused: Option<Plane>,
    /// Payload received, bits per second; a row a host. Nothing where hosts are too many.
    host_rate_bps: Option<Plane>,
    /// Until when drops and pauses are complete; nothing if to the end.
    events_until_ns: Option<f64>,
    /// Flows that were watched.
    pub(super) flows: Vec<Watched>,
}

/// A flow sampled over time.
#[derive(Debug, Serialize)]
pub(super) struct Watched {
    flow: u32,
    curves: Vec<Curve>,
}

impl Watched {
    pub(super) fn flow(&self) -> u32 {
        self.flow
    }
}

#[derive(Debug, Serialize)]
struct Curve {
    kind: SeriesKind,
    quantity: Quantity,
    /// Path, or 0.
    index: u16,
    /// At each instant; nothing where it was not sampled.
    value: Vec<Option<f64>>,
}

/// Intervals that end at sampled instants, several instants to one where they are many.
struct Intervals {
    ends_ps: Vec<u64>,
    /// Instants in each.
    instants: Vec<u32>,
}

impl Intervals {
    fn of(series: &[SeriesSample], most: usize) -> Self {
        let times: BTreeSet<u64> = series.iter().map(|s| s.time_ps).collect();
        let times: Vec<u64> = times.into_iter().collect();
        let each = times.len().div_ceil(most.max(1)).max(1);
        Intervals {
            ends_ps: times.chunks(each).map(|c| c[c.len() - 1]).collect(),
            instants: times.chunks(each).map(|c| c.len() as u32).collect(),
        }
    }
    fn len(&self) -> usize {
        self.ends_ps.len()
    }
    /// The one an instant is in, its end included; the last one for what comes after.
    fn at(&self, time_ps: u64) -> usize {
        self.ends_ps.partition_point(|&end| end < time_ps).min(self.len() - 1)
    }
    fn start(&self, i: usize) -> u64 {
        if i == 0 { 0 } else { self.ends_ps[i - 1] }
    }
}

/// The pictures of a run.
pub(super) fn frames(run: &RunResult, rows: &Rows, budget: &Budget) -> Frames {
    // Four pictures of the fabric, one of the hosts.
    let wanted = 4 * rows.links.len();
    let intervals = Intervals::of(&run.series, (budget.cells / wanted.max(1)).clamp(2, INSTANTS));
    let last_recorded = run.events.last().map_or(0, |e| e.time_ps);
    let mut frames = Frames {
        time_ns: intervals.ends_ps.iter().map(|&t| rounded(ns(t))).collect(),
        utilisation: None,
        queue_bytes: None,
        dropped: None,
        paused: None,
        host_rate_bps: None,
        events_until_ns: (run.events_not_recorded > 0).then(|| rounded(ns(last_recorded))),
        flows: Vec::new(),
    };
    if intervals.len() == 0 {
        return frames;
    }
    let blank = |count: usize| vec![vec![0.0f64; intervals.len()]; count];
    let row_of = |link: u32| rows.of_link.get(link as usize).map(|&row| row as usize);
    let links = rows.links.len();

    let (mut busy, mut queue) = (blank(links), blank(links));
    let hosts = run.nodes.iter().filter(|n| n.kind == crate::NodeKind::Host).count();
    let hosts = if hosts * intervals.len() <= budget.cells / 4 { hosts } else { 0 };
    let mut rates = blank(hosts);
    for sample in &run.series {
        let at = intervals.at(sample.time_ps);
        let instants = f64::from(intervals.instants[at]);
        match (sample.kind, row_of(sample.entity)) {
            (SeriesKind::LinkUtilisation, Some(row)) => {
                busy[row][at] += sample.value / instants / f64::from(rows.links[row]);
            }
            (SeriesKind::QueueBytes, Some(row)) => queue[row][at] = queue[row][at].max(sample.value),
            (SeriesKind::HostRateBps, _) => {
                if let Some(rates) = rates.get_mut(sample.entity as usize) {
                    rates[at] += sample.value / instants;
                }
            }
            _ => {}
        }
    }
    frames.utilisation = Plane::of(&busy);
    frames.queue_bytes = Plane::of(&queue);
    frames.host_rate_bps = Plane::of(&rates);

    let mut dropped = busy;
    dropped.iter_mut().flatten().for_each(|v| *v = 0.0);
    for event in run.events.iter().filter(|e| e.kind == EventKind::Drop) {
        if let Some(row) = event.link.and_then(row_of) {
            dropped[row][intervals.at(event.time_ps)] += 1.0;
        }
    }
    frames.dropped = Plane::of(&dropped);

    let mut paused = queue;
    paused.iter_mut().flatten().for_each(|v| *v = 0.0);
    for pause in super::pauses::pauses(run) {
        let Some(row) = row_of(pause.link) else { continue };
        let (first, last) = (intervals.at(pause.from_ps), intervals.at(pause.until_ps));
        for (at, paused) in (first..=last).zip(&mut paused[row][first..=last]) {
            let (start, end) = (intervals.start(at), intervals.ends_ps[at]);
            let held = pause.until_ps.min(end).saturating_sub(pause.from_ps.max(start));
            *paused += held as f64 / (end - start).max(1) as f64 / f64::from(rows.links[row]);
        }
    }
    frames.paused = Plane::of(&paused);
    frames.flows = watched(run, &intervals);
    frames
}

fn watched(run: &RunResult, intervals: &Intervals) -> Vec<Watched> {
    let quantity = |kind| match kind {
        SeriesKind::PolicyRateBps => Some(Quantity::RateBps),
        SeriesKind::InflightBytes => Some(Quantity::Bytes),
        SeriesKind::PathShare => Some(Quantity::Percent),
        _ => None,
    };
    // Sums and counts; by flow, kind and path.
    let mut sums: BTreeMap<(u32, SeriesKind, u16), Vec<(f64, u32)>> = BTreeMap::new();
    for sample in run.series.iter().filter(|s| quantity(s.kind).is_some()) {
        let key = (sample.entity, sample.kind, sample.index);
        let sums = sums.entry(key).or_insert_with(|| vec![(0.0, 0); intervals.len()]);
        let (sum, count) = &mut sums[intervals.at(sample.time_ps)];
        *sum += sample.value;
        *count += 1;
    }
    let mut out: Vec<Watched> = Vec::new();
    for ((flow, kind, index), sums) in sums {
        if out.last().is_none_or(|w| w.flow != flow) {
            out.push(Watched { flow, curves: Vec::new() });
        }
        let mean = |&(sum, count): &(f64, u32)| (count > 0).then(|| rounded(sum / f64::from(count)));
        let quantity = quantity(kind).expect("filtered above");
        let curve = Curve { kind, quantity, index, value: sums.iter().map(mean).collect() };
        out.last_mut().expect("pushed above").curves.push(curve);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time_ps: u64, kind: SeriesKind, entity: u32, value: f64) -> SeriesSample {
        SeriesSample { time_ps, value, entity, index: 0, kind }
    }

    #[test]
    fn instants_that_share_an_interval_give_means_of_use_and_peaks_of_queues() {
        let mut run = RunResult::default();
        for t in 1..=600u64 {
            // Busy at every second instant; an entity without a sample was at zero.
            if t % 2 == 0 {
                run.series.push(sample(t * 1_000, SeriesKind::LinkUtilisation, 0, 1.0));
            }
            let queue = if t == 301 { 5_000.0 } else { 10.0 };
            run.series.push(sample(t * 1_000, SeriesKind::QueueBytes, 0, queue));
        }
        let rows = Rows { of_link: vec![0], links: vec![1] };
        let frames = frames(&run, &rows, &Budget::for_runs(1));
        // 600 instants, 3 to an interval.
        assert_eq!(frames.time_ns.len(), 200);
        assert_eq!((frames.time_ns[0], frames.time_ns[199]), (3.0, 600.0));
        // Two of three at most.
        assert_eq!(frames.utilisation.unwrap().top(), 0.66667);
        assert_eq!(frames.queue_bytes.unwrap().top(), 5_000.0);
        assert!(frames.dropped.is_none() && frames.paused.is_none() && frames.flows.is_empty());
    }
}
