//! Peers and the connections with them: dialled at first use, one with each peer.
//!
//! Both ends may dial at once. Then the connection that was dialled by the end with the lower (address, boot number) stays;
//! nothing has been sent on the other, for who dials sends nothing before the first message of who answers.

use std::net::SocketAddr;

use pathweave_datapath::{Attempt, Connection, ConnectionId};
use pathweave_shm::Ticket;
use pathweave_tagged::PeerId;

use super::handshake::{Call, Here};
use super::watch::LaneKey;
use crate::object::Map;

/// How often in a row a dial is repeated that the other end gave up for one of its own, or was too busy for.
const MOST_REDIALS: u32 = 200;

/// Who dialled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialled {
    Here,
    There,
}

/// How it stands with a peer.
#[derive(Debug)]
pub(crate) enum Link {
    /// Not connected.
    None,
    /// This end dials.
    Dialling {
        attempt: Attempt,
        /// By which its outcome is known.
        token: u64,
        /// With which the peer may offer memory to share.
        ticket: Option<Ticket>,
        /// It has, before the outcome was known.
        carrier: Carrier,
    },
    /// This end has dialled, and waits for the first message.
    Answered(Open),
    /// Connected.
    Up(Open),
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) connection: Connection,
    pub(crate) dialled: Dialled,
    /// With which the peer may offer memory to share.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) carrier: Carrier,
}

/// What carries messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// The connection.
    Network,
    /// Memory shared with a peer on this host. The connection, over which this was agreed, stays for what memory cannot do.
    Lane(LaneKey),
}

/// Whether memory may be shared with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    /// If it is on this host.
    Possible,
    /// What it handed over could not be used.
    Failed,
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Where it was last heard to have started.
    pub(crate) boot: Option<u64>,
    pub(crate) link: Link,
    /// Connections that this end dialled and that were answered.
    pub(crate) answered: u64,
    /// Connections that the peer dialled and this end has seen.
    pub(crate) seen: u64,
    pub(crate) redials: u32,
    /// Receives that were posted before the engine asked for them.
    first_receives: FirstReceives,
    sharing: Sharing,
}

/// The first receives of a connection: whose dial was answered posts them before the engine knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstReceives {
    /// The engine asks for them.
    Wanted,
    /// They are posted; the engine is about to ask.
    Posted,
}

/// What is to become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the connection from now on; what there was goes.
    Adopt,
    /// It crossed one of ours, which stays.
    Drop,
}

/// All peers.
#[derive(Debug)]
pub(crate) struct Links {
    own: SocketAddr,
    boot: u64,
    peers: Map<PeerId, Peer>,
    /// Numbers are never used again: a message that is kept names its sender by one.
    next: u32,
    by_address: Map<SocketAddr, PeerId>,
    by_connection: Map<ConnectionId, PeerId>,
}

impl Link {
    /// The lane that belongs to it.
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

    /// The peer at an address, by number; this endpoint itself at its own.
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

    /// The address of a peer, or this endpoint's own.
    pub(crate) fn address(&self, id: PeerId) -> Option<SocketAddr> {
        if id == PeerId::SELF {
            return Some(self.own);
        }
        self.peers.get(&id).map(|peer| peer.address)
    }

    /// What is said when a peer is dialled.
    pub(crate) fn call(&self, id: PeerId, here: Option<Here>) -> Call {
        let (seen, sharing) = self.peers.get(&id).map_or((0, Sharing::Possible), |p| (p.seen, p.sharing));
        let here = here.filter(|_| sharing == Sharing::Possible);
        Call { address: self.own, boot: self.boot, seen, here }
    }

    /// Memory is not to be shared with a peer again.
    pub(crate) fn stay_apart(&mut self, id: PeerId) {
        if let Some(peer) = self.peer(id) {
            peer.sharing = Sharing::Failed;
        }
    }

    /// What carries messages to a peer that is connected.
    pub(crate) fn carrier(&self, id: PeerId) -> Option<Carrier> {
        match &self.peers.get(&id)?.link {
            Link::Up(open) | Link::Answered(open) => Some(open.carrier),
            Link::None | Link::Dialling { .. } => None,
        }
    }

