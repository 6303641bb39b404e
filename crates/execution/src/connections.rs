//! Which messages share queue pairs.

use std::ops::{Index, IndexMut};

use pathweave_policy::Service;
use pathweave_units::HostId;
use pathweave_workload::{GroupId, Message, MessageGraph};
use smallvec::SmallVec;

use crate::tally::{ReceiverTally, SenderTally};

/// Index of a connection.
pub type ConnId = u32;

/// The queue pairs of a connection. Mostly there is one, which takes no memory of its own.
pub type QueuePairs<Q> = SmallVec<[Q; 1]>;

/// A connection: one queue pair at each end, or several where the scheme scales queue pairs. `Q` is how the caller names
/// both ends of a queue pair.
#[derive(Clone, Debug)]
pub struct Connection<Q> {
    /// The host that sends.
    pub src: HostId,
    /// The host that receives.
    pub dst: HostId,
    /// The group of its messages.
    pub group: GroupId,
    /// Messages that are yet to be acknowledged, posted or not.
    pub(crate) messages_left: u32,
    /// Its queue pairs; empty until the caller opens them.
    pub queue_pairs: QueuePairs<Q>,
    /// The sender's counters when it was last done with a message. None until then, and none once it is with all, so that
    /// a million connections of a message each do without.
    sent: Option<Box<SenderTally>>,
    /// Packets out of order that the receiver had counted when a message last arrived.
    received_out_of_order: u64,
}

impl<Q> Connection<Q> {
    fn new(message: &Message) -> Self {
        Connection {
            src: message.src,
            dst: message.dst,
            group: message.group,
            messages_left: 0,
            queue_pairs: QueuePairs::new(),
            sent: None,
            received_out_of_order: 0,
        }
    }

    /// Messages that are yet to be acknowledged, posted or not.
    pub fn messages_left(&self) -> u32 {
        self.messages_left
    }

    /// Remembers the sender's counters of now. Returns those of when this was last called.
    pub(crate) fn take_sent(&mut self, now: SenderTally) -> SenderTally {
        let taken = self.sent.as_deref().copied().unwrap_or_default();
        self.sent = (self.messages_left > 1).then(|| Box::new(now));
        taken
    }

    /// The same at the receiver: packets out of order.
    pub(crate) fn take_received(&mut self, now: &ReceiverTally) -> u64 {
        std::mem::replace(&mut self.received_out_of_order, now.out_of_order)
    }
}

/// What messages of one connection have in common.
type Key = (HostId, HostId, GroupId, u32);

/// By what the connection of a message is found; nothing where it has one of its own.
fn key(message: &Message, service: &Service) -> Option<Key> {
    let (process, peer_process) = message.processes();
    let shared = match service {
        Service::Connection if message.has_own_stream() => return None,
        Service::Connection => message.stream,
        Service::SharedReceive(config) => u32::from(process) << 16 | u32::from(config.node(peer_process)),
        Service::EndToEnd => 0,
        Service::Datagram(_) => u32::from(process) << 16 | u32::from(peer_process),
    };
    Some((message.src, message.dst, message.group, shared))
}

/// All connections of a run, to be opened when first needed.
#[derive(Clone, Debug)]
pub struct Connections<Q> {
    list: Vec<Connection<Q>>,
    of_message: Vec<ConnId>,
}

impl<Q> Connections<Q> {
    /// One for each distinct (source, destination, group, stream), numbered by first use. Where queue pairs serve more
    /// than a pair of processes, what they serve takes the place of the stream; `service` tells for each group.
    pub fn new<'s>(graph: &MessageGraph, service: impl Fn(GroupId) -> &'s Service) -> Self {
        let keys = || graph.messages().iter().map(|message| key(message, service(message.group)));
        // Only looked up, never iterated: its order cannot leak.
        let mut known = foldhash::HashMap::default();
        let mut list: Vec<Connection<Q>> = Vec::with_capacity(keys().filter(Option::is_none).count());
        let of_message = keys()
            .zip(graph.messages())
            .map(|(key, message)| {
                let mut fresh = || {
                    list.push(Connection::new(message));
                    list.len() as ConnId - 1
                };
                let conn = match key {
                    None => fresh(),
                    Some(key) => *known.entry(key).or_insert_with(fresh),
                };
                list[conn as usize].messages_left += 1;
                conn
            })
            .collect();
        Connections { list, of_message }
    }

    /// How many [`Connections::new`] makes, and how many of them have several messages.
    pub fn count<'s>(graph: &MessageGraph, service: impl Fn(GroupId) -> &'s Service) -> (u64, u64) {
        let mut own = 0;
        let mut shared: foldhash::HashMap<Key, u32> = foldhash::HashMap::default();
        for message in graph.messages() {
            match key(message, service(message.group)) {
                None => own += 1,
                Some(key) => *shared.entry(key).or_default() += 1,
            }
        }
        let several = shared.values().filter(|&&messages| messages > 1).count();
        (own + shared.len() as u64, several as u64)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none: the workload has no messages.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Connection<Q>> {
        self.list.iter()
    }

    /// The connection that carries a message.
    pub fn of(&self, message: u32) -> ConnId {
        self.of_message[message as usize]
    }
}

impl<Q> Index<ConnId> for Connections<Q> {
    type Output = Connection<Q>;

    fn index(&self, conn: ConnId) -> &Connection<Q> {
        &self.list[conn as usize]
    }
}

impl<Q> IndexMut<ConnId> for Connections<Q> {
    fn index_mut(&mut self, conn: ConnId) -> &mut Connection<Q> {
        &mut self.list[conn as usize]
    }
}
