//! What a run observes, as plain data. The simulator fills these; writers, summaries, the report and the
//! documentation derive from them and from nothing else.
//!
//! Times are picoseconds since the start of the run. Links are directed, so that a link also names the egress
//! port that feeds it: there is one queue a link.

use std::collections::BTreeMap;

use crate::activities::{ActivityLabel, ActivityRecord};
use crate::counters::flow_counters;
use crate::critical::CriticalStep;
use crate::departures::Departures;
use crate::described::{described, kinds};
use crate::events::{EventKind, EventRecord};
use crate::figures::FlowFigures;
use crate::human::Quantity;
use crate::middlebox::MiddleboxTotals;
use crate::names::named_enum;
use crate::series::SeriesSample;
use crate::waits::WaitRecord;

kinds! {
    "string": Role, EndReason;
    "object": BalancingTotals;
}

/// Everything a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct RunResult {
    /// The run and how it ended.
    pub info: RunInfo,
    /// One record a flow (a message), finished or not. Empty where they went elsewhere while the run went on: see
    /// [`RunResult::figures`].
    pub flows: Vec<FlowRecord>,
    /// What is kept of flows whose records went elsewhere.
    pub streamed: Option<Box<FlowFigures>>,
    /// What was averaged over samples for each group; `groups[i]` is of `info.groups[i]`. Empty without samples.
    pub groups: Vec<GroupTotals>,
    /// Samples over time, in order of time.
    pub series: Vec<SeriesSample>,
    /// Things that happened, in order of time.
    pub events: Vec<EventRecord>,
    /// Events beyond the recording limit of the run, counted by kind but not kept.
    pub events_not_recorded: BTreeMap<EventKind, u64>,
    /// Hosts and switches; `nodes[i].node == i`.
    pub nodes: Vec<NodeInfo>,
    /// One record a directed link; `links[i].link == i`.
    pub links: Vec<LinkTotals>,
    /// One record a job: a graph of messages that completes as a whole; `jobs[i].job == i`.
    pub jobs: Vec<JobRecord>,
    /// What workloads call what hosts did.
    pub labels: Vec<ActivityLabel>,
    /// What hosts did, as far as their workloads have a word for it: by host, and by start at each.
    pub activities: Vec<ActivityRecord>,
    /// What each job waited for: the chain of computations and messages that its last one ended, by job and in order.
    pub critical: Vec<CriticalStep>,
    /// Where the slowest flows spent their time: by flow, the slowest first. Empty where nothing was sampled.
    pub waits: Vec<WaitRecord>,
    /// What load balancing in the switches did.
    pub balancing: BalancingTotals,
    /// One record an external switch with a middlebox.
    pub middleboxes: Vec<MiddleboxTotals>,
    /// Data packets as they left their hosts, where that is observed.
    pub departures: Departures,
}

impl RunResult {
    /// What is counted or measured of packets; `None` where there were none.
    pub(crate) fn of_packets<T>(&self, value: T) -> Option<T> {
        (self.info.fidelity == Fidelity::Packet).then_some(value)
    }
    /// The flows that the run is about.
    pub fn foreground(&self) -> impl Iterator<Item = &FlowRecord> {
        self.flows.iter().filter(|flow| self.info.role(flow.group) == Role::Foreground)
    }
    /// Until when the record of events of these kinds is complete, picoseconds; `None` if to the end.
    pub fn recorded_until_ps(&self, kinds: &[EventKind]) -> Option<u64> {
        let cut = kinds.iter().filter(|kind| self.events_not_recorded.get(kind).is_some_and(|&n| n > 0));
        let last = |kind| self.events.iter().rfind(|event| event.kind == kind).map_or(0, |e| e.time_ps);
        cut.map(|&kind| last(kind)).min()
    }
}

