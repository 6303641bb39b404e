//! Memory opened to peers.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use pathweave_transport::Access;

use super::inner::Inner;
use crate::error::{DeregisterError, RegisterError};
use crate::region::Region;
use crate::shared::{Command, Reach};

/// Memory of a peer, as a request names it: an address and the key to it. How the peer's application tells it is its
/// own affair; a SEND will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address within the peer's registered region.
    pub address: u64,
    /// The region's key.
    pub rkey: u64,
}

/// A region opened to the peers of a device's connections, of a protection domain's, or to one peer alone, until
/// [`Registration::close`] or drop.
pub struct Registration {
    inner: Arc<Inner>,
    region: Region,
    rkey: u64,
    address: u64,
    open: bool,
}

impl Registration {
    pub(super) fn open(
        inner: &Arc<Inner>,
        region: &Region,
        address: u64,
        access: Access,
        reach: Reach,
    ) -> Result<Self, RegisterError> {
        let answer = Arc::new(Mutex::new(None));
        let command =
            Command::Register { region: region.all(), address, access, reach, answer: answer.clone() };
        let rkey = inner.answer(command, &answer).map_err(RegisterError::DeviceClosed)??;
        Ok(Registration { inner: inner.clone(), region: region.clone(), rkey, address, open: true })
    }

    /// The key, for peers: 64 bits, 40 of them random and new with each registration. A peer that has it and is within its
    /// reach has the access that was given.
    pub fn rkey(&self) -> u64 {
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
