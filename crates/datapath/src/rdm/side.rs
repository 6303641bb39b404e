//! The side channel: reports of missing packets and complete messages, over TCP.
//!
//! A connection to a peer is opened when there is a message to send and no connection. Either end may open it; if
//! both do at the same time, each sends on its own. If a connection breaks with messages outstanding, a new one is
//! opened, and the transport repeats what may not have arrived.

use std::net::SocketAddr;

use pathweave_transport::rd::SideMessage;
use pathweave_transport::{Status, Transport};
use pathweave_units::{Duration, HostId, PathId, Time};
use pathweave_wire::{SideError, SideFrame};

use super::engine::DatagramService;
use super::remote::{Association, BUSY, CloseMessage, SIDE_CHANNEL};
use super::stream::{MAX_RECORD, Preamble, RECORD_HEAD, record};
use super::tcp::Readiness;
use crate::event_loop::MAY_BEGIN_ANEW;
use crate::scheme::span;
use crate::secure::{Protection, SessionId};

/// Interval of upkeep while nothing is outstanding.
const QUIET: Duration = Duration::from_ms(200);
/// Silence after which a peer from which something is awaited is probed.
const ASK_AFTER: Duration = Duration::from_ms(100);
/// Bound on the time between two upkeeps that counts as a peer's silence: this end may have been stalled itself.
const LONGEST_LOOK: Duration = Duration::from_ms(400);
/// Delay before a broken connection is opened again. It doubles with each failure, up to [`MOST_DOUBLINGS`] times.
const CALL_AGAIN: Duration = Duration::from_ms(10);
const MOST_DOUBLINGS: u32 = 6;
/// Age from which a connection counts as one with the peer, even if no message has arrived on it.
const LASTING: Duration = Duration::from_ms(500);
/// Largest number of Abort messages that are repeated on a new connection.
const MOST_ABORTS: usize = 64;
/// Interval at which outstanding messages are announced again, and the largest number announced at a time. The peer's
/// report about them may have been lost with a connection of which this end does not know.
pub(super) const REMIND_EVERY: Duration = Duration::from_ms(1_000);
const REMINDERS: usize = 64;

/// Cause of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A fault, or the other end closed it.
    Broken,
    /// Invalid or foreign content.
    Refused,
    /// Not needed any more, or another connection needs its slot.
    Closed,
}

impl DatagramService {
    /// Queues a message for a peer; it leaves with the rest of the turn.
    pub(super) fn queue_message(&mut self, id: u32, message: SideMessage) {
        let limit = self.config.side_buffer_bytes;
        let Some((index, association)) = self.remotes.of_id(id) else { return };
        let (start, len) = (association.unsent.len(), message.encoded_len());
        if start + len > limit {
            // Same as a broken connection: important messages are repeated.
            association.unsent = Vec::new();
            association.lost = true;
            return;
        }
        association.unsent.resize(start + len, 0);
        message.emit(&mut association.unsent[start..]);
        if matches!(message, SideMessage::Abort { .. }) {
            association.aborts.truncate(MOST_ABORTS - 1);
            association.aborts.push_front(message);
        }
        if !std::mem::replace(&mut association.marked, true) {
            self.talkers.push(index);
        }
    }

    /// Sends queued messages for which there is a connection, or for which one may be opened.
    pub(super) fn flush_side(&mut self) {
        let now = self.io.now;
        for index in std::mem::take(&mut self.talkers) {
            let Some(association) = self.association(index) else { continue };
            association.marked = false;
            let line = match association.line {
                Some(line) => Some(line),
                None if association.call_at <= now => self.connect(index),
                None => None,
            };
            if let Some(line) = line {
                self.flush_to(index, line);
            }
        }
    }

    pub(super) fn association(&mut self, index: u32) -> Option<&mut Association> {
        self.remotes.get_mut(index)?.association.as_deref_mut()
    }

    /// Opens a TCP connection to a peer.
    fn connect(&mut self, index: u32) -> Option<u32> {
        let (now, give_up) = (self.io.now, self.give_up());
        let remote = self.remotes.get_mut(index)?;
        let address = remote.entry.address().ip();
        let association = remote.association.as_deref_mut()?;
        let to = SocketAddr::new(address, association.side_port);
        self.make_room(self.config.side_channels - 1, None);
        match self.lines.call(now, to, give_up) {
            Ok(line) => {
                let association = self.association(index)?;
                association.line = Some(line);
                let preamble = Preamble {
                    protection: association.session.protection(),
                    to: SessionId(association.remote_id),
                    from: SessionId(association.id),
                };
                let id = association.id;
                association.called_at = now;
                self.lines.push(line, |out| out.extend_from_slice(&preamble.encode()));
                let called = self.lines.get_mut(line)?;
                (called.claims, called.owner) = (Some(id), Some(id));
                Some(line)
            }
            Err(_) => {
                self.broke(index);
                None
            }
        }
    }

