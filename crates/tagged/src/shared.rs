//! State that all peers share: operations in progress, the inbox, and output queues.

use alloc::collections::{BTreeSet, VecDeque};

use crate::config::{Config, MOST_RECEIVES};
use crate::credits::{Allowance, Pool};
use crate::header::Header;
use crate::inbox::{Body, Envelope, Inbox};
use crate::memory::{Memory, PeerId};
use crate::operations::{
    Awaits, Fetching, InFlight, MatchedReceive, OperationInfo, Owner, RequestPart, Rma, Sent, Slot, Transfer,
};
use crate::output::{Action, Completion, Failure, Kind, Payload, RequestId};
use crate::peer::{Connection, MAX_KEY_REQUESTS, Reply};
use crate::region::Regions;
use crate::request::Report;
use crate::table::Table;
use crate::wire::{AnnounceResult, Frame, Message, ReceiveUse};

/// State that all peers share.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) config: Config,
    pub(crate) inbox: Inbox,
    pub(crate) regions: Regions,
    pub(crate) sent: Table<Sent>,
    pub(crate) rmas: Table<Rma>,
    pub(crate) transfers: Table<Transfer>,
    pub(crate) fetching: Table<Fetching>,
    pub(crate) requests: Table<InFlight>,
    pub(crate) pool: Pool,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) completions: VecDeque<Completion>,
    /// Number of operations that count against the limit.
    pub(crate) operations: usize,
    /// Number of completion entries of peers' accesses that the application has not read.
    pub(crate) notices: u64,
    /// Peers that were denied a full grant because too much is held.
    pub(crate) peers_without_grant: BTreeSet<PeerId>,
}

impl SharedState {
    pub(crate) fn new(config: Config) -> Self {
        SharedState {
            inbox: Inbox::new(config.seed),
            regions: Regions::default(),
            sent: Table::default(),
            rmas: Table::default(),
            transfers: Table::default(),
            fetching: Table::default(),
            requests: Table::default(),
            pool: Pool::default(),
            actions: VecDeque::new(),
            completions: VecDeque::new(),
            operations: 0,
            notices: 0,
            peers_without_grant: BTreeSet::new(),
            config,
        }
    }

    /// Reports the end of an operation.
    pub(crate) fn complete(&mut self, ticket: &OperationInfo, result: Result<(), Failure>) {
        self.free_slot(ticket.slot);
        self.completions.push_back(ticket.done(result));
    }
    pub(crate) fn free_slot(&mut self, slot: Slot) {
        if slot == Slot::Counted {
            self.operations -= 1;
        }
    }

    /// Registers a request to the transport whose end matters, and returns its number.
    pub(crate) fn start_request(&mut self, peer: PeerId, what: RequestPart) -> RequestId {
        RequestId(self.requests.insert(InFlight { peer, what }))
    }

    /// Returns the number of messages that peers may send in addition to the granted ones.
    fn room(&self) -> u64 {
        let messages = self.inbox.messages() as u64 + self.pool.receives();
        if self.notices < self.config.notices {
            self.config.unexpected_messages.saturating_sub(messages)
        } else {
            0
        }
    }
    /// Returns true if there is room for more messages of peers.
    pub(crate) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Posts missing receives of a peer, as far as the limits allow.
    fn refill(&mut self, peer: PeerId, connection: &mut Connection) {
        let messages = if connection.answers > MAX_KEY_REQUESTS { 0 } else { self.room() };
        if messages < u64::from(MOST_RECEIVES) {
            self.peers_without_grant.insert(peer);
        }
        let is_full = self.inbox.held() >= self.config.unexpected_bytes;
        let usage = if is_full { ReceiveUse::NoPayload } else { ReceiveUse::Anything };
        let allowed = Allowance { messages, usage };
        if let Some(run) = connection.window.refill(&self.config, &mut self.pool, allowed) {
            self.actions.push_back(Action::PostReceives { peer, count: run.count, size: run.size });
        }
    }

    /// Returns true if a message may leave: there is a receive for it, and it is not the one reserved for grants.
    pub(crate) fn may_send(&mut self, peer: PeerId, connection: &mut Connection) -> bool {
        let total = connection.credits.total();
        if total == 0 {
            return false;
        }
        if total == 1 || connection.window.is_refill_due() {
            self.refill(peer, connection);
        }
        total > 1 || connection.window.has_ungranted()
    }

    /// Returns true if a message without content is due, for its grant or its acknowledgement.
    pub(crate) fn is_word_due(&mut self, peer: PeerId, connection: &mut Connection) -> bool {
        if connection.window.is_refill_due() {
            self.refill(peer, connection);
        }
        connection.window.is_grant_due() || connection.ack_count != connection.ack_count_sent
    }

    /// Sends a message. The caller has checked [`may_send`](Self::may_send).
    pub(crate) fn transmit(
        &mut self,
        peer: PeerId,
        connection: &mut Connection,
        message: Message<'_>,
        payload: Payload,
        request: RequestId,
    ) {
        let header = self.next_header(connection, message);
        self.actions.push_back(Action::Send { peer, header, payload, request });
    }

