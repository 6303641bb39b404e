//! Containment of panics: a bug that strikes in the work of one connection ends that connection only.
//!
//! The loop does all work for a connection within [`Service::contain`](crate::event_loop::Service::contain): an
//! arrival, a timer, a request, a packet that leaves. Code that begins such work names the connection
//! ([`Endpoint::set_acting_qp`](pathweave_transport::Endpoint::set_acting_qp)). The endpoint does the same when it goes from one
//! queue pair to another. After a panic, the loop closes the connection at work and drops its state in the endpoint
//! without using it.

use super::Core;
use super::connection::Phase;
use crate::state::{CloseReason, ConnectionId};

impl Core {
    /// Marks the following work as that of this connection.
    #[inline]
    pub(super) fn set_current_connection(&mut self, id: ConnectionId) {
        self.endpoint.set_acting_qp(self.connections.get(id).map(|connection| connection.qp));
    }

    /// Closes the connection at work after a panic. Returns false if there is none.
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
        // Its posted requests and pending packets may not be touched again.
        self.acks.forget(host);
        self.surveys.retain(|other| *other != id);
        self.answers.retain(|other| *other != id);
        self.endpoint.discard_peer(host);
        let lingers = self
            .connections
            .get(id)
            .is_some_and(|connection| matches!(connection.phase, Phase::Lingering { .. }));
        if lingers {
            // The panic struck while the connection was lingering, so it is removed without a further Close.
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
