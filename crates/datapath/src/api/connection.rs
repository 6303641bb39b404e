//! A connection: requests go in, completions come out.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pathweave_transport::{Access, MAX_MESSAGE_BYTES, Op};

use super::fenced::Fenced;
use super::inner::Inner;
use super::memory::{Registration, Remote};
use crate::completion::Completion;
use crate::error::{PostError, RegisterError, WaitError};
use crate::region::{Region, Slices};
use crate::shared::{AccessScope, Command, ConnectionInfo, ConnectionShared, Side, Start};
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::ConnectionStats;

/// A reliable connection with a peer, corresponding to a queue pair of the RDMA verbs.
///
/// A request's memory belongs to the network until its completion. It is a [slice](crate::Slice) of a region, or
/// [several](Slices) that the message fills or is gathered from. Methods may be called from any thread. Dropping a
/// connection closes it. Completions of a connection that was opened into an [`Events`](crate::Events) appear there
/// only; the methods here that look or wait for one find none.
///
/// # Order
///
/// Requests of one end start and complete in the order in which they were posted, and:
///
/// - The peer's receives are consumed in order by this end's SENDs and WRITEs with immediate. When one of them
///   completes at the peer, all WRITEs posted before it have been placed.
/// - WRITEs to the same bytes under the same key take effect in order: the bytes of the last one remain.
/// - A READ returns the bytes of WRITEs posted before it, under whatever key, and no bytes of WRITEs posted after it
///   under its own key.
///
/// Bytes within one message are placed in any order; only its completion, or that of a later message, guarantees that
/// all are there. To keep this over several paths, a WRITE that overlaps an outstanding WRITE or READ is held back
/// until that one is complete, at least a round trip, and so are the requests posted after it. To write to one place
/// repeatedly, use a ring of places.
///
/// The following are not ordered by themselves: WRITEs to the same memory under different keys, or after a READ of it
/// under a different key; a READ, and a later request that sends the bytes it returns; the requests of different
/// connections, and those of the two ends. For requests of one end, post the later one with
/// [`fenced`](Connection::fenced), or wait for the completion of the earlier one.
pub struct Connection {
    inner: Arc<Inner>,
    shared: Arc<ConnectionShared>,
    id: ConnectionId,
}

