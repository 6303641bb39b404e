//! Parameters of ConWeave.

use pathweave_units::Duration;

use crate::config_error::ConfigError;
use crate::forwarding::balance::{check_entries, check_longest, check_times};

/// Parameters of ConWeave. The defaults are those of its authors' simulator (conweave-ns3, run.py) for two tiers and
/// a lossless fabric. For three tiers that simulator has 64 us, 600 us and 1 ms for `flush_extra`, `flush_default`
/// and `idle_after`. Times are at most 1 s.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConWeaveConfig {
    /// Time beyond the idle round trip after which the reply to a probe is late. Default 4 us: 50 kB at 100 Gb/s.
    pub reply_extra: Duration,
    /// Idle round trip to which `reply_extra` is added: "way" (default) or "shortest". If all paths have the same
    /// delay, the two hardly differ.
    pub reply_after: ReplyAfter,
    /// Time for which a switch avoids a path after a notification of its congestion. Default 16 us.
    pub path_pause: Duration,
    /// Time by which held packets wait beyond the expected arrival of the TAIL, the last packet before them. Default
    /// 16 us.
    pub flush_extra: Duration,
    /// Expected time from the first held packet to the arrival of the TAIL, if no packet of the old path has arrived.
    /// Default 200 us.
    pub flush_default: Duration,
    /// Time without a packet after which a flow counts as idle: it has no packet in flight and may change its path at
    /// once. Above 0. Default 300 us.
    pub idle_after: Duration,
    /// Time without a packet after which the receiver's switch may reuse the table entry of a flow, above 0. Default
    /// 2 ms.
    pub stale_after: Duration,
    /// Number of flows that a switch can track as the sender's switch, and as many as the receiver's switch. A power
    /// of two, at least 4. Packets of further flows are forwarded by hash. Default 16,384 (ours).
    pub entries: u32,
    /// Number of flows whose packets can be held for one port at a time. Packets of further flows pass out of order.
    /// Default 31 (ours: all but one of 32 queues of a port).
    pub reorder_queues: u32,
}

impl Default for ConWeaveConfig {
    fn default() -> Self {
        ConWeaveConfig {
            reply_extra: Duration::from_us(4),
            reply_after: ReplyAfter::default(),
            path_pause: Duration::from_us(16),
            flush_extra: Duration::from_us(16),
            flush_default: Duration::from_us(200),
            idle_after: Duration::from_us(300),
            stale_after: Duration::from_ms(2),
            entries: 16_384,
            reorder_queues: 31,
        }
    }
}

impl ConWeaveConfig {
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        check_times(&[
            ("forwarding.conweave.idle_after", self.idle_after),
            ("forwarding.conweave.stale_after", self.stale_after),
        ])?;
        check_longest(&[
            ("forwarding.conweave.reply_extra", self.reply_extra),
            ("forwarding.conweave.path_pause", self.path_pause),
            ("forwarding.conweave.flush_extra", self.flush_extra),
            ("forwarding.conweave.flush_default", self.flush_default),
            ("forwarding.conweave.idle_after", self.idle_after),
            ("forwarding.conweave.stale_after", self.stale_after),
        ])?;
        check_entries("forwarding.conweave.entries", self.entries)
    }
}

/// Round trip within which ConWeave expects the reply to a probe on an idle network.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReplyAfter {
    /// Round trip of the path that the probe takes, from switch to switch.
    #[default]
    Way,
    /// Twice the propagation delay from host to host on a shortest path, whatever path the probe takes (the study of
    /// LAPS). On a longer path every reply is late, and the flow changes its path again.
    Shortest,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time near the end of the clock would overflow when the switch adds it to the present time.
    #[test]
    fn every_time_has_a_limit() {
        let long = Duration::from_ms(1_001);
        let config = ConWeaveConfig::default;
        let wrong = [
            ConWeaveConfig { reply_extra: long, ..config() },
            ConWeaveConfig { path_pause: long, ..config() },
            ConWeaveConfig { flush_extra: long, ..config() },
            ConWeaveConfig { flush_default: long, ..config() },
            ConWeaveConfig { idle_after: long, ..config() },
            ConWeaveConfig { stale_after: long, ..config() },
        ];
        for (config, field) in wrong.into_iter().zip([
            "reply_extra",
            "path_pause",
            "flush_extra",
            "flush_default",
            "idle_after",
            "stale_after",
        ]) {
            let error = config.validate().expect_err(field).to_string();
            assert!(error.contains(&format!("forwarding.conweave.{field}")), "{error}");
            assert!(error.contains("at most 1s"), "{error}");
        }
    }
}
