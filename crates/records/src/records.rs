//! Records of a run, as plain data. The simulator fills them. Writers, summaries, the report and the documentation
//! derive from them only.
//!
//! Times are picoseconds since the start of the run. Links are directed, so a link also identifies the egress port
//! that feeds it: there is one queue a link.

use std::collections::BTreeMap;

use crate::activities::{ActivityLabel, ActivityRecord};
use crate::critical::CriticalStep;
use crate::departures::Departures;
use crate::described::{described, kinds};
use crate::events::{EventKind, EventRecord};
use crate::figures::FlowStats;
use crate::format::Quantity;
use crate::middlebox::MiddleboxTotals;
use crate::names::named_enum;
use crate::series::SeriesSample;
use crate::training_record::TrainingRecord;
use crate::waits::WaitRecord;

kinds! {
    "string": Role, EndReason;
    "object": BalancingTotals;
}

/// All results of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// The run and how it ended.
    pub info: RunInfo,
    /// One record a flow (a message), finished or not. Empty if records were streamed out during the run: see
    /// [`RunResult::figures`].
    pub flows: Vec<FlowRecord>,
    /// State of flows whose records were streamed out.
    pub streamed: Option<Box<FlowStats>>,
    /// Averages over samples for each group; `groups[i]` is of `info.groups[i]`. Empty without samples.
    pub groups: Vec<GroupTotals>,
    /// Samples over time, in order of time.
    pub series: Vec<SeriesSample>,
    /// Events, in order of time.
    pub events: Vec<EventRecord>,
    /// Events beyond the recording limit of the run, counted by kind but not kept.
    pub events_not_recorded: BTreeMap<EventKind, u64>,
    /// Hosts and switches; `nodes[i].node == i`.
    pub nodes: Vec<NodeInfo>,
    /// One record a directed link; `links[i].link == i`.
    pub links: Vec<LinkTotals>,
    /// One record a job: a graph of messages that completes as a whole; `jobs[i].job == i`.
    pub jobs: Vec<JobRecord>,
    /// Labels that workloads give to activities.
    pub labels: Vec<ActivityLabel>,
    /// Activities of hosts, as far as their workloads label them: by host, and by start at each host.
    pub activities: Vec<ActivityRecord>,
    /// Critical paths of jobs, by job and in order: chains of computations and messages, each of which ends with the
    /// job's last one.
    pub critical: Vec<CriticalStep>,
    /// Waits of the slowest flows: by flow, the slowest first. Empty without samples.
    pub waits: Vec<WaitRecord>,
    /// Counters of load balancing in the switches.
    pub balancing: BalancingTotals,
    /// One record an external switch with a middlebox.
    pub middleboxes: Vec<MiddleboxTotals>,
    /// Departures of data packets from their hosts, if they are observed.
    pub departures: Departures,
}

impl RunResult {
    /// Returns a value that is counted or measured on packets, or `None` if there were none.
    pub fn of_packets<T>(&self, value: T) -> Option<T> {
        (self.info.fidelity == Fidelity::Packet).then_some(value)
    }
    /// Returns a value that is measured on queues, or `None` if the run saw none.
    pub fn of_queues<T>(&self, value: T) -> Option<T> {
        self.of_packets(value).filter(|_| self.info.queues == QueueRecords::Kept)
    }
    /// Iterates over the flows that the run measures.
    pub fn foreground(&self) -> impl Iterator<Item = &FlowRecord> {
        self.flows.iter().filter(|flow| self.info.role(flow.group) == Role::Foreground)
    }
    /// Returns the time in picoseconds until which the record of events of these kinds is complete, or `None` if it
    /// is complete to the end.
    pub fn recorded_until_ps(&self, kinds: &[EventKind]) -> Option<u64> {
        let cut = kinds.iter().filter(|kind| self.events_not_recorded.get(kind).is_some_and(|&n| n > 0));
        let last = |kind| self.events.iter().rfind(|event| event.kind == kind).map_or(0, |e| e.time_ps);
        cut.map(|&kind| last(kind)).min()
    }
}

