//! From the endpoint to the batches.

use std::net::SocketAddr;

use pathweave_transport::{Class, Gate, PayloadRef, Transmit};
use pathweave_units::{Duration, HostId, PathId, Time};
use pathweave_wire::{Body, Control as Packet, DatagramLayout, Ecn, Segment, emit_datagram_header};

use super::acks::join;
use super::connection::Connection;
use super::control::{self, Control};
use super::outbound::{Ends, Outbound, Target};
use super::{Core, Left};
use crate::backend::Backend;
use crate::config::Driving;
use crate::places::Places;
use crate::secure::Protection;
use crate::state::ConnectionId;
use crate::sum::{self, CRC_LEN};

/// Packets of a turn; arrivals are looked at in between.
const PACKETS_A_TURN: usize = 256;
/// Packets that are taken between two acknowledgements.
pub(super) const PACKETS_AN_ANSWER: usize = 128;
/// Packets between two looks at the clock: those of a batch leave at one time anyway.
const PACKETS_A_LOOK: usize = 32;
/// How long acknowledgements are held where they may be: a few round trips within a rack, and far less than any
/// retransmission timer.
const HOLD_ACKS: Duration = Duration::from_us(50);
/// And how long where answers come quickly: soon enough to leave along with one of them rather than alone.
const RIDE_ACKS: Duration = Duration::from_us(25);
/// How many are, that could not be joined.
const HELD_ACKS: usize = 4;

impl Core {
    /// Sends what the endpoint has to send. `told`: the application has just been told something.
    ///
    /// Acknowledgements leave after data, for the peer waits for data, and in the same batch where they can. Where the
    /// application drives the loop and was told of what is acknowledged, they are held for a moment: mostly it answers,
    /// and they go along with the answer.
    pub(super) fn transmit<B: Backend>(&mut self, backend: &mut B, told: bool) -> Left {
        // After a panic there is more, of others.
        let (packets, left) = self.contain(|core| core.collect(PACKETS_A_TURN)).unwrap_or((1, Left::More));
        self.contain(|core| core.acknowledge(told));
        self.outbound.flush(backend);
        if packets == 0 { Left::Idle } else { left }
    }

    /// Sends acknowledgements, or holds them.
    fn acknowledge(&mut self, told: bool) {
        if self.acks.is_empty() {
            (self.held_since, self.acks_are_awaited) = (None, false);
        } else if self.may_hold(told) {
            // Even along with an answer they cost both ends something, and where answers come as quickly as that, the
            // next few say it all at once; unless the peer waits for it.
            let quick = self.anticipation.is_quick() && !self.acks_are_awaited;
            if !quick || self.now - self.held_since.unwrap_or(self.now) >= RIDE_ACKS {
                self.emit_acks_along();
            }
        } else {
            self.emit_acks();
        }
    }

    /// Puts packets of the endpoint into batches, acknowledgements aside.
    pub(super) fn collect(&mut self, most: usize) -> (usize, Left) {
        let mut now = self.now;
        let mut packets = 0;
        loop {
            if packets == most {
                return (packets, Left::More);
            }
            let open = self.line.is_open(now);
            let gate = if open && !self.outbound.is_stuck() { Gate::OPEN } else { Gate::CONTROL };
            if !self.send_one(now, gate) {
                let waits = !open && self.endpoint.has_ready_data();
                self.waits_for_line = waits.then(|| self.line.opens_at());
                return (packets, Left::Done);
            }
            packets += 1;
            if packets % PACKETS_A_LOOK == 0 {
                now = self.tick();
            }
        }
    }

    /// Puts the endpoint's next packet, if there is one, where it belongs. It is handed over where it is made: moved as a
    /// whole it would be read in larger pieces than it was written in, which waits for all writes before, the payload of
    /// the packet before it above all.
    #[inline]
    fn send_one(&mut self, now: Time, gate: Gate) -> bool {
        let Core { endpoint, outbound, places, connections, line, acks, .. } = self;
        let mut emit = |packet: &Transmit| {
            let Some(connection) = connections.get_mut(ConnectionId(packet.to.0)) else { return };
            let ecn = if packet.ecn_capable { Ecn::Capable0 } else { Ecn::NotCapable };
            emit(outbound, places, connection, &packet.segment, packet.payload.as_ref(), Codepoint::Is(ecn));
        };
        let control = endpoint.send_control(|packet| {
            if !matches!(packet.segment.body, Body::Ack(_)) {
                return emit(&packet);
            }
            let last = acks.last_mut();
            let joined = last.is_some_and(|(to, last)| *to == packet.to && join(last, &packet.segment));
            if !joined {
                acks.push((packet.to, packet.segment));
            }
        });
        control
            || gate.data_ports != 0
                && endpoint.send_data(now, gate, |packet| {
                    if packet.class == Class::Data {
                        line.take(now, packet.wire_bytes);
                    }
                    emit(&packet);
                })
    }

    /// Whether what is to be acknowledged can wait a little.
    fn may_hold(&mut self, told: bool) -> bool {
        if self.config.driving != Driving::Caller || (!told && self.held_since.is_none()) {
            return false;
        }
        let since = *self.held_since.get_or_insert(self.now);
        // Whoever was told has something to say first, however long they have been held.
        (told || self.now - since < HOLD_ACKS) && self.acks.len() <= HELD_ACKS
    }

