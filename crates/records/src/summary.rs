//! Figures of a run, computed from its records only. `summary.json` is their serialization.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::critical::{CriticalPathSummary, critical_paths};
use crate::departures::Departures;
use crate::described::{described, kinds};
use crate::exposure::{IterationSummary, iterations};
use crate::figures::{Counters, Finished, FlowStats, GroupStats, degrees, values};
use crate::format::ns;
use crate::job_time::{GroupJobs, JobTime, foreground_jobs, job_time_ns, longest_jobs};
use crate::latency;
use crate::middlebox::MiddleboxTotals;
use crate::records::{EndReason, Fidelity, JobRecord, Role, RunResult, SuppliedPart};
use crate::stats::{Distribution, jain_index};
use crate::summary_fabric::FabricSummary;
use crate::training::{TrainingSummary, training};
use crate::warnings;

kinds! {
    "string": Fidelity;
    "object": RunSummary, FlowSummary, JobSummary;
    "object or null": Option<FlowSummary>;
}

/// Value that identifies a `summary.json` of pathweave.
pub const SCHEMA_NAME: &str = "pathweave.summary";
/// Version of the columns. It is incremented when a column is renamed, removed or changes its meaning. Since version
/// 2 the time of an iteration is its period.
pub const SCHEMA_VERSION: u32 = 2;

described! {
    /// Figures of a run.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct Summary {
        /// "pathweave.summary".
        pub schema: &'static str,
        /// Version, incremented when a field is renamed, removed or changes its meaning.
        pub schema_version: u32,
        /// The run, and its end.
        pub run: RunSummary,
        /// Figures of all flows.
        pub overall: FlowSummary,
        /// Figures of the flows of foreground groups; null if every group is foreground.
        pub foreground: Option<FlowSummary>,
        /// Figures of each workload group, in order of names.
        pub groups: Vec<GroupSummary>,
        /// Links and queues.
        pub fabric: FabricSummary,
        /// Jobs of foreground groups.
        pub jobs: JobSummary,
        /// Time by kind of the longest 64 of these jobs, by start; only jobs whose workload describes the activities
        /// of ranks.
        pub iterations: Vec<IterationSummary>,
        /// Training by workload group; empty if nothing trains.
        pub training: Vec<TrainingSummary>,
        /// Critical path of each of these jobs, in the same order.
        pub critical_paths: Vec<CriticalPathSummary>,
        /// Counters of each external switch with a middlebox.
        pub middleboxes: Vec<MiddleboxTotals>,
        /// Departures of data packets from their hosts, with `observe.departures`.
        pub departures: Departures,
    }
}

described! {
    /// The run, and its end.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct RunSummary {
        /// Name of the scenario, or of the variant in a comparison.
        pub name: String,
        /// Version of the program.
        pub version: String,
        /// Seed of every random stream.
        pub seed: u64,
        /// Model of the traffic: "packet", or "flow" for messages as fluids.
        pub fidelity: Fidelity,
        /// Description of the model behind the figures; empty for packets.
        pub label: String,
        /// With "flow": reasons why the run is outside of the range in which the model was measured; empty if there
        /// are none.
        pub outside: Vec<String>,
        /// Warnings about the figures, for instance that latency dominates the time; empty if there are none.
        pub warnings: Vec<String>,
        /// Share of propagation, hops and notifications, as opposed to bytes and computation, in the critical paths
        /// of jobs.
        pub latency_ratio: Option<f64>,
        /// With "flow" and a packet simulation of the beginning of the run, made if the run may be outside of the
        /// model: error of the time at which the same number of messages is over, or of the time of jobs if that is
        /// all of the run; 0.01 for 1 %.
        pub time_error: Option<f64>,
        /// With "flow" and a packet simulation of the beginning: error of the mean completion time of the measured
        /// messages.
        pub mean_error: Option<f64>,
        /// Error of the 99th percentile of the completion time, likewise.
        pub p99_error: Option<f64>,
        /// Number of identical ranks that each recorded rank represents; null if each rank is recorded.
        pub stands_for: Option<u64>,
        /// Names of the schemes whose senders do not slow down for marks of switches.
        pub ignoring_marks: Vec<String>,
        /// Parts of schemes that the program supplied that called the simulator, each with `part` ("picker", "control" or
        /// "policy") and `name`; empty if there are none.
        pub supplied: Vec<SuppliedPart>,
        /// Digest of the packets that reach hosts or are lost, in order, 16 hexadecimal digits: equal for equal scenario and seed.
        pub digest: String,
        /// Reason why the run ended; the values are listed below.
        pub ended: EndReason,
        /// Details of that reason, for people; may be empty.
        pub ended_detail: String,
        /// True if the run was cut short. Its missing results then say nothing about the schemes.
        pub partial: bool,
        /// Simulated time at the end.
        pub simulated_ns: f64,
        /// Wall-clock time of the run phase.
        pub wall_s: f64,
        /// CPU time of the run phase.
        pub cpu_s: f64,
        /// Simulator events executed.
        pub events: u64,
        /// Packet-hops, data and control; null if there were no packets.
        pub packet_hops: Option<u64>,
        /// Ratio of `packet_hops` to `cpu_s`; 0 if unknown.
        pub packet_hops_per_cpu_s: f64,
        /// Ratio of `events` to `packet_hops`.
        pub events_per_packet_hop: f64,
        /// Peak resident memory of the process; 0 if unknown.
        pub peak_rss_bytes: u64,
    }
}

