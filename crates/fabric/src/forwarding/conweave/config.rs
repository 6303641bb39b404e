//! Parameters of ConWeave.

use pathweave_units::Duration;

use crate::config_error::ConfigError;
use crate::forwarding::balance::{check_entries, check_times};

/// Parameters of ConWeave. The defaults are those of its authors' simulator (conweave-ns3, run.py) for two tiers and a
/// lossless fabric; for three tiers it has 64 us, 600 us and 1 ms for `flush_extra`, `flush_default` and `idle_after`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConWeaveConfig {
    /// The answer to a probe is late after an idle round trip and this. Default 4 us: 50 kB at 100 Gb/s.
    pub reply_extra: Duration,
    /// Which round trip that is. Where all ways cost the same it hardly matters.
    pub reply_after: ReplyAfter,
    /// How long a way is left alone after news of congestion. Default 16 us.
    pub path_pause: Duration,
    /// Held packets leave this long after the time at which the last packet before them was to come. Default 16 us.
    pub flush_extra: Duration,
    /// That time, from when the first packet is held, where nothing is known of the old way. Default 200 us.
    pub flush_default: Duration,
    /// A flow without a packet for longer than this has none under way and may change its way at once. Default 300 us.
    pub idle_after: Duration,
    /// The switch of the receiver forgets a flow after this long, if it needs the room. Default 2 ms.
    pub stale_after: Duration,
    /// Flows a switch can remember as sender's and as receiver's, a power of two from 4 on. Others are hashed. Default
    /// 16,384 (ours).
    pub entries: u32,
    /// Flows whose packets can be held for one port at a time; packets of others pass out of order. Default 31 (ours: all
    /// but one of 32 queues of a port).
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
        check_entries("forwarding.conweave.entries", self.entries)
    }
}

/// The round trip within which ConWeave expects the answer to a probe on an idle network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ReplyAfter {
    /// That of the way the probe takes, from switch to switch.
    #[default]
    Way,
    /// Twice the propagation from host to host on a shortest way, whichever way the probe takes (the study of LAPS: on a
    /// longer one every answer is late, and the flow changes its way again).
    Shortest,
}
