//! ConWeave (Song et al., "Network Load Balancing with In-network Reordering Support for RDMA", SIGCOMM 2023).
//!
//! The switch of a flow's sender ([`source`]) measures the round trip to the switch of the receiver ([`destination`])
//! with a probe. The probe is a flag in a data packet, and the destination replies at once. If the reply is late, the
//! flow changes its path: one last packet, the TAIL, takes the old path, and the packets after it take the new one.
//! The destination holds packets of the new path until the TAIL has arrived, so that the receiver gets all packets in
//! order. It answers the TAIL with a CLEAR, after which the flow may change its path again. For a packet marked
//! Congestion Experienced the destination sends a NOTIFY, and the source avoids that path for a while.
//!
//! Details that the paper leaves open follow its authors' simulator (conweave-ns3), with two exceptions. An epoch is
//! a number that is unique at its switch, whereas hardware has two bits and relies on old state being gone. Held
//! packets are in the switch's shared buffer and count for PFC, and a port can hold packets of only as many flows as
//! it has reorder queues.
//!
//! The scheme is published for two tiers, where the uplink determines the path. With more tiers, switches beyond the
//! first uplink choose by hash, so a path still keeps order. The parameters then need other values (see
//! [`ConWeaveConfig`]).

mod config;
mod destination;
mod message;
mod source;

use pathweave_units::{Duration, HostId, PathId, Spread, Time};

use super::balance::{Balance, Layout};
use super::dice::SwitchDice;
use super::flow_table::FlowKey;
use super::leaves::ManyLeaves;
use super::view::{Action, ForwardingStats, SwitchView};
use crate::packet::{CE, Header, PortId};
pub use config::{ConWeaveConfig, ReplyAfter};
use destination::Destination;
use message::{Kind, Message, Messages};
use source::{Source, Uplinks};

/// Header that a data packet between leaves carries, stored by the slot of the packet's content.
#[derive(Clone, Copy, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) struct Tag {
    /// Epoch of the flow; 0 if the source had no table entry for it.
    epoch: u32,
    /// True if the packet was sent after the TAIL of its epoch.
    rerouted: bool,
    flag: Flag,
    /// Uplink that the packet took, counted from the first port of the source.
    uplink: u16,
    sent: Time,
    /// Time at which the TAIL was sent, for `rerouted` packets.
    tail_sent: Time,
}

/// State that moves with a packet into another part of the fabric.
#[derive(Clone, Copy, borsh::BorshSerialize, borsh::BorshDeserialize)]
pub(crate) enum Note {
    Tag(Tag),
    Message(Message),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, borsh::BorshSerialize, borsh::BorshDeserialize)]
enum Flag {
    Data,
    /// The first packet of an epoch, which requests a reply.
    Probe,
    /// The last packet on the old path.
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

/// Size of a message: a minimal frame with preamble and gap.
const MESSAGE_BYTES: u32 = 84;

/// State of all switches.
pub(crate) struct ConWeave {
    config: ConWeaveConfig,
    leaf_of_host: Vec<u32>,
    /// Sender state of each switch.
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    tags: Vec<Tag>,
    pub(crate) messages: Messages,
    dice: SwitchDice,
    stats: ForwardingStats,
}

impl Balance for ConWeave {
    const SPREAD: Option<Spread> = Some(Spread::ByCapacity);
    type Config = ConWeaveConfig;
    type Note = Note;

    fn new(config: &ConWeaveConfig, fabric: &Layout<'_>) -> Result<Self, ManyLeaves> {
        let switches = 0..fabric.switches;
        Ok(ConWeave {
            leaf_of_host: (fabric.leaf_of_host)()?,
            sources: switches.clone().map(|_| Source::new(config.entries)).collect(),
            destinations: switches.map(|_| Destination::new(config.entries)).collect(),
            config: config.clone(),
            tags: Vec::new(),
            messages: Messages::default(),
            dice: SwitchDice::new(fabric.seed, fabric.switches),
            stats: ForwardingStats::default(),
        })
    }

