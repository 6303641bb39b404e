//! Key agreement of two endpoints: the handshake of connections, once for each pair of endpoints.

use std::net::SocketAddr;

use pathweave_units::{Duration, HostId, Time};

use super::engine::DatagramService;
use super::handshakes::Attempt;
use super::remote::{Association, Opening, Remote, SEQUENCES, index_of};
use crate::backend::Backend;
use crate::engine::setup::send_alone;
use crate::error::ConnectError;
use crate::secure::{
    AttemptId, Established, Features, HandshakeError, Hello, Initiator, InitiatorEvent, OsRandom, Recipient,
    Refusal, RequestId, ResponderEvent, Rotation, SessionId, TransportType, recipient_of,
};
use pathweave_transport::{Status, Transport};

/// Codes with which an endpoint declines. Both ends sent requests, and that of this end continues.
const OURS_GOES_ON: u32 = 0x7064_0001;
/// This end has as many peers as it may.
const TOO_MANY_PEERS: u32 = 0x7064_0002;
/// The MTU payload differs; the low 16 bits contain that of this end.
const OTHER_MTU: u32 = 0x7065_0000;
/// Time for which an end that has yielded waits for the attempt of the other one.
const YIELDS_FOR: Duration = Duration::from_ms(1_000);

impl DatagramService {
    /// Processes a handshake datagram.
    pub(super) fn on_handshake(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        self.handshakes.stirred = true;
        match recipient_of(datagram) {
            // Dropped: the peer retransmits it.
            Recipient::ToResponder if self.defers() => {}
            Recipient::ToResponder => {
                self.handshakes.responder.handle(now, from, datagram);
                self.requests(now);
            }
            Recipient::ToInitiator(attempt) => {
                if let Some(attempt) = self.handshakes.attempts.get_mut(&attempt) {
                    attempt.initiator.handle(now, datagram);
                }
            }
            _ => {}
        }
    }

    /// Treats a protected packet for an association whose peer has not confirmed as a Confirm.
    pub(super) fn confirm_by_packet(&mut self, now: Time, from: SocketAddr, id: u32, frame: &[u8]) -> bool {
        let ours = self.handshakes.responder.on_protected(now, from, SessionId(id), frame);
        if ours {
            self.requests(now);
        }
        ours
    }

    /// Advances all handshakes. Returns true if there was anything to do.
    pub(super) fn go_on_with_handshakes<B: Backend>(&mut self, now: Time, backend: &mut B) -> bool {
        if self.handshakes.next_timer().is_none_or(|due| due > now) {
            return false;
        }
        self.handshakes.stirred = false;
        self.handshakes.responder.on_timer(now);
        self.requests(now);
        let ids: Vec<AttemptId> = self.handshakes.attempts.keys().copied().collect();
        for attempt in ids {
            self.go_on_with(now, attempt, backend);
        }
        while let Some((to, datagram)) = self.handshakes.responder.poll_transmit() {
            // An answer that cannot be sent is dropped.
            let _ = send_alone(backend, to, &datagram);
        }
        let attempts = self.handshakes.attempts.values();
        let due = attempts.filter_map(|attempt| attempt.initiator.poll_timeout().or(attempt.done_until));
        self.handshakes.due = due.min().unwrap_or(Time::MAX);
        true
    }

    fn go_on_with<B: Backend>(&mut self, now: Time, id: AttemptId, backend: &mut B) {
        let Some(attempt) = self.handshakes.attempts.get_mut(&id) else { return };
        attempt.initiator.on_timer(now);
        let mut no_route = None;
        while let Some(datagram) = attempt.initiator.poll_transmit() {
            no_route = send_alone(backend, attempt.to, &datagram).err();
        }
        let (index, number, peer) = (attempt.index, attempt.id, attempt.to);
        if let Some(error) = no_route.filter(|_| attempt.done_until.is_none()) {
            let error = ConnectError::NoRoute { peer, reason: error.to_string() };
            return self.fail_attempt(index, id, error);
        }
        match attempt.initiator.poll_event() {
            None if attempt.done_until.is_some_and(|until| until <= now) => {
                self.handshakes.attempts.remove(&id);
            }
            None => {}
            Some(InitiatorEvent::Established(established)) => {
                attempt.done_until = Some(now.saturating_add(self.handshakes.config.timeout));
                self.establish(now, index, number, Some(id), *established);
            }
            Some(InitiatorEvent::Failed(HandshakeError::Refused(Refusal::Declined {
                code: OURS_GOES_ON,
            }))) => {
                self.handshakes.attempts.remove(&id);
                if let Some(remote) = self.remotes.get_mut(index)
                    && remote.opening == Opening::Asks(id)
                {
                    remote.opening = Opening::Yields(now.saturating_add(YIELDS_FOR));
                    self.io.look_by(now.saturating_add(YIELDS_FOR));
                }
            }
            Some(InitiatorEvent::Failed(error)) => {
                let ours = self.config.device.mtu_payload;
                let error = match error {
                    HandshakeError::Refused(Refusal::Declined { code: TOO_MANY_PEERS }) => {
                        ConnectError::Refused { peer, reason: Refusal::Busy }
                    }
                    HandshakeError::Refused(Refusal::Declined { code }) if code & !0xffff == OTHER_MTU => {
                        other_mtu(peer, code as u16, ours)
                    }
                    error => ConnectError::of_handshake(peer, self.config.device.connect_timeout, error),
                };
                self.fail_attempt(index, id, error);
            }
        }
    }

