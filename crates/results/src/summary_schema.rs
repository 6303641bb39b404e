//! What `summary.json` holds, for the documentation. A test compares it with a summary that was written.

/// An object of `summary.json`.
pub struct Object {
    /// Where it is.
    pub path: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Its fields.
    pub fields: &'static [Field],
}

/// A field of an object.
pub struct Field {
    /// Name; the unit comes last in it.
    pub name: &'static str,
    /// Type as JSON has it; "distribution" is the object described under that name.
    pub kind: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

pub(crate) const fn field(name: &'static str, kind: &'static str, meaning: &'static str) -> Field {
    Field { name, kind, meaning }
}

/// Every object, from the outside in.
pub const SUMMARY: &[Object] = &[
    Object {
        path: "(top)",
        meaning: "The file.",
        fields: &[
            field("schema", "string", "\"pathweave.summary\"."),
            field("schema_version", "integer", "Rises when a field is renamed, removed or changes meaning."),
            field("run", "object", "What was run and how it ended."),
            field("overall", "object", "Figures of all flows."),
            field(
                "foreground",
                "object or null",
                "Figures of the flows of foreground groups; null where every group is one.",
            ),
            field("groups", "array", "The same for each workload group, in order of declaration."),
            field("fabric", "object", "Links and queues."),
            field("jobs", "object", "Jobs of foreground groups."),
            field("middleboxes", "array", "Counts of each external switch with a middlebox."),
            field(
                "departures",
                "object",
                "Data packets as they left their hosts, with `observe.departures`.",
            ),
        ],
    },
    Object {
        path: "run",
        meaning: "What was run and how it ended.",
        fields: &[
            field("name", "string", "Name of the scenario, or of the variant in a comparison."),
            field("version", "string", "Version of the program."),
            field("seed", "integer", "Seed of every random stream."),
            field(
                "digest",
                "string",
                "Digest of the event trace, 16 hexadecimal digits: equal for equal scenario and seed.",
            ),
            field("ended", "string", "Why the run ended; the words are listed below."),
            field("ended_detail", "string", "More on why, for people; may be empty."),
            field("partial", "boolean", "Cut short: what is missing says nothing about the schemes."),
            field("simulated_ns", "number", "Simulated time at the end."),
            field("wall_s", "number", "Wall-clock time of the run phase."),
            field("cpu_s", "number", "CPU time of the run phase."),
            field("events", "integer", "Simulator events executed."),
            field("packet_hops", "integer", "Packets crossing one link each, data and control."),
            field("packet_hops_per_cpu_s", "number", "`packet_hops` over `cpu_s`; 0 where that is unknown."),
            field("events_per_packet_hop", "number", "`events` over `packet_hops`."),
            field("peak_rss_bytes", "integer", "Peak resident memory of the process; 0 where unknown."),
        ],
    },
    Object {
        path: "overall, foreground, groups[]",
        meaning: "Figures of a set of flows. Times, slowdown and goodput are of finished flows, counts are of all. A \
                  group has five fields more.",
        fields: &[
            field("group", "string", "Groups only: name of the group."),
            field("role", "string", "Groups only: \"foreground\" or \"background\"."),
            field("schemes", "array", "Groups only: names of the schemes that carried its flows."),
            field(
                "policy_rate_bps",
                "number or null",
                "Groups only: rate that policies allowed while there was data, mean over samples and queue pairs.",
            ),
            field(
                "held_bytes",
                "number or null",
                "Groups only: held ahead of a gap by a receiver's queue pair, mean over samples and queue pairs.",
            ),
            field("count", "integer", "Flows."),
            field("finished", "integer", "Flows that finished."),
            field("unfinished", "integer", "Flows the run ended before."),
            field("failed", "integer", "Flows that ended in an error."),
            field("finished_bytes", "integer", "Payload bytes of finished flows."),
            field("fct_ns", "distribution", "Flow completion time: from post to last byte at the receiver."),
            field("slowdown", "distribution", "Completion time over that on an idle network."),
            field(
                "acked_fct_ns",
                "distribution",
                "Time from post to the acknowledgement of the last byte at the sender; of flows that have one.",
            ),
            field(
                "acked_slowdown",
                "distribution",
                "That time over the same on an idle network, with the acknowledgement's way back.",
            ),
            field(
                "aggregate_goodput_bps",
                "number",
                "`finished_bytes` over the time from the first start to the last finish among finished flows.",
            ),
            field("mean_goodput_bps", "number", "Mean over flows of size over completion time."),
            field("jain_index", "number or null", "Jain's fairness index of the goodput of each flow."),
            field("sent_packets", "integer", "Data packets sent, retransmissions included."),
            field("retransmitted_packets", "integer", "Data packets sent again."),
            field("dropped_packets", "integer", "Data packets the fabric dropped."),
            field(
                "ooo_packets",
                "integer",
                "Data packets that arrived after a later one of the same queue pair.",
            ),
            field(
                "ooo_degree_packets",
                "distribution",
                "Largest out-of-order degree of each flow, finished or not.",
            ),
            field("copied_packets", "integer", "Copies sent of packets in flight, after a change of path."),
            field("notice_packets", "integer", "Notices of a change of path sent."),
            field("extra_wire_bytes", "integer", "Bytes on the wire of copies and notices."),
            field("cnp_packets", "integer", "Congestion notifications that reached senders."),
            field("timeouts", "integer", "Retransmission timeouts."),
            field("by_size", "array", "Finished flows by size; bins without one are left out."),
        ],
    },
    Object {
        path: "by_size[]",
        meaning: "Finished flows of similar size. Edges are 1, 3, 10, 30, ... KB.",
        fields: &[
            field("above_bytes", "integer", "Sizes above this; the first bin includes 0."),
            field("up_to_bytes", "integer", "Up to and including this."),
            field("fct_ns", "distribution", "Flow completion time."),
            field("slowdown", "distribution", "Slowdown."),
        ],
    },
    Object {
        path: "fabric",
        meaning: "Links and queues of the whole fabric.",
        fields: &[
            field("links", "integer", "Directed links."),
            field("tx_bytes", "integer", "Bytes sent, headers and gaps included, summed over links."),
            field("dropped_packets", "integer", "Packets dropped, data and control."),
            field("dropped_by_reason", "object", "Recorded drops by reason; see `not_recorded_by_kind`."),
            field("ecn_marked_packets", "integer", "Packets marked Congestion Experienced."),
            field("pfc_pauses", "integer", "Times a link was paused by PFC."),
            field("paused_ns", "number", "Time links were paused, summed over links and priority classes."),
            field("max_queue_bytes", "integer", "Largest egress queue."),
            field(
                "events_not_recorded",
                "integer",
                "Events beyond the recording limit: totals count them, `events.parquet` does not hold them.",
            ),
            field(
                "not_recorded_by_kind",
                "object",
                "The same by kind, each of which has a limit of its own; kinds without one are left out.",
            ),
            field("balancing", "object", "What load balancing in the switches did."),
            field("tiers", "array", "Utilisation by tier and direction, from the hosts up."),
        ],
    },
    Object {
        path: "fabric.balancing",
        meaning: "What load balancing in the switches did, all switches together. All zero where they hash.",
        fields: &[
            field("flowlets", "integer", "Flowlets begun."),
            field("reroutes", "integer", "Times a switch sent a flow another way than before."),
            field("held_packets", "integer", "Packets switches held until those before them had come."),
            field(
                "unheld_packets",
                "integer",
                "Packets that overtook others and were not held, for want of a queue.",
            ),
            field(
                "late_flushes",
                "integer",
                "Queues of held packets emptied because what they waited for was overdue.",
            ),
            field("untracked_packets", "integer", "Packets of flows for which a switch's table had no room."),
            field("message_packets", "integer", "Packets that switches sent each other."),
        ],
    },
    Object {
        path: "fabric.tiers[]",
        meaning: "Links of one tier in one direction.",
        fields: &[
            field("tier", "integer", "Higher tier of the two ends: 1 for host links."),
            field(
                "direction",
                "string",
                "\"up\" away from the hosts, \"down\" towards them, \"level\" within a tier.",
            ),
            field(
                "utilisation_ratio",
                "distribution",
                "Fraction of the simulated time each link was sending.",
            ),
            field("max_queue_bytes", "integer", "Largest egress queue."),
            field("dropped_packets", "integer", "Packets dropped."),
            field("pfc_pauses", "integer", "Times a link was paused by PFC."),
        ],
    },
    Object {
        path: "jobs",
        meaning: "Jobs: graphs of messages that complete as a whole.",
        fields: &[
            field("count", "integer", "Jobs."),
            field("unfinished", "integer", "Jobs the run ended before."),
            field("completion_ns", "distribution", "Completion time of finished jobs."),
            field(
                "exposed_ns",
                "distribution",
                "Exposed communication of finished jobs that compute: their completion time less what they would take if messages took no time.",
            ),
            field(
                "algorithm_bandwidth_bps",
                "distribution",
                "Algorithm bandwidth of finished collectives, as nccl-tests define it.",
            ),
            field("bus_bandwidth_bps", "distribution", "Their bus bandwidth, likewise."),
        ],
    },
    Object {
        path: "middleboxes[]",
        meaning: "What the middlebox of an external switch has counted; 0 where a part of it is off.",
        fields: crate::middlebox::MIDDLEBOX_FIELDS,
    },
    Object {
        path: "departures",
        meaning: "Data packets as they left their hosts. Empty without `observe.departures`.",
        fields: &[
            field("gaps", "array", "Times between packets of a message, by length."),
            field(
                "lengths",
                "array",
                "Bytes by the length of the path they took; empty where switches choose paths.",
            ),
        ],
    },
    Object {
        path: "departures.gaps[]",
        meaning: "Times between a packet and the one before it of the same message and queue pair; bins without one are left out.",
        fields: &[
            field("above_ns", "integer", "Longer than this."),
            field("up_to_ns", "integer", "Up to and including this."),
            field("packets", "integer", "How many."),
        ],
    },
    Object {
        path: "departures.lengths[]",
        meaning: "Paths of the same number of links.",
        fields: &[
            field("links", "integer", "Links from host to host."),
            field("wire_bytes", "integer", "Bytes on the wire that took them."),
            field(
                "uniform_bytes",
                "number",
                "Bytes that would have if each pair of hosts had sent as much over each of its paths.",
            ),
        ],
    },
    Object {
        path: "distribution",
        meaning: "Mean and order statistics of a set of values; all 0 when `count` is 0.",
        fields: &[
            field("count", "integer", "Number of values."),
            field("mean", "number", "Arithmetic mean."),
            field("min", "number", "Smallest."),
            field("p50", "number", "Median."),
            field("p95", "number", "95th percentile."),
            field("p99", "number", "99th percentile."),
            field("p999", "number", "99.9th percentile."),
            field("max", "number", "Largest."),
        ],
    },
];
