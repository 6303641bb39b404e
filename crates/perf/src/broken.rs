//! How a measurement can break.

use std::fmt;
use std::time::Duration;

use pathweave_datapath::rdm::RdmPostError;
use pathweave_datapath::{CloseReason, Opcode, PostError, RegionError, Status};

/// Why a measurement did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A request failed.
    Request { opcode: Opcode, status: Status, reason: Option<CloseReason> },
    /// The other end has closed the connection.
    Closed,
    /// Nothing was heard for too long.
    Silent(Duration),
    /// The other end says what does not make sense.
    Nonsense(String),
    /// The other end does not take part.
    Refused(String),
    /// This end's own memory or device.
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
