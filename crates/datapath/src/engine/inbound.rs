//! Processing of received frames: from the backend to the endpoint.

use pathweave_policy::PathState;
use pathweave_units::{PathId, Time};
use pathweave_wire::{Body, Control as Packet, ControlKind, Datagram, Ecn, Operation, Segment};

use super::connection::Phase;
use super::control::{self, Control};
use super::path_monitor::Verdict;
use super::transmit::{Asked, PACKETS_AN_ANSWER, is_own};
use super::{Core, address_pairs, connection::Connection};
use crate::crc;
use crate::event_loop::{Origin, Service};
use crate::secure::{Recipient, recipient_of};
use crate::state::{CloseReason, ConnectionId};

/// Largest distance by which a PSN may lead the highest known one and still replace it. Less than half of the 24-bit
/// sequence space.
const NEAR: u64 = 1 << 22;
/// Largest number of Ask messages of peers that are answered in one turn.
const MOST_ASKED: usize = 256;
/// Time for which requests in flight may still be acknowledged by a peer that has closed.
const PEER_LINGERS: pathweave_units::Duration = pathweave_units::Duration::from_ms(300);

impl Core {
    /// Dispatches a frame by its kind. `residue`: CRC tag of an intact unprotected frame. Returns `None` if the frame
    /// is refused.
    #[inline]
    pub(super) fn process_frame(
        &mut self,
        now: Time,
        whence: Origin,
        ecn: Ecn,
        frame: &mut [u8],
        residue: u32,
    ) -> Option<()> {
        match recipient_of(frame) {
            Recipient::Plain => self.on_plain(now, whence, ecn, crc::content(frame), residue),
            Recipient::Protected(session) => {
                self.on_protected(now, whence, ecn, ConnectionId(session.0), frame)
            }
            Recipient::ToResponder | Recipient::ToInitiator(_) => {
                self.setup.enqueue(whence, frame);
                Some(())
            }
            _ => None,
        }
    }

    /// Processes an unprotected packet. The packet names its connection. The CRC residue proves that it is intact and
    /// belongs to this incarnation of the connection, not to an earlier one with the same numbers.
    fn on_plain(&mut self, now: Time, whence: Origin, ecn: Ecn, content: &[u8], residue: u32) -> Option<()> {
        let sound = |connection: &Connection| {
            connection.is_at(whence.from.ip())
                && connection.session.as_ref().is_some_and(|session| session.is_plain_packet(residue))
        };
        if content[..].first() == Some(&control::OPCODE) {
            let control = Control::parse(content)?;
            let id = ConnectionId(control.to);
            self.set_current_connection(id);
            let known = self.connections.get(id)?;
            let of_peer = sound(known) && known.remote_id == control.from.0;
            return of_peer.then(|| self.on_control(now, id, whence, control));
        }
        let datagram = Datagram::parse(content).ok()?;
        let connection = self.connections.of_qp(datagram.dst_qp())?;
        if !sound(connection) {
            return None;
        }
        let id = connection.id;
        self.on_packet(now, (id, whence), ecn, &datagram)
    }

    fn on_protected(
        &mut self,
        now: Time,
        whence: Origin,
        ecn: Ecn,
        id: ConnectionId,
        frame: &mut [u8],
    ) -> Option<()> {
        if self.connections.get(id)?.session.is_none() {
            if !self.confirm_by_packet(now, whence, id, frame) {
                return None;
            }
            // The hook can post receives for the new connection before its first packet is processed.
            self.call_hook();
        }
        // The hook may have taken a while.
        let now = now.max(self.io.now);
        self.set_current_connection(id);
        let connection = self.connections.get_mut(id)?;
        let opened = connection.session.as_mut()?.open(now, frame).ok()?;
        let content = &frame[opened.body];
        if content.first() == Some(&control::OPCODE) {
            let control = Control::parse(content)?;
            let of_peer = control.to == id.0 && control.from.0 == connection.remote_id;
            return of_peer.then(|| self.on_control(now, id, whence, control));
        }
        let datagram = Datagram::parse(content).ok()?;
        if datagram.dst_qp() != connection.qp {
            return None;
        }
        self.on_packet(now, (id, whence), ecn, &datagram)
    }

