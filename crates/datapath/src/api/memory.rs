//! Memory opened to peers.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use super::device::Inner;
use crate::error::DeregisterError;
use crate::region::Region;
use crate::shared::Command;

/// Memory of a peer, as a request names it: an address and the key to it. How the peer's application tells it is its
/// own affair; a SEND will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address within the peer's registered region.
    pub address: u64,
    /// The region's key.
    pub rkey: u32,
}

/// A region opened to the peers of all connections of a device, until [`Registration::close`] or drop.
pub struct Registration {
    pub(super) inner: Arc<Inner>,
    pub(super) region: Region,
    pub(super) rkey: u32,
    pub(super) address: u64,
    pub(super) open: bool,
}

impl Registration {
    /// The key, for peers.
    pub fn rkey(&self) -> u32 {
        self.rkey
    }

    /// Address of the region's first byte, for peers.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The byte at `offset` of the region, as peers name it.
    pub fn remote(&self, offset: u64) -> Remote {
        Remote { address: self.address.wrapping_add(offset), rkey: self.rkey }
    }

    /// The region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Closes the region to peers. When this returns, no packet writes to it any more.
    ///
    /// # Errors
    /// [`DeregisterError`]: READs are being answered from it. Try again; or drop it, and it closes as soon as it can.
    pub fn close(&mut self) -> Result<(), DeregisterError> {
        if !self.open {
            return Ok(());
        }
        let answer = Arc::new(Mutex::new(None));
        let command = Command::Deregister { rkey: self.rkey, answer: answer.clone() };
        self.inner.answer(command, &answer).map_err(DeregisterError::DeviceClosed)??;
        self.open = false;
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.open {
            self.inner.ask(Command::Release { rkey: self.rkey });
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("rkey", &self.rkey)
            .field("address", &self.address)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}