    /// Builds the header of a message that leaves now.
    pub(crate) fn next_header(&self, connection: &mut Connection, message: Message<'_>) -> Header {
        let grant = connection.window.grant();
        let message = match message {
            Message::Grant { .. } => Message::Grant { more: connection.window.more_grants() },
            other => other,
        };
        let frame = Frame { number: connection.sent, acked: connection.ack_count, grant, message };
        connection.sent = connection.sent.wrapping_add(1);
        connection.ack_count_sent = connection.ack_count;
        connection.credits.spend();
        frame.header()
    }

    /// Records that one of the events a message waited for has occurred, and ends the message after the last one.
    pub(crate) fn advance_sent(
        &mut self,
        id: u64,
        happened: Awaits,
        result: Result<(), Failure>,
        memory: &mut dyn Memory,
    ) {
        let Some(sent) = self.sent.get_mut(id) else { return };
        let left = match (sent.awaits, happened) {
            (Awaits::TransportAndAck, Awaits::Transport) if result.is_ok() => Some(Awaits::Ack),
            (Awaits::TransportAndAck, Awaits::Ack) if result.is_ok() => Some(Awaits::Transport),
            _ => None,
        };
        match left {
            Some(left) => sent.awaits = left,
            None => self.end_sent(id, result, memory),
        }
    }

    /// Ends a sent message.
    pub(crate) fn end_sent(&mut self, id: u64, result: Result<(), Failure>, memory: &mut dyn Memory) {
        let Some(sent) = self.sent.remove(id) else { return };
        if let Some(rkey) = sent.registered {
            memory.deregister(rkey);
        }
        if let Some(buffer) = sent.kept {
            memory.release(buffer);
        }
        self.complete(&sent.ticket, result);
    }

    /// Completes the receive of a message that has been placed or has failed.
    pub(crate) fn end_landing(&mut self, landing: &MatchedReceive, failure: Option<Failure>) {
        let release = self.inbox.on_placed(landing);
        self.completions.push_back(landing.done(failure, release));
    }

    /// Moves a message into its receive. `connection` is the connection to its sender; without one, an announced
    /// message is lost.
    pub(crate) fn land(
        &mut self,
        landing: MatchedReceive,
        body: Body,
        connection: Option<&mut Connection>,
        memory: &mut dyn Memory,
    ) {
        let into = landing.into;
        match body {
            Body::Held(bytes) => {
                memory.write(into, &bytes[..into.len as usize]);
                self.end_landing(&landing, None);
            }
            Body::Own { sent, piece } => {
                memory.copy(piece.within(0, into.len), into);
                self.end_landing(&landing, None);
                self.end_sent(sent, Ok(()), memory);
            }
            Body::Lost(failure) => self.end_landing(&landing, Some(failure)),
            Body::Announced { id, remote } => match connection {
                None => self.end_landing(&landing, Some(Failure::Reset)),
                Some(connection) if into.len == 0 => {
                    connection.outbox.push_back(Reply::Finish { id, end: AnnounceResult::Taken });
                    self.end_landing(&landing, None);
                }
                Some(connection) => {
                    let peer = landing.ticket.peer;
                    let owner = Owner::Landing { landing, id };
                    let transfer =
                        Transfer { peer, remote, into, issued: 0, chunks: 0, failure: None, owner };
                    connection.pending_transfers.push_back(self.transfers.insert(transfer));
                }
            },
        }
    }

    /// Drops a message without reading it.
    pub(crate) fn discard(
        &mut self,
        body: Body,
        connection: Option<&mut Connection>,
        memory: &mut dyn Memory,
    ) {
        match body {
            Body::Held(_) | Body::Lost(_) => {}
            Body::Own { sent, .. } => self.end_sent(sent, Ok(()), memory),
            Body::Announced { id, .. } => {
                if let Some(connection) = connection {
                    connection.outbox.push_back(Reply::Finish { id, end: AnnounceResult::Taken });
                }
            }
        }
    }

    /// Reports that a peer, or this endpoint itself, has accessed local memory.
    pub(crate) fn report_access(
        &mut self,
        kind: Kind,
        from: PeerId,
        region: Option<u64>,
        len: u64,
        data: Option<u64>,
    ) {
        if from != PeerId::SELF && data.is_some() {
            self.notices += 1;
        }
        let report = if data.is_some() { Report::Entry } else { Report::Count };
        let ticket =
            OperationInfo { context: 0, kind, report, peer: from, len, data, slot: Slot::NotCounted };
        self.completions.push_back(Completion { region, ..ticket.done(Ok(())) });
    }

    /// Handles an eager message.
    pub(crate) fn receive_eager(&mut self, envelope: Envelope, payload: &[u8], memory: &mut dyn Memory) {
        match self.inbox.find(&envelope) {
            Some(landing) => {
                memory.write(landing.into, &payload[..landing.into.len as usize]);
                self.end_landing(&landing, None);
            }
            None => self
                .inbox
                .hold_unexpected(crate::inbox::Arrival { envelope, body: Body::Held(payload.into()) }),
        }
    }
}
