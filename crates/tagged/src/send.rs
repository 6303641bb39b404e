//! Send operations.

use alloc::vec;

use crate::config::{MAX_INJECT, MAX_MESSAGE};
use crate::engine::Engine;
use crate::header::Header;
use crate::inbox::{Arrival, Body, Envelope};
use crate::memory::{Memory, PeerId, Piece};
use crate::operations::{Awaits, OperationInfo, Queued, QueuedSend, Sent, Slot};
use crate::output::Kind;
use crate::peer::{Link, Peer};
use crate::request::{BufferLifetime, Label, PostError, Send};
use crate::wire::{AckRequest, Message};

impl Engine {
    /// Sends a message. Messages to one peer are matched in the order of these calls.
    pub fn post_send(&mut self, send: Send, memory: &mut dyn Memory) -> Result<(), PostError> {
        let most = if send.hold == BufferLifetime::ThisCall { MAX_INJECT } else { MAX_MESSAGE };
        self.admit(send.payload.len, most)?;
        let slot = if send.to == PeerId::SELF { Slot::NotCounted } else { Slot::Counted };
        let ticket = OperationInfo {
            context: send.context,
            kind: Kind::Send(send.label),
            report: send.report,
            peer: send.to,
            len: send.payload.len,
            data: None,
            slot,
        };
        if send.to == PeerId::SELF {
            self.send_to_self(ticket, &send, memory);
            return Ok(());
        }
        let Send { to, label, payload, data, hold, done, .. } = send;
        let queued = QueuedSend { ticket, label, data, payload, kept: None, hold, done };
        self.core.operations += 1;
        self.peers.entry(to).or_default().queue.push_back(Queued::Send(queued));
        self.start(to, memory);
        if hold == BufferLifetime::ThisCall { self.keep_last(to, memory) } else { Ok(()) }
    }

    /// Sends a short message at once if nothing must leave before it. For drivers that copy a message as they take it
    /// and need no completion. The driver first executes all actions, and then sends the returned header followed by
    /// `len` bytes of payload before anything else. The message is then complete. Returns `None`, without effect, if
    /// the message cannot leave now; the driver then uses [`post_send`](Self::post_send).
    pub fn send_now(&mut self, to: PeerId, label: Label, len: u64, data: Option<u64>) -> Option<Header> {
        let Some(Peer { link: Link::Up(connection), queue }) = self.peers.get_mut(&to) else { return None };
        let is_next = queue.is_empty() && connection.outbox.is_empty();
        if !is_next || !self.core.may_send(to, connection) || !self.core.fits_next(connection, len) {
            return None;
        }
        let message = Message::Eager { label, data, ack: AckRequest::No, payload: &[] };
        Some(self.core.next_header(connection, message))
    }

    /// Checks that an operation of this length is allowed and that there is room for it.
    pub(crate) fn admit(&self, len: u64, most: u64) -> Result<(), PostError> {
        if len > most {
            return Err(PostError::TooLong { len, most });
        }
        if self.room() == 0 { Err(PostError::Full) } else { Ok(()) }
    }

    /// Copies the payload of the message posted last, if it is still queued.
    fn keep_last(&mut self, to: PeerId, memory: &mut dyn Memory) -> Result<(), PostError> {
        let Some(peer) = self.peers.get_mut(&to) else { return Ok(()) };
        let Some(Queued::Send(last)) = peer.queue.back_mut() else { return Ok(()) };
        if last.payload.len == 0 {
            return Ok(());
        }
        let Some(buffer) = memory.copy_out(last.payload) else {
            peer.queue.pop_back();
            self.core.operations -= 1;
            return Err(PostError::NoMemory);
        };
        last.payload = Piece::whole(buffer, last.payload.len);
        last.kept = Some(buffer);
        Ok(())
    }

    /// Sends a message to this endpoint. A short message is held like one from a peer.
    fn send_to_self(&mut self, ticket: OperationInfo, send: &Send, memory: &mut dyn Memory) {
        let core = &mut self.core;
        let piece = send.payload;
        let envelope = Envelope { from: PeerId::SELF, label: send.label, data: send.data, len: piece.len };
        let own = |core: &mut crate::shared::SharedState| {
            let sent = Sent { ticket, kept: None, registered: None, awaits: Awaits::LocalReceive };
            Body::Own { sent: core.sent.insert(sent), piece }
        };
        if let Some(landing) = core.inbox.find(&envelope) {
            let body = own(core);
            core.land(landing, body, None, memory);
            return;
        }
        let fits = piece.len <= u64::from(core.config.eager)
            && core.inbox.held() + piece.len <= core.config.unexpected_bytes;
        if send.hold == BufferLifetime::UntilDone && !fits {
            let body = own(core);
            core.inbox.hold_unexpected(Arrival { envelope, body });
            return;
        }
        let mut bytes = vec![0; piece.len as usize];
        memory.fetch(piece, &mut bytes);
        core.inbox.hold_unexpected(Arrival { envelope, body: Body::Held(bytes.into()) });
        core.complete(&ticket, Ok(()));
    }
}
