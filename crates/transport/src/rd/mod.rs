//! Reliable datagrams (ERD): one queue pair per process for all its peers, made reliable by host software.
//!
//! Packets go as datagrams without acknowledgements. The receiver places each at its position, scans for missing
//! packets from time to time, and requests them on a side channel. There it also reports complete messages. [`RdQp`]
//! documents the interface; [`RdHost`] holds the queue pairs of one host.

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

use pathweave_policy::{Announce, NotificationScope, Policy, Repair, Shared};
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
use send::{Flow, Full};
pub use send::{MAX_RD_OUTSTANDING, RdOutstanding};
pub use side::SideMessage;

/// A datagram queue pair: all messages of a process to and from all its peers.
///
/// [`Transport`](crate::Transport) documents the interface, and has an example.
///
/// If the side channel breaks and is re-established, [`on_side_reset`](RdQp::on_side_reset) repeats the messages that
/// the peer may have missed.
///
/// Peers must be added with [`add_peer`](RdQp::add_peer). Packets from others are counted and dropped.
///
/// # Lack of buffer space
///
/// A driver that accepts every packet calls [`on_packet`](crate::Transport::on_packet). A driver that may have
/// neither a receive nor buffer space for a message calls [`judge`](RdQp::judge) first, and then [`take`](RdQp::take)
/// or [`refuse`](RdQp::refuse). After a refusal, the message and later ones wait at the peer until
/// [`release`](RdQp::release): none of their packets is requested, and nothing counts as a retry. A receiver thus
/// reports that it is not ready instead of dropping packets.
///
/// The state that a peer can cause here is bounded: a bitmap of the window, and an entry for each message that it may
/// have outstanding, [`MAX_RD_OUTSTANDING`].
#[derive(Debug)]
pub struct RdQp<P> {
    config: RdConfig<P>,
    rng: Rng,
    ports: PortTable,
    /// Stores that policies share; here for a single queue pair.
    shared: Shared,
    /// Latest `now` of any call.
    now: Time,
    rtt: RoundTrip,
    index: BTreeMap<PeerId, u32>,
    flows: Vec<Flow>,
    /// Indices in `flows` of peers that were removed.
    vacant: Vec<u32>,
    queues: Queues,
    /// Time before which the policy grants nothing.
    paced_until: Time,
    /// Flows that the scan checks. Those that no longer need it are removed by the scan.
    watched: Vec<u32>,
    /// Time of the next scan, or [`Time::MAX`] without flows to check.
    next_scan: Time,
    events: VecDeque<RdEvent>,
    /// Congestion notifications, probes and answers to probes.
    control: ControlQueue,
    side: VecDeque<(HostId, SideMessage)>,
    counters: RdCounters,
}

/// An event for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdEvent {
    /// A message of a peer has arrived completely. Each is reported once, in the order in which messages became
    /// complete or, if so configured, in which they were posted.
    Delivered {
        /// Sender of the message.
        from: PeerId,
        /// Number of the message among those of this peer, from 0.
        msg: u64,
        /// Bytes of the message.
        bytes: u64,
    },
    /// A peer has aborted a message. Bytes of it that were placed are meaningless.
    Abandoned {
        /// Sender of the message.
        from: PeerId,
        /// Number of the message among those of this peer, from 0.
        msg: u64,
    },
    /// A message of this end is finished.
    Completion {
        /// Identifier given when the message was posted.
        wr_id: u64,
        /// Destination of the message.
        to: PeerId,
        /// Result: [`Status::Success`] or [`Status::RetryExceeded`].
        status: Status,
        /// Number of its packets that were sent, retransmissions included.
        sent_packets: u32,
        /// Number of retransmissions among them.
        retransmitted: u32,
    },
}

/// Position for the payload of a packet: a message and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdPlacement {
    /// Sender of the message.
    pub from: PeerId,
    /// Number of the message among those of this peer, from 0.
    pub msg: u64,
    /// Offset in the message, in bytes.
    pub offset: u32,
    /// Number of bytes.
    pub len: u16,
    /// True if it was the next expected packet of its flow.
    pub in_order: bool,
}

