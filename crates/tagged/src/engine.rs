//! Interface of the engine to its driver.

use alloc::collections::BTreeSet;

use foldhash::quality::FixedState;
use hashbrown::HashMap;

use crate::config::Config;
use crate::memory::{Memory, PeerId, Piece};
use crate::operations::{Awaits, OperationInfo, Owner, Queued, RequestPart};
use crate::output::{Action, Completion, Failure, Fault, RequestId};
use crate::peer::{Connection, Link, Peer, Reply, Role};
use crate::region::{Region, RegionId};
use crate::request::{PostError, Report};
use crate::shared::SharedState;

/// Engine of one endpoint. The documentation of the crate describes how a driver uses it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) peers: HashMap<PeerId, Peer, FixedState>,
    pub(crate) core: SharedState,
}

impl Engine {
    /// Creates an engine without peers.
    pub fn new(mut config: Config) -> Self {
        let hash = FixedState::with_seed(config.seed);
        // A peer treats smaller receives as a violation.
        config.busy_receive = config.busy_receive.max(crate::config::FIRST_RECEIVES.1);
        Engine { peers: HashMap::with_hasher(hash), core: SharedState::new(config) }
    }

    /// Returns the next action that the driver must execute.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.core.actions.pop_front()
    }

    /// Returns the next completion for the application.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.core.completions.pop_front()
    }

    /// Returns the number of operations that can be posted before [`PostError::Full`]. Announced messages do not
    /// count.
    pub fn room(&self) -> usize {
        self.core.config.operations.saturating_sub(self.core.operations)
    }

    /// Returns the bytes of unexpected payload held.
    pub fn held_bytes(&self) -> u64 {
        self.core.inbox.held()
    }
    /// Returns the number of messages that matched no receive, including claimed ones.
    pub fn unexpected_messages(&self) -> usize {
        self.core.inbox.messages()
    }
    /// Returns the number of receives that wait for messages.
    pub fn posted_receives(&self) -> usize {
        self.core.inbox.receives()
    }
    /// Returns the total bytes of receives posted for peers.
    pub fn pool_bytes(&self) -> u64 {
        self.core.pool.bytes()
    }

    /// Returns true if the connection to the peer is up.
    pub fn is_up(&self, peer: PeerId) -> bool {
        matches!(self.peers.get(&peer), Some(Peer { link: Link::Up(_), .. }))
    }

    /// Returns true if all operations on a peer have ended and all answers to it have left. The connection can then
    /// be closed without loss. An announced message ends when the peer has read it.
    pub fn is_idle(&self, peer: PeerId) -> bool {
        let Some(Peer { link, queue }) = self.peers.get(&peer) else { return true };
        let quiet = match link {
            Link::Up(c) => {
                c.outbox.is_empty()
                    && c.pending_transfers.is_empty()
                    && c.reads.is_none()
                    && c.writes.is_none()
            }
            Link::Down | Link::Connecting => true,
        };
        quiet
            && queue.is_empty()
            && !self.core.requests.iter().any(|(_, request)| request.peer == peer)
            && !self.core.sent.iter().any(|(_, sent)| sent.ticket.peer == peer)
            && !self.core.fetching.iter().any(|(_, fetching)| fetching.ticket.peer == peer)
    }

    /// Returns true if the peer is still to receive something whose end is reported to nobody: an operation without a
    /// completion entry, such as an inject, or an answer.
    pub fn has_unreported_output(&self, peer: PeerId) -> bool {
        let Some(Peer { link, queue }) = self.peers.get(&peer) else { return false };
        let is_owed = |ticket: &OperationInfo| ticket.peer == peer && ticket.report == Report::Count;
        matches!(link, Link::Up(connection) if !connection.outbox.is_empty())
            // An announced message that was not copied is excluded: the application either waits for its end or does
            // not need it.
            || self.core.sent.iter().any(|(_, sent)| {
                is_owed(&sent.ticket) && (sent.kept.is_some() || sent.awaits != Awaits::Finish)
            })
            || self.core.rmas.iter().any(|(_, rma)| is_owed(&rma.ticket))
            || queue.iter().any(|queued| match queued {
                Queued::Send(send) => is_owed(&send.ticket),
                Queued::Atomic(atomic) => is_owed(&atomic.ticket),
                // Covered by the RMAs above.
                Queued::Write(_) | Queued::Read(_) => false,
            })
    }

    /// Reports that a connection to a peer is up. The driver must execute the resulting actions before it delivers
    /// the first message of the peer. An earlier connection to the same peer goes down with [`Failure::Reset`].
    pub fn peer_up(&mut self, peer: PeerId, role: Role, memory: &mut dyn Memory) {
        if peer == PeerId::SELF {
            return;
        }
        if self.is_up(peer) {
            self.peer_down(peer, Failure::Reset, memory);
        }
        let connection = Connection::new(role, &mut self.core.pool);
        let (count, size) = crate::config::FIRST_RECEIVES;
        self.core.actions.push_back(Action::PostReceives { peer, count, size });
        let state = self.peers.entry(peer).or_default();
        state.link = Link::Up(alloc::boxed::Box::new(connection));
        self.ask_for_keys(peer);
        self.pump(peer, memory);
    }

    /// Reports that the connection to a peer has ended or could not be established. All operations on the peer fail,
    /// once each. The transport must no longer access memory of these operations. The next operation connects again.
    ///
    /// Receives that only this peer could fill stay posted, since it may come back; see
    /// [`lose_receives`](Self::lose_receives).
    pub fn peer_down(&mut self, peer: PeerId, failure: Failure, memory: &mut dyn Memory) {
        let Some(state) = self.peers.get_mut(&peer) else { return };
        let queue = core::mem::take(&mut state.queue);
        let link = core::mem::take(&mut state.link);
        let core = &mut self.core;
        core.inbox.lose(peer, failure);
        for id in core.requests.ids(|request| request.peer == peer) {
            core.requests.remove(id);
        }
        for id in core.transfers.ids(|transfer| transfer.peer == peer) {
            if let Some(Owner::Landing { landing, .. }) = core.transfers.remove(id).map(|t| t.owner) {
                core.end_landing(&landing, Some(failure));
            }
        }
        for id in core.sent.ids(|sent| sent.ticket.peer == peer && sent.awaits != Awaits::LocalReceive) {
            core.end_sent(id, Err(failure), memory);
        }
        for id in core.rmas.ids(|rma| rma.ticket.peer == peer) {
            core.fail_rma(id, failure, memory);
        }
        for id in core.fetching.ids(|fetching| fetching.ticket.peer == peer) {
            if let Some(fetching) = core.fetching.remove(id) {
                core.complete(&fetching.ticket, Err(failure));
            }
        }
        for queued in queue {
            match queued {
                Queued::Send(send) => {
                    if let Some(buffer) = send.kept {
                        memory.release(buffer);
                    }
                    core.complete(&send.ticket, Err(failure));
                }
                Queued::Atomic(atomic) => core.complete(&atomic.ticket, Err(failure)),
                // Covered by the RMAs above.
                Queued::Write(_) | Queued::Read(_) => {}
            }
        }
        core.regions.forget_peer(peer, memory);
        core.peers_without_grant.remove(&peer);
        if let Link::Up(connection) = link {
            connection.window.release(&mut core.pool);
            self.resume_starved_peers(memory);
        }
    }

    /// Fails the receives that only this peer could fill, because the peer was killed or is considered dead. A new
    /// process at its address may still connect.
    pub fn lose_receives(&mut self, peer: PeerId, failure: Failure) {
        self.core.inbox.withdraw_of(peer, failure, &mut self.core.completions);
    }

    /// Removes a peer that will not come back: like [`peer_down`](Self::peer_down), and receives that only it could
    /// fill fail, too. The driver may use the number again.
    pub fn forget(&mut self, peer: PeerId, failure: Failure, memory: &mut dyn Memory) {
        self.peer_down(peer, failure, memory);
        self.lose_receives(peer, failure);
        self.peers.remove(&peer);
    }

    /// Reports that a request to the transport has ended. Requests with number 0 need no report.
    pub fn completed(
        &mut self,
        peer: PeerId,
        request: RequestId,
        result: Result<(), Failure>,
        memory: &mut dyn Memory,
    ) {
        let core = &mut self.core;
        let Some(what) = core.requests.get(request.0).filter(|r| r.peer == peer).map(|r| r.what) else {
            return;
        };
        core.requests.remove(request.0);
        let Some(Peer { link: Link::Up(connection), .. }) = self.peers.get_mut(&peer) else { return };
        match what {
            RequestPart::Message(id) => core.advance_sent(id, Awaits::Transport, result, memory),
            RequestPart::ReadChunk(id, len) => {
                connection.reads.remove(len);
                core.chunk_read(connection, id, result, memory);
            }
            RequestPart::WriteChunk(id, len) => {
                connection.writes.remove(len);
                core.part_of_rma_done(id, result.err());
                core.end_rma_if_over(connection, id, memory);
            }
            RequestPart::Notice(id) => {
                core.part_of_rma_done(id, result.err());
                core.end_rma_if_over(connection, id, memory);
            }
        }
        self.pump(peer, memory);
    }

    /// Reports that the application has read `count` entries of writes with data. The number of unread entries is
    /// limited.
    pub fn notices_read(&mut self, count: u64, memory: &mut dyn Memory) {
        self.core.notices = self.core.notices.saturating_sub(count);
        self.resume_starved_peers(memory);
    }

    /// Opens memory to peers.
    ///
    /// # Errors
    ///
    /// [`PostError::Lengths`] if the end of the region exceeds 2^64 - 1, and [`PostError::KeyInUse`] if the key is in
    /// use.
    pub fn open_region(&mut self, region: Region) -> Result<RegionId, PostError> {
        let Piece { offset, len, .. } = region.piece;
        if region.base.checked_add(len).is_none() || offset.checked_add(len).is_none() {
            return Err(PostError::Lengths);
        }
        self.core.regions.open(region).ok_or(PostError::KeyInUse)
    }

    /// Closes a region. Its key is free at once. The memory must stay valid until [`is_closing`](Self::is_closing)
    /// returns false or the region is [withdrawn](Self::withdraw_region).
    pub fn close_region(&mut self, region: RegionId, memory: &mut dyn Memory) {
        for peer in self.core.regions.close(region, memory) {
            if let Some(Peer { link: Link::Up(connection), .. }) = self.peers.get_mut(&peer) {
                connection.outbox.push_back(Reply::Revoke { region: region.0 });
            }
            self.pump(peer, memory);
        }
    }

    /// Returns true while peers may still access the region.
    pub fn is_closing(&self, region: RegionId) -> bool {
        self.core.regions.is_accessible(region)
    }

    /// Returns the peers that have not released a closed region.
    pub fn closing_for(&self, region: RegionId) -> impl Iterator<Item = PeerId> {
        self.core.regions.askers(region)
    }

    /// Withdraws a closed region from the peers that have not released it, and returns the transport's key and those
    /// peers. Their later requests to it are refused. If all of them were sent a REVOKE, the memory is only
    /// [withdrawn](Memory::withdraw) from the transport, and they keep their connections. Otherwise the key is
    /// deregistered. Returns `None` if the region is open, is withdrawn already, or was never registered with the
    /// transport.
    pub fn withdraw_region(
        &mut self,
        region: RegionId,
        memory: &mut dyn Memory,
    ) -> Option<(u64, BTreeSet<PeerId>)> {
        let is_asked = |peer: PeerId| match self.peers.get(&peer) {
            Some(Peer { link: Link::Up(connection), .. }) => !connection
                .outbox
                .iter()
                .any(|reply| matches!(reply, Reply::Revoke { region: of } if *of == region.0)),
            _ => true,
        };
        let were_asked = self.core.regions.askers(region).all(is_asked);
        self.core.regions.withdraw(region, were_asked, memory)
    }

    /// Disconnects a peer that has broken a rule of the protocol.
    pub(crate) fn cut(&mut self, peer: PeerId, fault: Fault, memory: &mut dyn Memory) {
        self.core.actions.push_back(Action::Disconnect { peer, fault });
        self.peer_down(peer, Failure::Reset, memory);
    }

    /// Connects to the peer, or sends, after an operation has entered its queue.
    pub(crate) fn start(&mut self, id: PeerId, memory: &mut dyn Memory) {
        let peer = self.peers.entry(id).or_default();
        match peer.link {
            Link::Down => {
                peer.link = Link::Connecting;
                self.core.actions.push_back(Action::Connect { peer: id });
            }
            Link::Connecting => {}
            Link::Up(_) => self.pump(id, memory),
        }
    }

    /// Sends everything that may leave to the peer now.
    pub(crate) fn pump(&mut self, id: PeerId, memory: &mut dyn Memory) {
        if let Some(Peer { link: Link::Up(connection), queue }) = self.peers.get_mut(&id) {
            self.core.send_pending(id, connection, queue, memory);
        }
    }

    /// Resumes the peers that wait for grants, if there is room for their messages again.
    pub(crate) fn resume_starved_peers(&mut self, memory: &mut dyn Memory) {
        if self.core.peers_without_grant.is_empty() || !self.core.has_room() {
            return;
        }
        for peer in core::mem::take(&mut self.core.peers_without_grant) {
            self.pump(peer, memory);
        }
    }
}