/// The run, and its end.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Name of the scenario, or of its variant in a comparison.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The scenario with every default filled in, as TOML.
    pub scenario_toml: String,
    /// Scheme names; [`FlowRecord::scheme`] is an index into it.
    pub schemes: Vec<String>,
    /// Names of the schemes whose senders do not slow down for marks of switches.
    pub ignoring_marks: Vec<String>,
    /// Parts of schemes that the calling program supplied.
    pub supplied: Vec<SuppliedPart>,
    /// Workload group names; [`FlowRecord::group`] is an index into it.
    pub groups: Vec<String>,
    /// Role of each group; groups without an entry are foreground.
    pub roles: Vec<Role>,
    /// Model of the traffic.
    pub fidelity: Fidelity,
    /// Records of the queues of ports.
    pub queues: QueueRecords,
    /// With flow fidelity: reasons why the run is outside of the range in which the model was measured, for people.
    pub model_limits_exceeded: Vec<String>,
    /// With flow fidelity: errors against a packet simulation of the beginning of the run, if one was made.
    pub calibration: Option<Calibration>,
    /// Number of identical ranks that each recorded rank represents, if identical ranks were simulated once.
    pub ranks_represented: Option<u32>,
    /// Recorded host that represents each host, if identical ranks were simulated once; otherwise empty.
    pub representative_of_host: Vec<u32>,
    /// Servers, if hosts are GPUs of servers.
    pub servers: Option<ServersInfo>,
    /// Faults of the scenario, in its order.
    pub faults: Vec<FaultInfo>,
    /// Warnings about the scenario that are known before the run, for people.
    pub warnings: Vec<String>,
    /// Digest of the event trace: equal for equal scenario and seed, on every machine.
    pub digest: u64,
    /// Simulated time at the end, picoseconds.
    pub simulated_ps: u64,
    /// Wall-clock time of the run phase, seconds.
    pub wall_s: f64,
    /// CPU time of the run phase, seconds.
    pub cpu_s: f64,
    /// Simulator events executed.
    pub events: u64,
    /// Packet-hops, data and control.
    pub packet_hops: u64,
    /// Peak resident memory of the process, bytes; 0 if unknown.
    pub peak_rss_bytes: u64,
    /// Reason why the run ended.
    pub ended: EndReason,
    /// Details of that reason, for people; may be empty. For a PFC deadlock: the cycle of ports.
    pub ended_detail: String,
}

/// A part of schemes that the calling program supplied, which no scenario can name.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SuppliedPart {
    /// Kind of the part: "picker", "control" or "policy".
    pub part: String,
    /// Name that the program gave it.
    pub name: String,
}

/// A fault of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultInfo {
    /// Kind and place: "link-down on leaf0-spine0".
    pub name: String,
    /// Time at which it begins, picoseconds.
    pub at_ps: u64,
}

/// Servers whose GPUs are the hosts of a run, all alike: GPU g of server s is host s * gpus + g.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServersInfo {
    /// Number of servers.
    pub servers: u32,
    /// GPUs of a server.
    pub gpus: u32,
    /// NICs of a server.
    pub nics: u32,
    /// Ports of a NIC.
    pub nic_ports: u32,
    /// Planes of the scale-out network; 1 if it is one network.
    pub planes: u32,
    /// Number of nodes after the hosts that are parts of servers: shared NICs, or PCIe links. Each server has as many.
    pub parts: u32,
    /// Number of GPUs that one scale-up network joins, if any does.
    pub domain: Option<u32>,
    /// Usable rate of the scale-up links of a GPU in one direction, in bits per second.
    pub scale_up_bps: u64,
}

