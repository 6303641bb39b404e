//! Flows that the end of the run cut off, which are measured by their pace.

use pathweave_records::LATE_SLOWDOWN;

use super::facts::Facts;

/// Part of its time on an idle network that a flow must have had when the run ended for its pace to say something.
const LEAST_OF_IDEAL: f64 = 0.1;

impl Facts {
    /// Measures flows that were not late as a whole when the run ended by what they had sent. A flow that had sent a third of
    /// its bytes in the time of all of them was three times as slow as alone.
    pub(super) fn cut_at_the_end(&mut self) {
        let (rate_bps, end_ns) = (self.host_rate_bps(), self.run_ns * (1.0 - 1e-9));
        let Some(mtu) = self.settings.bytes("network.mtu") else { return };
        for flow in &mut self.flows {
            let part = ((flow.sent - flow.sent_again) * mtu / flow.size_bytes.max(1.0)).clamp(0.0, 1.0);
            let on_the_way = end_ns > 0.0 && flow.end_ns() >= end_ns && part < 1.0;
            let is_young = flow.took_ns < LEAST_OF_IDEAL * flow.ideal_ns;
            if !on_the_way || is_young || flow.slowdown() >= LATE_SLOWDOWN {
                continue;
            }
            let rest_ns = (flow.size_bytes * 8e9 / rate_bps).min(flow.ideal_ns) * (1.0 - part);
            let acked_ns = flow.ideal_acked_ns - flow.ideal_ns;
            flow.is_cut = true;
            flow.size_bytes *= part;
            flow.ideal_ns -= rest_ns;
            flow.ideal_acked_ns = flow.ideal_ns + acked_ns;
        }
    }
}
