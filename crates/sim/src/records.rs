//! Records of a run, derived from its state at the end. Each rank sends the state of its nodes to the lead.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use pathweave_fabric::{ForwardingStats, MiddleboxStats, PortId};
use pathweave_records::{
    ActivityLabel, ActivityRecord, BalancingTotals, CriticalStep, EndReason, FlowRecord, JobRecord,
    LinkTotals, RunInfo, RunResult, SeriesSample,
};
use pathweave_topo::{NodeId, PortRef};
use pathweave_units::{HostId, Time};

use crate::busy::BusyTimes;
use crate::coordinator::{Coordinator, FlowOutput};
use crate::departures::{self, DepartureLog};
use crate::digest::{Trace, digest};
use crate::edge;
use crate::footprint::Weight;
use crate::groups::GroupSums;
use crate::locked_shards::LockedShards;
use crate::network::Network;
use crate::pulse::Progress;
use crate::samples;
use crate::shard::Shard;
use crate::spec::RouteChoice;

/// State that a rank other than the lead has at the end of the run.
#[derive(Default, BorshSerialize, BorshDeserialize)]
struct Share {
    /// Running hashes, by host.
    traces: BTreeMap<HostId, Trace>,
    departures: BTreeMap<HostId, DepartureLog>,
    /// Traffic by egress port.
    carried: BTreeMap<u32, Carried>,
    /// Packets lost, by port. A loss on a link is detected at its far end.
    dropped: BTreeMap<u32, u64>,
    /// Counters of middleboxes, by switch.
    middleboxes: BTreeMap<u32, MiddleboxStats>,
    balancing: ForwardingStats,
    groups: Vec<GroupSums>,
    samples: Vec<SeriesSample>,
    weight: Weight,
    /// CPU time of all threads but the main one, in seconds.
    cpu_s: f64,
    /// State of the workload in each shard, serialized.
    executions: Vec<Vec<u8>>,
}

/// Traffic of a directed link.
#[derive(Clone, Copy, Default, BorshSerialize, BorshDeserialize)]
struct Carried {
    tx_bytes: u64,
    tx_packets: u64,
    busy_ps: u64,
    marked_packets: u64,
    trimmed_packets: u64,
    pauses: u64,
    paused_ps: u64,
    max_queue_bytes: u64,
}

/// End of a run: the reason, a description, and the time.
pub(crate) type End = (EndReason, String, Time);

impl Share {
    fn add(&mut self, mut other: Share) {
        self.traces.append(&mut other.traces);
        self.departures.append(&mut other.departures);
        self.carried.append(&mut other.carried);
        for (port, packets) in other.dropped {
            *self.dropped.entry(port).or_default() += packets;
        }
        self.middleboxes.append(&mut other.middleboxes);
        self.balancing += &other.balancing;
        for (sums, theirs) in self.groups.iter_mut().zip(&other.groups) {
            sums.add(theirs);
        }
        self.samples.append(&mut other.samples);
        self.weight.join(&other.weight);
        self.cpu_s += other.cpu_s;
        self.executions.append(&mut other.executions);
    }
}

