//! Errors that end a measurement.

use std::fmt;
use std::time::Duration;

use pathweave_datapath::rdm::RdmPostError;
use pathweave_datapath::{CloseReason, Opcode, PostError, RegionError, Status};

/// Reason why a measurement did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A request completed with an error.
    Request { opcode: Opcode, status: Status, reason: Option<CloseReason> },
    /// The peer has closed the connection.
    Closed,
    /// Nothing arrived from the peer for this long.
    Silent(Duration),
    /// The peer sent a message that violates the protocol.
    Nonsense(String),
    /// The peer refused the measurement.
    Refused(String),
    /// Local failure, for instance of memory or of the device.
    Own(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Request { opcode, status, reason } => {
                write!(f, "a {opcode:?} failed: {status:?}")?;
                match reason {
                    Some(CloseReason::PeerSilent) => f.write_str(" (the other end no longer answers)"),
                    Some(CloseReason::Peer) => f.write_str(" (the other end has closed the connection)"),
                    _ => Ok(()),
                }
            }
            Broken::Closed => f.write_str("the other end has closed the connection"),
            Broken::Silent(span) => write!(f, "nothing was heard for {span:?}"),
            Broken::Nonsense(what) => write!(f, "the other end does not speak as expected: {what}"),
            Broken::Refused(why) => write!(f, "the server refuses: {why}"),
            Broken::Own(what) => f.write_str(what),
        }
    }
}

impl From<PostError> for Broken {
    fn from(why: PostError) -> Self {
        match why {
            PostError::Closed => Broken::Closed,
            why => Broken::Own(why.to_string()),
        }
    }
}

impl From<RegionError> for Broken {
    fn from(why: RegionError) -> Self {
        Broken::Own(why.to_string())
    }
}

impl From<RdmPostError> for Broken {
    fn from(why: RdmPostError) -> Self {
        Broken::Own(why.to_string())
    }
}
