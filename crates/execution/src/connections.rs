//! Which messages share queue pairs.

use std::ops::{Index, IndexMut};

use pathweave_policy::Service;
use pathweave_units::HostId;
use pathweave_workload::{GroupId, Message, MessageGraph};

use crate::tally::{ReceiverTally, SenderTally};

/// Index of a connection.
pub type ConnId = u32;

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
    pub queue_pairs: Vec<Q>,
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
            queue_pairs: vec![],
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

/// All connections of a run, to be opened when first needed.
#[derive(Clone, Debug)]
pub struct Connections<Q> {
    list: Vec<Connection<Q>>,
    of_message: Vec<ConnId>,
}

impl<Q> Connections<Q> {
    /// Bytes of an entry in the table by which connections are found while they are counted, with its share of the table's
    /// empty places: an eighth at least, and nine sixteenths right after it has doubled.
    pub const KNOWN_BYTES: usize = (size_of::<((HostId, HostId, GroupId, u32), ConnId)>() + 1) * 8 / 5;

    /// One for each distinct (source, destination, group, stream), numbered by first use. Where queue pairs serve more
    /// than a pair of processes, what they serve takes the place of the stream; `service` tells for each group.
    pub fn new<'s>(graph: &MessageGraph, service: impl Fn(GroupId) -> &'s Service) -> Self {
        // Only looked up, never iterated: its order cannot leak.
        let mut known = foldhash::HashMap::default();
        let mut list: Vec<Connection<Q>> = Vec::new();
        let of_message = graph
            .messages()
            .iter()
            .map(|m| {
                let (process, peer_process) = m.processes();
                let shared = match service(m.group) {
                    Service::Connection => m.stream,
                    Service::SharedReceive => u32::from(process),
                    Service::EndToEnd => 0,
                    Service::Datagram(_) => u32::from(process) << 16 | u32::from(peer_process),
                };
                let conn = *known.entry((m.src, m.dst, m.group, shared)).or_insert_with(|| {
                    list.push(Connection::new(m));
                    list.len() as ConnId - 1
                });
                list[conn as usize].messages_left += 1;
                conn
            })
            .collect();
        Connections { list, of_message }
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
