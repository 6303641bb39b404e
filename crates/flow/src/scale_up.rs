//! Messages between hosts that a scale-up network joins. They do not use the links of the network.

use pathweave_units::{Duration, Time};

use crate::engine::Engine;

impl Engine<'_> {
    /// Lets the scale-up networks run until `now`, inclusive.
    pub(crate) fn run_scale_up(&mut self, now: Time) {
        let Some(carrier) = &mut self.scale_up else { return };
        let mut arrivals = Vec::new();
        let before = carrier.events();
        carrier.advance(now.saturating_add(Duration::from_ps(1)), &mut arrivals);
        self.events += carrier.events() - before;
        for arrival in arrivals {
            self.execution.delivered_over_scale_up(arrival.at, arrival.message.flow);
            self.execution.sent_over_scale_up(arrival.at, arrival.message.flow);
            self.schedule_steps();
        }
    }
}
