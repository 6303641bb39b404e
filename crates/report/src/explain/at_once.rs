//! Flows that were on their way over a link at once.

use std::collections::BTreeSet;

use super::facts::{Facts, Flow};

impl Facts {
    /// Returns the flows that crossed a link, among those with records of waits. If none is recorded at the link of a
    /// receiver, these are the flows to it.
    fn flows_over(&self, link: usize) -> Vec<&Flow> {
        let over: Vec<&Flow> = self.flows.iter().filter(|flow| flow.crosses(link)).collect();
        let at = &self.links[link];
        if !over.is_empty() || !at.is_to_host() {
            return over;
        }
        self.flows.iter().filter(|flow| flow.dst_host == at.to_node).collect()
    }

    /// Returns the largest number of recorded flows that used a link at once.
    pub(super) fn flows_at_once(&self, link: usize) -> usize {
        let over = self.flows_over(link);
        over.iter().map(|flow| under_way(&over, flow.start_ns).count()).max().unwrap_or(0)
    }

    /// Returns the largest number of hosts whose recorded flows used a link at once.
    pub(super) fn senders_at_once(&self, link: usize) -> usize {
        let over = self.flows_over(link);
        let senders = |at_ns| under_way(&over, at_ns).map(|flow| flow.src_host).collect::<BTreeSet<u32>>();
        over.iter().map(|flow| senders(flow.start_ns).len()).max().unwrap_or(0)
    }
}

/// Iterates over the flows that were on their way at a time.
fn under_way<'a>(flows: &'a [&'a Flow], at_ns: f64) -> impl Iterator<Item = &'a Flow> {
    flows.iter().copied().filter(move |flow| flow.start_ns <= at_ns && at_ns < flow.end_ns())
}
