//! Order in which messages and requests leave to a peer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::memory::{Access, Memory, PeerId, Piece, Remote};
use crate::operations::{Awaits, Owner, Queued, QueuedSend, RequestPart, Sent, Slot};
use crate::output::{Action, Failure, Payload, RequestId};
use crate::peer::{Connection, Reply};
use crate::request::{BufferLifetime, DoneWhen};
use crate::shared::SharedState;
use crate::wire::{AckRequest, AnnounceResult, EAGER_HEADER, Message, ReceiveUse};

/// Result of issuing the operation at the head of a peer's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The operation has left or failed.
    Issued,
    /// The operation waits for a receive, a key, or requests in flight.
    Waits,
}

impl SharedState {
    /// Sends everything that may leave: chunks of messages to receive, answers, operations in order, and finally
    /// grants.
    pub(crate) fn send_pending(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        queue: &mut VecDeque<Queued>,
        memory: &mut dyn Memory,
    ) {
        loop {
            self.request_chunks(peer, connection);
            if !connection.outbox.is_empty() {
                if !self.may_send(peer, connection) {
                    break;
                }
                self.send_reply(peer, connection);
                continue;
            }
            let Some(head) = queue.front_mut() else { break };
            let step = match head {
                Queued::Send(send) => self.issue_send(peer, connection, send, memory),
                Queued::Write(id) => self.issue_write(peer, connection, *id, memory),
                Queued::Read(id) => self.issue_read(peer, connection, *id, memory),
                Queued::Atomic(atomic) => self.issue_atomic(peer, connection, atomic),
            };
            match step {
                Step::Issued => drop(queue.pop_front()),
                // The operation may have asked for a key; that question leaves first.
                Step::Waits if connection.outbox.is_empty() => break,
                Step::Waits => {}
            }
        }
        while self.is_word_due(peer, connection) && self.may_send(peer, connection) {
            let word = Message::Grant { more: Vec::new() };
            self.transmit(peer, connection, word, Payload::None, RequestId(0));
        }
    }

    fn send_reply(&mut self, peer: PeerId, connection: &mut Connection) {
        let Some(reply) = connection.outbox.pop_front() else { return };
        if reply.is_answer() {
            connection.answers -= 1;
        }
        let mut payload = Payload::None;
        let message = match reply {
            Reply::Finish { id, end } => Message::Finish { id, end },
            Reply::AskKey { key } => Message::KeyRequest { key },
            Reply::Key { key, region } => Message::Key { key, region },
            Reply::Revoke { region } => Message::Revoke { region },
            Reply::Revoked { region } => Message::Revoked { region },
            Reply::Notice { region, what, len } => Message::Notify { region, what, len, data: None },
            Reply::Result { id, old } => {
                payload = Payload::Bytes(old);
                Message::Result { id, old: &[] }
            }
        };
        self.transmit(peer, connection, message, payload, RequestId(0));
    }

    fn issue_send(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        send: &mut QueuedSend,
        memory: &mut dyn Memory,
    ) -> Step {
        if !self.may_send(peer, connection) {
            return Step::Waits;
        }
        if self.fits_next(connection, send.payload.len) {
            self.send_eager(peer, connection, send);
        } else {
            self.announce(peer, connection, send, memory);
        }
        Step::Issued
    }

    /// Returns true if a message of `len` bytes can be sent eagerly into the receive that the next message fills.
    pub(crate) fn fits_next(&self, connection: &Connection, len: u64) -> bool {
        let Some(next) = connection.credits.next() else { return false };
        let room = u64::from(next.size.saturating_sub(EAGER_HEADER)).min(u64::from(self.config.eager));
        len <= room && (next.usage == ReceiveUse::Anything || len == 0)
    }

    fn send_eager(&mut self, peer: PeerId, connection: &mut Connection, send: &QueuedSend) {
        let (awaits, ack) = match send.done {
            DoneWhen::Transmitted => (Awaits::Transport, AckRequest::No),
            DoneWhen::Delivered => (Awaits::TransportAndAck, AckRequest::Wanted),
        };
        let sent = Sent { ticket: send.ticket, kept: send.kept, registered: None, awaits };
        let id = self.sent.insert(sent);
        if ack == AckRequest::Wanted {
            connection.awaiting_ack.push_back(id);
        }
        let request = self.start_request(peer, RequestPart::Message(id));
        let message = Message::Eager { label: send.label, data: send.data, ack, payload: &[] };
        let payload = if send.payload.len == 0 { Payload::None } else { Payload::Piece(send.payload) };
        self.transmit(peer, connection, message, payload, request);
    }

