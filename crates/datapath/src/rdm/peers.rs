//! Arrival and departure of peers. An idle peer can be forgotten, but not unilaterally: a message that it sends to an
//! end that has forgotten it would be lost. This end therefore sends Close. It forgets the peer when the peer has
//! forgotten this end (Closed), cannot be reached, or is silent for the peer timeout. Until then the peer is in
//! transit.

use std::sync::Arc;
use std::time::Duration;

use pathweave_transport::Status;
use pathweave_transport::rd::SideMessage;
use pathweave_units::Time;
use pathweave_wire::RdFlow;

use super::address_vector::PeerEntry;
use super::engine::DatagramService;
use super::remote::{BUSY, CloseMessage, Opening};
use super::stats::{RdmPeer, RdmPeerState};
use crate::scheme::span;

/// Fraction (one in this many) of the allowed peers that is retired when there is no room: finding them requires a
/// scan of all peers.
const SHARE_THAT_GOES: usize = 64;

impl DatagramService {
    /// Returns the entry of a peer that the application has just used; a new entry if it was removed meanwhile.
    pub(super) fn current(&mut self, entry: Arc<PeerEntry>) -> Arc<PeerEntry> {
        if self.addresses.get(entry.peer).is_some() {
            return entry;
        }
        self.make_room_for_peer();
        let Ok(anew) = self.addresses.insert(entry.address()) else { return entry };
        anew
    }

    /// Returns true if nothing is outstanding with a peer in either direction, and the application expects nothing
    /// from it.
    pub(super) fn is_idle(&self, index: u32) -> bool {
        let Some(remote) = self.remotes.get(index) else { return self.inbox.is_idle(index) };
        self.is_quiet(index)
            && remote.pending.is_empty()
            && remote.asked.is_empty()
            && remote.opening == Opening::No
            && self.inbox.is_idle(index)
    }

    /// Returns true if no message of either end is outstanding on the association with a peer.
    pub(super) fn is_quiet(&self, index: u32) -> bool {
        let association = self.remotes.get(index).and_then(|remote| remote.association.as_deref());
        association.is_none_or(|association| {
            association.outstanding == 0
                && !self.rd.awaits(association.peer())
                && !self.inbox.is_under_way(index)
        })
    }

    /// Makes room for a peer: retires the peers that have been idle longest. Returns true if there is room.
    pub(super) fn make_room_for_peer(&mut self) -> bool {
        if !self.addresses.is_full() {
            return true;
        }
        let known = self.addresses.known().into_iter().map(|entry| entry.peer.index);
        let used = |index| self.remotes.get(index).map_or(Time::ZERO, super::remote::Remote::used);
        let mut idle: Vec<(Time, u32)> = known
            .filter(|&index| self.is_idle(index) && !self.is_closing(index))
            .map(|index| (used(index), index))
            .collect();
        idle.sort_unstable();
        let at_once = (self.addresses.limit() / SHARE_THAT_GOES).max(1);
        for (n, (_, index)) in idle.into_iter().enumerate() {
            // Peers that became active again, or that the application named again, may have exceeded the limit.
            if n >= at_once && !self.addresses.is_full() {
                break;
            }
            self.retire(index);
        }
        !self.addresses.is_full()
    }

    /// Returns true if this end has sent Close to the peer and waits for the answer.
    fn is_closing(&self, index: u32) -> bool {
        let association = self.remotes.get(index).and_then(|remote| remote.association.as_deref());
        association.is_some_and(|association| association.closing.is_some())
    }

    /// Asks an idle peer for permission to forget it.
    pub(super) fn retire(&mut self, index: u32) {
        let until = self.io.now.saturating_add(span(self.give_up()));
        let Some(association) = self.association(index) else { return self.forget(index) };
        if association.closing.is_some() || !self.addresses.dismiss(index) {
            return;
        }
        let src_qp = self.qp;
        let Some(association) = self.association(index) else { return };
        association.closing = Some(until);
        let (id, flow) = (association.id, RdFlow { src_qp, dst_qp: association.qp });
        self.queue_message(id, SideMessage::Close { flow });
        self.io.look_by(self.io.now.saturating_add(BUSY));
    }

    /// Cancels the departure of a peer that has sent something or for which something is posted.
    pub(super) fn stay(&mut self, index: u32) {
        if let Some(association) = self.association(index)
            && association.closing.take().is_some()
        {
            self.addresses.confirm(index);
            self.post_pending(index);
        }
    }

