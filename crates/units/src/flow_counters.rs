//! Table of the counters of a flow.

/// Passes the table of the counters of a flow to the macro `$with`, after the tokens `$before`. The queue pair counts
/// them, the record of a flow has them, `flows.parquet` has a column of each, and `summary.json` their sums.
///
/// An entry has a name, a type, the meaning of the sum over flows, and the meaning for one flow if it
/// differs. A new counter of a sender is the last entry of `sender`, and the line of the transport that counts it.
/// A queue pair counts `hot` with every packet. `elsewhere` is not counted by the sender's queue pair. The degree of
/// reordering, which is not a sum, is placed at the semicolon.
#[macro_export]
macro_rules! flow_counters {
    ($with:ident $($before:tt)*) => {
        $with! {
            $($before)*
            hot {
                sent_packets { u32, "Data packets sent, retransmissions included." }
            }
            again {
                retransmitted_packets { u32, "Data packets sent again." }
            }
            elsewhere {
                dropped_packets {
                    u32, "Data packets the fabric dropped.",
                    "Data packets the fabric dropped until its sender knew that all had arrived."
                }
                ooo_packets {
                    u32, "Data packets that arrived after a later one of the same queue pair."
                }
            };
            sender {
                copied_packets { u32, "Copies sent of packets in flight, after a change of path." }
                notice_packets { u32, "Notices of a change of path sent." }
                extra_wire_bytes { u64, "Bytes on the wire of copies and notices." }
                cnp_packets {
                    u32, "Congestion notifications that reached senders.",
                    "Congestion notifications that reached the sender."
                }
                timeouts { u32, "Retransmission timeouts." }
            }
        }
    };
}
