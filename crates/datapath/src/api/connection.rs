//! A connection: work goes in, completions come out.

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
use crate::shared::{Command, ConnectionInfo, ConnectionShared, Reach, Side, Start};
use crate::state::{CloseReason, ConnectionId, ConnectionState};
use crate::stats::ConnectionStats;

/// A reliable connection with a peer: the queue pair of the verbs.
///
/// A request's memory belongs to the network until its completion: a [slice](crate::Slice) of a region, or
/// [several](Slices) that the message fills, or is put together from. Methods may be called from any thread. Dropping a
/// connection closes it. Completions of one that was opened into an [`Events`](crate::Events) come there, and the methods here
/// that look or wait for one find none.
///
/// # Order
///
/// Requests of one end start and complete in the order in which they were posted, and:
///
/// - The peer's receives are consumed in order by this end's SENDs and WRITEs with immediate. When one of them completes at
///   the peer, all WRITEs posted before it have landed.
/// - WRITEs to the same bytes, named by the same key, take effect in order: what the last one wrote stays.
/// - A READ sees what WRITEs posted before it wrote, under whatever key, and nothing of what WRITEs posted behind it write
///   under its key.
///
/// Bytes within one message land in any order; only its completion, or that of one behind it, says that all are there.
/// To keep this over several paths, a WRITE that overlaps a WRITE or READ under way is held back until that is complete, a
/// round trip at least, and what is posted behind it waits as well. To write to one place again and again, use a ring
/// of places.
///
/// Not in order by themselves are: WRITEs to the same memory under different keys, or behind a READ of it under a different
/// key; a READ, and a request behind it that sends what the READ brings; the requests of different connections, and those of
/// the two ends. For requests of one end, post the later one with [`fenced`](Connection::fenced), or wait for the
/// completion of the earlier one.
pub struct Connection {
    inner: Arc<Inner>,
    shared: Arc<ConnectionShared>,
    id: ConnectionId,
}

impl Connection {
    /// Whether it is one of this device's.
    pub(super) fn is_of(&self, device: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.inner, device)
    }

    pub(super) fn new(inner: Arc<Inner>, shared: Arc<ConnectionShared>) -> Self {
        let id = shared.id();
        Connection { inner, shared, id }
    }

    /// What the loop and this end have in common.
    #[cfg(feature = "tokio")]
    pub(crate) fn shared(&self) -> &Arc<ConnectionShared> {
        &self.shared
    }

    /// Its number, unique among the connections a device has at a time; completions carry it.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// What the ends agreed on.
    pub fn info(&self) -> &ConnectionInfo {
        self.shared.info.get().expect("a connection is handed out once it is open")
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.info().peer
    }

    /// How far it has come.
    pub fn state(&self) -> ConnectionState {
        self.shared.state()
    }

    /// Why it is over, if it is.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared.reason.get().copied()
    }

    /// SEND: the bytes go to the peer's next receive.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send(&self, wr_id: u64, from: impl Into<Slices>) -> Result<(), PostError> {
        self.post(wr_id, Op::Send, from.into(), Start::InTurn)
    }

    /// SEND with an immediate, which the peer finds in its completion.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send_imm(&self, wr_id: u64, from: impl Into<Slices>, imm: u32) -> Result<(), PostError> {
        self.post(wr_id, Op::SendImm { imm }, from.into(), Start::InTurn)
    }

    /// RECV: room for one message of the peer.
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

    /// WRITE: the bytes go to the peer's memory, whose application is not told.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn write(&self, wr_id: u64, from: impl Into<Slices>, to: Remote) -> Result<(), PostError> {
        let op = Op::Write { rkey: to.rkey, remote_addr: to.address };
        self.post(wr_id, op, from.into(), Start::InTurn)
    }

    /// WRITE with an immediate, which consumes a receive of the peer and is found in its completion.
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

    /// READ: bytes of the peer's memory come here.
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn read(&self, wr_id: u64, into: impl Into<Slices>, from: Remote) -> Result<(), PostError> {
        let op = Op::Read { rkey: from.rkey, remote_addr: from.address };
        self.post(wr_id, op, into.into(), Start::InTurn)
    }

    /// Posts requests behind a fence: each starts when every request posted before it is complete.
    pub fn fenced(&self) -> Fenced<'_> {
        Fenced(self)
    }

    /// Opens a region to this connection's peer alone; its first byte has address 0. It is closed with the connection, if
    /// not before. As with [`Device::register`](crate::Device::register) nothing is waited for.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, region: &Region, access: Access) -> Result<Registration, RegisterError> {
        self.register_at(region, 0, access)
    }

    /// The same with its first byte under `address`.
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
        Registration::open(&self.inner, region, address, access, Reach::Connection(self.id))
    }

    /// The next completion, if there is one.
    pub fn poll(&self) -> Option<Completion> {
        if let Some(completion) = self.take() {
            return Some(completion);
        }
        self.inner.nudge();
        self.take()
    }

    /// Why nothing more comes: the connection is over, and every completion has been taken. For
    /// [`Device::wait_until`](super::Device::wait_until), which would wait for a connection that is over until its timeout.
    pub fn ended(&self) -> Option<CloseReason> {
        self.shared.ended()
    }

    /// The next completion, if there is one, without turning the loop: for [`Device::wait_until`](super::Device::wait_until).
    pub fn take(&self) -> Option<Completion> {
        let (side, completion) = self.shared.pop()?;
        self.inner.taken(&self.shared, side);
        Some(completion)
    }

    /// The next completion, waiting for it.
    ///
    /// # Errors
    /// [`WaitError`] when none has come within `timeout`, or the device is closed; and at once when the connection is
    /// over and all completions have been taken, with the reason.
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

    /// Waits until the connection is over.
    ///
    /// # Errors
    /// [`WaitError`] when it is not within `timeout`.
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

    /// What it has counted, path by path; `None` once it is over and forgotten.
    pub fn stats(&self) -> Option<ConnectionStats> {
        let answer = Arc::new(Mutex::new(None));
        let command = Command::Stats { id: self.id, answer: answer.clone() };
        self.inner.answer(command, &answer).ok().flatten()
    }

    /// Sends a probe on every path; what comes back is in [`stats`](Connection::stats), path by path.
    pub fn probe_paths(&self) {
        self.inner.ask(Command::Probe { id: self.id });
    }

    /// Closes it. What is posted and not done is completed as flushed; the peer is told. Wait for the completions of
    /// what matters first.
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
