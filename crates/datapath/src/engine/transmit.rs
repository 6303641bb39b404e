//! From the endpoint to the batches.

use std::net::SocketAddr;

use pathweave_transport::{Class, Gate, PayloadRef, Transmit};
use pathweave_units::{Duration, HostId, PathId, Time};
use pathweave_wire::{Body, Control as Packet, Segment};

use super::Core;
use super::connection::Connection;
use super::control::{self, Control, Length};
use super::held_acks::Habit;
use super::rails::Question;
use crate::backend::Rail;
use crate::config::Driving;
use crate::event_loop::Io;
use crate::event_loop::frame::{self, Codepoint, Way};
use crate::event_loop::outbound::{Lane, Outbound};
use crate::places::Places;
use crate::secure::Session;
use crate::state::ConnectionId;

/// Packets that are taken between two acknowledgements.
pub(super) const PACKETS_AN_ANSWER: usize = 128;
/// How long acknowledgements are held where they may be: a few round trips within a rack, and far less than any
/// retransmission timer.
const HOLD_ACKS: Duration = Duration::from_us(50);
/// And how long where answers come quickly: soon enough to leave along with one of them rather than alone.
const RIDE_ACKS: Duration = Duration::from_us(25);
/// How many are, that could not be joined.
const HELD_ACKS: usize = 4;

impl Core {
    /// Sends acknowledgements, or holds them. `told`: the application has just been told something.
    ///
    /// They leave after data, for the peer waits for data, and in the same batch where they can. Where the application drives
    /// the loop and was told of what is acknowledged, they are held for a moment: mostly it answers, and they go along with
    /// the answer.
    pub(super) fn acknowledge(&mut self, told: bool) {
        if self.acks.list.is_empty() {
            self.acks.settle();
        } else if self.may_hold(told) {
            // Even along with an answer they cost both ends something, and where answers come as quickly as that, the
            // next few say it all at once; unless the peer waits for it, as it may where it has more to do than to wait
            // for answers.
            let awaited = self.acks.awaited || self.config.driving == Driving::Standby;
            let quick = self.io.anticipation.is_quick() && !awaited;
            if !quick || self.io.now - self.acks.since.unwrap_or(self.io.now) >= RIDE_ACKS {
                self.emit_acks_along();
            }
        } else {
            self.emit_acks();
        }
    }