impl Coordinator<'_> {
    /// Returns the records of a finished run at the lead, and the memory of all shards. `cpu_s` is the CPU time of
    /// the other threads of this process, in seconds.
    pub(crate) fn into_result<const C: usize>(
        mut self,
        whole: &mut LockedShards<'_, '_, C>,
        (ended, ended_detail, end): End,
        (pulse, cpu_s): (Progress, f64),
    ) -> Option<(RunResult, Weight)> {
        whole.shards.iter_mut().for_each(|shard| shard.settle_open());
        let nodes = if self.meeting.is_lead() { Share::default() } else { whole.share(end, &self.busy) };
        let own = Share {
            balancing: whole.balancing(),
            groups: std::mem::take(&mut self.group_sums),
            samples: std::mem::take(&mut self.recorder.samples).into_list(),
            weight: whole.weigh(),
            cpu_s,
            ..nodes
        };
        let all = self.meeting.gather(own).into_iter().reduce(|mut all, share| {
            all.add(share);
            all
        })?;
        let spec = self.spec;
        let links = links(whole, &all, end, &self.busy);
        let joined = whole.join(&all.executions, end, &mut self.leaving);
        let sets = match &spec.routing {
            RouteChoice::Switches | RouteChoice::SenderSwitches(_) | RouteChoice::NextHops(_) => None,
            RouteChoice::Sources(sets) => Some(&**sets),
        };
        let (events, events_not_recorded) = std::mem::take(&mut self.recorder.events).into_list();
        let hosts = || (0..spec.topology.hosts()).map(HostId);
        let log = |host| match whole.host(host) {
            Some(host) => host.departures.as_deref(),
            None => all.departures.get(&host),
        };
        let departures = departures::totals(hosts().filter_map(|host| Some((host, log(host)?))), sets);
        let trace = |host| whole.host(host).map_or_else(|| all.traces[&host], |host| host.delivered);
        let first_switch = spec.topology.hosts();
        let middlebox = |index| match whole.shard_of_node_ref(first_switch + index) {
            Some(shard) => shard.network.fabric.middlebox_stats(index),
            None => all.middleboxes.get(&index).copied(),
        };
        let result = RunResult {
            info: RunInfo {
                digest: digest(hosts().map(trace).chain([self.lost])),
                simulated_ps: end.as_ps(),
                events: pulse.events,
                packet_hops: pulse.packet_hops,
                cpu_s: all.cpu_s,
                ended,
                ended_detail,
                ..spec.run_info()
            },
            groups: all.groups.iter().map(GroupSums::totals).collect(),
            series: samples::of_all_ranks(all.samples),
            events,
            events_not_recorded,
            nodes: spec.node_infos(),
            links,
            jobs: joined.jobs,
            labels: joined.labels,
            activities: joined.activities,
            critical: joined.critical,
            balancing: totals(&all.balancing),
            middleboxes: edge::totals(&spec.topology, middlebox),
            departures,
            waits: std::mem::take(&mut self.leaving.waits).into_records(spec, end),
            flows: joined.flows,
            streamed: None,
        };
        Some((result, all.weight))
    }
}

/// Records of the workload of a run.
struct Joined {
    flows: Vec<FlowRecord>,
    jobs: Vec<JobRecord>,
    labels: Vec<ActivityLabel>,
    activities: Vec<ActivityRecord>,
    critical: Vec<CriticalStep>,
}

impl<const C: usize> LockedShards<'_, '_, C> {
    /// Returns the per-node state of this rank. The lead reads its own nodes directly and needs it only from other
    /// ranks.
    fn share(&mut self, end: Time, busy: &BusyTimes) -> Share {
        let hosts = || self.hosts().map(|host| (host.nic.host, host));
        let mut share = Share {
            traces: hosts().map(|(id, host)| (id, host.delivered)).collect(),
            departures: hosts()
                .filter_map(|(id, host)| Some((id, host.departures.as_deref()?.clone())))
                .collect(),
            ..Share::default()
        };
        let spec = self.shards[0].spec;
        for node in 0..spec.topology.nodes() {
            for port in self.shards[0].network.plan.map.ports(node) {
                let dropped = self.dropped(node, port);
                if dropped > 0 {
                    share.dropped.insert(port, dropped);
                }
                share.carried.extend(self.carried(node, port, end, busy).map(|carried| (port, carried)));
            }
        }
        for index in 0..spec.topology.switches().len() as u32 {
            let at = self.shard_of_node_ref(spec.topology.hosts() + index);
            let stats = at.and_then(|shard| shard.network.fabric.middlebox_stats(index));
            share.middleboxes.extend(stats.map(|stats| (index, stats)));
        }
        share.executions = self
            .shards
            .iter()
            .map(|shard| {
                let mut packed = Vec::new();
                shard.traffic.execution.pack(&mut packed).expect("memory takes what is written to it");
                packed
            })
            .collect();
        share
    }

    /// Returns the traffic of a link until `end`, if this process owns `node`, which sends by `port`.
    fn carried(&mut self, node: u32, port: PortId, end: Time, busy: &BusyTimes) -> Option<Carried> {
        let network = &mut self.shard_of_node(node)?.network;
        let own = network.plan.number_in_own_shard(node, port);
        let fabric = &mut network.fabric;
        fabric.settle(end, own);
        let stats = fabric.stats(own);
        Some(Carried {
            tx_bytes: stats.tx_bytes,
            tx_packets: stats.tx_packets,
            busy_ps: busy.of(port, stats.tx_bytes, fabric.link(own).0).as_ps(),
            marked_packets: stats.marked_packets,
            trimmed_packets: stats.trimmed_packets,
            pauses: stats.pauses,
            paused_ps: fabric.paused_time(own, end).as_ps(),
            max_queue_bytes: stats.max_queue_bytes,
        })
    }

