//! Errors that end a measurement.

use std::fmt;
use std::time::Duration;

use pathweave_datapath::rdm::RdmPostError;
use pathweave_datapath::{CloseReason, Opcode, PostError, RegionError, Status};

/// Reason why a measurement did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MeasureError {
    /// A request completed with an error.
    Request { opcode: Opcode, status: Status, reason: Option<CloseReason> },
    /// The peer has closed the connection.
    Closed,
    /// Nothing arrived from the peer for this long.
    Timeout(Duration),
    /// The peer sent a message that violates the protocol.
    Protocol(String),
    /// The peer refused the measurement.
    Refused(String),
    /// Local failure, for instance of memory or of the device.
    Local(String),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::Request { opcode, status, reason } => {
                write!(f, "a {opcode:?} failed: {status:?}")?;
                match reason {
                    Some(CloseReason::PeerSilent) => f.write_str(" (the other end no longer answers)"),
                    Some(CloseReason::Peer) => f.write_str(" (the other end has closed the connection)"),
                    _ => Ok(()),
                }
            }
            MeasureError::Closed => f.write_str("the other end has closed the connection"),
            MeasureError::Timeout(span) => write!(f, "no packet arrived for {span:?}"),
            MeasureError::Protocol(what) => {
                write!(f, "the other end violates the protocol of measurements: {what}")
            }
            MeasureError::Refused(why) => write!(f, "the server refuses: {why}"),
            MeasureError::Local(what) => f.write_str(what),
        }
    }
}

impl From<PostError> for MeasureError {
    fn from(why: PostError) -> Self {
        match why {
            PostError::Closed => MeasureError::Closed,
            why => MeasureError::Local(why.to_string()),
        }
    }
}

impl From<RegionError> for MeasureError {
    fn from(why: RegionError) -> Self {
        MeasureError::Local(why.to_string())
    }
}

impl From<RdmPostError> for MeasureError {
    fn from(why: RdmPostError) -> Self {
        MeasureError::Local(why.to_string())
    }
}
