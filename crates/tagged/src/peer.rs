//! State of a peer and of its connection.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use crate::credits::{Credits, Known, Pool, Window};
use crate::operations::Queued;
use crate::wire::{AnnounceResult, Notice, RemoteRegion};

/// Largest number of keys asked for at a time, and of atomics that await results. It bounds the answers that a peer
/// owes.
pub(crate) const MAX_KEY_REQUESTS: u32 = 32;

/// Side that established a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This endpoint dialled. It sends nothing until the other end has granted receives.
    Initiator,
    /// The other end dialled. Its first receives are posted.
    Acceptor,
}

#[derive(Debug, Default)]
pub(crate) struct Peer {
    pub(crate) link: Link,
    /// Operations in the order posted.
    pub(crate) queue: VecDeque<Queued>,
}

#[derive(Debug, Default)]
pub(crate) enum Link {
    #[default]
    Down,
    Connecting,
    Up(Box<Connection>),
}

/// State of one connection to a peer, reset with each new connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) credits: Credits,
    pub(crate) window: Window,
    /// Number of messages sent and received, modulo 2^32.
    pub(crate) sent: u32,
    pub(crate) received: u32,
    /// Number of the peer's messages processed that asked for an acknowledgement: in total, and as last reported to
    /// the peer.
    pub(crate) ack_count: u32,
    pub(crate) ack_count_sent: u32,
    /// Messages that await an acknowledgement, in order, and the number acknowledged so far.
    pub(crate) awaiting_ack: VecDeque<u64>,
    pub(crate) acked: u32,
    /// Answers and questions, which leave before operations.
    pub(crate) outbox: VecDeque<Reply>,
    /// Number of entries of `outbox` that the peer has asked for.
    pub(crate) answers: u32,
    pub(crate) keys: BTreeMap<u64, KeyState>,
    /// Regions, keyed by the peer's region numbers.
    pub(crate) regions: BTreeMap<u64, KnownRegion>,
    /// Number of keys asked for, and of atomics that await results.
    pub(crate) keys_asked: u32,
    pub(crate) fetching: u32,
    /// Transfers with more to request, and requests in flight.
    pub(crate) pending_transfers: VecDeque<u64>,
    pub(crate) reads: InFlightRequests,
    pub(crate) writes: InFlightRequests,
}

/// Requests of one kind in flight to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InFlightRequests {
    requests: u32,
    bytes: u64,
}

impl InFlightRequests {
    pub(crate) fn is_none(self) -> bool {
        self.requests == 0
    }
    /// Returns true if another request is allowed: within both limits, or if none is in flight.
    pub(crate) fn has_room(self, len: u64, requests: u32, bytes: u64) -> bool {
        self.is_none() || self.requests < requests && self.bytes.saturating_add(len) <= bytes
    }
    pub(crate) fn add(&mut self, len: u64) {
        self.requests += 1;
        self.bytes += len;
    }
    pub(crate) fn remove(&mut self, len: u64) {
        self.requests -= 1;
        self.bytes -= len;
    }
}

impl Connection {
    pub(crate) fn new(role: Role, pool: &mut Pool) -> Self {
        let (credits, known) = match role {
            Role::Initiator => (Credits::default(), Known::Already),
            Role::Acceptor => (Credits::first(), Known::NotYet),
        };
        Connection {
            credits,
            window: Window::first(pool, known),
            sent: 0,
            received: 0,
            ack_count: 0,
            ack_count_sent: 0,
            awaiting_ack: VecDeque::new(),
            acked: 0,
            outbox: VecDeque::new(),
            answers: 0,
            keys: BTreeMap::new(),
            regions: BTreeMap::new(),
            keys_asked: 0,
            fetching: 0,
            pending_transfers: VecDeque::new(),
            reads: InFlightRequests::default(),
            writes: InFlightRequests::default(),
        }
    }
    /// Queues an answer that the peer has asked for.
    pub(crate) fn answer(&mut self, reply: Reply) {
        self.answers += 1;
        self.outbox.push_back(reply);
    }
}

/// Message that needs nothing but a receive to leave.
#[derive(Debug)]
pub(crate) enum Reply {
    Finish { id: u64, end: AnnounceResult },
    AskKey { key: u64 },
    Key { key: u64, region: Option<RemoteRegion> },
    Revoke { region: u64 },
    Revoked { region: u64 },
    Notice { region: u64, what: Notice, len: u64 },
    Result { id: u64, old: Box<[u8]> },
}

impl Reply {
    /// Returns true if the peer has asked for this message.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Reply::Key { .. } | Reply::Result { .. })
    }
}

/// State of a key of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    Asked,
    Refused,
    Region(u64),
}

/// Region of the peer.
#[derive(Debug)]
pub(crate) struct KnownRegion {
    pub(crate) key: u64,
    pub(crate) description: RemoteRegion,
    /// Number of operations that use the region.
    pub(crate) users: u32,
    pub(crate) state: RegionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionState {
    Open,
    /// Will be released when its last user ends.
    Revoked,
}
