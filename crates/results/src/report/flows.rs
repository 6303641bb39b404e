//! Single flows to look at: the slowest, and a random sample of the rest. However many flows a run has, the page holds
//! no more than the budget.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use pathweave_units::Rng;
use serde::Serialize;

use super::frames::Watched;
use super::{Budget, rounded};
use crate::columns::ns;
use crate::records::{FlowRecord, RunResult};

/// Seed of the sample: the same flows are picked every time.
const SEED: u64 = 0x7061_7468;

/// Flows, a list a figure.
#[derive(Debug, Default, Serialize)]
pub(super) struct Flows {
    /// Of how many these were picked.
    of: usize,
    /// How many of them were picked as the slowest; they come first.
    slowest: usize,
    flow: Vec<u32>,
    group: Vec<u16>,
    scheme: Vec<u16>,
    job: Vec<Option<u32>>,
    /// Place of what its workload calls it among the labels of the timeline.
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

/// The flows of a run to look at: the slowest, those watched, and others.
pub(super) fn flows(
    run: &RunResult,
    watched: &[Watched],
    labels: &BTreeMap<u32, u32>,
    budget: &Budget,
) -> Flows {
    let slowest = slowest(&run.flows, budget.flows / 10);
    let mut taken: BTreeSet<usize> = slowest.iter().copied().collect();
    let mut picked = slowest.clone();
    let watched = watched.iter().map(|w| w.flow() as usize).filter(|&flow| flow < run.flows.len());
    for flow in watched.chain(reservoir(run.flows.len(), budget.flows)) {
        if taken.insert(flow) {
            picked.push(flow);
        }
    }
    picked[slowest.len()..].sort_unstable();
    let mut out = Flows { of: run.flows.len(), slowest: slowest.len(), ..Flows::default() };
    for flow in picked.into_iter().map(|i| &run.flows[i]) {
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

/// The `count` flows with the largest slowdown, largest first; of equal ones the first.
fn slowest(flows: &[FlowRecord], count: usize) -> Vec<usize> {
    // Slowdowns are positive, and positive numbers are in the order of their bits.
    let key = |i: usize| flows[i].slowdown().map(|s| (Reverse(s.to_bits()), i));
    let mut kept = std::collections::BinaryHeap::new();
    for key in (0..flows.len()).filter_map(key) {
        if kept.len() < count {
            kept.push(key);
        } else if kept.peek().is_some_and(|least| key < *least) {
            kept.pop();
            kept.push(key);
        }
    }
    kept.into_sorted_vec().into_iter().map(|(_, i)| i).collect()
}

/// `count` of `of` numbers, each as likely as any other (J. S. Vitter, "Random Sampling with a Reservoir", 1985,
/// algorithm R).
fn reservoir(of: usize, count: usize) -> Vec<usize> {
    let mut rng = Rng::for_component(SEED, "report flows", 0);
    let mut kept: Vec<usize> = (0..of.min(count)).collect();
    for i in count..of {
        let place = rng.below(i as u32 + 1) as usize;
        if let Some(kept) = kept.get_mut(place) {
            *kept = i;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_the_same_every_time_and_even() {
        let sample = reservoir(100_000, 2_000);
        assert_eq!(sample, reservoir(100_000, 2_000));
        assert_eq!(sample.iter().collect::<BTreeSet<_>>().len(), 2_000);
        // 200 expected in each tenth, standard deviation below 14.
        for tenth in 0..10 {
            let inside = sample.iter().filter(|&&i| i / 10_000 == tenth).count();
            assert!((140..260).contains(&inside), "{inside} of tenth {tenth}");
        }
        assert_eq!(reservoir(3, 10), [0, 1, 2]);
    }

    #[test]
    fn the_slowest_come_first() {
        let flow = |fct_ps| FlowRecord { finish_ps: Some(fct_ps), ideal_fct_ps: 10, ..FlowRecord::default() };
        let mut flows: Vec<_> = [30, 90, 20, 90, 50].map(flow).to_vec();
        flows.push(FlowRecord::default());
        assert_eq!(slowest(&flows, 3), [1, 3, 4]);
        assert_eq!(slowest(&flows, 10), [1, 3, 4, 0, 2]);
        assert_eq!(slowest(&flows, 0), [0usize; 0]);
    }
}
