//! Messages between hosts that a scale-up network joins. They do not pass the fabric.
//!
//! All hosts of a domain belong to one shard. A window is at most as long as the latency of the scale-up network, so
//! after the hosts have simulated a window, everything that begins to move within one latency after it is known.

use pathweave_execution::ScaleUpMessage;
use pathweave_units::Time;

use crate::agenda::{Item, Rank};
use crate::shard::Shard;

impl<const C: usize> Shard<'_, C> {
    /// Lets the scale-up networks run as far as the posts before `end`, the end of the window, determine them.
    pub(crate) fn run_scale_up(&mut self, end: Time) {
        let Some(carrier) = &mut self.scale_up else { return };
        let mut arrivals = Vec::new();
        carrier.advance(end.saturating_add(carrier.delay()), &mut arrivals);
        for arrival in arrivals {
            let ScaleUpMessage { flow, src, dst, .. } = arrival.message;
            self.deliver_due(arrival.at, dst, Rank::ScaleUp(flow), Item::ScaleUpDelivered { flow });
            self.deliver_due(arrival.at, src, Rank::ScaleUp(flow), Item::ScaleUpSent { flow });
        }
    }

    /// Records the arrival of a message.
    pub(crate) fn delivered_over_scale_up(&mut self, now: Time, flow: u32) {
        self.traffic.execution.delivered_over_scale_up(now, flow);
        self.drain_new_steps();
    }

    /// Records the completion of a message at its sender.
    pub(crate) fn sent_over_scale_up(&mut self, now: Time, flow: u32) {
        self.traffic.execution.sent_over_scale_up(now, flow);
        self.drain_new_steps();
    }
}