    /// Returns the packets lost at a port of `node` or on its link, as counted by the shards of this process.
    fn dropped(&self, node: u32, port: PortId) -> u64 {
        let in_shard = |shard: &Shard<'_, C>| {
            let Network { plan, fabric, .. } = &shard.network;
            let held = match shard.place.has(node) {
                true => Some(plan.number_in_own_shard(node, port)),
                false => fabric.numbers().far(port),
            };
            held.map_or(0, |held| fabric.stats(held).dropped_packets)
        };
        self.shards.iter().map(|shard| in_shard(shard)).sum()
    }

    fn balancing(&self) -> ForwardingStats {
        let mut stats = ForwardingStats::default();
        self.shards.iter().for_each(|shard| stats += shard.network.fabric.forwarding());
        stats
    }

    fn weigh(&self) -> Weight {
        let mut weight = Weight::default();
        self.shards.iter().for_each(|shard| weight.add(shard));
        weight
    }

    /// Combines the workload state of all shards up to `end`, including the serialized state of other ranks, and
    /// returns its records. The state of the shards is consumed.
    fn join(&mut self, others: &[Vec<u8>], end: Time, leaving: &mut FlowOutput<'_>) -> Joined {
        let (first, rest) = self.shards.split_first_mut().expect("there is a part");
        let execution = &mut first.traffic.execution;
        rest.iter_mut().for_each(|other| execution.merge(&mut other.traffic.execution));
        for mut packed in others.iter().map(Vec::as_slice) {
            let joined = execution.merge_packed(&mut packed);
            joined.unwrap_or_else(|why| {
                panic!("what another rank knows of the workload cannot be read: {why}")
            });
        }
        Joined {
            labels: execution.labels(),
            activities: execution.activity_records(end),
            critical: execution.critical_steps(),
            jobs: execution.job_records(),
            flows: leaving.emit_rest(execution),
        }
    }
}

fn totals(stats: &ForwardingStats) -> BalancingTotals {
    BalancingTotals {
        flowlets: stats.flowlets,
        reroutes: stats.reroutes,
        held_packets: stats.held_packets,
        unheld_packets: stats.unheld_packets,
        late_flushes: stats.late_flushes,
        untracked_packets: stats.untracked_packets,
        message_packets: stats.messages,
    }
}

/// Returns the totals of each directed link, numbered by egress port. `others` holds the state of the other ranks.
fn links<const C: usize>(
    whole: &mut LockedShards<'_, '_, C>,
    others: &Share,
    end: Time,
    busy: &BusyTimes,
) -> Vec<LinkTotals> {
    let spec = whole.shards[0].spec;
    let plan = whole.shards[0].network.plan.clone();
    let mut totals = |node: u32, port: PortId, to: &PortRef| {
        let carried = whole.carried(node, port, end, busy).unwrap_or_else(|| others.carried[&port]);
        let elsewhere = others.dropped.get(&port).copied().unwrap_or(0);
        LinkTotals {
            tx_bytes: carried.tx_bytes,
            tx_packets: carried.tx_packets,
            busy_ps: carried.busy_ps.min(end.as_ps()),
            dropped_packets: whole.dropped(node, port) + elsewhere,
            ecn_marked_packets: carried.marked_packets,
            trimmed_packets: carried.trimmed_packets,
            pfc_pauses: carried.pauses,
            paused_ps: carried.paused_ps,
            max_queue_bytes: carried.max_queue_bytes,
            ..spec.link_totals(port, to.link, to.is_a)
        }
    };
    let mut all = Vec::with_capacity(plan.map.len() as usize);
    for node in 0..spec.topology.nodes() {
        let ports = plan.map.ports(node).zip(spec.topology.ports(NodeId(node)));
        all.extend(ports.map(|(port, to)| totals(node, port, to)));
    }
    all
}
