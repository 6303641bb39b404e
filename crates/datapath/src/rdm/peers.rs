//! Peers that come and go. One with which nothing is under way can be forgotten, but not behind its back: a message that it
//! sends to an end that has forgotten it would be lost. So this end asks (Close), and forgets the peer when that has forgotten
//! this end (Closed), cannot be called, or is silent for as long as any peer may be. Until then it is passing through.

use std::sync::Arc;
use std::time::Duration;

use pathweave_transport::Status;
use pathweave_transport::rd::SideMessage;
use pathweave_units::Time;
use pathweave_wire::RdFlow;

use super::address_vector::PeerEntry;
use super::engine::Core;
use super::remote::{BUSY, Leave, Opening};
use super::stats::{RdmPeer, RdmPeerState};
use crate::scheme::span;

/// Of peers that may be known, one in so many makes room when there is none: finding them takes a look at all.
const SHARE_THAT_GOES: usize = 64;

impl Core {
    /// The entry of a peer that the application has just had hold of: another one, if it was removed meanwhile.
    pub(super) fn current(&mut self, entry: Arc<PeerEntry>) -> Arc<PeerEntry> {
        if self.addresses.get(entry.peer).is_some() {
            return entry;
        }
        self.make_room_for_peer();
        let Ok(anew) = self.addresses.insert(entry.address()) else { return entry };
        anew
    }

    /// Nothing is under way with a peer, either way, and the application expects nothing of it.
    pub(super) fn is_idle(&self, index: u32) -> bool {
        let Some(remote) = self.remotes.get(index) else { return self.inbox.is_idle(index) };
        self.is_quiet(index)
            && remote.pending.is_empty()
            && remote.asked.is_empty()
            && remote.opening == Opening::No
            && self.inbox.is_idle(index)
    }

    /// No message of either end is under way on the association with a peer.
    pub(super) fn is_quiet(&self, index: u32) -> bool {
        let association = self.remotes.get(index).and_then(|remote| remote.association.as_deref());
        association.is_none_or(|association| {
            association.outstanding == 0
                && !self.rd.awaits(association.peer())
                && !self.inbox.is_under_way(index)
        })
    }

    /// Makes room for a peer: of those that are idle, those that have been longest are asked to go. True if there is room.
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
            // Peers that had something to say after all, or that the application named again, may have made them too many.
            if n >= at_once && !self.addresses.is_full() {
                break;
            }
            self.retire(index);
        }
        !self.addresses.is_full()
    }

    /// This end has asked the peer whether it may forget it.
    fn is_closing(&self, index: u32) -> bool {
        let association = self.remotes.get(index).and_then(|remote| remote.association.as_deref());
        association.is_some_and(|association| association.closing.is_some())
    }

    /// Asks a peer with which nothing is under way whether it may be forgotten.
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
        self.say(id, SideMessage::Close { flow });
        self.io.look_by(self.io.now.saturating_add(BUSY));
    }

    /// A peer that was to go has something to say, or there is something for it.
    pub(super) fn stay(&mut self, index: u32) {
        if let Some(association) = self.association(index)
            && association.closing.take().is_some()
        {
            self.addresses.confirm(index);
            self.post_pending(index);
        }
    }

    /// Forgets a peer with which nothing is under way; if something came up meanwhile, only what was agreed on with it.
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
            // Something for it is on its way to the loop.
            self.addresses.confirm(index);
        }
    }

    /// What came to nothing leaves nothing: a peer that was only passing through.
    pub(super) fn let_pass(&mut self, index: u32) {
        if self.addresses.is_passing(index) && self.is_idle(index) {
            self.forget(index);
        }
    }

    /// A peer asks whether it may forget this end.
    pub(super) fn on_close(&mut self, id: u32) {
        let Some((index, association)) = self.remotes.of_id(id) else { return };
        let flow = RdFlow { src_qp: self.qp, dst_qp: association.qp };
        // What is only posted, or waits, goes on the next association.
        if self.is_quiet(index) {
            self.say(id, SideMessage::Closed { flow });
            self.flush_side();
            self.forget(index);
        }
    }

    /// A peer has forgotten this end, which had asked for it.
    pub(super) fn on_closed(&mut self, id: u32) {
        if let Some((index, association)) = self.remotes.of_id(id)
            && association.closing.is_some()
        {
            self.forget(index);
        }
    }

    /// Peers whose words are out of the way now. Returns whether there were any.
    pub(super) fn see_off(&mut self) -> bool {
        let leaving = std::mem::take(&mut self.leaving);
        let any = !leaving.is_empty();
        for (id, message) in leaving {
            match message {
                Leave::Close => self.on_close(id),
                Leave::Closed => self.on_closed(id),
            }
        }
        any
    }

    /// The last words to those who listen: this end is about to be gone.
    pub(super) fn say_farewell(&mut self) {
        for index in self.remotes.indices() {
            let Some(association) = self.association(index).filter(|association| association.line.is_some())
            else {
                continue;
            };
            let (id, dst_qp) = (association.id, association.qp);
            self.say(id, SideMessage::Close { flow: RdFlow { src_qp: self.qp, dst_qp } });
        }
    }

    /// Looks whether a peer has been idle for long, or does not answer whether it may go.
    pub(super) fn look_for_idle(&mut self, now: Time, index: u32) {
        let Some(remote) = self.remotes.get(index) else { return };
        let idle = now.saturating_since(remote.used()) >= span(self.config.peer_idle);
        match remote.association.as_deref().and_then(|association| association.closing) {
            // It lives, or it would have been given up.
            Some(until) if until <= now => self.stay(index),
            None if idle && self.is_idle(index) => self.retire(index),
            Some(_) | None => {}
        }
    }

    /// All that are known.
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

    /// A packet of data or an announcement of a peer: one that sends is not to go.
    #[inline]
    pub(super) fn sends(&mut self, id: u32) {
        if let Some((index, association)) = self.remotes.of_id(id)
            && association.closing.is_some()
        {
            self.stay(index);
        }
    }
}