/// Errors of a run with flow fidelity, measured against a packet simulation of the beginning of the run. If an
/// efficiency was fitted on the messages of the first half, the errors are those of the other messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Simulated time of the packet simulation, in picoseconds.
    pub prefix_ps: u64,
    /// Share of the capacity of links that is used, as fitted, or `None` if nothing was fitted.
    pub efficiency: Option<f64>,
    /// Number of messages on which the errors were measured.
    pub held_out: u64,
    /// Error of a time against packets: the time at which the same number of messages is over, or the time of jobs if
    /// all was run. It is the ratio less 1; `None` if an efficiency was fitted.
    pub time_error: Option<f64>,
    /// Error of the mean completion time of these messages against packets: the ratio less 1.
    pub mean_error: f64,
    /// Error of the 99th percentile of the completion time, likewise.
    pub p99_error: f64,
}

impl Calibration {
    fn label(&self) -> String {
        let Calibration { prefix_ps, held_out, .. } = self;
        let span = Quantity::TimeNs.format(*prefix_ps as f64 / 1e3);
        let [mean, p99, time] =
            [self.mean_error, self.p99_error, self.time_error.unwrap_or(0.0)].map(|error| 100.0 * error);
        match self.efficiency {
            Some(efficiency) => format!(
                "calibrated on {span} of packets (links used to {:.1} %), error on {held_out} messages held out: \
                 mean {mean:+.1} %, P99 {p99:+.1} %",
                100.0 * efficiency
            ),
            None => format!(
                "measured on {span} of packets, error on {held_out} messages: time {time:+.1} %, mean {mean:+.1} %, \
                 P99 {p99:+.1} %"
            ),
        }
    }
}

impl RunInfo {
    /// Returns true if the run was cut short. Its missing results then say nothing about the schemes.
    pub fn partial(&self) -> bool {
        !matches!(self.ended, EndReason::Completed | EndReason::TimeLimit)
    }
    /// Returns a description of the figures if they are not from packets.
    pub fn label(&self) -> String {
        match self.fidelity {
            Fidelity::Packet => String::new(),
            Fidelity::Flow => {
                let folded = self
                    .ranks_represented
                    .map(|ranks| format!("; each rank stands for {ranks} that are alike"));
                let calibrated = match &self.calibration {
                    None => "uncalibrated".to_owned(),
                    Some(calibration) => calibration.label(),
                };
                format!("fidelity: flow, {calibrated}{}", folded.unwrap_or_default())
            }
        }
    }
    /// Returns the number of ranks, and thus of messages, that each recorded one represents, itself included.
    pub fn times_recorded(&self) -> u32 {
        self.ranks_represented.unwrap_or(1)
    }
    /// Returns the recorded host that represents a host; the host itself if every rank is recorded.
    pub fn representative_of(&self, host: u32) -> u32 {
        self.representative_of_host.get(host as usize).copied().unwrap_or(host)
    }
    /// Returns the role of a group.
    pub fn role(&self, group: u16) -> Role {
        self.roles.get(usize::from(group)).copied().unwrap_or_default()
    }
    /// Returns true if some groups are background.
    pub fn has_background(&self) -> bool {
        self.roles.contains(&Role::Background)
    }
    /// Returns the digest as 16 hexadecimal digits.
    pub fn digest_hex(&self) -> String {
        format!("{:016x}", self.digest)
    }
}

/// Records of the queues of ports: their lengths, pauses and trimmed packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueRecords {
    /// The run saw its queues.
    #[default]
    Kept,
    /// The packets crossed networks whose queues nobody sees.
    Unknown,
}

named_enum! {
    /// Model of the traffic of a run.
    #[derive(Default, serde::Deserialize)]
    #[derive(schemars::JsonSchema)]
    Fidelity {
        /// Every packet is simulated.
        #[default] Packet = "packet",
        /// Messages are simulated as fluid flows that share links.
        Flow = "flow",
    }
}