    /// Handles a failed attempt, and fails everything that waits for it.
    fn fail_attempt(&mut self, index: u32, attempt: AttemptId, error: ConnectError) {
        self.handshakes.attempts.remove(&attempt);
        if self.remotes.get_mut(index).is_some_and(|remote| remote.opening == Opening::Asks(attempt)) {
            self.fail(index, Status::RetryExceeded);
            self.answer_asked(index, &Err(error));
        }
    }

    /// Requests an association with a peer, unless there is one or one is being negotiated.
    pub(super) fn ask(&mut self, index: u32) {
        let now = self.io.now;
        let idle = |remote: &mut Remote| remote.opening == Opening::No && remote.association.is_none();
        if self.defers() || !self.remotes.get_mut(index).is_some_and(idle) {
            return;
        }
        let id = self.remotes.next_id(index);
        let hello = self.hello(id);
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let to = remote.entry.address();
        let rotation = Rotation::default();
        let (key, config) = (&self.handshakes.key, self.handshakes.config);
        match Initiator::new(now, key, hello, config, rotation, &mut OsRandom) {
            Ok(initiator) => {
                let attempt = initiator.attempt();
                remote.opening = Opening::Asks(attempt);
                let attempted = Attempt { initiator, index, id, to, done_until: None };
                self.handshakes.attempts.insert(attempt, attempted);
                self.handshakes.stirred = true;
            }
            Err(error) => {
                self.fail(index, Status::RetryExceeded);
                self.answer_asked(index, &Err(ConnectError::Hello(error.to_string())));
            }
        }
    }

    /// Cancels all attempts to reach a peer.
    pub(super) fn stop_asking(&mut self, index: u32) {
        self.handshakes.attempts.retain(|_, attempt| attempt.index != index);
    }

    /// Requests an association again if this end has yielded in vain.
    pub(super) fn ask_again(&mut self, now: Time, index: u32) {
        let Some(remote) = self.remotes.get_mut(index) else { return };
        if matches!(remote.opening, Opening::Yields(until) if until <= now) {
            remote.opening = Opening::No;
            if !remote.pending.is_empty() || !remote.asked.is_empty() {
                self.ask(index);
            }
        }
    }

    /// Returns the handshake parameters of this end.
    fn hello(&self, id: u32) -> Hello {
        let device = &self.config.device;
        Hello {
            protection: device.protection,
            transport: TransportType::Erd,
            scheme: device.scheme.clone(),
            mtu_payload: device.mtu_payload,
            // Number of packet number sequences. The paths of datagrams concern the sender alone.
            paths: SEQUENCES,
            nic_ports: 1,
            host: HostId(0),
            qp: self.qp,
            session: SessionId(id),
            features: Features::NONE,
            required: Features::NONE,
            private_data: self.lines.port().to_be_bytes().to_vec(),
            addresses: vec![],
        }
    }

    /// Handles the events of the responder.
    fn requests(&mut self, now: Time) {
        while let Some(event) = self.handshakes.responder.poll_event() {
            match event {
                ResponderEvent::Request { id, from, hello } => self.judge(now, id, from, &hello),
                ResponderEvent::Established { id, established, .. } => {
                    // Peers are counted by the address vector, not by the responder.
                    self.handshakes.responder.admission().remove_open(id.address());
                    let id = established.session.local_id().0;
                    let index = index_of(id);
                    let awaited = self.remotes.get_mut(index).map(|remote| remote.opening);
                    if awaited == Some(Opening::Answers(id)) {
                        self.establish(now, index, id, None, *established);
                    }
                }
                ResponderEvent::Abandoned { session, .. } => {
                    if let Some(SessionId(id)) = session
                        && let Some(remote) = self.remotes.get_mut(index_of(id))
                        && remote.opening == Opening::Answers(id)
                    {
                        remote.opening = Opening::No;
                        self.post_pending(index_of(id));
                        self.drop_if_transient(index_of(id));
                    }
                }
            }
        }
    }

