//! What happened in a run, one by one.

use crate::names::named_enum;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct EventRecord {
    /// When.
    pub time_ps: u64,
    /// A figure, in the sense given by [`EventKind`]; 0 where there is none.
    pub value: f64,
    /// Node where it happened; the sending host of a retransmission or timeout.
    pub node: u32,
    /// Link concerned, if any.
    pub link: Option<u32>,
    /// Flow concerned, if any.
    pub flow: Option<u32>,
    /// Receiving host of a retransmission or timeout.
    pub peer_host: Option<u32>,
    /// Queue pair of the sender, of a retransmission or timeout.
    pub queue_pair: Option<u32>,
    /// Path of the packet concerned, if one is.
    pub path: Option<u32>,
    /// What happened.
    pub kind: EventKind,
    /// Why a packet was dropped; `None` for every other kind.
    pub reason: Option<DropReason>,
}

impl EventRecord {
    /// Something without a figure that concerns nothing but a node.
    pub fn new(time_ps: u64, kind: EventKind, node: u32) -> Self {
        EventRecord {
            time_ps,
            value: 0.0,
            node,
            link: None,
            flow: None,
            peer_host: None,
            queue_pair: None,
            path: None,
            kind,
            reason: None,
        }
    }
}

named_enum! {
    /// What happened.
    EventKind {
        /// A packet was dropped; `value` is its bytes on the wire.
        Drop = "drop",
        /// The link was paused by PFC; `value` is the priority class.
        PfcPause = "pfc_pause",
        /// The link was resumed by PFC; `value` is the priority class.
        PfcResume = "pfc_resume",
        /// A data packet was sent again; `value` is its PSN.
        Retransmit = "retransmit",
        /// The retransmission timer of a queue pair expired; `value` is the PSN of the oldest packet it stood for.
        Timeout = "timeout",
        /// A scheduled fault began or changed; `value` is the index of the fault in the scenario.
        Fault = "fault",
        /// A scheduled fault ended; `value` is the index of the fault in the scenario.
        Repair = "repair",
    }
}

named_enum! {
    /// Why a packet was dropped.
    DropReason {
        /// The shared buffer, or this queue's part of it, was full.
        BufferFull = "buffer_full",
        /// It was to be trimmed, and the port had no room for its header either.
        HeaderQueueFull = "header_queue_full",
        /// The link was down.
        LinkDown = "link_down",
        /// A fault dropped it at random.
        RandomLoss = "random_loss",
        /// A fault corrupted it and the check sum caught that.
        Corrupted = "corrupted",
        /// No route leads to its destination.
        NoRoute = "no_route",
        /// Its hop limit reached zero.
        HopLimit = "hop_limit",
    }
}
