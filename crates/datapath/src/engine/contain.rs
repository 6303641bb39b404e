//! A bug that strikes in the work of one connection costs that connection, and no other.
//!
//! What the loop does for a connection, it does within [`Service::contain`](crate::event_loop::Service::contain): an arrival, a
//! timer, a request, a packet that leaves. What begins such work says for which connection
//! ([`Endpoint::act_for`](pathweave_transport::Endpoint::act_for)), and the endpoint does so as it goes from one queue pair to
//! another. After a panic, the connection at work is closed, and what the endpoint has of it is dropped rather than used.

use super::Core;
use super::connection::Phase;
use crate::state::{CloseReason, ConnectionId};

impl Core {
    /// What follows is the work of this connection.
    #[inline]
    pub(super) fn act_for(&mut self, id: ConnectionId) {
        self.endpoint.act_for(self.connections.get(id).map(|connection| connection.qp));
    }

    /// A bug has struck: the connection at work is closed. False if none was.
    #[cold]
    pub(super) fn close_acting(&mut self, bug: &str) -> bool {
        let acting = self.endpoint.acting().and_then(|qp| self.connections.of_qp(qp));
        let Some((id, host)) = acting.map(|connection| (connection.id, connection.host())) else {
            return false;
        };
        log::error!(
            "connection {} of {} is closed: the loop has panicked in its work, which is a bug: {bug}",
            id.0,
            self.io.local,
        );
        // Nothing that it has posted or that is to be said for it may be touched again.
        self.acks.forget(host);
        self.surveys.retain(|other| *other != id);
        self.answers.retain(|other| *other != id);
        self.endpoint.discard_peer(host);
        let lingers = self
            .connections
            .get(id)
            .is_some_and(|connection| matches!(connection.phase, Phase::Lingering { .. }));
        if lingers {
            // Even to say goodbye is too much for it.
            self.remove(id);
        } else {
            self.close(id, CloseReason::Internal);
        }
        true
    }
}

#[cfg(test)]
#[path = "contain_test.rs"]
mod tests;
