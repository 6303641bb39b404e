//! Transmission: from the endpoint to the batches.

use std::net::SocketAddr;

use pathweave_transport::{Class, FreePorts, PayloadRef, Transmit};
use pathweave_units::{Duration, HostId, PathId, Time};
use pathweave_wire::{Body, Control as Packet, Segment};

use super::Core;
use super::address_pairs::Ask;
use super::connection::Connection;
use super::control::{self, Control, Length};
use super::held_acks::ReplyPattern;
use crate::backend::Rail;
use crate::config::Driving;
use crate::event_loop::Io;
use crate::event_loop::frame::{self, Codepoint, FrameTarget};
use crate::event_loop::outbound::{Outbound, SendRoute};
use crate::places::BufferTable;
use crate::secure::Session;
use crate::state::ConnectionId;

/// Largest number of data packets taken between two acknowledgements.
pub(super) const PACKETS_AN_ANSWER: usize = 128;
/// Longest time for which acknowledgements are held: a few round trips within a rack, and far less than any
/// retransmission timer.
const HOLD_ACKS: Duration = Duration::from_us(50);
/// Time for which they are held if answers come quickly: short enough that they leave along with an answer instead of
/// alone.
const RIDE_ACKS: Duration = Duration::from_us(25);
/// Largest number of held acknowledgements that could not be joined.
const HELD_ACKS: usize = 4;

impl Core {
    /// Sends or holds acknowledgements. `told`: the application has just received events.
    ///
    /// Acknowledgements leave after data, since the peer waits for data, and in the same batch if possible. If the
    /// application drives the loop and has received events of the acknowledged packets, they are held for a moment.
    /// The application mostly answers, and they share a batch with the answer.
    pub(super) fn acknowledge(&mut self, told: bool) {
        if self.acks.list.is_empty() {
            self.acks.settle();
        } else if self.may_hold(told) {
            // Even in a shared batch, acknowledgements cost both ends something. If answers come this quickly, one
            // acknowledgement can cover the next few of them. This does not hold if the peer waits for the
            // acknowledgement, which is likely if it does more than wait for answers.
            let awaited = self.acks.awaited || self.config.driving == Driving::Standby;
            let quick = self.io.anticipation.is_quick() && !awaited;
            if !quick || self.io.now - self.acks.since.unwrap_or(self.io.now) >= RIDE_ACKS {
                self.emit_acks_along();
            }
        } else {
            self.emit_acks();
        }
    }

    /// Writes the endpoint's next packet, if there is one, into its batch. The packet is handed over by reference
    /// where it is built. Moving it as a whole would read it in larger pieces than it was written in. Such loads
    /// stall until all earlier stores complete, above all those of the previous packet's payload.
    #[inline]
    pub(super) fn send(&mut self, now: Time, gate: FreePorts) -> bool {
        let Core { endpoint, io: Io { outbound, places, line, .. }, connections, acks, .. } = self;
        let mut emit = |packet: &Transmit| {
            let Some(connection) = connections.get_mut(ConnectionId(packet.to.0)) else { return };
            let codepoint = Codepoint::capable(packet.ecn_capable);
            emit(outbound, places, connection, &packet.segment, packet.payload.as_ref(), codepoint);
        };
        let control = endpoint.send_control(|packet| {
            if !matches!(packet.segment.body, Body::Ack(_)) {
                return emit(&packet);
            }
            acks.push(packet.to, &packet.segment);
        });
        control
            || gate.data_ports != 0
                && endpoint.send_data(now, gate, |packet| {
                    if packet.class == Class::Data {
                        line.take(now, packet.wire_bytes);
                        acks.on_data_sent(now, HOLD_ACKS);
                    }
                    emit(&packet);
                })
    }

    /// Returns true if the acknowledgements can wait a little.
    fn may_hold(&mut self, told: bool) -> bool {
        if told {
            self.acks.on_events_delivered(self.io.now);
        }
        let answers = match self.config.driving {
            Driving::Thread { .. } => false,
            Driving::Caller => true,
            // An application that does not answer now may not call the loop for long.
            Driving::Standby => self.acks.habit == ReplyPattern::Answers,
        };
        if !answers || (!told && self.acks.since.is_none()) {
            return false;
        }
        let since = *self.acks.since.get_or_insert(self.io.now);
        // An application that has just received events may answer first, however long they have been held.
        (told || self.io.now - since < HOLD_ACKS) && self.acks.list.len() <= HELD_ACKS
    }

    /// Returns the time until which acknowledgements are held, or `None` if there are none.
    pub(super) fn acks_held_until(&self) -> Option<Time> {
        let since = self.acks.since.filter(|_| !self.acks.list.is_empty())?;
        Some(since.saturating_add(HOLD_ACKS))
    }

    /// Sends acknowledgements that were held for too long.
    pub(super) fn emit_held_acks(&mut self) {
        self.acks.on_hold_expired();
        self.emit_acks();
    }

    fn emit_acks(&mut self) {
        for index in 0..self.acks.list.len() {
            let (to, segment) = self.acks.list[index];
            self.emit_ack(to, &segment);
        }
        self.acks.clear();
    }

