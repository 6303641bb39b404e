//! What the middleboxes of external switches have counted.

use serde::Serialize;

use crate::described::described;

described! {
    /// Counts of the middlebox of one external switch; 0 where a part of it is off.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct MiddleboxTotals {
        /// Name of the switch.
        pub name: String,
        /// Near-source feedback: data packets that left for other sites.
        pub nsf_data_packets: u64,
        /// Those that took longer than the threshold to get that far.
        pub nsf_hot_packets: u64,
        /// Answers sent instead of the far end.
        pub nsf_answers: u64,
        /// Answers lost for want of buffer.
        pub nsf_answers_lost: u64,
        /// Data packets of flows there was no room for in the table.
        pub nsf_untracked_packets: u64,
        /// Most flows remembered at a time.
        pub nsf_max_flows: u64,
        /// Near-destination throttling: data packets that came from other sites.
        pub ndt_data_packets: u64,
        /// Those that went through a controlled queue.
        pub ndt_controlled_packets: u64,
        /// Acknowledgements that reported a round-trip time.
        pub ndt_samples: u64,
        /// Those above the threshold.
        pub ndt_congested_samples: u64,
        /// Flows that were found congested, each once.
        pub ndt_isolated_flows: u64,
        /// Packets of recovered flows kept behind their own in the controlled queue.
        pub ndt_guarded_recovery_packets: u64,
        /// Packets of congested flows kept behind their own in the normal queue.
        pub ndt_guarded_isolation_packets: u64,
        /// Pauses of the controlled queues.
        pub ndt_pauses: u64,
        /// Pauses ended by their longest time.
        pub ndt_timed_out_pauses: u64,
        /// Time the controlled queues were paused.
        pub ndt_paused_ns: u64,
        /// Most bytes in the controlled queues.
        pub ndt_max_controlled_bytes: u64,
        /// Data packets of flows there was no room for in the table.
        pub ndt_untracked_packets: u64,
        /// Most flows remembered at a time.
        pub ndt_max_flows: u64,
    }
}
