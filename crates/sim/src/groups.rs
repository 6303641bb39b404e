//! What the queue pairs of each group do, averaged over samples. A sample counts for the time since the one before it:
//! later in a run, samples are further apart.

use pathweave_execution::ConnId;
use pathweave_policy::Policy;
use pathweave_results::GroupTotals;
use pathweave_units::{Duration, Time};

use crate::whole::Whole;

/// Sums over samples, and the seconds they are of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupSums {
    rates_s: f64,
    rate_bps: f64,
    held_s: f64,
    held_bytes: f64,
}

impl GroupSums {
    pub(crate) fn totals(&self) -> GroupTotals {
        let mean = |sum: f64, of_s: f64| (of_s > 0.0).then(|| sum / of_s);
        GroupTotals {
            policy_rate_bps: mean(self.rate_bps, self.rates_s),
            held_bytes: mean(self.held_bytes, self.held_s),
        }
    }
}

impl<const C: usize> Whole<'_, '_, C> {
    /// Adds a sample, `since` after the one before: the rate of each queue pair that has data to send or in flight, and
    /// what each receiver holds ahead of a gap.
    pub(crate) fn sample_groups(&mut self, now: Time, since: Duration, group_sums: &mut [GroupSums]) {
        let since_s = since.as_secs_f64();
        let mtu = self.shards[0].spec.host.mtu.get();
        for conn in 0..self.shards[0].traffic.execution.connections.len() as ConnId {
            let connection = &self.shards[0].traffic.execution.connections[conn];
            let (from, to, group) = (connection.src, connection.dst, connection.group);
            let sums = &mut group_sums[group.index()];
            // Its sender knows what is open.
            for &(at_src, at_dst) in &self.part_of(from).traffic.execution.connections[conn].queue_pairs {
                let src = &self.host(from).endpoint;
                let rate = src.policy(at_src).and_then(|policy| policy.rate(now));
                if let (Some(true), Some(rate)) = (src.is_busy(at_src), rate) {
                    sums.rates_s += since_s;
                    sums.rate_bps += rate.as_bps() as f64 * since_s;
                }
                if let Some(held) = self.host(to).endpoint.held_ahead(at_dst) {
                    sums.held_s += since_s;
                    sums.held_bytes += (held * mtu) as f64 * since_s;
                }
            }
        }
    }
}