    /// Closes the least recently used connections while more than `most` connections have authenticated peers.
    /// Unauthenticated connections cannot displace others.
    fn make_room(&mut self, most: usize, but: Option<u32>) {
        while let Some(line) = self.lines.too_many(most, but) {
            self.close(line, End::Closed);
        }
    }

    /// Moves the queued messages of an association to a connection, and sends as much as the socket accepts.
    fn flush_to(&mut self, index: u32, line: u32) {
        let now = self.io.now;
        let Some(association) =
            self.remotes.get_mut(index).and_then(|remote| remote.association.as_deref_mut())
        else {
            return;
        };
        let session = &mut association.session;
        let mut sealed = true;
        if !association.unsent.is_empty() {
            if session.protection() == Protection::Insecure {
                self.lines.push(line, |out| out.extend_from_slice(&association.unsent));
            } else {
                let (head, around) = (session.header_len(), session.overhead());
                for part in association.unsent.chunks(MAX_RECORD - around) {
                    self.lines.push(line, |out| {
                        let len = part.len() + around;
                        out.extend_from_slice(&(len as u16).to_be_bytes());
                        let start = out.len();
                        out.resize(start + len, 0);
                        out[start + head..start + head + part.len()].copy_from_slice(part);
                        sealed &= session.seal(PathId(SIDE_CHANNEL), &mut out[start..]).is_ok();
                    });
                }
            }
            association.unsent = Vec::new();
            if let Some(line) = self.lines.get_mut(line) {
                line.used = now;
            }
        }
        let full = self.lines.waiting_bytes(line) > 2 * self.config.side_buffer_bytes;
        if !sealed || full || self.lines.write(line).is_err() {
            self.break_off(now, line);
        }
    }

    /// Ends a broken connection. Data that arrived before the fault is processed first: a peer that is gone sends no
    /// more.
    fn break_off(&mut self, now: Time, line: u32) {
        let _ = self.lines.read(line);
        let end = if self.parse_messages(now, line).is_ok() { End::Broken } else { End::Refused };
        self.close(line, end);
    }

    /// Processes TCP events. Returns true if there were any.
    pub(super) fn poll_side(&mut self, now: Time) -> bool {
        let mut found = Vec::new();
        self.lines.look(now, self.give_up(), &mut found);
        for &Readiness { line, readable, writable } in &found {
            if writable && self.lines.write(line).is_err() {
                self.break_off(now, line);
                continue;
            }
            if readable {
                self.read(now, line);
            }
        }
        !found.is_empty()
    }

    /// Processes the data that has arrived on a connection, and closes a connection that has ended.
    fn read(&mut self, now: Time, line: u32) {
        let ended = self.lines.read(line).is_err();
        match (self.parse_messages(now, line), ended) {
            (Err(()), _) => self.close(line, End::Refused),
            (Ok(()), true) => self.close(line, End::Broken),
            (Ok(()), false) => {}
        }
    }

    /// Parses the messages that have arrived. An error means that the content is invalid.
    fn parse_messages(&mut self, now: Time, index: u32) -> Result<(), ()> {
        let Some(line) = self.lines.get_mut(index) else { return Ok(()) };
        if line.inbound.is_empty() {
            return Ok(());
        }
        let mut inbound = std::mem::take(&mut line.inbound);
        let mut plain = std::mem::take(&mut line.plain);
        let claims = line.claims;
        let result = self.understand(now, index, claims, &mut inbound, &mut plain);
        if let Some(line) = self.lines.get_mut(index) {
            (line.inbound, line.plain, line.used) = (inbound, plain, now);
        }
        result
    }

