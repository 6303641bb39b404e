//! Messages between hosts that a scale-up network joins. They do not use the links of the network.

use pathweave_execution::{PartCompletion, ReceiverCounters, ScaleUpMessage, SenderCounters};
use pathweave_records::FlowRecord;
use pathweave_transport::Status;
use pathweave_units::{Duration, Time};

use crate::engine::Engine;

impl Engine<'_> {
    /// Posts a message if the scale-up network joins its hosts. Returns false if it does not.
    pub(crate) fn post_over_scale_up(&mut self, now: Time, flow: u32) -> bool {
        let message = self.spec.graph.messages()[flow as usize];
        let Some(carrier) = self.scale_up.as_mut().filter(|carrier| carrier.joins(message.src, message.dst))
        else {
            return false;
        };
        let ideal = carrier.ideal(message.src, message.dst, message.size.get());
        let record = FlowRecord {
            start_ps: now.as_ps(),
            ideal_fct_ps: ideal.as_ps(),
            ideal_acked_ps: Some(ideal.as_ps()),
            ..self.execution.record(flow)
        };
        self.execution.posted(record, 1);
        self.execution.expected(flow, 1);
        let (src, dst, bytes) = (message.src, message.dst, message.size.get());
        carrier.post(now, ScaleUpMessage { flow, src, dst, bytes });
        true
    }

    /// Lets the scale-up networks run until `now`, inclusive.
    pub(crate) fn run_scale_up(&mut self, now: Time) {
        let Some(carrier) = &mut self.scale_up else { return };
        let mut arrivals = Vec::new();
        let before = carrier.events();
        carrier.advance(now.saturating_add(Duration::from_ps(1)), &mut arrivals);
        self.events += carrier.events() - before;
        for arrival in arrivals {
            let ScaleUpMessage { flow, bytes, .. } = arrival.message;
            if self.execution.part_delivered(arrival.at, flow, bytes) {
                self.execution.received(flow, ReceiverCounters::default());
            }
            if self.execution.part_completed(arrival.at, flow, Status::Success)
                == PartCompletion::Acknowledged
            {
                self.execution.ended(arrival.at, flow);
                self.execution.release_connection(flow, SenderCounters::default());
            }
            self.schedule_steps();
        }
    }
}
