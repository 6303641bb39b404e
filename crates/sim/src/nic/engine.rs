//! Sending rate of a NIC, limited by queue-pair contexts that exceed its cache and by PCIe.

use std::collections::BTreeMap;

use pathweave_units::{Rate, Time};

use super::NicConfig;

/// Sending engine of a NIC.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Contexts in use, each with the number of messages that use it.
    contexts: BTreeMap<u64, u32>,
    /// Factor by which the transmission time of a packet at line rate is stretched on average.
    stretch: f64,
    line_rate: Rate,
    config: NicConfig,
    /// Time at which the engine can start the next packet.
    free_at: Time,
}

impl Engine {
    /// Creates the engine of a NIC that sends at `line_rate` over all its ports.
    pub(crate) fn new(line_rate: Rate, config: NicConfig) -> Self {
        Engine { contexts: BTreeMap::new(), stretch: 1.0, line_rate, config, free_at: Time::ZERO }
    }

    /// Adds one message to the users of a context.
    pub(crate) fn begin(&mut self, context: u64) {
        *self.contexts.entry(context).or_default() += 1;
        self.count();
    }

    /// Removes one message from the users of a context.
    pub(crate) fn end(&mut self, context: u64) {
        if let Some(uses) = self.contexts.get_mut(&context) {
            *uses -= 1;
            if *uses == 0 {
                self.contexts.remove(&context);
            }
        }
        self.count();
    }

    fn count(&mut self) {
        self.stretch = 1.0 / self.config.rate_factor(self.contexts.len());
    }

    /// Returns the time at which the engine can start the next packet.
    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Accounts for a data packet that leaves at `now`.
    pub(crate) fn sent(&mut self, now: Time, wire_bytes: u32) {
        let on_line = self.line_rate.time_for(u64::from(wire_bytes));
        let in_cache = if self.stretch == 1.0 { on_line } else { on_line.scale(self.stretch) };
        let crossing = u64::from(wire_bytes) + u64::from(self.config.entry_bytes);
        let on_bus = self.config.pcie_rate.time_for(crossing);
        self.free_at = self.free_at.max(now) + in_cache.max(on_bus);
    }

    /// Returns the time between packets of `wire_bytes`.
    #[cfg(test)]
    fn gap(&mut self, wire_bytes: u32) -> pathweave_units::Duration {
        let before = self.free_at;
        self.sent(before, wire_bytes);
        self.free_at.saturating_since(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_units::Duration;

    #[test]
    fn contexts_and_bus_hold_it_back() {
        let mut engine = Engine::new(Rate::from_gbps(100), NicConfig::default());
        assert_eq!(engine.gap(1_000), Duration::from_ns(80));
        (0..4_000).for_each(|context| engine.begin(context));
        engine.begin(7);
        assert_eq!((engine.gap(1_000), engine.contexts.len()), (Duration::from_ns(160), 4_000));
        (0..3_000).for_each(|context| engine.end(context));
        // Context 7 is in use for two messages.
        assert_eq!(engine.contexts.len(), 1_001);
        engine.end(7);
        assert_eq!(engine.gap(1_000), Duration::from_ns(80));
        // 1,000 + 64 B at 50 Gb/s.
        engine.config.pcie_rate = Rate::from_gbps(50);
        assert_eq!(engine.gap(1_000), Duration::from_ps(170_240));
    }
}
