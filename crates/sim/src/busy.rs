//! Transmission times of links whose rates change during the run.

use std::collections::BTreeMap;

use pathweave_fabric::PortId;
use pathweave_units::{Duration, Rate, Time};

use crate::locked_shards::LockedShards;

/// Bytes sent until the last change of rate and the time that took, by port of the whole network. Only ports of this
/// process with a changed rate have an entry.
#[derive(Default)]
pub(crate) struct BusyTimes(BTreeMap<PortId, (u64, Duration)>);

impl BusyTimes {
    /// Records the transmission time so far of both directions of a link, before its rate changes.
    pub(crate) fn settle_before_change<const C: usize>(
        &mut self,
        whole: &mut LockedShards<'_, '_, C>,
        now: Time,
        port: PortId,
    ) {
        let first = &whole.shards[0];
        let back = first.network.plan.peer(&first.spec.topology, port);
        for port in [port, back] {
            let Some((shard, own)) = whole.shard_of_port(port) else { continue };
            let fabric = &mut shard.network.fabric;
            fabric.settle(now, own);
            let (sent, (rate, _)) = (fabric.stats(own).tx_bytes, fabric.link(own));
            let busy = self.of(port, sent, rate);
            self.0.insert(port, (sent, busy));
        }
    }

    /// Returns the total transmission time of a port that has sent `sent_bytes` in all and whose current rate is
    /// `rate`.
    pub(crate) fn of(&self, port: PortId, sent_bytes: u64, rate: Rate) -> Duration {
        let (before, busy) = self.0.get(&port).copied().unwrap_or((0, Duration::ZERO));
        busy + rate.time_for(sent_bytes - before)
    }
}