/// The run and how it ended.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// Name of the scenario (or of the variant of it, in a comparison).
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The scenario with every default filled in, as TOML.
    pub scenario_toml: String,
    /// Scheme names; [`FlowRecord::scheme`] is an index into it.
    pub schemes: Vec<String>,
    /// Workload group names; [`FlowRecord::group`] is an index into it.
    pub groups: Vec<String>,
    /// What each group is to the run; those not listed are foreground.
    pub roles: Vec<Role>,
    /// What moved through the network.
    pub fidelity: Fidelity,
    /// Where that was no packets, reasons why this run is outside of what the model was measured for; for people.
    pub outside: Vec<String>,
    /// Where that was no packets, how far it was from a run of packets of its beginning, if one was made.
    pub calibration: Option<Calibration>,
    /// How many ranks that are alike each recorded rank stands for, where they were run once.
    pub stands_for: Option<u32>,
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
    /// Packets crossing one link each, data and control.
    pub packet_hops: u64,
    /// Peak resident memory of the process, bytes; 0 where unknown.
    pub peak_rss_bytes: u64,
    /// Why the run ended.
    pub ended: EndReason,
    /// More on why, for people; may be empty. For a PFC deadlock: the cycle of ports.
    pub ended_detail: String,
}

/// How far a run of flows is from packets, measured on a run of packets of its beginning. Where one number was fitted on the
/// messages of its first half, errors are those of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Simulated time of the run of packets, picoseconds.
    pub prefix_ps: u64,
    /// Share of the capacity of links that is used, as fitted; `None` where nothing was fitted.
    pub efficiency: Option<f64>,
    /// Messages whose errors these are.
    pub held_out: u64,
    /// When as many messages were over with flows as with packets at the end of these, or the time of jobs where all was run,
    /// over the same with packets, less 1; `None` where a number was fitted.
    pub time_error: Option<f64>,
    /// Of these, the mean completion time with flows over that with packets, less 1.
    pub mean_error: f64,
    /// The same of the 99th percentile.
    pub p99_error: f64,
}

