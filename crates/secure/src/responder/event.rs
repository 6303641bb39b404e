//! Configuration, events and errors of a responder.

use core::net::{IpAddr, SocketAddr};

use pathweave_units::Duration;

use super::super::admission::Limits;
use super::super::hello::{Hello, SessionId};
use super::super::message::AttemptId;
use super::super::negotiate::Refusal;
use super::super::outcome::{Established, SetupError};
use super::super::session::Rotation;
use super::super::timing::HandshakeConfig;

/// Configuration of a responder.
#[derive(Clone, Copy, Debug)]
pub struct ResponderConfig {
    /// Timers of the handshake.
    pub handshake: HandshakeConfig,
    /// Limits for key rotation.
    pub rotation: Rotation,
    /// Limits on connections.
    pub limits: Limits,
    /// Lifetime of a cookie.
    pub cookie_lifetime: Duration,
}

impl Default for ResponderConfig {
    /// Returns the defaults: a cookie lifetime of 10 s, and the defaults of the other types.
    fn default() -> Self {
        ResponderConfig {
            handshake: HandshakeConfig::default(),
            rotation: Rotation::default(),
            limits: Limits::default(),
            cookie_lifetime: Duration::from_ms(10_000),
        }
    }
}

/// Identifier of a request until it is decided and completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    pub(super) address: IpAddr,
    pub(super) attempt: AttemptId,
}

impl RequestId {
    /// Returns the address of the initiator, under which the request is counted.
    pub fn address(self) -> IpAddr {
        self.address
    }
    /// Returns the attempt's identifier.
    pub fn attempt(self) -> AttemptId {
        self.attempt
    }
}

/// Event of a responder.
#[derive(Debug)]
pub enum ResponderEvent {
    /// A member of the cluster requests a connection from a proven address. Answer with
    /// [`Responder::accept`](super::Responder::accept) or [`Responder::decline`](super::Responder::decline).
    Request {
        /// Identifier for the answer.
        id: RequestId,
        /// Source of the request.
        from: SocketAddr,
        /// Hello of the initiator.
        hello: Hello,
    },
    /// An accepted connection is established: the initiator has confirmed it.
    Established {
        /// Request that the connection belongs to.
        id: RequestId,
        /// Address of the initiator: the source of its Confirm, or, if a packet came first, the source of the
        /// request.
        from: SocketAddr,
        /// Established connection.
        established: Box<Established>,
    },
    /// A request was not decided in time, or its initiator never confirmed. Anything reserved for it can be released.
    Abandoned {
        /// Abandoned request.
        id: RequestId,
        /// Session reserved for the request, if it was accepted.
        session: Option<SessionId>,
    },
}

/// Number of datagrams that a responder has handled, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounters {
    /// Not a handshake message, or one for an initiator.
    pub malformed: u64,
    /// In another version; answered with the supported versions.
    pub versions: u64,
    /// Without a valid cookie; answered with a new one.
    pub retries: u64,
    /// With a valid cookie, but made with another cluster key, or altered.
    pub unproven: u64,
    /// Authenticated, and refused with a reason.
    pub refused: u64,
    /// Authenticated, and passed to the application.
    pub requests: u64,
    /// For a request that is already known.
    pub repeated: u64,
    /// A Confirm that is not expected or not valid.
    pub stray_confirms: u64,
    /// Dropped, because too many answers wait to be sent or no random bytes are available.
    pub dropped: u64,
}

/// Reason why a request cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The request was already decided, or not in time.
    #[error("the request is no longer open")]
    RequestClosed,
    /// The two hellos do not match. The initiator has been informed.
    #[error("refused: {0}")]
    Refused(
        /// Reason of the refusal.
        Refusal,
    ),
    /// Our hello is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Another half-open connection uses the session number.
    #[error("session {0} is taken")]
    SessionTaken(
        /// Session number.
        SessionId,
    ),
}
