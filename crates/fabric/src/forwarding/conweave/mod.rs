//! ConWeave (Song et al., "Network Load Balancing with In-network Reordering Support for RDMA", SIGCOMM 2023).
//!
//! The switch of a flow's sender ([`source`]) measures the round trip to the switch of its receiver ([`destination`]) by a
//! probe, a flag of a data packet, which is answered at once. Where the answer is late the flow changes its way: a last
//! packet, the TAIL, takes the old one, the packets behind it the new one. The destination holds those of the new way
//! until the TAIL has come, so that the receiver sees them in order, and answers the TAIL with a CLEAR, upon which the
//! flow may change again. A packet marked Congestion Experienced makes the destination send a NOTIFY, upon which the
//! source leaves that way alone for a while.
//!
//! Where the paper leaves open what happens, this does as its authors' simulator (conweave-ns3). Apart from that: an epoch
//! is a number that no two of a switch share, where hardware has two bits and trusts to old state being gone; held
//! packets are in the switch's buffer like all others, so they count for pauses, and a port can hold so many flows only
//! as it has queues.
//!
//! Published for two tiers, where the uplink is the way. With more, what is beyond the first uplink is chosen by hash, so
//! a way still keeps order; the parameters want other values then (see [`ConWeaveConfig`]).

mod destination;
mod message;
mod source;

use pathweave_units::{Duration, HostId, PathId, Time};

use crate::fabric::Fabric;
use crate::forwarding::config::{ConWeaveConfig, ReplyAfter};
use crate::forwarding::dice::SwitchDice;
use crate::forwarding::flow_table::FlowKey;
use crate::forwarding::{Action, Balancer};
use crate::packet::{CE, Header};
use crate::port::PortId;
use destination::Destination;
use message::{Kind, Message, Messages};
use source::{Source, Uplinks};

/// What a data packet between leaves carries, by the place of its content.
#[derive(Clone, Copy)]
struct Tag {
    /// 0: the source had no room for the flow.
    epoch: u32,
    /// Sent after the TAIL of its epoch.
    rerouted: bool,
    flag: Flag,
    /// Uplink it took, counted from the first port of its source.
    uplink: u16,
    sent: Time,
    /// When the TAIL was sent, of `rerouted` packets.
    tail_sent: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flag {
    Data,
    /// To be answered: the probe of an epoch, its first packet.
    Probe,
    /// The last packet on the old way.
    Tail,
}

impl Tag {
    const UNTRACKED: Tag = Tag {
        epoch: 0,
        rerouted: false,
        flag: Flag::Data,
        uplink: 0,
        sent: Time::ZERO,
        tail_sent: Time::ZERO,
    };
}

/// A minimal frame with preamble and gap.
const MESSAGE_BYTES: u32 = 84;

/// The state of all switches.
pub(crate) struct ConWeave {
    config: ConWeaveConfig,
    leaf_of_host: Vec<u32>,
    /// By switch.
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    tags: Vec<Tag>,
    pub(crate) messages: Messages,
    dice: SwitchDice,
}

impl ConWeave {
    pub(crate) fn new(config: &ConWeaveConfig, seed: u64, leaf_of_host: Vec<u32>, switches: usize) -> Self {
        ConWeave {
            leaf_of_host,
            sources: (0..switches).map(|_| Source::new(config.entries)).collect(),
            destinations: (0..switches).map(|_| Destination::new(config.entries)).collect(),
            config: config.clone(),
            tags: Vec::new(),
            messages: Messages::default(),
            dice: SwitchDice::new(seed, switches),
        }
    }

    /// When a switch has to let held packets go.
    pub(crate) fn next_flush(&self, switch: u32) -> Time {
        self.destinations[switch as usize].next_flush()
    }

    /// Packets held, with the switches they are in.
    pub(crate) fn held(&self) -> impl Iterator<Item = (u32, &Header)> {
        (0..).zip(&self.destinations).flat_map(|(switch, at)| at.held().map(move |header| (switch, header)))
    }

    fn leaf(&self, host: HostId) -> u32 {
        self.leaf_of_host[host.index()]
    }

