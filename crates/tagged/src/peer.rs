//! What is kept of a peer.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use crate::flow::{Credits, Known, Pool, Window};
use crate::operations::Queued;
use crate::wire::{End, Notice, RemoteRegion};

/// Keys that may be asked for at a time, and atomics that may await results. The answers a peer owes are bounded by it.
pub(crate) const MOST_QUESTIONS: u32 = 32;

/// Which end a connection was dialled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This one: it sends nothing until the other end has granted receives.
    Initiator,
    /// The other one, which has its first receives posted.
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

/// What begins anew with each connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) credits: Credits,
    pub(crate) window: Window,
    /// Messages sent and received, modulo 2^32.
    pub(crate) sent: u32,
    pub(crate) received: u32,
    /// Messages of the peer taken that asked for it: in all, and as it was told.
    pub(crate) taken: u32,
    pub(crate) taken_told: u32,
    /// Messages that asked, in order, and how many have been acknowledged.
    pub(crate) asking: VecDeque<u64>,
    pub(crate) acked: u32,
    /// Answers and questions that go ahead of operations.
    pub(crate) outbox: VecDeque<Reply>,
    /// How many of them the peer has asked for.
    pub(crate) answers: u32,
    pub(crate) keys: BTreeMap<u64, KeyState>,
    /// Regions by the peer's numbers.
    pub(crate) regions: BTreeMap<u64, KnownRegion>,
    /// Keys asked for, atomics whose results are to come.
    pub(crate) keys_asked: u32,
    pub(crate) fetching: u32,
    /// Transfers with more to request, and requests in flight.
    pub(crate) reading: VecDeque<u64>,
    pub(crate) reads: UnderWay,
    pub(crate) writes: UnderWay,
}

/// Requests of one kind in flight to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnderWay {
    requests: u32,
    bytes: u64,
}

impl UnderWay {
    pub(crate) fn is_none(self) -> bool {
        self.requests == 0
    }
    /// Whether another may join: within both limits, or alone.
    pub(crate) fn has_room(self, len: u64, requests: u32, bytes: u64) -> bool {
        self.is_none() || self.requests < requests && self.bytes.saturating_add(len) <= bytes
    }
    pub(crate) fn began(&mut self, len: u64) {
        self.requests += 1;
        self.bytes += len;
    }
    pub(crate) fn ended(&mut self, len: u64) {
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
            taken: 0,
            taken_told: 0,
            asking: VecDeque::new(),
            acked: 0,
            outbox: VecDeque::new(),
            answers: 0,
            keys: BTreeMap::new(),
            regions: BTreeMap::new(),
            keys_asked: 0,
            fetching: 0,
            reading: VecDeque::new(),
            reads: UnderWay::default(),
            writes: UnderWay::default(),
        }
    }
    /// An answer the peer has asked for.
    pub(crate) fn answer(&mut self, reply: Reply) {
        self.answers += 1;
        self.outbox.push_back(reply);
    }
}

/// A message that waits for nothing but a receive.
#[derive(Debug)]
pub(crate) enum Reply {
    Finish { id: u64, end: End },
    AskKey { key: u64 },
    Key { key: u64, region: Option<RemoteRegion> },
    Revoke { region: u64 },
    Revoked { region: u64 },
    Notice { region: u64, what: Notice, len: u64 },
    Result { id: u64, old: Box<[u8]> },
}

impl Reply {
    /// The peer has asked for it.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self, Reply::Key { .. } | Reply::Result { .. })
    }
}

/// What is known of a key of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyState {
    Asked,
    Refused,
    Region(u64),
}

/// A region of the peer.
#[derive(Debug)]
pub(crate) struct KnownRegion {
    pub(crate) key: u64,
    pub(crate) told: RemoteRegion,
    /// Operations that use it.
    pub(crate) users: u32,
    pub(crate) state: RegionState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionState {
    Open,
    /// To be given up when its last user is done.
    Revoked,
}
