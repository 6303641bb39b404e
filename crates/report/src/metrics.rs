//! Rows of every table: label, unit, and access to the figure in the summary. The terminal and the report show these
//! rows and no others.

use crate::few_flows::FEWEST_FLOWS;
use pathweave_records::{Direction, FlowSummary, Quantity, Summary, TrainingSummary};

/// A figure of a set of flows.
pub struct FlowMetric {
    /// Label of the row.
    pub label: &'static str,
    /// Format of the figure.
    pub quantity: Quantity,
    /// Direction of the better figure.
    pub better: Better,
    /// Work that has to be finished for the figure to stand for a run.
    pub needs: Needs,
    /// Returns the figure, or `None` if there is none (no flow finished).
    pub get: fn(&FlowSummary) -> Option<f64>,
}

/// A figure of a run.
pub struct RunMetric {
    /// Label of the row.
    pub label: &'static str,
    /// Format of the figure.
    pub quantity: Quantity,
    /// Direction of the better figure.
    pub better: Better,
    /// Work that has to be finished for the figure to stand for a run.
    pub needs: Needs,
    /// Returns the figure, or `None` if there is none.
    pub get: fn(&Summary) -> Option<f64>,
}

/// Direction of the better of two figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Lower is better.
    Lower,
    /// Higher is better.
    Higher,
    /// Neither is better: the figure describes the load, or the cost of the simulation.
    Neither,
}

/// Work that has to be finished for a figure to stand for a run. A figure of the work that finished leaves out the slowest
/// work otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// None: the figure is of all that happened.
    Nothing,
    /// All flows.
    Flows,
    /// All jobs.
    Jobs,
}

impl Needs {
    /// Returns the direction of the better figure among runs, of which one is `open` if it left work undone. A figure of
    /// what finished then speaks neither for nor against a run.
    pub(crate) fn direction(self, better: Better, open: bool) -> Better {
        match self {
            Needs::Flows | Needs::Jobs if open => Better::Neither,
            _ => better,
        }
    }
}

/// A figure of a run with a name for files, made from label and unit in lower case: "FCT P99" is `fct_p99_ns`.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name for files.
    pub name: String,
    /// Label for people.
    pub label: &'static str,
    /// Format of the figure.
    pub quantity: Quantity,
    /// Direction of the better figure.
    pub better: Better,
    /// Work that has to be finished for the figure to stand for a run.
    pub needs: Needs,
    /// Value of the figure, or `None` if the run has none.
    pub value: Option<f64>,
}

/// Returns every figure of a run that tables show, for the measured flows. All runs have the same figures in the same
/// order.
pub fn figures(summary: &Summary) -> Vec<Figure> {
    let of = |label, quantity, better, needs, value| Figure {
        name: name(label, quantity),
        label,
        quantity,
        better,
        needs,
        value,
    };
    let flows =
        FLOW_METRICS.iter().map(|m| of(m.label, m.quantity, m.better, m.needs, (m.get)(summary.measured())));
    let run = RUN_METRICS.iter().map(|m| of(m.label, m.quantity, m.better, m.needs, (m.get)(summary)));
    flows.chain(run).collect()
}

/// Returns the column name of a figure, from its label and unit.
pub(crate) fn name(label: &str, quantity: Quantity) -> String {
    let lower = label.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && !".'".contains(c));
    let words: Vec<String> = words.filter(|w| !w.is_empty()).map(|w| w.replace(['.', '\''], "")).collect();
    let unit = match quantity {
        TimeNs => "_ns",
        RateBps => "_bps",
        Bytes => "_bytes",
        Percent => "_ratio",
        Count | Plain => "",
    };
    words.join("_") + unit
}

