//! A run between two windows, when all parts of it are at rest: what concerns several of them. Of a run over several processes
//! these are the parts of one; the node that is asked for may belong to another.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pathweave_execution::{Due, Outstanding, Step};
use pathweave_fabric::PortId;
use pathweave_units::{HostId, Time};

use crate::agenda::{Item, Rank};
use crate::host::Host;
use crate::mail::Boxes;
use crate::pulse::Pulse;
use crate::shard::Shard;

/// All parts of a run that are in this process.
pub(crate) struct Whole<'s, 'a, const C: usize> {
    pub(crate) shards: Vec<MutexGuard<'s, Shard<'a, C>>>,
    pub(crate) boxes: &'s Boxes,
    /// The number of the first of them.
    first: u16,
}

impl<'s, 'a, const C: usize> Whole<'s, 'a, C> {
    /// To be called between rounds, and dropped before the next.
    pub(crate) fn new(shards: &'s [Mutex<Shard<'a, C>>], boxes: &'s Boxes) -> Self {
        let shards: Vec<_> =
            shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        Whole { first: shards[0].place.number, shards, boxes }
    }

    /// Where in `shards` the part of a node is, if it is here.
    #[inline]
    fn index_of(&self, node: u32) -> Option<usize> {
        let part = self.shards[0].place.part_of(node);
        let index = usize::from(part.checked_sub(self.first)?);
        (index < self.shards.len()).then_some(index)
    }

    /// The part of a node, if it is here.
    pub(crate) fn at_node(&mut self, node: u32) -> Option<&mut Shard<'a, C>> {
        let index = self.index_of(node)?;
        Some(&mut self.shards[index])
    }

    /// The part of a host, if it is here.
    pub(crate) fn at(&mut self, host: HostId) -> Option<&mut Shard<'a, C>> {
        self.at_node(host.0)
    }

    /// The part of the node that a port belongs to, if it is here.
    pub(crate) fn at_port(&mut self, port: PortId) -> Option<&mut Shard<'a, C>> {
        let (node, _) = self.shards[0].network.fabric.ends(port);
        self.at_node(node)
    }

    /// The part of a node, to look at.
    pub(crate) fn part_of(&self, node: u32) -> Option<&Shard<'a, C>> {
        Some(&self.shards[self.index_of(node)?])
    }

    /// A host, in the part where it is run.
    pub(crate) fn host(&self, host: HostId) -> Option<&Host> {
        Some(&self.part_of(host.0)?.hosts[host.index()])
    }

    /// All that are run here, by number.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &Host> {
        (0..self.shards[0].spec.topology.hosts()).filter_map(|host| self.host(HostId(host)))
    }

    /// How far these parts have come, of which `barriers` have been taken.
    pub(crate) fn pulse(&self, barriers: &[(Time, Step)]) -> Pulse {
        let mut pulse = Pulse {
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
            pulse.outstanding = pulse.outstanding.and(execution.outstanding());
        }
        pulse.next = pulse.next.min(pulse.barrier);
        pulse.any_paused =
            pulse.next == Time::MAX && self.shards.iter().any(|shard| shard.network.fabric.any_paused());
        pulse
    }

    /// Packets put on links here so far.
    pub(crate) fn packet_hops(&self) -> u64 {
        self.shards.iter().map(|shard| shard.network.fabric.packet_hops()).sum()
    }

    /// Events so far.
    pub(crate) fn events(&self) -> u64 {
        self.shards.iter().map(|shard| shard.events()).sum()
    }

    /// Has every part take in what was sent to it.
    pub(crate) fn deliver(&mut self) {
        for window in 0..2 {
            for shard in &mut self.shards {
                shard.take_in(self.boxes, window);
            }
        }
    }

    /// Puts what has come about between windows into the mail boxes, as if it had in a window of even number.
    pub(crate) fn send_out(&mut self) {
        for shard in &mut self.shards {
            shard.send_out(self.boxes, 0);
        }
    }

    /// Has every part take in what was sent between windows, so that it is known where it belongs before the next one begins.
    pub(crate) fn take_in(&mut self) {
        self.deliver();
        for shard in &mut self.shards {
            shard.sent_due = Time::MAX;
            shard.look_ahead();
        }
    }

    /// Takes the steps of barriers from all parts but the first of the run, where barriers are.
    pub(crate) fn take_barriers(&mut self) -> Vec<(Time, Step)> {
        let others = self.shards.iter_mut().filter(|shard| shard.place.number > 0);
        others.flat_map(|shard| shard.traffic.execution.take_barriers()).collect()
    }

    /// Adds steps of barriers to the first part of the run, if that is here, and does what they are due to do before `end`, up
    /// to which all hosts have been run. Returns what hosts are to be told of it.
    pub(crate) fn settle_barriers(&mut self, barriers: Vec<(Time, Step)>, end: Option<Time>) -> Vec<Due> {
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
        let news = std::iter::from_fn(|| execution.news()).collect();
        first.look_ahead();
        news
    }

    /// Tells the hosts that are here what barriers have led to.
    pub(crate) fn tell(&mut self, news: &[Due]) {
        for due in news {
            if let Some(shard) = self.at(due.host) {
                shard.deliver_due(due.at, due.host, Rank::Step(due.step), Item::Step(due.step));
            }
        }
    }
}