    /// There was no room for a packet that was to be held.
    pub(crate) fn lost_instead_of_held(&mut self, switch: u32, header: &Header) {
        self.destinations[switch as usize].let_go_last(FlowKey::of(header));
    }

    fn set_tag(&mut self, header: &Header, tag: Tag) {
        let place = header.content();
        if self.tags.len() <= place {
            self.tags.resize(place + 1, Tag::UNTRACKED);
        }
        self.tags[place] = tag;
    }
}

impl<P: Copy, const C: usize> Fabric<P, C> {
    fn conweave_state(&mut self) -> &mut ConWeave {
        let Balancer::ConWeave(conweave) = &mut self.balancer else {
            unreachable!("asked for by ConWeave only")
        };
        conweave
    }

    /// What becomes of a packet that can be reached.
    pub(crate) fn conweave(&mut self, now: Time, switch: u32, header: &Header) -> Action {
        let conweave = self.conweave_state();
        let (from, to) = (conweave.leaf(header.src()), conweave.leaf(header.dst()));
        if header.is_message() {
            if switch == to {
                self.on_message(now, switch, header);
                return Action::Consume;
            }
        } else if header.class() > 0 && from != to {
            // Only data is balanced; control goes by hash, as everything does inside a leaf and beyond.
            if switch == from {
                return Action::Forward(self.depart(now, switch, to, header));
            }
            if switch == to {
                return self.arrive(now, switch, header);
            }
        }
        Action::Forward(self.onward(switch, header))
    }

    /// A packet at the leaf of its sender: the port it leaves by.
    fn depart(&mut self, now: Time, switch: u32, to: u32, header: &Header) -> PortId {
        let key = FlowKey::of(header);
        let at = &self.switches[switch as usize];
        // Uplinks are counted from the first port of the leaf; explicit ways have numbers already.
        let (first, all) = match &self.explicit {
            Some(ways) => (0, ways.between(header.src(), header.dst())),
            None => (at.first_port, at.routes.candidates(header.src(), header.dst())),
        };
        let Balancer::ConWeave(conweave) = &mut self.balancer else {
            unreachable!("asked for by ConWeave only")
        };
        let leaving = if all.len() == 0 {
            // All explicit ways are dead.
            None
        } else {
            let source = &mut conweave.sources[switch as usize];
            let mut uplinks = Uplinks { to, switch, first, all, dice: &mut conweave.dice };
            source.depart(key, &mut uplinks, now, &conweave.config, &mut self.forwarding_stats)
        };
        let Some(leaving) = leaving else {
            self.forwarding_stats.untracked_packets += 1;
            conweave.set_tag(header, Tag::UNTRACKED);
            return self.onward(switch, header);
        };
        let (way, flag) = (leaving.port, leaving.flag);
        conweave.set_tag(
            header,
            Tag {
                epoch: leaving.epoch,
                rerouted: leaving.rerouted,
                flag,
                uplink: (way - first) as u16,
                sent: now,
                tail_sent: leaving.tail_sent,
            },
        );
        let port = match &mut self.explicit {
            Some(ways) => {
                ways.give(header, way);
                ways.port(header, way, 1)
            }
            None => way,
        };
        if flag == Flag::Probe {
            let config = &self.conweave_state().config;
            let (after, extra) = (config.reply_after, config.reply_extra);
            let idle = match after {
                ReplyAfter::Way => self.idle_round_trip(port, way, header),
                ReplyAfter::Shortest => self.shortest_propagation(switch, header) * 2,
            };
            self.conweave_state().sources[switch as usize].expect_reply(key, now + idle + extra);
        }
        port
    }

    /// What a packet takes from here to the leaf of its receiver and a message back, when nothing else is on the way.
    fn idle_round_trip(&self, mut port: PortId, way: u32, header: &Header) -> Duration {
        let mut sum = Duration::ZERO;
        for crossed in 2..usize::from(u8::MAX) {
            let at = &self.ports[port as usize];
            let Some(next) = at.peer_node.checked_sub(self.wires.hosts) else { break };
            let spec = &self.wires.specs[usize::from(at.spec)];
            sum += spec.time_for(header.wire_bytes()) + spec.time_for(MESSAGE_BYTES as u16) + spec.delay * 2;
            if let Some(ways) = &self.explicit {
                port = ways.port(header, way, crossed);
                continue;
            }
            let candidates = self.switches[next as usize].routes.candidates(header.src(), header.dst());
            if candidates.len() == 0 {
                break;
            }
            port = candidates.get(0);
        }
        sum
    }

