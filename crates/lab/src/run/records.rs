//! From the end of a run to its records.

use pathweave_fabric::config::FaultConfig;
use pathweave_results::{
    EventKind, EventRecord, FlowRecord, FlowStatus, JobRecord, LinkTotals, NodeInfo, NodeKind, RunInfo,
    RunResult,
};
use pathweave_sim::SimSpec;
use pathweave_topo::{NodeId, Topology};
use pathweave_units::Time;
use pathweave_workload::JobId;

use super::traffic::Done;
use crate::error::LabError;
use crate::lab::{Lab, LinkState};
use crate::schedule::{Change, Schedule};
use crate::settings::RateScale;

/// What a link adds to a frame, as the kernel counts it: preamble 8, check sequence 4, gap 12.
const WIRE_BYTES: u64 = 24;

/// What all directed links have moved: first from `a` to `b`, then back, for each link.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fabric(Vec<Moved>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moved {
    from: u32,
    to: u32,
    packets: u64,
    bytes: u64,
    dropped: u64,
    marked: u64,
}

impl Fabric {
    pub(super) fn read(lab: &Lab) -> Result<Fabric, LabError> {
        let mut links = vec![Moved::default(); 2 * lab.plan().topology().links().len()];
        for node in (0..lab.plan().topology().nodes()).map(NodeId) {
            let marked = lab.marked(node)?;
            for port in lab.counters(node)? {
                let is_a = lab.plan().ends(port.link)[0] == (node, port.port);
                links[2 * port.link.index() + usize::from(!is_a)] = Moved {
                    from: node.0,
                    to: lab.plan().node(node).ports[usize::from(port.port)].peer.0,
                    packets: port.counters.sent_packets,
                    bytes: port.counters.sent_bytes,
                    dropped: port.dropped_packets,
                    marked: marked[usize::from(port.port)],
                };
            }
        }
        Ok(Fabric(links))
    }

    pub(super) fn since(self, before: &Fabric) -> Fabric {
        let since = |(now, before): (Moved, &Moved)| Moved {
            packets: now.packets.saturating_sub(before.packets),
            bytes: now.bytes.saturating_sub(before.bytes),
            dropped: now.dropped.saturating_sub(before.dropped),
            marked: now.marked.saturating_sub(before.marked),
            ..now
        };
        Fabric(self.0.into_iter().zip(&before.0).map(since).collect())
    }
}

/// A message of which nothing is known yet.
pub(super) fn blank(spec: &SimSpec, number: u32) -> FlowRecord {
    let message = &spec.graph.messages()[number as usize];
    FlowRecord {
        flow: number,
        group: message.group.0,
        scheme: spec.groups[message.group.index()].scheme,
        job: message.job.map(|job| job.0),
        src_host: message.src.0,
        dst_host: message.dst.0,
        size_bytes: message.size.get(),
        start_ps: message.start.as_ps(),
        status: FlowStatus::Unfinished,
        ..FlowRecord::default()
    }
}

pub(super) fn result(lab: &Lab, spec: &SimSpec, done: Done, fabric: Fabric, end: Time) -> RunResult {
    let topology = lab.plan().topology();
    let jobs = jobs(spec, &done);
    let flows = done.flows.into_iter().zip(0u32..);
    RunResult {
        info: RunInfo {
            name: spec.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: spec.seed,
            scenario_toml: spec.scenario_toml.clone(),
            schemes: spec.schemes.iter().map(|scheme| scheme.name.clone()).collect(),
            groups: spec.graph.groups().iter().map(|group| group.name.clone()).collect(),
            roles: spec.groups.iter().map(|group| group.role).collect(),
            simulated_ps: end.as_ps(),
            packet_hops: fabric.0.iter().map(|moved| moved.packets).sum(),
            ..RunInfo::default()
        },
        flows: flows
            .map(|(flow, number)| flow.map_or_else(|| blank(spec, number), |flow| flow.record))
            .collect(),
        nodes: (0..topology.nodes()).map(|node| node_info(topology, NodeId(node))).collect(),
        links: links(topology, &fabric, end),
        jobs,
        ..RunResult::default()
    }
}

