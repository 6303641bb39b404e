//! A run between two windows, when all parts of it are at rest: what concerns several of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_execution::Execution;
use pathweave_fabric::{Fabric, PortId};
use pathweave_results::{ActivityLabel, ActivityRecord, CriticalStep, FlowRecord, JobRecord};
use pathweave_units::{HostId, Time};

use crate::agenda::{Item, Rank};
use crate::host::{Content, Host};
use crate::mail::Boxes;
use crate::shard::Shard;

/// All parts of a run.
pub(crate) struct Whole<'s, 'a, const C: usize> {
    pub(crate) shards: Vec<MutexGuard<'s, Shard<'a, C>>>,
    boxes: &'s Boxes,
}

/// The records of the workload of a run.
pub(crate) struct Joined {
    pub(crate) flows: Vec<FlowRecord>,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) labels: Vec<ActivityLabel>,
    pub(crate) activities: Vec<ActivityRecord>,
    pub(crate) critical: Vec<CriticalStep>,
}

impl<'s, 'a, const C: usize> Whole<'s, 'a, C> {
    /// To be called between rounds, and dropped before the next.
    pub(crate) fn new(shards: &'s [Mutex<Shard<'a, C>>], boxes: &'s Boxes) -> Self {
        let shards = shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner));
        Whole { shards: shards.collect(), boxes }
    }

    /// The part of a node.
    pub(crate) fn at_node(&mut self, node: u32) -> &mut Shard<'a, C> {
        let part = self.shards[0].place.part_of(node);
        &mut self.shards[usize::from(part)]
    }

    /// The part of a host.
    pub(crate) fn at(&mut self, host: HostId) -> &mut Shard<'a, C> {
        self.at_node(host.0)
    }

    /// The part of the node that a port belongs to.
    pub(crate) fn at_port(&mut self, port: PortId) -> &mut Shard<'a, C> {
        let (node, _) = self.shards[0].network.fabric.ends(port);
        self.at_node(node)
    }

    /// The part of a host, to look at.
    pub(crate) fn part_of(&self, host: HostId) -> &Shard<'a, C> {
        &self.shards[usize::from(self.shards[0].place.part_of(host.0))]
    }

    /// A host, in the part where it is run.
    pub(crate) fn host(&self, host: HostId) -> &Host {
        &self.part_of(host).hosts[host.index()]
    }

    /// All of them, by number.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        (0..self.shards[0].hosts.len() as u32).map(|host| self.host(HostId(host)))
    }

    /// No later than the next thing that happens.
    pub(crate) fn next(&self) -> Time {
        self.shards.iter().map(|shard| shard.next).min().unwrap_or(Time::MAX)
    }

    /// Since when the run waits for nothing more.
    pub(crate) fn over_since(&self) -> Option<Time> {
        Execution::all_over_since(self.shards.iter().map(|shard| &shard.traffic.execution))
    }

    /// Events so far.
    pub(crate) fn events(&self) -> u64 {
        self.shards.iter().map(|shard| shard.events()).sum()
    }

    /// Packets put on a link so far, by host or switch.
    pub(crate) fn packet_hops(&self) -> u64 {
        self.shards.iter().map(|shard| shard.network.fabric.packet_hops()).sum()
    }

    /// The fabric of the part that a node belongs to.
    pub(crate) fn fabric_of(&self, node: u32) -> &Fabric<Content, C> {
        &self.shards[usize::from(self.shards[0].place.part_of(node))].network.fabric
    }

    /// What the parts know of the workload up to `end`, put together. It is taken from them.
    pub(crate) fn join(&mut self, end: Time) -> Joined {
        let (first, others) = self.shards.split_first_mut().expect("there is a part");
        let execution = &mut first.traffic.execution;
        others.iter_mut().for_each(|other| execution.join(&mut other.traffic.execution));
        Joined {
            labels: execution.labels(),
            activities: execution.activity_records(end),
            critical: execution.critical_steps(),
            jobs: execution.job_records(),
            flows: execution.flow_records(),
        }
    }

    /// When the latest event of a host was.
    pub(crate) fn latest(&self) -> Time {
        self.shards.iter().map(|shard| shard.latest).max().unwrap_or(Time::ZERO)
    }

    /// Has every part take in what was sent to it.
    pub(crate) fn deliver(&mut self) {
        for window in 0..2 {
            for shard in &mut self.shards {
                shard.take_in(self.boxes, window);
            }
        }
    }

    /// Delivers what has come about between windows, so that it is known where it belongs before the next one begins.
    pub(crate) fn exchange(&mut self) {
        for shard in &mut self.shards {
            shard.send_out(self.boxes, 0);
        }
        self.deliver();
        self.shards.iter_mut().for_each(|shard| shard.look_ahead());
    }

    /// Does what barriers are due to do before `end`, up to which all hosts have been run, and tells the hosts.
    pub(crate) fn settle_barriers(&mut self, end: Time) {
        let (first, others) = self.shards.split_first_mut().expect("there is a part");
        for other in others {
            for barrier in other.traffic.execution.take_barriers() {
                first.traffic.execution.add_barrier(barrier);
            }
        }
        let Some(at) = first.traffic.execution.barrier() else { return };
        if at >= end {
            first.next = first.next.min(at);
            return;
        }
        first.traffic.execution.settle_barriers(end);
        while let Some(due) = self.shards[0].traffic.execution.news() {
            self.at(due.host).deliver_due(due.at, due.host, Rank::Step(due.step), Item::Step(due.step));
        }
        self.shards[0].look_ahead();
    }
}
