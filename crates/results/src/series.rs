//! Samples over time, and what it means that there is none.

use crate::names::named_enum;

/// One sample of something that varies over time.
#[derive(Clone, Copy, Debug, PartialEq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct SeriesSample {
    /// When.
    pub time_ps: u64,
    /// The value, in the unit of `kind`.
    pub value: f64,
    /// Of what; see [`SeriesKind`].
    pub entity: u32,
    /// A path; 0 where the entity is whole.
    pub index: u16,
    /// What was sampled.
    pub kind: SeriesKind,
}

named_enum! {
    /// What a sample is about. The name ends in its unit.
    SeriesKind {
        /// Nanoseconds since the instant before: every instant that was sampled has one such row, of entity 0.
        Interval = "interval_ns",
        /// Bytes waiting in the egress queue of link `entity`.
        QueueBytes = "queue_bytes",
        /// Fraction of the interval link `entity` was busy, 0 to 1.
        LinkUtilisation = "link_utilisation_ratio",
        /// Payload bits per second host `entity` received in the interval.
        HostRateBps = "host_rate_bps",
        /// Sending rate the policy of flow `entity` allows, summed over its queue pairs, bits per second.
        PolicyRateBps = "policy_rate_bps",
        /// Bytes flow `entity` has in flight, headers included.
        InflightBytes = "inflight_bytes",
        /// Different paths that the packets of flow `entity` in flight have taken, of each of its queue pairs.
        InflightPaths = "inflight_paths_count",
        /// Bytes the receiver of flow `entity` holds ahead of a gap.
        HeldBytes = "held_bytes",
        /// Fraction of what arrived of flow `entity` in the interval that came by path `index` (queue pair, of several); the 32 largest.
        PathShare = "path_share_ratio",
    }
}

named_enum! {
    /// What time a sample is of.
    Span {
        /// The value at the instant.
        Instant = "instant",
        /// The mean over the interval that ends at the instant.
        Interval = "interval",
    }
}

named_enum! {
    /// What was where an entity has no sample at an instant that was sampled.
    Missing {
        /// Every instant has one.
        Never = "never",
        /// Zero: nothing waited, nothing moved.
        Zero = "zero",
        /// Nothing to sample: the flow was not active, or its policy sets no rate.
        Nothing = "nothing",
        /// Zero if other paths of the flow have a sample at this instant; else nothing of the flow arrived.
        Other = "zero, or nothing arrived",
    }
}

impl SeriesKind {
    /// What time its samples are of.
    pub fn span(self) -> Span {
        match self {
            SeriesKind::Interval
            | SeriesKind::LinkUtilisation
            | SeriesKind::HostRateBps
            | SeriesKind::PathShare => Span::Interval,
            SeriesKind::QueueBytes
            | SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes => Span::Instant,
        }
    }

    /// Whether the entity is a flow.
    pub(crate) fn of_flow(self) -> bool {
        match self {
            SeriesKind::Interval
            | SeriesKind::QueueBytes
            | SeriesKind::LinkUtilisation
            | SeriesKind::HostRateBps => false,
            SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes
            | SeriesKind::PathShare => true,
        }
    }

    /// What was where a sample is missing.
    pub fn missing(self) -> Missing {
        match self {
            SeriesKind::Interval => Missing::Never,
            SeriesKind::QueueBytes | SeriesKind::LinkUtilisation | SeriesKind::HostRateBps => Missing::Zero,
            SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes => Missing::Nothing,
            SeriesKind::PathShare => Missing::Other,
        }
    }
}
