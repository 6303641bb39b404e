//! Sending rate of a NIC, limited by queue-pair contexts that exceed its cache and by PCIe.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pathweave_units::{Rate, Time};

use super::NicConfig;

/// User of contexts.
#[derive(Clone, Copy, Debug)]
struct User {
    messages: u32,
    /// Number of its contexts: one for each of its queue pairs.
    contexts: u16,
}

/// Sending engine of a NIC.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Users of contexts in use: processes, or pairs of processes or hosts.
    users: BTreeMap<u64, User>,
    /// Number of contexts in use.
    contexts: u32,
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
        Engine { users: BTreeMap::new(), contexts: 0, stretch: 1.0, line_rate, config, free_at: Time::ZERO }
    }

    /// Adds a message to those of a user that has `contexts` contexts.
    pub(crate) fn begin(&mut self, user: u64, contexts: u16) {
        let new = User { messages: 0, contexts };
        let user = self.users.entry(user).or_insert(new);
        user.messages += 1;
        if user.messages == 1 {
            self.contexts += u32::from(contexts);
            self.count();
        }
    }

    /// Removes a message from those of a user.
    pub(crate) fn end(&mut self, user: u64) {
        let Entry::Occupied(mut entry) = self.users.entry(user) else { return };
        entry.get_mut().messages -= 1;
        if entry.get().messages == 0 {
            self.contexts -= u32::from(entry.remove().contexts);
            self.count();
        }
    }

    fn count(&mut self) {
        self.stretch = 1.0 / self.config.rate_factor(self.contexts);
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
        (0..4_000).for_each(|user| engine.begin(user, 1));
        engine.begin(7, 1);
        assert_eq!((engine.gap(1_000), engine.contexts), (Duration::from_ns(160), 4_000));
        (0..3_000).for_each(|user| engine.end(user));
        // User 7 has two messages.
        assert_eq!(engine.contexts, 1_001);
        engine.end(7);
        assert_eq!(engine.gap(1_000), Duration::from_ns(80));
        // 1,000 + 64 B at 50 Gb/s.
        engine.config.pcie_rate = Rate::from_gbps(50);
        assert_eq!(engine.gap(1_000), Duration::from_ps(170_240));
    }

    /// 250 peers with 16 queue pairs each take 4,000 contexts.
    #[test]
    fn every_queue_pair_of_a_peer_takes_a_context() {
        let mut engine = Engine::new(Rate::from_gbps(100), NicConfig::default());
        (0..250).for_each(|peer| engine.begin(peer, 16));
        (0..250).for_each(|peer| engine.begin(peer, 16));
        assert_eq!((engine.gap(1_000), engine.contexts), (Duration::from_ns(160), 4_000));
        (0..250).for_each(|peer| engine.end(peer));
        assert_eq!(engine.contexts, 4_000);
        (0..249).for_each(|peer| engine.end(peer));
        assert_eq!((engine.gap(1_000), engine.contexts), (Duration::from_ns(80), 16));
    }
}
