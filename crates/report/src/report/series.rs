//! Time series, thinned out: the most prominent entities, and an aggregate of all.

use std::collections::BTreeMap;

use pathweave_records::{Missing, NodeKind, Quantity, RunResult, SeriesKind, Span, ns};
use serde::Serialize;

use super::intervals::Intervals;
use super::{Budget, rounded};

/// A picture of one kind of sample over time.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    kind: &'static str,
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
    /// Span of a value: its instant, or the interval that ends there.
    span: Span,
    time_ns: Vec<f64>,
    curves: Vec<Curve>,
}

#[derive(Debug, Serialize)]
struct Curve {
    label: String,
    /// True for the curve over all entities, which comparisons of runs overlay.
    aggregate: bool,
    /// Value at each instant; `None` if there was no entity to sample.
    value: Vec<Option<f64>>,
}

/// Way in which samples that share a point of the picture are merged.
#[derive(Clone, Copy, PartialEq)]
enum Merge {
    /// The largest, to show peaks.
    Max,
    /// The mean.
    Mean,
    /// The mean over time of the sum over entities.
    Sum,
}

struct ChartStyle {
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
    merge: Merge,
    /// Noun for the sampled entities, in the plural.
    noun: &'static str,
}

/// Returns the look of a picture, or `None` if the kind has no picture of its own. Shares of paths concern one flow
/// only, and are shown with it.
fn chart_style(kind: SeriesKind) -> Option<ChartStyle> {
    let look = |title, axis, quantity, merge, noun| Some(ChartStyle { title, axis, quantity, merge, noun });
    match kind {
        SeriesKind::Interval | SeriesKind::PathShare => None,
        SeriesKind::QueueBytes => look("Egress queues", "Queue", Quantity::Bytes, Merge::Max, "links"),
        SeriesKind::LinkUtilisation => {
            look("Link utilisation", "Utilisation", Quantity::Percent, Merge::Mean, "links")
        }
        SeriesKind::HostRateBps => {
            look("Receive rate of hosts", "Payload received", Quantity::RateBps, Merge::Mean, "hosts")
        }
        SeriesKind::PolicyRateBps => {
            look("Sending rate allowed", "Rate", Quantity::RateBps, Merge::Mean, "flows")
        }
        SeriesKind::InflightBytes => {
            look("Bytes in flight", "In flight", Quantity::Bytes, Merge::Mean, "flows")
        }
        SeriesKind::InflightPaths => {
            look("Different paths in flight", "Paths", Quantity::Count, Merge::Mean, "flows")
        }
        SeriesKind::HeldBytes => {
            look("Bytes held ahead of a gap", "Held", Quantity::Bytes, Merge::Mean, "flows")
        }
        SeriesKind::GoodputBps => {
            look("Throughput of flows", "Payload received", Quantity::RateBps, Merge::Mean, "flows")
        }
        SeriesKind::UnfinishedBytes => {
            look("Bytes of unfinished flows", "Still to arrive", Quantity::Bytes, Merge::Sum, "flows")
        }
    }
}

/// Returns the number of entities of a kind, with and without samples.
fn population(run: &RunResult, kind: SeriesKind, sampled: usize) -> usize {
    let known = match kind {
        SeriesKind::QueueBytes | SeriesKind::LinkUtilisation => run.links.len(),
        _ => 0,
    };
    known.max(sampled)
}

/// Returns a chart for every kind that was sampled.
pub(super) fn charts(run: &RunResult, budget: &Budget) -> Vec<Chart> {
    let intervals = Intervals::from_series(&run.series, budget.points);
    SeriesKind::ALL.iter().filter_map(|&kind| chart(run, kind, &intervals, budget)).collect()
}

#[derive(Clone, Copy, Default)]
struct Cell {
    max: f64,
    sum: f64,
    count: u64,
}

