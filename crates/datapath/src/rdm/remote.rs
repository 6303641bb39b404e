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

/// Bits of an association's number that say which peer it is of.
const INDEX_BITS: u32 = 20;

/// The sequence of protected packets that datagrams are; the paths they take are not told apart, so that a peer costs
/// the same however many there are.
pub(super) const DATAGRAMS: u16 = 0;
/// The sequence of protected packets that records of the side channel are.
pub(super) const SIDE_CHANNEL: u16 = 1;
/// Sequences of an association.
pub(super) const SEQUENCES: u16 = 2;

/// Between two looks at peers with something under way.
pub(super) const BUSY: Duration = Duration::from_ms(10);

/// A peer.
pub(super) struct Remote {
    pub(super) entry: Arc<PeerEntry>,
    /// Messages that wait for an association, or for room in it: handles.
    pub(super) pending: VecDeque<(u64, u64)>,
    pub(super) opening: Opening,
    /// Keys and numbers, once they are agreed on.
    pub(super) association: Option<Box<Association>>,
    /// Who waits to hear whether it can be reached.
    pub(super) asked: Vec<Answer<Result<(), ConnectError>>>,
    /// When it was met, or asked for something last.
    pub(super) met: Time,
}

impl Remote {
    /// When something was last posted to it or heard of it.
    pub(super) fn used(&self) -> Time {
        self.association.as_deref().map_or(self.met, |association| association.used.max(self.met))
    }
}

/// How far the next association has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// There is none on the way.
    No,
    /// This end asks.
    Asks(AttemptId),
    /// The peer asks, and was told yes: the number it knows us by.
    Answers(u32),
    /// Both asked; the peer's attempt goes on, and is waited for until then.
    Yields(Time),
}

/// What a peer has said about being forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leave {
    Close,
    Closed,
}

/// What two ends have agreed on, until one of them begins anew.
pub(super) struct Association {
    /// Its number here, by which the transport knows the peer, and there.
    pub(super) id: u32,
    pub(super) remote_id: u32,
    pub(super) qp: QpNum,
    pub(super) session: Session,
    /// Port of its side channel.
    pub(super) side_port: u16,
    /// Messages posted to it that are not done.
    pub(super) outstanding: u32,
    /// When it was last heard.
    pub(super) used: Time,
    /// This end has asked whether it may forget the peer, and waits so long for the answer.
    pub(super) closing: Option<Time>,
    /// It has ended a TCP connection, perhaps because its process is gone: it is to give a sign of life.
    pub(super) suspect: bool,
    /// It is among those whose messages wait for room.
    pub(super) waits: bool,
    /// Which of its messages are looked at next for one that may have been forgotten, and when.
    pub(super) remind_from: u64,
    pub(super) remind_at: Time,
    /// The TCP connection on which this end speaks.
    pub(super) line: Option<u32>,
    /// Messages of the side channel that wait for one.
    pub(super) unsaid: Vec<u8>,
    /// It is among those with something to say.
    pub(super) marked: bool,
    /// Given up messages, to be said again on a new TCP connection.
    pub(super) aborts: VecDeque<SideMessage>,
    /// What was said may not have arrived.
    pub(super) lost: bool,
    /// How long something has been awaited of it without a sign of life.
    pub(super) silence: Duration,
    /// Since when there has been no sign of life and no lasting TCP connection.
    pub(super) down_since: Option<Time>,
    /// When a TCP connection may be tried next, and how often it was in vain.
    pub(super) call_at: Time,
    pub(super) calls: u32,
    /// When one was tried last.
    pub(super) called_at: Time,
    /// The attempt it came from, kept to repeat its Confirm until the peer shows that it has it.
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
            unsaid: Vec::new(),
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

    /// The transport's name of the peer.
    pub(super) fn peer(&self) -> PeerId {
        PeerId { host: HostId(self.id), qp: self.qp }
    }

    /// A word of the peer, however it came. The attempt that need not be kept any longer, if there is one.
    pub(super) fn heard(&mut self, now: Time) -> Option<AttemptId> {
        (self.silence, self.used, self.suspect) = (Duration::ZERO, now, false);
        self.holds();
        self.confirming.take()
    }

    /// The side channel holds, or the peer has said something.
    pub(super) fn holds(&mut self) {
        (self.down_since, self.calls) = (None, 0);
    }
}

/// All peers the loop has met, by their place in the address vector.
#[derive(Default)]
pub(super) struct Remotes {
    slots: Vec<Option<Box<Remote>>>,
    /// Counts associations, to tell those of one peer apart.
    generation: u32,
}

impl Remotes {
    /// `first`: what associations are counted from, at random.
    pub(super) fn new(first: u32) -> Self {
        Remotes { slots: Vec::new(), generation: first }
    }

    /// The peer of this entry, who is met if need be.
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

    /// A number for an association of this peer that its others do not have.
    pub(super) fn next_id(&mut self, index: u32) -> u32 {
        const GENERATIONS: u32 = 1 << (32 - INDEX_BITS);
        // 0 names nothing.
        self.generation = self.generation % (GENERATIONS - 1) + 1;
        self.generation << INDEX_BITS | index
    }

    /// The association of this number, and the place of its peer.
    #[inline]
    pub(super) fn of_id(&mut self, id: u32) -> Option<(u32, &mut Association)> {
        let index = index_of(id);
        let association = self.get_mut(index)?.association.as_deref_mut()?;
        (association.id == id).then_some((index, association))
    }
}

impl Remotes {
    /// The association of this number, and where its packets go.
    #[inline]
    pub(super) fn address_of(&mut self, id: u32) -> Option<(SocketAddr, &mut Association)> {
        let remote = self.get_mut(index_of(id))?;
        let (to, association) = (remote.entry.address(), remote.association.as_deref_mut()?);
        (association.id == id).then_some((to, association))
    }
}

/// The place of the peer an association's number is of.
pub(super) fn index_of(id: u32) -> u32 {
    id & ((1 << INDEX_BITS) - 1)
}

/// Bytes a peer costs here, its keys and replay windows included, while nothing is on the way.
pub(super) const BYTES_A_PEER: usize = size_of::<Option<Box<Remote>>>()
    + size_of::<Remote>()
    + size_of::<Association>()
    + SEQUENCES as usize * crate::secure::BYTES_A_SEQUENCE;
