//! Connections that are gone, while somebody may be about to post to them: room was taken before the end, and the request comes
//! when the thread that posts gets on, which may be after the connection has been forgotten.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::connection::Connection;
use crate::shared::ConnectionShared;
use crate::state::ConnectionId;
use crate::stream::Stream;

/// Fewer are not looked through for those that are settled.
const FEW: usize = 16;

/// Connections that are gone and of which the application has not taken every completion.
#[derive(Default)]
pub(super) struct Departed {
    by_id: BTreeMap<ConnectionId, (Weak<ConnectionShared>, Option<Weak<Stream>>)>,
    /// When so many are here, those that are settled go.
    sweep_at: usize,
}

impl Departed {
    /// A connection is being forgotten.
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

    /// One of them, and where what happens on it is told.
    pub(super) fn get(&self, id: ConnectionId) -> Option<(Arc<ConnectionShared>, Option<Arc<Stream>>)> {
        let (shared, stream) = self.by_id.get(&id)?;
        Some((shared.upgrade()?, stream.as_ref().and_then(Weak::upgrade)))
    }
}