    fn decide(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let (from, to) = (self.leaf(header.src()), self.leaf(header.dst()));
        if header.is_message() {
            if at.switch() == to {
                self.on_message(at, header);
                return Action::Consume;
            }
        } else if header.class() > 0 && from != to {
            // Only data is balanced. Control packets are forwarded by hash, as is everything inside a leaf and beyond
            // it.
            if at.switch() == from {
                return Action::Forward(self.depart(at, to, header));
            }
            if at.switch() == to {
                return self.arrive(at, header);
            }
        }
        Action::Forward(at.default_port(header))
    }

    /// Returns the time at which a switch must flush held packets.
    fn alarm(&self, switch: u32) -> Time {
        self.destinations[switch as usize].next_flush()
    }

    /// Flushes held packets whose TAIL has not arrived in time.
    fn on_clock(&mut self, at: &mut impl SwitchView, _until: Time) {
        let held = self.destinations[at.switch() as usize].flush(at.now());
        self.stats.late_flushes += 1;
        at.outbox().held_after.extend(held);
    }

    fn held(&self) -> Vec<(u32, Header)> {
        let at = (0..).zip(&self.destinations);
        at.flat_map(|(switch, at)| at.held().map(move |header| (switch, *header))).collect()
    }

    fn messages_alive(&self) -> usize {
        self.messages.alive()
    }

    fn discard_message(&mut self, header: &Header) {
        self.messages.discard(header.message_slot());
    }

    fn lost_instead_of_held(&mut self, switch: u32, header: &Header) {
        self.destinations[switch as usize].drop_last_held(FlowKey::from_header(header));
    }

    fn hand_over(&mut self, header: &Header) -> Option<Note> {
        if header.is_message() {
            return Some(Note::Message(self.messages.remove(header.message_slot())));
        }
        let tag = || self.tags.get(header.content()).copied().unwrap_or(Tag::UNTRACKED);
        header.has_content().then(|| Note::Tag(tag()))
    }

    fn take_over(&mut self, header: Header, note: Note) -> Header {
        match note {
            Note::Tag(tag) => {
                self.set_tag(&header, tag);
                header
            }
            Note::Message(message) => header.with_message(self.messages.insert(message)),
        }
    }

    fn stats(&self) -> &ForwardingStats {
        &self.stats
    }
}

impl ConWeave {
    fn leaf(&self, host: HostId) -> u32 {
        self.leaf_of_host[host.index()]
    }

    fn set_tag(&mut self, header: &Header, tag: Tag) {
        let place = header.content();
        if self.tags.len() <= place {
            self.tags.resize(place + 1, Tag::UNTRACKED);
        }
        self.tags[place] = tag;
    }