const fn flow(label: &'static str, quantity: Quantity, get: fn(&FlowSummary) -> Option<f64>) -> FlowMetric {
    FlowMetric { label, quantity, better: Better::Lower, needs: Needs::Nothing, get }
}
/// Returns a metric of the flows that finished.
const fn of_finished(
    label: &'static str,
    quantity: Quantity,
    get: fn(&FlowSummary) -> Option<f64>,
) -> FlowMetric {
    FlowMetric { needs: Needs::Flows, ..flow(label, quantity, get) }
}
/// Returns a metric of the jobs that finished.
const fn of_jobs(label: &'static str, quantity: Quantity, get: fn(&Summary) -> Option<f64>) -> RunMetric {
    RunMetric { needs: Needs::Jobs, ..run(label, quantity, get) }
}
const fn run(label: &'static str, quantity: Quantity, get: fn(&Summary) -> Option<f64>) -> RunMetric {
    RunMetric { label, quantity, better: Better::Lower, needs: Needs::Nothing, get }
}
impl FlowMetric {
    const fn higher(self) -> Self {
        FlowMetric { better: Better::Higher, ..self }
    }
    const fn neither(self) -> Self {
        FlowMetric { better: Better::Neither, ..self }
    }
}
impl RunMetric {
    const fn higher(self) -> Self {
        RunMetric { better: Better::Higher, ..self }
    }
    const fn neither(self) -> Self {
        RunMetric { better: Better::Neither, ..self }
    }
}

/// Returns a figure of the slowest thousandth of flows, or `None` if that is less than one flow.
fn if_many(flows: &FlowSummary, value: f64) -> Option<f64> {
    (flows.finished >= FEWEST_FLOWS).then_some(value)
}

/// Returns a figure that has no meaning unless a flow finished.
fn if_finished(flows: &FlowSummary, value: f64) -> Option<f64> {
    (flows.finished > 0).then_some(value)
}

use Quantity::{Bytes, Count, Percent, Plain, RateBps, TimeNs};

/// Returns the metric of flows with this label, if there is one.
pub(crate) fn flow_metric(label: &str) -> Option<&'static FlowMetric> {
    FLOW_METRICS.iter().find(|metric| metric.label == label)
}

/// Label of the time of all jobs.
pub(crate) const JOB_TIME: &str = "Job time";

/// Returns the label of a figure of these runs, which names the mean where the figure is one over workload groups.
pub(crate) fn run_label(metric: &RunMetric, runs: &[&Summary]) -> String {
    let groups = runs.iter().map(|run| run.jobs.by_group.len()).max().unwrap_or(0);
    match metric.label {
        JOB_TIME if groups > 1 => format!("{JOB_TIME}, geometric mean of {groups} groups"),
        label => label.to_owned(),
    }
}

/// Returns the metric of a run with this label, if there is one.
pub(crate) fn run_metric(label: &str) -> Option<&'static RunMetric> {
    RUN_METRICS.iter().find(|metric| metric.label == label)
}

