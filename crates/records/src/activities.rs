//! Activities of hosts, named by their workload: the rows of a timeline.

use crate::names::named_enum;

named_enum! {
    /// Kind of an activity.
    #[derive(Default)]
    ActivityKind {
        /// The host computes.
        #[default] Computation = "computation",
        /// The host sends or receives messages.
        Communication = "communication",
    }
}

named_enum! {
    /// Property shared by ranks that communicate: how training divides its work among them.
    Parallelism {
        /// The ranks share each layer.
        Tensor = "TP",
        /// The ranks share the experts of a layer.
        Expert = "EP",
        /// The ranks have the same weights.
        Data = "DP",
        /// The ranks have the same experts, where experts are divided among data-parallel ranks.
        ExpertData = "DP-EP",
        /// The ranks have neighbouring stages.
        Pipeline = "PP",
        /// The ranks share sequences.
        Context = "CP",
    }
}

/// Name that a workload gives to an activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityLabel {
    /// The operation: "forward", "all-reduce", "send".
    pub activity: String,
    /// Object of the operation: a layer, a bucket of gradients, a round.
    pub object: Option<String>,
    /// Property shared by the ranks that take part.
    pub parallelism: Option<Parallelism>,
    /// The collective that the activity belongs to.
    pub collective: Option<CollectiveLabel>,
}

impl ActivityLabel {
    /// Returns activity and part in one text: "all-reduce, bucket 3".
    pub fn description(&self) -> String {
        match &self.object {
            Some(part) => format!("{}, {part}", self.activity),
            None => self.activity.clone(),
        }
    }

    /// Returns the operation with its ranks: "DP all-reduce".
    pub fn kind(&self) -> String {
        match self.parallelism {
            Some(parallelism) => format!("{parallelism} {}", self.activity),
            None => self.activity.clone(),
        }
    }
}

/// A collective operation among ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectiveLabel {
    /// Number of the collective in its workload.
    pub number: u32,
    /// Number of ranks that take part.
    pub ranks: u32,
    /// Algorithm: "ring", "direct".
    pub algorithm: &'static str,
    /// Size in bytes as nccl-tests count it, or `None` if the ranks send different amounts.
    pub size_bytes: Option<u64>,
    /// Bytes from which the bus bandwidth is computed, or `None` likewise.
    pub bus_bytes: Option<u64>,
}

/// One activity of one host: a computation, its part of a collective, or messages of one label that overlap in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityRecord {
    /// Number of the host.
    pub host: u32,
    /// Workload group, an index into [`RunInfo::groups`](crate::RunInfo::groups).
    pub group: u16,
    /// Job of the activity, an index into [`RunResult::jobs`](crate::RunResult::jobs).
    pub job: Option<u32>,
    /// Job of its collective, where that is a part of `job`: the collective of a trace.
    pub part: Option<u32>,
    /// Kind of the activity.
    pub kind: ActivityKind,
    /// Label of the activity, an index into [`RunResult::labels`](crate::RunResult::labels).
    pub label: u32,
    /// Start of the computation, or time at which the first of the messages was posted.
    pub start_ps: u64,
    /// End of the computation, or arrival of the last byte of the messages. `None` if the run ended before that.
    pub finish_ps: Option<u64>,
    /// Duration of the computation without stragglers, the amount of its work. `None` for messages.
    pub nominal_ps: Option<u64>,
    /// Number of messages that the host sent or received in the activity.
    pub flows: u32,
    /// Payload of the messages sent, bytes.
    pub sent_bytes: u64,
    /// Payload of the messages received, bytes.
    pub received_bytes: u64,
}