    fn understand(
        &mut self,
        now: Time,
        line: u32,
        claims: Option<u32>,
        inbound: &mut Vec<u8>,
        plain: &mut Vec<u8>,
    ) -> Result<(), ()> {
        let mut taken = 0;
        let id = match claims {
            Some(id) => id,
            None => {
                let Some(preamble) = Preamble::parse(inbound).map_err(|_| ())? else { return Ok(()) };
                taken = super::stream::PREAMBLE_LEN;
                self.answer_call(line, preamble)?
            }
        };
        let (_, association) = self.remotes.of_id(id).ok_or(())?;
        let mut proven = false;
        if association.session.protection() == Protection::Insecure {
            plain.extend_from_slice(&inbound[taken..]);
            taken = inbound.len();
            proven = true;
        } else {
            while let Some(range) = record(&inbound[taken..]).map_err(|_| ())? {
                let frame = &mut inbound[taken..][range.clone()];
                let opened = association.session.open(now, frame).map_err(|_| ())?;
                if opened.path != Some(PathId(SIDE_CHANNEL)) {
                    return Err(());
                }
                plain.extend_from_slice(&frame[opened.body]);
                taken += RECORD_HEAD + range.len();
                proven = true;
            }
        }
        if proven {
            if let Some(attempt) = association.heard(now) {
                self.handshakes.is_confirmed(attempt);
            }
            // Nothing is sent on a connection whose opener has not authenticated itself.
            association.line.get_or_insert(line);
            let new = self.lines.get_mut(line).is_some_and(|line| line.owner.replace(id).is_none());
            if new {
                self.make_room(self.config.side_channels, Some(line));
            }
        }
        inbound.drain(..taken);
        let mut read = 0;
        loop {
            match SideFrame::parse(&plain[read..]) {
                Ok((frame, len)) => {
                    read += len;
                    let message: SideMessage = frame.to_owned();
                    self.rd.on_side(now, HostId(id), &message);
                    match message {
                        SideMessage::Start { msg_id, packets, .. } => {
                            self.sends(id);
                            if packets > 1 {
                                self.on_announced(now, id, msg_id);
                            }
                        }
                        SideMessage::Close { .. } => self.leaving.push((id, CloseMessage::Close)),
                        SideMessage::Closed { .. } => self.leaving.push((id, CloseMessage::Closed)),
                        _ => {}
                    }
                }
                Err(SideError::Truncated { .. }) => break,
                Err(_) => return Err(()),
            }
        }
        plain.drain(..read);
        Ok(())
    }

    /// Handles an announced message. If there is neither a receive nor room for all of it, it waits at its sender, so
    /// that its packets are not dropped here.
    fn on_announced(&mut self, now: Time, id: u32, msg_id: u16) {
        let Some((index, association)) = self.remotes.of_id(id) else { return };
        let peer = association.peer();
        if let Some((msg, bytes)) = self.rd.announced(peer, msg_id)
            && !self.inbox.may_take(index, msg, bytes)
            && self.rd.defer(now, peer, msg)
        {
            self.waits(id);
        }
    }

    /// Handles the preamble of a connection that a peer has opened; returns the association that it claims.
    fn answer_call(&mut self, line: u32, preamble: Preamble) -> Result<u32, ()> {
        let id = preamble.to.0;
        let (_, association) = self.remotes.of_id(id).ok_or(())?;
        if association.remote_id != preamble.from.0 || association.session.protection() != preamble.protection
        {
            return Err(());
        }
        if let Some(line) = self.lines.get_mut(line) {
            line.claims = Some(id);
        }
        Ok(id)
    }

    /// Closes a connection.
    fn close(&mut self, line: u32, end: End) {
        let Some(closed) = self.lines.close(line) else { return };
        let stats = &mut self.lines.stats;
        match end {
            End::Broken => stats.broken += 1,
            End::Refused => stats.refused += 1,
            End::Closed => stats.closed += 1,
        }
        if let Some((index, association)) = closed.owner.and_then(|id| self.remotes.of_id(id))
            && association.line == Some(line)
        {
            association.line = None;
            // The peer's process may have died, or the peer does not need the connection any more.
            association.suspect |= end == End::Broken;
            self.broke(index);
        }
    }

    /// Closes all connections.
    pub(super) fn hang_up_all(&mut self) {
        for line in self.lines.indices() {
            self.close(line, End::Closed);
        }
    }

    /// Handles the loss of the connection on which this end sent, or the failure to open one.
    fn broke(&mut self, index: u32) {
        let now = self.io.now;
        let Some(association) = self.association(index) else { return };
        association.unsent = Vec::new();
        association.lost = true;
        // A peer that is being retired counts as gone once its TCP connection fails: no connection is left that
        // forgetting it could disturb.
        let gone = association.closing.map(|_| (association.id, CloseMessage::Closed));
        let wait = CALL_AGAIN.as_ps() << association.calls.min(MOST_DOUBLINGS);
        association.call_at = now.saturating_add(Duration::from_ps(wait));
        association.calls = association.calls.saturating_add(1);
        association.down_since.get_or_insert(now);
        self.leaving.extend(gone);
        self.io.look_by(now.saturating_add(BUSY));
    }

