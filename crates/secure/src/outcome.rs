//! What a handshake ends in.

use pathweave_units::Duration;
use thiserror::Error;

use super::hello::{Hello, HelloError};
use super::negotiate::{Agreed, Refusal};
use super::random::RandomError;
use super::session::Session;

/// A connection both ends agreed on.
#[derive(Debug)]
pub struct Established {
    /// Protects the connection's packets.
    pub session: Session,
    /// What both ends agreed on.
    pub agreed: Agreed,
    /// What the other end says of itself.
    pub peer: Hello,
    /// A round trip of the handshake, with what both ends took to compute; `None` if a message was lost.
    pub round_trip: Option<Duration>,
}

/// Why an end cannot even start.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The hello is wrong.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// Protection without a secret protects nothing.
    #[error("protection is {0}, which needs a cluster key; without one only insecure is possible")]
    KeyNeeded(
        /// What is configured.
        super::Protection,
    ),
    /// When to change keys.
    #[error("{0}")]
    Rotation(
        /// Names field, value and range.
        String,
    ),
    /// No random bytes.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// No answer came in time.
    #[error("no answer within {timeout:?} to {sends} requests")]
    NoAnswer {
        /// How long it was tried.
        timeout: Duration,
        /// Requests sent.
        sends: u32,
    },
    /// It answers, but never lets us in.
    #[error(
        "the peer asks for proof of our address again and again ({retries} times); is it restarting, or our address changing?"
    )]
    Unreachable {
        /// How often it asked.
        retries: u32,
    },
    /// The peer that answers does not have our cluster key.
    #[error(
        "the peer answers with another cluster key than ours (fingerprint {ours}); all hosts of a cluster need the same"
    )]
    WrongKey {
        /// Fingerprint of our key.
        ours: String,
    },
    /// The peer does not speak our version.
    #[error("the peer speaks versions {theirs:?}, this build {ours:?}")]
    Version {
        /// What this build speaks.
        ours: Vec<u8>,
        /// What the peer speaks.
        theirs: Vec<u8>,
    },
    /// The peer refused.
    #[error("the peer refused: {0}")]
    Refused(
        /// Its reason.
        Refusal,
    ),
    /// The peer accepted, but what it says of itself does not go with what we asked for.
    #[error("what the peer accepted does not fit: {0}")]
    Mismatch(
        /// What does not fit.
        Refusal,
    ),
    /// The peer accepted with a hello that is not valid.
    #[error("the peer's hello: {0}")]
    Hello(
        /// What is wrong with it.
        HelloError,
    ),
}

/// What an initiator and a responder check before they start.
pub(super) fn check_setup(
    protection: super::Protection,
    key: &super::ClusterKey,
    rotation: &super::Rotation,
) -> Result<(), SetupError> {
    if protection != super::Protection::Insecure && key.is_well_known() {
        return Err(SetupError::KeyNeeded(protection));
    }
    rotation.validate().map_err(SetupError::Rotation)
}
