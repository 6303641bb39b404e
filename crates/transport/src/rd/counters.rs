//! What a datagram queue pair counts.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of a datagram queue pair, or of several. Packets unless said otherwise.
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
    /// Data packets that were not the next of their flow.
    out_of_order,
    /// Data packets that arrived a second time.
    duplicates,
    /// Data packets dropped because they were beyond the bitmap.
    beyond_window_drops,
    /// Data packets dropped because this end has said that their messages are to wait.
    waiting_drops,
    /// Times this end had neither a receive nor room for a message and has said so.
    waits_sent,
    /// Times a peer has said so.
    waits_received,
    /// NACKs made, in messages.
    nacks_sent,
    /// Packets asked for by them.
    packets_asked_for,
    /// NACKs taken in, in messages.
    nacks_received,
    /// Packets asked for that are done, not sent yet, or waiting to be sent again.
    asked_in_vain,
    /// Data packets that arrived marked Congestion Experienced.
    marked_received,
    /// Congestion notifications sent.
    cnps_sent,
    /// Congestion notifications received.
    cnps_received,
    /// Flows looked at by the scan, each time.
    flows_scanned,
    /// Messages of this end that are done, in messages.
    messages_done,
    /// Messages given up after too many retransmissions of one packet, in messages.
    messages_aborted,
    /// Packets and side messages from unknown peers.
    foreign,
    /// Packets and side messages that make no sense.
    malformed,
}
