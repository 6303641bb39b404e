//! Columns of the waits of flows.

use crate::columns::{Column, Get, column, names, nullable};
use crate::format::ns;
use crate::waits::{WaitKind, WaitRecord};

/// Columns of `waits.parquet`.
pub const WAITS: &[Column<WaitRecord>] = &[
    column("flow", "Number of the flow.", Get::U32(|_, w| Some(w.flow))),
    column(
        "group",
        "Workload group.",
        Get::Label(|run| run.info.groups.clone(), |w| Some(usize::from(w.group))),
    ),
    column("src_host", "Sending host.", Get::U32(|_, w| Some(w.src_host))),
    column("dst_host", "Receiving host.", Get::U32(|_, w| Some(w.dst_host))),
    column("size_bytes", "Bytes of the message, headers not counted.", Get::U64(|_, w| Some(w.size_bytes))),
    column("start_ns", "When the flow was posted.", Get::F64(|_, w| Some(ns(w.start_ps)))),
    column(
        "flow_ns",
        "How long the flow took; until the end of the run if it did not finish.",
        Get::F64(|_, w| Some(ns(w.flow_ps))),
    ),
    column("ideal_fct_ns", "Time of the flow on an idle network.", Get::F64(|_, w| Some(ns(w.ideal_fct_ps)))),
    nullable(
        "ideal_acked_fct_ns",
        "Time to the last acknowledgement on an idle network.",
        Get::F64(|_, w| w.ideal_acked_ps.map(ns)),
    ),
    column(
        "sent_packets",
        "Data packets sent, retransmissions included.",
        Get::U32(|_, w| Some(w.sent_packets)),
    ),
    column(
        "retransmitted_packets",
        "Data packets sent again.",
        Get::U32(|_, w| Some(w.retransmitted_packets)),
    ),
    column("timeouts", "Retransmission timeouts.", Get::U32(|_, w| Some(w.timeouts))),
    column(
        "kind",
        "Cause of this part of its time.",
        Get::Label(|_| names(WaitKind::ALL.iter().map(|k| k.name())), |w| Some(w.kind as usize)),
    ),
    nullable("link", "At which link: its number.", Get::U32(|_, w| w.link)),
    column(
        "time_ns",
        "How long, as samples saw it: the parts of a flow add up to `flow_ns`.",
        Get::F64(|_, w| Some(ns(w.time_ps))),
    ),
    nullable(
        "link_senders",
        "Largest number of hosts with data that waited for the link at one sample of the run.",
        Get::U32(|_, w| w.link_senders),
    ),
    nullable(
        "link_group",
        "Workload group that had most packets on the link over the run.",
        Get::Label(|run| run.info.groups.clone(), |w| w.link_group.map(usize::from)),
    ),
    nullable("link_group_share", "Its share of them.", Get::F64(|_, w| w.link_group_share)),
];
