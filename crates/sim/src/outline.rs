//! What the records of a run say before anything has moved: the same for a simulated and for a real network.

use pathweave_results::{FlowRecord, FlowStatus, JobRecord, LinkTotals, NodeInfo, NodeKind, RunInfo};
use pathweave_topo::{NodeId, Switch};
use pathweave_units::{Rate, Time};
use pathweave_workload::{JobId, JobSpans, Progress};

use crate::spec::SimSpec;

impl SimSpec {
    /// The run's names and seed.
    pub fn run_info(&self) -> RunInfo {
        RunInfo {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: self.seed,
            scenario_toml: self.scenario_toml.clone(),
            schemes: self.schemes.iter().map(|scheme| scheme.name.clone()).collect(),
            groups: self.graph.groups().iter().map(|group| group.name.clone()).collect(),
            roles: self.groups.iter().map(|group| group.role).collect(),
            ..RunInfo::default()
        }
    }

    /// A message that has not been posted. It starts when it could have been.
    pub fn flow_record(&self, flow: u32) -> FlowRecord {
        let message = &self.graph.messages()[flow as usize];
        FlowRecord {
            flow,
            group: message.group.0,
            scheme: self.groups[message.group.index()].scheme,
            job: message.job.map(|job| job.0),
            src_host: message.src.0,
            dst_host: message.dst.0,
            size_bytes: message.size.get(),
            start_ps: message.start.as_ps(),
            status: FlowStatus::Unfinished,
            ..FlowRecord::default()
        }
    }

    /// All jobs, with their ends. One whose tasks wait for others begins when the first of them is free.
    pub fn job_records(&self, progress: &Progress, finish: &[Option<Time>]) -> Vec<JobRecord> {
        let graph = &self.graph;
        let mut earliest = vec![u64::MAX; graph.jobs().len()];
        let messages = graph.messages().iter().map(|message| (message.job, message.start));
        let computes = graph.computes().iter().map(|compute| (compute.job, compute.start));
        for (job, start) in messages.chain(computes).filter_map(|(job, start)| Some((job?, start))) {
            earliest[job.index()] = earliest[job.index()].min(start.as_ps());
        }
        let spans = JobSpans::of(graph);
        let record = |(job, number): (&pathweave_workload::Job, u32)| JobRecord {
            job: number,
            name: job.name.clone(),
            group: job.group.0,
            start_ps: progress.job_begin(JobId(number)).map_or(earliest[number as usize], Time::as_ps),
            finish_ps: finish[number as usize].map(Time::as_ps),
            compute_ps: spans.span(JobId(number)).as_ps(),
            size_bytes: job.measure.map(|measure| measure.size.get()),
            bus_bytes: job.measure.map(|measure| measure.bus.get()),
        };
        graph.jobs().iter().zip(0..).map(record).collect()
    }

    /// All nodes: hosts, then switches.
    pub fn node_infos(&self) -> Vec<NodeInfo> {
        let info = |node| {
            let switch = self.switch_at(node);
            NodeInfo {
                node,
                name: self.topology.node_name(NodeId(node)).into_owned(),
                kind: if switch.is_some() { NodeKind::Switch } else { NodeKind::Host },
                tier: switch.map_or(0, |switch| switch.tier),
                pod: switch.and_then(|switch| switch.group),
            }
        };
        (0..self.topology.nodes()).map(info).collect()
    }

    /// A direction of a link over which nothing has gone.
    pub fn link_totals(&self, link: u32, from_node: u32, to_node: u32, rate: Rate) -> LinkTotals {
        let name = |node| self.topology.node_name(NodeId(node));
        let tier = |node| self.switch_at(node).map_or(0, |switch| switch.tier);
        LinkTotals {
            link,
            name: format!("{}>{}", name(from_node), name(to_node)),
            from_node,
            to_node,
            tier: tier(from_node).max(tier(to_node)),
            rate_bps: rate.as_bps(),
            ..LinkTotals::default()
        }
    }

    fn switch_at(&self, node: u32) -> Option<&Switch> {
        self.topology.switch_index(NodeId(node)).map(|index| &self.topology.switches()[index])
    }
}
