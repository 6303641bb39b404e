//! Columns of every Parquet file: name, type, unit, meaning, and access to the value of a record. The writers and
//! `docs/results.md` derive from these tables.

use crate::activities::{ActivityKind, ActivityLabel, ActivityRecord, CollectiveLabel};
use crate::events::{DropReason, EventKind, EventRecord};
use crate::format::ns;
use crate::records::{Direction, FlowRecord, FlowStatus, JobRecord, LinkTotals, RunResult};
use crate::series::{SeriesKind, SeriesSample};

/// Number of records in a row group of a file, and the largest number that waits to be written. Writing takes the
/// memory of one column of a row group and of the compressed row group, besides the records.
pub const ROWS_A_GROUP: usize = 1 << 16;

/// One column of a file of records `R`.
pub struct Column<R> {
    /// Name of the column, with the unit at the end.
    pub name: &'static str,
    /// True if values can be missing.
    pub nullable: bool,
    /// Meaning of the column, for the documentation.
    pub meaning: &'static str,
    /// Returns the value of a record.
    pub get: Get<R>,
}

/// Access to a value, by type. `None` is a missing value and allowed only in a nullable column.
pub enum Get<R> {
    /// Unsigned, 32 bits.
    U32(fn(&RunResult, &R) -> Option<u32>),
    /// Unsigned, 64 bits.
    U64(fn(&RunResult, &R) -> Option<u64>),
    /// Double precision.
    F64(fn(&RunResult, &R) -> Option<f64>),
    /// One of a list of texts: the list, and the record's index into it.
    Label(fn(&RunResult) -> Vec<String>, fn(&R) -> Option<usize>),
}

/// Units, and the ends of the names of columns that have them.
const UNITS: [(&str, &str); 6] = [
    ("_ns", "ns"),
    ("_bytes", "B"),
    ("_bps", "bit/s"),
    ("_packets", "packets"),
    ("_ratio", "1"),
    ("_share", "1"),
];

impl<R> Column<R> {
    /// Returns the unit, or "" if there is none.
    pub fn unit(&self) -> &'static str {
        match self.name {
            "value" => "by kind",
            name => UNITS.iter().find(|(end, _)| name.ends_with(end)).map_or("", |(_, unit)| unit),
        }
    }
}

impl<R> Get<R> {
    /// Returns the name of the type in the documentation.
    pub fn type_name(&self) -> &'static str {
        match self {
            Get::U32(_) => "uint32",
            Get::U64(_) => "uint64",
            Get::F64(_) => "double",
            Get::Label(..) => "string",
        }
    }
}

pub(crate) const fn column<R>(name: &'static str, meaning: &'static str, get: Get<R>) -> Column<R> {
    Column { name, nullable: false, meaning, get }
}
pub(crate) const fn nullable<R>(name: &'static str, meaning: &'static str, get: Get<R>) -> Column<R> {
    Column { name, nullable: true, meaning, get }
}

pub(crate) fn names(all: impl Iterator<Item = &'static str>) -> Vec<String> {
    all.map(str::to_owned).collect()
}
fn node_names(run: &RunResult) -> Vec<String> {
    run.nodes.iter().map(|n| n.name.clone()).collect()
}

