//! What the queue pairs of each group do, averaged over samples.

use pathweave_policy::Policy;
use pathweave_results::GroupTotals;
use pathweave_units::Time;

use crate::runner::Runner;

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupSums {
    rates: u64,
    rate_bps: f64,
    held: u64,
    held_bytes: f64,
}

impl GroupSums {
    pub(crate) fn totals(&self) -> GroupTotals {
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        GroupTotals {
            policy_rate_bps: mean(self.rate_bps, self.rates),
            held_bytes: mean(self.held_bytes, self.held),
        }
    }
}

impl<const C: usize> Runner<'_, C> {
    /// Adds a sample: the rate of each queue pair that has data to send or in flight, and what each receiver holds ahead
    /// of a gap.
    pub(crate) fn sample_groups(&mut self, now: Time) {
        let mtu = self.spec.host.mtu.get();
        for connection in &self.connections.list {
            let sums = &mut self.group_sums[connection.group.index()];
            for &(at_src, at_dst) in &connection.qps {
                let src = &self.hosts[connection.src.index()].endpoint;
                let rate = src.policy(at_src).and_then(|policy| policy.rate(now));
                if let (Some(true), Some(rate)) = (src.is_busy(at_src), rate) {
                    sums.rates += 1;
                    sums.rate_bps += rate.as_bps() as f64;
                }
                let held = self.hosts[connection.dst.index()].endpoint.held_ahead(at_dst);
                sums.held += u64::from(held.is_some());
                sums.held_bytes += (held.unwrap_or(0) * mtu) as f64;
            }
        }
    }
}
