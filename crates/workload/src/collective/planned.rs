//! Collectives of a trace: by this crate's algorithms or as NCCL executes them.

use pathweave_units::HostId;

use super::choice::Algorithms;
use super::declare::{Ranks, Through};
use super::library::Library;
use super::plan::{BadPlan, Operation, Plan};
use crate::counts::Counts;
use crate::env::WorkloadEnv;
use crate::error::WorkloadError;
use crate::graph::Parallelism;
use crate::nccl::{self, Fitted, Gpu, Site, Team, Wanted};
use crate::sink::{Steps, WorkloadBuilder};

/// Messages of a collective of a trace above which loops of NCCL are merged. Jobs have thousands of collectives.
const MOST_MESSAGES: u64 = 1 << 10;

/// Collective to declare.
pub(crate) enum Planned {
    Blocks(Plan),
    Nccl(Box<nccl::Plan>),
}

impl Algorithms {
    /// Returns the plan of a collective of two members or more. The error names a field of the algorithms.
    pub(crate) fn planned(
        &self,
        env: &WorkloadEnv,
        operation: Operation,
        members: &[u32],
        bytes: u64,
    ) -> Result<Planned, BadPlan> {
        if self.library == Library::Blocks {
            let given = self.gpu.map(|gpu| ("gpu", gpu.name().to_owned()));
            let given = given.or(self.latency.map(|factor| ("latency", factor.to_string())));
            if let Some((field, value)) = given.or(self.bandwidth.map(|part| ("bandwidth", part.to_string())))
            {
                return Err((field, value, "expected no such field without library = \"nccl\"".to_owned()));
            }
            let plan = self.plan(operation, members.len(), bytes);
            return plan.check().map(|()| Planned::Blocks(plan));
        }
        let Algorithms { library, gpu, latency, bandwidth, .. } = *self;
        if *self != (Algorithms { library, gpu, latency, bandwidth, ..Algorithms::default() }) {
            let allowed = "expected no algorithms, local_size or chunk beside it: NCCL chooses them";
            return Err(("library", "nccl".to_owned(), allowed.to_owned()));
        }
        let Some(gpu) = self.gpu.or(env.gpu) else {
            let allowed = "expected a model of GPU such as \"h100\": the servers have no model that tells";
            return Err(("gpu", "none".to_owned(), allowed.to_owned()));
        };
        let hosts: Vec<HostId> = members.iter().map(|&host| env.member(host)).collect();
        let site = Site { topology: env.topology.as_deref(), host_rate: env.host_rate, gpu, cpu: None };
        let wanted = Wanted::defaults(self.fitted(gpu)?, MOST_MESSAGES);
        let plan = nccl::Plan::new(Team::of(&hosts, &site)?, operation, bytes, &wanted)?;
        Ok(Planned::Nccl(Box::new(plan)))
    }

    fn fitted(&self, gpu: Gpu) -> Result<Fitted, BadPlan> {
        Fitted::of(gpu.generation()).with(self.latency, self.bandwidth)
    }
}

impl Planned {
    /// Returns true if a rotation of the ranks leaves the collective unchanged. The channels of NCCL tell ranks apart.
    pub(crate) fn is_unchanged_by_rotation(&self, by: usize) -> bool {
        match self {
            Planned::Blocks(plan) => plan.is_unchanged_by_rotation(by),
            Planned::Nccl(_) => false,
        }
    }

    /// Returns the number of messages, approximately.
    pub(crate) fn messages(&self) -> f64 {
        match self {
            Planned::Blocks(plan) => plan.messages(),
            Planned::Nccl(plan) => plan.messages(),
        }
    }

