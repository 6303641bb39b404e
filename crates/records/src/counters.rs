//! Counters of a flow. One entry here defines a field of the record ([`FlowRecord`](crate::FlowRecord)), a column of
//! `flows.parquet`, and a field of `summary.json` with its documentation. In the summary
//! ([`FlowSummary`](crate::FlowSummary)) the field is the sum over flows.

/// Passes the counters to the macro `$with`. An entry has a name, a type, a unit, the meaning of the sum, and the
/// meaning for one flow if it differs. The degree of reordering, which is not a sum, is placed between the two lists.
/// New counters are added to the second list.
macro_rules! flow_counters {
    ($with:ident) => {
        $with! {
            first {
                sent_packets: u32, "packets" = "Data packets sent, retransmissions included.";
                retransmitted_packets: u32, "packets" = "Data packets sent again.";
                dropped_packets: u32, "packets" = "Data packets the fabric dropped.",
                    "Data packets the fabric dropped until its sender knew that all had arrived.";
                ooo_packets: u32, "packets" = "Data packets that arrived after a later one of the same queue pair.";
            }
            second {
                copied_packets: u32, "packets" = "Copies sent of packets in flight, after a change of path.";
                notice_packets: u32, "packets" = "Notices of a change of path sent.";
                extra_wire_bytes: u64, "B" = "Bytes on the wire of copies and notices.";
                cnp_packets: u32, "packets" = "Congestion notifications that reached senders.",
                    "Congestion notifications that reached the sender.";
                timeouts: u32, "" = "Retransmission timeouts.";
            }
        }
    };
}
pub(crate) use flow_counters;
