//! A bug that strikes in the work of one connection costs that connection, and no other.
//!
//! What the loop does for a connection, it does within [`Core::contain`]: an arrival, a timer, a request, a packet that
//! leaves. Whoever begins such work says for whom ([`Endpoint::act_for`](pathweave_transport::Endpoint::act_for)), and the
//! endpoint does so as it goes from one queue pair to another. After a panic, the connection at work is closed, and what
//! the endpoint has of it is dropped rather than used. Where nobody was at work the bug is the loop's own, and the panic
//! goes on: the device closes, and says why.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Core;
use super::connection::Phase;
use crate::state::{CloseReason, ConnectionId};

impl Core {
    /// Does something in which each step is the work of one connection. `None` after a panic, which that connection has
    /// been closed for.
    // Costs what a call costs: nothing is set up for a panic that does not come.
    #[inline]
    pub(super) fn contain<T>(&mut self, work: impl FnOnce(&mut Core) -> T) -> Option<T> {
        self.endpoint.act_for(None);
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(value) => Some(value),
            Err(panic) => {
                self.panicked(panic);
                None
            }
        }
    }

    /// What follows is the work of this connection.
    #[inline]
    pub(super) fn act_for(&mut self, id: ConnectionId) {
        self.endpoint.act_for(self.connections.get(id).map(|connection| connection.qp));
    }

    #[cold]
    fn panicked(&mut self, panic: Box<dyn Any + Send>) {
        let acting = self.endpoint.acting().and_then(|qp| self.connections.of_qp(qp));
        let Some((id, host)) = acting.map(|connection| (connection.id, connection.host())) else {
            resume_unwind(panic)
        };
        self.counts.panics += 1;
        log::error!(
            "connection {} of {} is closed: the loop has panicked in its work, which is a bug: {}",
            id.0,
            self.local,
            message(&*panic)
        );
        // Nothing that it has posted or that is to be said for it may be touched again.
        self.acks.retain(|(to, _)| *to != host);
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
        self.settled = false;
        self.shared.signal.notify();
    }
}

/// What a panic says.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it does not say what")
}

#[cfg(test)]
#[path = "contain_test.rs"]
mod tests;
