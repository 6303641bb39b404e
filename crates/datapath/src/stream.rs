//! What happens on several connections, on its way to the application.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use crossbeam_queue::SegQueue;

use crate::completion::Completion;
use crate::error::ConnectError;
use crate::shared::{ConnectionShared, Side};

/// Something that has happened.
pub(crate) enum News {
    /// A request or a receive is done.
    Completed { completion: Completion, side: Side, connection: Arc<ConnectionShared> },
    /// A connection is open, whichever end has opened it.
    Opened(Arc<ConnectionShared>),
    /// One that this end wanted will not be.
    Refused(Arc<ConnectionShared>),
    /// It is over.
    Closed(Arc<ConnectionShared>),
    /// Nothing reads or writes a region any more.
    Released { token: u64 },
}

/// A queue of what has happened, in the order in which it did. It holds connections, and no connection's shared part holds it:
/// so what nobody takes goes with it.
#[derive(Default)]
pub(crate) struct Stream {
    news: SegQueue<News>,
    abandoned: AtomicBool,
}

impl Stream {
    #[inline]
    pub(crate) fn push(&self, news: News) {
        self.news.push(news);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<News> {
        self.news.pop()
    }

    /// Nobody will take anything from now on. Gives the connections that are open and that nobody has.
    pub(crate) fn abandon(&self) -> impl Iterator<Item = Arc<ConnectionShared>> {
        self.abandoned.store(true, Ordering::Relaxed);
        // Either this sees what the loop has pushed, or the loop, which looks after it has pushed, sees this.
        fence(Ordering::SeqCst);
        std::iter::from_fn(|| self.news.pop()).filter_map(|news| match news {
            News::Opened(connection) => Some(connection),
            News::Completed { .. } | News::Refused(_) | News::Closed(_) | News::Released { .. } => None,
        })
    }

    /// Hands over a connection that is open. False: nobody may take it, and it is to be closed.
    pub(crate) fn hand_over(&self, connection: Arc<ConnectionShared>) -> bool {
        self.news.push(News::Opened(connection));
        fence(Ordering::SeqCst);
        !self.abandoned.load(Ordering::Relaxed)
    }
}

/// The connection will not be. Who wanted it is told, once; a peer that did hears of it from its handshake.
pub(crate) fn refuse(connection: &Arc<ConnectionShared>, stream: Option<&Stream>, error: ConnectError) {
    let first = connection.refused.set(error).is_ok();
    connection.close();
    if let Some(stream) = stream.filter(|_| first && connection.token.is_some()) {
        stream.push(News::Refused(connection.clone()));
    }
}
