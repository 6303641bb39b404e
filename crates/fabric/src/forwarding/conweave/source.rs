//! The sender's leaf: sends probes, and changes the paths of flows.

use pathweave_units::{Duration, Time};

use super::Flag;
use super::config::ConWeaveConfig;
use super::message::{Kind, Message};
use crate::forwarding::dice::SwitchDice;
use crate::forwarding::flow_table::{Entry, FlowKey, FlowTable};
use crate::forwarding::routes::Candidates;
use crate::forwarding::view::ForwardingStats;
use crate::packet::PortId;

/// State of a flow at the sender's leaf.
#[derive(Clone, Copy, Debug)]
struct Flow {
    key: FlowKey,
    /// Time of the flow's last packet.
    active: Time,
    idle_after: Duration,
    epoch: u32,
    /// True once the TAIL of this epoch has been sent.
    rerouted: bool,
    /// True if the probe or the TAIL of this epoch was answered in time. The next packet then begins an epoch.
    settled: bool,
    /// Time after which the reply to the probe is late; [`Time::MAX`] if no reply is awaited.
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

/// Egress port and tag of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) port: PortId,
    pub(super) epoch: u32,
    pub(super) rerouted: bool,
    pub(super) flag: Flag,
    pub(super) tail_sent: Time,
}

/// Uplinks among which a flow may choose.
pub(super) struct Uplinks<'a> {
    /// Leaf of the receiver.
    pub(super) to: u32,
    pub(super) switch: u32,
    /// First port of the sender's leaf, from which uplinks are counted.
    pub(super) first: PortId,
    pub(super) all: Candidates<'a>,
    pub(super) dice: &'a mut SwitchDice,
}

pub(super) struct Source {
    flows: FlowTable<Flow>,
    /// Number of epochs begun. It is the number of the latest epoch.
    epochs: u32,
    /// Time until which each uplink is to be avoided, by leaf of the receiver and uplink.
    paused: Vec<Vec<Time>>,
}

const NO_PORT: PortId = PortId::MAX;

impl Source {
    pub(super) fn new(entries: u32) -> Self {
        Source { flows: FlowTable::new(entries), epochs: 0, paused: Vec::new() }
    }

