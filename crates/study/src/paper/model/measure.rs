//! What a figure is computed from.

use serde::Deserialize;

/// A quantity over time: a sum of what was sampled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Its name.
    pub name: String,
    /// What is added up.
    pub terms: Vec<Term>,
}

/// One summand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Payload rate received by this host, bits per second.
    pub host: Option<String>,
    /// Rate on the wire of this directed link ("leaf0>spine0"), bits per second.
    pub link: Option<String>,
    /// Bytes queued for this directed link.
    pub queue: Option<String>,
    /// Rate the policy of this flow allows, bits per second; the scenario follows the flow.
    pub flow_rate: Option<u32>,
    /// Bytes the receiver of this flow holds ahead of a gap; the scenario follows the flow.
    pub flow_held: Option<u32>,
    /// Multiplies the sample.
    #[serde(default = "one")]
    pub factor: f64,
    /// Of a `link`: only the payload counts, if all packets are full.
    #[serde(default)]
    pub payload: bool,
}

fn one() -> f64 {
    1.0
}

/// What a figure is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// Completion time of each flow: until its last byte is delivered.
    Fct,
    /// Time until the sender has the last acknowledgement, of each flow.
    AckedFct,
    /// Bytes over completion time of each flow.
    Throughput,
    /// Completion time over that of an idle network, of each flow.
    Slowdown,
    /// What was delivered until the last flow finished, for each host that sends.
    HostThroughput,
    /// Largest out-of-order degree of each flow, packets.
    OooDegree,
    /// Packets that arrived behind a later one, of each flow.
    OooPackets,
    /// The same as a share of the packets sent, in all.
    OooShare,
    /// Congestion notifications that reached the sender, of each flow.
    Cnps,
    /// Bytes on the wire of copies and notices over payload, in all.
    Overhead,
    /// Copies of packets in flight, in all.
    Copies,
    /// Notices of a change of path, in all.
    Notices,
    /// Rate the policies of a group allowed, mean over samples.
    PolicyRate,
    /// Bytes a receiver of a group held ahead of a gap, mean over samples.
    Held,
    /// Completion time of each job.
    JobTime,
    /// Largest egress queue of each link.
    Queue,
    /// Acknowledgements and other control packets: share of the bytes hosts send.
    AckShare,
    /// Times PFC paused a link, in all.
    Pauses,
    /// Answers that external switches gave in place of the far end.
    Answers,
    /// Flows that external switches found congested and kept apart.
    IsolatedFlows,
    /// Packets dropped, in all.
    Drops,
    /// Packets dropped, as a share of the data packets sent.
    LossShare,
    /// Packets sent again, in all.
    Retransmissions,
    /// Flows that did not finish.
    Unfinished,
    /// Times between packets of a message as they leave, to the next bound of six a decade; the scenario observes
    /// departures.
    Gaps,
    /// Share of them that are longer than `from_us`.
    GapShare,
    /// Share of the bytes that took paths of `links` links, over the share under uniform spraying; the scenario observes
    /// departures.
    LengthShare,
    /// A trace, over a span of time.
    Trace,
    /// Bytes of a connection's policy in memory.
    StateBytes,
}

/// One number from many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stat {
    /// Arithmetic mean.
    #[default]
    Mean,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Sum.
    Sum,
    /// 1st percentile: the P99 tail of what should be large.
    P1,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Largest over mean.
    MaxOverMean,
    /// Jain's fairness index.
    Jain,
    /// Longest time a trace is below `below` without a break, nanoseconds.
    TimeBelow,
}

/// A figure of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Its name; plots and claims refer to it.
    pub name: String,
    /// What it is computed from.
    pub of: Of,
    /// How.
    #[serde(default)]
    pub stat: Stat,
    /// Only flows and jobs of this workload group.
    pub group: Option<String>,
    /// Only flows of more bytes than this.
    pub larger_than_bytes: Option<u64>,
    /// For traces: which one.
    pub trace: Option<String>,
    /// For traces: from this time, microseconds. For `gap-share`: longer than this.
    #[serde(default)]
    pub from_us: f64,
    /// For `length-share`: links from host to host.
    pub links: Option<u32>,
    /// For traces: to this time, microseconds.
    pub to_us: Option<f64>,
    /// For `time-below`: the level, in the unit of the trace.
    #[serde(default)]
    pub below: f64,
}
