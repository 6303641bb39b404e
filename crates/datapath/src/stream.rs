//! Queue of events of several connections, from the loop to the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;

use crate::completion::Completion;
use crate::error::ConnectError;
use crate::shared::{ConnectionShared, Side};

/// Event on its way to the application.
pub(crate) enum QueuedEvent {
    /// A request or a receive has completed.
    Completed { completion: Completion, side: Side, connection: Arc<ConnectionShared> },
    /// A connection is open, whichever end has opened it.
    Opened(Arc<ConnectionShared>),
    /// A connection that this end has requested could not be opened.
    Refused(Arc<ConnectionShared>),
    /// A connection has ended.
    Closed(Arc<ConnectionShared>),
    /// No packet accesses a region any more.
    Released { token: u64 },
}

/// Queue of events in the order of their occurrence. It owns connections, while the shared part of a connection does
/// not own it. Events that nobody takes are thus dropped with the queue.
#[derive(Default)]
pub(crate) struct EventQueue {
    news: SegQueue<QueuedEvent>,
    abandoned: AtomicBool,
}

impl EventQueue {
    #[inline]
    pub(crate) fn push(&self, news: QueuedEvent) {
        self.news.push(news);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<QueuedEvent> {
        self.news.pop()
    }

    /// Stops delivery, since nobody takes events any more. Returns the open connections that nobody has taken.
    pub(crate) fn abandon(&self) -> impl Iterator<Item = Arc<ConnectionShared>> {
        self.abandoned.store(true, Ordering::Relaxed);
        // Either this call sees the connection that the loop has pushed, or the loop sees the flag, which it checks
        // after the push.
        fence(Ordering::SeqCst);
        std::iter::from_fn(|| self.news.pop()).filter_map(|news| match news {
            QueuedEvent::Opened(connection) => Some(connection),
            QueuedEvent::Completed { .. }
            | QueuedEvent::Refused(_)
            | QueuedEvent::Closed(_)
            | QueuedEvent::Released { .. } => None,
        })
    }

    /// Queues an open connection. Returns false if nobody can take it any more; the caller then closes it.
    pub(crate) fn hand_over(&self, connection: Arc<ConnectionShared>) -> bool {
        self.news.push(QueuedEvent::Opened(connection));
        fence(Ordering::SeqCst);
        !self.abandoned.load(Ordering::Relaxed)
    }
}

/// Fails an attempt to connect and notifies the application once. A peer that has confirmed learns it from its
/// handshake.
pub(crate) fn refuse(connection: &Arc<ConnectionShared>, stream: Option<&EventQueue>, error: ConnectError) {
    let first = connection.refused.set(error).is_ok();
    connection.close();
    if let Some(stream) = stream.filter(|_| first && connection.token.is_some()) {
        stream.push(QueuedEvent::Refused(connection.clone()));
    }
}