named_enum! {
    /// Role of a workload group in the run.
    #[derive(Default, serde::Deserialize)]
    #[derive(schemars::JsonSchema)]
    Role {
        /// The group is measured. The run ends when the foreground is done.
        #[default] Foreground = "foreground",
        /// The group is competing traffic. It is cut off when the foreground is done, and reported separately.
        Background = "background",
    }
}

named_enum! {
    /// Reason why a run ended.
    #[derive(Default)]
    EndReason {
        /// Every flow finished, failed, or waits for one that failed.
        #[default] Completed = "completed",
        /// The scenario's time limit was reached.
        TimeLimit = "time_limit",
        /// The scenario's event limit was reached.
        EventLimit = "event_limit",
        /// The user interrupted it.
        Interrupted = "interrupted",
        /// Paused ports wait for each other in a cycle.
        PfcDeadlock = "pfc_deadlock",
        /// Ports stay paused far longer than any queue needs to drain.
        PfcStorm = "pfc_storm",
        /// Flows are unfinished but nothing will ever happen again.
        Stalled = "stalled",
    }
}

macro_rules! flow_record {
    (
        $( $_first:ident {
            $( $first:ident { $first_type:ty, $first_meaning:literal $(, $_fo:literal)? } )*
        } )*;
        $_second:ident {
            $( $second:ident { $second_type:ty, $second_meaning:literal $(, $_so:literal)? } )*
        }
    ) => {
        /// One flow: a message from a host to another.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
        pub struct FlowRecord {
            /// Number of the flow in the canonical order of messages (by start, hosts and size), which does not
            /// depend on the order of groups in a scenario.
            pub flow: u32,
            /// Workload group, an index into [`RunInfo::groups`].
            pub group: u16,
            /// Scheme, an index into [`RunInfo::schemes`].
            pub scheme: u16,
            /// Job of the flow, an index into [`RunResult::jobs`].
            pub job: Option<u32>,
            /// Label of the flow, an index into [`RunResult::labels`].
            pub label: Option<u32>,
            /// Sending host.
            pub src_host: u32,
            /// Receiving host.
            pub dst_host: u32,
            /// Bytes of the message, without headers.
            pub size_bytes: u64,
            /// Time at which the message was posted.
            pub start_ps: u64,
            /// Time at which the receiver had the last byte.
            pub finish_ps: Option<u64>,
            /// Time at which the sender had the acknowledgement of the last byte.
            pub acked_ps: Option<u64>,
            /// Completion time on an idle network, from post to last byte.
            pub ideal_fct_ps: u64,
            /// Ideal time to the acknowledgement of the last byte at the sender; `None` for flows without
            /// acknowledgements.
            pub ideal_acked_ps: Option<u64>,
            $( $( #[doc = $first_meaning] pub $first: $first_type, )* )*
            /// Largest out-of-order degree: the distance in packets of a late packet behind the latest received one.
            pub ooo_degree_max: u32,
            $( #[doc = $second_meaning] pub $second: $second_type, )*
            /// Final state of the flow.
            pub status: FlowStatus,
        }
    };
}
pathweave_units::flow_counters!(flow_record);

impl FlowRecord {
    /// Returns the flow completion time: post to last byte at the receiver, in picoseconds.
    pub fn fct_ps(&self) -> Option<u64> {
        Some(self.finish_ps? - self.start_ps)
    }
    /// Returns the completion time over that on an idle network.
    pub fn slowdown(&self) -> Option<f64> {
        (self.ideal_fct_ps > 0).then_some(self.fct_ps()? as f64 / self.ideal_fct_ps as f64)
    }
    /// Returns the time from post to the acknowledgement of the last byte at the sender, in picoseconds.
    pub fn acked_fct_ps(&self) -> Option<u64> {
        Some(self.acked_ps? - self.start_ps)
    }
    /// Returns the time to the last acknowledgement over the same on an idle network.
    pub fn acked_slowdown(&self) -> Option<f64> {
        let ideal_ps = self.ideal_acked_ps.filter(|&ps| ps > 0)?;
        Some(self.acked_fct_ps()? as f64 / ideal_ps as f64)
    }
    /// Returns the bytes of the message over its completion time, in bits per second.
    pub fn goodput_bps(&self) -> Option<f64> {
        let fct_ps = self.fct_ps().filter(|&fct| fct > 0)?;
        Some(self.size_bytes as f64 * 8.0 * 1e12 / fct_ps as f64)
    }
}

/// Averages over samples and queue pairs of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupTotals {
    /// Rate that the policy allowed while there was data to send or in flight. `None` without such a sample, or if
    /// policies set no rate.
    pub policy_rate_bps: Option<f64>,
    /// Bytes held at the receiver ahead of a gap, all packets counted as full; `None` without a sample.
    pub held_bytes: Option<f64>,
}

named_enum! {
    /// Final state of a flow.
    #[derive(Default)]
    FlowStatus {
        /// The run ended before the flow did.
        #[default] Unfinished = "unfinished",
        /// Every byte arrived.
        Finished = "finished",
        /// The sender gave up after too many retries.
        RetriesExceeded = "retries_exceeded",
        /// No path leads to the receiver.
        Unreachable = "unreachable",
        /// The receiver refused it (no receive posted, bad key, bad length).
        Refused = "refused",
    }
}

/// A job: messages and compute delays that depend on each other and complete as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Number of the job.
    pub job: u32,
    /// Name of the job.
    pub name: String,
    /// Workload group, an index into [`RunInfo::groups`].
    pub group: u16,
    /// Time at which the first message or delay of the job could start.
    pub start_ps: u64,
    /// End of the iteration or round that the job follows, or `None` if it follows none.
    pub before_ps: Option<u64>,
    /// Time at which the last message or delay of the job was over.
    pub finish_ps: Option<u64>,
    /// Time of the job if messages took no time: its computations, delays, and starts. 0 in a run without
    /// computations.
    pub compute_ps: u64,
    /// Size of the collective as nccl-tests count it, or `None` if the job is no collective.
    pub size_bytes: Option<u64>,
    /// Bytes from which the bus bandwidth is computed, likewise.
    pub bus_bytes: Option<u64>,
    /// Work of the job, if it is an iteration of training.
    pub training: Option<TrainingRecord>,
}

impl JobRecord {
    /// Returns the time from which the job counts: its start, or the end of the iteration that it follows, whichever
    /// is later. The times of successive iterations then add up to the total, although ranks begin the next one at
    /// different instants.
    pub fn from_ps(&self) -> u64 {
        self.before_ps.map_or(self.start_ps, |before_ps| before_ps.max(self.start_ps))
    }
    /// Returns the duration of the job. For overlapping iterations this is their period, which is shorter than the
    /// time from start to end.
    pub fn completion_ps(&self) -> Option<u64> {
        Some(self.finish_ps?.saturating_sub(self.from_ps()))
    }
    /// Returns the time of the job beyond that without communication: exposed communication.
    pub fn exposed_ps(&self) -> Option<u64> {
        Some(self.completion_ps()?.saturating_sub(self.compute_ps))
    }
    /// Returns the size of the collective over the duration, in bits per second.
    pub fn algorithm_bandwidth_bps(&self) -> Option<f64> {
        self.bandwidth_bps(self.size_bytes?)
    }
    /// Returns the bytes that the busiest link must carry at least, over the duration, in bits per second.
    pub fn bus_bandwidth_bps(&self) -> Option<f64> {
        self.bandwidth_bps(self.bus_bytes?)
    }
    fn bandwidth_bps(&self, bytes: u64) -> Option<f64> {
        let ps = self.completion_ps().filter(|&ps| ps > 0)?;
        Some(bytes as f64 * 8e12 / ps as f64)
    }
}

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Number of the node.
    pub node: u32,
    /// Name of the node.
    pub name: String,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Height of a switch in the topology: ToRs and leaves 0, aggregation switches and spines 1, cores 2. Hosts have
    /// 0, too.
    pub tier: u8,
    /// Pod (or site, or group) of the node.
    pub pod: Option<u32>,
}

