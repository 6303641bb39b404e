//! Registered memory: opened to peers, closed, and withdrawn from peers that do not stop using it.

use pathweave_tagged::{self as tagged, Region, RegionEvents};
use smallvec::smallvec;

use super::core::{Closing, EndpointState};
use crate::abi::errno::{FI_EINVAL, FI_ENOKEY};
use crate::abi::fabric::*;
use crate::guard::{Errno, FiResult};
use crate::object::domain::Mr;

impl EndpointState {
    /// Opens registered memory to peers.
    ///
    /// # Errors
    ///
    /// Returns FI_ENOKEY if the key is in use, and FI_EINVAL for memory that ends beyond the last address.
    pub(super) fn open_region(&mut self, mr: &Mr) -> FiResult {
        let access = match (mr.access & FI_REMOTE_READ != 0, mr.access & FI_REMOTE_WRITE != 0) {
            (true, true) => tagged::Access::ReadWrite,
            (true, false) => tagged::Access::Read,
            (false, true) => tagged::Access::Write,
            // The memory is for this endpoint only.
            (false, false) => return Ok(()),
        };
        if self.regions.contains_key(&mr.key) {
            return Ok(());
        }
        let wanted = self.reporter.counters.iter().fold(0, |all, bound| all | bound.flags);
        let events = match (wanted & FI_REMOTE_READ != 0, wanted & FI_REMOTE_WRITE != 0) {
            _ if self.caps & FI_RMA_EVENT != 0 => RegionEvents::All,
            (true, true) => RegionEvents::All,
            (true, false) => RegionEvents::Reads,
            (false, true) => RegionEvents::Writes,
            (false, false) => RegionEvents::None,
        };
        let piece = self.buffers.add(smallvec![mr.span]);
        let region = Region { key: mr.key, base: mr.base, piece, access, events };
        match self.engine.open_region(region) {
            Ok(id) => {
                self.regions.insert(mr.key, (id, piece.buffer));
                Ok(())
            }
            Err(error) => {
                self.buffers.forget(piece.buffer);
                let in_use = error == tagged::PostError::KeyInUse;
                Err(Errno(if in_use { FI_ENOKEY } else { FI_EINVAL }))
            }
        }
    }

    /// Starts to close memory, or returns the close in progress.
    pub(super) fn close_region(&mut self, key: u64) -> Option<Closing> {
        let Some((region, buffer)) = self.regions.remove(&key) else {
            return self.closing.get(&key).copied();
        };
        self.engine.close_region(region, &mut self.buffers);
        self.run_actions();
        let closing = Closing { key, region, buffer };
        self.closing.insert(key, closing);
        Some(closing)
    }

    /// Returns true if a peer may still access the memory.
    pub(super) fn is_closing(&self, closing: Closing) -> bool {
        self.engine.is_closing(closing.region) || self.buffers.is_in_use(closing.buffer)
    }

    /// Returns true if all peers that may access the memory are on this host. Their accesses are rejected one
    /// by one, and they keep their connections.
    pub(super) fn is_closing_for_neighbours(&self, closing: Closing) -> bool {
        self.engine.closing_for(closing.region).all(|peer| self.lane_of(peer).is_some())
    }

    /// Withdraws the memory from peers that still use it.
    pub(super) fn withdraw_region(&mut self, closing: Closing) {
        if let Some((rkey, peers)) = self.engine.withdraw_region(closing.region, &mut self.buffers) {
            peers.into_iter().for_each(|peer| self.withdraw(peer, rkey));
        }
        self.run_actions();
    }

    pub(super) fn forget_region(&mut self, closing: Closing) {
        self.closing.remove(&closing.key);
        self.buffers.forget(closing.buffer);
    }
}