impl Cell {
    fn add(&mut self, value: f64) {
        self.max = if self.count == 0 { value } else { self.max.max(value) };
        self.sum += value;
        self.count += 1;
    }
    /// Returns the merged value of these samples, of `places` that could have had one.
    fn value(&self, merge: Merge, missing: Missing, places: u64) -> Option<f64> {
        let (there, of) = match missing {
            Missing::Zero => (true, places),
            _ => (self.count > 0, self.count),
        };
        there.then(|| match merge {
            Merge::Max => self.max,
            Merge::Mean => self.sum / of as f64,
            Merge::Sum => self.sum / places as f64,
        })
    }
}

fn chart(run: &RunResult, kind: SeriesKind, intervals: &Intervals, budget: &Budget) -> Option<Chart> {
    let ChartStyle { title, axis, quantity, merge, noun } = chart_style(kind)?;
    let missing = kind.missing();
    let samples = || run.series.iter().filter(move |s| s.kind == kind);
    let mut entities: BTreeMap<u32, Cell> = BTreeMap::new();
    samples().for_each(|s| entities.entry(s.entity).or_default().add(s.value));
    if entities.is_empty() {
        return None;
    }
    let all_instants: u64 = intervals.instants.iter().map(|&n| u64::from(n)).sum();
    let weight = |cell: &Cell| cell.value(merge, missing, all_instants).unwrap_or(0.0);
    let mut by_weight: Vec<_> = entities.iter().collect();
    by_weight.sort_by(|a, b| f64::total_cmp(&weight(b.1), &weight(a.1)));
    let shown: BTreeMap<u32, usize> =
        by_weight.iter().take(budget.curves).enumerate().map(|(i, (entity, _))| (**entity, i + 1)).collect();

    let mut cells = vec![vec![Cell::default(); intervals.len()]; shown.len() + 1];
    for sample in samples() {
        let at = intervals.at(sample.time_ps);
        cells[0][at].add(sample.value);
        if let Some(&curve) = shown.get(&sample.entity) {
            cells[curve][at].add(sample.value);
        }
    }
    let population = population(run, kind, entities.len());
    let mut labels = vec![match (merge, missing) {
        (Merge::Max, _) => format!("largest of {population} {noun}"),
        (Merge::Sum, _) => format!("sum of {population} {noun}"),
        (Merge::Mean, Missing::Nothing) => format!("mean of those under way, of {population} {noun}"),
        (Merge::Mean, _) if kind == SeriesKind::HostRateBps => {
            let all = run.nodes.iter().filter(|node| node.kind == NodeKind::Host).count();
            match population < all {
                true => format!("mean of the {population} hosts that receive, of {all}"),
                false => format!("mean of {population} {noun}"),
            }
        }
        (Merge::Mean, _) => format!("mean of {population} {noun}"),
    }];
    labels.resize(shown.len() + 1, String::new());
    for (&entity, &curve) in &shown {
        labels[curve] = label(run, kind, entity);
    }
    let curves = labels.into_iter().zip(cells).enumerate().map(|(i, (label, cells))| {
        let of = if i == 0 && merge != Merge::Sum { population as u64 } else { 1 };
        let value = |(cell, &instants): (&Cell, &u32)| {
            cell.value(merge, missing, of * u64::from(instants)).map(rounded)
        };
        Curve { label, aggregate: i == 0, value: cells.iter().zip(&intervals.instants).map(value).collect() }
    });
    let mut curves: Vec<_> = curves.collect();
    if population == 1 {
        // A single entity is its own aggregate.
        let only = curves.pop()?;
        curves = vec![Curve { aggregate: true, ..only }];
    }
    let time_ns = intervals.ends_ps.iter().map(|&t| ns(t)).collect();
    Some(Chart { kind: kind.name(), title, axis, quantity, span: kind.span(), time_ns, curves })
}

