//! Memory opened to peers.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use pathweave_transport::{Access, MemoryError};

use super::inner::Inner;
use crate::error::{DeregisterError, RegisterError};
use crate::region::Region;
use crate::secure::{OsRandom, SecureRandom};
use crate::shared::{Command, Reach, Release, lock};

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
    /// Hands the loop a region to be opened, under a key that is known at once.
    pub(super) fn open(
        inner: &Arc<Inner>,
        region: &Region,
        address: u64,
        access: Access,
        reach: Reach,
    ) -> Result<Self, RegisterError> {
        if address.checked_add(region.len() as u64).is_none() {
            return Err(MemoryError::OutOfRange.into());
        }
        if let Some(reason) = inner.shared.broken.get() {
            return Err(RegisterError::DeviceClosed(reason.clone()));
        }
        // New for each region, and from the system whatever the seed: peers see keys, and must not guess the next one.
        let mut secret = [0; 8];
        OsRandom.fill(&mut secret)?;
        let rkey = lock(&inner.keys).take(u64::from_ne_bytes(secret))?;
        inner.ask_for_later(Command::Register { rkey, region: region.all(), address, access, reach });
        Ok(Registration { inner: inner.clone(), region: region.clone(), rkey, address, open: true })
    }

    /// The device that it is of.
    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Gives up the handle: its key, which is to be closed.
    pub(super) fn leave(mut self) -> u64 {
        self.open = false;
        self.rkey
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
    /// [`DeregisterError`]: READs are being answered from it. Try again; or drop it, and it closes as soon as it can; or
    /// [release](crate::Events::release) it, and hear when.
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
            self.inner.ask(Command::Release(Release { rkey: self.rkey, tell: None }));
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
