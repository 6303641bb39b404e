//! Time series, thinned out: the entities that stand out, and an aggregate of all.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Budget, rounded};
use crate::columns::ns;
use crate::human::Quantity;
use crate::records::{RunResult, SeriesKind, SeriesSample};

/// A picture of one kind of sample over time.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    kind: &'static str,
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
    time_ns: Vec<f64>,
    curves: Vec<Curve>,
}

#[derive(Debug, Serialize)]
struct Curve {
    label: String,
    /// Over all entities; what a comparison of runs overlays.
    aggregate: bool,
    value: Vec<Option<f64>>,
}

/// How samples that share a point of the picture become one.
#[derive(Clone, Copy, PartialEq)]
enum Merge {
    /// The largest: peaks matter.
    Max,
    /// The mean.
    Mean,
}

struct Look {
    title: &'static str,
    axis: &'static str,
    quantity: Quantity,
    merge: Merge,
}

fn look(kind: SeriesKind) -> Look {
    let look = |title, axis, quantity, merge| Look { title, axis, quantity, merge };
    match kind {
        SeriesKind::QueueBytes => look("Egress queues", "Queue", Quantity::Bytes, Merge::Max),
        SeriesKind::BufferBytes => look("Switch buffers", "Buffer in use", Quantity::Bytes, Merge::Max),
        SeriesKind::LinkUtilisation => {
            look("Link utilisation", "Utilisation", Quantity::Percent, Merge::Mean)
        }
        SeriesKind::LinkTxBytes => {
            look("Bytes sent by links", "Bytes an interval", Quantity::Bytes, Merge::Mean)
        }
        SeriesKind::HostRateBps => look("Receive rate of hosts", "Goodput", Quantity::RateBps, Merge::Mean),
        SeriesKind::PolicyRateBps => look("Sending rate allowed", "Rate", Quantity::RateBps, Merge::Mean),
        SeriesKind::InflightBytes => look("Bytes in flight", "In flight", Quantity::Bytes, Merge::Mean),
        SeriesKind::HeldBytes => look("Bytes held ahead of a gap", "Held", Quantity::Bytes, Merge::Mean),
        SeriesKind::PathShare => look("Share of paths", "Share of packets", Quantity::Percent, Merge::Mean),
    }
}

/// A chart for every kind that was sampled. Shares of paths say something of one flow only, and are shown there.
pub(super) fn charts(run: &RunResult, budget: &Budget) -> Vec<Chart> {
    let kinds = SeriesKind::ALL.iter().filter(|&&kind| kind != SeriesKind::PathShare);
    kinds.filter_map(|&kind| chart(run, kind, budget)).collect()
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
    fn value(&self, merge: Merge) -> Option<f64> {
        (self.count > 0).then(|| match merge {
            Merge::Max => self.max,
            Merge::Mean => self.sum / self.count as f64,
        })
    }
}

fn chart(run: &RunResult, kind: SeriesKind, budget: &Budget) -> Option<Chart> {
    let samples = || run.series.iter().filter(move |s| s.kind == kind);
    let Look { title, axis, quantity, merge } = look(kind);
    let mut entities: BTreeMap<(u32, u16), Cell> = BTreeMap::new();
    samples().for_each(|s| entities.entry((s.entity, s.index)).or_default().add(s.value));
    if entities.is_empty() {
        return None;
    }
    let mut by_weight: Vec<_> = entities.iter().collect();
    by_weight
        .sort_by(|a, b| f64::total_cmp(&b.1.value(merge).unwrap_or(0.0), &a.1.value(merge).unwrap_or(0.0)));
    let shown: BTreeMap<(u32, u16), usize> =
        by_weight.iter().take(budget.curves).enumerate().map(|(i, (key, _))| (**key, i + 1)).collect();

    let axis_of = TimeAxis::of(samples(), budget.points);
    let mut cells = vec![vec![Cell::default(); axis_of.len()]; shown.len() + 1];
    for sample in samples() {
        let at = axis_of.index(sample.time_ps);
        cells[0][at].add(sample.value);
        if let Some(&curve) = shown.get(&(sample.entity, sample.index)) {
            cells[curve][at].add(sample.value);
        }
    }
    let word = if merge == Merge::Max { "largest" } else { "mean" };
    let mut labels = vec![format!("{word} of {}", entities.len())];
    labels.resize(shown.len() + 1, String::new());
    for (&(entity, index), &curve) in &shown {
        labels[curve] = label(run, kind, entity, index);
    }
    let curves = labels.into_iter().zip(cells).enumerate().map(|(i, (label, cells))| Curve {
        label,
        aggregate: i == 0,
        value: cells.iter().map(|c| c.value(merge).map(rounded)).collect(),
    });
    let mut curves: Vec<_> = curves.collect();
    if entities.len() == 1 {
        // The one entity is its own aggregate.
        let only = curves.pop()?;
        curves = vec![Curve { aggregate: true, ..only }];
    }
    Some(Chart { kind: kind.name(), title, axis, quantity, time_ns: axis_of.times_ns(), curves })
}