    /// Announces a message, which the receiver then READs. An announced message holds no slot; otherwise thousands of
    /// them in both directions would block each other.
    fn announce(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        send: &mut QueuedSend,
        memory: &mut dyn Memory,
    ) {
        if send.hold == BufferLifetime::ThisCall && send.kept.is_none() {
            send.kept = memory.copy_out(send.payload);
            let Some(buffer) = send.kept else {
                return self.complete(&send.ticket, Err(Failure::NoMemory));
            };
            send.payload = Piece::whole(buffer, send.payload.len);
        }
        let Some(remote) = memory.register(send.payload, Access::Read, Some(peer)) else {
            if let Some(buffer) = send.kept {
                memory.release(buffer);
            }
            return self.complete(&send.ticket, Err(Failure::NoMemory));
        };
        self.free_slot(send.ticket.slot);
        send.ticket.slot = Slot::NotCounted;
        let sent = Sent {
            ticket: send.ticket,
            kept: send.kept,
            registered: Some(remote.rkey),
            awaits: Awaits::Finish,
        };
        let id = self.sent.insert(sent);
        let len = send.payload.len;
        let message = Message::Announce { label: send.label, data: send.data, id, len, remote };
        self.transmit(peer, connection, message, Payload::None, RequestId(0));
    }

    /// READs the next chunks of messages and of the application's reads, round robin, so that a short transfer does
    /// not wait for a long one.
    fn request_chunks(&mut self, peer: PeerId, connection: &mut Connection) {
        let (most, bytes) = (self.config.reads_in_flight, self.config.bytes_in_flight);
        while let Some(id) = connection.pending_transfers.pop_front() {
            let Some(transfer) = self.transfers.get_mut(id) else { continue };
            let left = transfer.into.len - transfer.issued;
            if transfer.failure.is_some() || left == 0 {
                continue;
            }
            let len = left.min(self.config.chunk);
            if !connection.reads.has_room(len, most, bytes) {
                connection.pending_transfers.push_front(id);
                break;
            }
            let into = transfer.into.within(transfer.issued, len);
            let Remote { address, rkey } = transfer.remote;
            let remote = Remote { address: address + transfer.issued, rkey };
            transfer.issued += len;
            transfer.chunks += 1;
            connection.reads.add(len);
            if len < left {
                connection.pending_transfers.push_back(id);
            }
            let request = self.start_request(peer, RequestPart::ReadChunk(id, len));
            self.actions.push_back(Action::Read { peer, remote, into, request });
        }
    }

    /// Handles the end of a chunk's READ.
    pub(crate) fn chunk_read(
        &mut self,
        connection: &mut Connection,
        id: u64,
        result: Result<(), Failure>,
        memory: &mut dyn Memory,
    ) {
        let Some(transfer) = self.transfers.get_mut(id) else { return };
        transfer.chunks -= 1;
        // After the owner has revoked the region, the bytes read are undefined.
        let is_revoked = matches!(transfer.owner, Owner::Rma(rma) if self.rmas.get(rma).is_some_and(|rma| rma.is_revoked(connection)));
        let result = if is_revoked { Err(Failure::Access) } else { result };
        transfer.failure = transfer.failure.or(result.err());
        if !transfer.is_over() {
            return;
        }
        let Some(transfer) = self.transfers.remove(id) else { return };
        match transfer.owner {
            Owner::Landing { landing, id } => {
                let end =
                    if transfer.failure.is_some() { AnnounceResult::Failed } else { AnnounceResult::Taken };
                connection.outbox.push_back(Reply::Finish { id, end });
                self.end_landing(&landing, transfer.failure);
            }
            Owner::Rma(rma) => {
                self.part_of_rma_done(rma, transfer.failure);
                self.end_rma_if_over(connection, rma, memory);
            }
        }
    }
}