    /// Processes a packet from the peer of a connection.
    #[inline]
    fn on_packet(
        &mut self,
        now: Time,
        (id, whence): (ConnectionId, Origin),
        ecn: Ecn,
        datagram: &Datagram<'_>,
    ) -> Option<()> {
        let connection = self.connections.get_mut(id)?;
        if datagram.src_qp() != connection.remote_qp {
            connection.refused += 1;
            return None;
        }
        connection.heard = now;
        let near = if datagram.has_reverse_psn() { connection.near_answers } else { connection.near_data };
        let segment = datagram.segment(near);
        if let Some(rails) = &mut connection.rails
            && is_own(&segment.body)
        {
            rails.note_arrival(PathId(segment.path.0 % connection.paths), whence.rail, whence.from.ip());
        }
        match &segment.body {
            Body::Data(data) => {
                if data.psn > connection.near_data && data.psn - connection.near_data < NEAR {
                    connection.near_data = data.psn;
                }
                if data.last && matches!(data.op, Operation::Write | Operation::WriteImm) {
                    // A peer that writes to the same place repeatedly waits for the acknowledgement of the last WRITE
                    // before the next one.
                    let place = Some((data.rkey, data.remote_addr));
                    self.acks.awaited |= connection.last_write == place;
                    connection.last_write = place;
                }
            }
            // Reliable datagrams do not belong to connections.
            Body::Rd(_) => {
                connection.refused += 1;
                return None;
            }
            // Feedback to the policy must name one of its paths.
            Body::Cnp if segment.path.0 >= connection.paths => return None,
            Body::Control(Packet::ProbeReply { sent_at, .. }) => {
                let sent_at = *sent_at;
                return self.on_probe_reply(now, id, &segment, sent_at);
            }
            Body::Control(control) if !control.is_question() && segment.path.0 >= connection.paths => {
                return None;
            }
            Body::Cnp | Body::Ack(_) | Body::Nack(_) | Body::Control(_) | Body::Missing(_) => {}
        }
        let answers = datagram.has_reverse_psn();
        let host = connection.host();
        let ce = ecn == Ecn::Experienced;
        if let Some(place) = self.endpoint.on_packet(now, host, &segment, ce) {
            // The endpoint has checked key and bounds. The memory checks its own bounds again, and its handle is
            // invalid if the application has closed the connection.
            let payload = &datagram.payload()[..usize::from(place.len)];
            if let Some(known) = self.io.places.get(place.buffer.0) {
                let placed = known.memory.place(place.offset, payload);
                debug_assert!(placed, "the endpoint keeps within the bounds it was given");
            }
        }
        // Data that an acknowledgement releases is collected before the next acknowledgement is processed, since
        // ACK-clocked schemes remember only a few. It leaves with the rest of the turn.
        if answers && self.endpoint.has_ready_data() {
            self.collect(PACKETS_AN_ANSWER);
        }
        Some(())
    }

    fn on_probe_reply(
        &mut self,
        now: Time,
        id: ConnectionId,
        segment: &Segment,
        sent_at: Time,
    ) -> Option<()> {
        let connection = self.connections.get_mut(id)?;
        let probe = connection.probed.get_mut(segment.path.index())?;
        if sent_at > now {
            return None;
        }
        let verdict = probe.note(now, sent_at);
        let (qp, host) = (connection.qp, connection.host());
        if verdict == Verdict::Lives {
            connection.dead = (0, 0);
            let policy = self.endpoint.policy(qp)?;
            if policy.paths().get(segment.path.index())?.state == PathState::Down {
                let views = policy.views(Some((segment.path, PathState::Up)));
                let _ = self.endpoint.set_paths(now, qp, &views);
            }
        }
        let counts = self.endpoint.order_counters(qp);
        if counts.is_some_and(|counts| counts.controls_sent[ControlKind::Probe] > 0) {
            // The scheme sends probes, too. It recognises the replies to them.
            self.endpoint.on_packet(now, host, segment, false);
        }
        Some(())
    }

    fn on_control(&mut self, now: Time, id: ConnectionId, whence: Origin, control: Control) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        match (control.message, connection.phase) {
            (control::Message::Ask { pair, secret }, _) => {
                let Some(rails) = connection.rails.as_mut().filter(|_| self.asked.len() < MOST_ASKED) else {
                    return;
                };
                let asked = rails.on_ask(now, whence.rail, whence.from.ip(), &mut self.unproven);
                self.asked.extend(asked.map(|(back, asks)| Asked { id, back, pair, secret, asks }));
            }
            (control::Message::Answer { pair, secret }, _) => {
                let answer =
                    address_pairs::Answer { pair, secret, rail: whence.rail, from: whence.from.ip() };
                if let Some(rails) = &mut connection.rails
                    && rails.on_answer(now, &answer, &mut self.unproven)
                {
                    // Ask messages that this validation permits leave at once.
                    self.io.look_by(now);
                }
            }
            (control::Message::Close, Phase::Open) => {
                self.answers.push(id);
                if connection.sends.is_empty() {
                    self.close(id, CloseReason::Peer);
                    self.shared.notify();
                } else {
                    let until = now.saturating_add(PEER_LINGERS);
                    connection.phase = Phase::PeerClosing { until };
                    self.io.next_upkeep = now;
                }
            }
            (control::Message::Close, Phase::PeerClosing { .. } | Phase::Lingering { .. }) => {
                self.answers.push(id);
            }
            (control::Message::Closed, Phase::Lingering { until, .. }) => {
                connection.phase = Phase::Lingering { until, next_close: None };
            }
            _ => {}
        }
    }
}

/// Returns the path of the probe with this number: paths take turns.
pub(super) fn nth_path(probes: u16, paths: u16) -> PathId {
    PathId(probes % paths.max(1))
}
