//! Shared memory of two processes: a page of words, and a ring for each direction.
#![allow(unsafe_code, reason = "maps memory that another process writes")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Size of a ring in bytes. It is small enough to stay in the caches and holds at least one message of the largest
/// size.
pub(crate) const RING_BYTES: usize = 128 << 10;
const WORDS_BYTES: usize = 4096;
/// Size of the shared memory in bytes.
pub const SEGMENT_BYTES: usize = WORDS_BYTES + 2 * RING_BYTES;
/// Size of a cache line, at which messages start.
pub(crate) const LINE: u64 = 64;

/// One of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Process that created the memory and handed it over.
    Offerer,
    /// Process that received the memory.
    Accepter,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Side::Offerer => Side::Accepter,
            Side::Accepter => Side::Offerer,
        }
    }
}

/// Value with cache lines of its own, so that frequent writes of one process do not slow down reads of the other.
#[repr(C, align(128))]
pub(crate) struct CacheAligned<T>(pub(crate) T);

/// State that one side publishes.
#[repr(C)]
pub(crate) struct SideState {
    /// Total number of bytes that this side has taken from its ring.
    pub(crate) taken: CacheAligned<AtomicU64>,
    /// Events for which this side must be woken, because it sleeps ([`WAKE_ON_MESSAGE`], [`WAKE_ON_SPACE`]). 0 while it is awake.
    pub(crate) asleep: CacheAligned<AtomicU32>,
    /// Address of a random number in this side's memory, and the number, by which the peer finds out whether it can
    /// read it. The address is 0 until it is known.
    pub(crate) probe_address: CacheAligned<AtomicU64>,
    pub(crate) probe_number: AtomicU64,
    /// 1 after this side has announced that it closes its end. A killed process does not set it.
    pub(crate) closing: AtomicU32,
    /// [`READS`] or [`READS_NOT`]: this side can or cannot read the peer's memory. 0 until it is known.
    pub(crate) reads: CacheAligned<AtomicU32>,
    /// Number of withdrawals by this side of memory that the peer may have been reading.
    pub(crate) withdrawals: AtomicU64,
}

/// Flag in [`SideState::asleep`]: a message or note was sent.
pub(crate) const WAKE_ON_MESSAGE: u32 = 1;
/// Flag in [`SideState::asleep`]: the peer has taken a note out of its ring, so that there is space for more.
pub(crate) const WAKE_ON_SPACE: u32 = 2;

/// Value of [`SideState::reads`]: the side can read the peer's memory.
pub(crate) const READS: u32 = 1;
/// Value of [`SideState::reads`]: the side cannot read the peer's memory.
pub(crate) const READS_NOT: u32 = 2;

const _: () = assert!(2 * size_of::<SideState>() <= WORDS_BYTES);

/// Mapping of the shared memory.
pub(crate) struct Segment {
    start: NonNull<u8>,
}

// SAFETY: the memory is accessed through atomics only, and by copies from the single owner of each end of a ring.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Creates the memory. Returns its descriptor as well, with which another process maps it.
    pub(crate) fn create() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("pathweave", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, SEGMENT_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Segment::map(&file)?, file))
    }

    /// Maps memory that another process has created.
    pub(crate) fn open(file: &OwnedFd) -> io::Result<Self> {
        // An access to memory that has shrunk would raise SIGBUS.
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        if !sealed || fstat(file)?.st_size != SEGMENT_BYTES as i64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Segment::map(file)
    }

    fn map(file: &OwnedFd) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice. The file cannot shrink.
        let start = unsafe { mmap(null_mut(), SEGMENT_BYTES, access, MapFlags::SHARED, file.as_fd(), 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Segment { start })
    }

    /// Returns the state that a side publishes.
    pub(crate) fn words(&self, side: Side) -> &SideState {
        let at = if side == Side::Offerer { 0 } else { size_of::<SideState>() };
        // SAFETY: the address is within the first page and aligned, as its offset is a multiple of the alignment. All
        // fields are atomics, for which any bytes are valid.
        unsafe { &*self.start.as_ptr().add(at).cast::<SideState>() }
    }

    fn ring(&self, to: Side) -> *mut u8 {
        let at = WORDS_BYTES + if to == Side::Offerer { 0 } else { RING_BYTES };
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// Returns the first word of a ring's line. Positions grow without bound.
    pub(crate) fn line(&self, to: Side, position: u64) -> &AtomicU64 {
        let at = (position % RING_BYTES as u64 / LINE * LINE) as usize;
        // SAFETY: the address is within the ring, and aligned because it is the start of a line. Any bytes are valid.
        unsafe { &*self.ring(to).add(at).cast::<AtomicU64>() }
    }

    /// Copies bytes into a ring, with wrap-around.
    #[inline]
    pub(crate) fn put(&self, to: Side, position: u64, bytes: &[u8]) {
        let at = (position % RING_BYTES as u64) as usize;
        assert!(bytes.len() <= RING_BYTES);
        let (first, rest) = bytes.split_at(bytes.len().min(RING_BYTES - at));
        // SAFETY: both parts are within the ring. The peer reads them after it has seen the message's first word. A
        // peer that reads earlier gets arbitrary bytes and harms only itself.
        unsafe {
            first.as_ptr().copy_to(self.ring(to).add(at), first.len());
            // A copy of zero bytes would still cost a call.
            if !rest.is_empty() {
                rest.as_ptr().copy_to(self.ring(to), rest.len());
            }
        }
    }

    /// Copies bytes out of a ring, with wrap-around.
    ///
    /// # Safety
    /// `len` bytes from `into` on must be writable.
    #[inline]
    pub(crate) unsafe fn get(&self, to: Side, position: u64, into: *mut u8, len: usize) {
        let at = (position % RING_BYTES as u64) as usize;
        assert!(len <= RING_BYTES);
        let first = len.min(RING_BYTES - at);
        // SAFETY: both parts are within the ring. They change during the copy only if the peer violates the protocol,
        // and then are arbitrary bytes, which is possible anyway. The caller guarantees the destination.
        unsafe {
            into.copy_from(self.ring(to).add(at), first);
            if first < len {
                into.add(first).copy_from(self.ring(to), len - first);
            }
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped by `map`, and no reference to it remains. On failure only the mapping leaks.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), SEGMENT_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_see_what_either_writes() {
        let (here, file) = Segment::create().unwrap();
        let there = Segment::open(&file).unwrap();
        let end = RING_BYTES as u64 - 3;
        here.put(Side::Accepter, end, b"around the end");
        let get = |to, position| {
            let mut bytes = [0; 14];
            // SAFETY: the destination is the array above.
            unsafe { there.get(to, position, bytes.as_mut_ptr(), bytes.len()) };
            bytes
        };
        assert_eq!(&get(Side::Accepter, end + 2 * RING_BYTES as u64), b"around the end");
        assert_eq!(get(Side::Offerer, end), [0; 14], "the other ring");
    }

    #[test]
    fn memory_that_could_shrink_or_is_too_short_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("test", flags).unwrap();
        ftruncate(&file, SEGMENT_BYTES as u64).unwrap();
        assert!(Segment::open(&file).is_err(), "not sealed");
        let file = memfd_create("test", flags).unwrap();
        ftruncate(&file, SEGMENT_BYTES as u64 - 1).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert!(Segment::open(&file).is_err(), "too short");
    }
}
