//! Peers and their connections. Connections are dialled at first use, one per peer.
//!
//! Both endpoints may dial at once. Then the connection that was dialled by the endpoint with the lower
//! (address, boot number) stays. No data is lost with the other one, because the dialling endpoint sends
//! nothing before the first message of the answering endpoint.

use std::net::SocketAddr;

use pathweave_datapath::{Attempt, Connection, ConnectionId};
use pathweave_shm::Ticket;
use pathweave_tagged::PeerId;

use super::handshake::{ConnectRequest, Here};
use super::local_thread::LaneKey;
use crate::object::Map;

/// Largest number of consecutive redials, after the peer has given up a dial for its own or was too busy.
const MOST_REDIALS: u32 = 200;

/// Endpoint that dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialled {
    Here,
    There,
}

/// State of the connection with a peer.
#[derive(Debug)]
pub(crate) enum Link {
    /// Not connected.
    None,
    /// This endpoint is dialling.
    Dialling {
        attempt: Attempt,
        /// Token of the event that reports the outcome.
        token: u64,
        /// Ticket with which the peer may offer shared memory.
        ticket: Option<Ticket>,
        /// Carrier of later messages; a lane if the peer offered one before the outcome was known.
        carrier: Carrier,
    },
    /// This endpoint has dialled and waits for the first message.
    Answered(Open),
    /// Connected.
    Up(Open),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) connection: Connection,
    pub(crate) dialled: Dialled,
    /// Ticket with which the peer may offer shared memory.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) carrier: Carrier,
}

/// Carrier of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The connection itself.
    Network,
    /// Memory shared with a peer on this host. The connection over which it was agreed stays open for
    /// operations that shared memory cannot do.
    Lane(LaneKey),
}

/// Usability of shared memory with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// Memory can be shared if the peer is on this host.
    Possible,
    /// The memory that the peer offered could not be used.
    Failed,
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Boot number of the peer's latest known start.
    pub(crate) boot: Option<u64>,
    pub(crate) link: Link,
    /// Number of connections that this endpoint dialled and that were answered.
    pub(crate) answered: u64,
    /// Number of connections that the peer dialled and this endpoint has seen.
    pub(crate) seen: u64,
    pub(crate) redials: u32,
    /// Receives that were posted before the engine asked for them.
    first_receives: FirstReceives,
    sharing: Sharing,
}

/// State of a connection's first receives. The endpoint whose dial was answered posts them before the engine
/// asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstReceives {
    /// The engine asks for them.
    Wanted,
    /// They are posted; the engine is about to ask.
    Posted,
}

/// Decision on an incoming call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallDecision {
    /// The call becomes the connection; the previous link is dropped.
    Adopt,
    /// The call crossed one from this endpoint, which stays.
    Drop,
}

/// All peers.
#[derive(Debug)]
pub(crate) struct Links {
    own: SocketAddr,
    boot: u64,
    peers: Map<PeerId, Peer>,
    /// Next peer number. Numbers are never reused, because a retained message identifies its sender by one.
    next: u32,
    by_address: Map<SocketAddr, PeerId>,
    by_connection: Map<ConnectionId, PeerId>,
}

impl Link {
    /// Returns the lane that belongs to the link.
    pub(crate) fn lane(&self) -> Option<LaneKey> {
        match self {
            Link::Dialling { carrier: Carrier::Lane(key), .. } => Some(*key),
            Link::Answered(open) | Link::Up(open) => match open.carrier {
                Carrier::Lane(key) => Some(key),
                Carrier::Network => None,
            },
            Link::Dialling { .. } | Link::None => None,
        }
    }
}

impl Links {
    pub(crate) fn new(own: SocketAddr, boot: u64) -> Self {
        Links {
            own,
            boot,
            peers: Map::default(),
            next: 0,
            by_address: Map::default(),
            by_connection: Map::default(),
        }
    }

    /// Returns the peer at an address, and adds it if it is new. At this endpoint's own address, returns
    /// [`PeerId::SELF`].
    pub(crate) fn at(&mut self, address: SocketAddr) -> PeerId {
        if address == self.own {
            return PeerId::SELF;
        }
        if let Some(id) = self.by_address.get(&address) {
            return *id;
        }
        let peer = Peer {
            address,
            boot: None,
            link: Link::None,
            answered: 0,
            seen: 0,
            redials: 0,
            first_receives: FirstReceives::Wanted,
            sharing: Sharing::Possible,
        };
        let id = PeerId(self.next);
        self.next += 1;
        self.peers.insert(id, peer);
        self.by_address.insert(address, id);
        id
    }

    pub(crate) fn peer(&mut self, id: PeerId) -> Option<&mut Peer> {
        self.peers.get_mut(&id)
    }

    /// Returns the address of a peer, or this endpoint's own.
    pub(crate) fn address(&self, id: PeerId) -> Option<SocketAddr> {
        if id == PeerId::SELF {
            return Some(self.own);
        }
        self.peers.get(&id).map(|peer| peer.address)
    }

    /// Returns the call to send when a peer is dialled.
    pub(crate) fn call(&self, id: PeerId, here: Option<Here>) -> ConnectRequest {
        let (seen, sharing) = self.peers.get(&id).map_or((0, Sharing::Possible), |p| (p.seen, p.sharing));
        let here = here.filter(|_| sharing == Sharing::Possible);
        ConnectRequest { address: self.own, boot: self.boot, seen, here }
    }

    /// Disables shared memory with a peer.
    pub(crate) fn disable_sharing(&mut self, id: PeerId) {
        if let Some(peer) = self.peer(id) {
            peer.sharing = Sharing::Failed;
        }
    }