/// Rows about flows.
pub const FLOW_METRICS: &[FlowMetric] = &[
    flow("Flows", Count, |f| Some(f.count as f64)).neither(),
    flow("Unfinished", Count, |f| Some(f.unfinished as f64)),
    flow("Failed", Count, |f| Some(f.failed as f64)),
    of_finished("FCT mean", TimeNs, |f| if_finished(f, f.fct_ns.mean)),
    of_finished("FCT median", TimeNs, |f| if_finished(f, f.fct_ns.p50)),
    of_finished("FCT P95", TimeNs, |f| if_finished(f, f.fct_ns.p95)),
    of_finished("FCT P99", TimeNs, |f| if_finished(f, f.fct_ns.p99)),
    of_finished("FCT P99.9", TimeNs, |f| if_many(f, f.fct_ns.p999)),
    of_finished("FCT max", TimeNs, |f| if_finished(f, f.fct_ns.max)),
    of_finished("Ideal FCT mean", TimeNs, |f| if_finished(f, f.ideal_fct_ns.mean)).neither(),
    of_finished("Slowdown mean", Plain, |f| if_finished(f, f.slowdown.mean)),
    of_finished("Slowdown median", Plain, |f| if_finished(f, f.slowdown.p50)),
    of_finished("Slowdown P95", Plain, |f| if_finished(f, f.slowdown.p95)),
    of_finished("Slowdown P99", Plain, |f| if_finished(f, f.slowdown.p99)),
    of_finished("Slowdown P99.9", Plain, |f| if_many(f, f.slowdown.p999)),
    of_finished("Slowdown max", Plain, |f| if_finished(f, f.slowdown.max)),
    of_finished("Goodput aggregate", RateBps, |f| if_finished(f, f.aggregate_goodput_bps)).higher(),
    of_finished("Goodput per flow", RateBps, |f| if_finished(f, f.mean_goodput_bps)).higher(),
    of_finished("Jain's index", Plain, |f| f.jain_index).higher(),
    flow("Dropped packets", Count, |f| f.dropped_packets.map(|n| n as f64)),
    flow("Retransmissions", Count, |f| f.retransmitted_packets.map(|n| n as f64)),
    flow("Copies", Count, |f| f.copied_packets.and_then(nonzero)).neither(),
    flow("Notices", Count, |f| f.notice_packets.and_then(nonzero)).neither(),
    flow("Congestion notifications", Count, |f| f.cnp_packets.and_then(nonzero)).neither(),
    flow("Timeouts", Count, |f| f.timeouts.map(|n| n as f64)),
    flow("Out-of-order degree P99", Count, |f| figure_if_any(&f.ooo_degree_packets, |of| of.p99)),
    flow("Out-of-order degree max", Count, |f| figure_if_any(&f.ooo_degree_packets, |of| of.max)),
];

/// Rows about the fabric and the run.
pub const RUN_METRICS: &[RunMetric] = &[
    run("Spurious timeouts", Count, |s| s.spurious_timeouts().map(|n| n as f64)),
    run("PFC pauses", Count, |s| s.fabric.pfc_pauses.map(|n| n as f64)),
    run("ECN marks", Count, |s| s.fabric.ecn_marked_packets.map(|n| n as f64)).neither(),
    run("Trimmed packets", Count, |s| s.fabric.trimmed_packets.and_then(nonzero)),
    run("Drops, all packets", Count, |s| s.fabric.dropped_packets.map(|n| n as f64)),
    run("Largest queue", Bytes, |s| s.fabric.max_queue_bytes.map(|n| n as f64)),
    run("Flowlets", Count, |s| nonzero(s.fabric.balancing.flowlets)).neither(),
    run("Rerouted by switches", Count, |s| nonzero(s.fabric.balancing.reroutes)).neither(),
    run("Held by switches", Count, |s| nonzero(s.fabric.balancing.held_packets)).neither(),
    run("Overtook and not held", Count, |s| nonzero(s.fabric.balancing.unheld_packets)),
    run("Held and released too early", Count, |s| nonzero(s.fabric.balancing.late_flushes)),
    run("Packets between switches", Count, |s| nonzero(s.fabric.balancing.message_packets)).neither(),
    run("Host link utilisation", Percent, |s| tier_mean(s, true)).neither(),
    run("Fabric link utilisation", Percent, |s| tier_mean(s, false)).neither(),
    of_jobs(JOB_TIME, TimeNs, |s| s.jobs.time_ns),
    run("Unfinished jobs", Count, |s| nonzero(s.jobs.unfinished)),
    of_jobs("Job completion mean", TimeNs, |s| jobs(s).map(|j| j.mean)),
    of_jobs("Job completion max", TimeNs, |s| jobs(s).map(|j| j.max)),
    of_jobs("Exposed communication per job", TimeNs, |s| mean_if_any(&s.jobs.exposed_ns)),
    of_jobs("Iteration", TimeNs, |s| training(s).map(|t| t.iteration_ns)),
    run("Global batch", Count, |s| training(s).map(|t| t.global_batch as f64)).neither(),
    of_jobs("Tokens per second", Count, |s| training(s).map(|t| t.tokens_per_s)).higher(),
    of_jobs("Tokens per second and GPU", Plain, |s| training(s).map(|t| t.tokens_per_s_per_gpu)).higher(),
    of_jobs("TFLOP/s per GPU", Plain, |s| training(s).map(|t| t.tflops_per_gpu)).higher(),
    of_jobs("MFU", Percent, |s| training(s).and_then(|t| t.mfu)).higher(),
    of_jobs("Pipeline bubble over computation", Percent, |s| training(s).and_then(|t| t.pipeline_bubble)),
    of_jobs("Exposed communication per rank", TimeNs, |s| training(s).map(TrainingSummary::all_exposed_ns)),
    of_jobs("Latency of jobs", Percent, |s| s.run.latency_ratio).neither(),
    of_jobs("Algorithm bandwidth mean", RateBps, |s| mean_if_any(&s.jobs.algorithm_bandwidth_bps)).higher(),
    of_jobs("Bus bandwidth mean", RateBps, |s| mean_if_any(&s.jobs.bus_bandwidth_bps)).higher(),
    run("Simulated time", TimeNs, |s| Some(s.run.simulated_ns)).neither(),
    run("Packet-hops", Count, |s| s.run.packet_hops.map(|n| n as f64)).neither(),
];

