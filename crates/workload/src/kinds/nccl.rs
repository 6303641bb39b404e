//! Collectives as NCCL executes them.

use pathweave_units::{Bytes, Duration, HostId};
use serde::{Deserialize, Serialize};

use super::placement::{GroupSize, Placement, configured_groups};
use crate::builder::Draft;
use crate::collective::{BadPlan, Operation, Ranks, Through};
use crate::counts::Counts;
use crate::error::WorkloadError;
use crate::fold::Folding;
use crate::hosts::HostList;
use crate::nccl::{
    Cpu, DEFAULT_MESSAGES, Fitted, Gpu, MOST_MESSAGES, NcclAlgorithm, NcclProtocol, Plan, Site, Team, Wanted,
};
use crate::sink::{Generate, WorkloadBuilder};

/// Groups of GPUs that run a collective as NCCL 2.30 executes it: channels by arithmetic, rings, trees, NVLS, PAT,
/// protocols, chunks and slots. The servers of `kind = "cluster"` give GPUs, NICs and NVLink. Each round of each group is
/// a job. Results state its algorithm bandwidth and bus bandwidth as nccl-tests define them.
///
/// Messages are chunks of channels. A message of a connection waits for the data that it carries on, for the message
/// before it, and for a slot, which the receiver frees when it has used the content. Latencies of hops are those of
/// NCCL's tables, and the network adds its own. LL doubles the bytes on links, and LL128 adds a fifteenth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nccl {
    /// Operation of the collective.
    pub operation: Operation,
    /// Size as nccl-tests define it, see `operation`.
    pub size: Bytes,
    /// Algorithm.
    #[serde(default)]
    pub algorithm: NcclAlgorithm,
    /// Protocol.
    #[serde(default)]
    pub protocol: NcclProtocol,
    /// Number of channels of rings, trees and PAT, 1 to 64. Default: as many as NCCL uses for the size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Queue pairs of a connection between servers, which its messages take in turn (NCCL_IB_QPS_PER_CONNECTION).
    #[serde(default = "one")]
    pub qps: u32,
    /// True if GPUs send by the NIC of the GPU that is on the receiver's rail (PXN). Default: true if a switch joins the
    /// GPUs of a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pxn: Option<bool>,
    /// Processor of the servers, on which NCCL's latencies depend. Default: that of the usual servers of the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Model of GPU. Default: that of the servers' model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Factor of the latencies of the protocol Simple. Default: the value fitted to measurements of the GPU's
    /// generation. `pathweave fit` finds it from measurements of a real system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    /// Part of the rate of links that NCCL's kernels and proxies keep busy, above 0 and at most 1.2. Messages have as
    /// many more bytes. Default: the value fitted to measurements of the GPU's generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// Number of messages of a collective above which loops are merged, and channels that share a NIC (default 8192, at
    /// most 1048576): with it simulations are held to measurements. Fewer messages run faster. Merged loops are coarser
    /// pieces, which fill pipelines more slowly, and need fewer slots: NVLSTree takes up to 28 % less time with them.
    #[serde(default = "most_messages")]
    pub most_messages: u64,
    /// Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
    /// hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<GroupSize>,
    /// Assignment of hosts to groups and ranks.
    #[serde(default)]
    pub placement: Placement,
    /// Hosts of each group in the order of their ranks: a list of numbers, names and patterns, or a pattern
    /// such as "srv[0-3].gpu*". Replaces `group_size` and `placement`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<HostList>,
    /// Number of rounds, one after another (default 1). A host begins the next round when its part of the
    /// previous one has ended.
    #[serde(default = "one")]
    pub repetitions: u32,
}

fn one() -> u32 {
    1
}
fn most_messages() -> u64 {
    DEFAULT_MESSAGES
}

