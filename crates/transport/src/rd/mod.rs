//! Reliable datagrams (ERD): one queue pair a process for all its peers, made reliable by host software.
//!
//! What is sent goes as datagrams without acknowledgements. The receiver places each where it belongs, looks from time
//! to time for what is missing, and asks for it on a side channel; there it also says what is whole. [`RdQp`] documents
//! how it is driven; [`RdHost`] holds those of one host.

mod config;
mod counters;
mod host;
mod input;
mod output;
mod overhead;
mod pace;
mod queues;
mod ranges;
mod ready;
mod receive;
mod round_trip;
mod scan_rule;
mod send;
mod side;

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use pathweave_policy::{Announce, Policy, Repair, Shared, Slows};
use pathweave_units::{Duration, HostId, PathId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Body, Control, RdFlow};

use crate::control::ControlQueue;
use crate::events::Status;
use crate::ports::{PortChange, PortTable};
pub use config::{PeerId, RdConfig};
pub use counters::RdCounters;
pub use host::RdHost;
pub use input::RdOffer;
pub use overhead::ScanOverhead;
use queues::Queues;
use round_trip::RoundTrip;
pub use send::MAX_RD_OUTSTANDING;
use send::{Flow, Full};
pub use side::SideMessage;

/// A datagram queue pair: all messages of a process to and from all its peers.
///
/// [`Transport`](crate::Transport) documents how it is driven, and has an example.
///
/// Where the side channel breaks and is made anew, [`on_side_reset`](RdQp::on_side_reset) says again what the other end may not have heard.
///
/// Peers are made known with [`add_peer`](RdQp::add_peer). What comes from others is counted and dropped.
///
/// # Where there may be no room
///
/// A driver that takes whatever comes hands packets to [`on_packet`](crate::Transport::on_packet). One that may have neither a receive
/// nor room for a message asks [`judge`](RdQp::judge) first, and then [`take`](RdQp::take)s the packet or
/// [`refuse`](RdQp::refuse)s it: the message and those after it are then to wait at the peer, nothing of them is asked for,
/// and nothing counts as a retry, until [`release`](RdQp::release). Loss is not how a receiver says that it is not ready.
///
/// What a peer can make this end keep is bounded: a bitmap of the window, and an entry for each message that it may have
/// outstanding, [`MAX_RD_OUTSTANDING`].
#[derive(Debug)]
pub struct RdQp<P> {
    config: RdConfig<P>,
    rng: Rng,
    ports: PortTable,
    /// What policies of one queue pair have in common: of one, itself.
    shared: Shared,
    /// Latest instant told.
    now: Time,
    rtt: RoundTrip,
    index: BTreeMap<PeerId, u32>,
    flows: Vec<Flow>,
    /// Places in `flows` of peers that were removed.
    vacant: Vec<u32>,
    queues: Queues,
    /// The policy grants nothing before.
    paced_until: Time,
    /// Flows the scan looks at; those that need it no more are taken out when it does.
    watched: Vec<u32>,
    /// When the scan is due, [`Time::MAX`] without flows to look at.
    next_scan: Time,
    events: VecDeque<RdEvent>,
    /// Congestion notifications, probes and answers to them.
    control: ControlQueue,
    side: VecDeque<(HostId, SideMessage)>,
    counters: RdCounters,
}

/// Something the application wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdEvent {
    /// A message of a peer is there: all of it, once. In the order in which they became whole or, where so configured,
    /// in which they were posted.
    Delivered {
        /// Who sent it.
        from: PeerId,
        /// Its number among those of this peer, from 0.
        msg: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// A peer gave a message up; what of it was placed means nothing.
    Abandoned {
        /// Who.
        from: PeerId,
        /// Its number among those of this peer.
        msg: u64,
    },
    /// A message of this end is over.
    Completion {
        /// As given when it was posted.
        wr_id: u64,
        /// To whom it went.
        to: PeerId,
        /// How it ended: [`Status::Success`], or [`Status::RetryExceeded`].
        status: Status,
        /// Packets of it that were sent.
        sent_packets: u32,
        /// Of these, retransmissions.
        retransmitted: u32,
    },
}

/// Where the payload of a packet goes: message and place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdPlacement {
    /// Who sent it.
    pub from: PeerId,
    /// Number of the message among those of this peer, from 0.
    pub msg: u64,
    /// Where in the message, in bytes.
    pub offset: u32,
    /// How many bytes.
    pub len: u16,
    /// It was the next packet of its flow.
    pub in_order: bool,
}

/// Why a message cannot be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdPostError {
    /// The peer has not been made known.
    UnknownPeer(PeerId),
    /// 0 bytes, or more than [`RdConfig::most_message_bytes`].
    Length {
        /// The length asked for.
        len: u64,
        /// The longest that is allowed.
        most: u64,
    },
    /// [`MAX_RD_OUTSTANDING`] messages to this peer are not done.
    Outstanding(PeerId),
    /// 2^23 packets to this peer would not be done.
    Packets(PeerId),
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue pair {} of host {}", self.qp.0, self.host.0)
    }
}