    /// Propagation from host to host on a shortest way.
    fn shortest_propagation(&self, mut switch: u32, header: &Header) -> Duration {
        let delay = |port: PortId| self.wires.specs[usize::from(self.ports[port as usize].spec)].delay;
        let mut sum = delay(header.ingress());
        for _ in 0..u8::MAX {
            let candidates = self.switches[switch as usize].routes.candidates(header.src(), header.dst());
            if candidates.len() == 0 {
                break;
            }
            let port = candidates.get(0);
            sum += delay(port);
            let Some(next) = self.ports[port as usize].peer_node.checked_sub(self.wires.hosts) else { break };
            switch = next;
        }
        sum
    }

    /// A packet at the leaf of its receiver.
    fn arrive(&mut self, now: Time, switch: u32, header: &Header) -> Action {
        let egress = self.onward(switch, header);
        let Balancer::ConWeave(conweave) = &mut self.balancer else {
            unreachable!("asked for by ConWeave only")
        };
        let tag = conweave.tags.get(header.content()).copied().unwrap_or(Tag::UNTRACKED);
        if tag.epoch == 0 {
            return Action::Forward(egress);
        }
        let at = &mut conweave.destinations[switch as usize];
        let verdict = at.arrive(header, egress, &tag, now, &conweave.config, &mut self.forwarding_stats);
        if header.is(CE) {
            self.answer(
                switch,
                header,
                Message { kind: Kind::Notify, ..Message::about(header, &tag, switch) },
            );
        }
        match tag.flag {
            Flag::Probe => {
                self.answer(
                    switch,
                    header,
                    Message { kind: Kind::Reply, ..Message::about(header, &tag, switch) },
                );
            }
            Flag::Tail => {
                self.answer(
                    switch,
                    header,
                    Message { kind: Kind::Clear, ..Message::about(header, &tag, switch) },
                );
            }
            Flag::Data => {}
        }
        self.outbox.held_before.extend(verdict.before);
        self.outbox.held_after.extend(verdict.after);
        if verdict.hold { Action::Hold(egress) } else { Action::Forward(egress) }
    }

    /// Sends a message to the leaf of a packet's sender.
    fn answer(&mut self, switch: u32, header: &Header, message: Message) {
        let slot = self.conweave_state().messages.insert(message);
        let back = Header::message(header.dst(), header.src(), PathId(header.path().0), MESSAGE_BYTES, slot);
        self.forwarding_stats.messages += 1;
        let egress = self.by_hash_or_none(switch, &back);
        match egress {
            Some(egress) => self.outbox.made.push((egress, back.with_ingress(egress))),
            None => {
                self.conweave_state().messages.remove(slot);
            }
        }
    }

    fn by_hash_or_none(&self, switch: u32, header: &Header) -> Option<PortId> {
        let at = &self.switches[switch as usize];
        let candidates = at.routes.candidates(header.src(), header.dst());
        (candidates.len() > 0).then(|| self.onward(switch, header))
    }

    /// A message has reached the leaf it is for.
    fn on_message(&mut self, now: Time, switch: u32, header: &Header) {
        let conweave = self.conweave_state();
        let message = conweave.messages.remove(header.message_slot());
        let pause = conweave.config.path_pause;
        conweave.sources[switch as usize].on_message(&message, now, pause);
    }

    /// The time of a switch has come to let held packets go whose TAIL has not.
    pub(crate) fn flush_held(&mut self, now: Time, switch: u32) {
        let Balancer::ConWeave(conweave) = &mut self.balancer else {
            unreachable!("asked for by ConWeave only")
        };
        let held = conweave.destinations[switch as usize].flush(now);
        self.forwarding_stats.late_flushes += 1;
        self.outbox.held_after.extend(held);
        self.send_outbox(now, switch);
    }
}