    /// Returns the description of its messages.
    pub(crate) fn steps(&self, parallelism: Option<Parallelism>) -> Steps<'static> {
        match self {
            Planned::Blocks(plan) => plan.steps(parallelism),
            Planned::Nccl(plan) => plan.steps(parallelism),
        }
    }

    /// Returns the tasks and dependencies that [`Planned::put`] declares, and those of tasks that wait for all of it.
    pub(crate) fn count(&self) -> Result<(Counts, u64), WorkloadError> {
        match self {
            Planned::Blocks(plan) => plan.count(),
            Planned::Nccl(plan) => plan.count(),
        }
    }

    /// Declares the messages. Returns those that each rank sends and receives.
    pub(crate) fn put(
        &self,
        out: &mut WorkloadBuilder<'_>,
        ranks: Ranks<'_>,
    ) -> Result<Vec<Through>, WorkloadError> {
        match self {
            Planned::Blocks(plan) => plan.put(out, ranks),
            Planned::Nccl(plan) => plan.put(out, ranks),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Arc;

    use pathweave_topo::TopologyConfig;
    use pathweave_units::{Bytes, Rate};
    use serde_json::json;

    use super::*;
    use crate::config::{WorkloadConfig, build};
    use crate::graph::MessageGraph;

    /// Two servers of four H100.
    fn env(gpu: Option<Gpu>) -> WorkloadEnv {
        let config: TopologyConfig = serde_json::from_value(json!({
            "kind": "cluster", "servers": 2, "attach": "server",
            "server": {"gpus": 4, "scale_up": {"kind": "switch", "rate": "3600Gbps", "efficiency": 0.82}},
            "scale_out": {"kind": "star", "hosts": 8, "rate": "400Gbps"}
        }))
        .unwrap();
        let topology = Some(Arc::new(config.build(Path::new("")).unwrap()));
        WorkloadEnv { topology, gpu, ..WorkloadEnv::new(8, Rate::from_gbps(400)) }
    }

    fn made(algorithms: serde_json::Value, gpu: Option<Gpu>) -> Result<MessageGraph, String> {
        made_with(json!({"kind": "transformer"}), algorithms, gpu)
    }

    /// Returns the graph of a job with these fields.
    fn made_with(
        mut job: serde_json::Value,
        algorithms: serde_json::Value,
        gpu: Option<Gpu>,
    ) -> Result<MessageGraph, String> {
        for (field, value) in
            [("model", json!("llama-3-8b")), ("layers", json!(1)), ("tp", json!(4)), ("scale", json!(0.001))]
        {
            job[field] = value;
        }
        job["algorithms"] = algorithms;
        let config: WorkloadConfig = serde_json::from_value(job).map_err(|why| why.to_string())?;
        Ok(build(&[config], &env(gpu)).map_err(|why| why.to_string())?.graph)
    }

    /// Tensor-parallel groups are servers, and data-parallel ones pairs of GPUs on a rail. Their collectives have NCCL's
    /// algorithms and wait for the computations before them.
    #[test]
    fn collectives_of_a_training_job_are_those_of_the_library() {
        let graph = made(json!({"library": "nccl"}), Some(Gpu::H100)).unwrap();
        let used: BTreeSet<(&str, u32)> = graph
            .labels()
            .iter()
            .filter_map(|label| Some((label.collective?.algorithm, label.collective?.ranks)))
            .collect();
        assert!(used.iter().all(|(name, _)| name.contains('/')), "{used:?}");
        assert!(
            used.iter().any(|&(_, ranks)| ranks == 4) && used.iter().any(|&(_, ranks)| ranks == 2),
            "{used:?}"
        );
        assert!(graph.messages().iter().all(|message| message.size > Bytes::ZERO));
        let ends = crate::testing::job_ends(&graph);
        assert_eq!(ends.len(), 1);
        let own = made(json!({}), None).unwrap();
        assert!(
            own.labels().iter().filter_map(|label| label.collective).all(|of| !of.algorithm.contains('/'))
        );
    }

    /// A job whose stages have an order of their own has the same library.
    #[test]
    fn stages_of_their_own_have_the_library_too() {
        let staged = || json!({"kind": "transformer", "schedule": "1f1b"});
        let graph = made_with(staged(), json!({"library": "nccl"}), Some(Gpu::H100)).unwrap();
        let used: Vec<_> = graph.labels().iter().filter_map(|label| label.collective).collect();
        assert!(!used.is_empty() && used.iter().all(|of| of.algorithm.contains('/')), "{used:?}");
        let why = made_with(staged(), json!({"bandwidth": 0.5}), None).unwrap_err();
        assert!(why.contains("bandwidth = 0.5") && why.contains("without library"), "{why}");
    }

    #[test]
    fn settings_of_the_library_are_checked() {
        let error = |algorithms, gpu| made(algorithms, gpu).unwrap_err();
        let nccl = || json!({"library": "nccl"});
        assert!(error(nccl(), None).contains("algorithms.gpu = none: expected a model of GPU"));
        assert!(made(json!({"library": "nccl", "gpu": "h100"}), None).is_ok());
        let why = error(json!({"latency": 2.0}), None);
        assert!(why.contains("algorithms.latency = 2: expected no such field without library"), "{why}");
        let why = error(json!({"library": "nccl", "bandwidth": 0.0}), Some(Gpu::H100));
        assert!(why.contains("algorithms.bandwidth = 0: expected a part above 0"), "{why}");
        let why = error(json!({"library": "nccl", "all_reduce": "hierarchical"}), Some(Gpu::H100));
        assert!(why.contains("algorithms.library = nccl: expected no algorithms"), "{why}");
        assert!(error(json!({"library": "ncl"}), None).contains("unknown variant `ncl`"));
    }
}
