//! Another process: its connection, and what waits to be sent to it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pathweave_collective::{EAGER_BYTES, HEAD_BYTES};
use pathweave_datapath::{Connection, PostError, Region, RegionError, Remote, Slice};

use crate::neighbour::Neighbour;
use crate::record::Cookie;

/// Bytes of a place for a frame.
pub(crate) const PLACE_BYTES: usize = EAGER_BYTES + HEAD_BYTES;
/// Number of places for frames of a peer; one that finds none is sent again.
const PLACES: usize = 64;
/// Marks of request numbers, besides the number of a place or WRITE.
pub(crate) const IS_FRAME: u64 = 1 << 62;
pub(crate) const IS_WRITE: u64 = 1 << 63;
/// Requests that may be outstanding: fewer than a connection allows.
const MOST_OUTSTANDING: usize = 1_024;

/// State of a connection.
pub(crate) enum Link {
    /// Nothing needs it yet, or the other end dials.
    None,
    /// This end has asked for it, at that time first.
    Dialling(Instant),
    Open(Connection),
    Lost,
}

/// A request for a connection.
pub(crate) struct Request {
    pub(crate) number: u64,
    pub(crate) memory: Slice,
    /// Memory of the peer and immediate, of a WRITE.
    pub(crate) target: Option<(Remote, u32)>,
}

/// Another process.
pub(crate) struct Peer {
    pub(crate) cookie: Cookie,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) link: Link,
    /// The process, if its memory may be copied.
    pub(crate) neighbour: Option<Neighbour>,
    board: Option<Region>,
    waiting: VecDeque<Request>,
    outstanding: usize,
}

impl Peer {
    pub(crate) fn new(cookie: Cookie) -> Self {
        Peer {
            cookie,
            addresses: Vec::new(),
            link: Link::None,
            neighbour: None,
            board: None,
            waiting: VecDeque::new(),
            outstanding: 0,
        }
    }

    /// Takes a connection, and posts receives for the peer's frames.
    pub(crate) fn open(&mut self, connection: Connection) -> Result<(), RegionError> {
        let board = Region::zeroed(PLACES * PLACE_BYTES)?;
        for place in 0..PLACES {
            // It fails only if the connection has ended, of which an event tells.
            let _ =
                connection.recv(place as u64, board.slice(place * PLACE_BYTES..(place + 1) * PLACE_BYTES)?);
        }
        self.board = Some(board);
        self.link = Link::Open(connection);
        self.flush();
        Ok(())
    }

    /// Returns the bytes of a frame that has arrived.
    pub(crate) fn frame(&self, place: u64, bytes: u64) -> Option<Vec<u8>> {
        let start = place as usize * PLACE_BYTES;
        self.board.as_ref()?.to_vec(start..start + (bytes as usize).min(PLACE_BYTES)).ok()
    }

    /// Lets a place take the next frame.
    pub(crate) fn reuse(&self, place: u64) {
        let (Link::Open(connection), Some(board)) = (&self.link, &self.board) else { return };
        let start = place as usize * PLACE_BYTES;
        if let Ok(memory) = board.slice(start..start + PLACE_BYTES) {
            let _ = connection.recv(place, memory);
        }
    }

    /// Sends as soon as possible, in order.
    pub(crate) fn post(&mut self, request: Request) {
        if !matches!(self.link, Link::Lost) {
            self.waiting.push_back(request);
            self.flush();
        }
    }

    /// Takes note of the end of a request of this end.
    pub(crate) fn completed(&mut self) {
        self.outstanding -= 1;
        self.flush();
    }

    fn flush(&mut self) {
        let Link::Open(connection) = &self.link else { return };
        while self.outstanding < MOST_OUTSTANDING {
            let Some(next) = self.waiting.pop_front() else { return };
            let posted = match next.target {
                None => connection.send(next.number, next.memory.clone()),
                Some((remote, token)) => {
                    connection.write_imm(next.number, next.memory.clone(), remote, token)
                }
            };
            match posted {
                Ok(()) => self.outstanding += 1,
                Err(PostError::Full { .. }) => return self.waiting.push_front(next),
                // The connection has ended, of which an event tells.
                Err(_) => return,
            }
        }
    }

    /// Forgets what cannot be sent any more.
    pub(crate) fn lose(&mut self) {
        self.link = Link::Lost;
        self.waiting.clear();
        self.outstanding = 0;
        self.board = None;
    }

    /// Returns true if everything has been sent and acknowledged.
    pub(crate) fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.outstanding == 0
    }

    /// Returns true if a connection is being opened for longer than is allowed.
    pub(crate) fn is_late(&self, patience: Duration) -> bool {
        matches!(self.link, Link::Dialling(since) if since.elapsed() > patience)
    }
}
