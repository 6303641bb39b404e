//! What each host did, in the words of the workload: the rows of a timeline.

use crate::names::named_enum;

named_enum! {
    /// What an activity is.
    #[derive(Default)]
    ActivityKind {
        /// Time that passes at the host.
        #[default] Computation = "computation",
        /// Messages of the host.
        Communication = "communication",
    }
}

named_enum! {
    /// What ranks that communicate have in common: how training divides its work among them.
    Parallelism {
        /// They share each layer.
        Tensor = "TP",
        /// They share the experts of a layer.
        Expert = "EP",
        /// They have the same weights.
        Data = "DP",
        /// They have the same experts, where experts are divided among data-parallel ranks.
        ExpertData = "DP-EP",
        /// They have neighbouring stages.
        Pipeline = "PP",
    }
}

/// What a workload calls something that it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityLabel {
    /// What is done: "forward", "all-reduce", "send".
    pub activity: String,
    /// What it is done to: a layer, a bucket of gradients, a round.
    pub part: Option<String>,
    /// What the ranks have in common that it is among.
    pub parallelism: Option<Parallelism>,
    /// The collective that it is a part of.
    pub collective: Option<CollectiveLabel>,
}

impl ActivityLabel {
    /// Both in one: "all-reduce, bucket 3".
    pub fn words(&self) -> String {
        match &self.part {
            Some(part) => format!("{}, {part}", self.activity),
            None => self.activity.clone(),
        }
    }

    /// What is done, and among which ranks: "DP all-reduce".
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
    /// Its number among the collectives of its workload.
    pub number: u32,
    /// How many ranks take part.
    pub ranks: u32,
    /// How it is done: "ring", "direct".
    pub algorithm: &'static str,
    /// Its size as nccl-tests count it, bytes; `None` where its ranks send different amounts.
    pub size_bytes: Option<u64>,
    /// What its bus bandwidth counts, bytes, likewise.
    pub bus_bytes: Option<u64>,
}

/// Something that one host did: a computation, its part of a collective, or messages of one label that were under way together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActivityRecord {
    /// The host.
    pub host: u32,
    /// Workload group, an index into [`RunInfo::groups`](crate::RunInfo::groups).
    pub group: u16,
    /// Job it belongs to, an index into [`RunResult::jobs`](crate::RunResult::jobs).
    pub job: Option<u32>,
    /// What it is.
    pub kind: ActivityKind,
    /// What its workload calls it, an index into [`RunResult::labels`](crate::RunResult::labels).
    pub label: u32,
    /// When it began: a computation, or the first of its messages was posted.
    pub start_ps: u64,
    /// When it was over: the computation, or the last byte of its messages had arrived. `None` if the run ended before that.
    pub finish_ps: Option<u64>,
    /// Messages that the host sent or received in it.
    pub flows: u32,
    /// Payload of those it sent, bytes.
    pub sent_bytes: u64,
    /// Payload of those it received, bytes.
    pub received_bytes: u64,
}
