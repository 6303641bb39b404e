//! A scheme: a named preset of policy, loss recovery, acknowledgements and queue pairs.

use pathweave_units::Duration;

/// A named preset.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scheme {
    /// Loss recovery.
    pub recovery: Recovery,
    /// When the receiver acknowledges.
    pub acks: AckPolicy,
    /// Whether and when the receiver sends congestion notifications.
    pub cnp: CnpPolicy,
    /// Queue pairs a message is split over evenly (QP scaling); 1 for everything else.
    pub queue_pairs: u16,
    /// Paths (UDP source ports) each queue pair may choose from.
    pub paths: u16,
}

/// Loss recovery of the sender and what the receiver does with packets out of order.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, rename_all = "snake_case", tag = "kind"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Recovery {
    /// The receiver drops what is out of order and NACKs once a gap; the sender goes back to the gap.
    GoBackN,
    /// The receiver places packets in any order; the sender resends what is missing.
    SelectiveRepeat {
        /// A packet counts as lost once one sent this many packets later is acknowledged. 0: never, only the
        /// timer finds losses; right for lossless fabrics under spraying.
        reorder_packets: u32,
        /// Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
        window_packets: u32,
    },
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckPolicy {
    /// Data packets an acknowledgement; 1 is one for each. The last packet of a message is acknowledged at once.
    pub every_packets: u16,
    /// A delayed acknowledgement leaves at the latest after this time.
    pub max_delay: Duration,
}

/// Congestion notification point (DCQCN NP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CnpPolicy {
    /// Whether notifications are sent.
    pub mode: CnpMode,
    /// At most one notification a queue pair in this time (DCQCN's N). Zero: one for every marked packet.
    pub interval: Duration,
}

/// Whether the receiver sends congestion notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CnpMode {
    /// Never.
    #[default]
    Off,
    /// For packets marked Congestion Experienced.
    OnMark,
}
