//! Events of an application's connections.

use crate::api::Connection;
use crate::completion::Completion;
use crate::error::ConnectError;
use crate::state::{CloseReason, ConnectionId};

/// Event of one of the connections that feed an [`Events`](crate::Events).
///
/// The events of one connection come in this order: [`Opened`](Event::Opened) or [`Accepted`](Event::Accepted),
/// completions, [`Closed`](Event::Closed).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request or a receive has completed.
    Completed(Completion),
    /// A connection that this end has requested is open.
    Opened {
        /// Token of the attempt.
        token: u64,
        /// The connection. Dropping it closes it.
        connection: Connection,
    },
    /// A connection that this end has requested could not be opened.
    Refused {
        /// Token of the attempt.
        token: u64,
        /// Reason of the failure.
        error: Box<ConnectError>,
    },
    /// A peer has opened a connection. Dropping it closes it.
    Accepted(Connection),
    /// A connection has ended, and all its completions have been taken. It produces no further events.
    Closed {
        /// Identity of the connection.
        connection: ConnectionId,
        /// Reason of the end.
        reason: CloseReason,
    },
    /// A region is closed, and no packet accesses it any more ([`Events::release`](crate::Events::release)).
    Released {
        /// Token given with the release.
        token: u64,
    },
}
