//! Rings shared with the kernel: one side adds entries, the other removes them, and neither waits for the other.

#![allow(unsafe_code, reason = "rings lie in memory shared with the kernel; each block says why it is valid")]

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use super::mapping::Mapping;

/// Ring of `T`. The producer and consumer numbers determine which side owns an entry. They only grow, and wrap
/// around.
#[derive(Debug)]
pub(super) struct Ring<T> {
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    mask: u32,
    /// Our own number, and the other side's number as last read.
    ours: u32,
    peer_index: u32,
    /// Mapping that holds the ring.
    _memory: Mapping,
}

// SAFETY: the pointers are into the mapping, which moves with the ring. All accesses through them need `&mut self` or
// are atomic.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `size` entries (a power of two) that a socket has at `page_offset`.
    fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page_offset: u64, size: u32) -> io::Result<Self> {
        let offset =
            |offset: u64| usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        let (entries, count) = (offset(at.desc)?, size as usize);
        let memory = Mapping::shared(socket, page_offset, entries + count * size_of::<T>())?;
        // Kernels before 5.4 have no flags.
        let flags = at.flags.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Ring {
            producer: memory.address_of::<AtomicU32>(offset(at.producer)?, 1),
            consumer: memory.address_of::<AtomicU32>(offset(at.consumer)?, 1),
            flags: memory.address_of::<AtomicU32>(offset(flags)?, 1),
            entries: memory.address_of::<T>(entries, count),
            mask: size - 1,
            ours: 0,
            peer_index: 0,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the address is within the mapping and aligned, and both sides use it as an atomic only.
        unsafe { &*self.producer }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.consumer }
    }

    /// Returns true if the kernel waits for a call before it continues.
    pub(super) fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { &*self.flags }.load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the mask keeps the index within the entries.
        unsafe { self.entries.add((number & self.mask) as usize) }
    }
}

/// Ring to which this process adds entries.
#[derive(Debug)]
pub(super) struct ProducerRing<T>(Ring<T>);

impl<T: Copy> ProducerRing<T> {
    /// Maps the ring; see [`Ring::map`].
    pub(super) fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page: u64, size: u32) -> io::Result<Self> {
        Ring::map(socket, at, page, size).map(ProducerRing)
    }

    /// Returns the number of free entries. Reads the other side's number only if fewer than `wanted` are known to be
    /// free.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let ProducerRing(ring) = self;
        let room = |ring: &Ring<T>| (ring.mask + 1).saturating_sub(ring.ours.wrapping_sub(ring.peer_index));
        if room(ring) < wanted {
            ring.peer_index = ring.consumer().load(Ordering::Acquire);
        }
        room(ring)
    }

    /// Adds an entry, which the kernel sees after [`publish`](ProducerRing::publish). Returns false without a free
    /// entry.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        let ProducerRing(ring) = self;
        // SAFETY: the entry is free, so the kernel has released it (acquired above) and does not read it before it is
        // published.
        unsafe { ring.entry(ring.ours).write(value) };
        ring.ours = ring.ours.wrapping_add(1);
        true
    }

    /// Publishes all added entries to the kernel.
    pub(super) fn publish(&self) {
        self.0.producer().store(self.0.ours, Ordering::Release);
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }
}

/// Ring from which this process removes entries.
#[derive(Debug)]
pub(super) struct ConsumerRing<T>(Ring<T>);

impl<T: Copy> ConsumerRing<T> {
    /// Maps the ring; see [`Ring::map`].
    pub(super) fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page: u64, size: u32) -> io::Result<Self> {
        Ring::map(socket, at, page, size).map(ConsumerRing)
    }

    /// Removes the next entry, if there is one. The kernel may reuse it after [`release`](ConsumerRing::release).
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let ConsumerRing(ring) = self;
        if ring.ours == ring.peer_index {
            ring.peer_index = ring.producer().load(Ordering::Acquire);
            if ring.ours == ring.peer_index {
                return None;
            }
        }
        // SAFETY: the kernel has published this entry (acquired above) and does not write to it before it is
        // released.
        let value = unsafe { ring.entry(ring.ours).read() };
        ring.ours = ring.ours.wrapping_add(1);
        Some(value)
    }

    /// Releases all removed entries to the kernel.
    pub(super) fn release(&self) {
        self.0.consumer().store(self.0.ours, Ordering::Release);
    }
}
