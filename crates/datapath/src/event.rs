//! What the application learns of its connections, one thing after the other.

use crate::api::Connection;
use crate::completion::Completion;
use crate::error::ConnectError;
use crate::state::{CloseReason, ConnectionId};

/// Something that has happened on one of the connections that feed an [`Events`](crate::Events).
///
/// Of one connection they come in this order: [`Opened`](Event::Opened) or [`Accepted`](Event::Accepted), completions,
/// [`Closed`](Event::Closed).
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request or a receive is done.
    Completed(Completion),
    /// A connection that this end wanted is open.
    Opened {
        /// What the application calls the attempt.
        token: u64,
        /// The connection. Dropping it closes it.
        connection: Connection,
    },
    /// A connection that this end wanted will not be.
    Refused {
        /// What the application calls the attempt.
        token: u64,
        /// Why.
        error: Box<ConnectError>,
    },
    /// A peer has opened a connection. Dropping it closes it.
    Accepted(Connection),
    /// A connection is over, and all its completions have been taken: nothing more comes of it.
    Closed {
        /// Which.
        connection: ConnectionId,
        /// Why.
        reason: CloseReason,
    },
    /// A region is closed, and no packet reads or writes it any more ([`Events::release`](crate::Events::release)).
    Released {
        /// What the application calls this.
        token: u64,
    },
}