/// Column of a counter, with its meaning for one flow.
macro_rules! counter_column {
    ($name:ident { $type:tt, $_sum:literal, $one:literal }) => {
        counter_column!($name { $type, $one })
    };
    ($name:ident { u32, $one:literal }) => {
        nullable(stringify!($name), $one, Get::U32(|run, flow| run.of_packets(flow.$name)))
    };
    ($name:ident { u64, $one:literal }) => {
        nullable(stringify!($name), $one, Get::U64(|run, flow| run.of_packets(flow.$name)))
    };
}
macro_rules! flow_columns {
    (
        $( $_first:ident { $( $first:ident $first_entry:tt )* } )*;
        $_second:ident { $( $second:ident $second_entry:tt )* }
    ) => {
        /// Columns of `flows.parquet`.
        pub const FLOWS: &[Column<FlowRecord>] = &[
            column(
                "flow",
                "Number of the flow, in order of earliest start, depth in the dependencies, sender, receiver, group, size.",
                Get::U32(|_, f| Some(f.flow)),
            ),
            column(
                "group",
                "Workload group.",
                Get::Label(|run| run.info.groups.clone(), |f| Some(usize::from(f.group))),
            ),
            column(
                "role",
                "Role of its group in the run: foreground or background.",
                Get::Label(
                    |run| (0u16..).zip(&run.info.groups).map(|(g, _)| run.info.role(g).to_string()).collect(),
                    |f| Some(usize::from(f.group)),
                ),
            ),
            column(
                "scheme",
                "Scheme that carried it.",
                Get::Label(|run| run.info.schemes.clone(), |f| Some(usize::from(f.scheme))),
            ),
            nullable("job", "Job it belongs to.", Get::U32(|_, f| f.job)),
            column("src_host", "Sending host.", Get::U32(|_, f| Some(f.src_host))),
            column("dst_host", "Receiving host.", Get::U32(|_, f| Some(f.dst_host))),
            column("size_bytes", "Bytes of the message, headers not counted.", Get::U64(|_, f| Some(f.size_bytes))),
            column("start_ns", "When it was posted.", Get::F64(|_, f| Some(ns(f.start_ps)))),
            nullable("finish_ns", "When the receiver had its last byte.", Get::F64(|_, f| f.finish_ps.map(ns))),
            nullable(
                "acked_ns",
                "When the sender knew that: it had the last acknowledgement.",
                Get::F64(|_, f| f.acked_ps.map(ns)),
            ),
            nullable(
                "fct_ns",
                "Flow completion time: from post to last byte at the receiver.",
                Get::F64(|_, f| f.fct_ps().map(ns)),
            ),
            nullable(
                "ideal_fct_ns",
                "Completion time on an idle network, which no flow undercuts: on one path where the scheme keeps a message on one, \
                 otherwise on all paths side by side, where short packets overtake long ones. Queue pairs share the message \
                 as the scheme's do. Links are as fast as faults ever make them. Null if the flow was never posted.",
                Get::F64(|_, f| Some(f.ideal_fct_ps).filter(|&ideal| ideal > 0).map(ns)),
            ),
            nullable("slowdown", "`fct_ns` over `ideal_fct_ns`.", Get::F64(|_, f| f.slowdown())),
            nullable(
                "acked_fct_ns",
                "Completion time as ns-3's RDMA simulators take it: from post to the last acknowledgement at the \
                 sender.",
                Get::F64(|_, f| f.acked_fct_ps().map(ns)),
            ),
            nullable(
                "ideal_acked_fct_ns",
                "The same on an idle network: `ideal_fct_ns` and the return of an acknowledgement.",
                Get::F64(|_, f| f.ideal_acked_ps.map(ns)),
            ),
            nullable(
                "acked_slowdown",
                "`acked_fct_ns` over `ideal_acked_fct_ns`.",
                Get::F64(|_, f| f.acked_slowdown()),
            ),
            nullable("goodput_bps", "`size_bytes` over `fct_ns`.", Get::F64(|_, f| f.goodput_bps())),
            $( $( counter_column!($first $first_entry), )* )*
            nullable(
                "ooo_degree_max_packets",
                "Largest out-of-order degree: packets a late one was behind the latest received.",
                Get::U32(|run, f| run.of_packets(f.ooo_degree_max)),
            ),
            $( counter_column!($second $second_entry), )*
            nullable(
                "activity",
                "The activity that it belongs to, as its workload names it.",
                Get::Label(
                    |run| run.labels.iter().map(ActivityLabel::description).collect(),
                    |f| f.label.map(|label| label as usize),
                ),
            ),
            column(
                "status",
                "How it ended.",
                Get::Label(|_| names(FlowStatus::ALL.iter().map(|s| s.name())), |f| Some(f.status as usize)),
            ),
        ];
    };
}
pathweave_units::flow_counters!(flow_columns);

