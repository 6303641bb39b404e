//! Conversion of a finished run to its records.

use pathweave_fabric::config::FaultConfig;
use pathweave_records::{EventKind, EventRecord, Fidelity, LinkTotals, QueueRecords, RunInfo, RunResult};
use pathweave_sim::SimSpec;
use pathweave_topo::{LinkId, NodeId, Topology};
use pathweave_units::Time;

use super::traffic::Done;
use crate::error::LabError;
use crate::lab::{Lab, LinkState};
use crate::schedule::{Change, Schedule};
use crate::settings::RateScale;

/// Bytes that a link adds to a frame as the kernel counts it: preamble 8, check sequence 4, gap 12.
pub(super) const WIRE_BYTES: u64 = 24;

/// Counters of all directed links: for each link from `a` to `b`, then back.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LinkCounters(Vec<DirectedLinkCounters>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DirectedLinkCounters {
    from: u32,
    to: u32,
    packets: u64,
    bytes: u64,
    dropped: u64,
    marked: u64,
}

impl LinkCounters {
    pub(super) fn read(lab: &Lab) -> Result<LinkCounters, LabError> {
        let mut links = vec![DirectedLinkCounters::default(); 2 * lab.plan().topology().links().len()];
        for node in (0..lab.plan().topology().nodes()).map(NodeId) {
            let marked = lab.marked(node)?;
            for port in lab.counters(node)? {
                let is_a = lab.plan().ends(port.link)[0] == (node, port.port);
                links[2 * port.link.index() + usize::from(!is_a)] = DirectedLinkCounters {
                    from: node.0,
                    to: lab.plan().node(node).ports[usize::from(port.port)].peer.0,
                    packets: port.counters.sent_packets,
                    bytes: port.counters.sent_bytes,
                    dropped: port.dropped_packets,
                    marked: marked[usize::from(port.port)],
                };
            }
        }
        Ok(LinkCounters(links))
    }

    pub(super) fn since(self, before: &LinkCounters) -> LinkCounters {
        let since = |(now, before): (DirectedLinkCounters, &DirectedLinkCounters)| DirectedLinkCounters {
            packets: now.packets.saturating_sub(before.packets),
            bytes: now.bytes.saturating_sub(before.bytes),
            dropped: now.dropped.saturating_sub(before.dropped),
            marked: now.marked.saturating_sub(before.marked),
            ..now
        };
        LinkCounters(self.0.into_iter().zip(&before.0).map(since).collect())
    }
}

pub(super) fn result(spec: &SimSpec, done: Done, fabric: LinkCounters, end: Time) -> RunResult {
    RunResult {
        info: RunInfo {
            // A lab carries packets, even if the scenario asks for a flow simulation.
            fidelity: Fidelity::Packet,
            queues: QueueRecords::Unknown,
            simulated_ps: end.as_ps(),
            packet_hops: fabric.0.iter().map(|moved| moved.packets).sum(),
            ..spec.run_info()
        },
        flows: done.flows,
        nodes: spec.node_infos(),
        links: links(spec, &fabric, end),
        jobs: done.jobs,
        labels: done.labels,
        activities: done.activities,
        critical: done.critical,
        ..RunResult::default()
    }
}

fn links(spec: &SimSpec, fabric: &LinkCounters, end: Time) -> Vec<LinkTotals> {
    let total = |(moved, number): (&DirectedLinkCounters, u32)| {
        let link = &spec.topology.links()[number as usize / 2];
        let rate = link.rate;
        let tx_bytes = moved.bytes + WIRE_BYTES * moved.packets;
        LinkTotals {
            tx_bytes,
            tx_packets: moved.packets,
            busy_ps: rate.time_for(tx_bytes).as_ps().min(end.as_ps()),
            dropped_packets: moved.dropped,
            ecn_marked_packets: moved.marked,
            ..spec.link_totals(number, LinkId(number / 2), link.a.0 == moved.from)
        }
    };
    fabric.0.iter().zip(0..).map(total).collect()
}

/// Returns the faults that were applied, as events.
pub(super) fn events(
    schedule: &Schedule,
    faults: &[FaultConfig],
    topology: &Topology,
    scale: RateScale,
    end: Time,
) -> Vec<EventRecord> {
    let number_of = |link: LinkId| {
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
            value: number_of(link),
            link: Some(2 * link.0),
            ..EventRecord::new(time_ps, kind, node)
        };
        (time_ps <= end.as_ps()).then_some(event)
    };
    schedule.changes().iter().filter_map(event).collect()
}

/// Returns the links of a fault.
fn names(fault: &FaultConfig, topology: &Topology) -> Vec<LinkId> {
    match fault {
        FaultConfig::LinkDown { link, .. }
        | FaultConfig::LinkFlap { link, .. }
        | FaultConfig::LinkRate { link, .. }
        | FaultConfig::LinkDelay { link, .. }
        | FaultConfig::LinkLoss { link, .. }
        | FaultConfig::LinkCorruption { link, .. } => {
            topology.ways_by_name(link).into_iter().map(|(link, _)| link).collect()
        }
        FaultConfig::SwitchDown { switch, .. } => {
            let node = topology.node_by_name(switch);
            node.map(|node| topology.ports(node).iter().map(|port| port.link).collect()).unwrap_or_default()
        }
        FaultConfig::PauseStorm { .. } => Vec::new(),
    }
}