/// Reason why a message cannot be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RdPostError {
    /// The peer has not been added.
    UnknownPeer(PeerId),
    /// The message has 0 bytes, or more than [`RdConfig::most_message_bytes`].
    Length {
        /// Requested length.
        len: u64,
        /// Largest allowed length.
        most: u64,
    },
    /// [`MAX_RD_OUTSTANDING`] messages to this peer are outstanding.
    Outstanding(PeerId),
    /// More than 2^23 packets to this peer would be outstanding.
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
    /// Creates a queue pair without peers. Panics if the configuration is out of range.
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

    /// Restarts time at zero, so that the next `now` may be any. `fresh` replaces the queue pair, and inherits its
    /// counters and ports. Panics if there are peers, because their state holds times.
    pub fn begin_anew(&mut self, fresh: RdQp<P>) {
        assert!(self.index.is_empty(), "peers hold instants of the time that was");
        let (counters, ports) = (self.counters, self.ports.clone());
        *self = RdQp { counters, ports, ..fresh };
    }

    /// Number of the queue pair.
    pub fn num(&self) -> QpNum {
        self.config.num
    }

    /// Applies a change of NIC ports.
    pub fn change_ports(&mut self, change: PortChange) {
        self.ports.change(change);
    }

    /// Bytes of the longest message that can be posted.
    pub fn most_message_bytes(&self) -> u64 {
        self.config.most_message_bytes()
    }

    /// Adds a peer, with the round-trip time to it in an idle network. Does nothing else if the peer is known
    /// already.
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

    /// Removes a peer. Messages posted for it complete with [`Status::RetryExceeded`], bytes of its unfinished
    /// messages are meaningless, and later packets from it are foreign.
    pub fn remove_peer(&mut self, now: Time, peer: PeerId) {
        self.advance(now);
        let Some(index) = self.index.remove(&peer) else { return };
        let unfinished: Vec<u64> =
            self.flows[index as usize].tx.unfinished().map(|(_, message)| message.first_psn).collect();
        for first_psn in unfinished {
            self.finish(index, first_psn, Status::RetryExceeded);
        }
        // Queued packets name a flow by its index, which another peer may get.
        self.queues.forget(index);
        self.watched.retain(|&flow| flow != index);
        self.control.retain(|host, segment| (host, segment.dst_qp) != (peer.host, peer.qp));
        self.side.retain(|(host, message)| {
            let RdFlow { src_qp, dst_qp } = message.flow();
            let other = if message.is_from_source() { dst_qp } else { src_qp };
            (*host, other) != (peer.host, peer.qp)
        });
        self.flows[index as usize] = Flow::new(now, peer, None);
        self.vacant.push(index);
    }

    /// First PSN of a peer's flow to here that has not arrived. PSNs of packets in flight are near it.
    pub fn expected_psn(&self, from: PeerId) -> Option<u64> {
        self.index.get(&from).map(|&flow| self.flows[flow as usize].rx.base)
    }

    /// Appends a message of `len` bytes. Its completion is an [`RdEvent`].
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

    /// Announces the length of a message.
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

    /// Repeats the announcements of these messages, in ascending order. Then it reports once how far the flow has
    /// been sent, which covers all earlier packets as well. A peer that asks again and again thus gets one side
    /// message more than it has messages.
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

    /// Reports that all packets of a message have left: one that has not arrived is late or lost.
    fn say_sent(&mut self, flow: u32, msg: u64) {
        let Flow { peer, tx, .. } = &mut self.flows[flow as usize];
        let Some(message) = tx.message(msg) else { return };
        let behaviour = &self.config.behaviour;
        if behaviour.repair != Repair::Overtaken || behaviour.announcement_implies_sent(message.packets) {
            return;
        }
        let sent = SideMessage::Sent {
            flow: RdFlow { src_qp: self.config.num, dst_qp: peer.qp },
            end_psn: message.first_psn + u64::from(message.packets),
        };
        self.side.push_back((peer.host, sent));
    }

    /// Repeats announcements after the side channel to a host was lost and re-established. Other messages that were
    /// lost with it need no repetition: the scan requests missing packets again, and complete messages are known.
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

    /// Sends a probe to a peer, which every live end answers. Does nothing if the peer is unknown.
    pub fn probe(&mut self, now: Time, peer: PeerId) {
        self.advance(now);
        if self.index.contains_key(&peer) {
            self.queue_control(peer, PathId(0), Body::Control(Control::Probe { sent_at: now }));
        }
    }

    /// Returns true if a message of this peer is in progress: some of it has arrived, or packets are known to be
    /// missing.
    pub fn awaits(&self, from: PeerId) -> bool {
        self.index.get(&from).is_some_and(|&flow| self.flows[flow as usize].rx.is_unfinished())
    }

    /// Present period of the scan. Under [`Repair::Overtaken`] it follows the idle round trip only: packets that all
    /// paths have overtaken are lost, however long packets take. There, only the waiting time for answers follows
    /// measurements.
    pub fn scan_period(&self) -> Duration {
        let rtt = match self.config.behaviour.repair {
            Repair::Overtaken => self.rtt.idle(),
            _ => self.rtt.at(self.now),
        };
        rtt.scale(self.config.behaviour.scan_rtts)
    }

    /// Returns true if nothing that this end has posted is outstanding.
    pub fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.flows.iter().all(|flow| flow.tx.is_idle())
    }

    /// Returns the messages of this end that are not finished, with their packets so far.
    pub fn outstanding(&self) -> impl Iterator<Item = RdOutstanding> {
        self.flows.iter().flat_map(|flow| flow.tx.outstanding())
    }

    /// Lowest present sending rate to a destination. `None` without congestion control or peers.
    pub fn slowest(&self, now: Time) -> Option<Rate> {
        let control = self.config.control.as_ref()?;
        let shared = match control.slows {
            NotificationScope::QueuePair => self.config.policy.rate(now),
            NotificationScope::Destination => None,
        };
        self.flows.iter().filter_map(|flow| flow.pace.as_ref()?.rate(now)).chain(shared).min()
    }

    /// Bytes that every peer costs while nothing is missing or outstanding, for any number of paths. `controlled`:
    /// with congestion control.
    pub const fn bytes_a_peer(controlled: bool) -> usize {
        let pace = if controlled { size_of::<pace::Pace>() } else { 0 };
        size_of::<Flow>() + size_of::<(PeerId, u32)>() + pace
    }

    /// Number of flows that keep state because packets of them are missing.
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