    /// Sends those held acknowledgements that need no batch of their own.
    fn emit_acks_along(&mut self) {
        let mut acks = std::mem::take(&mut self.acks.list);
        acks.retain(|(to, segment)| {
            let Some(connection) = self.connections.get(ConnectionId(to.0)) else { return false };
            let usual = connection.lane_back(connection.on_wire(segment.path));
            // The acknowledgement names the path that the packets took. Sending it at once matters more than sending
            // it on that path.
            let along = self.io.outbound.lane_along(usual);
            if let Some(lane) = along {
                self.emit_ack_by(lane, *to, segment);
            }
            along.is_none()
        });
        self.acks.list = acks;
        self.acks.settle();
    }

    fn emit_ack(&mut self, to: HostId, segment: &Segment) {
        let Some(connection) = self.connections.get(ConnectionId(to.0)) else { return };
        self.emit_ack_by(connection.lane_back(connection.on_wire(segment.path)), to, segment);
    }

    fn emit_ack_by(&mut self, lane: SendRoute, to: HostId, segment: &Segment) {
        let Some(connection) = self.connections.get_mut(ConnectionId(to.0)) else { return };
        self.endpoint.set_acting_qp(Some(connection.qp));
        let Some((way, session)) = connection.way(lane, Codepoint::Any) else { return };
        frame::add_packet(&mut self.io.outbound, &self.io.places, session, way, segment, None);
    }

    /// Sends a probe, which bypasses the endpoint.
    pub(super) fn emit_probe(&mut self, id: ConnectionId, path: PathId) {
        let now = self.io.now;
        self.set_current_connection(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let segment = Segment {
            dst_qp: connection.remote_qp,
            src_qp: connection.qp,
            path,
            pull_target: None,
            body: Body::Control(Packet::Probe { sent_at: now }),
        };
        let alone = Codepoint::capable(false);
        emit(&mut self.io.outbound, &self.io.places, connection, &segment, None, alone);
    }

    /// Sends a control message to the peer of a connection.
    pub(super) fn emit_control(&mut self, id: ConnectionId, message: control::Message) {
        self.set_current_connection(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.probes = connection.probes.wrapping_add(1);
        let path = PathId(connection.probes % connection.paths);
        let lane = connection.lane(path);
        self.emit_control_by(id, lane, message, Length::Short);
    }

    /// Sends a control message on a given lane.
    fn emit_control_by(
        &mut self,
        id: ConnectionId,
        lane: SendRoute,
        message: control::Message,
        length: Length,
    ) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let control = Control { message, to: connection.remote_id, from: id };
        let full = connection.shared.info.get().map_or(0, |info| info.mtu_payload);
        let Some((way, session)) = connection.way(lane, Codepoint::capable(false)) else { return };
        frame::add(&mut self.io.outbound, session, way, control.len(length, full), |out| {
            control.write(out);
            true
        });
    }

    /// Sends an Ask by an address pair.
    pub(super) fn emit_ask(&mut self, id: ConnectionId, question: Ask) {
        let Ask { pair, length, secret } = question;
        self.set_current_connection(id);
        let Some(connection) = self.connections.get(id) else { return };
        let Some((rail, to)) = connection.rails.as_ref().map(|rails| rails.to_ask(pair)) else { return };
        let lane = SendRoute { to, rail, path: PathId(u16::from(pair) % connection.paths) };
        self.emit_control_by(id, lane, control::Message::Ask { pair, secret }, length);
    }

    /// Sends an Answer to the origin of an Ask.
    pub(super) fn emit_answer(&mut self, asked: &Asked) {
        let Asked { id, back: (rail, to), pair, secret, .. } = *asked;
        self.set_current_connection(id);
        let Some(connection) = self.connections.get(id) else { return };
        let lane = SendRoute { to, rail, path: PathId(u16::from(pair) % connection.paths) };
        self.emit_control_by(id, lane, control::Message::Answer { pair, secret }, Length::Short);
    }
}

/// Ask of a peer that is to be answered.
pub(super) struct Asked {
    pub(super) id: ConnectionId,
    /// Rail and destination of the Answer.
    pub(super) back: (Rail, SocketAddr),
    /// Pair and secret, which the Answer repeats.
    pub(super) pair: u8,
    pub(super) secret: u64,
    /// Ask of this end that is sent along with the Answer.
    pub(super) asks: Option<Ask>,
}

/// Returns true if this end sends the packet on its own initiative, and not as an answer to a packet of the peer.
pub(super) fn is_own(body: &Body) -> bool {
    match body {
        Body::Data(_) | Body::Rd(_) => true,
        Body::Control(control) => control.is_question(),
        Body::Ack(_) | Body::Nack(_) | Body::Cnp | Body::Missing(_) => false,
    }
}

fn emit(
    outbound: &mut Outbound,
    places: &BufferTable,
    connection: &mut Connection,
    segment: &Segment,
    payload: Option<&PayloadRef>,
    codepoint: Codepoint,
) {
    if let Body::Data(data) = &segment.body {
        connection.near_answers = connection.near_answers.max(data.psn);
    }
    let path = connection.on_wire(segment.path);
    let lane = if is_own(&segment.body) { connection.lane(path) } else { connection.lane_back(path) };
    let Some((way, session)) = connection.way(lane, codepoint) else { return };
    frame::add_packet(outbound, places, session, way, segment, payload);
}

impl Connection {
    /// Returns the send parameters of a frame on a lane, and the session that protects it; `None` before the
    /// handshake is complete.
    #[inline]
    fn way(&mut self, lane: SendRoute, codepoint: Codepoint) -> Option<(FrameTarget, &mut Session)> {
        let session = self.session.as_mut()?;
        Some((FrameTarget { lane, sequence: lane.path, codepoint }, session))
    }
}