named_enum! {
    /// Kind of a node.
    NodeKind {
        /// A host, at an end of the fabric.
        Host = "host",
        /// A switch.
        Switch = "switch",
        /// A middlebox on a link.
        Middlebox = "middlebox",
    }
}

described! {
    /// Counters of load balancing in the switches, summed over all switches. All zero if switches hash.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
    pub struct BalancingTotals {
        /// Flowlets begun.
        pub flowlets: u64,
        /// Number of times that a switch changed the path of a flow, or sent a packet on a detour.
        pub reroutes: u64,
        /// Packets that switches held until the packets before them had arrived.
        pub held_packets: u64,
        /// Packets that overtook others and were not held, because no queue was free.
        pub unheld_packets: u64,
        /// Queues of held packets that were flushed because the awaited packet was overdue.
        pub late_flushes: u64,
        /// Packets of flows for which a switch's table had no room.
        pub untracked_packets: u64,
        /// Packets sent between switches.
        pub message_packets: u64,
    }
}

named_enum! {
    /// Direction of a link.
    #[derive(Default)]
    Direction {
        /// Away from the hosts.
        Up = "up",
        /// Towards the hosts.
        Down = "down",
        /// Between two switches of one tier.
        #[default]
        Level = "level",
    }
}

impl Direction {
    /// Returns the direction of a link between two nodes, given by kind and tier.
    pub fn between(from: (NodeKind, u8), to: (NodeKind, u8)) -> Self {
        let height = |(kind, tier): (NodeKind, u8)| (kind != NodeKind::Host, tier);
        match height(from).cmp(&height(to)) {
            std::cmp::Ordering::Less => Direction::Up,
            std::cmp::Ordering::Greater => Direction::Down,
            std::cmp::Ordering::Equal => Direction::Level,
        }
    }
}

