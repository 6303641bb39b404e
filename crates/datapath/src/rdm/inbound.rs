//! Processing of received frames: from the backend to the transport.

use std::net::SocketAddr;

use pathweave_transport::Transport;
use pathweave_units::{HostId, PathId, Time};
use pathweave_wire::{Body, Datagram, Ecn};

use super::engine::DatagramService;
use super::remote::{DATAGRAMS, index_of};
use crate::crc;
use crate::secure::{Recipient, recipient_of};

impl DatagramService {
    /// Dispatches a frame by its kind. `residue`: CRC tag of an intact unprotected frame. Returns `None` if the frame
    /// is refused.
    pub(super) fn take_in(
        &mut self,
        now: Time,
        from: SocketAddr,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()> {
        match recipient_of(frame) {
            Recipient::Plain => {
                let datagram = Datagram::parse(crc::content(frame)).ok()?;
                let id = self.plain_source(from, &datagram, residue)?;
                self.on_packet(now, id, ecn, &datagram)
            }
            Recipient::Protected(session) => {
                let id = session.0;
                if self.remotes.of_id(id).is_none() && !self.confirm_by_packet(now, from, id, frame) {
                    return None;
                }
                self.acting = Some(id);
                let (_, association) = self.remotes.of_id(id)?;
                let opened = association.session.open(now, frame).ok()?;
                if opened.path != Some(PathId(DATAGRAMS)) {
                    return None;
                }
                let datagram = Datagram::parse(&frame[opened.body]).ok()?;
                self.on_packet(now, id, ecn, &datagram)
            }
            Recipient::ToResponder | Recipient::ToInitiator(_) => {
                self.on_handshake(now, from, frame);
                Some(())
            }
            _ => None,
        }
    }

    /// Returns the association of an unprotected packet. An endpoint's queue pair number is its port, which
    /// identifies it among the endpoints at one address. The CRC residue proves that the packet is intact and does
    /// not belong to an earlier association.
    fn plain_source(&mut self, from: SocketAddr, datagram: &Datagram<'_>, residue: u32) -> Option<u32> {
        let port = u16::try_from(datagram.src_qp().0).ok()?;
        let entry = self.addresses.find(SocketAddr::new(from.ip(), port))?;
        let association = self.remotes.get_mut(entry.peer.index)?.association.as_deref()?;
        association.session.is_plain_packet(residue).then_some(association.id)
    }

    /// Processes a packet of a peer.
    fn on_packet(&mut self, now: Time, id: u32, ecn: Ecn, datagram: &Datagram<'_>) -> Option<()> {
        self.acting = Some(id);
        let (_, association) = self.remotes.of_id(id)?;
        let known_as = association.peer();
        if datagram.dst_qp() != self.qp || datagram.src_qp() != known_as.qp {
            return None;
        }
        if let Some(attempt) = association.heard(now) {
            self.handshakes.is_confirmed(attempt);
        }
        let segment = datagram.segment(self.rd.expected_psn(known_as)?);
        let ce = ecn == Ecn::Experienced;
        match &segment.body {
            Body::Rd(_) => {}
            Body::Cnp | Body::Control(_) => {
                self.rd.on_packet(now, HostId(id), &segment, ce);
                return Some(());
            }
            _ => return None,
        }
        self.sends(id);
        // A packet that the transport would not accept must not assign receives to messages.
        let Some(offer) = self.rd.judge(now, HostId(id), &segment, ce) else { return Some(()) };
        if !self.inbox.admits(index_of(id), offer.msg(), offer.end(), offer.total()) {
            self.no_room_drops += 1;
            if self.rd.refuse(now, offer) {
                self.waits(id);
            }
            return Some(());
        }
        #[cfg(test)]
        assert!(
            datagram.payload().len() != crate::engine::fault_injection::POLL as usize,
            "a bug over a datagram"
        );
        let place = self.rd.take(now, offer);
        let payload = &datagram.payload()[..usize::from(place.len)];
        self.inbox.place(&self.io.places, index_of(id), place.msg, u64::from(place.offset), payload);
        Some(())
    }

    /// Records that messages of a peer wait for room here.
    pub(super) fn waits(&mut self, id: u32) {
        if let Some((index, association)) = self.remotes.of_id(id)
            && !std::mem::replace(&mut association.waits, true)
        {
            self.waiting.push_back(index);
        }
    }

    /// Permits the peers that have waited longest to continue if there may be new room. Returns true if any could.
    pub(super) fn make_use_of_room(&mut self) -> bool {
        if !self.inbox.has_changed() {
            return false;
        }
        let (now, mut any) = (self.io.now, false);
        for _ in 0..self.waiting.len() {
            let Some(index) = self.waiting.pop_front() else { break };
            let Some(association) =
                self.remotes.get_mut(index).and_then(|remote| remote.association.as_deref_mut())
            else {
                continue;
            };
            let peer = association.peer();
            let Some((msg, total)) = self.rd.waiting(peer) else {
                association.waits = false;
                continue;
            };
            if self.inbox.admits(index, msg, total, Some(total)) {
                association.waits = false;
                self.rd.release(now, peer);
                any = true;
            } else {
                self.waiting.push_back(index);
            }
        }
        any
    }
}
