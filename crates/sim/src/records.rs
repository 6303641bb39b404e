//! From the state at the end of a run to its records.

use pathweave_results::{
    EndReason, FlowRecord, FlowStatus, JobRecord, LinkTotals, NodeInfo, NodeKind, RunInfo, RunResult,
};
use pathweave_topo::NodeId;
use pathweave_units::Time;
use pathweave_workload::JobId;

use crate::runner::Runner;

impl<const C: usize> Runner<'_, C> {
    pub(crate) fn into_result(mut self, ended: EndReason, ended_detail: String, end: Time) -> RunResult {
        for flow in 0..self.flows.len() as u32 {
            // Those that ended were settled when they did.
            if self.flows[flow as usize].as_ref().is_some_and(|f| f.parts_to_ack > 0) {
                self.settle(flow);
            }
        }
        let jobs = self.jobs();
        let links = self.links(end);
        let nodes = self.nodes();
        let spec = self.spec;
        let flows = self.flow_records();
        RunResult {
            info: RunInfo {
                name: spec.name.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                seed: spec.seed,
                scenario_toml: spec.scenario_toml.clone(),
                schemes: spec.schemes.iter().map(|s| s.name.clone()).collect(),
                groups: spec.graph.groups().iter().map(|g| g.name.clone()).collect(),
                roles: spec.groups.iter().map(|group| group.role).collect(),
                digest: self.digest.value(),
                simulated_ps: end.as_ps(),
                events: self.events(),
                packet_hops: self.fabric.packet_hops(),
                ended,
                ended_detail,
                ..RunInfo::default()
            },
            flows,
            series: self.recorder.series,
            events: self.recorder.events,
            events_not_recorded: self.recorder.events_not_recorded,
            nodes,
            links,
            jobs,
        }
    }

    /// One a message; those never posted keep the time at which they could have been.
    fn flow_records(&mut self) -> Vec<FlowRecord> {
        let messages = self.spec.graph.messages();
        let flows = std::mem::take(&mut self.flows);
        flows
            .into_iter()
            .zip(0..)
            .map(|(flow, index): (_, u32)| match flow {
                Some(flow) => flow.record,
                None => {
                    let message = &messages[index as usize];
                    FlowRecord {
                        flow: index,
                        group: message.group.0,
                        scheme: self.spec.groups[message.group.index()].scheme,
                        job: message.job.map(|job| job.0),
                        src_host: message.src.0,
                        dst_host: message.dst.0,
                        size_bytes: message.size.get(),
                        start_ps: message.start.as_ps(),
                        status: FlowStatus::Unfinished,
                        ..FlowRecord::default()
                    }
                }
            })
            .collect()
    }

    fn jobs(&self) -> Vec<JobRecord> {
        let graph = &self.spec.graph;
        let mut start = vec![u64::MAX; graph.jobs().len()];
        let messages = graph.messages().iter().map(|m| (m.job, m.start));
        let computes = graph.computes().iter().map(|c| (c.job, c.start));
        for (job, at) in messages.chain(computes) {
            if let Some(job) = job {
                start[job.index()] = start[job.index()].min(at.as_ps());
            }
        }
        // A job whose tasks wait for others begins when the first of them is free.
        for (index, start) in start.iter_mut().enumerate() {
            *start = self.progress.job_begin(JobId(index as u32)).map_or(*start, Time::as_ps);
        }
        graph
            .jobs()
            .iter()
            .zip(0..)
            .map(|(job, index): (_, u32)| JobRecord {
                job: index,
                name: job.name.clone(),
                group: job.group.0,
                start_ps: start[index as usize],
                finish_ps: self.job_finish[index as usize].map(Time::as_ps),
            })
            .collect()
    }

    fn nodes(&self) -> Vec<NodeInfo> {
        let topology = &*self.spec.topology;
        (0..topology.nodes())
            .map(|node| {
                let switch = topology.switch_index(NodeId(node)).map(|i| &topology.switches()[i]);
                NodeInfo {
                    node,
                    name: topology.node_name(NodeId(node)).into_owned(),
                    kind: if switch.is_some() { NodeKind::Switch } else { NodeKind::Host },
                    tier: switch.map_or(0, |s| s.tier),
                    pod: switch.and_then(|s| s.group),
                }
            })
            .collect()
    }

    /// One a direction of a link; its number is that of its egress port.
    fn links(&mut self, end: Time) -> Vec<LinkTotals> {
        let topology = &*self.spec.topology;
        let tier = |node: u32| topology.switch_index(NodeId(node)).map_or(0, |i| topology.switches()[i].tier);
        let mut rates = vec![0; self.map.len() as usize];
        for (index, link) in topology.links().iter().enumerate() {
            let (a, b) = self.map.ends(index);
            rates[a as usize] = link.rate.as_bps();
            rates[b as usize] = link.rate.as_bps();
        }
        (0..self.map.len())
            .map(|port| {
                self.fabric.settle(&mut self.queue, end, port);
                let (from, to) = self.fabric.ends(port);
                let stats = self.fabric.stats(port);
                let (rate, _) = self.fabric.link(port);
                LinkTotals {
                    link: port,
                    name: format!("{}>{}", topology.node_name(NodeId(from)), topology.node_name(NodeId(to))),
                    from_node: from,
                    to_node: to,
                    tier: tier(from).max(tier(to)),
                    rate_bps: rates[port as usize],
                    tx_bytes: stats.tx_bytes,
                    tx_packets: stats.tx_packets,
                    busy_ps: rate.time_for(stats.tx_bytes).as_ps().min(end.as_ps()),
                    dropped_packets: stats.dropped_packets,
                    ecn_marked_packets: stats.marked_packets,
                    pfc_pauses: stats.pauses,
                    paused_ps: self.fabric.paused_time(port, end).as_ps(),
                    max_queue_bytes: stats.max_queue_bytes,
                }
            })
            .collect()
    }
}
