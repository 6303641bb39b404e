//! A connection: requests go in, futures come out.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pathweave_transport::{Access, Status};
use tokio::sync::oneshot;

use super::hub::{Hub, Router};
use crate::api;
use crate::api::Remote;
use crate::completion::Completion;
use crate::error::{PostError, RegisterError};
use crate::region::{Region, RegionError, Slice};
use crate::shared::ConnectionInfo;
use crate::state::{CloseReason, ConnectionState};
use crate::stats::ConnectionStats;

/// Reason why a request has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The request could not be posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The request has completed with an error status.
    #[error("it ended with {0:?}")]
    Failed(Status),
    /// The connection has ended, and no completion follows.
    #[error("the connection is closed")]
    Closed,
}

/// A reliable connection with a peer; [`crate::Connection`] describes its requests. Dropping it closes the
/// connection, and no request completes after that.
pub struct Connection {
    connection: api::Connection,
    router: Arc<Router>,
}

impl Connection {
    pub(super) fn new(connection: api::Connection, hub: &Hub) -> Self {
        let router = Router::new(connection.shared().clone());
        hub.add(&router);
        Connection { connection, router }
    }

    /// Returns the parameters on which both ends have agreed.
    pub fn info(&self) -> &ConnectionInfo {
        self.connection.info()
    }

    /// Returns the peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.connection.peer_addr()
    }

    /// Returns the connection's statistics; `None` once it has ended and been removed. Blocks for a turn of the loop.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.connection.stats()
    }

    /// SEND: transfers the bytes into the peer's next receive. Posted by this call; the future resolves when the
    /// bytes have arrived.
    pub fn send(&self, from: Slice) -> Request {
        self.post(|connection, number| connection.send(number, from))
    }

    /// SEND with an immediate.
    pub fn send_imm(&self, from: Slice, imm: u32) -> Request {
        self.post(|connection, number| connection.send_imm(number, from, imm))
    }

    /// WRITE: transfers the bytes into the peer's memory.
    pub fn write(&self, from: Slice, to: Remote) -> Request {
        self.post(|connection, number| connection.write(number, from, to))
    }

    /// WRITE with an immediate, which consumes a receive of the peer.
    pub fn write_imm(&self, from: Slice, to: Remote, imm: u32) -> Request {
        self.post(|connection, number| connection.write_imm(number, from, to, imm))
    }

    /// READ: transfers bytes of the peer's memory into local memory.
    pub fn read(&self, into: Slice, from: Remote) -> Request {
        self.post(|connection, number| connection.read(number, into, from))
    }

    /// Returns a handle that posts requests behind a fence: each starts when every request posted before it is
    /// complete.
    pub fn fenced(&self) -> Fenced<'_> {
        Fenced(self)
    }

    /// Opens a region to this connection's peer alone; see [`crate::Connection::register`].
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<api::Registration, RegisterError> {
        self.connection.register(region, access)
    }

    fn post(&self, post: impl FnOnce(&api::Connection, u64) -> Result<(), PostError>) -> Request {
        let (number, told) = self.router.expect();
        Request(match post(&self.connection, number) {
            Ok(()) => Ok(told),
            Err(why) => {
                self.router.forget(number);
                Err(why)
            }
        })
    }

    /// RECV: posts a receive for one message of the peer; [`recv`](Connection::recv) returns it when it is filled.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn give(&self, room: Slice) -> Result<(), PostError> {
        let number = self.router.give(room.clone());
        self.connection.recv(number, room).inspect_err(|_| self.router.forget(number))
    }

    /// Waits for the next message, in the order of sending, and returns it. Needs a receive posted with
    /// [`give`](Connection::give). No message is lost if the future is dropped.
    ///
    /// # Errors
    /// [`RequestError::Failed`] for a receive that completed with an error, [`RequestError::Closed`] once there is
    /// none left.
    pub async fn recv(&self) -> Result<Received, RequestError> {
        loop {
            // Created before the checks, so that no later notification is missed.
            let stirred = self.router.stirred();
            // The state is read first, so that messages that arrived before the end are returned.
            let closed = self.connection.state() == ConnectionState::Closed;
            if let Some((memory, done)) = self.router.take_received() {
                let len = done.result().map_err(RequestError::Failed)?;
                return Ok(Received { memory, len, imm: done.imm });
            }
            if closed {
                return Err(RequestError::Closed);
            }
            stirred.await;
        }
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) -> CloseReason {
        loop {
            let stirred = self.router.stirred();
            if self.connection.state() == ConnectionState::Closed
                && let Some(reason) = self.connection.close_reason()
            {
                return reason;
            }
            stirred.await;
        }
    }

    /// Closes the connection and informs the peer. Outstanding requests complete as flushed.
    pub fn close(&self) {
        self.connection.close();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.connection.fmt(f)
    }
}

/// Posts requests that start only when every request posted before them is complete; see [`crate::Connection`].
pub struct Fenced<'a>(&'a Connection);

impl Fenced<'_> {
    /// Posts a SEND; see [`Connection::send`].
    pub fn send(&self, from: Slice) -> Request {
        self.0.post(|connection, number| connection.fenced().send(number, from))
    }

    /// Posts a SEND with an immediate; see [`Connection::send_imm`].
    pub fn send_imm(&self, from: Slice, imm: u32) -> Request {
        self.0.post(|connection, number| connection.fenced().send_imm(number, from, imm))
    }

    /// Posts a WRITE; see [`Connection::write`].
    pub fn write(&self, from: Slice, to: Remote) -> Request {
        self.0.post(|connection, number| connection.fenced().write(number, from, to))
    }

    /// Posts a WRITE with an immediate; see [`Connection::write_imm`].
    pub fn write_imm(&self, from: Slice, to: Remote, imm: u32) -> Request {
        self.0.post(|connection, number| connection.fenced().write_imm(number, from, to, imm))
    }

    /// Posts a READ; see [`Connection::read`].
    pub fn read(&self, into: Slice, from: Remote) -> Request {
        self.0.post(|connection, number| connection.fenced().read(number, into, from))
    }
}

/// A received message.
#[derive(Clone, Debug)]
pub struct Received {
    /// Memory of the receive; a WRITE with immediate does not change it.
    pub memory: Slice,
    /// Length of the message, in bytes.
    pub len: u64,
    /// Immediate of the message.
    pub imm: Option<u32>,
}

impl Received {
    /// Returns a copy of the message's bytes.
    ///
    /// # Errors
    /// [`RegionError`] if the message is longer than the receive: the bytes of a WRITE are elsewhere.
    pub fn to_vec(&self) -> Result<Vec<u8>, RegionError> {
        let (room, start, len) = (self.memory.len(), self.memory.offset(), self.len as usize);
        if len > room {
            return Err(RegionError::OutOfBounds { start: 0, end: len, len: room });
        }
        self.memory.region().to_vec(start..start + len)
    }
}

/// A request that has been posted. Dropping the future does not cancel the request.
#[derive(Debug)]
pub struct Request(Result<oneshot::Receiver<Completion>, PostError>);

impl Future for Request {
    type Output = Result<Completion, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = match &mut self.0 {
            Ok(told) => told,
            Err(why) => return Poll::Ready(Err((*why).into())),
        };
        Pin::new(told).poll(cx).map(|done| match done {
            Ok(done) if done.is_success() => Ok(done),
            Ok(done) => Err(RequestError::Failed(done.status)),
            Err(_) => Err(RequestError::Closed),
        })
    }
}
