//! Handling of messages from peers.

use alloc::boxed::Box;

use crate::atomic::AtomicForm;
use crate::engine::Engine;
use crate::inbox::{Arrival, Body, Envelope};
use crate::memory::{Memory, PeerId};
use crate::operations::Awaits;
use crate::output::{Failure, Fault, Kind};
use crate::peer::{Connection, KeyState, KnownRegion, Link, MAX_KEY_REQUESTS, Peer, RegionState, Reply};
use crate::region::PeerView;
use crate::rma::leave_region;
use crate::shared::SharedState;
use crate::wire::{
    AckRequest, AnnounceResult, AtomicMessage, Frame, Message, Notice, ReceiveUse, RemoteRegion,
};

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
            Ok(()) => self.core.send_pending(peer, connection, queue, memory),
            Err(fault) => self.cut(peer, fault, memory),
        }
    }
}

impl SharedState {
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
            || holds && receive.usage == ReceiveUse::NoPayload
        {
            return None;
        }
        connection.received = connection.received.wrapping_add(1);
        if let Some(run) = frame.grant {
            connection.credits.add(run)?;
        }
        self.acknowledged(connection, frame.acked, memory)?;
        if !matches!(frame.message, Message::Grant { .. }) {
            connection.window.count_filled(&self.config, &self.pool);
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
        if more as usize > connection.awaiting_ack.len() {
            return None;
        }
        connection.acked = acked;
        for id in connection.awaiting_ack.drain(..more as usize) {
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
                count_acknowledged(connection, ack);
            }
            Message::Announce { label, data, id, len, remote } => {
                let envelope = Envelope { from: peer, label, data, len };
                let body = Body::Announced { id, remote };
                match self.inbox.find(&envelope) {
                    Some(landing) => self.land(landing, body, Some(connection), memory),
                    None => self.inbox.hold_unexpected(Arrival { envelope, body }),
                }
            }
            Message::Finish { id, end } => {
                let sent = self.sent.get(id)?;
                if sent.ticket.peer != peer || sent.awaits != Awaits::Finish {
                    return None;
                }
                self.end_sent(
                    id,
                    if end == AnnounceResult::Taken { Ok(()) } else { Err(Failure::Io) },
                    memory,
                );
            }
            Message::Grant { more } => {
                for run in more {
                    connection.credits.add(run)?;
                }
            }
            Message::KeyRequest { key } => {
                let region = self.regions.describe_for_peer(key, peer, memory);
                answer(connection, Reply::Key { key, region })?;
            }
            Message::Key { key, region } => on_key_answer(connection, key, region)?,
            Message::Revoke { region } => revoke(connection, region)?,
            Message::Revoked { region } => self.regions.peer_released(region, peer, memory)?,
            Message::Notify { region, what, len, data } => {
                let opened = match self.regions.view_for_peer(region, peer) {
                    PeerView::Yes(opened) if len <= opened.region.piece.len => opened,
                    // The withdrawn memory was not written.
                    PeerView::Withdrawn => return Some(()),
                    PeerView::Yes(_) | PeerView::No => return None,
                };
                let kind = if what == Notice::Written { Kind::RemoteWrite } else { Kind::RemoteRead };
                let key = opened.region.key;
                self.report_access(kind, peer, Some(key), len, data);
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
                    memory.write(fetching.result, old);
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
        count_acknowledged(connection, atomic.ack);
        Some(())
    }
}

/// Counts a message that has been processed, if it asked for an acknowledgement.
fn count_acknowledged(connection: &mut Connection, ack: AckRequest) {
    if ack == AckRequest::Wanted {
        connection.ack_count = connection.ack_count.wrapping_add(1);
    }
}

/// Queues an answer. Returns `None` if the peer has more questions open than the rules allow.
fn answer(connection: &mut Connection, reply: Reply) -> Option<()> {
    connection.answer(reply);
    (connection.answers <= 2 * MAX_KEY_REQUESTS).then_some(())
}

/// Records the answer to a question for a key. Returns `None` if the question is not open.
fn on_key_answer(connection: &mut Connection, key: u64, region: Option<RemoteRegion>) -> Option<()> {
    let state = connection.keys.get_mut(&key).filter(|state| **state == KeyState::Asked)?;
    connection.keys_asked -= 1;
    let Some(told) = region else {
        *state = KeyState::Refused;
        return Some(());
    };
    *state = KeyState::Region(told.region);
    let known = KnownRegion { key, description: told, users: 0, state: RegionState::Open };
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
