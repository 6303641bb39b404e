//! Assignment of messages to connections and their queue pairs.

use std::ops::{Index, IndexMut};

use pathweave_policy::Service;
use pathweave_units::HostId;
use pathweave_workload::{GroupId, Message, MessageGraph};
use smallvec::SmallVec;

use crate::tally::{ReceiverCounters, SenderCounters};

/// Index of a connection.
pub type ConnId = u32;

/// Queue pairs of a connection. One queue pair, the usual case, is stored inline.
pub type QueuePairs<Q> = SmallVec<[Q; 1]>;

/// A connection: one queue pair at each end, or several if the scheme scales queue pairs. `Q` is the caller's
/// identifier of a queue pair, for both of its ends.
#[derive(Clone, Debug)]
pub struct Connection<Q> {
    /// The sending host.
    pub src: HostId,
    /// The receiving host.
    pub dst: HostId,
    /// The group of its messages.
    pub group: GroupId,
    /// Number of messages not acknowledged yet, posted or not.
    pub(crate) messages_left: u32,
    /// Queue pairs of the connection; empty until the caller opens them.
    pub queue_pairs: QueuePairs<Q>,
    /// Sender's counters when it last finished a message, without the packets of later messages. `None` before the first and after the last message, so that
    /// a million connections of one message each need no memory for them.
    sent: Option<Box<SenderCounters>>,
    /// Number of packets out of order that the receiver had counted when a message last arrived.
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

    /// Returns the number of messages not acknowledged yet, posted or not.
    pub fn messages_left(&self) -> u32 {
        self.messages_left
    }

    /// Returns the sender's counters that its messages have taken.
    pub(crate) fn sender_counters(&self) -> SenderCounters {
        self.sent.as_deref().copied().unwrap_or_default()
    }

    /// Stores the sender's counters that its messages have taken.
    pub(crate) fn set_sender_counters(&mut self, taken: SenderCounters) {
        self.sent = (self.messages_left > 1).then(|| Box::new(taken));
    }

    /// Stores the receiver's count of packets out of order, and returns that of the previous call.
    pub(crate) fn replace_receiver_count(&mut self, now: &ReceiverCounters) -> u64 {
        std::mem::replace(&mut self.received_out_of_order, now.ooo_packets)
    }
}

/// Properties that the messages of one shared connection have in common.
type Key = (HostId, HostId, GroupId, u32);

/// Returns the key of a message's connection, or `None` if the message has its own.
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
    /// Creates one connection for each distinct (source, destination, group, stream), numbered by first use. If queue
    /// pairs serve more than one pair of processes, the processes they serve replace the stream in the key. `service`
    /// returns the service of a group.
    pub fn new<'s>(graph: &MessageGraph, service: impl Fn(GroupId) -> &'s Service) -> Self {
        let keys = || graph.messages().iter().map(|message| key(message, service(message.group)));
        // Only looked up, never iterated, so its order cannot affect results.
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

    /// Returns the number of connections that [`Connections::new`] creates, and the number of those with several
    /// messages.
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

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns true if there are no connections: the workload has no messages.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Iterates over all connections, by number.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Connection<Q>> {
        self.list.iter()
    }

    /// Returns the connection that carries a message.
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
