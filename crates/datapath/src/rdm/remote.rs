//! Peers as the loop sees them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use pathweave_transport::rd::{PeerId, SideMessage};
use pathweave_units::{Duration, HostId, QpNum, Time};

use super::address_vector::PeerEntry;
use crate::error::ConnectError;
use crate::secure::{AttemptId, Session};
use crate::shared::Answer;

/// Bits of an association's number that are the index of its peer.
const INDEX_BITS: u32 = 20;

/// Packet number sequence of datagrams. All paths share it, so that the state of a peer does not grow with the number
/// of paths.
pub(super) const DATAGRAMS: u16 = 0;
/// Packet number sequence of the side channel's records.
pub(super) const SIDE_CHANNEL: u16 = 1;
/// Number of packet number sequences of an association.
pub(super) const SEQUENCES: u16 = 2;

/// Interval of upkeep while something is outstanding.
pub(super) const BUSY: Duration = Duration::from_ms(10);

/// A peer.
pub(super) struct Remote {
    pub(super) entry: Arc<PeerEntry>,
    /// Messages that wait for an association, or for room in it: handle and length.
    pub(super) pending: VecDeque<(u64, u64)>,
    pub(super) opening: Opening,
    /// Keys and numbers, once they are negotiated.
    pub(super) association: Option<Box<Association>>,
    /// Threads that wait for the result of connecting to the peer.
    pub(super) asked: Vec<Answer<Result<(), ConnectError>>>,
    /// Time at which the peer was created or last used by a request.
    pub(super) met: Time,
}

impl Remote {
    /// Returns the time at which something was last posted to it or received from it.
    pub(super) fn used(&self) -> Time {
        self.association.as_deref().map_or(self.met, |association| association.used.max(self.met))
    }
}

/// Progress of the next association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// None is being negotiated.
    No,
    /// This end has sent the request.
    Asks(AttemptId),
    /// This end has accepted the peer's request, under this number of the association.
    Answers(u32),
    /// Both ends sent a request, and the peer's has priority. This end waits for it until this time.
    Yields(Time),
}

/// Message of a peer about being forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) enum CloseMessage {
    Close,
    Closed,
}

/// Agreement of two endpoints on keys and numbers, valid until one of them starts anew.
pub(super) struct Association {
    /// Number of the association at this end, by which the transport identifies the peer, and number at the peer.
    pub(super) id: u32,
    pub(super) remote_id: u32,
    pub(super) qp: QpNum,
    pub(super) session: Session,
    /// Port of the peer's side channel.
    pub(super) side_port: u16,
    /// Messages posted to the peer that have not completed.
    pub(super) outstanding: u32,
    /// Time of the last arrival from the peer.
    pub(super) used: Time,
    /// Deadline for the answer to this end's Close, if one was sent.
    pub(super) closing: Option<Time>,
    /// True if the peer has ended a TCP connection, perhaps because its process has died. It is probed.
    pub(super) suspect: bool,
    /// True if the peer is in the list of those whose messages wait for room.
    pub(super) waits: bool,
    /// Position in the outstanding messages at which the next reminders begin, and the time of the next reminders.
    pub(super) remind_from: u64,
    pub(super) remind_at: Time,
    /// TCP connection on which this end sends.
    pub(super) line: Option<u32>,
    /// Encoded side messages that wait for a TCP connection.
    pub(super) unsent: Vec<u8>,
    /// True if the peer is in the list of those with side messages to send.
    pub(super) marked: bool,
    /// Abort messages to be repeated on a new TCP connection, latest first.
    pub(super) aborts: VecDeque<SideMessage>,
    /// True if side messages may not have arrived.
    pub(super) lost: bool,
    /// Time for which something has been awaited from the peer without any sign of life.
    pub(super) silence: Duration,
    /// Time since which there has been neither a sign of life nor a lasting TCP connection.
    pub(super) down_since: Option<Time>,
    /// Time of the next attempt to open a TCP connection, and the number of failed attempts.
    pub(super) call_at: Time,
    pub(super) calls: u32,
    /// Time of the last attempt.
    pub(super) called_at: Time,
    /// Handshake attempt that created the association, kept to repeat its Confirm until a packet of the peer proves
    /// that it arrived.
    pub(super) confirming: Option<AttemptId>,
}