fn label(run: &RunResult, kind: SeriesKind, entity: u32, index: u16) -> String {
    let known =
        |name: Option<&String>, word: &str| name.cloned().unwrap_or_else(|| format!("{word} {entity}"));
    let name = match kind {
        SeriesKind::QueueBytes | SeriesKind::LinkUtilisation | SeriesKind::LinkTxBytes => {
            known(run.links.get(entity as usize).map(|l| &l.name), "link")
        }
        SeriesKind::BufferBytes => known(run.nodes.get(entity as usize).map(|n| &n.name), "switch"),
        SeriesKind::HostRateBps => format!("host {entity}"),
        SeriesKind::PolicyRateBps | SeriesKind::InflightBytes | SeriesKind::HeldBytes => {
            format!("flow {entity}")
        }
        SeriesKind::PathShare => return format!("flow {entity} path {index}"),
    };
    if index == 0 { name } else { format!("{name} class {index}") }
}

/// The instants of a picture: those sampled, or equal intervals if there are too many.
enum TimeAxis {
    Exact(Vec<u64>),
    Intervals { first_ps: u64, width_ps: u64, count: usize },
}

impl TimeAxis {
    fn of<'a>(samples: impl Iterator<Item = &'a SeriesSample> + Clone, points: usize) -> Self {
        let mut times = std::collections::BTreeSet::new();
        let (mut first_ps, mut last_ps) = (u64::MAX, 0);
        for sample in samples {
            first_ps = first_ps.min(sample.time_ps);
            last_ps = last_ps.max(sample.time_ps);
            if times.len() <= points {
                times.insert(sample.time_ps);
            }
        }
        if times.len() <= points {
            return TimeAxis::Exact(times.into_iter().collect());
        }
        let width_ps = (last_ps - first_ps + 1).div_ceil(points as u64);
        TimeAxis::Intervals { first_ps, width_ps, count: points }
    }
    fn len(&self) -> usize {
        match self {
            TimeAxis::Exact(times) => times.len(),
            TimeAxis::Intervals { count, .. } => *count,
        }
    }
    fn index(&self, time_ps: u64) -> usize {
        match self {
            TimeAxis::Exact(times) => times.binary_search(&time_ps).expect("made of these very times"),
            TimeAxis::Intervals { first_ps, width_ps, .. } => ((time_ps - first_ps) / width_ps) as usize,
        }
    }
    fn times_ns(&self) -> Vec<f64> {
        match self {
            TimeAxis::Exact(times) => times.iter().map(|&t| ns(t)).collect(),
            TimeAxis::Intervals { first_ps, width_ps, count } => {
                (0..*count as u64).map(|i| ns(first_ps + i * width_ps + width_ps / 2)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(samples: impl Iterator<Item = (u64, u32, f64)>) -> RunResult {
        let sample = |(time_ps, entity, value)| SeriesSample {
            time_ps,
            value,
            entity,
            index: 0,
            kind: SeriesKind::QueueBytes,
        };
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
            ["largest of 50", "link 49", "link 48", "link 47", "link 46", "link 45", "link 44"]
        );
        assert_eq!(charts[0].curves[0].value, vec![Some(49.0); 10]);
        assert_eq!(charts[0].time_ns.len(), 10);
    }
}
