//! Execution of the application's requests.

use std::collections::VecDeque;
use std::sync::Arc;

use pathweave_transport::rd::SideMessage;
use pathweave_transport::{Status, Transport};
use pathweave_wire::RdFlow;

use super::address_vector::{Peer, PeerEntry};
use super::engine::DatagramService;
use super::remote::Opening;
use super::shared::Command;
use super::stats::{RdmPath, RdmStats};
use crate::error::ConnectError;
use crate::places::BufferEntry;
use crate::shared::lock;

impl DatagramService {
    pub(super) fn take(&mut self, command: Command) {
        match command {
            Command::Send { to, wr_id, memory } => {
                let len = memory.len() as u64;
                let handle = self.io.places.insert(BufferEntry { memory: memory.into(), wr_id });
                let to = self.current_for_message(to);
                self.meet(&to).pending.push_back((handle, len));
                self.post_pending(to.peer.index);
            }
            Command::Receive { from, wr_id, memory } => {
                let handle = self.io.places.insert(BufferEntry { memory: memory.into(), wr_id });
                let from = from.map(|entry| {
                    let entry = self.current(entry);
                    self.meet(&entry);
                    entry.peer.index
                });
                let filled = self.inbox.post(&self.io.places, handle, from);
                if filled.is_some() {
                    self.end_filled(filled);
                    self.shared.notify();
                }
            }
            Command::Reach { peer, answer } => {
                let peer = self.current(peer);
                let remote = self.meet(&peer);
                if remote.association.is_some() {
                    *lock(&answer) = Some(Ok(()));
                    self.shared.notify();
                } else {
                    remote.asked.push(answer);
                    self.ask(peer.peer.index);
                }
            }
            Command::Remove { peer, answer } => {
                self.remove(&peer);
                *lock(&answer) = Some(());
                self.shared.notify();
            }
            Command::MakeRoom { answer } => {
                *lock(&answer) = Some(self.make_room_for_peer());
                self.shared.notify();
            }
            Command::Peers { answer } => {
                *lock(&answer) = Some(self.list());
                self.shared.notify();
            }
            Command::Stats { answer } => {
                *lock(&answer) = Some(self.stats());
                self.shared.notify();
            }
            Command::Stop => self.io.stop_by = Some(self.io.now),
        }
    }

    /// Returns the [`current`](DatagramService::current) entry of a peer, and moves the room that a message has taken to it.
    fn current_for_message(&mut self, to: Arc<PeerEntry>) -> Arc<PeerEntry> {
        let current = self.current(to.clone());
        if !Arc::ptr_eq(&current, &to) {
            to.room.give_back();
            // One message more than the limit is possible for a moment; it waits for the others.
            let _ = current.room.take();
        }
        current
    }

    /// Posts a peer's pending messages, as far as the transport accepts them. Requests an association if there is
    /// none.
    pub(super) fn post_pending(&mut self, index: u32) {
        if self.defers() {
            return;
        }
        let now = self.io.now;
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let Some(association) = remote.association.as_deref_mut() else {
            if !remote.pending.is_empty() {
                self.ask(index);
            }
            return;
        };
        if association.closing.is_some() {
            // The peer may have forgotten this end. Its answer, or any other packet, decides.
            return;
        }
        let first = association.outstanding == 0;
        while let Some(&(handle, len)) = remote.pending.front() {
            // Length and number were checked when the message was posted. Messages beyond the transport's limit wait.
            if self.rd.post(now, association.peer(), handle, len).is_err() {
                break;
            }
            remote.pending.pop_front();
            association.outstanding += 1;
        }
        if remote.pending.is_empty() {
            remote.pending = VecDeque::new();
        }
        if first && association.outstanding > 0 {
            association.remind_at = now.saturating_add(super::side::REMIND_EVERY);
            self.io.look_by(now.saturating_add(super::remote::BUSY));
        }
    }

    /// Fails everything outstanding with a peer. A new association may follow.
    pub(super) fn fail(&mut self, index: u32, status: Status) {
        self.end_association(index, status);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        remote.opening = Opening::No;
        for (handle, _) in std::mem::take(&mut remote.pending) {
            self.end_send(handle, index, status);
        }
        self.shared.notify();
    }

    /// Answers the threads that wait for the association with a peer.
    pub(super) fn answer_asked(&mut self, index: u32, result: &Result<(), ConnectError>) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        for answer in std::mem::take(&mut remote.asked) {
            *lock(&answer) = Some(result.clone());
        }
        self.shared.notify();
    }

    fn remove(&mut self, entry: &Arc<PeerEntry>) {
        let Peer { index, .. } = entry.peer;
        if self.addresses.get(entry.peer).is_none() {
            return;
        }
        // Reports complete messages first, so that the peer does not send them again.
        self.drain_outputs();
        if let Some(association) = self.association(index).filter(|association| association.line.is_some()) {
            let (id, dst_qp) = (association.id, association.qp);
            self.queue_message(id, SideMessage::Close { flow: RdFlow { src_qp: self.qp, dst_qp } });
        }
        self.flush_side();
        self.stop_asking(index);
        self.fail(index, Status::Flushed);
        self.answer_asked(index, &Err(ConnectError::DeviceClosed("the peer was removed".into())));
        let (own, filled) = self.inbox.forget(&self.io.places, index);
        self.end_filled(filled);
        for posted in own {
            self.end_receive(posted.handle, Some(entry.peer), Status::Flushed, 0);
        }
        self.remotes.remove(index);
        // If another thread holds the entry, it is about to use it, and the peer stays known. One holder is this
        // command.
        self.addresses.confirm(index);
        self.addresses.remove(index, 1);
    }

    fn stats(&self) -> RdmStats {
        let paths = self.path_packets.iter().enumerate().take(usize::from(self.config.device.paths));
        RdmStats {
            peers: self.addresses.len(),
            associations: self.remotes.associations(),
            counters: self.rd.counters(),
            side: self.lines.stats,
            sent: self.io.outbound.counters(),
            last_send_error: self.io.outbound.last_error(),
            received_datagrams: self.io.counts.received_datagrams,
            received_bytes: self.io.counts.received_bytes,
            refused_datagrams: self.io.counts.refused_datagrams,
            marked_datagrams: self.io.counts.marked_datagrams,
            slowest: self.rd.slowest(self.io.now),
            no_room_drops: self.no_room_drops,
            panics: self.io.counts.panics,
            waiting_peers: self.waiting.len(),
            kept_bytes: self.inbox.kept_bytes(),
            paths: paths
                .map(|(path, &packets)| RdmPath { source_port: self.port_of(path), packets })
                .collect(),
            scan_period: std::time::Duration::from_nanos(self.rd.scan_period().as_ns()),
            turns: self.io.counts.turns,
            sleeps: self.io.counts.sleeps,
        }
    }
}