    /// Forgets an idle peer. If something was posted meanwhile, only its association ends.
    pub(super) fn forget(&mut self, index: u32) {
        self.end_association(index, Status::RetryExceeded);
        if !self.is_idle(index) {
            self.addresses.confirm(index);
            return self.post_pending(index);
        }
        if let Some(remote) = self.remotes.remove(index) {
            self.inbox.part(index, remote.entry.peer);
        }
        if !self.addresses.remove(index, 0) {
            // A request for the peer is queued for the loop.
            self.addresses.confirm(index);
        }
    }

    /// Forgets a peer in transit whose handshake has failed.
    pub(super) fn drop_if_transient(&mut self, index: u32) {
        if self.addresses.is_passing(index) && self.is_idle(index) {
            self.forget(index);
        }
    }

    /// Handles a peer's Close: it asks whether it may forget this end.
    pub(super) fn on_close(&mut self, id: u32) {
        let Some((index, association)) = self.remotes.of_id(id) else { return };
        let flow = RdFlow { src_qp: self.qp, dst_qp: association.qp };
        // Messages that are only posted, or that wait, use the next association.
        if self.is_quiet(index) {
            self.queue_message(id, SideMessage::Closed { flow });
            self.flush_side();
            self.forget(index);
        }
    }

    /// Handles a peer's Closed: it has forgotten this end, as requested.
    pub(super) fn on_closed(&mut self, id: u32) {
        if let Some((index, association)) = self.remotes.of_id(id)
            && association.closing.is_some()
        {
            self.forget(index);
        }
    }

    /// Processes the queued Close and Closed messages. Returns true if there were any.
    pub(super) fn process_closes(&mut self) -> bool {
        let leaving = std::mem::take(&mut self.leaving);
        let any = !leaving.is_empty();
        for (id, message) in leaving {
            match message {
                CloseMessage::Close => self.on_close(id),
                CloseMessage::Closed => self.on_closed(id),
            }
        }
        any
    }

    /// Sends Close to all peers with an open TCP connection, since this end is about to close.
    pub(super) fn send_closes(&mut self) {
        for index in self.remotes.indices() {
            let Some(association) = self.association(index).filter(|association| association.line.is_some())
            else {
                continue;
            };
            let (id, dst_qp) = (association.id, association.qp);
            self.queue_message(id, SideMessage::Close { flow: RdFlow { src_qp: self.qp, dst_qp } });
        }
    }

    /// Retires a peer that has been idle for long, and ends the wait for an answer to Close.
    pub(super) fn look_for_idle(&mut self, now: Time, index: u32) {
        let Some(remote) = self.remotes.get(index) else { return };
        let idle = now.saturating_since(remote.used()) >= span(self.config.peer_idle);
        match remote.association.as_deref().and_then(|association| association.closing) {
            // The peer is alive; otherwise it would have been given up.
            Some(until) if until <= now => self.stay(index),
            None if idle && self.is_idle(index) => self.retire(index),
            Some(_) | None => {}
        }
    }

    /// Returns all known peers.
    pub(super) fn list(&self) -> Vec<RdmPeer> {
        let known = self.addresses.known().into_iter();
        known
            .map(|entry| {
                let remote = self.remotes.get(entry.peer.index);
                let association = remote.and_then(|remote| remote.association.as_deref());
                let opening = remote.is_some_and(|remote| remote.opening != Opening::No);
                let state = match association {
                    Some(_) => RdmPeerState::Open,
                    None if opening => RdmPeerState::Opening,
                    None => RdmPeerState::Known,
                };
                let posted = association.map_or(0, |association| association.outstanding as usize);
                RdmPeer {
                    peer: entry.peer,
                    state,
                    idle: remote.map(|remote| {
                        Duration::from_nanos(self.io.now.saturating_since(remote.used()).as_ns())
                    }),
                    outstanding: posted + remote.map_or(0, |remote| remote.pending.len()),
                }
            })
            .collect()
    }

    /// Records a data packet or an announcement of a peer: a peer that sends is not to be forgotten.
    #[inline]
    pub(super) fn sends(&mut self, id: u32) {
        if let Some((index, association)) = self.remotes.of_id(id)
            && association.closing.is_some()
        {
            self.stay(index);
        }
    }
}
