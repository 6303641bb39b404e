//! Messages and memory accesses between peers on one host, over lanes. A lane is a shared-memory channel with
//! one peer.

use pathweave_datapath::CloseReason;
use pathweave_shm::{OfferedMemory, Received, Sent, Ticket, WakeState};
use pathweave_tagged::{Failure, Label, Memory, Payload, PeerId, RequestId, Role};

use super::buffers::Near;
use super::core::{EndpointState, HEADER_ROOM};
use super::links::{Carrier, Link};
use super::local_peers::{Copy, Health, LaneState, LocalPeer, Waiting};
use super::local_thread::{LaneKey, NextPoll};
use crate::ffi::memory::Span;
use crate::log::{Level, log};

/// Largest number of messages of one lane that one pass takes.
const MESSAGES_A_PASS: usize = 64;
/// Largest number of bytes that one pass copies from and to other processes. A thread that waits for the lock
/// meanwhile waits about a millisecond.
const BYTES_A_PASS: u64 = 8 << 20;
/// Largest number of messages that a ring can have held when its writer ended.
const MOST_LAST_MESSAGES: usize = 4096;

impl EndpointState {
    /// Sets the link with a peer and closes the lane of the previous link, unless it is the same. Returns the
    /// previous link, to be dropped.
    pub(super) fn set_link(&mut self, peer: PeerId, link: Link) -> Link {
        let kept = link.lane();
        let before = self.links.set(peer, link);
        if let Some(key) = before.lane().filter(|key| kept != Some(*key)) {
            self.close_lane(key, peer);
        }
        before
    }

    fn close_lane(&mut self, key: LaneKey, peer: PeerId) {
        self.neighbours.remove(key);
        self.buffers.set_near(peer, Near::No);
    }

    /// Returns the lane of a peer that is connected and has one.
    pub(super) fn lane_of(&self, peer: PeerId) -> Option<LaneKey> {
        match self.links.carrier(peer)? {
            Carrier::Lane(key) => Some(key),
            Carrier::Network => None,
        }
    }

    /// Handles a lane that a peer hands over.
    pub(super) fn on_offer(&mut self, ticket: Ticket, brought: OfferedMemory) {
        // Without a peer, the call was given up.
        let Some(peer) = self.links.ticket_holder(ticket) else { return };
        match self.neighbours.take(peer, brought) {
            Some(key) => self.links.set_carrier(peer, Carrier::Lane(key)),
            // The peer detects the rejection, and the call is repeated.
            None => self.links.disable_sharing(peer),
        }
    }

    /// Handles a readable socket of a lane.
    pub(super) fn on_bell(&mut self, key: LaneKey) {
        let Some(neighbour) = self.neighbours.get(key) else { return };
        if neighbour.lane.receive_wakeups() == WakeState::Gone {
            self.on_lane_closed(key);
        }
    }

    /// Handles a lane that the peer has closed or violated.
    fn on_lane_closed(&mut self, key: LaneKey) {
        let Some(peer) = self.neighbours.get(key).map(|neighbour| neighbour.peer) else { return };
        self.drain_lane(key);
        // The last messages may have closed the lane.
        if self.neighbours.get(key).is_none() {
            return;
        }
        if self.lane_of(peer) != Some(key) {
            // The peer is not connected yet. Another event reports the outcome of the call.
            self.links.set_carrier(peer, Carrier::Network);
            self.close_lane(key, peer);
            return;
        }
        // A peer that violates the protocol may still be running.
        let was_killed = self
            .neighbours
            .get(key)
            .is_some_and(|neighbour| neighbour.health == Health::Good && !neighbour.lane.peer_closed());
        self.on_closed(peer, CloseReason::Peer);
        if was_killed {
            log(Level::Warn, format_args!("a peer on this host has ended without closing its endpoint"));
            self.engine.lose_receives(peer, Failure::Reset);
        }
    }

    /// Takes the messages that were sent before the end.
    pub(super) fn drain_lane(&mut self, key: LaneKey) {
        let broken = self.neighbours.get(key).is_none_or(|neighbour| neighbour.health == Health::Broken);
        if !broken {
            self.neighbours.budget = u64::MAX;
            self.poll_lane(key, MOST_LAST_MESSAGES);
        }
    }

    /// Takes the messages from all lanes and sends those that waited for room. Returns true if any message
    /// arrived.
    pub(super) fn poll_local(&mut self) -> bool {
        let (mut at, mut heard) = (0, false);
        self.neighbours.budget = BYTES_A_PASS;
        while let Some(key) = self.neighbours.nth(at) {
            at += 1;
            if self.neighbours.is_busy(key) {
                heard |= self.poll_lane(key, MESSAGES_A_PASS);
                self.copy_waiting(key);
                self.send_waiting(key);
            }
        }
        heard
    }