impl fmt::Display for RdPostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RdPostError::UnknownPeer(peer) => write!(f, "{peer} is not a known peer; it must be added first"),
            RdPostError::Length { len, most } => {
                write!(f, "a message of {len} bytes; 1 to {most} bytes are allowed")
            }
            RdPostError::Outstanding(peer) => {
                write!(f, "{MAX_RD_OUTSTANDING} messages to {peer} are outstanding, as many as are allowed")
            }
            RdPostError::Packets(peer) => {
                write!(f, "more than 8388608 packets to {peer} would be outstanding; post it later")
            }
        }
    }
}
impl core::error::Error for RdPostError {}

impl<P: Policy> RdQp<P> {
    /// A queue pair without peers. Panics if the configuration is out of range.
    pub fn new(config: RdConfig<P>) -> Self {
        config.check();
        RdQp {
            rng: Rng::for_component(config.seed, "rd", u64::from(config.num.0)),
            ports: PortTable::new(config.nic_ports),
            shared: Shared::new(),
            now: Time::ZERO,
            rtt: RoundTrip::new(config.rtt),
            index: BTreeMap::new(),
            flows: Vec::new(),
            vacant: Vec::new(),
            queues: Queues::new(config.control.is_some()),
            paced_until: Time::ZERO,
            watched: Vec::new(),
            next_scan: Time::MAX,
            events: VecDeque::new(),
            control: ControlQueue::default(),
            side: VecDeque::new(),
            counters: RdCounters::default(),
            config,
        }
    }

    /// Time begins anew at zero, and `fresh` takes over with what has been counted so far and is known of ports: the next `now` may be any.
    /// Panics if peers are known, for what is kept of them holds instants.
    pub fn begin_anew(&mut self, fresh: RdQp<P>) {
        assert!(self.index.is_empty(), "peers hold instants of the time that was");
        let (counters, ports) = (self.counters, self.ports.clone());
        *self = RdQp { counters, ports, ..fresh };
    }

    /// Its number.
    pub fn num(&self) -> QpNum {
        self.config.num
    }

    /// Takes in what has become of NIC ports.
    pub fn change_ports(&mut self, change: PortChange) {
        self.ports.change(change);
    }

    /// Bytes of the longest message it takes.
    pub fn most_message_bytes(&self) -> u64 {
        self.config.most_message_bytes()
    }