impl Calibration {
    fn label(&self) -> String {
        let Calibration { prefix_ps, held_out, .. } = self;
        let span = Quantity::TimeNs.show(*prefix_ps as f64 / 1e3);
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
    /// The run was cut short: what is missing says nothing about the schemes.
    pub fn partial(&self) -> bool {
        !matches!(self.ended, EndReason::Completed | EndReason::TimeLimit)
    }
    /// What the figures are to be taken for, where they are not those of packets.
    pub fn label(&self) -> String {
        match self.fidelity {
            Fidelity::Packet => String::new(),
            Fidelity::Flow => {
                let folded =
                    self.stands_for.map(|ranks| format!("; each rank stands for {ranks} that are alike"));
                let calibrated = match &self.calibration {
                    None => "uncalibrated".to_owned(),
                    Some(calibration) => calibration.label(),
                };
                format!("fidelity: flow, {calibrated}{}", folded.unwrap_or_default())
            }
        }
    }
    /// What a group is to the run.
    pub fn role(&self, group: u16) -> Role {
        self.roles.get(usize::from(group)).copied().unwrap_or_default()
    }
    /// Some groups are background.
    pub fn has_background(&self) -> bool {
        self.roles.contains(&Role::Background)
    }
    /// The digest as 16 hexadecimal digits.
    pub fn digest_hex(&self) -> String {
        format!("{:016x}", self.digest)
    }
}

named_enum! {
    /// What moves through the network of a run.
    #[derive(Default)]
    Fidelity {
        /// Packets, each of them.
        #[default] Packet = "packet",
        /// Flows: messages as fluids that share links.
        Flow = "flow",
    }
}

named_enum! {
    /// What a workload group is to the run.
    #[derive(Default)]
    Role {
        /// What is measured: the run ends when it is done.
        #[default] Foreground = "foreground",
        /// What is in its way: it is cut off when the foreground is done, and reported apart.
        Background = "background",
    }
}

named_enum! {
    /// Why a run ended.
    #[derive(Default)]
    EndReason {
        /// Every flow finished or failed.
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
        first { $( $first:ident: $first_type:ty, $_fu:literal = $first_meaning:literal $(, $_fo:literal)?; )* }
        second { $( $second:ident: $second_type:ty, $_su:literal = $second_meaning:literal $(, $_so:literal)?; )* }
    ) => {
        /// One flow: a message from a host to another.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
        pub struct FlowRecord {
            /// Its number in the canonical order of messages (by start, hosts and size), which does not depend on how a scenario
            /// orders its groups.
            pub flow: u32,
            /// Workload group, an index into [`RunInfo::groups`].
            pub group: u16,
            /// Scheme, an index into [`RunInfo::schemes`].
            pub scheme: u16,
            /// Job it belongs to, an index into [`RunResult::jobs`].
            pub job: Option<u32>,
            /// What its workload calls it, an index into [`RunResult::labels`].
            pub label: Option<u32>,
            /// Sending host.
            pub src_host: u32,
            /// Receiving host.
            pub dst_host: u32,
            /// Bytes of the message, headers not counted.
            pub size_bytes: u64,
            /// When it was posted.
            pub start_ps: u64,
            /// When the receiver had its last byte.
            pub finish_ps: Option<u64>,
            /// When the sender knew that.
            pub acked_ps: Option<u64>,
            /// Completion time on an idle network, from post to last byte.
            pub ideal_fct_ps: u64,
            /// The same to the acknowledgement of the last byte at the sender; `None` where nothing is acknowledged.
            pub ideal_acked_ps: Option<u64>,
            $( #[doc = $first_meaning] pub $first: $first_type, )*
            /// Largest out-of-order degree: how many packets a late one was behind the latest received.
            pub ooo_degree_max: u32,
            $( #[doc = $second_meaning] pub $second: $second_type, )*
            /// How it ended.
            pub status: FlowStatus,
        }
    };
}
flow_counters!(flow_record);

impl FlowRecord {
    /// Flow completion time: post to last byte at the receiver, picoseconds.
    pub fn fct_ps(&self) -> Option<u64> {
        Some(self.finish_ps? - self.start_ps)
    }
    /// Completion time over that on an idle network.
    pub fn slowdown(&self) -> Option<f64> {
        (self.ideal_fct_ps > 0).then_some(self.fct_ps()? as f64 / self.ideal_fct_ps as f64)
    }
    /// Time from post to the acknowledgement of the last byte at the sender, picoseconds.
    pub fn acked_fct_ps(&self) -> Option<u64> {
        Some(self.acked_ps? - self.start_ps)
    }
    /// That time over the same on an idle network.
    pub fn acked_slowdown(&self) -> Option<f64> {
        let ideal_ps = self.ideal_acked_ps.filter(|&ps| ps > 0)?;
        Some(self.acked_fct_ps()? as f64 / ideal_ps as f64)
    }
    /// Bytes of the message over its completion time, bits per second.
    pub fn goodput_bps(&self) -> Option<f64> {
        let fct_ps = self.fct_ps().filter(|&fct| fct > 0)?;
        Some(self.size_bytes as f64 * 8.0 * 1e12 / fct_ps as f64)
    }
}

/// What the queue pairs of a group did, averaged over samples and queue pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupTotals {
    /// Rate that the policy allowed while there was data to send or in flight; `None` without such a sample, or where
    /// policies set no rate.
    pub policy_rate_bps: Option<f64>,
    /// Bytes held at the receiver ahead of a gap, all packets taken as full; `None` without a sample.
    pub held_bytes: Option<f64>,
}

named_enum! {
    /// How a flow ended.
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
    /// Its number.
    pub job: u32,
    /// Its name.
    pub name: String,
    /// Workload group, an index into [`RunInfo::groups`].
    pub group: u16,
    /// When its first message or delay could start.
    pub start_ps: u64,
    /// When the iteration or round that it follows was over; `None` where it follows none.
    pub before_ps: Option<u64>,
    /// When its last one was over.
    pub finish_ps: Option<u64>,
    /// What it would take if messages took no time: its computations, delays, and starts. 0 in a run without computations.
    pub compute_ps: u64,
    /// Size of the collective it is, as nccl-tests count it; `None` where it is none.
    pub size_bytes: Option<u64>,
    /// What its bus bandwidth counts, likewise.
    pub bus_bytes: Option<u64>,
}

impl JobRecord {
    /// From when its time counts: its start, or the end of the iteration that it follows, whichever is later. Times of successive
    /// iterations then add up to the time of all, although ranks begin the next one at different instants.
    pub fn from_ps(&self) -> u64 {
        self.before_ps.map_or(self.start_ps, |before_ps| before_ps.max(self.start_ps))
    }
    /// How long it took: the period of iterations that overlap, which is shorter than the time from their start to their end.
    pub fn completion_ps(&self) -> Option<u64> {
        Some(self.finish_ps?.saturating_sub(self.from_ps()))
    }
    /// Time it took beyond what it would take if messages took none: communication that nothing hid.
    pub fn exposed_ps(&self) -> Option<u64> {
        Some(self.completion_ps()?.saturating_sub(self.compute_ps))
    }
    /// Its size over the time it took, bits per second.
    pub fn algorithm_bandwidth_bps(&self) -> Option<f64> {
        self.bandwidth_bps(self.size_bytes?)
    }
    /// What the busiest link must carry at least over the time it took, bits per second.
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
    /// Its number.
    pub node: u32,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
    /// Height of a switch, as topologies count: ToRs and leaves 0, aggregation switches and spines 1, cores 2. Hosts have 0, too.
    pub tier: u8,
    /// Pod (or site, or group) it belongs to.
    pub pod: Option<u32>,
}

named_enum! {
    /// What a node is.
    NodeKind {
        /// An end of the fabric.
        Host = "host",
        /// A switch.
        Switch = "switch",
        /// A middlebox on a link.
        Middlebox = "middlebox",
    }
}

described! {
    /// What load balancing in the switches did, all switches together. All zero where they hash.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
    pub struct BalancingTotals {
        /// Flowlets begun.
        pub flowlets: u64,
        /// Times a switch sent a flow another way than before.
        pub reroutes: u64,
        /// Packets switches held until those before them had come.
        pub held_packets: u64,
        /// Packets that overtook others and were not held, for want of a queue.
        pub unheld_packets: u64,
        /// Queues of held packets emptied because the awaited packet was overdue.
        pub late_flushes: u64,
        /// Packets of flows for which a switch's table had no room.
        pub untracked_packets: u64,
        /// Packets that switches sent each other.
        pub message_packets: u64,
    }
}

named_enum! {
    /// Where a link leads.
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
    /// Of a link between nodes, each given by whether it is a host, and its tier.
    pub fn between(from: (NodeKind, u8), to: (NodeKind, u8)) -> Self {
        let height = |(kind, tier): (NodeKind, u8)| (kind != NodeKind::Host, tier);
        match height(from).cmp(&height(to)) {
            std::cmp::Ordering::Less => Direction::Up,
            std::cmp::Ordering::Greater => Direction::Down,
            std::cmp::Ordering::Equal => Direction::Level,
        }
    }
}

/// A directed link with the egress port that feeds it, and what it carried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTotals {
    /// Its number.
    pub link: u32,
    /// Its name.
    pub name: String,
    /// Node it leaves.
    pub from_node: u32,
    /// Node it enters.
    pub to_node: u32,
    /// The higher tier of its two ends: 0 for links of hosts, 1 between ToR and aggregation, and so on.
    pub tier: u8,
    /// Where it leads.
    pub direction: Direction,
    /// Rate without faults, bits per second.
    pub rate_bps: u64,
    /// Bytes sent, headers and gaps included.
    pub tx_bytes: u64,
    /// Packets sent, data and control.
    pub tx_packets: u64,
    /// Time it was sending.
    pub busy_ps: u64,
    /// Packets dropped at its egress port or on it.
    pub dropped_packets: u64,
    /// Packets marked Congestion Experienced at its egress port.
    pub ecn_marked_packets: u64,
    /// Packets of which its egress port, for want of room, sent the header alone.
    pub trimmed_packets: u64,
    /// Times PFC paused it (XOFF from the far end).
    pub pfc_pauses: u64,
    /// Time it was paused, summed over priority classes.
    pub paused_ps: u64,
    /// Largest egress queue seen, bytes.
    pub max_queue_bytes: u64,
}

impl LinkTotals {
    /// Fraction of `simulated_ps` it was sending.
    pub fn utilisation(&self, simulated_ps: u64) -> f64 {
        if simulated_ps == 0 { 0.0 } else { self.busy_ps as f64 / simulated_ps as f64 }
    }
}
