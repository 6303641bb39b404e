//! Pictures over time of links and hosts: a value for each row of the picture and each instant.

use std::collections::BTreeMap;

use pathweave_records::{EventKind, Quantity, RunResult, SeriesKind, Span, ns};
use serde::Serialize;

use super::fabric::RowMap;
use super::intervals::Intervals;
use super::plane::QuantizedMatrix;
use super::{Budget, rounded};

/// Largest number of instants shown.
const INSTANTS: usize = 256;

/// Pictures over time.
#[derive(Debug, Serialize)]
pub(super) struct TimePictures {
    /// Ends of the intervals in ascending order; empty without samples.
    time_ns: Vec<f64>,
    /// Mean utilisation over the interval. Rows are those of the fabric.
    utilisation: Option<QuantizedMatrix>,
    /// Utilisation of the busiest link of each row, if rows contain several links.
    busiest: Option<QuantizedMatrix>,
    /// Largest sample of the interval, bytes.
    queue_bytes: Option<QuantizedMatrix>,
    /// Packets dropped in the interval, if their drops were recorded as events.
    dropped: Option<QuantizedMatrix>,
    /// Fraction of the interval in which PFC held a priority class.
    paused: Option<QuantizedMatrix>,
    /// Payload received in bits per second, one row a host. `None` if there are too many hosts.
    host_rate_bps: Option<QuantizedMatrix>,
    /// Time until which drops and pauses are complete; `None` if to the end.
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
    /// Span of a value: its instant, or the interval that ends there.
    span: Span,
    /// Number of the path, or 0.
    index: u16,
    /// Value at each instant. `None` if the flow was not active or, for shares, if none of its packets arrived.
    value: Vec<Option<f64>>,
}

/// Builds the pictures of a run.
pub(super) fn frames(run: &RunResult, rows: &RowMap, budget: &Budget) -> TimePictures {
    // There are four or five pictures of the fabric, and one of the hosts.
    let wanted = 5 * rows.links.len();
    let intervals = Intervals::from_series(&run.series, (budget.cells / wanted.max(1)).clamp(2, INSTANTS));
    let shown = [EventKind::Drop, EventKind::PfcPause, EventKind::PfcResume];
    let mut frames = TimePictures {
        time_ns: intervals.ends_ps.iter().map(|&t| rounded(ns(t))).collect(),
        utilisation: None,
        busiest: None,
        queue_bytes: None,
        dropped: None,
        paused: None,
        host_rate_bps: None,
        events_until_ns: run.recorded_until_ps(&shown).map(|ps| rounded(ns(ps))),
        flows: Vec::new(),
    };
    if intervals.len() == 0 {
        return frames;
    }
    let blank = |count: usize| vec![vec![0.0f64; intervals.len()]; count];
    let links = rows.links.len();

    let (mut busy, mut queue) = (blank(links), blank(links));
    let mut busiest = rows.are_blocks().then(|| Busiest { of_row: blank(links), ..Busiest::default() });
    let hosts = run.nodes.iter().filter(|n| n.kind == pathweave_records::NodeKind::Host).count();
    let hosts = if hosts * intervals.len() <= budget.cells / 4 { hosts } else { 0 };
    let mut rates = blank(hosts);
    for sample in &run.series {
        let at = intervals.at(sample.time_ps);
        let instants = f64::from(intervals.instants[at]);
        match sample.kind {
            SeriesKind::LinkUtilisation => {
                for row in rows.of(sample.entity) {
                    busy[row][at] += sample.value / instants / f64::from(rows.links[row]);
                }
                if let Some(busiest) = &mut busiest {
                    busiest.add(sample.entity, at, sample.value / instants, rows);
                }
            }
            SeriesKind::QueueBytes => {
                for row in rows.of(sample.entity) {
                    queue[row][at] = queue[row][at].max(sample.value);
                }
            }
            SeriesKind::HostRateBps => {
                if let Some(rates) = rates.get_mut(sample.entity as usize) {
                    rates[at] += sample.value / instants;
                }
            }
            _ => {}
        }
    }
    frames.utilisation = QuantizedMatrix::from_rows(&busy);
    frames.busiest = busiest.and_then(|busiest| QuantizedMatrix::from_rows(&busiest.finished(rows)));
    frames.queue_bytes = QuantizedMatrix::from_rows(&queue);
    frames.host_rate_bps = QuantizedMatrix::from_rows(&rates);

    let mut dropped = busy;
    dropped.iter_mut().flatten().for_each(|v| *v = 0.0);
    for event in run.events.iter().filter(|e| e.kind == EventKind::Drop) {
        for row in event.link.into_iter().flat_map(|link| rows.of(link)) {
            dropped[row][intervals.at(event.time_ps)] += 1.0;
        }
    }
    frames.dropped = QuantizedMatrix::from_rows(&dropped);

    let mut paused = queue;
    paused.iter_mut().flatten().for_each(|v| *v = 0.0);
    for pause in super::pauses::pauses(run) {
        let (first, last) = (intervals.at(pause.from_ps), intervals.at(pause.until_ps));
        for row in rows.of(pause.link) {
            for (at, paused) in (first..=last).zip(&mut paused[row][first..=last]) {
                let (start, end) = (intervals.start(at), intervals.ends_ps[at]);
                let held = pause.until_ps.min(end).saturating_sub(pause.from_ps.max(start));
                *paused += held as f64 / (end - start).max(1) as f64 / f64::from(rows.links[row]);
            }
        }
    }
    frames.paused = QuantizedMatrix::from_rows(&paused);
    frames.flows = watched(run, &intervals);
    frames
}