    fn poll_lane(&mut self, key: LaneKey, most: usize) -> bool {
        let Some(peer) = self.neighbours.get(key).map(|neighbour| neighbour.peer) else { return false };
        let mut heard = false;
        for _ in 0..most {
            // The previous message may have closed the lane. Until the call is answered, no messages are
            // taken.
            let Some(standing) = self.neighbours.get(key).map(|neighbour| neighbour.standing) else { break };
            if standing == LaneState::New && self.lane_of(peer) != Some(key) {
                break;
            }
            let what = self.neighbours.receive(key);
            match what {
                Received::Nothing => break,
                Received::Message(_) | Received::Note(_) => heard = true,
                Received::Broken => {
                    self.give_up_lane(key);
                    break;
                }
            }
            if standing == LaneState::New {
                if self.links.confirm(peer) {
                    self.engine.peer_up(peer, Role::Initiator, &mut self.buffers);
                    self.run_actions();
                }
                self.neighbours.activate(key);
                if let Some(neighbour) = self.neighbours.get_mut(key) {
                    // This tells the peer if it has to copy on behalf of this endpoint.
                    neighbour.lane.reads_peer();
                }
                self.buffers.set_near(peer, Near::Yes);
            }
            match what {
                Received::Message(len) => {
                    self.engine.delivered(peer, &self.neighbours.received()[..len], &mut self.buffers);
                }
                Received::Note(note) => {
                    if self.on_note(key, peer, note).is_err() {
                        self.give_up_lane(key);
                        break;
                    }
                }
                Received::Nothing | Received::Broken => {}
            }
            self.run_actions();
            if self.neighbours.budget == 0 {
                break;
            }
        }
        heard
    }

    /// Closes a lane whose peer has violated the protocol.
    fn give_up_lane(&mut self, key: LaneKey) {
        self.break_lane(key);
        self.on_lane_closed(key);
    }

    fn break_lane(&mut self, key: LaneKey) {
        if let Some(neighbour) = self.neighbours.get_mut(key) {
            neighbour.mark_broken();
        }
    }

    /// Sends a message through a lane, or queues it if there is no room.
    pub(super) fn send_local(&mut self, key: LaneKey, header: &[u8], payload: &Payload, request: RequestId) {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        let peer = neighbour.peer;
        let len = match payload {
            Payload::None => 0,
            Payload::Piece(piece) => piece.len as usize,
            Payload::Bytes(bytes) => bytes.len(),
        };
        if neighbour.can_send_now() {
            let buffers = &self.buffers;
            let sent = neighbour.lane.send(header.len() + len, |writer| {
                writer.put(header);
                match payload {
                    Payload::None => {}
                    Payload::Piece(piece) => buffers.each(*piece, |bytes| writer.put(bytes)),
                    Payload::Bytes(bytes) => writer.put(bytes),
                }
            });
            match sent {
                Sent::Yes => return self.sent(peer, request),
                Sent::Full => {}
                Sent::Broken => {
                    self.break_lane(key);
                    return self.neighbours.wake();
                }
            }
        }
        let mut bytes = header.to_vec();
        bytes.resize(header.len() + len, 0);
        let behind = &mut bytes[header.len()..];
        match payload {
            Payload::None => {}
            Payload::Piece(piece) => self.buffers.fetch(*piece, behind),
            Payload::Bytes(bytes) => behind.copy_from_slice(bytes),
        }
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        neighbour.waiting.push_back(Waiting::Message { bytes: bytes.into(), request });
        if neighbour.waiting.len() == 1 {
            // If no thread polls, one must be woken to check for room.
            self.neighbours.wake();
        }
    }

    /// Sends a short message through a lane at once, if no other message is queued before it. Returns false
    /// if it must take the regular path.
    pub(super) fn try_send_local(
        &mut self,
        to: PeerId,
        label: Label,
        spans: &[Span],
        data: Option<u64>,
    ) -> bool {
        let Some(neighbour) = self.neighbours.sendable_now(to) else { return false };
        let len: usize = spans.iter().map(|span| span.len()).sum();
        if neighbour.lane.room(HEADER_ROOM + len) != Sent::Yes {
            return false;
        }
        let Some(header) = self.engine.send_now(to, label, len as u64, data) else { return false };
        let header = header.as_slice();
        // There is room, because this is the only writer.
        neighbour.lane.send(header.len() + len, |writer| {
            writer.put(header);
            spans.iter().for_each(|span| span.show(|bytes| writer.put(bytes)));
        });
        // Executes the receives that the header grants. A lane needs none posted.
        self.run_actions();
        true
    }

