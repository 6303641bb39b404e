//! Messages between hosts that a scale-up network joins. They do not pass the fabric.
//!
//! All hosts of a domain belong to one shard. A window is at most as long as the latency of the scale-up network, so
//! after the hosts have simulated a window, everything that begins to move within one latency after it is known.

use pathweave_execution::{PartCompletion, ReceiverCounters, ScaleUpMessage, SenderCounters};
use pathweave_records::FlowRecord;
use pathweave_transport::Status;
use pathweave_units::Time;

use crate::agenda::{Item, Rank};
use crate::shard::Shard;

impl<const C: usize> Shard<'_, C> {
    /// Posts a message if the scale-up network joins its hosts. Returns false if it does not.
    pub(crate) fn post_over_scale_up(&mut self, now: Time, flow: u32) -> bool {
        let message = self.spec.graph.messages()[flow as usize];
        let Some(carrier) = self.scale_up.as_mut().filter(|carrier| carrier.joins(message.src, message.dst))
        else {
            return false;
        };
        let ideal = carrier.ideal(message.src, message.dst, message.size.get());
        let execution = &mut self.traffic.execution;
        let record = FlowRecord {
            start_ps: now.as_ps(),
            ideal_fct_ps: ideal.as_ps(),
            ideal_acked_ps: Some(ideal.as_ps()),
            ..execution.record(flow)
        };
        execution.posted(record, 1);
        execution.expected(flow, 1);
        let (src, dst, bytes) = (message.src, message.dst, message.size.get());
        carrier.post(now, ScaleUpMessage { flow, src, dst, bytes });
        true
    }

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
        let bytes = self.spec.graph.messages()[flow as usize].size.get();
        if self.traffic.execution.part_delivered(now, flow, bytes) {
            self.traffic.execution.received(flow, ReceiverCounters::default());
        }
        self.drain_new_steps();
    }

    /// Records the completion of a message at its sender.
    pub(crate) fn sent_over_scale_up(&mut self, now: Time, flow: u32) {
        let execution = &mut self.traffic.execution;
        if execution.part_completed(now, flow, Status::Success) == PartCompletion::Acknowledged {
            execution.ended(now, flow);
            execution.release_connection(flow, SenderCounters::default());
        }
        self.drain_new_steps();
    }
}
