//! What a connection is called, how it stands, and why it ended.

use std::fmt;

/// Number of a connection: slot in the low bits, generation in the high ones. It is also the session id and the host
/// number by which the loop knows the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u32);

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ConnectionState {
    /// The peer has not agreed yet.
    Opening,
    /// Work can be posted.
    Open,
    /// Over: closed by either end, or failed. Completions of everything posted have been made.
    Closed,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseReason {
    /// This end closed it.
    Local,
    /// The peer closed it.
    Peer,
    /// It failed: the completion that was not flushed says why.
    Failed,
    /// The peer did not answer for as long as is allowed.
    PeerSilent,
    /// The device was closed.
    DeviceClosed,
    /// It was open when the device's time had to begin anew, which it must after 200 days without a moment without
    /// connections. Open another.
    ClockRenewed,
    /// A bug in this library struck in its work: please report what the log says of it. Other connections go on.
    Internal,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloseReason::Local => "this end has closed it",
            CloseReason::Peer => "the peer has closed it",
            CloseReason::Failed => "it has failed, and its first unsuccessful completion says why",
            CloseReason::PeerSilent => "the peer did not answer for as long as is allowed",
            CloseReason::DeviceClosed => "its device was closed",
            CloseReason::ClockRenewed => "its device's time had to begin anew, which it does after 200 days",
            CloseReason::Internal => "a bug in this library struck in its work",
        })
    }
}