    /// What has come of the ticket of a peer that is dialled.
    pub(crate) fn offered(&self, id: PeerId) -> (Option<Ticket>, Carrier) {
        match self.peers.get(&id).map(|peer| &peer.link) {
            Some(Link::Dialling { ticket, carrier, .. }) => (*ticket, *carrier),
            _ => (None, Carrier::Network),
        }
    }

    /// The peer that was given a ticket and has not used it.
    pub(crate) fn ticket_holder(&self, shown: Ticket) -> Option<PeerId> {
        let is_it = |peer: &Peer| match &peer.link {
            Link::Dialling { ticket, .. } => *ticket == Some(shown),
            Link::Answered(open) => open.ticket == Some(shown),
            Link::Up(_) | Link::None => false,
        };
        self.peers.iter().find(|(_, peer)| is_it(peer)).map(|(id, _)| *id)
    }

    /// Messages of a peer that is being connected come otherwise than it seemed; the ticket is used.
    pub(crate) fn set_carrier(&mut self, id: PeerId, with: Carrier) {
        let link = self.peer(id).map(|peer| &mut peer.link);
        if let Some(Link::Dialling { ticket, carrier, .. } | Link::Answered(Open { ticket, carrier, .. })) =
            link
        {
            (*ticket, *carrier) = (None, with);
        }
    }

    /// The connection with a peer, if work may be posted to it.
    pub(crate) fn connection(&self, id: PeerId) -> Option<&Connection> {
        match &self.peers.get(&id)?.link {
            Link::Up(open) | Link::Answered(open) => Some(&open.connection),
            Link::None | Link::Dialling { .. } => None,
        }
    }

    /// Whose connection this is.
    pub(crate) fn owner(&self, connection: ConnectionId) -> Option<PeerId> {
        self.by_connection.get(&connection).copied()
    }

    /// Judges a call of a peer.
    pub(crate) fn judge(&mut self, id: PeerId, call: &Call) -> Verdict {
        let (own, boot) = (self.own, self.boot);
        let Some(peer) = self.peer(id) else { return Verdict::Drop };
        peer.seen += 1;
        // Another start of the peer: whatever there was is of the one before.
        let is_new = peer.boot.is_some_and(|known| known != call.boot);
        peer.boot = Some(call.boot);
        if is_new {
            // It counts anew what it has seen.
            (peer.seen, peer.answered) = (1, 0);
            return Verdict::Adopt;
        }
        let ours = match &peer.link {
            Link::None => None,
            Link::Dialling { .. } => Some(peer.answered + 1),
            Link::Answered(open) | Link::Up(open) => (open.dialled == Dialled::Here).then_some(peer.answered),
        };
        match ours {
            // It knew of ours when it dialled, and has lost it.
            Some(ours) if call.seen >= ours => Verdict::Adopt,
            Some(_) if (own, boot) < (call.address, call.boot) => Verdict::Drop,
            _ => Verdict::Adopt,
        }
    }

    /// From now on this is the connection with a peer. What there was before is returned, to be dropped.
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

    /// The first message has come: the connection is up for both ends. True if it was not before.
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

    /// The engine asks for a connection's first receives: true, once, if they are posted already.
    pub(crate) fn take_first_receives(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        std::mem::replace(&mut peer.first_receives, FirstReceives::Wanted) == FirstReceives::Posted
    }

    /// The peer that is dialled with this token.
    pub(crate) fn dialling(&self, token: u64) -> Option<PeerId> {
        let is_it = |peer: &Peer| matches!(peer.link, Link::Dialling { token: of, .. } if of == token);
        self.peers.iter().find(|(_, peer)| is_it(peer)).map(|(id, _)| *id)
    }

    /// A dial was answered.
    pub(crate) fn answered(&mut self, id: PeerId, boot: u64) {
        if let Some(peer) = self.peer(id) {
            if peer.boot.is_some_and(|known| known != boot) {
                (peer.seen, peer.answered) = (0, 0);
            }
            peer.boot = Some(boot);
            peer.answered += 1;
        }
    }

    /// Whether a dial may be repeated.
    pub(crate) fn may_redial(&mut self, id: PeerId) -> bool {
        let Some(peer) = self.peer(id) else { return false };
        peer.redials += 1;
        peer.redials <= MOST_REDIALS
    }

    /// Forgets a peer that is not connected.
    pub(crate) fn forget(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.remove(&id) {
            self.by_address.remove(&peer.address);
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.peers.keys().copied()
    }
}
