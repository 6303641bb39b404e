//! Rings shared with the kernel: one side puts entries in, the other takes them out, and neither waits for the other.

#![allow(unsafe_code, reason = "rings lie in memory shared with the kernel; each block says why it is valid")]

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use super::mapping::Mapping;

/// A ring of `T`. What is an entry of ours and what of the kernel's, producer and consumer say: numbers that only grow, and wrap.
#[derive(Debug)]
pub(super) struct Ring<T> {
    producer: *const AtomicU32,
    consumer: *const AtomicU32,
    flags: *const AtomicU32,
    entries: *mut T,
    mask: u32,
    /// Our own side's number, and the other's as far as it was looked at.
    ours: u32,
    theirs: u32,
    /// What the pointers are to.
    _memory: Mapping,
}

// SAFETY: the pointers are into the mapping, which moves with the ring, and all that is done through them takes `&mut self` or
// is atomic.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// The ring of `size` entries (a power of two) that a socket has at `page_offset`.
    fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page_offset: u64, size: u32) -> io::Result<Self> {
        let offset =
            |offset: u64| usize::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        let (entries, count) = (offset(at.desc)?, size as usize);
        let memory = Mapping::shared(socket, page_offset, entries + count * size_of::<T>())?;
        // A kernel before 5.4 has no flags, and always wants to be called.
        let flags = at.flags.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Ring {
            producer: memory.place::<AtomicU32>(offset(at.producer)?, 1),
            consumer: memory.place::<AtomicU32>(offset(at.consumer)?, 1),
            flags: memory.place::<AtomicU32>(offset(flags)?, 1),
            entries: memory.place::<T>(entries, count),
            mask: size - 1,
            ours: 0,
            theirs: 0,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: in the mapping, aligned, and only ever used as an atomic number by both sides.
        unsafe { &*self.producer }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { &*self.consumer }
    }

    /// Whether the kernel waits for a call before it goes on.
    pub(super) fn needs_wakeup(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { &*self.flags }.load(Ordering::Relaxed);
        flags & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the mask keeps within the entries.
        unsafe { self.entries.add((number & self.mask) as usize) }
    }
}

/// A ring into which this process puts entries.
#[derive(Debug)]
pub(super) struct Producing<T>(Ring<T>);

impl<T: Copy> Producing<T> {
    /// As [`Ring::map`].
    pub(super) fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page: u64, size: u32) -> io::Result<Self> {
        Ring::map(socket, at, page, size).map(Producing)
    }

    /// Entries there is room for, at least `wanted` if there are so many.
    pub(super) fn room(&mut self, wanted: u32) -> u32 {
        let Producing(ring) = self;
        let room = |ring: &Ring<T>| (ring.mask + 1).saturating_sub(ring.ours.wrapping_sub(ring.theirs));
        if room(ring) < wanted {
            ring.theirs = ring.consumer().load(Ordering::Acquire);
        }
        room(ring)
    }

    /// Puts an entry in, which the kernel sees once it is [`publish`](Producing::publish)ed. False: there is no room.
    #[inline]
    pub(super) fn push(&mut self, value: T) -> bool {
        if self.room(1) == 0 {
            return false;
        }
        let Producing(ring) = self;
        // SAFETY: there is room, so the kernel has let go of this entry (acquired above) and does not look before it is published.
        unsafe { ring.entry(ring.ours).write(value) };
        ring.ours = ring.ours.wrapping_add(1);
        true
    }

    /// Hands all that was put in to the kernel.
    pub(super) fn publish(&self) {
        self.0.producer().store(self.0.ours, Ordering::Release);
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }
}

/// A ring from which this process takes entries.
#[derive(Debug)]
pub(super) struct Consuming<T>(Ring<T>);

impl<T: Copy> Consuming<T> {
    /// As [`Ring::map`].
    pub(super) fn map(socket: BorrowedFd<'_>, at: &XdpRingOffset, page: u64, size: u32) -> io::Result<Self> {
        Ring::map(socket, at, page, size).map(Consuming)
    }

    /// Takes an entry out, if there is one. The kernel may use its place once it is [`release`](Consuming::release)d.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let Consuming(ring) = self;
        if ring.ours == ring.theirs {
            ring.theirs = ring.producer().load(Ordering::Acquire);
            if ring.ours == ring.theirs {
                return None;
            }
        }
        // SAFETY: the kernel has published this entry (acquired above) and does not touch it before it is released.
        let value = unsafe { ring.entry(ring.ours).read() };
        ring.ours = ring.ours.wrapping_add(1);
        Some(value)
    }

    /// Gives the places of all that was taken out back to the kernel.
    pub(super) fn release(&self) {
        self.0.consumer().store(self.0.ours, Ordering::Release);
    }
}
