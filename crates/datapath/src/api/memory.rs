//! Memory that peers can access.

use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;

use pathweave_transport::{Access, MemoryError};

use super::inner::Inner;
use crate::error::{DeregisterError, RegisterError};
use crate::region::Region;
use crate::secure::{OsRandom, SecureRandom};
use crate::shared::{AccessScope, Command, Release, lock};

/// Memory of a peer as a request names it: an address and its key. The peer's application must transfer both, for
/// example in a SEND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address within the peer's registered region.
    pub address: u64,
    /// Key of the region.
    pub rkey: u64,
}

/// A region that peers can access, until [`Registration::close`] or drop: the peers of a device's connections, those
/// of a protection domain, or one peer.
pub struct Registration {
    inner: Arc<Inner>,
    region: Region,
    rkey: u64,
    address: u64,
    open: bool,
}

impl Registration {
    /// Passes a region to the loop, under a key that is known at once.
    pub(super) fn open(
        inner: &Arc<Inner>,
        region: &Region,
        address: u64,
        access: Access,
        reach: AccessScope,
    ) -> Result<Self, RegisterError> {
        if address.checked_add(region.len() as u64).is_none() {
            return Err(MemoryError::OutOfRange.into());
        }
        if let Some(reason) = inner.shared.broken.get() {
            return Err(RegisterError::DeviceClosed(reason.clone()));
        }
        // Each key is new, and comes from the system whatever the seed: peers see keys, and must not be able to guess
        // the next one.
        let mut secret = [0; 8];
        OsRandom.fill(&mut secret)?;
        let rkey = lock(&inner.keys).allocate(u64::from_ne_bytes(secret))?;
        inner.ask_for_later(Command::Register { rkey, region: region.all(), address, access, reach });
        Ok(Registration { inner: inner.clone(), region: region.clone(), rkey, address, open: true })
    }

    /// Returns the device to which the registration belongs.
    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// Consumes the handle and returns the key, which the caller must close.
    pub(super) fn leave(mut self) -> u64 {
        self.open = false;
        self.rkey
    }

    /// Returns the key for peers: 64 bits, 40 of them random and new with each registration. It grants the given
    /// access to any peer for which the region is open.
    pub fn rkey(&self) -> u64 {
        self.rkey
    }

    /// Returns the address of the region's first byte, for peers.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the address and key of the byte at `offset` of the region, for peers.
    pub fn remote(&self, offset: u64) -> Remote {
        Remote { address: self.address.wrapping_add(offset), rkey: self.rkey }
    }

    /// Returns the region.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Closes the region to peers. When this returns, no packet writes to it any more.
    ///
    /// # Errors
    /// [`DeregisterError`] if READs are being answered from it. Try again. Alternatively drop the registration, which
    /// closes it as soon as possible, or [release](crate::Events::release) it to get an event.
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