    /// Chooses the uplink of a packet. Returns `None` if the table has no entry for its flow.
    pub(super) fn depart(
        &mut self,
        key: FlowKey,
        uplinks: &mut Uplinks<'_>,
        now: Time,
        config: &ConWeaveConfig,
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
        let paused = self.paused.get(uplinks.to as usize);
        let all = uplinks.all;
        let mut good_port = || {
            let free = |port: PortId| {
                paused
                    .and_then(|of| of.get((port - uplinks.first) as usize))
                    .is_none_or(|until| *until <= now)
            };
            let drawn = [(); 2].map(|()| uplinks.all.by_hash(uplinks.dice.draw(uplinks.switch)));
            // A new flow, or one whose path is gone, needs an uplink even if both draws are paused.
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
                // The flow has no packet in flight and may change its path at once.
                let (good, any) = good_port();
                flow.port = good.unwrap_or(if new { any } else { flow.port });
                stats.reroutes += u64::from(!new && flow.port != port);
                port = flow.port;
            }
        } else if flow.reply_by < now {
            // This packet is the last one on the old path. The next one takes the new path.
            flag = Flag::Tail;
            flow.reply_by = Time::MAX;
            flow.rerouted = true;
            flow.tail_sent = now;
            flow.port = good_port().0.unwrap_or(port);
            stats.reroutes += u64::from(flow.port != port);
        }
        if !all.contains(port) {
            // Routing has removed the path. Its packets are lost or late, so order cannot be kept.
            let (good, any) = good_port();
            flow.port = good.unwrap_or(any);
            port = flow.port;
            stats.reroutes += 1;
        }
        let tail_sent = flow.tail_sent;
        Some(Leaving { port, epoch: flow.epoch, rerouted, flag, tail_sent })
    }

    /// Sets the time by which a reply to the flow's probe is expected.
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
        // A message that is late, or of a former epoch, has no effect.
        let in_time = of_tail || now < flow.reply_by && flow.reply_by != Time::MAX;
        if message.epoch == flow.epoch && of_tail == flow.rerouted && in_time {
            flow.settled = true;
            flow.reply_by = Time::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Header;
    use pathweave_units::{HostId, PathId};

    struct Leaf {
        source: Source,
        dice: SwitchDice,
        stats: ForwardingStats,
    }

    fn key() -> FlowKey {
        FlowKey::from_header(&Header::new(HostId(1), HostId(2), PathId(3), 1_000, 1, true))
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Duration::from_us(us)
    }

    impl Leaf {
        fn new() -> Self {
            Leaf { source: Source::new(16), dice: SwitchDice::new(1, 1), stats: ForwardingStats::default() }
        }

        /// Sends a packet from leaf 0 to leaf 5 by one of the ports 10 and 11.
        fn depart(&mut self, at_us: u64) -> Leaving {
            let all = Candidates::Range(10, 2);
            let mut uplinks = Uplinks { to: 5, switch: 0, first: 10, all, dice: &mut self.dice };
            let config = ConWeaveConfig::default();
            self.source
                .depart(key(), &mut uplinks, us(at_us), &config, &mut self.stats)
                .expect("there is room")
        }

        fn receive(&mut self, kind: Kind, epoch: u32, uplink: u16, at_us: u64) {
            let message = Message { kind, key: key(), epoch, uplink, leaf: 5 };
            self.source.on_message(&message, us(at_us), Duration::from_us(16));
        }
    }

    #[test]
    fn an_answer_in_time_begins_another_epoch_on_the_same_way() {
        let mut leaf = Leaf::new();
        let first = leaf.depart(0);
        assert_eq!((first.flag, first.rerouted), (Flag::Probe, false));
        leaf.source.expect_reply(key(), us(10));
        assert_eq!(leaf.depart(1).flag, Flag::Data);
        leaf.receive(Kind::Reply, first.epoch, 0, 9);
        let next = leaf.depart(20);
        assert_eq!((next.flag, next.port), (Flag::Probe, first.port));
        assert!(next.epoch > first.epoch);
        // A reply to the old epoch has no effect, and neither has one that is late.
        leaf.source.expect_reply(key(), us(30));
        leaf.receive(Kind::Reply, first.epoch, 0, 25);
        leaf.receive(Kind::Reply, next.epoch, 0, 30);
        assert_eq!(leaf.depart(29).flag, Flag::Data);
    }

    #[test]
    fn a_late_answer_makes_a_tail_and_then_the_other_way_until_it_is_cleared() {
        let mut leaf = Leaf::new();
        let first = leaf.depart(0);
        leaf.source.expect_reply(key(), us(10));
        // The other uplink is the only one that is not paused.
        leaf.receive(Kind::Notify, first.epoch, (first.port - 10) as u16, 5);
        let tail = leaf.depart(11);
        assert_eq!((tail.flag, tail.rerouted, tail.port), (Flag::Tail, false, first.port));
        let behind = leaf.depart(12);
        assert_eq!((behind.flag, behind.rerouted, behind.tail_sent), (Flag::Data, true, us(11)));
        assert_eq!(behind.epoch, first.epoch);
        // Both draws may be the old uplink, which is paused. Then the flow stays.
        assert_eq!(u64::from(behind.port != first.port), leaf.stats.reroutes);
        // Only a CLEAR of this epoch ends it.
        leaf.receive(Kind::Reply, first.epoch, 0, 13);
        leaf.receive(Kind::Clear, first.epoch + 1, 0, 14);
        assert!(leaf.depart(15).rerouted);
        leaf.receive(Kind::Clear, first.epoch, 0, 16);
        let next = leaf.depart(17);
        assert_eq!((next.flag, next.rerouted, next.port), (Flag::Probe, false, behind.port));
    }

    #[test]
    fn a_way_with_complaints_is_left_alone_for_a_while() {
        let mut leaf = Leaf::new();
        // Packets are 400 us apart, so that each may choose anew.
        let mut at_us = 0;
        while leaf.depart(at_us).port != 10 {
            at_us += 400;
        }
        for _ in 0..50 {
            at_us += 400;
            leaf.receive(Kind::Notify, 0, 1, at_us - 10);
            assert_eq!(leaf.depart(at_us).port, 10, "paused for 16 us");
        }
        let ports: Vec<PortId> = (1..50).map(|round| leaf.depart(at_us + 400 * round).port).collect();
        assert!(ports.contains(&10) && ports.contains(&11));
    }
}
