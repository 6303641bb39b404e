//! Handling of messages from peers.

use alloc::boxed::Box;

use crate::atomic::AtomicForm;
use crate::engine::Engine;
use crate::inbox::{Arrival, Body, Envelope};
use crate::memory::{Memory, PeerId};
use crate::operations::Awaits;
use crate::output::{Failure, Fault, Kind};
use crate::peer::{Connection, KeyState, KnownRegion, Link, MOST_QUESTIONS, Peer, RegionState, Reply};
use crate::region::Known;
use crate::rma::leave_region;
use crate::shared::Core;
use crate::wire::{Ack, AtomicMessage, End, Frame, Message, Notice, RemoteRegion, Use};

impl Engine {
    /// Handles a message that has filled the next receive of a peer. The receive is free again afterwards. A message
    /// that breaks a rule costs the peer its connection.
    pub fn delivered(&mut self, peer: PeerId, bytes: &[u8], memory: &mut dyn Memory) {
        let Some(Peer { link: Link::Up(connection), queue }) = self.peers.get_mut(&peer) else { return };
        let outcome = match Frame::parse(bytes) {
            None => Err(Fault::Malformed),
            Some(frame) => {
                self.core.incoming(peer, connection, frame, bytes.len(), memory).ok_or(Fault::Violation)
            }
        };
        match outcome {
            Ok(()) => self.core.pump(peer, connection, queue, memory),
            Err(fault) => self.cut(peer, fault, memory),
        }
    }
}

impl Core {
    /// Handles a parsed message. Returns `None` if it breaks a rule.
    fn incoming(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        frame: Frame<'_>,
        len: usize,
        memory: &mut dyn Memory,
    ) -> Option<()> {
        let receive = connection.window.fill(&mut self.pool)?;
        let holds = matches!(&frame.message, Message::Eager { payload, .. } if !payload.is_empty());
        if frame.number != connection.received
            || len > receive.size as usize
            || holds && receive.usage == Use::NoPayload
        {
            return None;
        }
        connection.received = connection.received.wrapping_add(1);
        if let Some(run) = frame.grant {
            connection.credits.add(run)?;
        }
        self.acknowledged(connection, frame.acked, memory)?;
        if !matches!(frame.message, Message::Grant { .. }) {
            connection.window.turn(&self.config, &self.pool);
        }
        self.message(peer, connection, frame.message, memory)
    }

    fn acknowledged(
        &mut self,
        connection: &mut Connection,
        acked: u32,
        memory: &mut dyn Memory,
    ) -> Option<()> {
        let more = acked.wrapping_sub(connection.acked);
        if more as usize > connection.asking.len() {
            return None;
        }
        connection.acked = acked;
        for id in connection.asking.drain(..more as usize) {
            self.advance_sent(id, Awaits::Ack, Ok(()), memory);
        }
        Some(())
    }

    fn message(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        message: Message<'_>,
        memory: &mut dyn Memory,
    ) -> Option<()> {
        match message {
            Message::Eager { label, data, ack, payload } => {
                let envelope = Envelope { from: peer, label, data, len: payload.len() as u64 };
                self.receive_eager(envelope, payload, memory);
                took(connection, ack);
            }
            Message::Announce { label, data, id, len, remote } => {
                let envelope = Envelope { from: peer, label, data, len };
                let body = Body::Announced { id, remote };
                match self.inbox.find(&envelope) {
                    Some(landing) => self.land(landing, body, Some(connection), memory),
                    None => self.inbox.keep(Arrival { envelope, body }),
                }
            }
            Message::Finish { id, end } => {
                let sent = self.sent.get(id)?;
                if sent.ticket.peer != peer || sent.awaits != Awaits::Finish {
                    return None;
                }
                self.end_sent(id, if end == End::Taken { Ok(()) } else { Err(Failure::Io) }, memory);
            }
            Message::Grant { more } => {
                for run in more {
                    connection.credits.add(run)?;
                }
            }
            Message::AskKey { key } => {
                let region = self.regions.ask(key, peer, memory);
                answer(connection, Reply::Key { key, region })?;
            }
            Message::Key { key, region } => learn(connection, key, region)?,
            Message::Revoke { region } => revoke(connection, region)?,
            Message::Revoked { region } => self.regions.give_up(region, peer, memory)?,
            Message::Notify { region, what, len, data } => {
                let opened = match self.regions.of_asker(region, peer) {
                    Known::Yes(opened) if len <= opened.region.piece.len => opened,
                    // The withdrawn memory was not written.
                    Known::Withdrawn => return Some(()),
                    Known::Yes(_) | Known::No => return None,
                };
                let kind = if what == Notice::Written { Kind::RemoteWrite } else { Kind::RemoteRead };
                let key = opened.region.key;
                self.note(kind, peer, Some(key), len, data);
            }
            Message::Atomic(atomic) => self.atomic(peer, connection, &atomic, memory)?,
            Message::Result { id, old } => {
                let fetching = self.fetching.get(id)?;
                let is_refused = old.is_empty();
                if fetching.ticket.peer != peer || !is_refused && fetching.ticket.len != old.len() as u64 {
                    return None;
                }
                let fetching = self.fetching.remove(id)?;
                if !is_refused {
                    memory.place(fetching.result, old);
                }
                connection.fetching -= 1;
                leave_region(connection, fetching.region);
                let result = if is_refused { Err(Failure::Access) } else { Ok(()) };
                self.complete(&fetching.ticket, result);
            }
        }
        Some(())
    }

    fn atomic(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        atomic: &AtomicMessage<'_>,
        memory: &mut dyn Memory,
    ) -> Option<()> {
        let old: Box<[u8]> = self.carry_out(peer, atomic, memory)?;
        if atomic.form != AtomicForm::Plain {
            answer(connection, Reply::Result { id: atomic.id, old })?;
        }
        took(connection, atomic.ack);
        Some(())
    }
}

/// Counts a message that has been processed, if it asked for an acknowledgement.
fn took(connection: &mut Connection, ack: Ack) {
    if ack == Ack::Wanted {
        connection.taken = connection.taken.wrapping_add(1);
    }
}

/// Queues an answer. Returns `None` if the peer has more questions open than the rules allow.
fn answer(connection: &mut Connection, reply: Reply) -> Option<()> {
    connection.answer(reply);
    (connection.answers <= 2 * MOST_QUESTIONS).then_some(())
}

/// Records the answer to a question for a key. Returns `None` if the question is not open.
fn learn(connection: &mut Connection, key: u64, region: Option<RemoteRegion>) -> Option<()> {
    let state = connection.keys.get_mut(&key).filter(|state| **state == KeyState::Asked)?;
    connection.keys_asked -= 1;
    let Some(told) = region else {
        *state = KeyState::Refused;
        return Some(());
    };
    *state = KeyState::Region(told.region);
    let known = KnownRegion { key, told, users: 0, state: RegionState::Open };
    connection.regions.insert(told.region, known).is_none().then_some(())
}

/// Handles the peer's request to release a region. Returns `None` if the region is unknown or already revoked.
fn revoke(connection: &mut Connection, region: u64) -> Option<()> {
    let known = connection.regions.get_mut(&region).filter(|known| known.state == RegionState::Open)?;
    connection.keys.remove(&known.key);
    if known.users > 0 {
        known.state = RegionState::Revoked;
    } else {
        connection.regions.remove(&region);
        connection.outbox.push_back(Reply::Revoked { region });
    }
    Some(())
}
