//! Single events of a run.

use crate::names::named_enum;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub struct EventRecord {
    /// Time of the event.
    pub time_ps: u64,
    /// Number with the meaning given by [`EventKind`]; 0 if there is none.
    pub value: f64,
    /// Node of the event; the sending host of a retransmission or timeout.
    pub node: u32,
    /// Link concerned, if any.
    pub link: Option<u32>,
    /// Flow concerned, if any.
    pub flow: Option<u32>,
    /// Receiving host of a retransmission or timeout.
    pub peer_host: Option<u32>,
    /// Sender's queue pair of a retransmission or timeout.
    pub queue_pair: Option<u32>,
    /// Path of the packet concerned, if any.
    pub path: Option<u32>,
    /// Kind of the event.
    pub kind: EventKind,
    /// Reason for the drop of a packet; `None` for every other kind.
    pub reason: Option<DropReason>,
}

impl EventRecord {
    /// Creates an event with a node only.
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
    /// Kind of an event.
    EventKind {
        /// A packet was dropped; `value` is its bytes on the wire.
        Drop = "drop",
        /// The link was paused by PFC; `value` is the priority class.
        PfcPause = "pfc_pause",
        /// The link was resumed by PFC; `value` is the priority class.
        PfcResume = "pfc_resume",
        /// A data packet was sent again; `value` is its PSN.
        Retransmit = "retransmit",
        /// The retransmission timer of a queue pair expired; `value` is the PSN of the oldest packet it covered.
        Timeout = "timeout",
        /// A scheduled fault began or changed; `value` is the index of the fault in the scenario.
        Fault = "fault",
        /// A scheduled fault ended; `value` is the index of the fault in the scenario.
        Repair = "repair",
    }
}

named_enum! {
    /// Reason for the drop of a packet.
    DropReason {
        /// The shared buffer, or this queue's share of it, was full.
        BufferFull = "buffer_full",
        /// The packet was to be trimmed, and the port had no room for its header either.
        HeaderQueueFull = "header_queue_full",
        /// The link was down.
        LinkDown = "link_down",
        /// A fault dropped the packet at random.
        RandomLoss = "random_loss",
        /// A fault corrupted the packet, and the checksum detected it.
        Corrupted = "corrupted",
        /// No route leads to the packet's destination.
        NoRoute = "no_route",
        /// The packet's hop limit reached zero.
        HopLimit = "hop_limit",
    }
}
