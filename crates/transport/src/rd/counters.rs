//! Counters of a datagram queue pair.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a datagram queue pair, or of several. They count packets unless stated otherwise.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct RdCounters {
            $($(#[$doc])* pub $name: u64,)*
        }
        impl core::ops::AddAssign<&RdCounters> for RdCounters {
            fn add_assign(&mut self, other: &RdCounters) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Data packets sent, retransmissions included.
    data_sent,
    /// Retransmissions sent.
    retransmitted,
    /// Data packets that arrived from known peers, those dropped included.
    data_received,
    /// Payload bytes accepted, each once.
    payload_bytes_received,
    /// Data packets that were not the next expected ones of their flow.
    out_of_order,
    /// Data packets that arrived a second time.
    duplicates,
    /// Data packets dropped because they were beyond the bitmap.
    beyond_window_drops,
    /// Data packets dropped because this end has reported that their messages must wait.
    waiting_drops,
    /// Number of times that this end reported to have neither a receive nor buffer space for a message.
    waits_sent,
    /// Number of such reports from peers.
    waits_received,
    /// Number of NACKs sent.
    nacks_sent,
    /// Packets requested by these NACKs.
    packets_asked_for,
    /// Number of NACKs processed.
    nacks_received,
    /// Requested packets that are done, not sent yet, or queued for retransmission already.
    asked_in_vain,
    /// Data packets that arrived marked Congestion Experienced.
    marked_received,
    /// Congestion notifications sent.
    cnps_sent,
    /// Congestion notifications received.
    cnps_received,
    /// Number of flows checked by scans; each scan counts.
    flows_scanned,
    /// Number of messages of this end that are done.
    messages_done,
    /// Number of messages aborted after too many retransmissions of one packet.
    messages_aborted,
    /// Packets and side messages from unknown peers.
    foreign,
    /// Malformed packets and side messages.
    malformed,
}