impl Nccl {
    /// Makes a collective with NCCL's own choices, in one group of all hosts.
    pub fn new(operation: Operation, size: Bytes) -> Self {
        Nccl {
            operation,
            size,
            algorithm: NcclAlgorithm::Auto,
            protocol: NcclProtocol::Auto,
            channels: None,
            qps: 1,
            pxn: None,
            cpu: None,
            gpu: None,
            latency: None,
            bandwidth: None,
            most_messages: DEFAULT_MESSAGES,
            group_size: None,
            placement: Placement::default(),
            groups: Vec::new(),
            repetitions: 1,
        }
    }

    fn wanted(&self, gpu: Gpu) -> Result<Wanted, BadPlan> {
        let fitted = Fitted::of(gpu.generation()).with(self.latency, self.bandwidth)?;
        if !(1..=MOST_MESSAGES).contains(&self.most_messages) {
            let allowed = format!("expected 1 to {MOST_MESSAGES}");
            return Err(("most_messages", self.most_messages.to_string(), allowed));
        }
        Ok(Wanted {
            algorithm: self.algorithm,
            protocol: self.protocol,
            channels: self.channels,
            qps: self.qps,
            pxn: self.pxn,
            fitted,
            most_messages: self.most_messages,
        })
    }

    fn plan(&self, out: &WorkloadBuilder<'_>, members: &[u32]) -> Result<Plan, WorkloadError> {
        let Some(gpu) = self.gpu.or(out.env.gpu) else {
            let allowed = "expected a model of GPU such as \"h100\": the servers have no model that tells";
            return out.field_error("gpu", "none", allowed);
        };
        let team = out.team(members, gpu, self.cpu);
        let made = team.and_then(|team| Plan::new(team, self.operation, self.size.get(), &self.wanted(gpu)?));
        made.or_else(|(field, value, allowed)| out.field_error(field, value, allowed))
    }
}

impl WorkloadBuilder<'_> {
    /// Returns the servers of ranks.
    pub(super) fn team(&self, members: &[u32], gpu: Gpu, cpu: Option<Cpu>) -> Result<Team, BadPlan> {
        let hosts: Vec<HostId> = members.iter().map(|&host| self.env.member(host)).collect();
        let topology = self.env.topology.as_deref();
        Team::of(&hosts, &Site { topology, host_rate: self.env.host_rate, gpu, cpu })
    }
}

impl Generate for Nccl {
    fn generate(&self, out: &mut WorkloadBuilder<'_>) -> Result<(), WorkloadError> {
        if self.repetitions == 0 {
            return out.field_error("repetitions", 0, "expected 1 or more");
        }
        let groups = configured_groups(out, &self.groups, self.group_size.as_ref(), self.placement)?;
        let plans: Result<Vec<Plan>, _> = groups.iter().map(|members| self.plan(out, members)).collect();
        let plans = plans?;
        // The channels of NCCL tell ranks apart, so no rank stands for others.
        if out.may_fold(|| Ok(false))?.is_some() {
            let found: Result<((), Folding), String> = Err("NCCL's channels tell ranks apart".to_owned());
            out.fold(found, out.env.hosts as usize, ("operation", self.operation.name()))?;
        }
        let expected: f64 = plans.iter().map(Plan::messages).sum();
        // A message may have a latency of its own.
        out.check_count(2.0 * expected * f64::from(self.repetitions))?;
        self.note(out, &plans);
        for (number, (members, plan)) in groups.iter().zip(&plans).enumerate() {
            self.rounds(out, number, members, plan)?;
        }
        Ok(())
    }
}

impl Nccl {
    fn note(&self, out: &mut WorkloadBuilder<'_>, plans: &[Plan]) {
        let (algorithm, channels) = plans[0].summary();
        let merged = match plans[0].merged() {
            merged if merged > 1.0 => format!(", a message stands for {merged:.1} of the library"),
            _ => String::new(),
        };
        out.note(format_args!("{algorithm} on {channels} channels{merged}"));
    }