    /// Until when acknowledgements are held, if there are any.
    pub(super) fn held_until(&self) -> Option<Time> {
        let since = self.held_since.filter(|_| !self.acks.is_empty())?;
        Some(since.saturating_add(HOLD_ACKS))
    }

    /// Sends acknowledgements that were held.
    pub(super) fn flush_acks<B: Backend>(&mut self, backend: &mut B) {
        self.contain(Core::emit_acks);
        self.outbound.flush(backend);
    }

    fn emit_acks(&mut self) {
        for index in 0..self.acks.len() {
            let (to, segment) = self.acks[index];
            self.emit_ack(to, &segment);
        }
        self.acks.clear();
        (self.held_since, self.acks_are_awaited) = (None, false);
    }

    /// Of the acknowledgements that are held, those that cost no batch of their own leave.
    fn emit_acks_along(&mut self) {
        let mut acks = std::mem::take(&mut self.acks);
        acks.retain(|(to, segment)| {
            let Some(connection) = self.connections.get(ConnectionId(to.0)) else { return false };
            let along = self.outbound.leaves_for(connection.peer, connection.on_wire(segment.path));
            if along {
                self.emit_ack(*to, segment);
            }
            !along
        });
        self.acks = acks;
        if self.acks.is_empty() {
            (self.held_since, self.acks_are_awaited) = (None, false);
        }
    }

    fn emit_ack(&mut self, to: HostId, segment: &Segment) {
        let Some(connection) = self.connections.get_mut(ConnectionId(to.0)) else { return };
        self.endpoint.act_for(Some(connection.qp));
        emit(&mut self.outbound, &self.places, connection, segment, None, Codepoint::Any);
    }

    /// Sends a packet that the endpoint does not know of: a probe.
    pub(super) fn emit_probe(&mut self, id: ConnectionId, path: PathId) {
        let now = self.now;
        self.act_for(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let segment = Segment {
            dst_qp: connection.remote_qp,
            src_qp: connection.qp,
            path,
            body: Body::Control(Packet::Probe { sent_at: now }),
        };
        let alone = Codepoint::Is(Ecn::NotCapable);
        emit(&mut self.outbound, &self.places, connection, &segment, None, alone);
    }

    /// Tells the peer something about the connection.
    pub(super) fn emit_control(&mut self, id: ConnectionId, message: control::Message) {
        self.act_for(id);
        let Some(connection) = self.connections.get_mut(id) else { return };
        connection.probes = connection.probes.wrapping_add(1);
        let path = PathId(connection.probes % connection.paths);
        let control = Control { message, to: connection.remote_id, from: id };
        let alone = Codepoint::Is(Ecn::NotCapable);
        frame(&mut self.outbound, connection, path, alone, control::LEN, |out| {
            control.write(out);
            true
        });
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
    let layout = DatagramLayout::of(segment);
    let path = connection.on_wire(segment.path);
    frame(outbound, connection, path, codepoint, layout.len(), |out| {
        if emit_datagram_header(segment, out).is_err() {
            return false;
        }
        let (body, padding) = out[layout.header_len..].split_at_mut(layout.payload_len);
        padding.fill(0);
        let Some(payload) = payload else { return body.is_empty() };
        let place = places.get(payload.buffer.0);
        place.is_some_and(|place| place.memory.fetch(payload.offset, body))
    });
}

/// Congestion codepoint of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codepoint {
    Is(Ecn),
    /// That of what it leaves with: a mark on it is nothing anybody looks at.
    Any,
}

/// Adds a frame whose `len` bytes of content `write` writes, with what protects it.
#[inline]
fn frame(
    outbound: &mut Outbound,
    connection: &mut Connection,
    path: PathId,
    codepoint: Codepoint,
    len: usize,
    write: impl FnOnce(&mut [u8]) -> bool,
) {
    let Some(session) = connection.session.as_mut() else { return };
    let to = connection.peer;
    if session.protection() == Protection::Insecure {
        let (ends, tag) = (Ends::Crc, session.plain_tags().sends);
        add(outbound, Header { to, path, codepoint, ends }, len + CRC_LEN, |out| {
            let (content, end) = out.split_at_mut(len);
            sum::put_tag(end, tag);
            write(content)
        });
    } else {
        let (head, all) = (session.header_len(), session.overhead() + len);
        let ends = Ends::AsWritten;
        add(outbound, Header { to, path, codepoint, ends }, all, |out| {
            write(&mut out[head..head + len]) && session.seal(path, out).is_ok()
        });
    }
}

/// Where a frame goes, and what the batch does for it.
struct Header {
    to: SocketAddr,
    path: PathId,
    codepoint: Codepoint,
    ends: Ends,
}

#[inline]
fn add(outbound: &mut Outbound, header: Header, len: usize, write: impl FnOnce(&mut [u8]) -> bool) {
    let Header { to, path, codepoint, ends } = header;
    match codepoint {
        Codepoint::Is(ecn) => outbound.add(Target { to, path, ecn, ends }, len, write),
        Codepoint::Any => outbound.add_along(to, path, ends, len, write),
    }
}
