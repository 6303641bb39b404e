//! Memory of NCCL that messages leave from or arrive in.
#![allow(unsafe_code, reason = "lends memory of NCCL to the network")]

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use pathweave_datapath::{Access, Connection, Device, Region, Registration, Slice};

use crate::abi::Fault;
use crate::guard::{Outcome, lock, warn};

/// Longest time for which deregistering waits for the network to let go of memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// Use of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Messages leave from it.
    Sends,
    /// The peer writes messages into it.
    Receives,
}

/// Registered memory.
pub(crate) struct Mr {
    address: usize,
    region: Region,
    /// Registration for the peer, at the receiving end.
    open: Option<Mutex<Registration>>,
    /// Exists while anything in this process may read or write the memory.
    lent: Weak<()>,
}

impl Mr {
    /// Registers memory of a connection.
    ///
    /// # Errors
    /// [`Fault::Usage`] without an address, [`Fault::Remote`] if the connection has ended.
    ///
    /// # Safety
    /// The memory has `bytes` bytes until [`Mr::close`] returns.
    pub(crate) unsafe fn open(
        connection: &Connection,
        usage: Use,
        address: *mut u8,
        bytes: usize,
    ) -> Outcome<Self> {
        let start = match NonNull::new(address) {
            Some(start) => start,
            None if bytes == 0 => NonNull::dangling(),
            None => return Err(Fault::Usage),
        };
        let token = Arc::new(());
        let lent = Arc::downgrade(&token);
        // SAFETY: guaranteed by the caller. NCCL and its kernels look at the bytes while they change: machine code that
        // reads aligned words, as the memory of a network adapter is read.
        let region = unsafe { Region::from_raw(start, bytes, Box::new(token)) };
        let address = start.as_ptr() as usize;
        let open = match usage {
            Use::Sends => None,
            Use::Receives => {
                let opened = connection.register_at(&region.in_order(), address as u64, Access::WRITE);
                Some(Mutex::new(opened.map_err(|_| Fault::Remote)?))
            }
        };
        Ok(Mr { address, region, open, lent })
    }

    /// Returns the offset of bytes in the memory.
    fn offset(&self, address: usize, bytes: usize) -> Outcome<usize> {
        let offset = address.checked_sub(self.address).ok_or(Fault::Usage)?;
        let end = offset.checked_add(bytes).ok_or(Fault::Usage)?;
        if end <= self.region.len() { Ok(offset) } else { Err(Fault::Usage) }
    }

    /// Returns bytes of the memory, to be sent.
    pub(crate) fn slice(&self, address: usize, bytes: usize) -> Outcome<Slice> {
        let offset = self.offset(address, bytes)?;
        self.region.slice(offset..offset + bytes).map_err(|_| Fault::Usage)
    }

    /// Returns the key with which the peer writes these bytes.
    pub(crate) fn key(&self, address: usize, bytes: usize) -> Outcome<u64> {
        self.offset(address, bytes)?;
        self.open.as_ref().map(|open| lock(open).rkey()).ok_or(Fault::Usage)
    }

    /// Takes the memory back. When this returns, nothing reads or writes it any more. If messages are leaving from it,
    /// the connection ends: they might have to be sent again.
    ///
    /// # Errors
    /// [`Fault::Internal`] if the network has not let go of the memory.
    pub(crate) fn close(self, connection: &Connection, device: &Device) -> Outcome {
        let Mr { region, open, lent, .. } = self;
        if let Some(open) = open {
            let closed = lock(&open).close();
            if let Err(error) = closed {
                // Without a loop, nothing accesses the memory.
                warn(format_args!("memory is taken back from a connection that has ended: {error}"));
            }
            drop(open);
        }
        drop(region);
        if lent.strong_count() == 0 {
            return Ok(());
        }
        connection.close();
        let until = Instant::now() + PATIENCE;
        while lent.strong_count() > 0 {
            device.progress();
            if Instant::now() > until {
                warn("memory is taken back while messages are leaving from it, and the network keeps it");
                return Err(Fault::Internal);
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}