    /// Puts the endpoint's next packet, if there is one, where it belongs. It is handed over where it is made: moved as a
    /// whole it would be read in larger pieces than it was written in, which waits for all writes before, the payload of
    /// the packet before it above all.
    #[inline]
    pub(super) fn send(&mut self, now: Time, gate: Gate) -> bool {
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
                        acks.sends(now, HOLD_ACKS);
                    }
                    emit(&packet);
                })
    }

    /// Whether what is to be acknowledged can wait a little.
    fn may_hold(&mut self, told: bool) -> bool {
        if told {
            self.acks.told(self.io.now);
        }
        let answers = match self.config.driving {
            Driving::Thread { .. } => false,
            Driving::Caller => true,
            // Who says nothing now may not call for long.
            Driving::Standby => self.acks.habit == Habit::Answers,
        };
        if !answers || (!told && self.acks.since.is_none()) {
            return false;
        }
        let since = *self.acks.since.get_or_insert(self.io.now);
        // An application that was told has something to say first, however long they have been held.
        (told || self.io.now - since < HOLD_ACKS) && self.acks.list.len() <= HELD_ACKS
    }

    /// Until when acknowledgements are held, if there are any.
    pub(super) fn acks_held_until(&self) -> Option<Time> {
        let since = self.acks.since.filter(|_| !self.acks.list.is_empty())?;
        Some(since.saturating_add(HOLD_ACKS))
    }

    /// Sends those that were held for too long.
    pub(super) fn emit_held_acks(&mut self) {
        self.acks.missed();
        self.emit_acks();
    }

    fn emit_acks(&mut self) {
        for index in 0..self.acks.list.len() {
            let (to, segment) = self.acks.list[index];
            self.emit_ack(to, &segment);
        }
        self.acks.clear();
    }

    /// Of the acknowledgements that are held, those that cost no batch of their own leave.
    fn emit_acks_along(&mut self) {
        let mut acks = std::mem::take(&mut self.acks.list);
        acks.retain(|(to, segment)| {
            let Some(connection) = self.connections.get(ConnectionId(to.0)) else { return false };
            let usual = connection.lane_back(connection.on_wire(segment.path));
            // What is said is of the path that was taken here; by which it is said matters less than that it is said at once.
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

    fn emit_ack_by(&mut self, lane: Lane, to: HostId, segment: &Segment) {
        let Some(connection) = self.connections.get_mut(ConnectionId(to.0)) else { return };
        self.endpoint.act_for(Some(connection.qp));
        let Some((way, session)) = connection.way(lane, Codepoint::Any) else { return };
        frame::add_packet(&mut self.io.outbound, &self.io.places, session, way, segment, None);
    }

    /// Sends a packet that the endpoint does not know of: a probe.
    pub(super) fn emit_probe(&mut self, id: ConnectionId, path: PathId) {
        let now = self.io.now;
        self.act_for(id);
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

    /// Tells the peer something about the connection.
    pub(super) fn emit_control(&mut self, id: ConnectionId, message: control::Message) {
        self.act_for(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.probes = connection.probes.wrapping_add(1);
        let path = PathId(connection.probes % connection.paths);
        let lane = connection.lane(path);
        self.emit_control_by(id, lane, message, Length::Short);
    }

    /// The same by a way of its own.
    fn emit_control_by(&mut self, id: ConnectionId, lane: Lane, message: control::Message, length: Length) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let control = Control { message, to: connection.remote_id, from: id };
        let full = connection.shared.info.get().map_or(0, |info| info.mtu_payload);
        let Some((way, session)) = connection.way(lane, Codepoint::capable(false)) else { return };
        frame::add(&mut self.io.outbound, session, way, control.len(length, full), |out| {
            control.write(out);
            true
        });
    }

    /// Asks whether packets come through by a pair of addresses.
    pub(super) fn emit_ask(&mut self, id: ConnectionId, question: Question) {
        let Question { pair, length, secret } = question;
        self.act_for(id);
        let Some(connection) = self.connections.get(id) else { return };
        let Some((rail, to)) = connection.rails.as_ref().map(|rails| rails.to_ask(pair)) else { return };
        let lane = Lane { to, rail, path: PathId(u16::from(pair) % connection.paths) };
        self.emit_control_by(id, lane, control::Message::Ask { pair, secret }, length);
    }

    /// Answers a question, back where it came from.
    pub(super) fn emit_answer(&mut self, asked: &Asked) {
        let Asked { id, back: (rail, to), pair, secret, .. } = *asked;
        self.act_for(id);
        let Some(connection) = self.connections.get(id) else { return };
        let lane = Lane { to, rail, path: PathId(u16::from(pair) % connection.paths) };
        self.emit_control_by(id, lane, control::Message::Answer { pair, secret }, Length::Short);
    }
}

/// A question of a peer by a pair of addresses.
pub(super) struct Asked {
    pub(super) id: ConnectionId,
    /// The way of the answer.
    pub(super) back: (Rail, SocketAddr),
    /// The pair and the secret, which the answer repeats.
    pub(super) pair: u8,
    pub(super) secret: u64,
    /// The question that is asked back with it.
    pub(super) asks: Option<Question>,
}

/// Whether a packet is said of this end's own accord, rather than to answer one of the peer.
pub(super) fn is_own(body: &Body) -> bool {
    match body {
        Body::Data(_) | Body::Rd(_) => true,
        Body::Control(control) => control.is_question(),
        Body::Ack(_) | Body::Nack(_) | Body::Cnp | Body::Missing(_) => false,
    }
}

fn emit(
    outbound: &mut Outbound,
    places: &Places,
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
    /// How its frames go by a lane, and what protects them, once the handshake is done.
    #[inline]
    fn way(&mut self, lane: Lane, codepoint: Codepoint) -> Option<(Way, &mut Session)> {
        let session = self.session.as_mut()?;
        Some((Way { lane, sequence: lane.path, codepoint }, session))
    }
}
