//! Time averages of the queue pairs of each group. A sample is weighted with the time since the one before, because
//! the sampling interval grows during a run.

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_execution::ConnId;
use pathweave_policy::Policy;
use pathweave_records::GroupTotals;
use pathweave_units::{Duration, Time};

use crate::locked_shards::LockedShards;

/// Sums over samples, each weighted with its interval in picoseconds. The sums are integers, so the order of addition
/// does not affect the result.
#[derive(Clone, Copy, Debug, Default, BorshSerialize, BorshDeserialize)]
pub(crate) struct GroupSums {
    rates_ps: u128,
    rate_bps_ps: u128,
    held_ps: u128,
    held_bytes_ps: u128,
}

impl GroupSums {
    pub(crate) fn totals(&self) -> GroupTotals {
        let mean = |sum: u128, of_ps: u128| (of_ps > 0).then(|| sum as f64 / of_ps as f64);
        GroupTotals {
            policy_rate_bps: mean(self.rate_bps_ps, self.rates_ps),
            held_bytes: mean(self.held_bytes_ps, self.held_ps),
        }
    }

    pub(crate) fn add(&mut self, other: &GroupSums) {
        self.rates_ps += other.rates_ps;
        self.rate_bps_ps += other.rate_bps_ps;
        self.held_ps += other.held_ps;
        self.held_bytes_ps += other.held_bytes_ps;
    }
}

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Adds a sample, `since` after the one before: the rate of each queue pair that has data to send or in flight,
    /// and the data that each receiver holds ahead of a gap. Each end of a connection contributes its own state.
    pub(crate) fn sample_groups(&mut self, now: Time, since: Duration, group_sums: &mut [GroupSums]) {
        let since_ps = u128::from(since.as_ps());
        let spec = self.shards[0].spec;
        let mtu = u128::from(spec.network.mtu.get());
        for conn in 0..self.shards[0].traffic.execution.connections.len() as ConnId {
            let connection = &self.shards[0].traffic.execution.connections[conn];
            let (from, to, group) = (connection.src, connection.dst, connection.group);
            let sums = &mut group_sums[group.index()];
            if let Some(at) = self.shard_of_node_ref(from.0) {
                let src = &at.hosts[from.index()].endpoint;
                for &(at_src, _) in &at.traffic.execution.connections[conn].queue_pairs {
                    let rate = src.policy(at_src).and_then(|policy| policy.rate(now));
                    if let (Some(true), Some(rate)) = (src.is_busy(at_src), rate) {
                        sums.rates_ps += since_ps;
                        sums.rate_bps_ps += u128::from(rate.as_bps()) * since_ps;
                    }
                }
            }
            if let Some(at) = self.shard_of_node_ref(to.0) {
                for index in 0..spec.scheme_of(group).scheme.queue_pairs {
                    let (_, at_dst) = at.queue_pair(conn, index);
                    if let Some(held) = at.hosts[to.index()].endpoint.held_ahead(at_dst) {
                        sums.held_ps += since_ps;
                        sums.held_bytes_ps += u128::from(held) * mtu * since_ps;
                    }
                }
            }
        }
    }
}