fn label(run: &RunResult, kind: SeriesKind, entity: u32) -> String {
    let known =
        |name: Option<&String>, word: &str| name.cloned().unwrap_or_else(|| format!("{word} {entity}"));
    match kind {
        SeriesKind::QueueBytes | SeriesKind::LinkUtilisation => {
            known(run.links.get(entity as usize).map(|l| &l.name), "link")
        }
        SeriesKind::HostRateBps => known(run.nodes.get(entity as usize).map(|n| &n.name), "host"),
        _ => format!("flow {entity}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::{LinkTotals, NodeInfo, SeriesSample};

    fn sample(time_ps: u64, kind: SeriesKind, entity: u32, value: f64) -> SeriesSample {
        SeriesSample { time_ps, value, entity, index: 0, kind }
    }

    fn run(samples: impl Iterator<Item = (u64, u32, f64)>) -> RunResult {
        let sample = |(time_ps, entity, value)| sample(time_ps, SeriesKind::QueueBytes, entity, value);
        RunResult { series: samples.map(sample).collect(), ..RunResult::default() }
    }

    #[test]
    fn a_peak_survives_thinning_out() {
        let spike = |t: u64| if t == 77_777 { 5e6 } else { 10.0 };
        let run = run((0..100_000).map(|t| (t, 3, spike(t))));
        let charts = charts(&run, &Budget::for_runs(1));
        assert_eq!(charts.len(), 1);
        let curve = &charts[0].curves[0];
        assert_eq!((charts[0].curves.len(), curve.label.as_str()), (1, "link 3"));
        assert!(curve.value.len() <= 1_000);
        assert_eq!(curve.value.iter().flatten().copied().fold(0.0, f64::max), 5e6);
    }

    #[test]
    fn the_largest_entities_are_shown_with_the_largest_of_all() {
        let run = run((0..10).flat_map(|t| (0..50).map(move |e| (t, e, f64::from(e)))));
        let charts = charts(&run, &Budget::for_runs(1));
        let labels: Vec<_> = charts[0].curves.iter().map(|c| c.label.as_str()).collect();
        assert_eq!(
            labels,
            ["largest of 50 links", "link 49", "link 48", "link 47", "link 46", "link 45", "link 44"]
        );
        assert_eq!(charts[0].curves[0].value, vec![Some(49.0); 10]);
        assert_eq!(charts[0].time_ns.len(), 10);
    }

    /// 320 hosts. At 1 and 4 ns one of them receives 13.9 Gb/s over a link that is busy for half the time, at 4 ns
    /// with a queue. Flow 7 is watched, and active at 1 and 2 ns.
    fn mostly_idle() -> RunResult {
        let node =
            |node| NodeInfo { node, name: format!("h{node}"), kind: NodeKind::Host, tier: 0, pod: None };
        let link = |link| LinkTotals { link, name: format!("l{link}"), ..LinkTotals::default() };
        let mut run = RunResult {
            nodes: (0..320).map(node).collect(),
            links: (0..640).map(link).collect(),
            ..RunResult::default()
        };
        for t in 1..=4u64 {
            let mut add = |kind, entity, value| run.series.push(sample(t * 1_000, kind, entity, value));
            add(SeriesKind::Interval, 0, 1.0);
            if t == 1 || t == 4 {
                add(SeriesKind::HostRateBps, 17, 13.9e9);
                add(SeriesKind::LinkUtilisation, 33, 0.5);
            }
            if t == 4 {
                add(SeriesKind::QueueBytes, 33, 9_000.0);
            }
            if t <= 2 {
                add(SeriesKind::InflightBytes, 7, 3_000.0);
            }
        }
        run
    }

    #[test]
    fn idle_hosts_count_as_zero_and_absent_ones_not_at_all() {
        let charts = charts(&mostly_idle(), &Budget::for_runs(1));
        let of = |kind: SeriesKind| charts.iter().find(|c| c.kind == kind.name()).unwrap();
        let curve = |kind, i: usize| {
            let curve = &of(kind).curves[i];
            (curve.label.as_str(), curve.value.clone())
        };
        assert_eq!(of(SeriesKind::HostRateBps).time_ns, [1.0, 2.0, 3.0, 4.0]);
        // The others never receive.
        let alone = Some(13.9e9);
        assert_eq!(curve(SeriesKind::HostRateBps, 0), ("h17", vec![alone, Some(0.0), Some(0.0), alone]));
        let mut two = mostly_idle();
        two.series.push(sample(1_000, SeriesKind::HostRateBps, 18, 4e9));
        let two = super::charts(&two, &Budget::for_runs(1));
        let of_hosts = two.iter().find(|c| c.kind == SeriesKind::HostRateBps.name()).unwrap();
        assert_eq!(of_hosts.curves[0].label, "mean of the 2 hosts that receive, of 320");
        assert_eq!(of_hosts.curves[0].value, [Some(8.95e9), Some(0.0), Some(0.0), Some(6.95e9)]);
        let busy = Some(0.00078125);
        assert_eq!(
            curve(SeriesKind::LinkUtilisation, 0),
            ("mean of 640 links", vec![busy, Some(0.0), Some(0.0), busy])
        );
        let queue = vec![Some(0.0), Some(0.0), Some(0.0), Some(9_000.0)];
        assert_eq!(curve(SeriesKind::QueueBytes, 0), ("largest of 640 links", queue.clone()));
        assert_eq!(curve(SeriesKind::QueueBytes, 1), ("l33", queue));
        let inflight = vec![Some(3_000.0), Some(3_000.0), None, None];
        assert_eq!(curve(SeriesKind::InflightBytes, 0), ("flow 7", inflight));
    }

    #[test]
    fn instants_that_share_a_point_count_whether_they_have_a_sample_or_not() {
        let budget = Budget { points: 2, ..Budget::for_runs(1) };
        let charts = charts(&mostly_idle(), &budget);
        let of = |kind: SeriesKind| charts.iter().find(|c| c.kind == kind.name()).unwrap();
        assert_eq!(of(SeriesKind::HostRateBps).time_ns, [2.0, 4.0]);
        assert_eq!(of(SeriesKind::HostRateBps).curves[0].value, [Some(6.95e9), Some(6.95e9)]);
        assert_eq!(of(SeriesKind::QueueBytes).curves[1].value, [Some(0.0), Some(9_000.0)]);
        assert_eq!(of(SeriesKind::InflightBytes).curves[0].value, [Some(3_000.0), None]);
    }

    /// Flow 0 has 3,000 bytes left at 1 ns and 1,000 at 2 ns, flow 1 has 2,000 at 2 ns and none at 3 ns.
    #[test]
    fn bytes_of_unfinished_flows_add_up() {
        let left = [(1, 0, 3e3), (2, 0, 1e3), (2, 1, 2e3), (3, 1, 0.0)];
        let mut run = RunResult::default();
        for t in 1..=4u64 {
            run.series.push(sample(t * 1_000, SeriesKind::Interval, 0, 1.0));
            for (_, flow, bytes) in left.iter().filter(|(at, ..)| *at == t) {
                run.series.push(sample(t * 1_000, SeriesKind::UnfinishedBytes, *flow, *bytes));
                run.series.push(sample(t * 1_000, SeriesKind::GoodputBps, *flow, 2.0 * bytes));
            }
        }
        let of = |points| charts(&run, &Budget { points, ..Budget::for_runs(1) });
        let (fine, coarse) = (of(10), of(2));
        let [rate, bytes] = &fine[..] else { panic!("two pictures") };
        assert_eq!(
            (bytes.title, bytes.curves[0].label.as_str()),
            ("Bytes of unfinished flows", "sum of 2 flows")
        );
        assert_eq!(bytes.curves[0].value, [Some(3e3), Some(3e3), Some(0.0), None]);
        assert_eq!(bytes.curves[1].value, [Some(3e3), Some(1e3), None, None], "flow 0 has the most");
        // The mean throughput is of flows under way.
        assert_eq!(rate.curves[0].value, [Some(6e3), Some(3e3), Some(0.0), None]);
        // The mean over two instants of the sum at each.
        assert_eq!(coarse[1].curves[0].value, [Some(3e3), Some(0.0)]);
    }
}
