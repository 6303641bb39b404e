//! A connection for whose opening a thread or a task waits.

use std::sync::Arc;

use super::connection::Connection;
use super::inner::Inner;
use crate::error::ConnectError;
use crate::shared::{Command, ConnectionShared};
use crate::state::ConnectionState;

/// A connection that is being opened. The attempt is given up if this is dropped before its outcome is taken.
pub(crate) struct Opening {
    pub(super) inner: Arc<Inner>,
    /// Set until the outcome is taken.
    pub(super) connection: Option<Arc<ConnectionShared>>,
}

impl Opening {
    /// Returns the outcome of the attempt, once it is known.
    pub(crate) fn outcome(&mut self) -> Option<Result<Connection, ConnectError>> {
        let decided = |connection: &mut Arc<ConnectionShared>| connection.state() != ConnectionState::Opening;
        match self.connection.take_if(decided) {
            Some(connection) => Some(match connection.refused.get() {
                Some(error) => Err(error.clone()),
                None => Ok(Connection::new(self.inner.clone(), connection)),
            }),
            None => {
                let reason = self.inner.shared.broken.get()?;
                Some(Err(ConnectError::DeviceClosed(reason.clone())))
            }
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.inner.ask(Command::Close { connection });
        }
    }
}
