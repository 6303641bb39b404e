//! Workloads as graphs of messages: permutations, collectives, size distributions, flow files.
//!
//! A scenario holds a list of [`WorkloadConfig`]; [`build`] turns it into a [`MessageGraph`], whose order
//! does not depend on the order in which flows are declared. A run executes the graph with the help of
//! [`Progress`].
//!
//! ```
//! use pathweave_units::{Bytes, Rate, Time};
//! use pathweave_workload::{JobId, Pattern, Permutation, Progress, Traffic, WorkloadConfig, WorkloadEnv, build};
//!
//! let permutation =
//!     Permutation { size: Bytes::from_mb(8), pattern: Pattern::Shift, shift: Some(1), flows: None, repetitions: 1 };
//! let env = WorkloadEnv::new(4, Rate::from_gbps(100));
//! let graph = build(&[WorkloadConfig::new(Traffic::Permutation(permutation))], &env)?.graph;
//!
//! let mut progress = Progress::new(&graph);
//! while let Some((task, at)) = progress.pop_root(&graph, Time::MAX) {
//!     progress.begin(&graph, task, at);
//!     // ... post the message; when it is delivered:
//!     progress.task_ended(&graph, task, Time::from_us(640));
//! }
//! assert_eq!(progress.unfinished(), 0);
//! assert_eq!(progress.job_end(JobId(0)), Some(Time::from_us(640)));
//! # Ok::<(), pathweave_workload::WorkloadError>(())
//! ```

mod algorithm;
mod architecture;
mod bounds;
mod builder;
mod cdf;
mod collective;
mod config;
mod counts;
mod edges;
mod env;
mod error;
mod expand;
mod files;
mod fold;
mod formats;
mod graph;
mod hosts;
mod kinds;
pub mod nccl;
mod progress;
mod registry;
mod sink;
mod stragglers;
#[cfg(test)]
mod testing;
mod to_chakra;
mod training_memory;
mod training_outlook;

pub use algorithm::Algorithm;
pub use architecture::{
    Architecture, Attention, Embeddings, Experts, Window, WindowKind, parse_config_json, published,
};
pub use bounds::{Awaited, Bounds, JobSpans, latency_chain};
pub use builder::{Draft, GraphBuilder, MAX_DEPENDENCIES, MAX_TASKS, NewMessage, Stream};
pub use cdf::{BuiltinCdf, CdfScale, SizeCdf, builtin_cdfs};
pub use collective::{Algorithms, Library, Operation};
pub use config::{MessageConnections, Workload, WorkloadConfig, between_name, build};
pub use env::WorkloadEnv;
pub use error::{FileError, GraphError, WorkloadError};
pub use expand::{Expanded, expand};
pub use files::{
    ChakraAction, ChakraGroup, ChakraNode, ChakraOperation, ChakraRanks, ChakraReader, EmbeddingGradients,
    FlowDependency, FlowFile, FlowRecord, GoalAction, GoalDependency, GoalDependencyKind, GoalFile, GoalOp,
    GoalRank, Groups, HostCount, HtsimDialect, Ns3Dialect, Policy, Recompute, SimAiComm, SimAiFile,
    SimAiLayer, SimAiPhase, Span, is_goal_binary, parse_csv, parse_goal, parse_goal_binary, parse_htsim_cm,
    parse_ns3, parse_simai, process_groups_file, write_chakra_rank, write_csv, write_htsim_cm, write_ns3,
};
pub use fold::{Fold, Folding};
pub use formats::{
    FLOW_LISTS, FlowListFormat, ParseFlows, TRACES, TraceFiles, TraceFormat, WriteFlows, WriteTrace,
};
pub use graph::{
    BandwidthBytes, CollectiveLabel, Compute, CoreId, Group, GroupId, Job, JobId, Label, MAX_MESSAGE_SIZE,
    Message, MessageGraph, Moment, Notice, Parallelism, Task, TaskId, TrainingWork,
};
pub use hosts::{HostList, HostRef, UnknownHosts};
pub use kinds::{
    AllToAll, BuiltinSimAi, Chakra, Collective, ComputeWhen, ContextParallelism, Draw, Exchange, FeedForward,
    FlowFormat, FlowHost, FlowSpec, Flows, Goal, GpuData, GpuModel, GroupSize, Incast, LoadOf, Model,
    ModelChoice, ModelFile, Moe, Nccl, Optimizer, Pairs, Pattern, Permutation, Pipeline, PipelineSchedule,
    Placement, Poisson, Precision, Recomputation, RingAllReduce, Schedule, SimAi, Traffic, Training,
    Transformer, TransformerModel, builtin_simai, check_flows,
};
pub use progress::Progress;
pub use registry::{FieldInfo, WorkloadInfo, workloads};
pub use stragglers::{Jitter, Slow, Stragglers};
pub use to_chakra::{ChakraTrace, to_chakra};
pub use training_memory::TrainingMemory;
pub use training_outlook::{Degrees, TrainingOutlook};