    /// Accepts or declines a request.
    fn judge(&mut self, now: Time, request: RequestId, from: SocketAddr, hello: &Hello) {
        let decline = |core: &mut DatagramService, code| core.handshakes.responder.decline(request, code);
        let ours = self.config.device.mtu_payload;
        if hello.mtu_payload != ours && hello.transport == TransportType::Erd {
            return decline(self, OTHER_MTU | u32::from(ours));
        }
        let known =
            self.addresses.find(from).is_some_and(|entry| !self.addresses.is_passing(entry.peer.index));
        if !known && !self.make_room_for_peer() {
            return decline(self, TOO_MANY_PEERS);
        }
        let Some(entry) = self.addresses.meet(from) else { return decline(self, TOO_MANY_PEERS) };
        let index = entry.peer.index;
        match self.meet(&entry).opening {
            // If both ends send a request, the lower attempt number continues; both ends decide alike.
            Opening::Asks(own) if own < request.attempt() => return decline(self, OURS_GOES_ON),
            Opening::Asks(own) => {
                self.handshakes.attempts.remove(&own);
            }
            Opening::No | Opening::Answers(_) | Opening::Yields(_) => {}
        }
        let id = self.remotes.next_id(index);
        let ours = self.hello(id);
        let accepted = self.handshakes.responder.accept(now, request, ours).is_ok();
        if let Some(remote) = self.remotes.get_mut(index) {
            remote.opening = if accepted { Opening::Answers(id) } else { Opening::No };
        }
        self.handshakes.stirred = true;
        drop(entry);
        if !accepted {
            self.post_pending(index);
            self.drop_if_transient(index);
        }
    }

    /// Establishes an association whose handshake is complete. Outstanding work with an earlier incarnation of the
    /// peer fails.
    fn establish(
        &mut self,
        now: Time,
        index: u32,
        id: u32,
        confirming: Option<AttemptId>,
        established: Established,
    ) {
        let Established { session, peer, .. } = established;
        self.end_association(index, Status::RetryExceeded);
        let ours = self.config.device.mtu_payload;
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let address = remote.entry.address();
        let side_port = peer.private_data.as_slice().try_into().map(u16::from_be_bytes);
        let wrong = match side_port {
            _ if peer.mtu_payload != ours => Some(other_mtu(address, peer.mtu_payload, ours)),
            Err(_) | Ok(0) => {
                Some(ConnectError::Hello(format!("{address} names no port of its side channel")))
            }
            Ok(_) => None,
        };
        if let Some(error) = wrong {
            self.fail(index, Status::RetryExceeded);
            self.answer_asked(index, &Err(error));
            return self.drop_if_transient(index);
        }
        if self.addresses.is_passing(index) {
            self.make_room_for_peer();
            self.addresses.confirm(index);
        }
        let Some(remote) = self.remotes.get_mut(index) else { return };
        let mut association =
            Association::new(now, (id, peer.session.0), peer.qp, session, side_port.unwrap_or(0));
        association.confirming = confirming;
        let known_as = association.peer();
        remote.opening = Opening::No;
        remote.association = Some(Box::new(association));
        // The transport uses the configured round-trip time: the handshake's duration is mostly computation.
        self.rd.add_peer(now, known_as, Duration::ZERO);
        self.io.look_by(now.saturating_add(super::remote::BUSY));
        self.answer_asked(index, &Ok(()));
        self.post_pending(index);
    }

    /// Ends the association with a peer: messages to it complete with `status`; its receives wait for other messages.
    pub(super) fn end_association(&mut self, index: u32, status: Status) {
        self.drain_outputs();
        let now = self.io.now;
        let Some(association) = self.remotes.get_mut(index).and_then(|remote| remote.association.take())
        else {
            return;
        };
        self.rd.remove_peer(now, association.peer());
        while let Some(event) = self.rd.poll_event() {
            if let pathweave_transport::rd::RdEvent::Completion { wr_id, .. } = event {
                self.end_send(wr_id, index, status);
            }
        }
        for line in self.lines.indices() {
            if self.lines.get_mut(line).is_some_and(|line| line.claims == Some(association.id)) {
                self.lines.close(line);
            }
        }
        let filled = self.inbox.begin_anew(&self.io.places, index);
        self.end_filled(filled);
        self.shared.notify();
    }
}

fn other_mtu(peer: SocketAddr, theirs: u16, ours: u16) -> ConnectError {
    ConnectError::Hello(format!(
        "{peer} sends payloads of {theirs} bytes, this end of {ours}: set the same mtu_payload at both ends"
    ))
}