    /// Returns the carrier of messages to a connected peer.
    pub(crate) fn carrier(&self, id: PeerId) -> Option<Carrier> {
        match &self.peers.get(&id)?.link {
            Link::Up(open) | Link::Answered(open) => Some(open.carrier),
            Link::None | Link::Dialling { .. } => None,
        }
    }

    /// Returns the unused ticket and the carrier of a peer that is being dialled.
    pub(crate) fn offered(&self, id: PeerId) -> (Option<Ticket>, Carrier) {
        match self.peers.get(&id).map(|peer| &peer.link) {
            Some(Link::Dialling { ticket, carrier, .. }) => (*ticket, *carrier),
            _ => (None, Carrier::Network),
        }
    }

    /// Returns the peer that was given a ticket and has not used it.
    pub(crate) fn ticket_holder(&self, shown: Ticket) -> Option<PeerId> {
        let is_it = |peer: &Peer| match &peer.link {
            Link::Dialling { ticket, .. } => *ticket == Some(shown),
            Link::Answered(open) => open.ticket == Some(shown),
            Link::Up(_) | Link::None => false,
        };
        self.peers.iter().find(|(_, peer)| is_it(peer)).map(|(id, _)| *id)
    }

    /// Changes the carrier of a peer that is being connected. The ticket is used up.
    pub(crate) fn set_carrier(&mut self, id: PeerId, with: Carrier) {
        let link = self.peer(id).map(|peer| &mut peer.link);
        if let Some(Link::Dialling { ticket, carrier, .. } | Link::Answered(Open { ticket, carrier, .. })) =
            link
        {
            (*ticket, *carrier) = (None, with);
        }
    }

    /// Returns the connection with a peer, if requests may be posted to it.
    pub(crate) fn connection(&self, id: PeerId) -> Option<&Connection> {
        match &self.peers.get(&id)?.link {
            Link::Up(open) | Link::Answered(open) => Some(&open.connection),
            Link::None | Link::Dialling { .. } => None,
        }
    }

    /// Returns the peer of a connection.
    pub(crate) fn owner(&self, connection: ConnectionId) -> Option<PeerId> {
        self.by_connection.get(&connection).copied()
    }

    /// Decides on a call of a peer.
    pub(crate) fn resolve_crossing(&mut self, id: PeerId, call: &ConnectRequest) -> CallDecision {
        let (own, boot) = (self.own, self.boot);
        let Some(peer) = self.peer(id) else { return CallDecision::Drop };
        peer.seen += 1;
        // The peer has restarted, so all previous state belongs to its earlier start.
        let is_new = peer.boot.is_some_and(|known| known != call.boot);
        peer.boot = Some(call.boot);
        if is_new {
            // The restarted peer counts connections from zero.
            (peer.seen, peer.answered) = (1, 0);
            return CallDecision::Adopt;
        }
        let ours = match &peer.link {
            Link::None => None,
            Link::Dialling { .. } => Some(peer.answered + 1),
            Link::Answered(open) | Link::Up(open) => (open.dialled == Dialled::Here).then_some(peer.answered),
        };
        match ours {
            // The peer knew of our connection when it dialled, so it has lost that connection.
            Some(ours) if call.seen >= ours => CallDecision::Adopt,
            Some(_) if (own, boot) < (call.address, call.boot) => CallDecision::Drop,
            _ => CallDecision::Adopt,
        }
    }

    /// Sets the link with a peer. Returns the previous link, to be dropped.
    pub(crate) fn set(&mut self, id: PeerId, link: Link) -> Link {
        if let Link::Up(open) | Link::Answered(open) = &link {
            self.by_connection.insert(open.connection.id(), id);
        }
        let Some(peer) = self.peer(id) else { return link };
        let before = std::mem::replace(&mut peer.link, link);
        if let Link::Up(open) | Link::Answered(open) = &before {
            let gone = open.connection.id();
            let stays = matches!(self.connection(id), Some(connection) if connection.id() == gone);
            if !stays {
                self.by_connection.remove(&gone);
            }
        }
        before
    }

    /// Records the first message: the connection is up at both ends. Returns true if it was not up before.
    pub(crate) fn confirm(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        match std::mem::replace(&mut peer.link, Link::None) {
            Link::Answered(open) => {
                peer.link = Link::Up(open);
                peer.redials = 0;
                peer.first_receives = FirstReceives::Posted;
                true
            }
            other => {
                peer.link = other;
                false
            }
        }
    }

    /// Returns true, once, if the first receives are posted already when the engine asks for them.
    pub(crate) fn take_first_receives(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        std::mem::replace(&mut peer.first_receives, FirstReceives::Wanted) == FirstReceives::Posted
    }

    /// Returns the peer that is being dialled with this token.
    pub(crate) fn dialling(&self, token: u64) -> Option<PeerId> {
        let is_it = |peer: &Peer| matches!(peer.link, Link::Dialling { token: of, .. } if of == token);
        self.peers.iter().find(|(_, peer)| is_it(peer)).map(|(id, _)| *id)
    }

    /// Records that a dial was answered.
    pub(crate) fn answered(&mut self, id: PeerId, boot: u64) {
        if let Some(peer) = self.peer(id) {
            if peer.boot.is_some_and(|known| known != boot) {
                (peer.seen, peer.answered) = (0, 0);
            }
            peer.boot = Some(boot);
            peer.answered += 1;
        }
    }

    /// Counts a redial, and returns true if it is allowed.
    pub(crate) fn may_redial(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        peer.redials += 1;
        peer.redials <= MOST_REDIALS
    }

    /// Removes a peer that is not connected.
    pub(crate) fn forget(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.remove(&id) {
            self.by_address.remove(&peer.address);
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }
}
