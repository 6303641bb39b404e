//! Handlers of events on connections.

use pathweave_datapath::secure::Refusal;
use pathweave_datapath::{CloseReason, Completion, ConnectError, Connection, Event, Status};
use pathweave_tagged::{FIRST_RECEIVES, Failure, PeerId, Role};

use super::core::{EndpointState, Request};
use super::handshake::{Answer, ConnectRequest};
use super::links::{CallDecision, Carrier, Dialled, Link, Open};
use crate::ffi::memory;
use crate::log::{Level, log};

impl EndpointState {
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Completed(done) => self.on_completion(&done),
            Event::Opened { token, connection } => self.on_opened(token, connection),
            Event::Refused { token, error } => self.on_refused(token, &error),
            Event::Accepted(connection) => self.on_call(connection),
            Event::Closed { connection, reason } => {
                if self.closing_connections.remove(&connection).is_some() {
                    self.finish_deferred();
                }
                if let Some(peer) = self.links.owner(connection) {
                    self.on_closed(peer, reason);
                }
            }
            Event::Released { token } => {
                self.buffers.released(token);
                self.finish_deferred();
            }
            other => log(Level::Info, format_args!("not handled: {other:?}")),
        }
    }

    /// Dials a peer. An event reports the outcome.
    pub(super) fn dial(&mut self, peer: PeerId) {
        let Some(address) = self.links.address(peer) else { return };
        self.next_token += 1;
        let token = self.next_token;
        let call = self.links.call(peer, self.neighbours.rendezvous_for(address.ip()));
        let attempt = self.events.connect_with(token, address, &self.scheme, &call.encode());
        let ticket = call.here.map(|here| here.ticket);
        self.set_link(peer, Link::Dialling { attempt, token, ticket, carrier: Carrier::Network });
    }

    fn on_opened(&mut self, token: u64, connection: Connection) {
        // Without a peer, the attempt was given up.
        let Some(peer) = self.links.dialling(token) else { return };
        let Some(answer) = Answer::decode(&connection.info().private_data) else {
            log(Level::Warn, format_args!("{} is no endpoint of ours", connection.peer_addr()));
            self.set_link(peer, Link::None);
            self.engine.peer_down(peer, Failure::Refused, &mut self.buffers);
            return;
        };
        let (ticket, carrier) = self.links.offered(peer);
        self.set_link(peer, Link::Answered(Open { connection, dialled: Dialled::Here, ticket, carrier }));
        self.links.answered(peer, answer.boot);
        let (count, bytes) = FIRST_RECEIVES;
        self.post_receives(peer, count, bytes as usize);
    }

    fn on_refused(&mut self, token: u64, error: &ConnectError) {
        let Some(peer) = self.links.dialling(token) else { return };
        let busy = matches!(error, ConnectError::Refused { reason: Refusal::Busy | Refusal::PeerLimit, .. });
        if busy && self.links.may_redial(peer) {
            return self.dial(peer);
        }
        log(Level::Warn, format_args!("{error}"));
        let failure = match error {
            ConnectError::Unreachable { .. } => Failure::TimedOut,
            ConnectError::NoRoute { .. } | ConnectError::LinkMtu { .. } => Failure::Io,
            _ => Failure::Refused,
        };
        self.set_link(peer, Link::None);
        self.engine.peer_down(peer, failure, &mut self.buffers);
    }

    fn on_call(&mut self, connection: Connection) {
        let from = connection.peer_addr();
        let Some(call) = ConnectRequest::decode(&connection.info().private_data) else {
            return log(Level::Warn, format_args!("{from} is no endpoint of ours"));
        };
        // A peer may not claim the address of another host, nor that of this endpoint.
        if call.address.ip() != from.ip() || call.address == self.own {
            return log(Level::Warn, format_args!("{from} claims the address {}", call.address));
        }
        let peer = self.links.at(call.address);
        match self.links.resolve_crossing(peer, &call) {
            CallDecision::Drop => {}
            CallDecision::Adopt => {
                // The replaced connection has nothing more to deliver.
                self.give_up(peer, Link::None);
                let lane = call.here.and_then(|here| self.neighbours.offer(peer, &here));
                let carrier = lane.map_or(Carrier::Network, Carrier::Lane);
                let open = Open { connection, dialled: Dialled::There, ticket: None, carrier };
                self.set_link(peer, Link::Up(open));
                self.engine.peer_up(peer, Role::Acceptor, &mut self.buffers);
            }
        }
    }

    pub(super) fn on_closed(&mut self, peer: PeerId, reason: CloseReason) {
        if let Some(lane) = self.lane_of(peer) {
            self.drain_lane(lane);
        }
        let was = self.set_link(peer, Link::None);
        let crossed = matches!(was, Link::Answered(_)) && reason == CloseReason::Peer;
        // The peer closed the connection in favour of one that it dialled, or it was too busy.
        if crossed && self.links.may_redial(peer) {
            return self.dial(peer);
        }
        let failure = match reason {
            CloseReason::PeerSilent => Failure::TimedOut,
            _ => Failure::Reset,
        };
        self.engine.peer_down(peer, failure, &mut self.buffers);
        if reason == CloseReason::PeerSilent {
            self.engine.lose_receives(peer, failure);
        }
        // A peer in no address vector is removed, so that it does not stay forever.
        let known = self.links.address(peer).is_some_and(|address| self.vector.number(address).is_some());
        if !known {
            self.engine.forget(peer, failure, &mut self.buffers);
            self.links.forget(peer);
            self.targets.1.clear();
        }
    }

    fn on_completion(&mut self, done: &Completion) {
        let Some(request) = self.requests.try_remove(done.wr_id as usize) else { return };
        let current = self.links.owner(done.connection);
        self.unanswered -= usize::from(!matches!(request, Request::Receive { .. }));
        match request {
            Request::Receive { place } => {
                if let (Some(peer), true) = (current, done.is_success()) {
                    if self.links.confirm(peer) {
                        self.engine.peer_up(peer, Role::Initiator, &mut self.buffers);
                        self.run_actions();
                    }
                    let bytes = memory::bytes(&place, done.byte_len as usize);
                    self.engine.delivered(peer, bytes, &mut self.buffers);
                }
                self.stage.free(place);
            }
            Request::Send { peer, request, place } => {
                self.stage.free(place);
                if current == Some(peer) {
                    self.engine.completed(peer, request, result(done), &mut self.buffers);
                }
            }
            Request::Move { peer, request } => {
                if current == Some(peer) {
                    self.engine.completed(peer, request, result(done), &mut self.buffers);
                }
            }
        }
    }
}

fn result(done: &Completion) -> Result<(), Failure> {
    match done.status {
        Status::Success => Ok(()),
        Status::RetryExceeded | Status::RnrRetryExceeded => Err(Failure::TimedOut),
        Status::RemoteAccess => Err(Failure::Access),
        Status::Flushed => Err(Failure::Reset),
        _ => Err(Failure::Io),
    }
}
