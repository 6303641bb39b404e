//! Identity of a connection, its state, and the reason of its end.

use std::fmt;

/// Number of a connection: slot in the low bits, generation in the high bits. It is also the session id, and the host
/// number by which the loop identifies the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u32);

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ConnectionState {
    /// The peer has not agreed yet.
    Opening,
    /// Work can be posted.
    Open,
    /// Closed by either end, or failed. Everything posted has completed.
    Closed,
}

/// Reason why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseReason {
    /// This end closed it.
    Local,
    /// The peer closed it.
    Peer,
    /// The connection failed: the first completion whose status is not `Flushed` has the cause.
    Failed,
    /// The peer did not answer within the configured timeout.
    PeerSilent,
    /// The device was closed.
    DeviceClosed,
    /// The connection was open when the device's clock had to be reset. A reset is due after 200 days without a
    /// moment without connections. Open another connection.
    ClockRenewed,
    /// A bug in this library caused a panic in the connection's work. Please report it with the log entry. Other
    /// connections continue.
    Internal,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::Local => "this end has closed it",
            CloseReason::Peer => "the peer has closed it",
            CloseReason::Failed => "it has failed; its first unsuccessful completion has the reason",
            CloseReason::PeerSilent => "the peer did not answer for as long as is allowed",
            CloseReason::DeviceClosed => "its device was closed",
            CloseReason::ClockRenewed => "its device's time had to begin anew, which it does after 200 days",
            CloseReason::Internal => "a bug in this library struck in its work",
        })
    }
}
