//! Counters of the middleboxes of external switches.

use serde::Serialize;

use crate::described::described;

described! {
    /// Counters of the middlebox of one external switch; 0 for a part that is off.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct MiddleboxTotals {
        /// Name of the switch.
        pub name: String,
        /// Near-source feedback: data packets that left for other sites.
        pub nsf_data_packets: u64,
        /// Data packets whose delay to the WAN port was above the threshold.
        pub nsf_hot_packets: u64,
        /// Answers sent in place of the receiver's.
        pub nsf_answers: u64,
        /// Answers that did not fit in the buffer.
        pub nsf_answers_lost: u64,
        /// Data packets of flows for which the table of near-source feedback had no room.
        pub nsf_untracked_packets: u64,
        /// Largest number of flows in the table of near-source feedback.
        pub nsf_max_flows: u64,
        /// Near-destination throttling: data packets that came from other sites.
        pub ndt_data_packets: u64,
        /// Data packets that went through a controlled queue.
        pub ndt_controlled_packets: u64,
        /// Acknowledgements that reported a round-trip time.
        pub ndt_samples: u64,
        /// Round-trip times above the threshold.
        pub ndt_congested_samples: u64,
        /// Flows of which a packet joined a controlled queue.
        pub ndt_isolated_flows: u64,
        /// Packets of recovered flows that joined the controlled queue to stay in order.
        pub ndt_guarded_recovery_packets: u64,
        /// Packets of congested flows that joined the normal queue to stay in order.
        pub ndt_guarded_isolation_packets: u64,
        /// Pauses of the controlled queues.
        pub ndt_pauses: u64,
        /// Pauses that ended by `max_pause`.
        pub ndt_timed_out_pauses: u64,
        /// Time for which the controlled queues were paused.
        pub ndt_paused_ns: u64,
        /// Largest number of bytes in the controlled queues.
        pub ndt_max_controlled_bytes: u64,
        /// Data packets of flows for which the table of near-destination throttling had no room.
        pub ndt_untracked_packets: u64,
        /// Largest number of flows in the table of near-destination throttling.
        pub ndt_max_flows: u64,
    }
}
