//! Responder to requests for connections.

mod entry;
mod event;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use aws_lc_rs::hmac;
use pathweave_units::Time;

use super::admission::Admission;
use super::cookie::CookieKey;
use super::hello::{Hello, HelloError, HelloMessage, SessionId};
use super::initiator::best_common;
use super::key::ClusterKey;
use super::key_schedule::Direction;
use super::layout::{VERSION, VERSIONS, common};
use super::message::{
    AttemptId, Cookie, Message, cookie_prefix, emit_accept, emit_reject, emit_retry, emit_versions,
    verify_mac,
};
use super::negotiate::{Refusal, agree};
use super::noise::{Noise, Role};
use super::outcome::{Established, SetupError, check_setup};
use super::random::SecureRandom;
use super::session::{Session, SessionConfig};
use super::timing::Backoff;
use entry::{Asked, Entry, Offer, SourceAddresses};
pub use event::{AcceptError, RequestId, ResponderConfig, ResponderCounters, ResponderEvent};

/// Largest number of datagrams that wait to be sent. Further ones, as under an attack, are dropped.
const MAX_OUTBOX: usize = 1_024;

/// Responder of handshakes with any number of peers.
///
/// It keeps no state for a peer that has not proven its address by a cookie *and* the cluster key. Until the peer has
/// proven its address, no answer is longer than its request. Pass it the datagrams that [`kind_of`](super::recipient_of)
/// assigns to it. After each call drain [`poll_transmit`](Responder::poll_transmit) and
/// [`poll_event`](Responder::poll_event), and call [`on_timer`](Responder::on_timer) at
/// [`poll_timeout`](Responder::poll_timeout).
pub struct Responder {
    key: ClusterKey,
    answer_key: hmac::Key,
    config: ResponderConfig,
    cookies: CookieKey,
    random: Box<dyn SecureRandom + Send>,
    admission: Admission,
    entries: BTreeMap<RequestId, Entry>,
    /// Half-open sessions by number, for packets that arrive before the Confirm.
    offered: BTreeMap<SessionId, RequestId>,
    /// Number of entries that are stored only to recognise replays.
    completed_count: usize,
    outbox: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<ResponderEvent>,
    counters: ResponderCounters,
    next_timeout: Option<Time>,
}

impl Responder {
    /// Creates a responder for initiators that have `key`.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the configuration is invalid or no random bytes are available.
    pub fn new(
        key: ClusterKey,
        config: ResponderConfig,
        mut random: Box<dyn SecureRandom + Send>,
    ) -> Result<Self, SetupError> {
        config.rotation.validate().map_err(SetupError::Rotation)?;
        Ok(Responder {
            answer_key: key.answer_key(),
            key,
            cookies: CookieKey::new(&mut *random, config.cookie_lifetime)?,
            random,
            admission: Admission::new(config.limits),
            config,
            entries: BTreeMap::new(),
            offered: BTreeMap::new(),
            completed_count: 0,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            counters: ResponderCounters::default(),
            next_timeout: None,
        })
    }

