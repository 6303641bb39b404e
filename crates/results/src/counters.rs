//! The counters of a flow. One line here is a field of the record ([`FlowRecord`](crate::FlowRecord)), a column of
//! `flows.parquet` and a field of `summary.json`, where it is the sum over flows ([`FlowSummary`](crate::FlowSummary)), with
//! its documentation.

/// Hands the counters to the macro named. A line: name, type, unit, and what the sum is; what that of one flow is, where
/// the words differ. The degree of reordering, which is no sum, has its place between both lists; a new counter is added
/// to the second.
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