impl Association {
    pub(super) fn new(
        now: Time,
        (id, remote_id): (u32, u32),
        qp: QpNum,
        session: Session,
        side_port: u16,
    ) -> Self {
        Association {
            id,
            remote_id,
            qp,
            session,
            side_port,
            outstanding: 0,
            used: now,
            closing: None,
            suspect: false,
            waits: false,
            remind_from: 0,
            remind_at: Time::ZERO,
            line: None,
            unsent: Vec::new(),
            marked: false,
            aborts: VecDeque::new(),
            lost: false,
            silence: Duration::ZERO,
            down_since: None,
            call_at: Time::ZERO,
            calls: 0,
            called_at: Time::ZERO,
            confirming: None,
        }
    }

    /// Returns the transport's identity of the peer.
    pub(super) fn peer(&self) -> PeerId {
        PeerId { host: HostId(self.id), qp: self.qp }
    }

    /// Records a sign of life of the peer. Returns the handshake attempt that need not be kept any longer, if there
    /// is one.
    pub(super) fn heard(&mut self, now: Time) -> Option<AttemptId> {
        (self.silence, self.used, self.suspect) = (Duration::ZERO, now, false);
        self.holds();
        self.confirming.take()
    }

    /// Records that the side channel works, or that the peer is alive.
    pub(super) fn holds(&mut self) {
        (self.down_since, self.calls) = (None, 0);
    }
}

/// All peers of the loop, by their index in the address vector.
#[derive(Default)]
pub(super) struct Remotes {
    slots: Vec<Option<Box<Remote>>>,
    /// Counter of associations, which distinguishes those of one peer.
    generation: u32,
}

impl Remotes {
    /// `first`: random start of the counter of associations.
    pub(super) fn new(first: u32) -> Self {
        Remotes { slots: Vec::new(), generation: first }
    }

    /// Returns the peer of this entry; creates it if necessary.
    pub(super) fn meet(&mut self, now: Time, entry: &Arc<PeerEntry>) -> &mut Remote {
        let index = entry.peer.index as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let remote = self.slots[index].get_or_insert_with(|| {
            Box::new(Remote {
                entry: entry.clone(),
                pending: VecDeque::new(),
                opening: Opening::No,
                association: None,
                asked: Vec::new(),
                met: now,
            })
        });
        remote.met = now;
        remote
    }

    pub(super) fn get(&self, index: u32) -> Option<&Remote> {
        self.slots.get(index as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Remote> {
        self.slots.get_mut(index as usize)?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, index: u32) -> Option<Box<Remote>> {
        self.slots.get_mut(index as usize)?.take()
    }

    pub(super) fn indices(&self) -> Vec<u32> {
        (0..).zip(&self.slots).filter_map(|(index, slot)| slot.as_ref().map(|_| index)).collect()
    }

    pub(super) fn associations(&self) -> usize {
        self.slots.iter().flatten().filter(|remote| remote.association.is_some()).count()
    }

    /// Returns a new association number for this peer.
    pub(super) fn next_id(&mut self, index: u32) -> u32 {
        const GENERATIONS: u32 = 1 << (32 - INDEX_BITS);
        // 0 is never assigned.
        self.generation = self.generation % (GENERATIONS - 1) + 1;
        self.generation << INDEX_BITS | index
    }

    /// Returns the association with this number, and the index of its peer.
    #[inline]
    pub(super) fn of_id(&mut self, id: u32) -> Option<(u32, &mut Association)> {
        let index = index_of(id);
        let association = self.get_mut(index)?.association.as_deref_mut()?;
        (association.id == id).then_some((index, association))
    }
}

impl Remotes {
    /// Returns the association with this number, and the peer's address.
    #[inline]
    pub(super) fn address_of(&mut self, id: u32) -> Option<(SocketAddr, &mut Association)> {
        let remote = self.get_mut(index_of(id))?;
        let (to, association) = (remote.entry.address(), remote.association.as_deref_mut()?);
        (association.id == id).then_some((to, association))
    }
}

/// Returns the index of the peer to which an association's number belongs.
pub(super) fn index_of(id: u32) -> u32 {
    id & ((1 << INDEX_BITS) - 1)
}

/// Bytes of state of an idle peer here, its keys and replay windows included.
pub(super) const BYTES_A_PEER: usize = size_of::<Option<Box<Remote>>>()
    + size_of::<Remote>()
    + size_of::<Association>()
    + SEQUENCES as usize * crate::secure::BYTES_A_SEQUENCE;