    /// Returns the counters.
    pub fn counters(&self) -> ResponderCounters {
        self.counters
    }
    /// Returns the counts of connections. The loop also adds connections that it initiates, and removes those that
    /// have ended.
    pub fn admission(&mut self) -> &mut Admission {
        &mut self.admission
    }
    /// Returns the next datagram to send and its destination.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.outbox.pop_front()
    }
    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ResponderEvent> {
        self.events.pop_front()
    }
    /// Returns the time for [`on_timer`](Responder::on_timer).
    pub fn poll_timeout(&self) -> Option<Time> {
        self.next_timeout
    }

    /// Returns true if no request is in progress.
    pub fn is_idle(&self) -> bool {
        self.entries.values().all(|entry| matches!(entry, Entry::Completed { .. }))
    }

    /// Handles a datagram from any source.
    pub fn handle(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let Ok((attempt, parsed)) = Message::parse(datagram) else {
            self.counters.malformed += 1;
            return;
        };
        let id = RequestId { address: from.ip().to_canonical(), attempt };
        match parsed {
            Message::UnknownVersion { .. } => {
                self.counters.versions += 1;
                let answer = emit_versions(attempt, VERSIONS, &self.answer_key);
                self.answer_unproven(from, datagram, answer);
            }
            Message::Initiate { header, cookie, noise } => {
                let is_known = self.entries.contains_key(&id);
                if self.cookies.check(now, id.address, attempt, cookie)
                    && (is_known || self.cookies.proves_new_attempt(cookie))
                {
                    self.on_request(now, from, id, header, cookie, noise);
                } else {
                    self.counters.retries += 1;
                    let fresh = self.cookies.make(now, id.address, attempt);
                    let answer = emit_retry(attempt, cookie_prefix(cookie), &fresh, &self.answer_key);
                    self.answer_unproven(from, datagram, answer);
                }
            }
            Message::Confirm => self.on_confirm(now, from, id, datagram),
            Message::Retry { .. }
            | Message::Accept { .. }
            | Message::Reject { .. }
            | Message::Versions { .. } => {
                self.counters.malformed += 1;
            }
        }
    }

    /// Handles a protected frame for a session that the loop does not know. If the frame belongs to a half-open
    /// connection, the Confirm was lost or is late, and the frame replaces it. Returns true in that case: an
    /// `Established` event is ready, and its session can open the frame.
    pub fn on_protected(&mut self, now: Time, from: SocketAddr, session: SessionId, frame: &[u8]) -> bool {
        let Some(id) = self.offered.get(&session).copied() else { return false };
        let Some(Entry::HalfOpen(offer)) = self.entries.get(&id) else { return false };
        let ours = offer.session.is_authentic(now, frame);
        let from = offer.heard.answer_address(from);
        if ours {
            self.establish(now, from, id);
        }
        ours
    }

    /// Accepts a request. Frames to this end will carry `hello.session`.
    ///
    /// # Errors
    ///
    /// [`AcceptError`]. The request stays open if our own hello or session number is invalid, and has ended
    /// otherwise.
    pub fn accept(&mut self, now: Time, id: RequestId, hello: Hello) -> Result<(), AcceptError> {
        hello.validate().map_err(SetupError::Hello)?;
        check_setup(hello.protection, &self.key, &self.config.rotation)?;
        if self.offered.contains_key(&hello.session) {
            return Err(AcceptError::SessionTaken(hello.session));
        }
        let Some(asked) = self.take_asked(id) else { return Err(AcceptError::RequestClosed) };
        let agreed = match agree(VERSION, &hello, &asked.hello) {
            Ok(agreed) => agreed,
            Err(refusal) => {
                self.admission.remove_half_open(id.address);
                self.refuse(asked.heard, id.attempt, refusal);
                self.find_next_timeout();
                return Err(AcceptError::Refused(refusal));
            }
        };
        let (local, remote) = (hello.session, asked.hello.session);
        let mut noise = asked.noise;
        let message = noise.write(&HelloMessage::new(hello).encode(0));
        let secrets = noise.derive_secrets(agreed.protection);
        let session = Session::new(
            &secrets,
            Direction::ToInitiator,
            SessionConfig {
                protection: agreed.protection,
                local,
                remote,
                paths: agreed.paths,
                rotation: self.config.rotation,
            },
        );
        let accept = emit_accept(id.attempt, &message);
        asked.heard.each().for_each(|to| self.send(to, accept.clone()));
        let offer = Offer {
            heard: asked.heard,
            accept,
            confirm_key: hmac::Key::new(hmac::HMAC_SHA256, secrets.confirm_key()),
            session,
            agreed,
            peer: asked.hello,
            backoff: Backoff::start(now, &self.config.handshake),
            until: now.saturating_add(self.config.handshake.timeout),
        };
        self.offered.insert(local, id);
        self.entries.insert(id, Entry::HalfOpen(Box::new(offer)));
        self.find_next_timeout();
        Ok(())
    }

    /// Declines a request for a reason of the application.
    pub fn decline(&mut self, id: RequestId, code: u32) {
        if let Some(asked) = self.take_asked(id) {
            self.admission.remove_half_open(id.address);
            self.refuse(asked.heard, id.attempt, Refusal::Declined { code });
            self.find_next_timeout();
        }
    }

    /// Gives up the connection of a request before it is established. It no longer counts, and the attempt stays
    /// stored like a completed one.
    pub fn withdraw(&mut self, now: Time, id: RequestId) {
        match self.entries.get(&id) {
            Some(Entry::AwaitingDecision(_)) => {}
            Some(Entry::HalfOpen(offer)) => {
                self.offered.remove(&offer.session.local_id());
            }
            Some(Entry::Completed { .. }) | None => return,
        }
        self.entries.remove(&id);
        self.admission.remove_half_open(id.address);
        self.store_completed(now, id);
        self.find_next_timeout();
    }

    /// Removes and returns the request if it waits for a decision.
    fn take_asked(&mut self, id: RequestId) -> Option<Box<Asked>> {
        match self.entries.remove(&id) {
            Some(Entry::AwaitingDecision(asked)) => Some(asked),
            Some(other) => {
                self.entries.insert(id, other);
                None
            }
            None => None,
        }
    }

    /// Handles the timer.
    pub fn on_timer(&mut self, now: Time) {
        if self.next_timeout.is_none_or(|due| now < due) {
            return;
        }
        let due: Vec<RequestId> =
            self.entries.iter().filter(|(_, entry)| entry.due() <= now).map(|(id, _)| *id).collect();
        for id in due {
            self.on_due(now, id);
        }
        self.find_next_timeout();
    }

    fn on_due(&mut self, now: Time, id: RequestId) {
        match self.entries.get_mut(&id) {
            Some(Entry::HalfOpen(offer)) if now < offer.until => {
                offer.backoff.again(now);
                let (heard, accept) = (offer.heard, offer.accept.clone());
                heard.each().for_each(|to| self.send(to, accept.clone()));
            }
            Some(_) => self.remove(id),
            None => {}
        }
    }

    fn remove(&mut self, id: RequestId) {
        let session = match self.entries.remove(&id) {
            Some(Entry::AwaitingDecision(_)) => None,
            Some(Entry::HalfOpen(offer)) => Some(offer.session.local_id()),
            Some(Entry::Completed { .. }) => {
                self.completed_count -= 1;
                return;
            }
            None => return,
        };
        if let Some(session) = session {
            self.offered.remove(&session);
        }
        self.admission.remove_half_open(id.address);
        self.events.push_back(ResponderEvent::Abandoned { id, session });
    }

    /// Handles an Initiate with a valid cookie.
    fn on_request(
        &mut self,
        now: Time,
        from: SocketAddr,
        id: RequestId,
        header: &[u8; common::LEN],
        cookie: &Cookie,
        message: &[u8],
    ) {
        if let Some(entry) = self.entries.get_mut(&id) {
            self.counters.repeated += 1;
            // An initiator whose path is dead tries other addresses, so the answer goes there, too.
            match entry {
                Entry::AwaitingDecision(asked) => asked.heard.add_source(from),
                Entry::HalfOpen(offer) => {
                    offer.heard.add_source(from);
                    // Our Accept may be lost. It is repeated by the timer, or after half of the interval if the
                    // initiator repeats its request.
                    if now >= offer.backoff.half_due() {
                        let accept = offer.accept.clone();
                        offer.backoff.again(now);
                        self.send(from, accept);
                        self.find_next_timeout();
                    }
                }
                Entry::Completed { .. } => {}
            }
            return;
        }
        let Ok(mut noise) = Noise::new(Role::Responder, &self.key, header, cookie, &mut *self.random) else {
            self.counters.dropped += 1;
            return;
        };
        let Ok(payload) = noise.read(message) else {
            self.counters.unproven += 1;
            return;
        };
        match self.check_request(&payload, id.address) {
            Ok(hello) => {
                self.counters.requests += 1;
                self.events.push_back(ResponderEvent::Request { id, from, hello: hello.clone() });
                let until = now.saturating_add(self.config.handshake.timeout);
                let heard = SourceAddresses::at(from);
                self.entries
                    .insert(id, Entry::AwaitingDecision(Box::new(Asked { heard, noise, hello, until })));
                self.find_next_timeout();
            }
            Err(refusal) => self.refuse(SourceAddresses::at(from), id.attempt, refusal),
        }
    }

    /// Checks the conditions for which no decision of the application is needed, and counts the connection unless it
    /// is refused.
    fn check_request(&mut self, payload: &[u8], address: IpAddr) -> Result<Hello, Refusal> {
        let HelloMessage { hello, versions } =
            HelloMessage::decode(payload).map_err(|error| match error {
                HelloError::Option(option) => Refusal::Option { option },
                _ => Refusal::Malformed,
            })?;
        if best_common(&versions) != Some(VERSION) {
            return Err(Refusal::Downgrade);
        }
        self.admission.add_half_open(address)?;
        Ok(hello)
    }

    fn on_confirm(&mut self, now: Time, from: SocketAddr, id: RequestId, datagram: &[u8]) {
        match self.entries.get(&id) {
            Some(Entry::HalfOpen(offer)) if verify_mac(datagram, &offer.confirm_key) => {
                self.establish(now, from, id);
            }
            Some(Entry::Completed { .. }) => self.counters.repeated += 1,
            _ => self.counters.stray_confirms += 1,
        }
    }

    fn establish(&mut self, now: Time, from: SocketAddr, id: RequestId) {
        let Some(Entry::HalfOpen(offer)) = self.entries.remove(&id) else { return };
        self.offered.remove(&offer.session.local_id());
        self.admission.promote(id.address);
        self.store_completed(now, id);
        let round_trip = offer.backoff.round_trip(now);
        let Offer { session, agreed, peer, .. } = *offer;
        let established = Box::new(Established { session, agreed, peer, round_trip });
        self.events.push_back(ResponderEvent::Established { id, from, established });
        self.find_next_timeout();
    }

    /// Stores a completed attempt, because a replayed Initiate with a valid cookie would pass for a new one. If the
    /// oldest attempt is dropped before its cookie expires, requests with cookies of that age receive new cookies.
    fn store_completed(&mut self, now: Time, id: RequestId) {
        if self.completed_count >= self.config.limits.half_open.max(1) {
            let done = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::Completed { .. }));
            if let Some((until, oldest)) = done.map(|(id, entry)| (entry.due(), *id)).min() {
                self.remove(oldest);
                let lifetime_ps = self.config.cookie_lifetime.as_ps();
                self.cookies.set_forgotten_until(Time::from_ps(until.as_ps().saturating_sub(lifetime_ps)));
            }
        }
        let until = now.saturating_add(self.config.cookie_lifetime);
        self.entries.insert(id, Entry::Completed { until });
        self.completed_count += 1;
    }

    fn refuse(&mut self, heard: SourceAddresses, attempt: AttemptId, refusal: Refusal) {
        self.counters.refused += 1;
        let answer = emit_reject(attempt, refusal, &self.answer_key);
        heard.each().for_each(|to| self.send(to, answer.clone()));
    }

    /// Answers an address that may be forged, and never with more bytes than the request.
    fn answer_unproven(&mut self, to: SocketAddr, request: &[u8], answer: Vec<u8>) {
        if answer.len() <= request.len() {
            self.send(to, answer);
        } else {
            self.counters.dropped += 1;
        }
    }

    fn send(&mut self, to: SocketAddr, datagram: Vec<u8>) {
        if self.outbox.len() < MAX_OUTBOX {
            self.outbox.push_back((to, datagram));
        } else {
            self.counters.dropped += 1;
        }
    }

    fn find_next_timeout(&mut self) {
        self.next_timeout = self.entries.values().map(Entry::due).min();
    }
}