    /// Periodic maintenance: broken connections, silent peers, unused connections.
    pub(super) fn upkeep(&mut self, now: Time) {
        let give_up = span(self.config.device.peer_timeout);
        let elapsed = now.saturating_since(self.upkeep_at).min(LONGEST_LOOK);
        self.upkeep_at = now;
        let mut wait = QUIET;
        for index in self.remotes.indices() {
            self.ask_again(now, index);
            if self.is_silent(now, index, elapsed) {
                // An idle peer is forgotten without loss; another may come back.
                let idle = self.is_idle(index);
                self.fail(index, Status::RetryExceeded);
                if idle {
                    self.forget(index);
                }
                continue;
            }
            self.look_for_idle(now, index);
            let Some(association) =
                self.remotes.get_mut(index).and_then(|remote| remote.association.as_deref_mut())
            else {
                continue;
            };
            let gives_up_unheard = association.lost && !association.aborts.is_empty();
            if association.outstanding == 0 && association.unsent.is_empty() && !gives_up_unheard {
                // Nothing of this end is outstanding. The peer requests what it misses.
                (association.lost, association.down_since) = (false, None);
                continue;
            }
            wait = BUSY;
            let lasting = association.line.is_some_and(|line| self.lines.is_connected(line));
            if lasting && now.saturating_since(association.called_at) >= LASTING {
                association.holds();
            }
            if association.down_since.is_some_and(|since| now - since >= give_up) {
                self.fail(index, Status::RetryExceeded);
                continue;
            }
            if association.call_at > now {
                continue;
            }
            let id = association.id;
            if std::mem::take(&mut association.lost) {
                let aborts: Vec<SideMessage> = association.aborts.drain(..).rev().collect();
                self.rd.on_side_reset(now, HostId(id));
                aborts.into_iter().for_each(|abort| self.queue_message(id, abort));
            }
            self.remind(now, index);
            let Some(association) = self.association(index) else { continue };
            if !association.unsent.is_empty() && !std::mem::replace(&mut association.marked, true) {
                self.talkers.push(index);
            }
        }
        self.close_idle(now);
        if self.addresses.is_crowded() {
            self.make_room_for_peer();
        }
        self.io.next_upkeep = now.saturating_add(wait);
        if now >= MAY_BEGIN_ANEW {
            self.renew();
        }
    }

    fn remind(&mut self, now: Time, index: u32) {
        let Some(association) = self.association(index) else { return };
        if association.outstanding == 0 || now < association.remind_at {
            return;
        }
        association.remind_at = now.saturating_add(REMIND_EVERY);
        let (peer, from) = (association.peer(), association.remind_from);
        let next = self.rd.remind(now, peer, from, REMINDERS);
        if let Some(association) = self.association(index) {
            association.remind_from = next;
        }
    }

    /// Returns true if a peer from which something is awaited has been silent for the peer timeout. Its process
    /// hangs, while its kernel keeps TCP alive. Probes it before that.
    fn is_silent(&mut self, now: Time, index: u32, elapsed: Duration) -> bool {
        let give_up = span(self.config.device.peer_timeout);
        let rd = &self.rd;
        let Some(association) = self.remotes.get_mut(index).and_then(|r| r.association.as_deref_mut()) else {
            return false;
        };
        let peer = association.peer();
        let goes = association.suspect || association.closing.is_some();
        if association.outstanding == 0 && !goes && !rd.awaits(peer) {
            association.silence = Duration::ZERO;
            return false;
        }
        association.silence += elapsed;
        let silence = association.silence;
        if silence >= ASK_AFTER {
            self.rd.probe(now, peer);
        }
        silence >= give_up
    }

    fn close_idle(&mut self, now: Time) {
        for line in self.lines.indices() {
            if self.is_line_idle(now, line) {
                // A stalled loop may not have read what has arrived. Closing a connection with unread data resets it,
                // and the other end loses its unread data.
                self.read(now, line);
                if self.is_line_idle(now, line) {
                    self.close(line, End::Closed);
                }
            }
        }
    }

    /// Returns true if a connection has not been used for long, and nothing outstanding needs it.
    fn is_line_idle(&mut self, now: Time, line: u32) -> bool {
        let idle = span(self.config.side_idle);
        let Some(open) = self.lines.get_mut(line).filter(|open| now - open.used >= idle) else {
            return false;
        };
        let owner = open.owner.and_then(|id| self.remotes.of_id(id));
        self.lines.waiting_bytes(line) == 0
            && owner.is_none_or(|(_, association)| association.outstanding == 0)
    }
}