/// Returns a count that is zero in most runs, or `None` if it is zero.
fn nonzero(count: u64) -> Option<f64> {
    (count > 0).then_some(count as f64)
}

/// Returns a figure of a distribution, or `None` if it has no values.
fn figure_if_any(
    of: &pathweave_records::Distribution,
    get: fn(&pathweave_records::Distribution) -> f64,
) -> Option<f64> {
    (of.count > 0).then(|| get(of))
}

/// Returns the mean of a distribution that most runs lack.
fn mean_if_any(of: &pathweave_records::Distribution) -> Option<f64> {
    (of.count > 0).then_some(of.mean)
}

/// Returns the figures of the group that trains, if it is the only one.
fn training(summary: &Summary) -> Option<&TrainingSummary> {
    match &summary.training[..] {
        [one] => Some(one),
        _ => None,
    }
}

fn jobs(summary: &Summary) -> Option<&pathweave_records::Distribution> {
    (summary.jobs.completion_ns.count > 0).then_some(&summary.jobs.completion_ns)
}

/// Returns the mean utilisation over links of hosts, or over all other links.
fn tier_mean(summary: &Summary, of_hosts: bool) -> Option<f64> {
    let chosen = || {
        summary
            .fabric
            .tiers
            .iter()
            .filter(|t| (t.tier == 0 && t.direction != Direction::Level.name()) == of_hosts)
            .map(|t| t.utilisation_ratio)
    };
    let links: u64 = chosen().map(|u| u.count).sum();
    (links > 0).then(|| chosen().map(|u| u.mean * u.count as f64).sum::<f64>() / links as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathweave_records::RunResult;

    #[test]
    fn the_slowest_thousandth_needs_a_thousand_flows() {
        let has = |flows: u64| {
            let flows = FlowSummary { finished: flows, ..FlowSummary::default() };
            ["FCT P99.9", "Slowdown P99.9", "FCT P99"]
                .map(|label| (flow_metric(label).unwrap().get)(&flows).is_some())
        };
        assert_eq!([has(999), has(1_000)], [[false, false, true], [true, true, true]]);
    }

    #[test]
    fn names_are_of_columns_and_unique() {
        assert_eq!(name("FCT P99.9", TimeNs), "fct_p999_ns");
        assert_eq!(name("Jain's index", Plain), "jains_index");
        assert_eq!(name("Drops, all packets", Count), "drops_all_packets");
        assert_eq!(name("Fabric link utilisation", Percent), "fabric_link_utilisation_ratio");
        let all = figures(&Summary::from_run(&RunResult::default()));
        let names: std::collections::BTreeSet<_> = all.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names.len(), FLOW_METRICS.len() + RUN_METRICS.len());
    }
}
