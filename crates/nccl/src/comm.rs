//! A connection as NCCL sees it: one end sends, the other one receives.

use std::sync::{Arc, Mutex, Weak};

use pathweave_datapath::{CloseReason, Completion, Connection, RegionError};

use crate::abi::{Fault, MAX_GROUPS, MAX_RECEIVES};
use crate::guard::{Outcome, info, lock};
use crate::lane::Lane;
use crate::link::Link;
use crate::memory::{Mr, Use};
use crate::notes::Sizes;
use crate::receive::{Receiver, Wanted};
use crate::send::{Message, Sender};

/// One end of a connection.
pub(crate) struct Comm {
    pub(crate) lane: Arc<Lane>,
    pub(crate) link: Link,
    end: End,
    /// Requests, as NCCL sees them.
    requests: Box<[Request]>,
}

/// Role of this end.
enum End {
    Sends(Mutex<Sender>),
    Receives(Box<Mutex<Receiver>>),
}

/// A request, whose address NCCL keeps. It exists as long as the connection.
pub(crate) struct Request {
    pub(crate) comm: Weak<Comm>,
    pub(crate) index: usize,
}

impl Comm {
    /// Creates the sending end, ready for notes of the peer.
    pub(crate) fn sends(lane: &Arc<Lane>, connection: Connection) -> Result<Arc<Self>, RegionError> {
        let end = End::Sends(Mutex::new(Sender::new()));
        let comm = Comm::new(lane, connection, end, MAX_GROUPS * MAX_RECEIVES)?;
        Sender::await_notes(&comm.link);
        Ok(comm)
    }

    /// Creates the receiving end, ready for messages of the peer.
    pub(crate) fn receives(lane: &Arc<Lane>, connection: Connection) -> Result<Arc<Self>, RegionError> {
        let end = End::Receives(Box::new(Mutex::new(Receiver::new())));
        let comm = Comm::new(lane, connection, end, MAX_GROUPS)?;
        Receiver::await_messages(&comm.link);
        Ok(comm)
    }

    fn new(
        lane: &Arc<Lane>,
        connection: Connection,
        end: End,
        requests: usize,
    ) -> Result<Arc<Self>, RegionError> {
        let link = Link::new(connection)?;
        Ok(Arc::new_cyclic(|comm| Comm {
            lane: lane.clone(),
            link,
            end,
            requests: (0..requests).map(|index| Request { comm: comm.clone(), index }).collect(),
        }))
    }

    /// Processes the completion of a request to the datapath. Called by the loop.
    pub(crate) fn completed(&self, done: &Completion) {
        match &self.end {
            End::Sends(sender) => lock(sender).completed(&self.link, done),
            End::Receives(receiver) => lock(receiver).completed(&self.link, done),
        }
    }

    /// Fails all requests, since the connection has ended. Called by the loop.
    pub(crate) fn lost(&self, reason: CloseReason) {
        if reason != CloseReason::Peer && reason != CloseReason::Local {
            info(format_args!(
                "the connection with {} has ended: {reason}",
                self.link.connection.peer_addr()
            ));
        }
        match &self.end {
            End::Sends(sender) => lock(sender).lose(Fault::Remote),
            End::Receives(receiver) => lock(receiver).lose(Fault::Remote),
        }
    }

    /// Registers memory.
    ///
    /// # Errors
    /// [`Fault`].
    ///
    /// # Safety
    /// The memory has `bytes` bytes until [`deregister`](Comm::deregister) returns.
    #[allow(unsafe_code, reason = "passes a promise of NCCL on")]
    pub(crate) unsafe fn register(&self, address: *mut u8, bytes: usize) -> Outcome<Mr> {
        let usage = match self.end {
            End::Sends(_) => Use::Sends,
            End::Receives(_) => Use::Receives,
        };
        // SAFETY: guaranteed by the caller.
        unsafe { Mr::open(&self.link.connection, usage, address, bytes) }
    }

    /// Takes memory back.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn deregister(&self, memory: Mr) -> Outcome {
        memory.close(&self.link.connection, &self.lane.device)
    }

    /// Starts to send a message. Returns `None` if the peer has not announced a receive for it.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn isend(&self, message: &Message<'_>) -> Outcome<Option<&Request>> {
        let End::Sends(sender) = &self.end else { return Err(Fault::Usage) };
        self.twice(|| {
            let started = lock(sender).start(&self.link, message)?;
            Ok(started.map(|index| &self.requests[index]))
        })
    }

    /// Announces a group of receives. Returns `None` if as many are in progress as are allowed.
    ///
    /// # Errors
    /// [`Fault`].
    pub(crate) fn irecv(&self, wanted: &[Wanted<'_>]) -> Outcome<Option<&Request>> {
        let End::Receives(receiver) = &self.end else { return Err(Fault::Usage) };
        self.twice(|| {
            let started = lock(receiver).start(&self.link, wanted)?;
            Ok(started.map(|index| &self.requests[index]))
        })
    }

    /// Returns the sizes of a request's messages once they are complete.
    ///
    /// # Errors
    /// The reason why the request has failed.
    pub(crate) fn test(&self, index: usize) -> Outcome<Option<Sizes>> {
        self.twice(|| match &self.end {
            End::Sends(sender) => lock(sender).test(index),
            End::Receives(receiver) => lock(receiver).test(index),
        })
    }

    /// Tries again after a turn of the loop, without the lock that its events need.
    fn twice<T>(&self, attempt: impl Fn() -> Outcome<Option<T>>) -> Outcome<Option<T>> {
        if let Some(result) = attempt()? {
            return Ok(Some(result));
        }
        self.lane.turn();
        attempt()
    }
}