/// Columns of `series.parquet`.
pub const SERIES: &[Column<SeriesSample>] = &[
    column("time_ns", "When.", Get::F64(|_, s| Some(ns(s.time_ps)))),
    column(
        "kind",
        "The sampled quantity; its name ends in the unit of `value`.",
        Get::Label(|_| names(SeriesKind::ALL.iter().map(|k| k.name())), |s| Some(s.kind as usize)),
    ),
    column(
        "entity",
        "Link, node, host or flow sampled, depending on `kind`.",
        Get::U32(|_, s| Some(s.entity)),
    ),
    column(
        "index",
        "Part of the entity: a path; 0 where the entity is whole.",
        Get::U32(|_, s| Some(u32::from(s.index))),
    ),
    column("value", "The sample.", Get::F64(|_, s| Some(s.value))),
];

/// Columns of `events.parquet`.
pub const EVENTS: &[Column<EventRecord>] = &[
    column("time_ns", "When.", Get::F64(|_, e| Some(ns(e.time_ps)))),
    column(
        "kind",
        "What happened.",
        Get::Label(|_| names(EventKind::ALL.iter().map(|k| k.name())), |e| Some(e.kind as usize)),
    ),
    nullable(
        "reason",
        "Why a packet was dropped.",
        Get::Label(|_| names(DropReason::ALL.iter().map(|r| r.name())), |e| e.reason.map(|r| r as usize)),
    ),
    column(
        "node",
        "Node where it happened; the sending host of a retransmission or timeout.",
        Get::U32(|_, e| Some(e.node)),
    ),
    nullable("link", "Link concerned.", Get::U32(|_, e| e.link)),
    nullable("flow", "Flow concerned.", Get::U32(|_, e| e.flow)),
    nullable("peer_host", "Receiving host of a retransmission or timeout.", Get::U32(|_, e| e.peer_host)),
    nullable(
        "queue_pair",
        "Queue pair of the sender, of a retransmission or timeout.",
        Get::U32(|_, e| e.queue_pair),
    ),
    nullable("path", "Path of the packet concerned.", Get::U32(|_, e| e.path)),
    column(
        "value",
        "A figure, in the sense `kind` gives; 0 where there is none.",
        Get::F64(|_, e| Some(e.value)),
    ),
];

/// Columns of `links.parquet`.
pub const LINKS: &[Column<LinkTotals>] = &[
    column("link", "Number of the directed link.", Get::U32(|_, l| Some(l.link))),
    column(
        "name",
        "Its name.",
        Get::Label(|run| run.links.iter().map(|l| l.name.clone()).collect(), |l| Some(l.link as usize)),
    ),
    column("from_node", "Node it leaves.", Get::U32(|_, l| Some(l.from_node))),
    column("to_node", "Node it enters.", Get::U32(|_, l| Some(l.to_node))),
    column("from", "Name of the node it leaves.", Get::Label(node_names, |l| Some(l.from_node as usize))),
    column("to", "Name of the node it enters.", Get::Label(node_names, |l| Some(l.to_node as usize))),
    column(
        "tier",
        "Higher tier of its two ends: 0 for links of hosts, 1 between ToR and aggregation, and so on.",
        Get::U32(|_, l| Some(u32::from(l.tier))),
    ),
    column(
        "direction",
        "`up` away from the hosts, `down` towards them, `level` between two switches of one tier.",
        Get::Label(|_| names(Direction::ALL.iter().map(|d| d.name())), |l| Some(l.direction as usize)),
    ),
    column("rate_bps", "Rate without faults.", Get::U64(|_, l| Some(l.rate_bps))),
    column(
        "delay_ns",
        "Propagation delay without faults, with the latency of the switch that it leaves.",
        Get::F64(|_, l| Some(ns(l.delay_ps))),
    ),
    column("tx_bytes", "Bytes sent, headers and gaps included.", Get::U64(|_, l| Some(l.tx_bytes))),
    nullable(
        "tx_packets",
        "Packets sent, data and control.",
        Get::U64(|run, l| run.of_packets(l.tx_packets)),
    ),
    column("busy_ns", "Time it was sending.", Get::F64(|_, l| Some(ns(l.busy_ps)))),
    column(
        "utilisation_ratio",
        "`busy_ns` over the simulated time.",
        Get::F64(|run, l| Some(l.utilisation(run.info.simulated_ps))),
    ),
    nullable(
        "dropped_packets",
        "Packets dropped at its egress port or on it.",
        Get::U64(|run, l| run.of_packets(l.dropped_packets)),
    ),
    nullable(
        "ecn_marked_packets",
        "Packets marked Congestion Experienced at its egress port.",
        Get::U64(|run, l| run.of_packets(l.ecn_marked_packets)),
    ),
    nullable(
        "trimmed_packets",
        "Packets that its egress port trimmed to the header because its queue was full.",
        Get::U64(|run, l| run.of_queues(l.trimmed_packets)),
    ),
    nullable("pfc_pauses", "Times PFC paused it.", Get::U64(|run, l| run.of_queues(l.pfc_pauses))),
    nullable(
        "paused_ns",
        "Time it was paused, summed over priority classes.",
        Get::F64(|run, l| run.of_queues(ns(l.paused_ps))),
    ),
    nullable(
        "max_queue_bytes",
        "Largest egress queue seen.",
        Get::U64(|run, l| run.of_queues(l.max_queue_bytes)),
    ),
];

