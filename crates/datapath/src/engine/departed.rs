//! Removed connections to which a thread may still post. The thread reserved room before the end, and its request may
//! arrive after the connection has been removed.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::connection::Connection;
use crate::shared::ConnectionShared;
use crate::state::ConnectionId;
use crate::stream::EventQueue;

/// Smallest number of entries at which settled ones are swept out.
const FEW: usize = 16;

/// Removed connections some of whose completions the application has not taken.
#[derive(Default)]
pub(super) struct RemovedConnections {
    by_id: BTreeMap<ConnectionId, (Weak<ConnectionShared>, Option<Weak<EventQueue>>)>,
    /// Number of entries at which settled ones are swept out next.
    sweep_at: usize,
}

impl RemovedConnections {
    /// Records a connection that is being removed.
    pub(super) fn note(&mut self, connection: &Connection) {
        if connection.shared.is_settled() {
            return;
        }
        if self.by_id.len() >= self.sweep_at {
            let unsettled =
                |shared: &Weak<ConnectionShared>| shared.upgrade().is_some_and(|shared| !shared.is_settled());
            self.by_id.retain(|_, (shared, _)| unsettled(shared));
            self.sweep_at = (2 * self.by_id.len()).max(FEW);
        }
        let stream = connection.stream.as_ref().map(Arc::downgrade);
        self.by_id.insert(connection.id, (Arc::downgrade(&connection.shared), stream));
    }

    /// Returns the shared state of a removed connection, and its event stream.
    pub(super) fn get(&self, id: ConnectionId) -> Option<(Arc<ConnectionShared>, Option<Arc<EventQueue>>)> {
        let (shared, stream) = self.by_id.get(&id)?;
        Some((shared.upgrade()?, stream.as_ref().and_then(Weak::upgrade)))
    }
}
