//! Results of a handshake.

use pathweave_units::Duration;
use thiserror::Error;

use super::hello::{Hello, HelloError};
use super::negotiate::{ConnectionParams, Refusal};
use super::random::RandomError;
use super::session::Session;

/// Connection on which both ends agreed.
#[derive(Debug)]
pub struct Established {
    /// Protection of the connection's packets.
    pub session: Session,
    /// Parameters on which both ends agreed.
    pub agreed: ConnectionParams,
    /// Hello of the other end.
    pub peer: Hello,
    /// Round-trip time of the handshake, including the computations of both ends. `None` if a message was lost.
    pub round_trip: Option<Duration>,
}

/// Reason why an end cannot start a handshake.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The hello is invalid.
    #[error(transparent)]
    Hello(#[from] HelloError),
    /// Protection requires a secret cluster key.
    #[error("protection is {0}, which needs a cluster key; without one only insecure is possible")]
    KeyNeeded(
        /// Protection that is configured.
        super::Protection,
    ),
    /// The limits for key rotation are invalid.
    #[error("{0}")]
    Rotation(
        /// Message with field, value and range.
        String,
    ),
    /// No random bytes are available.
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Difference between the cluster keys of two ends.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyDifference {
    /// This end has no key, and the peer has one.
    #[error("the peer has a cluster key, and this end has none")]
    OursMissing,
    /// The peer has no key, and this end has one.
    #[error("the peer has no cluster key, and this end has one (fingerprint {ours})")]
    TheirsMissing {
        /// Fingerprint of our key.
        ours: String,
    },
    /// Both ends have a key.
    #[error("the peer answers with another cluster key than ours (fingerprint {ours})")]
    Another {
        /// Fingerprint of our key.
        ours: String,
    },
}

/// Reason why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// No answer came in time.
    #[error("no answer within {timeout:?} to {sends} requests")]
    NoAnswer {
        /// Time after which the initiator gave up.
        timeout: Duration,
        /// Number of requests sent.
        sends: u32,
    },
    /// The peer answers, but never accepts the proof of address.
    #[error(
        "the peer requested proof of our address {retries} times; it may be restarting, or our address may \
         change"
    )]
    AddressNotAccepted {
        /// Number of Retries received.
        retries: u32,
    },
    /// The peer that answers does not have our cluster key.
    #[error("{0}; all hosts of a cluster need the same")]
    WrongKey(
        /// Keys of the two ends.
        KeyDifference,
    ),
    /// The peer does not support our version.
    #[error("the peer supports versions {theirs:?}, this build {ours:?}")]
    Version {
        /// Versions that this build supports.
        ours: Vec<u8>,
        /// Versions that the peer supports.
        theirs: Vec<u8>,
    },
    /// The peer refused.
    #[error("the peer refused: {0}")]
    Refused(
        /// Reason of the refusal.
        Refusal,
    ),
    /// The peer accepted, but its hello does not match the request.
    #[error("the peer's answer does not match the request: {0}")]
    Mismatch(
        /// Description of the mismatch.
        Refusal,
    ),
    /// The peer accepted with an invalid hello.
    #[error("the peer's hello: {0}")]
    Hello(
        /// Error in the hello.
        HelloError,
    ),
}

/// Checks that initiator and responder perform before they start.
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
