//! Samples over time, and the meaning of a missing sample.

use crate::names::named_enum;

/// One sample of a quantity that varies over time.
#[derive(Clone, Copy, Debug, PartialEq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct SeriesSample {
    /// Time of the sample.
    pub time_ps: u64,
    /// The value, in the unit of `kind`.
    pub value: f64,
    /// Sampled entity; see [`SeriesKind`].
    pub entity: u32,
    /// Number of a path, or 0 if the whole entity is sampled.
    pub index: u16,
    /// Sampled quantity.
    pub kind: SeriesKind,
}

named_enum! {
    /// Sampled quantity. The name ends in its unit.
    SeriesKind {
        /// Nanoseconds since the previous instant. Every sampled instant has one such row, of entity 0.
        Interval = "interval_ns",
        /// Bytes waiting in the egress queue of link `entity`.
        QueueBytes = "queue_bytes",
        /// Fraction of the interval in which link `entity` was busy, 0 to 1.
        LinkUtilisation = "link_utilisation_ratio",
        /// Payload bits per second that the NIC of host `entity` received in the interval, without scale-up networks.
        HostRateBps = "host_rate_bps",
        /// Sending rate that the policy of flow `entity` allows, summed over its queue pairs, bits per second.
        PolicyRateBps = "policy_rate_bps",
        /// Bytes flow `entity` has in flight, headers included.
        InflightBytes = "inflight_bytes",
        /// Number of distinct paths of the packets in flight of flow `entity`, for each queue pair.
        InflightPaths = "inflight_paths_count",
        /// Bytes that the receiver of flow `entity` holds ahead of a gap.
        HeldBytes = "held_bytes",
        /// Payload bits per second of flow `entity` that its receiver accepted in the interval.
        GoodputBps = "goodput_bps",
        /// Payload bytes of flow `entity` that its receiver has not accepted yet.
        UnfinishedBytes = "unfinished_bytes",
        /// Share of path `index` (queue pair, if several) in the packets of flow `entity` that arrived; the 32 largest.
        PathShare = "path_share_ratio",
    }
}

named_enum! {
    /// Span of time that a sample covers.
    Span {
        /// The value at the instant.
        Instant = "instant",
        /// The mean over the interval that ends at the instant.
        Interval = "interval",
    }
}

named_enum! {
    /// Value of an entity without a sample at a sampled instant.
    Missing {
        /// There is always a sample.
        Never = "never",
        /// Zero: no packet waited or moved.
        Zero = "zero",
        /// No value: the flow was not active, or its policy sets no rate.
        Nothing = "nothing",
        /// Zero if other paths of the flow have a sample at this instant; otherwise no packet of the flow arrived.
        Other = "zero, or nothing arrived",
    }
}

impl SeriesKind {
    /// Returns the span of time that samples of this kind cover.
    pub fn span(self) -> Span {
        match self {
            SeriesKind::Interval
            | SeriesKind::LinkUtilisation
            | SeriesKind::HostRateBps
            | SeriesKind::GoodputBps
            | SeriesKind::PathShare => Span::Interval,
            SeriesKind::QueueBytes
            | SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes
            | SeriesKind::UnfinishedBytes => Span::Instant,
        }
    }

    /// Returns true if the entity is a flow.
    pub fn of_flow(self) -> bool {
        match self {
            SeriesKind::Interval
            | SeriesKind::QueueBytes
            | SeriesKind::LinkUtilisation
            | SeriesKind::HostRateBps => false,
            SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes
            | SeriesKind::GoodputBps
            | SeriesKind::UnfinishedBytes
            | SeriesKind::PathShare => true,
        }
    }

    /// Returns the meaning of a missing sample.
    pub fn missing(self) -> Missing {
        match self {
            SeriesKind::Interval => Missing::Never,
            SeriesKind::QueueBytes | SeriesKind::LinkUtilisation | SeriesKind::HostRateBps => Missing::Zero,
            SeriesKind::PolicyRateBps
            | SeriesKind::InflightBytes
            | SeriesKind::InflightPaths
            | SeriesKind::HeldBytes
            | SeriesKind::GoodputBps
            | SeriesKind::UnfinishedBytes => Missing::Nothing,
            SeriesKind::PathShare => Missing::Other,
        }
    }
}