    /// Returns the egress port for a packet at the leaf of its sender.
    fn depart(&mut self, at: &mut impl SwitchView, to: u32, header: &Header) -> PortId {
        let (key, now, switch) = (FlowKey::from_header(header), at.now(), at.switch());
        // Uplinks are counted from the first port of the leaf. Explicit paths have numbers already.
        let (first, all) = match at.explicit() {
            Some(ways) => (0, ways.between(header.src(), header.dst())),
            None => (at.ports().start, at.candidates(header.src(), header.dst())),
        };
        let leaving = if all.len() == 0 {
            // All explicit paths are dead.
            None
        } else {
            let source = &mut self.sources[switch as usize];
            let mut uplinks = Uplinks { to, switch, first, all, dice: &mut self.dice };
            source.depart(key, &mut uplinks, now, &self.config, &mut self.stats)
        };
        let Some(leaving) = leaving else {
            self.stats.untracked_packets += 1;
            self.set_tag(header, Tag::UNTRACKED);
            return at.default_port(header);
        };
        let (way, flag) = (leaving.port, leaving.flag);
        self.set_tag(
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
        let port = at.explicit().map_or(way, |ways| ways.port(header, way, 1));
        at.give(header, way);
        if flag == Flag::Probe {
            let idle = match self.config.reply_after {
                ReplyAfter::Way => idle_round_trip(at, port, way, header),
                ReplyAfter::Shortest => shortest_propagation(at, header) * 2,
            };
            let extra = self.config.reply_extra;
            self.sources[switch as usize].expect_reply(key, now + idle + extra);
        }
        port
    }

    /// Handles a packet at the leaf of its receiver.
    fn arrive(&mut self, at: &mut impl SwitchView, header: &Header) -> Action {
        let (egress, now, switch) = (at.default_port(header), at.now(), at.switch());
        let tag = self.tags.get(header.content()).copied().unwrap_or(Tag::UNTRACKED);
        if tag.epoch == 0 {
            return Action::Forward(egress);
        }
        let here = &mut self.destinations[switch as usize];
        let verdict = here.arrive(header, egress, &tag, now, &self.config, &mut self.stats);
        let about = Message::about(header, &tag, switch);
        if header.is(CE) {
            self.answer(at, header, Message { kind: Kind::Notify, ..about });
        }
        match tag.flag {
            Flag::Probe => self.answer(at, header, Message { kind: Kind::Reply, ..about }),
            Flag::Tail => self.answer(at, header, Message { kind: Kind::Clear, ..about }),
            Flag::Data => {}
        }
        at.outbox().held_before.extend(verdict.before);
        at.outbox().held_after.extend(verdict.after);
        if verdict.hold { Action::Hold(egress) } else { Action::Forward(egress) }
    }

    /// Sends a message to the leaf of a packet's sender.
    fn answer(&mut self, at: &mut impl SwitchView, header: &Header, message: Message) {
        let slot = self.messages.insert(message);
        let back = Header::message(header.dst(), header.src(), PathId(header.path().0), MESSAGE_BYTES, slot);
        self.stats.messages += 1;
        if at.candidates(back.src(), back.dst()).len() == 0 {
            self.messages.discard(slot);
            return;
        }
        let egress = at.default_port(&back);
        at.outbox().made.push((egress, back.with_ingress(egress)));
    }

    /// Handles a message at the leaf to which it is addressed.
    fn on_message(&mut self, at: &impl SwitchView, header: &Header) {
        let message = self.messages.remove(header.message_slot());
        self.sources[at.switch() as usize].on_message(&message, at.now(), self.config.path_pause);
    }
}

/// Returns the time that a packet takes from here to the receiver's leaf, plus that of a message back, on an idle
/// network.
fn idle_round_trip(at: &impl SwitchView, mut port: PortId, way: u32, header: &Header) -> Duration {
    let mut sum = Duration::ZERO;
    for crossed in 2..usize::from(u8::MAX) {
        let Some(next) = at.next_switch(port) else { break };
        let link = at.link(port);
        sum += link.time_for(header.wire_bytes()) + link.time_for(MESSAGE_BYTES as u16) + link.delay * 2;
        if let Some(ways) = at.explicit() {
            port = ways.port(header, way, crossed);
            continue;
        }
        let candidates = at.candidates_at(next, header.src(), header.dst());
        if candidates.len() == 0 {
            break;
        }
        port = candidates.get(0);
    }
    sum
}

/// Returns the propagation delay from host to host on a shortest path.
fn shortest_propagation(at: &impl SwitchView, header: &Header) -> Duration {
    let mut sum = at.link(header.ingress()).delay;
    let mut switch = at.switch();
    for _ in 0..u8::MAX {
        let candidates = at.candidates_at(switch, header.src(), header.dst());
        if candidates.len() == 0 {
            break;
        }
        let port = candidates.get(0);
        sum += at.link(port).delay;
        let Some(next) = at.next_switch(port) else { break };
        switch = next;
    }
    sum
}
