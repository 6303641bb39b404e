//! The receiver's leaf: holds packets that have overtaken the TAIL.

use std::collections::BTreeMap;

use pathweave_units::{Duration, Time};

use super::config::ConWeaveConfig;
use super::{Flag, Tag};
use crate::forwarding::flow_table::{Entry, FlowKey, FlowTable};
use crate::forwarding::view::ForwardingStats;
use crate::packet::{Header, PortId};

/// State of a flow at the receiver's leaf.
#[derive(Clone, Copy, Debug)]
struct Flow {
    key: FlowKey,
    active: Time,
    stale_after: Duration,
    epoch: u32,
    /// True once the TAIL of the epoch has arrived. Packets sent after it are then in order.
    tail_came: bool,
    /// True while packets of the flow are held.
    holding: bool,
    /// Times at which the latest packet of the old path was sent and arrived.
    old_way: Option<(Time, Time)>,
    /// Time at which the TAIL was sent.
    tail_sent: Time,
}

impl Entry for Flow {
    fn key(&self) -> FlowKey {
        self.key
    }
    fn is_stale(&self, now: Time) -> bool {
        !self.holding && now.saturating_since(self.active) > self.stale_after
    }
}

/// A reorder queue.
#[derive(Debug)]
struct Queue {
    egress: PortId,
    /// Time at which the queue is flushed even if the TAIL has not arrived.
    flush_at: Time,
    packets: Vec<Header>,
}

/// Decision for an arriving packet and for the packets held until now, with their egress ports.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ArrivalDecision {
    /// True if the packet is held. Otherwise it leaves.
    pub(super) hold: bool,
    /// Held packets that leave before it.
    pub(super) before: Vec<(PortId, Header)>,
    /// Held packets that leave after it.
    pub(super) after: Vec<(PortId, Header)>,
}

pub(super) struct Destination {
    flows: FlowTable<Flow>,
    queues: BTreeMap<FlowKey, Queue>,
    /// Earliest flush time of all queues.
    next_flush: Time,
}

impl Destination {
    pub(super) fn new(entries: u32) -> Self {
        Destination { flows: FlowTable::new(entries), queues: BTreeMap::new(), next_flush: Time::MAX }
    }

    pub(super) fn next_flush(&self) -> Time {
        self.next_flush
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Header> {
        self.queues.values().flat_map(|queue| &queue.packets)
    }

    /// Handles the arrival of a packet that leaves by `egress`.
    pub(super) fn arrive(
        &mut self,
        header: &Header,
        egress: PortId,
        tag: &Tag,
        now: Time,
        config: &ConWeaveConfig,
        stats: &mut ForwardingStats,
    ) -> ArrivalDecision {
        let key = FlowKey::from_header(header);
        let fresh = || Flow {
            key,
            active: now,
            stale_after: config.stale_after,
            epoch: 0,
            tail_came: false,
            holding: false,
            old_way: None,
            tail_sent: Time::ZERO,
        };
        let Some(flow) = self.flows.get_or_insert(key, now, fresh) else {
            stats.untracked_packets += 1;
            return ArrivalDecision::default();
        };
        flow.active = now;
        let mut verdict = ArrivalDecision::default();
        if tag.epoch < flow.epoch {
            // The packet belongs to a former epoch.
            return verdict;
        }
        if tag.epoch > flow.epoch {
            // Packets of a former epoch are held. The source considered the flow idle, so their TAIL is lost.
            if std::mem::take(&mut flow.holding) {
                stats.late_flushes += 1;
                verdict.before = Self::take(&mut self.queues, &mut self.next_flush, key);
            }
            flow.epoch = tag.epoch;
            flow.tail_came = false;
            flow.old_way = None;
        }
        if tag.rerouted {
            flow.tail_sent = tag.tail_sent;
            let early = !flow.tail_came;
            verdict.hold = early && self.hold(key, header, egress, now, config, stats);
            return verdict;
        }
        flow.old_way = Some((tag.sent, now));
        if tag.flag == Flag::Tail {
            flow.tail_came = true;
            if std::mem::take(&mut flow.holding) {
                verdict.after = Self::take(&mut self.queues, &mut self.next_flush, key);
            }
        } else if flow.holding {
            // A packet of the old path has arrived: the TAIL is expected to take as long as this packet took.
            let due = now + flow.tail_sent.saturating_since(tag.sent) + config.flush_extra;
            self.queues.get_mut(&key).expect("it holds packets").flush_at = due;
            self.note_next_flush();
        }
        verdict
    }

    /// Holds a packet of the new path that has arrived before the TAIL. Returns false if no queue is free.
    fn hold(
        &mut self,
        key: FlowKey,
        header: &Header,
        egress: PortId,
        now: Time,
        config: &ConWeaveConfig,
        stats: &mut ForwardingStats,
    ) -> bool {
        let flow = self.flows.get(key).expect("it was just looked up");
        if !flow.holding {
            let taken = self.queues.values().filter(|queue| queue.egress == egress).count();
            if taken >= config.reorder_queues as usize {
                stats.unheld_packets += 1;
                return false;
            }
            flow.holding = true;
            let due = match flow.old_way {
                Some((sent, came)) => came + flow.tail_sent.saturating_since(sent),
                None => now + config.flush_default,
            };
            let flush_at = (due + config.flush_extra).max(now);
            self.queues.insert(key, Queue { egress, flush_at, packets: Vec::new() });
            self.next_flush = self.next_flush.min(flush_at);
        }
        self.queues.get_mut(&key).expect("it holds packets").packets.push(*header);
        stats.held_packets += 1;
        true
    }

    /// Removes the packet held last, because it did not fit in the buffer.
    pub(super) fn drop_last_held(&mut self, key: FlowKey) {
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.packets.pop();
        }
    }

    /// Empties a queue that is due and returns its packets.
    pub(super) fn flush(&mut self, now: Time) -> Vec<(PortId, Header)> {
        let due = self.queues.iter().find(|(_, queue)| queue.flush_at <= now).map(|(key, _)| *key);
        let Some(key) = due else { return Vec::new() };
        if let Some(flow) = self.flows.get(key) {
            flow.holding = false;
            flow.tail_came = true;
        }
        Self::take(&mut self.queues, &mut self.next_flush, key)
    }

    fn take(
        queues: &mut BTreeMap<FlowKey, Queue>,
        next_flush: &mut Time,
        key: FlowKey,
    ) -> Vec<(PortId, Header)> {
        let queue = queues.remove(&key).expect("it holds packets");
        *next_flush = queues.values().map(|queue| queue.flush_at).min().unwrap_or(Time::MAX);
        queue.packets.into_iter().map(|header| (queue.egress, header)).collect()
    }

    fn note_next_flush(&mut self) {
        self.next_flush = self.queues.values().map(|queue| queue.flush_at).min().unwrap_or(Time::MAX);
    }
}
