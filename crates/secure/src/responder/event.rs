//! What goes into a responder and comes out of it.

use core::net::{IpAddr, SocketAddr};

use pathweave_units::Duration;

use super::super::admission::Limits;
use super::super::hello::{Hello, SessionId};
use super::super::message::AttemptId;
use super::super::negotiate::Refusal;
use super::super::outcome::{Established, SetupError};
use super::super::session::Rotation;
use super::super::timing::HandshakeConfig;

/// What a responder is made from.
#[derive(Clone, Copy, Debug)]
pub struct ResponderConfig {
    /// Timers.
    pub handshake: HandshakeConfig,
    /// When keys change.
    pub rotation: Rotation,
    /// How many connections there may be.
    pub limits: Limits,
    /// How long a cookie is good for.
    pub cookie_lifetime: Duration,
}

impl Default for ResponderConfig {
    /// Cookies are good for 10 s; for the rest see there.
    fn default() -> Self {
        ResponderConfig {
            handshake: HandshakeConfig::default(),
            rotation: Rotation::default(),
            limits: Limits::default(),
            cookie_lifetime: Duration::from_ms(10_000),
        }
    }
}

/// Names a request until it is decided and through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    pub(super) address: IpAddr,
    pub(super) attempt: AttemptId,
}

impl RequestId {
    /// Where the request came from: what it is counted under.
    pub fn address(self) -> IpAddr {
        self.address
    }
    /// What its initiator calls the attempt.
    pub fn attempt(self) -> AttemptId {
        self.attempt
    }
}

/// What a responder has to tell.
#[derive(Debug)]
pub enum ResponderEvent {
    /// A member of the cluster asks for a connection, from an address that is proven. Answer with
    /// [`Responder::accept`](super::Responder::accept) or [`Responder::decline`](super::Responder::decline).
    Request {
        /// For the answer.
        id: RequestId,
        /// Where it came from.
        from: SocketAddr,
        /// What it says of itself.
        hello: Hello,
    },
    /// A connection that was accepted is there; the initiator has been heard again.
    Established {
        /// The request it came from.
        id: RequestId,
        /// Where the initiator is: where its Confirm came from; if a packet came first, where the request was heard.
        from: SocketAddr,
        /// The connection.
        established: Box<Established>,
    },
    /// A request was not decided in time, or the initiator was never heard again. What was reserved for it can go.
    Abandoned {
        /// The request.
        id: RequestId,
        /// The session it would have had, if it was accepted.
        session: Option<SessionId>,
    },
}

/// Datagrams a responder looked at, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounters {
    /// Not a handshake message, or one for an initiator.
    pub malformed: u64,
    /// In another version; answered with ours.
    pub versions: u64,
    /// Without a good cookie; answered with one.
    pub retries: u64,
    /// Good cookie, but not made with our cluster key, or altered.
    pub unproven: u64,
    /// Proven, and refused with a reason.
    pub refused: u64,
    /// Proven, and handed to the application.
    pub requests: u64,
    /// Of a request that is known already.
    pub repeated: u64,
    /// A Confirm that is not awaited, or that is not right.
    pub stray_confirms: u64,
    /// Dropped, because too many answers wait to be sent or there were no random bytes.
    pub dropped: u64,
}

/// Why a request cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// It was decided already, or not in time.
    #[error("the request is no longer open")]
    Gone,
    /// The two hellos do not go together; the initiator has been told.
    #[error("refused: {0}")]
    Refused(
        /// Why.
        Refusal,
    ),
    /// Our hello is wrong.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The session number is taken by another half-open connection.
    #[error("session {0} is taken")]
    SessionTaken(
        /// The number.
        SessionId,
    ),
}