fn jobs(spec: &SimSpec, done: &Done) -> Vec<JobRecord> {
    let graph = &spec.graph;
    let job = |(job, number): (&pathweave_workload::Job, u32)| {
        let messages = graph.messages().iter().map(|message| (message.job, message.start));
        let computes = graph.computes().iter().map(|compute| (compute.job, compute.start));
        let own = messages.chain(computes).filter(|(of, _)| *of == Some(JobId(number)));
        let first = own.map(|(_, start)| start).min().unwrap_or(Time::ZERO);
        JobRecord {
            job: number,
            name: job.name.clone(),
            group: job.group.0,
            start_ps: done.progress.job_begin(JobId(number)).unwrap_or(first).as_ps(),
            finish_ps: done.job_finish[number as usize].map(Time::as_ps),
        }
    };
    graph.jobs().iter().zip(0..).map(job).collect()
}

fn node_info(topology: &Topology, node: NodeId) -> NodeInfo {
    let switch = topology.switch_index(node).map(|index| &topology.switches()[index]);
    NodeInfo {
        node: node.0,
        name: topology.node_name(node).into_owned(),
        kind: if switch.is_some() { NodeKind::Switch } else { NodeKind::Host },
        tier: switch.map_or(0, |switch| switch.tier),
        pod: switch.and_then(|switch| switch.group),
    }
}

fn links(topology: &Topology, fabric: &Fabric, end: Time) -> Vec<LinkTotals> {
    let tier =
        |node: u32| topology.switch_index(NodeId(node)).map_or(0, |index| topology.switches()[index].tier);
    let total = |(moved, number): (&Moved, u32)| {
        let link = &topology.links()[number as usize / 2];
        let tx_bytes = moved.bytes + WIRE_BYTES * moved.packets;
        LinkTotals {
            link: number,
            name: format!(
                "{}>{}",
                topology.node_name(NodeId(moved.from)),
                topology.node_name(NodeId(moved.to))
            ),
            from_node: moved.from,
            to_node: moved.to,
            tier: tier(moved.from).max(tier(moved.to)),
            rate_bps: link.rate.as_bps(),
            tx_bytes,
            tx_packets: moved.packets,
            busy_ps: link.rate.time_for(tx_bytes).as_ps().min(end.as_ps()),
            dropped_packets: moved.dropped,
            ecn_marked_packets: moved.marked,
            ..LinkTotals::default()
        }
    };
    fabric.0.iter().zip(0..).map(total).collect()
}

/// The faults that were made, as events.
pub(super) fn events(
    schedule: &Schedule,
    faults: &[FaultConfig],
    topology: &Topology,
    scale: RateScale,
    end: Time,
) -> Vec<EventRecord> {
    let number_of = |link: pathweave_topo::LinkId| {
        let named = faults.iter().position(|fault| names(fault, topology).contains(&link));
        named.unwrap_or_default() as f64
    };
    let event = |(at, change): &(std::time::Duration, Change)| {
        let (link, kind) = match *change {
            Change::Link(link, LinkState::Down) => (link, EventKind::Fault),
            Change::Link(link, LinkState::Up) => (link, EventKind::Repair),
            Change::Rate(link, _) | Change::Loss(link, _) => (link, EventKind::Fault),
            Change::Reroute => return None,
        };
        let time_ps = (at.as_secs_f64() * scale.share() * 1e12) as u64;
        let node = topology.link(link).a.0;
        // Directed links are numbered from `a` to `b` first.
        let event = EventRecord {
            time_ps,
            value: number_of(link),
            node,
            link: Some(2 * link.0),
            flow: None,
            kind,
            reason: None,
        };
        (time_ps <= end.as_ps()).then_some(event)
    };
    schedule.changes().iter().filter_map(event).collect()
}

/// The links a fault is about.
fn names(fault: &FaultConfig, topology: &Topology) -> Vec<pathweave_topo::LinkId> {
    match fault {
        FaultConfig::LinkDown { link, .. }
        | FaultConfig::LinkFlap { link, .. }
        | FaultConfig::LinkRate { link, .. }
        | FaultConfig::LinkDelay { link, .. }
        | FaultConfig::LinkLoss { link, .. }
        | FaultConfig::LinkCorruption { link, .. } => topology.link_by_name(link).into_iter().collect(),
        FaultConfig::SwitchDown { switch, .. } => {
            let node = topology.node_by_name(switch);
            node.map(|node| topology.ports(node).iter().map(|port| port.link).collect()).unwrap_or_default()
        }
        FaultConfig::PauseStorm { .. } => Vec::new(),
    }
}