    fn rounds(
        &self,
        out: &mut WorkloadBuilder<'_>,
        number: usize,
        members: &[u32],
        plan: &Plan,
    ) -> Result<(), WorkloadError> {
        let (counts, through) = plan.count()?;
        let all = Counts { dependencies: counts.dependencies + through, ..counts };
        out.check_dependencies(all.times(u64::from(self.repetitions)).dependencies as f64)?;
        let (mut ready, mut before): (Vec<Option<Draft>>, _) = (vec![None; members.len()], None);
        let mut passed: Vec<Through> = Vec::new();
        for round in 0..self.repetitions {
            let job = out.next_job(format_args!("group {number}, round {round}"), &mut before)?;
            // A round is over with its last message. Its acknowledgement delays the next one.
            for (rank, through) in passed.into_iter().enumerate() {
                let task = out.latency(members[rank], Duration::ZERO, job)?;
                for (message, moment) in through {
                    out.after_moment(task, message, moment)?;
                }
                ready[rank] = Some(task);
            }
            out.measure(job, self.operation.measure(members.len(), self.size.get()));
            out.collective(format_args!("round {round}"), plan.steps(None));
            let ranks = Ranks { members, alike: None, ready: &ready, stream: 0, job };
            passed = plan.put(out, ranks)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use pathweave_topo::TopologyConfig;
    use pathweave_units::Rate;
    use serde_json::json;

    use super::*;
    use crate::config::{WorkloadConfig, build};
    use crate::env::WorkloadEnv;
    use crate::graph::MessageGraph;

    /// Two servers of four H100, with a NIC each.
    fn env(server: serde_json::Value) -> WorkloadEnv {
        let config: TopologyConfig = serde_json::from_value(json!({
            "kind": "cluster", "servers": 2, "attach": "server", "server": server,
            "scale_out": {"kind": "star", "hosts": 8, "rate": "400Gbps"}
        }))
        .unwrap();
        let topology = Some(Arc::new(config.build(Path::new("")).unwrap()));
        WorkloadEnv { topology, gpu: Some(Gpu::H100), ..WorkloadEnv::new(8, Rate::from_gbps(400)) }
    }

    fn nvlink() -> serde_json::Value {
        json!({"gpus": 4, "scale_up": {"kind": "switch", "rate": "3600Gbps", "efficiency": 0.82}})
    }

    fn made(
        value: serde_json::Value,
        server: serde_json::Value,
    ) -> Result<(MessageGraph, Vec<String>), String> {
        let mut config = json!({"kind": "nccl", "operation": "all-reduce", "size": "1MiB", "bandwidth": 1.0});
        config.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        let config: WorkloadConfig = serde_json::from_value(config).map_err(|why| why.to_string())?;
        let made = build(&[config], &env(server)).map_err(|why| why.to_string())?;
        Ok((made.graph, made.notes))
    }

    /// Ring, LL, one channel: 14 steps of 8 ranks with 1/8 of the vector, and 2 x 14 messages to the GPU of the NIC.
    #[test]
    fn one_ring_by_hand() {
        let ring = json!({"algorithm": "ring", "protocol": "simple", "channels": 1, "size": "64KiB"});
        let (graph, notes) = made(ring.clone(), nvlink()).unwrap();
        assert_eq!(graph.messages().len(), 14 * 8 + 2 * 14);
        assert!(graph.messages().iter().all(|message| message.size == Bytes::new(8_192)));
        assert_eq!(notes, ["workload \"nccl\": ring/Simple on 1 channels"]);
        let label = &graph.labels()[graph.label(crate::graph::TaskId(0)).unwrap() as usize];
        assert_eq!(
            (label.activity.as_str(), label.collective.unwrap().algorithm),
            ("all-reduce", "ring/Simple")
        );
        // Without PXN the last GPU sends by its own NIC.
        let mut own = ring;
        own["pxn"] = json!(false);
        assert_eq!(made(own, nvlink()).unwrap().0.messages().len(), 14 * 8);
    }

    /// LL sends 1 KiB as 2 KiB on links: 1/8 of it is 256 bytes.
    #[test]
    fn protocols_have_their_bytes_on_links() {
        let with = |protocol: &str, size: &str| {
            let ring =
                json!({"algorithm": "ring", "protocol": protocol, "channels": 1, "size": size, "pxn": false});
            made(ring, nvlink()).unwrap().0
        };
        let between = |graph: &MessageGraph| {
            let net = graph.messages().iter().find(|m| (m.src.0 < 4) != (m.dst.0 < 4));
            net.unwrap().size.get()
        };
        assert_eq!(between(&with("ll", "1KiB")), 256);
        assert_eq!(between(&with("simple", "1KiB")), 128);
        assert_eq!(between(&with("ll128", "120KB")), 16_000);
    }

    /// Rounds follow each other, and a queue pair of two takes every second message.
    #[test]
    fn rounds_and_queue_pairs() {
        let config =
            json!({"algorithm": "tree", "protocol": "simple", "channels": 1, "repetitions": 2, "qps": 2});
        let (graph, _) = made(config, nvlink()).unwrap();
        // 1 MiB in chunks of 512 KiB: 14 messages each.
        assert_eq!(graph.messages().len(), 2 * 2 * 14);
        assert_eq!(graph.jobs().len(), 2);
        let streams: std::collections::BTreeSet<u32> = graph.messages().iter().map(|m| m.stream).collect();
        assert_eq!(streams.len(), 2);
    }

    #[test]
    fn settings_that_the_servers_lack_are_named() {
        let error = |value: serde_json::Value, server| made(value, server).unwrap_err();
        let bare = || json!({"gpus": 4});
        let mesh = || json!({"gpus": 4, "scale_up": {"kind": "full-mesh", "rate": "512Gbps"}});
        for (value, server, text) in [
            (json!({"pxn": true}), bare(), "pxn = true: expected a scale-up network"),
            (
                json!({"algorithm": "nvls-tree"}),
                mesh(),
                "algorithm = nvls-tree: expected a scale-up network with a switch",
            ),
            (
                json!({"algorithm": "nvls"}),
                nvlink(),
                "algorithm = nvls: all-reduce on these servers is done by tree/LL",
            ),
            (json!({"algorithm": "direct"}), nvlink(), "algorithm = direct: all-reduce on these servers"),
            (json!({"algorithm": "pat"}), nvlink(), "algorithm = pat"),
            (
                json!({"algorithm": "nvls-tree", "protocol": "ll"}),
                nvlink(),
                "protocol = ll: all-reduce on these servers is done by",
            ),
            (json!({"operation": "all-to-all", "algorithm": "ring"}), nvlink(), "is done by direct"),
            (json!({"operation": "all-to-all", "protocol": "ll128"}), nvlink(), "use ll or simple"),
            (json!({"algorithm": "ring", "channels": 65}), nvlink(), "channels = 65: expected 1 to 64"),
            (
                json!({"algorithm": "nvls-tree", "channels": 2}),
                nvlink(),
                "channels = 2: expected no such field",
            ),
            (json!({"qps": 0}), nvlink(), "qps = 0: expected 1 to 32"),
            (json!({"latency": 0.0}), nvlink(), "latency = 0: expected a factor above 0"),
            (json!({"bandwidth": 2.0}), nvlink(), "bandwidth = 2: expected a part"),
            (json!({"most_messages": 0}), nvlink(), "most_messages = 0: expected 1 to 1048576"),
            (json!({"repetitions": 0}), nvlink(), "repetitions = 0"),
            (json!({"groups": [[0, 1, 2, 4]]}), nvlink(), "groups = 3 and 1 GPUs a server"),
            (json!({"algorithm": "rign"}), nvlink(), "unknown variant `rign`"),
        ] {
            let why = error(value.clone(), server);
            assert!(why.contains(text), "{value}: {why}");
        }
        let nameless = WorkloadEnv { gpu: None, ..env(nvlink()) };
        let config = Nccl::new(Operation::AllReduce, Bytes::from_mb(1));
        let config = WorkloadConfig::new(crate::kinds::Traffic::Nccl(config));
        let why = build(&[config], &nameless).unwrap_err().to_string();
        assert!(why.contains("gpu = none: expected a model of GPU such as \"h100\""), "{why}");
    }
}
