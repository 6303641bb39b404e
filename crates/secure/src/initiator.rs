//! Initiator of a connection.

use aws_lc_rs::hmac;
use pathweave_units::{Duration, Time};

use super::hello::{Hello, HelloMessage};
use super::key::ClusterKey;
use super::key_schedule::Direction;
use super::layout::{COOKIE_LEN, VERSION, VERSIONS, initiate, message};
use super::message::{
    AttemptId, Cookie, CookiePrefix, Message, cookie_prefix, emit_confirm, emit_initiate, header, verify_mac,
};
use super::negotiate::agree;
use super::noise::{Ephemerals, Noise, OVERHEAD, Role};
use super::outcome::{Established, HandshakeError, KeyDifference, SetupError, check_setup};
use super::random::SecureRandom;
use super::session::{Rotation, Session, SessionConfig};
use super::timing::{Backoff, HandshakeConfig};

/// Largest number of Retries that an initiator answers at once between two timeouts. Further ones are answered by the
/// next retransmission.
const RETRIES_AT_ONCE: u32 = 4;

/// Result of a handshake for the initiator.
#[derive(Debug)]
pub enum InitiatorEvent {
    /// The connection is established.
    Established(Box<Established>),
    /// The handshake failed.
    Failed(HandshakeError),
}

/// Initiator of one connection.
///
/// It sends datagrams through [`poll_transmit`](Initiator::poll_transmit) and needs a call of
/// [`on_timer`](Initiator::on_timer) at [`poll_timeout`](Initiator::poll_timeout). Pass it the datagrams that
/// [`kind_of`](super::recipient_of) assigns to its attempt. After each call drain `poll_transmit` and `poll_event`. Each
/// retransmission may use another path: the responder identifies the initiator by its address, not by its port.
///
/// Keep the initiator after `Established` until the session has opened a packet. If the Confirm is lost, the
/// responder repeats its Accept, and the initiator repeats the Confirm.
pub struct Initiator {
    attempt: AttemptId,
    hello: Hello,
    answer_key: hmac::Key,
    config: HandshakeConfig,
    rotation: Rotation,
    started: Time,
    key: ClusterKey,
    ephemerals: Ephemerals,
    /// Latest cookie of the responder; zeros before the first.
    cookie: Cookie,
    /// Request that is retransmitted until it is answered.
    request: Vec<u8>,
    state: State,
    backoff: Backoff,
    sends: u32,
    retries: u32,
    retries_at_once: u32,
    /// Time of the first answer that was made with another key.
    wrong_key_at: Option<Time>,
    /// True if that answer was made with the publicly known key.
    peer_has_no_key: bool,
    round_trip: Option<Duration>,
    outbox: Option<Vec<u8>>,
    event: Option<InitiatorEvent>,
}

enum State {
    /// Requesting a cookie.
    RequestingCookie,
    /// Requesting the connection.
    RequestingConnection {
        noise: Noise,
        /// State of the previous request, which had another cookie. The responder may have accepted it although a
        /// later copy was answered with a Retry.
        previous_noise: Option<Noise>,
    },
    Established {
        accept: Vec<u8>,
        confirm: Vec<u8>,
    },
    Failed,
}

impl Initiator {
    /// Starts a handshake. The first message is ready to send. Frames to this end will carry `hello.session`.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the hello is invalid or protection lacks a key.
    pub fn new(
        now: Time,
        key: &ClusterKey,
        hello: Hello,
        config: HandshakeConfig,
        rotation: Rotation,
        random: &mut dyn SecureRandom,
    ) -> Result<Self, SetupError> {
        hello.validate()?;
        check_setup(hello.protection, key, &rotation)?;
        let mut attempt = AttemptId([0; 8]);
        random.fill(&mut attempt.0)?;
        let cookie = [0; COOKIE_LEN];
        let request = emit_initiate(&header(message::INITIATE, attempt), &cookie, &[]);
        let mut initiator = Initiator {
            attempt,
            hello,
            answer_key: key.answer_key(),
            config,
            rotation,
            started: now,
            key: key.clone(),
            ephemerals: Ephemerals::new(random)?,
            cookie,
            request,
            state: State::RequestingCookie,
            backoff: Backoff::start(now, &config),
            sends: 0,
            retries: 0,
            retries_at_once: 0,
            wrong_key_at: None,
            peer_has_no_key: false,
            round_trip: None,
            outbox: None,
            event: None,
        };
        initiator.send_request();
        Ok(initiator)
    }

