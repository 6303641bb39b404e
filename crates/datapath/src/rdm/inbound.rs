//! From the backend to the transport.

use std::net::SocketAddr;

use pathweave_units::{HostId, PathId, Time};
use pathweave_wire::{Body, Datagram, Ecn};

use super::engine::Core;
use super::remote::{Association, DATAGRAMS, index_of};
use crate::backend::Received;
use crate::secure::{Kind, Protection, kind_of};
use crate::sum::{self, CRC_LEN};

impl Core {
    /// Datagrams have arrived.
    pub(super) fn on_received(&mut self, received: Received<'_>) {
        let now = self.tick();
        self.counts.received_bytes += received.bytes.len() as u64;
        let each = received.segment_bytes.max(1);
        for frames in received.bytes.chunks_mut(each * sum::AT_ONCE) {
            let residues = sum::residues(frames, each);
            for (frame, residue) in frames.chunks_mut(each).zip(residues) {
                self.counts.received_datagrams += 1;
                self.counts.marked_datagrams += u64::from(received.ecn == Ecn::Experienced);
                if self.on_datagram(now, received.from, received.ecn, frame, residue).is_none() {
                    self.counts.refused_datagrams += 1;
                }
            }
        }
    }

    /// `residue`: the tag it has if it is unprotected and intact. `None`: it is nothing of ours.
    fn on_datagram(
        &mut self,
        now: Time,
        from: SocketAddr,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()> {
        match kind_of(frame) {
            Kind::Plain => {
                let datagram = Datagram::parse(sum::content(frame)).ok()?;
                let id = self.plain_source(from, &datagram, residue)?;
                self.on_packet(now, id, ecn, &datagram)
            }
            Kind::Protected(session) => {
                let id = session.0;
                if self.remotes.of_id(id).is_none() && !self.confirm_by_packet(now, from, id, frame) {
                    return None;
                }
                let (_, association) = self.remotes.of_id(id)?;
                let opened = association.session.open(now, frame).ok()?;
                if opened.path != Some(PathId(DATAGRAMS)) {
                    return None;
                }
                let datagram = Datagram::parse(&frame[opened.body]).ok()?;
                self.on_packet(now, id, ecn, &datagram)
            }
            Kind::ToResponder | Kind::ToInitiator(_) => {
                self.on_handshake(now, from, frame);
                Some(())
            }
            _ => None,
        }
    }

    /// The association an unprotected packet is of. Endpoints at one address have the queue pairs of their ports; that the
    /// packet is intact, and not of an earlier association, its residue shows.
    fn plain_source(&mut self, from: SocketAddr, datagram: &Datagram<'_>, residue: u32) -> Option<u32> {
        let port = u16::try_from(datagram.src_qp().0).ok()?;
        let entry = self.book.find(SocketAddr::new(from.ip(), port))?;
        let association = self.remotes.get_mut(entry.peer.index)?.association.as_deref()?;
        association.session.takes_plain(residue).then_some(association.id)
    }

    /// A packet of a peer.
    fn on_packet(&mut self, now: Time, id: u32, ecn: Ecn, datagram: &Datagram<'_>) -> Option<()> {
        let (_, association) = self.remotes.of_id(id)?;
        let known_as = association.peer();
        if datagram.dst_qp() != self.qp || datagram.src_qp() != known_as.qp {
            return None;
        }
        if let Some(attempt) = association.heard() {
            self.handshakes.is_confirmed(attempt);
        }
        let segment = datagram.segment(self.rd.expected_psn(known_as)?);
        let ce = ecn == Ecn::Experienced;
        let data = match &segment.body {
            Body::Rd(data) => data,
            Body::Cnp | Body::Probe { .. } | Body::ProbeReply { .. } => {
                self.rd.on_packet(now, HostId(id), &segment, ce);
                return Some(());
            }
            _ => return None,
        };
        let msg = self.rd.message_of(known_as, data)?;
        let payload = datagram.payload();
        let end = u64::from(data.offset) + payload.len() as u64;
        let rd = &self.rd;
        let total = || if data.multi { rd.announced_len(known_as, msg) } else { Some(end) };
        if !self.inbox.admits(index_of(id), msg, end, total) {
            // As if it had been lost: it will be asked for.
            self.counts.no_room_drops += 1;
            return Some(());
        }
        if let Some(place) = self.rd.on_packet(now, HostId(id), &segment, ce) {
            let payload = &payload[..usize::from(place.len)];
            self.inbox.place(&self.places, index_of(id), place.msg, u64::from(place.offset), payload);
        }
        Some(())
    }
}

impl Association {
    /// Bytes around a packet on its way.
    pub(super) fn around(&self) -> (usize, usize) {
        if self.session.protection() == Protection::Insecure {
            (0, CRC_LEN)
        } else {
            (self.session.header_len(), self.session.tag_len())
        }
    }
}
