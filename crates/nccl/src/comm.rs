//! A connection as NCCL sees it: one end sends, the other one receives.

use std::sync::{Arc, Mutex, Weak};

use pathweave_datapath::{CloseReason, Completion, Connection, Region, RegionError};

use crate::abi::{Fault, MAX_GROUPS, MAX_RECEIVES};
use crate::guard::{Outcome, info};
use crate::notes::MAX_NOTE_BYTES;
use crate::plugin::{Lane, lock};
use crate::receive::Receiver;
use crate::send::Sender;

/// Bytes of a place for a note.
pub(crate) const PLACE_BYTES: usize = 256;
/// Number of places for notes: twice the groups in progress, since the acknowledgement of a note may arrive after the
/// message that it asked for.
pub(crate) const PLACES: usize = 2 * MAX_GROUPS;
const _: () = assert!(MAX_NOTE_BYTES <= PLACE_BYTES);

/// One end of a connection.
pub(crate) struct Comm {
    pub(crate) lane: Arc<Lane>,
    pub(crate) connection: Connection,
    /// Places for notes.
    pub(crate) board: Region,
    pub(crate) end: End,
    /// Requests, as NCCL sees them.
    requests: Box<[Request]>,
}

/// Role of this end.
pub(crate) enum End {
    Sends(Mutex<Sender>),
    Receives(Mutex<Receiver>),
}

/// A request, whose address NCCL keeps. It exists as long as the connection.
pub(crate) struct Request {
    pub(crate) comm: Weak<Comm>,
    pub(crate) index: usize,
}

/// Result of a finished request: the bytes of each message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) count: usize,
    pub(crate) bytes: [usize; MAX_RECEIVES],
}

impl Comm {
    /// Creates the sending end, ready for notes of the peer.
    pub(crate) fn sends(lane: &Arc<Lane>, connection: Connection) -> Result<Arc<Self>, RegionError> {
        let end = End::Sends(Mutex::new(Sender::new()));
        let comm = Comm::new(lane, connection, end, MAX_GROUPS * MAX_RECEIVES)?;
        (0..PLACES).for_each(|place| comm.await_note(place));
        Ok(comm)
    }

    /// Creates the receiving end, ready for messages of the peer.
    pub(crate) fn receives(lane: &Arc<Lane>, connection: Connection) -> Result<Arc<Self>, RegionError> {
        let end = End::Receives(Mutex::new(Receiver::new()));
        let comm = Comm::new(lane, connection, end, MAX_GROUPS)?;
        // One for each message that can be announced, and some that are not posted again yet.
        (0..(MAX_GROUPS + 4) * MAX_RECEIVES).for_each(|_| comm.await_message());
        Ok(comm)
    }

    fn new(
        lane: &Arc<Lane>,
        connection: Connection,
        end: End,
        requests: usize,
    ) -> Result<Arc<Self>, RegionError> {
        let board = Region::zeroed(PLACES * PLACE_BYTES)?;
        Ok(Arc::new_cyclic(|comm| Comm {
            lane: lane.clone(),
            connection,
            board,
            end,
            requests: (0..requests).map(|index| Request { comm: comm.clone(), index }).collect(),
        }))
    }

    pub(crate) fn request(&self, index: usize) -> &Request {
        &self.requests[index]
    }

    /// Processes the completion of a request to the datapath. Called by the loop.
    pub(crate) fn completed(&self, done: &Completion) {
        match &self.end {
            End::Sends(sender) => self.sender_completed(&mut lock(sender), done),
            End::Receives(receiver) => self.receiver_completed(&mut lock(receiver), done),
        }
    }

    /// Fails all requests, since the connection has ended. Called by the loop.
    pub(crate) fn lost(&self, reason: CloseReason) {
        if reason != CloseReason::Peer && reason != CloseReason::Local {
            info(format_args!("the connection with {} has ended: {reason}", self.connection.peer_addr()));
        }
        match &self.end {
            End::Sends(sender) => lock(sender).lose(Fault::Remote),
            End::Receives(receiver) => lock(receiver).lose(Fault::Remote),
        }
    }

    /// Ends the connection because the peer breaks the protocol.
    pub(crate) fn reject(&self, why: &str) {
        crate::guard::warn(format_args!("{}: {why}; the connection is closed", self.connection.peer_addr()));
        self.connection.close();
    }

    /// Returns true if the connection has ended.
    pub(crate) fn is_lost(&self) -> bool {
        match &self.end {
            End::Sends(sender) => lock(sender).lost.is_some(),
            End::Receives(receiver) => lock(receiver).lost.is_some(),
        }
    }

    /// Returns the sizes of a request's messages once they are complete.
    ///
    /// # Errors
    /// The reason why the request has failed.
    pub(crate) fn test(&self, index: usize) -> Outcome<Option<Sizes>> {
        let look = || match &self.end {
            End::Sends(sender) => lock(sender).test(index),
            End::Receives(receiver) => lock(receiver).test(index),
        };
        if let Some(sizes) = look()? {
            return Ok(Some(sizes));
        }
        self.lane.turn();
        look()
    }
}