/// Columns of `jobs.parquet`.
pub const JOBS: &[Column<JobRecord>] = &[
    column("job", "Number of the job.", Get::U32(|_, j| Some(j.job))),
    column(
        "name",
        "Its name.",
        Get::Label(|run| run.jobs.iter().map(|j| j.name.clone()).collect(), |j| Some(j.job as usize)),
    ),
    column(
        "group",
        "Workload group.",
        Get::Label(|run| run.info.groups.clone(), |j| Some(usize::from(j.group))),
    ),
    column("start_ns", "When its first message or delay could start.", Get::F64(|_, j| Some(ns(j.start_ps)))),
    nullable("finish_ns", "When its last one was over.", Get::F64(|_, j| j.finish_ps.map(ns))),
    nullable(
        "completion_ns",
        "How long it took: `finish_ns` minus `start_ns`, or minus the end of the iteration or round that it follows where that is later. Ranks begin an iteration when they have done their part of the one before, so that iterations overlap; times counted like this add up.",
        Get::F64(|_, j| j.completion_ps().map(ns)),
    ),
    column(
        "compute_ns",
        "Time of the job if messages took no time: computations, delays and starts; 0 in a run without \
         computations.",
        Get::F64(|_, j| Some(ns(j.compute_ps))),
    ),
    nullable(
        "exposed_ns",
        "Exposed communication: `completion_ns` minus `compute_ns`, 0 at least.",
        Get::F64(|_, j| j.exposed_ps().map(ns)),
    ),
    nullable(
        "size_bytes",
        "Size of the collective it is, as nccl-tests count it; null where it is none.",
        Get::U64(|_, j| j.size_bytes),
    ),
    nullable(
        "algorithm_bandwidth_bps",
        "`size_bytes` over `completion_ns`.",
        Get::F64(|_, j| j.algorithm_bandwidth_bps()),
    ),
    nullable(
        "bus_bandwidth_bps",
        "The same times the factor of nccl-tests: 2 (n - 1) / n for an all-reduce, (n - 1) / n for all-gather, reduce-scatter and all-to-all, 1 for broadcast and reduce.",
        Get::F64(|_, j| j.bus_bandwidth_bps()),
    ),
];