    pub(super) fn sent(&mut self, peer: PeerId, request: RequestId) {
        // Requests with number 0 need no completion.
        if request != RequestId(0) {
            self.engine.completed(peer, request, Ok(()), &mut self.buffers);
        }
    }

    /// Copies from memory of a peer on this host, at once or later, or has the peer send it. The peer sends
    /// it if WRITEs that the peer has yet to execute precede it, because the read must see them.
    pub(super) fn read_local(&mut self, key: LaneKey, copy: Copy) {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        let was_waiting = neighbour.is_waiting();
        if neighbour.lane.reads_peer() && !neighbour.relay.is_writing() {
            neighbour.copies.push_back(copy);
            self.copy_waiting(key);
        } else {
            neighbour.ask(copy);
            self.send_on(key);
        }
        self.wake_for(key, was_waiting);
    }

    /// Has a peer on this host write to its own memory.
    pub(super) fn write_local(&mut self, key: LaneKey, copy: Copy) {
        let start = self.buffers.start_of_one(copy.local);
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        let was_waiting = neighbour.is_waiting();
        neighbour.write(copy, start);
        self.send_on(key);
        self.wake_for(key, was_waiting);
    }

    fn wake_for(&mut self, key: LaneKey, was_waiting: bool) {
        if !was_waiting && self.neighbours.get(key).is_some_and(LocalPeer::is_waiting) {
            // If no thread polls, one must be woken to continue.
            self.neighbours.wake();
        }
    }

    /// Copies as many bytes as one pass may.
    fn copy_waiting(&mut self, key: LaneKey) {
        while self.neighbours.budget > 0 {
            let Some(neighbour) = self.neighbours.get_mut(key) else { return };
            let Some(copy) = neighbour.copies.pop_front() else { return };
            let copied = self.buffers.copy(&neighbour.lane, copy.local, copy.remote.address);
            let result = copied.map_err(|error| error.raw_os_error());
            if let Err(Some(libc::EPERM | libc::ENOSYS)) = result {
                return self.ask_from_now_on(key, copy);
            }
            let peer = neighbour.peer;
            if result.is_ok() && neighbour.lane.peer_withdrawals() != neighbour.withdrawn.len() as u64 {
                // The copied memory may have been closed before the copy. Only its owner knows.
                neighbour.ask(copy);
                self.send_on(key);
                continue;
            }
            let is_withdrawn = neighbour.withdrawn.contains(&copy.remote.rkey);
            let result = if is_withdrawn { Err(Some(libc::EFAULT)) } else { result };
            self.neighbours.budget = self.neighbours.budget.saturating_sub(copy.local.len);
            let result = result.map_err(|error| match error {
                Some(libc::EFAULT) => Failure::Access,
                Some(libc::ESRCH) => Failure::Reset,
                _ => Failure::Io,
            });
            self.engine.completed(peer, copy.request, result, &mut self.buffers);
        }
    }

    /// Handles a kernel that no longer permits copies. The peer is asked for this copy, for the waiting ones,
    /// and for all later ones.
    fn ask_from_now_on(&mut self, key: LaneKey, first: Copy) {
        let Some(neighbour) = self.neighbours.get_mut(key) else { return };
        log(Level::Info, format_args!("memory of a peer on this host is not copied by the kernel any more"));
        neighbour.lane.cannot_read_peer();
        let rest = std::mem::take(&mut neighbour.copies);
        for copy in std::iter::once(first).chain(rest) {
            neighbour.ask(copy);
        }
        self.send_on(key);
    }

    /// Makes peers ring the bell from now on, and takes the messages that arrived before.
    pub(super) fn rest(&mut self) {
        if self.neighbours.is_any() {
            self.neighbours.arm_bells();
            self.poll_local();
            self.run_actions();
        }
    }

    /// Returns the next step of the thread that watches lanes, if no other thread has polled for a while.
    pub(super) fn poll_idle(&mut self) -> NextPoll {
        self.neighbours.arm_bells();
        if self.pass() || self.neighbours.is_copying() {
            return NextPoll::Now;
        }
        // This includes messages of a call that has not been answered yet.
        let more = self.neighbours.has_mail() || self.neighbours.is_waiting();
        if more { NextPoll::Soon } else { NextPoll::Asleep }
    }
}