    /// Returns the attempt that answers carry.
    pub fn attempt(&self) -> AttemptId {
        self.attempt
    }
    /// Returns the next datagram to send to the peer.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.take()
    }
    /// Returns the result of the handshake, once.
    pub fn poll_event(&mut self) -> Option<InitiatorEvent> {
        self.event.take()
    }
    /// Returns the time for [`on_timer`](Initiator::on_timer), or `None` after the handshake has ended.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            State::RequestingCookie | State::RequestingConnection { .. } => {
                Some(self.backoff.due().min(self.deadline()))
            }
            State::Established { .. } | State::Failed => None,
        }
    }

    /// Handles the timer: retransmits the request, or fails at the deadline.
    pub fn on_timer(&mut self, now: Time) {
        match self.state {
            State::RequestingCookie | State::RequestingConnection { .. } => {}
            State::Established { .. } | State::Failed => return,
        }
        if now >= self.deadline() {
            let error = match (self.wrong_key_at, self.retries) {
                (Some(_), _) => HandshakeError::WrongKey(self.key_difference()),
                (None, 0 | 1) => HandshakeError::NoAnswer { timeout: self.config.timeout, sends: self.sends },
                (None, retries) => HandshakeError::AddressNotAccepted { retries },
            };
            self.fail(error);
        } else if now >= self.backoff.due() {
            self.backoff.again(now);
            self.retries_at_once = 0;
            self.send_request();
        }
    }

    /// Handles a datagram from the peer, or from anyone who pretends to be the peer.
    pub fn handle(&mut self, now: Time, datagram: &[u8]) {
        let Ok((attempt, parsed)) = Message::parse(datagram) else { return };
        if attempt != self.attempt {
            return;
        }
        match (&self.state, parsed) {
            (State::RequestingConnection { .. }, Message::Accept { noise }) => self.on_accept(now, noise),
            // The responder repeats its Accept, with the same bytes, because the Confirm was lost.
            (State::Established { accept, confirm }, Message::Accept { noise }) if accept == noise => {
                self.outbox = Some(confirm.clone());
            }
            (
                State::RequestingCookie | State::RequestingConnection { .. },
                answer @ (Message::Retry { .. } | Message::Reject { .. } | Message::Versions { .. }),
            ) => {
                if verify_mac(datagram, &self.answer_key) {
                    self.on_answer(now, answer);
                } else if self.wrong_key_at.is_none() {
                    let of_nobody = ClusterKey::public_key_for_insecure().answer_key();
                    self.peer_has_no_key = verify_mac(datagram, &of_nobody);
                    self.wrong_key_at = Some(now);
                }
            }
            _ => {}
        }
    }

    fn key_difference(&self) -> KeyDifference {
        let ours = self.key.fingerprint();
        match () {
            () if self.key.is_well_known() => KeyDifference::OursMissing,
            () if self.peer_has_no_key => KeyDifference::TheirsMissing { ours },
            () => KeyDifference::Another { ours },
        }
    }

    fn on_answer(&mut self, now: Time, answer: Message<'_>) {
        match answer {
            Message::Retry { refused, cookie } => self.on_retry(now, refused, cookie),
            Message::Reject { refusal } => self.fail(HandshakeError::Refused(refusal)),
            // A refusal of a version that its own list contains is not valid; it may be an old message.
            Message::Versions { list } if list.contains(&VERSION) => {}
            Message::Versions { list } => {
                self.fail(HandshakeError::Version { ours: VERSIONS.to_vec(), theirs: list.to_vec() });
            }
            _ => {}
        }
    }

    fn on_retry(&mut self, now: Time, refused: &CookiePrefix, cookie: &Cookie) {
        // A Retry for an earlier request is ignored: the present request is still in flight.
        if refused != cookie_prefix(&self.cookie) || self.retries_at_once >= RETRIES_AT_ONCE {
            return;
        }
        self.note_round_trip(now);
        self.cookie = *cookie;
        self.retries = self.retries.saturating_add(1);
        self.retries_at_once += 1;
        let header = header(message::INITIATE, self.attempt);
        // A new ephemeral key for each message: the messages differ, so their keys must differ, too.
        let Ok(mut noise) = Noise::new(Role::Initiator, &self.key, &header, cookie, &mut self.ephemerals)
        else {
            return;
        };
        let padded = initiate::MIN_LEN - initiate::NOISE - OVERHEAD;
        let said = HelloMessage::new(self.hello.clone()).encode(padded);
        self.request = emit_initiate(&header, cookie, &noise.write(&said));
        let before = match core::mem::replace(&mut self.state, State::RequestingCookie) {
            State::RequestingConnection { noise, .. } => Some(noise),
            _ => None,
        };
        self.state = State::RequestingConnection { noise, previous_noise: before };
        self.backoff = Backoff::start(now, &self.config);
        self.send_request();
    }

    fn on_accept(&mut self, now: Time, message: &[u8]) {
        let State::RequestingConnection { noise, previous_noise: before } =
            core::mem::replace(&mut self.state, State::Failed)
        else {
            return;
        };
        let (noise, payload) = match read_accept(noise, before, message) {
            Ok(read) => read,
            Err(state) => {
                self.state = state;
                self.wrong_key_at.get_or_insert(now);
                return;
            }
        };
        let theirs = match HelloMessage::decode(&payload) {
            Ok(theirs) => theirs,
            Err(error) => return self.fail(HandshakeError::Hello(error)),
        };
        if best_common(&theirs.versions) != Some(VERSION) {
            return self.fail(HandshakeError::Mismatch(super::Refusal::Downgrade));
        }
        let agreed = match agree(VERSION, &self.hello, &theirs.hello) {
            Ok(agreed) => agreed,
            Err(refusal) => return self.fail(HandshakeError::Mismatch(refusal)),
        };
        self.note_round_trip(now);
        let secrets = noise.derive_secrets(agreed.protection);
        let session = Session::new(
            &secrets,
            Direction::ToResponder,
            SessionConfig {
                protection: agreed.protection,
                local: self.hello.session,
                remote: theirs.hello.session,
                paths: agreed.paths,
                rotation: self.rotation,
            },
        );
        let confirm_key = hmac::Key::new(hmac::HMAC_SHA256, secrets.confirm_key());
        let confirm = emit_confirm(self.attempt, &confirm_key);
        self.outbox = Some(confirm.clone());
        self.state = State::Established { accept: message.to_vec(), confirm };
        self.event = Some(InitiatorEvent::Established(Box::new(Established {
            session,
            agreed,
            peer: theirs.hello,
            round_trip: self.round_trip,
        })));
    }

    fn note_round_trip(&mut self, now: Time) {
        if let Some(measured) = self.backoff.round_trip(now) {
            self.round_trip = Some(self.round_trip.map_or(measured, |known| known.min(measured)));
        }
    }

    fn send_request(&mut self) {
        self.sends = self.sends.saturating_add(1);
        self.outbox = Some(self.request.clone());
    }

    fn deadline(&self) -> Time {
        let timeout = self.started.saturating_add(self.config.timeout);
        match self.wrong_key_at {
            Some(doubted) => timeout.min(doubted.saturating_add(self.config.wrong_key_grace)),
            None => timeout,
        }
    }

    fn fail(&mut self, error: HandshakeError) {
        self.state = State::Failed;
        self.outbox = None;
        self.event = Some(InitiatorEvent::Failed(error));
    }
}

/// Reads an Accept with the state of the request that it answers. Returns the unchanged state if it answers neither.
fn read_accept(mut noise: Noise, before: Option<Noise>, message: &[u8]) -> Result<(Noise, Vec<u8>), State> {
    if let Ok(payload) = noise.read(message) {
        return Ok((noise, payload));
    }
    let Some(mut earlier) = before else {
        return Err(State::RequestingConnection { noise, previous_noise: before });
    };
    match earlier.read(message) {
        Ok(payload) => Ok((earlier, payload)),
        Err(_) => Err(State::RequestingConnection { noise, previous_noise: Some(earlier) }),
    }
}

/// Returns the best version that both this build and `theirs` support.
pub(super) fn best_common(theirs: &[u8]) -> Option<u8> {
    VERSIONS.iter().copied().find(|version| theirs.contains(version))
}
