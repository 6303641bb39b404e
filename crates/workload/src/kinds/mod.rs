//! Kinds of workload, one file each. A new kind needs a file, and an entry in the registry below.

mod all_to_all;
mod chakra;
mod collective;
mod flows;
mod goal;
mod incast;
mod moe;
mod nccl;
mod pairs;
mod permutation;
mod pipeline;
mod placement;
mod poisson;
mod ranks;
mod ring_all_reduce;
mod simai;
mod training;
mod transformer;

pub use all_to_all::AllToAll;
pub use chakra::Chakra;
pub use collective::{Collective, ComputeWhen};
pub use flows::{FlowFormat, FlowHost, FlowSpec, Flows, check_flows};
pub use goal::Goal;
pub use incast::{Draw, Incast};
pub use moe::{Exchange, Moe};
pub use nccl::Nccl;
pub use pairs::Pairs;
pub use permutation::{Pattern, Permutation};
pub use pipeline::{Pipeline, Schedule};
pub use placement::{GroupSize, Placement};
pub use poisson::{LoadOf, Poisson};
pub use ring_all_reduce::RingAllReduce;
pub use simai::{BuiltinSimAi, SimAi, builtin_simai};
pub use training::{Model, Training};
pub use transformer::{
    ContextParallelism, FeedForward, GpuData, GpuModel, ModelChoice, ModelFile, Optimizer, PipelineSchedule,
    Precision, Recomputation, Transformer, TransformerModel,
};

use serde::{Deserialize, Serialize};

use crate::error::WorkloadError;
use crate::registry::WorkloadInfo;
use crate::sink::{Generate, WorkloadBuilder};

macro_rules! registry {
    ($($name:literal $kind:ident: $help:literal,)*) => {
        /// Traffic of a workload, by kind.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(tag = "kind")]
        pub enum Traffic {
            $(#[doc = $help] #[serde(rename = $name)] $kind($kind),)*
        }

        impl Traffic {
            /// Returns the name of the kind.
            pub fn kind(&self) -> &'static str {
                match self { $(Traffic::$kind(_) => $name,)* }
            }
            /// Returns true if the application waits for the last message of a step, not for each message by itself.
            pub fn has_steps(&self) -> bool {
                !matches!(
                    self,
                    Traffic::Permutation(_)
                        | Traffic::Incast(_)
                        | Traffic::AllToAll(_)
                        | Traffic::Poisson(_)
                        | Traffic::Flows(_)
                )
            }
            /// Returns the files that the configuration names, each with its field.
            pub fn files(&mut self) -> Vec<(&'static str, &mut String)> {
                match self { $(Traffic::$kind(config) => config.files(),)* }
            }
            pub(crate) fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
                match self { $(Traffic::$kind(config) => config.generate(out),)* }
            }
        }

        pub(crate) const KINDS: &[WorkloadInfo] = &[
            $(WorkloadInfo { name: $name, help: $help, schema: || schemars::schema_for!($kind) },)*
        ];
    };
}

registry! {
    "permutation" Permutation: "Every host sends to one host and receives from one.",
    "incast" Incast: "Many hosts send to one at the same time.",
    "all-to-all" AllToAll: "Every host of a group sends to every other.",
    "ring-all-reduce" RingAllReduce: "Groups of hosts add up a vector around a ring, step by step.",
    "collective" Collective: "All-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, by several algorithms.",
    "nccl" Nccl: "Collectives as NCCL executes them on servers with GPUs: rings, trees, NVLS, PAT, protocols, PXN.",
    "moe" Moe: "Mixture-of-experts layers: tokens go to the hosts of their experts and come back.",
    "pipeline" Pipeline: "Pipeline-parallel training: stages pass activations on and gradients back.",
    "training" Training: "Data-parallel training: gradients of real models, reduced while backward still computes.",
    "transformer" Transformer: "Training of a transformer, dense or with experts: tensor, expert, data and pipeline parallelism from a few numbers.",
    "chakra" Chakra: "An execution trace of MLCommons Chakra: computations, sends and receives, collectives.",
    "goal" Goal: "A schedule of LogGOPSim or ATLAHS (GOAL): computations, sends and receives that wait for each other.",
    "simai" SimAi: "A workload file of SimAI: layers with tensor-, expert-, data- and pipeline-parallel groups.",
    "poisson" Poisson: "Flows between random hosts, sizes from a distribution, at a given load.",
    "flows" Flows: "A list of flows, inline or from a file (CSV, HPCC, ConWeave, htsim).",
}