impl Connection {
    /// Returns true if the connection belongs to this device.
    pub(super) fn is_of(&self, device: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.inner, device)
    }

    pub(super) fn new(inner: Arc<Inner>, shared: Arc<ConnectionShared>) -> Self {
        let id = shared.id();
        Connection { inner, shared, id }
    }

    /// Returns the state shared with the loop.
    #[cfg(feature = "tokio")]
    pub(crate) fn shared(&self) -> &Arc<ConnectionShared> {
        &self.shared
    }

    /// Returns the connection's number, unique among the connections that a device has at a time; completions contain
    /// it.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the parameters on which both ends have agreed.
    pub fn info(&self) -> &ConnectionInfo {
        self.shared.info.get().expect("a connection is handed out once it is open")
    }

    /// Returns the peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.info().peer
    }

    /// Returns the present state.
    pub fn state(&self) -> ConnectionState {
        self.shared.state()
    }

    /// Returns the reason of the end, if the connection has ended.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared.reason.get().copied()
    }

    /// SEND: transfers the bytes into the peer's next receive.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send(&self, wr_id: u64, from: impl Into<Slices>) -> Result<(), PostError> {
        self.post(wr_id, Op::Send, from.into(), Start::InTurn)
    }

    /// SEND with an immediate, which the peer gets in its completion.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send_imm(&self, wr_id: u64, from: impl Into<Slices>, imm: u32) -> Result<(), PostError> {
        self.post(wr_id, Op::SendImm { imm }, from.into(), Start::InTurn)
    }

    /// RECV: posts a receive for one message of the peer.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn recv(&self, wr_id: u64, into: impl Into<Slices>) -> Result<(), PostError> {
        let memory = into.into();
        self.check(&memory)?;
        self.shared.make_room(Side::Receive)?;
        self.inner.ask_for_later(Command::PostRecv { id: self.id, wr_id, memory });
        Ok(())
    }

    /// WRITE: transfers the bytes into the peer's memory, without an event at the peer.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn write(&self, wr_id: u64, from: impl Into<Slices>, to: Remote) -> Result<(), PostError> {
        let op = Op::Write { rkey: to.rkey, remote_addr: to.address };
        self.post(wr_id, op, from.into(), Start::InTurn)
    }

    /// WRITE with an immediate, which consumes a receive of the peer and appears in its completion.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn write_imm(
        &self,
        wr_id: u64,
        from: impl Into<Slices>,
        to: Remote,
        imm: u32,
    ) -> Result<(), PostError> {
        let op = Op::WriteImm { rkey: to.rkey, remote_addr: to.address, imm };
        self.post(wr_id, op, from.into(), Start::InTurn)
    }

    /// READ: transfers bytes of the peer's memory into local memory.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn read(&self, wr_id: u64, into: impl Into<Slices>, from: Remote) -> Result<(), PostError> {
        let op = Op::Read { rkey: from.rkey, remote_addr: from.address };
        self.post(wr_id, op, into.into(), Start::InTurn)
    }

    /// Returns a handle that posts requests behind a fence: each starts when every request posted before it is
    /// complete.
    pub fn fenced(&self) -> Fenced<'_> {
        Fenced(self)
    }

    /// Opens a region to this connection's peer alone; its first byte has address 0. The region closes with the
    /// connection, if not before. Like [`Device::register`](crate::Device::register), this does not wait for the
    /// loop.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<Registration, RegisterError> {
        self.register_at(region, 0, access)
    }

    /// Opens a region like [`register`](Connection::register), with its first byte at `address`.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register_at(
        &self,
        region: &Region,
        address: u64,
        access: Access,
    ) -> Result<Registration, RegisterError> {
        if self.shared.state() == ConnectionState::Closed {
            return Err(RegisterError::ConnectionClosed);
        }
        Registration::open(&self.inner, region, address, access, AccessScope::Connection(self.id))
    }

    /// Returns the next completion, if there is one. Drives the loop if callers do so.
    pub fn poll(&self) -> Option<Completion> {
        if let Some(completion) = self.take() {
            return Some(completion);
        }
        self.inner.nudge();
        self.take()
    }

    /// Returns the reason of the end once every completion has been taken, so that nothing more will come. For use in
    /// [`Device::wait_until`](super::Device::wait_until), which would wait for a closed connection until its timeout.
    pub fn ended(&self) -> Option<CloseReason> {
        self.shared.ended()
    }

    /// Returns the next completion, if there is one, without driving the loop: for use in
    /// [`Device::wait_until`](super::Device::wait_until).
    pub fn take(&self) -> Option<Completion> {
        let (side, completion) = self.shared.pop()?;
        self.inner.taken(&self.shared, side);
        Some(completion)
    }

    /// Waits for the next completion and returns it.
    ///
    /// # Errors
    /// [`WaitError`] if none has come within `timeout`, or if the device is closed; also at once if the connection
    /// has ended and all completions have been taken, with the reason.
    pub fn wait(&self, timeout: Duration) -> Result<Completion, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        let next = || match self.take() {
            Some(completion) => Some(Ok(completion)),
            None => self.shared.ended().map(Err),
        };
        match self.inner.wait(deadline, next) {
            Ok(Some(Ok(completion))) => Ok(completion),
            Ok(Some(Err(reason))) => Err(WaitError::ConnectionClosed(reason)),
            Ok(None) => Err(WaitError::Timeout(timeout)),
            Err(reason) => Err(WaitError::DeviceClosed(reason)),
        }
    }

    /// Waits until the connection has ended.
    ///
    /// # Errors
    /// [`WaitError`] if it has not ended within `timeout`.
    pub fn wait_closed(&self, timeout: Duration) -> Result<CloseReason, WaitError> {
        let deadline = Instant::now().checked_add(timeout);
        let closed = || match self.shared.state() {
            ConnectionState::Closed => self.shared.reason.get().copied(),
            ConnectionState::Opening | ConnectionState::Open => None,
        };
        match self.inner.wait(deadline, closed) {
            Ok(Some(reason)) => Ok(reason),
            Ok(None) => Err(WaitError::Timeout(timeout)),
            Err(reason) => Err(WaitError::DeviceClosed(reason)),
        }
    }

    /// Returns the connection's statistics, path by path; `None` once it has ended and been removed.
    pub fn stats(&self) -> Option<ConnectionStats> {
        let answer = Arc::new(Mutex::new(None));
        let command = Command::Stats { id: self.id, answer: answer.clone() };
        self.inner.answer(command, &answer).ok().flatten()
    }

    /// Sends a probe on every path; the results appear in [`stats`](Connection::stats), path by path.
    pub fn probe_paths(&self) {
        self.inner.ask(Command::Probe { id: self.id });
    }

    /// Closes the connection and informs the peer. Outstanding requests complete as flushed. Wait for the completions
    /// you need first.
    pub fn close(&self) {
        self.inner.ask(Command::Close { connection: self.shared.clone() });
    }

    #[inline]
    pub(super) fn post(&self, wr_id: u64, op: Op, memory: Slices, start: Start) -> Result<(), PostError> {
        self.check(&memory)?;
        let len = memory.len() as u64;
        match op {
            Op::Write { remote_addr: address, .. }
            | Op::WriteImm { remote_addr: address, .. }
            | Op::Read { remote_addr: address, .. }
                if address.checked_add(len).is_none() =>
            {
                return Err(PostError::Address { address, len });
            }
            _ => {}
        }
        self.shared.make_room(Side::Send)?;
        self.inner.ask(Command::Post { id: self.id, wr_id, op, memory, start });
        Ok(())
    }

    #[inline]
    fn check(&self, memory: &Slices) -> Result<(), PostError> {
        if self.shared.state() == ConnectionState::Closed {
            return Err(PostError::Closed);
        }
        let len = memory.len() as u64;
        if len > MAX_MESSAGE_BYTES { Err(PostError::TooLong { len }) } else { Ok(()) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("state", &self.state())
            .field("info", &self.shared.info.get())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "connection_test.rs"]
mod tests;