/// Columns of `activities.parquet`.
pub const ACTIVITIES: &[Column<ActivityRecord>] = &[
    column("host", "The host.", Get::U32(|_, a| Some(a.host))),
    column(
        "group",
        "Workload group.",
        Get::Label(|run| run.info.groups.clone(), |a| Some(usize::from(a.group))),
    ),
    nullable("job", "Job it belongs to.", Get::U32(|_, a| a.job)),
    column(
        "kind",
        "A computation or communication.",
        Get::Label(|_| names(ActivityKind::ALL.iter().map(|k| k.name())), |a| Some(a.kind as usize)),
    ),
    column(
        "activity",
        "The activity as the workload names it: `forward`, `all-reduce`, `send`.",
        Get::Label(
            |run| run.labels.iter().map(|label| label.activity.clone()).collect(),
            |a| Some(a.label as usize),
        ),
    ),
    column(
        "part",
        "The object of the activity: a layer, a bucket of gradients, a round. Empty if the workload does not name it.",
        Get::Label(
            |run| run.labels.iter().map(|label| label.object.clone().unwrap_or_default()).collect(),
            |a| Some(a.label as usize),
        ),
    ),
    nullable(
        "collective",
        "Number of its collective among those of its workload. Null where it belongs to none.",
        Get::U64(|run, a| collective(run, a).map(|c| u64::from(c.number))),
    ),
    nullable(
        "ranks",
        "How many ranks take part in the collective.",
        Get::U64(|run, a| collective(run, a).map(|c| u64::from(c.ranks))),
    ),
    nullable(
        "size_bytes",
        "Size of the collective, as nccl-tests count it. Null where its ranks send different amounts.",
        Get::U64(|run, a| collective(run, a)?.size_bytes),
    ),
    column(
        "start_ns",
        "When it began: the computation, or the first of its messages was posted.",
        Get::F64(|_, a| Some(ns(a.start_ps))),
    ),
    nullable(
        "finish_ns",
        "When it was over: the computation, or the last byte of its messages had arrived.",
        Get::F64(|_, a| a.finish_ps.map(ns)),
    ),
    nullable(
        "nominal_ns",
        "Time that the computation takes without stragglers: the amount of its work. Null for communication.",
        Get::F64(|_, a| a.nominal_ps.map(ns)),
    ),
    column("flows", "Messages that the host sent or received in it.", Get::U32(|_, a| Some(a.flows))),
    column("sent_bytes", "Payload bytes that it sent.", Get::U64(|_, a| Some(a.sent_bytes))),
    column("received_bytes", "Payload bytes that it received.", Get::U64(|_, a| Some(a.received_bytes))),
];

fn collective(run: &RunResult, activity: &ActivityRecord) -> Option<CollectiveLabel> {
    run.labels.get(activity.label as usize)?.collective
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_unique_and_have_a_meaning() {
        fn check<R>(columns: &[Column<R>]) {
            let mut seen = std::collections::BTreeSet::new();
            for c in columns {
                assert!(seen.insert(c.name), "{} twice", c.name);
                assert!(c.meaning.ends_with('.'), "{}: {}", c.name, c.meaning);
            }
        }
        check(FLOWS);
        check(SERIES);
        check(EVENTS);
        check(LINKS);
        check(JOBS);
        check(ACTIVITIES);
        check(crate::COLLECTIVES);
        check(crate::LAYERS);
        check(crate::CRITICAL);
    }

    #[test]
    fn a_name_ends_in_its_unit() {
        let unit =
            |columns: &[Column<FlowRecord>], name| columns.iter().find(|c| c.name == name).map(Column::unit);
        assert_eq!(
            ["size_bytes", "goodput_bps", "job"].map(|name| unit(FLOWS, name)),
            [Some("B"), Some("bit/s"), Some("")]
        );
        assert_eq!(SERIES.iter().find(|c| c.name == "value").map(Column::unit), Some("by kind"));
    }

    proptest! {
        #[test]
        fn nanoseconds_keep_the_picosecond(ps in 0u64..(1 << 51)) {
            prop_assert_eq!((ns(ps) * 1_000.0).round() as u64, ps);
        }
    }
}
