//! What the middleboxes of external switches have counted.

use serde::Serialize;

use crate::summary_schema::{Field, field};

/// One line a count gives the record, its place in `summary.json` and its documentation.
macro_rules! counts {
    ($( $name:ident = $meaning:literal; )*) => {
        /// Counts of the middlebox of one external switch; 0 where a part of it is off.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct MiddleboxTotals {
            /// Name of the switch.
            pub name: String,
            $( #[doc = $meaning] pub $name: u64, )*
        }

        pub(crate) const MIDDLEBOX_FIELDS: &[Field] = &[
            field("name", "string", "Name of the switch."),
            $( field(stringify!($name), "integer", $meaning), )*
        ];
    };
}

counts! {
    nsf_data_packets = "Near-source feedback: data packets that left for other sites.";
    nsf_hot_packets = "Those that took longer than the threshold to get that far.";
    nsf_answers = "Answers sent in place of the far end.";
    nsf_answers_lost = "Answers lost for want of buffer.";
    nsf_untracked_packets = "Data packets of flows there was no room for in the table.";
    nsf_max_flows = "Most flows remembered at a time.";
    ndt_data_packets = "Near-destination throttling: data packets that came from other sites.";
    ndt_controlled_packets = "Those that went through a controlled queue.";
    ndt_samples = "Acknowledgements that told a round-trip time.";
    ndt_congested_samples = "Those above the threshold.";
    ndt_isolated_flows = "Flows that were found congested, each once.";
    ndt_guarded_recovery_packets = "Packets of recovered flows kept behind their own in the controlled queue.";
    ndt_guarded_isolation_packets = "Packets of congested flows kept behind their own in the normal queue.";
    ndt_pauses = "Pauses of the controlled queues.";
    ndt_timed_out_pauses = "Pauses ended by their longest time.";
    ndt_paused_ns = "Time the controlled queues were paused.";
    ndt_max_controlled_bytes = "Most bytes in the controlled queues.";
    ndt_untracked_packets = "Data packets of flows there was no room for in the table.";
    ndt_max_flows = "Most flows remembered at a time.";
}
