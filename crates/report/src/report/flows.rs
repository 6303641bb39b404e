//! Single flows to inspect: the slowest, and a random sample of the others. The number of flows on the page is
//! bounded by the budget.

use std::collections::BTreeMap;

use pathweave_records::figures::Sample;
use pathweave_records::{FlowRecord, ns};
use serde::Serialize;

use super::frames::Watched;
use super::{Budget, rounded};

/// Flows, one list a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Flows {
    /// Number of flows from which these were selected.
    of: usize,
    /// Number of the slowest flows, which come first.
    slowest: usize,
    flow: Vec<u32>,
    group: Vec<u16>,
    scheme: Vec<u16>,
    job: Vec<Option<u32>>,
    /// Index of each flow's label among the labels of the timeline.
    label: Vec<Option<u32>>,
    src_host: Vec<u32>,
    dst_host: Vec<u32>,
    size_bytes: Vec<u64>,
    start_ns: Vec<f64>,
    fct_ns: Vec<Option<f64>>,
    slowdown: Vec<Option<f64>>,
    retransmitted: Vec<u32>,
    dropped: Vec<u32>,
    ooo_degree: Vec<u32>,
    timeouts: Vec<u32>,
    status: Vec<&'static str>,
}

/// Selects the flows of a run to inspect: the slowest, the watched ones, and a random sample.
pub(super) fn flows(
    sample: &Sample,
    watched: &[Watched],
    labels: &BTreeMap<u32, u32>,
    budget: &Budget,
) -> Flows {
    let slowest: Vec<&FlowRecord> = sample.slowest().take(budget.flows / 10).collect();
    let is_shown = |flow: &&FlowRecord| watched.iter().any(|w| w.flow() == flow.flow);
    let mut others: BTreeMap<u32, &FlowRecord> =
        sample.watched_records.iter().filter(is_shown).map(|flow| (flow.flow, flow)).collect();
    // The sample has a random order, so a part of it is a random sample, too.
    others.extend(sample.picked.iter().take(budget.flows).map(|flow| (flow.flow, flow)));
    for flow in &slowest {
        others.remove(&flow.flow);
    }
    let mut out = Flows { of: sample.of, slowest: slowest.len(), ..Flows::default() };
    for flow in slowest.into_iter().chain(others.into_values()) {
        out.flow.push(flow.flow);
        out.group.push(flow.group);
        out.scheme.push(flow.scheme);
        out.job.push(flow.job);
        out.label.push(flow.label.and_then(|label| labels.get(&label).copied()));
        out.src_host.push(flow.src_host);
        out.dst_host.push(flow.dst_host);
        out.size_bytes.push(flow.size_bytes);
        out.start_ns.push(rounded(ns(flow.start_ps)));
        out.fct_ns.push(flow.fct_ps().map(|fct| rounded(ns(fct))));
        out.slowdown.push(flow.slowdown().map(rounded));
        out.retransmitted.push(flow.retransmitted_packets);
        out.dropped.push(flow.dropped_packets);
        out.ooo_degree.push(flow.ooo_degree_max);
        out.timeouts.push(flow.timeouts);
        out.status.push(flow.status.name());
    }
    out
}