/// A directed link with the egress port that feeds it, and its totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTotals {
    /// Number of the link.
    pub link: u32,
    /// Name of the link.
    pub name: String,
    /// Node that the link leaves.
    pub from_node: u32,
    /// Node that the link enters.
    pub to_node: u32,
    /// The higher tier of its two ends: 0 for links of hosts, 1 between ToR and aggregation, and so on.
    pub tier: u8,
    /// Direction of the link.
    pub direction: Direction,
    /// Rate without faults, bits per second.
    pub rate_bps: u64,
    /// Propagation delay without faults, with the latency of the switch that the link leaves.
    pub delay_ps: u64,
    /// Bytes sent, headers and gaps included.
    pub tx_bytes: u64,
    /// Packets sent, data and control.
    pub tx_packets: u64,
    /// Time for which the link was sending.
    pub busy_ps: u64,
    /// Packets dropped at its egress port or on it.
    pub dropped_packets: u64,
    /// Packets marked Congestion Experienced at its egress port.
    pub ecn_marked_packets: u64,
    /// Packets of which the egress port sent only the header, for want of room.
    pub trimmed_packets: u64,
    /// Number of PFC pauses (XOFF from the far end).
    pub pfc_pauses: u64,
    /// Time for which the link was paused, summed over priority classes.
    pub paused_ps: u64,
    /// Largest egress queue, bytes.
    pub max_queue_bytes: u64,
}

impl LinkTotals {
    /// Returns the fraction of `simulated_ps` for which the link was sending.
    pub fn utilisation(&self, simulated_ps: u64) -> f64 {
        if simulated_ps == 0 { 0.0 } else { self.busy_ps as f64 / simulated_ps as f64 }
    }
}