/// Computes the utilisation of the busiest link of each row in each interval. Samples come in order of time, so an
/// interval is over when the next one begins.
#[derive(Default)]
struct Busiest {
    of_row: Vec<Vec<f64>>,
    /// Current interval, and the utilisation of each link in it.
    at: usize,
    of_link: BTreeMap<u32, f64>,
}

impl Busiest {
    fn add(&mut self, link: u32, at: usize, used: f64, rows: &RowMap) {
        if at != self.at {
            self.close(rows);
            self.at = at;
        }
        *self.of_link.entry(link).or_default() += used;
    }

    fn close(&mut self, rows: &RowMap) {
        for (link, used) in std::mem::take(&mut self.of_link) {
            for row in rows.of(link) {
                let most = &mut self.of_row[row][self.at];
                *most = most.max(used);
            }
        }
    }

    fn finished(mut self, rows: &RowMap) -> Vec<Vec<f64>> {
        self.close(rows);
        self.of_row
    }
}

fn watched(run: &RunResult, intervals: &Intervals) -> Vec<Watched> {
    let quantity = |kind| match kind {
        SeriesKind::PolicyRateBps | SeriesKind::GoodputBps => Some(Quantity::RateBps),
        SeriesKind::InflightBytes | SeriesKind::UnfinishedBytes => Some(Quantity::Bytes),
        SeriesKind::InflightPaths => Some(Quantity::Count),
        SeriesKind::PathShare => Some(Quantity::Percent),
        _ => None,
    };
    // Sums and counts, by flow, kind and path.
    let mut sums: BTreeMap<(u32, SeriesKind, u16), Vec<(f64, u32)>> = BTreeMap::new();
    // Instants at which packets of a flow had arrived. At these, a path without a sample had a share of zero.
    let mut with_shares: BTreeMap<u32, (u64, Vec<u32>)> = BTreeMap::new();
    for sample in run.series.iter().filter(|s| quantity(s.kind).is_some()) {
        let key = (sample.entity, sample.kind, sample.index);
        let at = intervals.at(sample.time_ps);
        let (sum, count) = &mut sums.entry(key).or_insert_with(|| vec![(0.0, 0); intervals.len()])[at];
        *sum += sample.value;
        *count += 1;
        if sample.kind == SeriesKind::PathShare {
            let (last_ps, instants) =
                with_shares.entry(sample.entity).or_insert_with(|| (u64::MAX, vec![0; intervals.len()]));
            if std::mem::replace(last_ps, sample.time_ps) != sample.time_ps {
                instants[at] += 1;
            }
        }
    }
    let mut out: Vec<Watched> = Vec::new();
    for ((flow, kind, index), sums) in sums {
        if out.last().is_none_or(|w| w.flow != flow) {
            out.push(Watched { flow, curves: Vec::new() });
        }
        let counts: Vec<u32> = match (kind, with_shares.get(&flow)) {
            (SeriesKind::PathShare, Some((_, instants))) => instants.clone(),
            _ => sums.iter().map(|&(_, count)| count).collect(),
        };
        let mean =
            |(&(sum, _), &count): (&(f64, u32), &u32)| (count > 0).then(|| rounded(sum / f64::from(count)));
        let quantity = quantity(kind).expect("filtered above");
        let span = kind.span();
        let curve =
            Curve { kind, quantity, span, index, value: sums.iter().zip(&counts).map(mean).collect() };
        out.last_mut().expect("pushed above").curves.push(curve);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    use pathweave_records::SeriesSample;

    fn sample(time_ps: u64, kind: SeriesKind, entity: u32, value: f64) -> SeriesSample {
        SeriesSample { time_ps, value, entity, index: 0, kind }
    }

    #[test]
    fn instants_that_share_an_interval_give_means_of_use_and_peaks_of_queues() {
        let mut run = RunResult::default();
        for t in 1..=600u64 {
            // Busy at every second instant. An entity without a sample was at zero.
            if t % 2 == 0 {
                run.series.push(sample(t * 1_000, SeriesKind::LinkUtilisation, 0, 1.0));
            }
            let queue = if t == 301 { 5_000.0 } else { 10.0 };
            run.series.push(sample(t * 1_000, SeriesKind::QueueBytes, 0, queue));
        }
        let rows = RowMap::new(vec![0], Vec::new(), 1);
        let frames = frames(&run, &rows, &Budget::for_runs(1));
        // 600 instants, 3 to an interval.
        assert_eq!(frames.time_ns.len(), 200);
        assert_eq!((frames.time_ns[0], frames.time_ns[199]), (3.0, 600.0));
        // At most two of three.
        assert_eq!(frames.utilisation.unwrap().top(), 0.66667);
        assert_eq!(frames.queue_bytes.unwrap().top(), 5_000.0);
        assert!(frames.dropped.is_none() && frames.paused.is_none() && frames.flows.is_empty());
    }

    #[test]
    fn rows_of_several_links_have_the_mean_and_the_busiest() {
        let mut run = RunResult::default();
        for t in 1..=2u64 {
            run.series.push(sample(t * 1_000, SeriesKind::LinkUtilisation, 0, 1.0));
            run.series.push(sample(
                t * 1_000,
                SeriesKind::LinkUtilisation,
                1,
                if t == 1 { 0.0 } else { 0.5 },
            ));
        }
        // Two links with one cell each, and one line between blocks.
        let rows = RowMap::new(vec![1, 2], vec![0, 0], 3);
        let frames = frames(&run, &rows, &Budget::for_runs(1));
        let told = |plane: Option<QuantizedMatrix>| serde_json::to_value(plane).unwrap();
        let expected = |rows: &[Vec<f64>]| told(QuantizedMatrix::from_rows(rows));
        assert_eq!(told(frames.utilisation), expected(&[vec![0.5, 0.75], vec![1.0, 1.0], vec![0.0, 0.5]]));
        assert_eq!(told(frames.busiest), expected(&[vec![1.0, 1.0], vec![1.0, 1.0], vec![0.0, 0.5]]));
    }

    #[test]
    fn idle_instants_are_idle_and_have_columns_of_their_own() {
        let mut run = RunResult::default();
        for t in 1..=4u64 {
            run.series.push(sample(t * 1_000, SeriesKind::Interval, 0, 1.0));
            if t == 1 || t == 4 {
                run.series.push(sample(t * 1_000, SeriesKind::LinkUtilisation, 0, 0.5));
            }
        }
        let rows = RowMap::new(vec![0], Vec::new(), 1);
        let frames = frames(&run, &rows, &Budget::for_runs(1));
        assert_eq!(frames.time_ns, [1.0, 2.0, 3.0, 4.0]);
        let idle_between = QuantizedMatrix::from_rows(&[vec![0.5, 0.0, 0.0, 0.5]]);
        assert_eq!(
            serde_json::to_value(frames.utilisation).unwrap(),
            serde_json::to_value(idle_between).unwrap()
        );
    }

    #[test]
    fn a_path_without_packets_has_none_while_others_have_and_no_share_of_nothing() {
        let mut run = RunResult::default();
        let mut add = |t: u64, kind, index, value| {
            run.series.push(SeriesSample { index, ..sample(t * 1_000, kind, 9, value) });
        };
        for t in 1..=4 {
            add(t, SeriesKind::Interval, 0, 1.0);
            match t {
                1 => add(t, SeriesKind::PathShare, 5, 1.0),
                2 => [5, 6].into_iter().for_each(|path| add(t, SeriesKind::PathShare, path, 0.5)),
                // No packet arrives at 3.
                4 => add(t, SeriesKind::PathShare, 6, 1.0),
                _ => {}
            }
            if t < 4 {
                add(t, SeriesKind::InflightBytes, 0, 0.0);
            }
        }
        let rows = RowMap::new(Vec::new(), Vec::new(), 0);
        let shares = |run: &RunResult, budget| -> Vec<Vec<Option<f64>>> {
            let frames = frames(run, &rows, &budget);
            frames.flows[0].curves.iter().map(|curve| curve.value.clone()).collect()
        };
        let budget = Budget::for_runs(1);
        assert_eq!(
            shares(&run, budget),
            [
                vec![Some(0.0), Some(0.0), Some(0.0), None],
                vec![Some(1.0), Some(0.5), None, Some(0.0)],
                vec![Some(0.0), Some(0.5), None, Some(1.0)],
            ]
        );
        // Two instants an interval: the mean over the instants at which a packet arrived.
        let coarse = shares(&run, Budget { cells: 0, ..budget });
        assert_eq!(coarse[1..], [vec![Some(0.75), Some(0.0)], vec![Some(0.25), Some(1.0)]]);
    }
}