described! {
    /// Figures of the flows of a workload group.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct GroupSummary {
        /// Groups only: name of the group.
        pub group: String,
        /// Groups only: "foreground" or "background".
        pub role: Role,
        /// Groups only: names of the schemes that carried its flows.
        pub schemes: Vec<String>,
        /// Groups only: rate that policies allowed while there was data to send or in flight, mean over samples and
        /// queue pairs.
        pub policy_rate_bps: Option<f64>,
        /// Groups only: bytes that a receiver's queue pair held ahead of a gap, mean over samples and queue pairs.
        pub held_bytes: Option<f64>,
    }
    and pub flows: FlowSummary
}

macro_rules! flow_summary {
    (
        $( $_first:ident {
            $( $first:ident { $_ft:tt, $first_meaning:literal $(, $_fo:literal)? } )*
        } )*;
        $_second:ident {
            $( $second:ident { $_st:tt, $second_meaning:literal $(, $_so:literal)? } )*
        }
    ) => {
        described! {
            /// Figures of a set of flows. Times, slowdown and goodput are of finished flows; counts are of all flows.
            /// Counts of packets are null if there were none.
            #[derive(Clone, Debug, Default, PartialEq, Serialize)]
            pub struct FlowSummary {
                /// Number of flows.
                pub count: u64,
                /// Number of flows that finished.
                pub finished: u64,
                /// Number of flows that were unfinished at the end of the run.
                pub unfinished: u64,
                /// Number of flows that ended in an error.
                pub failed: u64,
                /// Payload bytes of finished flows.
                pub finished_bytes: u64,
                /// Flow completion time: from post to last byte at the receiver.
                pub fct_ns: Distribution,
                /// The same on an idle network, over the paths that the scheme may use.
                pub ideal_fct_ns: Distribution,
                /// Completion time over that on an idle network.
                pub slowdown: Distribution,
                /// Time from post to the acknowledgement of the last byte at the sender, for flows with
                /// acknowledgements.
                pub acked_fct_ns: Distribution,
                /// Ratio of that time to the same on an idle network, which includes the acknowledgement.
                pub acked_slowdown: Distribution,
                /// Ratio of `finished_bytes` to the time from the first start to the last finish among finished
                /// flows.
                pub aggregate_goodput_bps: f64,
                /// Mean over flows of the ratio of size to completion time.
                pub mean_goodput_bps: f64,
                /// Jain's fairness index of the goodput of each flow.
                pub jain_index: Option<f64>,
                $( $( #[doc = $first_meaning] pub $first: Option<u64>, )* )*
                /// Largest out-of-order degree of each flow, finished or not.
                pub ooo_degree_packets: Distribution,
                $( #[doc = $second_meaning] pub $second: Option<u64>, )*
                /// Finished flows by size; bins without flows are left out.
                pub by_size: Vec<SizeBin>,
            }
        }

        impl FlowSummary {
            /// Adds the counters of flows.
            fn add_counters(&mut self, flows: &Counters) {
                $( $( *self.$first.get_or_insert(0) += flows.$first; )* )*
                $( *self.$second.get_or_insert(0) += flows.$second; )*
            }

            /// Creates figures without flows: counters are 0, or null if there are no packets.
            fn without_counts(of_packets: bool) -> Self {
                let nothing = of_packets.then_some(0);
                FlowSummary {
                    $( $( $first: nothing, )* )*
                    $( $second: nothing, )*
                    ..FlowSummary::default()
                }
            }
        }
    };
}
pathweave_units::flow_counters!(flow_summary);

described! {
    /// Finished flows of similar size.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct SizeBin {
        /// Lower bound of the sizes, exclusive; the first bin includes 0.
        pub above_bytes: u64,
        /// Upper bound of the sizes, inclusive.
        pub up_to_bytes: u64,
        /// Flow completion time.
        pub fct_ns: Distribution,
        /// Slowdown.
        pub slowdown: Distribution,
    }
}

described! {
    /// Jobs of foreground groups: graphs of messages that complete as a whole.
    #[derive(Clone, Debug, Default, PartialEq, Serialize)]
    pub struct JobSummary {
        /// Number of jobs.
        pub count: u64,
        /// Number of jobs that were unfinished at the end of the run.
        pub unfinished: u64,
        /// Time of all jobs, by which runs are compared: that of their workload group, or the geometric mean of several
        /// groups; null without jobs, or if one did not finish.
        pub time_ns: Option<f64>,
        /// Time of the jobs of each workload group that has any.
        pub by_group: Vec<GroupJobs>,
        /// Time of each of the longest 64 jobs, in order; unfinished ones count as longest.
        pub longest: Vec<JobTime>,
        /// Completion time of finished jobs.
        pub completion_ns: Distribution,
        /// Exposed communication of finished jobs that compute: their completion time less their time if messages
        /// took no time.
        pub exposed_ns: Distribution,
        /// Algorithm bandwidth of finished collectives, as nccl-tests define it.
        pub algorithm_bandwidth_bps: Distribution,
        /// Bus bandwidth of finished collectives, likewise.
        pub bus_bandwidth_bps: Distribution,
    }
}

impl Summary {
    /// Computes the figures of `run`.
    pub fn from_run(run: &RunResult) -> Self {
        let info = &run.info;
        let iterations = iterations(run);
        let figures = run.figures();
        let latency_ratio = latency::of_jobs(run, &figures);
        let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        Summary {
            schema: SCHEMA_NAME,
            schema_version: SCHEMA_VERSION,
            run: RunSummary {
                name: info.name.clone(),
                version: info.version.clone(),
                seed: info.seed,
                fidelity: info.fidelity,
                label: info.label(),
                outside: info.model_limits_exceeded.clone(),
                warnings: warnings::of_run(run, latency_ratio),
                latency_ratio,
                time_error: info.calibration.and_then(|calibration| calibration.time_error),
                mean_error: info.calibration.map(|calibration| calibration.mean_error),
                p99_error: info.calibration.map(|calibration| calibration.p99_error),
                stands_for: info.ranks_represented.map(u64::from),
                ignoring_marks: info.ignoring_marks.clone(),
                supplied: info.supplied.clone(),
                digest: info.digest_hex(),
                ended: info.ended,
                ended_detail: info.ended_detail.clone(),
                partial: info.partial(),
                simulated_ns: ns(info.simulated_ps),
                wall_s: info.wall_s,
                cpu_s: info.cpu_s,
                events: info.events,
                packet_hops: run.of_packets(info.packet_hops),
                packet_hops_per_cpu_s: over(info.packet_hops as f64, info.cpu_s),
                events_per_packet_hop: over(info.events as f64, info.packet_hops as f64),
                peak_rss_bytes: info.peak_rss_bytes,
            },
            overall: FlowSummary::of(run, &figures.all()),
            foreground: info.has_background().then(|| FlowSummary::of(run, &figures.foreground())),
            groups: group_summaries(run, &figures),
            fabric: FabricSummary::from_run(run),
            jobs: job_summary(run),
            critical_paths: critical_paths(run, &iterations),
            training: training(run, &iterations),
            iterations,
            middleboxes: run.middleboxes.clone(),
            departures: run.departures.clone(),
        }
    }
    /// Returns the figures of the measured flows: all, or those of the foreground if there is a background.
    pub fn measured(&self) -> &FlowSummary {
        self.foreground.as_ref().unwrap_or(&self.overall)
    }

    /// Returns the retransmission timeouts of the measured flows, all of them spurious because no packet was lost.
    /// Returns `None` if the fabric dropped or trimmed a packet, or if there were no packets.
    pub fn spurious_timeouts(&self) -> Option<u64> {
        let lost = self.fabric.dropped_packets? + self.fabric.trimmed_packets?;
        self.measured().timeouts.filter(|_| lost == 0)
    }
}

/// Returns the figures of each group, including those without flows.
fn group_summaries(run: &RunResult, figures: &FlowStats) -> Vec<GroupSummary> {
    let of = |(group, name): (u16, &String)| {
        let flows = figures.group(group);
        let used = flows.iter().flat_map(|flows| &flows.schemes);
        GroupSummary {
            group: name.clone(),
            role: run.info.role(group),
            policy_rate_bps: run.groups.get(usize::from(group)).and_then(|totals| totals.policy_rate_bps),
            held_bytes: run.groups.get(usize::from(group)).and_then(|totals| totals.held_bytes),
            schemes: used.map(|&s| run.info.schemes[usize::from(s)].clone()).collect(),
            flows: FlowSummary::of(run, &flows),
        }
    };
    (0..).zip(&run.info.groups).map(of).collect()
}

fn job_summary(run: &RunResult) -> JobSummary {
    let jobs = || run.jobs.iter().filter(|job| run.info.role(job.group) == Role::Foreground);
    let mut completion: Vec<f64> = jobs().filter_map(|j| j.completion_ps().map(ns)).collect();
    let computing = || jobs().filter(|j| j.compute_ps > 0);
    let of = |value: fn(&JobRecord) -> Option<f64>| {
        Distribution::from_values(&mut jobs().filter_map(value).collect::<Vec<_>>())
    };
    let count = jobs().count();
    let by_group = foreground_jobs(run);
    JobSummary {
        count: count as u64,
        unfinished: (count - completion.len()) as u64,
        time_ns: job_time_ns(&by_group),
        by_group,
        longest: longest_jobs(run),
        completion_ns: Distribution::from_values(&mut completion),
        exposed_ns: Distribution::from_values(
            &mut computing().filter_map(|j| j.exposed_ps().map(ns)).collect::<Vec<_>>(),
        ),
        algorithm_bandwidth_bps: of(JobRecord::algorithm_bandwidth_bps),
        bus_bandwidth_bps: of(JobRecord::bus_bandwidth_bps),
    }
}

impl FlowSummary {
    /// Computes the figures of the flows of some groups.
    fn of(run: &RunResult, flows: &[&GroupStats]) -> Self {
        let of_packets = run.of_packets(()).is_some();
        let mut summary = FlowSummary::without_counts(of_packets);
        // Each recorded message represents as many identical ones. Their number does not change distributions.
        let times = u64::from(run.info.times_recorded());
        for group in flows {
            summary.count += times * group.count;
            summary.finished += times * group.finished.len() as u64;
            summary.unfinished += times * group.unfinished;
            summary.failed += times * group.failed;
            summary.finished_bytes += times * group.finished_bytes;
            if of_packets && group.count > 0 {
                summary.add_counters(&group.counters);
            }
        }
        // One list of values at a time, to bound the memory.
        let of = |value| Distribution::from_values(&mut values(flows, value)).repeated(times);
        summary.fct_ns = of(Finished::fct_ns);
        summary.ideal_fct_ns = of(|flow| Some(ns(flow.ideal_fct_ps)));
        summary.slowdown = of(Finished::slowdown);
        summary.acked_fct_ns = of(Finished::acked_fct_ns);
        summary.acked_slowdown = of(Finished::acked_slowdown);
        if of_packets {
            summary.ooo_degree_packets = Distribution::from_values(&mut degrees(flows));
        }
        let mut goodput = values(flows, Finished::goodput_bps);
        summary.mean_goodput_bps = Distribution::from_values(&mut goodput).mean;
        summary.jain_index = jain_index(&goodput);
        let first_start = flows.iter().filter_map(|group| group.first_start_ps).min();
        let last_finish = flows.iter().map(|group| group.last_finish_ps).max().unwrap_or(0);
        if let Some(span_ps) =
            first_start.and_then(|first| last_finish.checked_sub(first)).filter(|&ps| ps > 0)
        {
            summary.aggregate_goodput_bps = summary.finished_bytes as f64 * 8.0 * 1e12 / span_ps as f64;
        }
        summary.by_size = by_size(flows, times);
        summary
    }
}

/// Returns the size bin of a message. Upper edges are 1, 3, 10, 30, ... kB up to 100 GB; the first bin starts at 0
/// and includes it.
fn bin_of(size_bytes: u64) -> (u64, u64) {
    let (mut above, mut up_to) = (0, 1_000);
    let mut factors = [3, 10].into_iter().cycle();
    let mut decade = 1_000;
    while size_bytes > up_to {
        above = up_to;
        let factor = factors.next().expect("a cycle does not end");
        up_to = decade * factor;
        if factor == 10 {
            decade *= 10;
        }
    }
    (above, up_to)
}

/// Returns the finished flows by size, each of them `times` times.
fn by_size(groups: &[&GroupStats], times: u64) -> Vec<SizeBin> {
    let of = |value: fn(&Finished) -> Option<f64>| {
        let mut bins: BTreeMap<(u64, u64), Vec<f64>> = BTreeMap::new();
        for flow in groups.iter().flat_map(|group| &group.finished) {
            bins.entry(bin_of(flow.size_bytes)).or_default().extend(value(flow));
        }
        bins.into_iter()
            .map(|(edges, mut values)| (edges, Distribution::from_values(&mut values).repeated(times)))
    };
    let fcts: Vec<_> = of(Finished::fct_ns).collect();
    let bin = |(((above_bytes, up_to_bytes), fct_ns), (_, slowdown))| SizeBin {
        above_bytes,
        up_to_bytes,
        fct_ns,
        slowdown,
    };
    fcts.into_iter().zip(of(Finished::slowdown)).map(bin).collect()
}
