//! Requests behind a fence.

use pathweave_transport::Op;

use super::connection::Connection;
use super::memory::Remote;
use crate::error::PostError;
use crate::region::Slices;
use crate::shared::Start;

/// Posts requests that start only when every request posted before them on the connection is complete. Requests
/// posted after one of them wait, too. [`Connection`] describes the order without a fence.
#[derive(Clone, Copy, Debug)]
pub struct Fenced<'a>(pub(super) &'a Connection);

impl Fenced<'_> {
    /// Posts a SEND; see [`Connection::send`].
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send(&self, wr_id: u64, from: impl Into<Slices>) -> Result<(), PostError> {
        self.0.post(wr_id, Op::Send, from.into(), Start::AfterAll)
    }

    /// Posts a SEND with an immediate; see [`Connection::send_imm`].
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn send_imm(&self, wr_id: u64, from: impl Into<Slices>, imm: u32) -> Result<(), PostError> {
        self.0.post(wr_id, Op::SendImm { imm }, from.into(), Start::AfterAll)
    }

    /// Posts a WRITE; see [`Connection::write`].
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn write(&self, wr_id: u64, from: impl Into<Slices>, to: Remote) -> Result<(), PostError> {
        let op = Op::Write { rkey: to.rkey, remote_addr: to.address };
        self.0.post(wr_id, op, from.into(), Start::AfterAll)
    }

    /// Posts a WRITE with an immediate; see [`Connection::write_imm`].
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
        self.0.post(wr_id, op, from.into(), Start::AfterAll)
    }

    /// Posts a READ; see [`Connection::read`].
    ///
    /// # Errors
    /// [`PostError`]; nothing was posted then.
    pub fn read(&self, wr_id: u64, into: impl Into<Slices>, from: Remote) -> Result<(), PostError> {
        let op = Op::Read { rkey: from.rkey, remote_addr: from.address };
        self.0.post(wr_id, op, into.into(), Start::AfterAll)
    }
}