    /// Makes a peer known, with the round-trip time to it when the network is idle. Nothing happens if it is.
    pub fn add_peer(&mut self, now: Time, peer: PeerId, rtt: Duration) {
        self.advance(now);
        self.rtt.raise(rtt);
        let Entry::Vacant(entry) = self.index.entry(peer) else { return };
        let flow = Flow::new(now, peer, self.config.control.as_ref());
        match self.vacant.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                entry.insert(index);
            }
            None => {
                entry.insert(self.flows.len() as u32);
                self.flows.push(flow);
            }
        }
    }

    /// Forgets a peer: what has been posted for it completes as [`Status::RetryExceeded`], what came of unfinished
    /// messages means nothing, and packets of it are foreign from now on.
    pub fn remove_peer(&mut self, now: Time, peer: PeerId) {
        self.advance(now);
        let Some(index) = self.index.remove(&peer) else { return };
        let unfinished: Vec<u64> =
            self.flows[index as usize].tx.unfinished().map(|(_, message)| message.first_psn).collect();
        for first_psn in unfinished {
            self.finish(index, first_psn, Status::RetryExceeded);
        }
        // What waits names a flow by its place, which another peer may take.
        self.queues.forget(index);
        self.watched.retain(|&flow| flow != index);
        self.control.retain(|host, segment| (host, segment.dst_qp) != (peer.host, peer.qp));
        self.side.retain(|(host, message)| {
            let RdFlow { src_qp, dst_qp } = message.flow();
            let other = if message.is_of_sender() { dst_qp } else { src_qp };
            (*host, other) != (peer.host, peer.qp)
        });
        self.flows[index as usize] = Flow::new(now, peer, None);
        self.vacant.push(index);
    }

    /// Of a peer's flow to here: the first PSN that has not arrived, to which those of packets on the way are near.
    pub fn expected_psn(&self, from: PeerId) -> Option<u64> {
        self.index.get(&from).map(|&flow| self.flows[flow as usize].rx.base)
    }

    /// Appends a message of `len` bytes. Its completion comes as an [`RdEvent`].
    pub fn post(&mut self, now: Time, to: PeerId, wr_id: u64, len: u64) -> Result<(), RdPostError> {
        self.advance(now);
        let &flow = self.index.get(&to).ok_or(RdPostError::UnknownPeer(to))?;
        let most = self.config.most_message_bytes();
        if len == 0 || len > most {
            return Err(RdPostError::Length { len, most });
        }
        let capacity = self.config.capacity();
        let tx = &mut self.flows[flow as usize].tx;
        let msg = tx.post(wr_id, len, capacity).map_err(|full| match full {
            Full::Messages => RdPostError::Outstanding(to),
            Full::Packets => RdPostError::Packets(to),
        })?;
        if tx.may_send(msg)
            && let Some(message) = tx.message(msg)
        {
            message.queued = true;
            self.queues.post(flow, msg);
        }
        if self.config.behaviour.announce == Announce::Post {
            self.announce(flow, msg, false);
        }
        Ok(())
    }

    /// Says how long a message is.
    fn announce(&mut self, flow: u32, msg: u64, again: bool) {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some(message) = tx.message(msg) else { return };
        message.announced = true;
        let start = SideMessage::Start {
            flow: RdFlow { src_qp: self.config.num, dst_qp: peer.qp },
            msg_id: msg as u16,
            first_psn: message.first_psn,
            packets: message.packets,
            total: message.len,
            again,
        };
        self.side.push_back((peer.host, start));
    }

    /// Says again how long messages are that were announced, ascending; and once how far they have left, for that is true
    /// of all that left before. So a peer that asks again and again is told one word more than it has messages.
    pub(super) fn announce_again(&mut self, flow: u32, messages: Vec<u64>) {
        let mut left = None;
        for msg in messages {
            self.announce(flow, msg, true);
            let message = self.flows[flow as usize].tx.message(msg);
            if message.is_some_and(|message| message.sent == message.packets) {
                left = Some(msg);
            }
        }
        if let Some(msg) = left {
            self.say_sent(flow, msg);
        }
    }

    /// All packets of a message have left: what does not arrive of them is late or lost.
    fn say_sent(&mut self, flow: u32, msg: u64) {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some(message) = tx.message(msg) else { return };
        let behaviour = &self.config.behaviour;
        if behaviour.repair != Repair::Overtaken || behaviour.start_says_sent(message.packets) {
            return;
        }
        let sent = SideMessage::Sent {
            flow: RdFlow { src_qp: self.config.num, dst_qp: peer.qp },
            end_psn: message.first_psn + u64::from(message.packets),
        };
        self.side.push_back((peer.host, sent));
    }

    /// The side channel to a host was lost and made anew: what may not have arrived is said again. Messages that were
    /// lost with it are asked for by the scan, or known to be whole.
    pub fn on_side_reset(&mut self, now: Time, host: HostId) {
        self.advance(now);
        for flow in 0..self.flows.len() as u32 {
            if self.flows[flow as usize].peer.host == host {
                let said = |(msg, message): (u64, &send::OutMessage)| message.announced.then_some(msg);
                let said: Vec<u64> = self.flows[flow as usize].tx.unfinished().filter_map(said).collect();
                self.announce_again(flow, said);
            }
        }
    }

    /// Asks a peer for a sign of life: a probe, which any end answers. Nothing happens if it is not known.
    pub fn probe(&mut self, now: Time, peer: PeerId) {
        self.advance(now);
        if self.index.contains_key(&peer) {
            self.say(peer, PathId(0), Body::Control(Control::Probe { sent_at: now }));
        }
    }

    /// Whether a message of this peer is on its way: some of it has arrived, or packets are known to be missing.
    pub fn awaits(&self, from: PeerId) -> bool {
        self.index.get(&from).is_some_and(|&flow| self.flows[flow as usize].rx.is_unfinished())
    }

    /// Period of the scan at present. What all paths have overtaken is lost however long packets take, so there only the
    /// time for which answers are waited for follows what is measured.
    pub fn scan_period(&self) -> Duration {
        let rtt = match self.config.behaviour.repair {
            Repair::Overtaken => self.rtt.idle(),
            _ => self.rtt.at(self.now),
        };
        rtt.scale(self.config.behaviour.scan_rtts)
    }

    /// Whether anything of this end is not done.
    pub fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.flows.iter().all(|flow| flow.tx.is_idle())
    }

    /// The lowest rate at which a destination is sent to now; `None` without congestion control or peers.
    pub fn slowest(&self, now: Time) -> Option<Rate> {
        let control = self.config.control.as_ref()?;
        let shared = match control.slows {
            Slows::QueuePair => self.config.policy.rate(now),
            Slows::Destination => None,
        };
        self.flows.iter().filter_map(|flow| flow.pace.as_ref()?.rate(now)).chain(shared).min()
    }

    /// Bytes that every peer costs while nothing is missing or outstanding, whatever the number of paths; `controlled`:
    /// with congestion control.
    pub const fn bytes_a_peer(controlled: bool) -> usize {
        let pace = if controlled { size_of::<pace::Pace>() } else { 0 };
        size_of::<Flow>() + size_of::<(PeerId, u32)>() + pace
    }

    /// Flows that keep state because something of them is missing.
    pub fn open_flows(&self) -> usize {
        self.flows.iter().filter(|flow| flow.rx.is_open()).count()
    }

    fn repairs(&self) -> bool {
        self.config.behaviour.repair != Repair::Never
    }

    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time runs backwards: {now} after {}", self.now);
        self.now = now;
    }
}
