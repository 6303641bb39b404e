//! The rows of every table: label, unit, and where in the summary the figure is. The terminal and the report show
//! these and no others.

use crate::human::Quantity;
use crate::summary::{FlowSummary, Summary};

/// A figure of a set of flows.
pub struct FlowMetric {
    /// What it is.
    pub label: &'static str,
    /// How it is shown.
    pub quantity: Quantity,
    /// The figure; `None` where there is none (no flow finished).
    pub get: fn(&FlowSummary) -> Option<f64>,
}

/// A figure of a run.
pub struct RunMetric {
    /// What it is.
    pub label: &'static str,
    /// How it is shown.
    pub quantity: Quantity,
    /// The figure.
    pub get: fn(&Summary) -> Option<f64>,
}

const fn flow(label: &'static str, quantity: Quantity, get: fn(&FlowSummary) -> Option<f64>) -> FlowMetric {
    FlowMetric { label, quantity, get }
}
const fn run(label: &'static str, quantity: Quantity, get: fn(&Summary) -> Option<f64>) -> RunMetric {
    RunMetric { label, quantity, get }
}

/// A figure that means nothing unless a flow finished.
fn if_finished(flows: &FlowSummary, value: f64) -> Option<f64> {
    (flows.finished > 0).then_some(value)
}

use Quantity::{Bytes, Count, Percent, Plain, RateBps, TimeNs};

/// Rows on flows.
pub const FLOW_METRICS: &[FlowMetric] = &[
    flow("Flows", Count, |f| Some(f.count as f64)),
    flow("Unfinished", Count, |f| Some(f.unfinished as f64)),
    flow("Failed", Count, |f| Some(f.failed as f64)),
    flow("FCT mean", TimeNs, |f| if_finished(f, f.fct_ns.mean)),
    flow("FCT median", TimeNs, |f| if_finished(f, f.fct_ns.p50)),
    flow("FCT P95", TimeNs, |f| if_finished(f, f.fct_ns.p95)),
    flow("FCT P99", TimeNs, |f| if_finished(f, f.fct_ns.p99)),
    flow("FCT P99.9", TimeNs, |f| if_finished(f, f.fct_ns.p999)),
    flow("FCT max", TimeNs, |f| if_finished(f, f.fct_ns.max)),
    flow("Slowdown mean", Plain, |f| if_finished(f, f.slowdown.mean)),
    flow("Slowdown median", Plain, |f| if_finished(f, f.slowdown.p50)),
    flow("Slowdown P95", Plain, |f| if_finished(f, f.slowdown.p95)),
    flow("Slowdown P99", Plain, |f| if_finished(f, f.slowdown.p99)),
    flow("Slowdown P99.9", Plain, |f| if_finished(f, f.slowdown.p999)),
    flow("Slowdown max", Plain, |f| if_finished(f, f.slowdown.max)),
    flow("Goodput aggregate", RateBps, |f| if_finished(f, f.aggregate_goodput_bps)),
    flow("Goodput per flow", RateBps, |f| if_finished(f, f.mean_goodput_bps)),
    flow("Jain's index", Plain, |f| f.jain_index),
    flow("Dropped packets", Count, |f| Some(f.dropped_packets as f64)),
    flow("Retransmissions", Count, |f| Some(f.retransmitted_packets as f64)),
    flow("Copies", Count, |f| if_any(f.copied_packets)),
    flow("Notices", Count, |f| if_any(f.notice_packets)),
    flow("Congestion notifications", Count, |f| if_any(f.cnp_packets)),
    flow("Timeouts", Count, |f| Some(f.timeouts as f64)),
    flow("Out-of-order degree P99", Count, |f| Some(f.ooo_degree_packets.p99)),
    flow("Out-of-order degree max", Count, |f| Some(f.ooo_degree_packets.max)),
];

/// Rows on the fabric and the run.
pub const RUN_METRICS: &[RunMetric] = &[
    run("PFC pauses", Count, |s| Some(s.fabric.pfc_pauses as f64)),
    run("ECN marks", Count, |s| Some(s.fabric.ecn_marked_packets as f64)),
    run("Drops, all packets", Count, |s| Some(s.fabric.dropped_packets as f64)),
    run("Largest queue", Bytes, |s| Some(s.fabric.max_queue_bytes as f64)),
    run("Flowlets", Count, |s| if_any(s.fabric.balancing.flowlets)),
    run("Rerouted by switches", Count, |s| if_any(s.fabric.balancing.reroutes)),
    run("Held by switches", Count, |s| if_any(s.fabric.balancing.held_packets)),
    run("Overtook and not held", Count, |s| if_any(s.fabric.balancing.unheld_packets)),
    run("Held and let go too soon", Count, |s| if_any(s.fabric.balancing.late_flushes)),
    run("Packets between switches", Count, |s| if_any(s.fabric.balancing.message_packets)),
    run("Host link utilisation", Percent, |s| tier_mean(s, true)),
    run("Fabric link utilisation", Percent, |s| tier_mean(s, false)),
    run("Job completion mean", TimeNs, |s| jobs(s).map(|j| j.mean)),
    run("Job completion max", TimeNs, |s| jobs(s).map(|j| j.max)),
    run("Simulated time", TimeNs, |s| Some(s.run.simulated_ns)),
    run("Packet-hops", Count, |s| Some(s.run.packet_hops as f64)),
];

/// A figure of something that most runs do not have.
fn if_any(count: u64) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

fn jobs(summary: &Summary) -> Option<&crate::stats::Distribution> {
    (summary.jobs.completion_ns.count > 0).then_some(&summary.jobs.completion_ns)
}

/// Mean utilisation over links of hosts, or over all others.
fn tier_mean(summary: &Summary, of_hosts: bool) -> Option<f64> {
    let chosen =
        || summary.fabric.tiers.iter().filter(|t| (t.tier <= 1) == of_hosts).map(|t| t.utilisation_ratio);
    let links: u64 = chosen().map(|u| u.count).sum();
    (links > 0).then(|| chosen().map(|u| u.mean * u.count as f64).sum::<f64>() / links as f64)
}
