//! The leaf of a flow's sender: probes, and changes of way.

use pathweave_units::{Duration, Time};

use super::Flag;
use super::message::{Kind, Message};
use crate::forwarding::ForwardingStats;
use crate::forwarding::config::ConWeaveConfig;
use crate::forwarding::flow_table::{Entry, FlowKey, FlowTable};
use crate::port::PortId;

/// What the leaf knows of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    key: FlowKey,
    /// When its last packet came.
    active: Time,
    idle_after: Duration,
    epoch: u32,
    /// The TAIL of this epoch is on its way.
    rerouted: bool,
    /// The probe or the TAIL of this epoch was answered in time: the next packet begins another.
    settled: bool,
    /// When the answer to the probe is late; [`Time::MAX`] where none is awaited.
    reply_by: Time,
    port: PortId,
    tail_sent: Time,
}

impl Entry for Flow {
    fn key(&self) -> FlowKey {
        self.key
    }
    fn is_stale(&self, now: Time) -> bool {
        now.saturating_since(self.active) > self.idle_after
    }
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) port: PortId,
    pub(super) epoch: u32,
    pub(super) rerouted: bool,
    pub(super) flag: Flag,
    pub(super) tail_sent: Time,
}

pub(super) struct Source {
    flows: FlowTable<Flow>,
    /// Epochs begun; their numbers.
    epochs: u32,
    /// By leaf and uplink: until when it is to be left alone.
    paused: Vec<Vec<Time>>,
}

const NO_PORT: PortId = PortId::MAX;

impl Source {
    pub(super) fn new(entries: u32) -> Self {
        Source { flows: FlowTable::new(entries), epochs: 0, paused: Vec::new() }
    }

    /// A packet for leaf `to` leaves by one of the ports that `pick` draws two of (the leaf's first is `first`). `None`
    /// where the table has no room for its flow.
    pub(super) fn depart(
        &mut self,
        key: FlowKey,
        (to, first): (u32, PortId),
        now: Time,
        config: &ConWeaveConfig,
        pick: &mut dyn FnMut() -> [PortId; 2],
        leads_there: impl Fn(PortId) -> bool,
        stats: &mut ForwardingStats,
    ) -> Option<Leaving> {
        let fresh = || Flow {
            key,
            active: Time::ZERO,
            idle_after: config.idle_after,
            epoch: 0,
            rerouted: false,
            settled: false,
            reply_by: Time::MAX,
            port: NO_PORT,
            tail_sent: Time::ZERO,
        };
        let flow = self.flows.get_or_insert(key, now, fresh)?;
        let paused = self.paused.get(to as usize);
        let mut good_port = || {
            let free = |port: PortId| {
                paused.and_then(|of| of.get((port - first) as usize)).is_none_or(|until| *until <= now)
            };
            let drawn = pick();
            // A new flow, or one whose way is gone, has to go somewhere.
            (drawn.into_iter().find(|&port| free(port)), drawn[0])
        };
        let new = flow.port == NO_PORT;
        let idle = new || now.saturating_since(flow.active) > config.idle_after;
        let settled = std::mem::take(&mut flow.settled);
        flow.active = now;
        let mut flag = Flag::Data;
        let (mut port, mut rerouted) = (flow.port, flow.rerouted);
        if idle || settled {
            self.epochs = self.epochs.wrapping_add(1).max(1);
            flow.epoch = self.epochs;
            flow.rerouted = false;
            flow.tail_sent = Time::ZERO;
            (flag, rerouted) = (Flag::Probe, false);
            if idle {
                // Nothing of it is under way: it may change without more ado.
                let (good, any) = good_port();
                flow.port = good.unwrap_or(if new { any } else { flow.port });
                stats.reroutes += u64::from(!new && flow.port != port);
                port = flow.port;
            }
        } else if flow.reply_by < now {
            // This packet is the last on the old way; the next takes the new one.
            flag = Flag::Tail;
            flow.reply_by = Time::MAX;
            flow.rerouted = true;
            flow.tail_sent = now;
            flow.port = good_port().0.unwrap_or(port);
            stats.reroutes += u64::from(flow.port != port);
        }
        if !leads_there(port) {
            // Routing has taken the way from it. What was on it is lost or late; order is not to be had.
            let (good, any) = good_port();
            flow.port = good.unwrap_or(any);
            port = flow.port;
            stats.reroutes += 1;
        }
        let tail_sent = flow.tail_sent;
        Some(Leaving { port, epoch: flow.epoch, rerouted, flag, tail_sent })
    }

    /// The probe of a flow just sent is to be answered until then.
    pub(super) fn expect_reply(&mut self, key: FlowKey, by: Time) {
        if let Some(flow) = self.flows.get(key) {
            flow.reply_by = by;
        }
    }

    pub(super) fn on_message(&mut self, message: &Message, now: Time, pause: Duration) {
        if message.kind == Kind::Notify {
            let leaf = message.leaf as usize;
            if self.paused.len() <= leaf {
                self.paused.resize(leaf + 1, Vec::new());
            }
            let uplinks = &mut self.paused[leaf];
            let uplink = usize::from(message.uplink);
            if uplinks.len() <= uplink {
                uplinks.resize(uplink + 1, Time::ZERO);
            }
            uplinks[uplink] = now + pause;
            return;
        }
        let Some(flow) = self.flows.get(message.key) else { return };
        let of_tail = message.kind == Kind::Clear;
        // What comes late, or from an epoch that is over, says nothing.
        let in_time = of_tail || now < flow.reply_by && flow.reply_by != Time::MAX;
        if message.epoch == flow.epoch && of_tail == flow.rerouted && in_time {
            flow.settled = true;
            flow.reply_by = Time::MAX;
        }
    }
}
