//! Schema of measures and traces: the quantities that a figure takes from a run.

use pathweave_records::Quantity;
use serde::Deserialize;

/// Quantity over time: a weighted sum of sampled series.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Name of the trace. Measures refer to it.
    pub name: String,
    /// Summands of the trace.
    pub terms: Vec<Term>,
}

impl Trace {
    /// Returns the quantity of its samples: bytes of queues and receivers, or rates. Scaled ones are plain numbers.
    pub(crate) fn quantity(&self) -> Quantity {
        let is_bytes = |term: &Term| term.queue.is_some() || term.flow_held.is_some();
        if self.terms.iter().any(|term| term.factor.abs() != 1.0) {
            return Quantity::Plain;
        }
        if self.terms.iter().any(is_bytes) { Quantity::Bytes } else { Quantity::RateBps }
    }
}

/// Summand of a trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Host whose received payload rate is sampled, in bits per second.
    pub host: Option<String>,
    /// Directed link ("leaf0>spine0") whose rate is sampled, headers included, in bits per second.
    pub link: Option<String>,
    /// Directed link whose queue length is sampled, in bytes.
    pub queue: Option<String>,
    /// Flow whose rate allowed by the policy is sampled, in bits per second. The scenario must follow the flow.
    pub flow_rate: Option<u32>,
    /// Flow whose receiver's bytes held ahead of a gap are sampled. The scenario must follow the flow.
    pub flow_held: Option<u32>,
    /// Factor by which the sample is multiplied. Default: 1.
    #[serde(default = "one")]
    pub factor: f64,
    /// For a `link`, counts the payload only, on the assumption that all packets are full.
    #[serde(default)]
    pub payload: bool,
}

fn one() -> f64 {
    1.0
}

/// Metric from which a measure is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Completion time of each flow, until its last byte is delivered.
    Fct,
    /// Time of each flow until the sender has its last acknowledgement.
    AckedFct,
    /// Bytes over completion time, of each flow.
    Throughput,
    /// Completion time over the completion time in an idle network, of each flow.
    Slowdown,
    /// Payload delivered over the time from the first post to the last delivery, for each host that sends.
    HostThroughput,
    /// Largest out-of-order degree of each flow, in packets.
    OooDegree,
    /// Packets of each flow that arrived after a packet with a higher sequence number.
    OooPackets,
    /// Packets that arrived out of order, as a share of all packets sent.
    OooShare,
    /// Congestion notification packets that reached the sender, of each flow.
    Cnps,
    /// Bytes of copies and notices on the links, over payload, of all flows together.
    Overhead,
    /// Number of copies made of packets in flight, over all flows.
    Copies,
    /// Number of notices of a change of path, over all flows.
    Notices,
    /// Rate that the policies of a group allowed, as a mean over samples.
    PolicyRate,
    /// Bytes that a receiver of a group held ahead of a gap, as a mean over samples.
    Held,
    /// Completion time of each job.
    JobTime,
    /// Time of all jobs of a run, by which runs are compared: until the last message of a workload group is there, and
    /// the geometric mean of several groups.
    TimeOfJobs,
    /// Largest egress queue of each link.
    Queue,
    /// Share of the bytes sent by hosts that are acknowledgements and other control packets.
    AckShare,
    /// Number of times that PFC paused a link, over all links.
    Pauses,
    /// Answers that external switches sent in place of the far end.
    Answers,
    /// Flows of which external switches put a packet into a controlled queue.
    IsolatedFlows,
    /// Their number as a share of the flows of the group.
    IsolatedShare,
    /// Packets dropped, over all links.
    Drops,
    /// Packets dropped, as a share of the data packets sent.
    LossShare,
    /// Packets retransmitted, over all flows.
    Retransmissions,
    /// Retransmission timeouts of all flows together in a run in which no packet was lost. Other runs have no value.
    SpuriousTimeouts,
    /// Flows that did not finish.
    Unfinished,
    /// Times between departures of consecutive packets of a message, each rounded up to a bound. There are six bounds
    /// per decade. The scenario must observe departures.
    Gaps,
    /// Share of these times that are longer than `from_us`.
    GapShare,
    /// Share of the bytes that took paths of `links` links, over that share under uniform spraying. The scenario must
    /// observe departures.
    LengthShare,
    /// Values of a trace within a span of time.
    Trace,
    /// Memory size of one connection's policy state, in bytes.
    StateBytes,
}

/// Statistic that reduces many values to one.
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
    /// 1st percentile: the P99 tail of a quantity that should be large.
    P1,
    /// Median.
    P50,
    /// 99th percentile.
    P99,
    /// Largest value over the mean.
    MaxOverMean,
    /// Jain's fairness index.
    Jain,
    /// Longest uninterrupted time for which a trace is below `below`, in nanoseconds.
    TimeBelow,
}

/// One number that a figure takes from a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name of the measure. Plots and claims refer to it.
    pub name: String,
    /// Metric from which the number is computed.
    pub of: Metric,
    /// Statistic over the values. Default: the mean.
    #[serde(default)]
    pub stat: Stat,
    /// Workload group to which flows and jobs must belong.
    pub group: Option<String>,
    /// Size in bytes that a flow must exceed to count.
    pub larger_than_bytes: Option<u64>,
    /// Name of the trace, for `trace`.
    pub trace: Option<String>,
    /// Start of the span for traces, in microseconds. For `gap-share`, the bound that a gap must exceed. Default: 0.
    #[serde(default)]
    pub from_us: f64,
    /// Number of links from host to host, for `length-share`.
    pub links: Option<u32>,
    /// End of the span for traces, in microseconds. Default: the end of the run.
    pub to_us: Option<f64>,
    /// Level for `time-below`, in the unit of the trace. Default: 0.
    #[serde(default)]
    pub below: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_the_unit_of_their_terms() {
        let of = |terms: &str| {
            let trace: Trace = toml::from_str(&format!("name = 'x'\nterms = [{terms}]")).unwrap();
            trace.quantity()
        };
        assert_eq!(of("{ host = 'host2' }, { link = 'a>b', factor = -1.0 }"), Quantity::RateBps);
        assert_eq!(of("{ queue = 'a>b' }"), Quantity::Bytes);
        assert_eq!(of("{ flow_held = 0, factor = 1e6 }"), Quantity::Plain);
    }
}
