//! All shards of this process, locked between two windows. Operations that span several shards live here. In a run
//! over several processes, a node may belong to another process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_execution::{Outstanding, ScheduledStep, Step};
use pathweave_fabric::PortId;
use pathweave_units::{HostId, Time};

use crate::agenda::{Item, Rank};
use crate::host::Host;
use crate::mailbox::Mailboxes;
use crate::pulse::Progress;
use crate::shard::Shard;

/// All shards of a run that are in this process.
pub(crate) struct LockedShards<'s, 'a, const C: usize> {
    pub(crate) shards: Vec<MutexGuard<'s, Shard<'a, C>>>,
    pub(crate) boxes: &'s Mailboxes,
    /// Number of the first shard of this process.
    first: u16,
}

impl<'s, 'a, const C: usize> LockedShards<'s, 'a, C> {
    /// Locks all shards. Must be called between rounds and dropped before the next round.
    pub(crate) fn new(shards: &'s [Mutex<Shard<'a, C>>], boxes: &'s Mailboxes) -> Self {
        let shards: Vec<_> =
            shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        LockedShards { first: shards[0].place.number, shards, boxes }
    }

    /// Returns the index in `shards` of the shard that owns `node`, if this process runs it.
    #[inline]
    fn index_of(&self, node: u32) -> Option<usize> {
        let part = self.shards[0].place.part_of(node);
        let index = usize::from(part.checked_sub(self.first)?);
        (index < self.shards.len()).then_some(index)
    }

    /// Returns the shard that owns the node, if this process runs it.
    pub(crate) fn shard_of_node(&mut self, node: u32) -> Option<&mut Shard<'a, C>> {
        let index = self.index_of(node)?;
        Some(&mut self.shards[index])
    }

    /// Returns the shard that owns the host, if this process runs it.
    pub(crate) fn shard_of_host(&mut self, host: HostId) -> Option<&mut Shard<'a, C>> {
        self.shard_of_node(host.0)
    }

    /// Returns the shard that owns the node of a port, if this process runs it, and the number of the port there.
    pub(crate) fn shard_of_port(&mut self, port: PortId) -> Option<(&mut Shard<'a, C>, PortId)> {
        let plan = &self.shards[0].network.plan;
        let node = plan.map.node_of(port);
        let number = plan.number_in_own_shard(node, port);
        Some((self.shard_of_node(node)?, number))
    }

    /// Returns the shard that owns the node for reading, if this process runs it.
    pub(crate) fn shard_of_node_ref(&self, node: u32) -> Option<&Shard<'a, C>> {
        Some(&self.shards[self.index_of(node)?])
    }

    /// Returns a host, if this process runs it.
    pub(crate) fn host(&self, host: HostId) -> Option<&Host> {
        Some(&self.shard_of_node_ref(host.0)?.hosts[host.index()])
    }

    /// Iterates over all hosts that this process runs, ordered by number.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        (0..self.shards[0].spec.topology.hosts()).filter_map(|host| self.host(HostId(host)))
    }

    /// Returns the progress of these shards. `barriers` holds steps of barriers that have already been taken from
    /// them.
    pub(crate) fn pulse(&self, barriers: &[(Time, Step)]) -> Progress {
        let mut pulse = Progress {
            next: Time::MAX,
            barrier: barriers.iter().map(|(at, _)| *at).min().unwrap_or(Time::MAX),
            latest: Time::ZERO,
            events: 0,
            packet_hops: 0,
            bytes_done: 0,
            flows_done: 0,
            outstanding: Outstanding::NONE,
            any_paused: false,
            stop: false,
        };
        for shard in &self.shards {
            let (execution, fabric) = (&shard.traffic.execution, &shard.network.fabric);
            pulse.next = pulse.next.min(shard.next);
            pulse.barrier = pulse.barrier.min(execution.barrier().unwrap_or(Time::MAX));
            pulse.latest = pulse.latest.max(shard.latest);
            pulse.events += shard.events();
            pulse.packet_hops += fabric.packet_hops();
            pulse.bytes_done += execution.bytes_done();
            pulse.flows_done += execution.flows_done() as u64;
            pulse.outstanding = pulse.outstanding.merged(execution.outstanding());
        }
        pulse.next = pulse.next.min(pulse.barrier);
        pulse.any_paused =
            pulse.next == Time::MAX && self.shards.iter().any(|shard| shard.network.fabric.any_paused());
        pulse
    }

    /// Number of packets put on links by these shards so far.
    pub(crate) fn packet_hops(&self) -> u64 {
        self.shards.iter().map(|shard| shard.network.fabric.packet_hops()).sum()
    }

    /// Number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.shards.iter().map(|shard| shard.events()).sum()
    }

    /// Delivers to every shard the events that were sent to it.
    pub(crate) fn take_all_in(&mut self) {
        for window in 0..2 {
            for shard in &mut self.shards {
                shard.take_in(self.boxes, window);
            }
        }
    }

    /// Puts events caused between windows into the mailboxes, in the slots of even windows.
    pub(crate) fn send_out(&mut self) {
        for shard in &mut self.shards {
            shard.send_out(self.boxes, 0);
        }
    }

    /// Delivers events sent between windows, so that their times are known to the owning shards before the next
    /// window begins.
    pub(crate) fn take_in(&mut self) {
        self.take_all_in();
        for shard in &mut self.shards {
            shard.sent_due = Time::MAX;
            shard.look_ahead();
        }
    }

    /// Takes the steps of barriers from all shards but the first of the run, which keeps the barriers.
    pub(crate) fn take_barriers(&mut self) -> Vec<(Time, Step)> {
        let others = self.shards.iter_mut().filter(|shard| shard.place.number > 0);
        others.flat_map(|shard| shard.traffic.execution.take_barriers()).collect()
    }

    /// Adds steps of barriers to the first shard of the run, if this process runs it. With `end`, up to which all
    /// hosts have been simulated, also executes the barrier steps due before it. Returns the steps to deliver to
    /// hosts.
    pub(crate) fn settle_barriers(
        &mut self,
        barriers: Vec<(Time, Step)>,
        end: Option<Time>,
    ) -> Vec<ScheduledStep> {
        let first = &mut self.shards[0];
        let number = first.place.number;
        let execution = &mut first.traffic.execution;
        if number > 0 || (barriers.is_empty() && execution.barrier().is_none()) {
            return Vec::new();
        }
        barriers.into_iter().for_each(|barrier| execution.add_barrier(barrier));
        if let Some(end) = end {
            execution.settle_barriers(end);
        }
        let news = std::iter::from_fn(|| execution.next_step()).collect();
        first.look_ahead();
        news
    }

    /// Delivers steps that barriers have caused to the hosts of this process.
    pub(crate) fn deliver_steps(&mut self, news: &[ScheduledStep]) {
        for due in news {
            if let Some(shard) = self.shard_of_host(due.host) {
                shard.deliver_due(due.at, due.host, Rank::Step(due.step), Item::Step(due.step));
            }
        }
    }
}
