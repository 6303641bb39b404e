//! The memory that two processes share: a page of words, and a ring for each direction.
#![allow(unsafe_code, reason = "maps memory that another process writes")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of a ring. Small, so that it stays in the caches; it holds one message of the longest kind at least.
pub(crate) const RING_BYTES: usize = 128 << 10;
const WORDS_BYTES: usize = 4096;
/// Bytes that two processes share.
pub const SEGMENT_BYTES: usize = WORDS_BYTES + 2 * RING_BYTES;
/// Where messages begin: at cache lines.
pub(crate) const LINE: u64 = 64;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Made the memory and handed it over.
    Offerer,
    /// Was handed it.
    Taker,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        match self {
            Side::Offerer => Side::Taker,
            Side::Taker => Side::Offerer,
        }
    }
}

/// On lines of its own: what one process writes often does not slow down what the other reads.
#[repr(C, align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// What one side says of itself.
#[repr(C)]
pub(crate) struct Words {
    /// Bytes of the ring to this side that it has taken, ever.
    pub(crate) taken: Apart<AtomicU64>,
    /// What it is to be rung for, as it does not look itself ([`MAIL`], [`ROOM`]).
    pub(crate) asleep: Apart<AtomicU32>,
    /// Where a number of this side's lies in its memory, and the number: whether the other can read it. 0: not yet known.
    pub(crate) probe_address: Apart<AtomicU64>,
    pub(crate) probe_number: AtomicU64,
    /// Not 0: it closes its end. Who is killed does not say so.
    pub(crate) leaves: AtomicU32,
    /// [`READS`] if this side can read the other's memory; 0: not yet known.
    pub(crate) reads: Apart<AtomicU32>,
    /// Count of memory that this side has withdrawn while the other may be reading it.
    pub(crate) withdrawals: AtomicU64,
}

/// In [`Words::asleep`]: something was sent.
pub(crate) const MAIL: u32 = 1;
/// A piece of memory was taken out of the ring to the other side, so that there is room for more.
pub(crate) const ROOM: u32 = 2;

/// In [`Words::reads`]: yes.
pub(crate) const READS: u32 = 1;
/// In [`Words::reads`]: no.
pub(crate) const READS_NOT: u32 = 2;

const _: () = assert!(2 * size_of::<Words>() <= WORDS_BYTES);

/// The mapping.
pub(crate) struct Segment {
    start: NonNull<u8>,
}

// SAFETY: the memory is only reached through atomics, and copied from and to by the one owner of each end of a ring.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// New memory, and the descriptor by which another process maps it.
    pub(crate) fn create() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("pathweave", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, SEGMENT_BYTES as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Segment::map(&file)?, file))
    }

    /// Memory that another process has made.
    pub(crate) fn open(file: &OwnedFd) -> io::Result<Self> {
        // Memory that could shrink would be a SIGBUS.
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        if !sealed || fstat(file)?.st_size != SEGMENT_BYTES as i64 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Segment::map(file)
    }

    fn map(file: &OwnedFd) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel likes; the file cannot become shorter.
        let start = unsafe { mmap(null_mut(), SEGMENT_BYTES, access, MapFlags::SHARED, file.as_fd(), 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Segment { start })
    }

    /// What a side says of itself.
    pub(crate) fn words(&self, side: Side) -> &Words {
        let at = if side == Side::Offerer { 0 } else { size_of::<Words>() };
        // SAFETY: within the first page, aligned as that is a multiple of the alignment; all fields are atomics, for which any
        // bytes are a value.
        unsafe { &*self.start.as_ptr().add(at).cast::<Words>() }
    }

    fn ring(&self, to: Side) -> *mut u8 {
        let at = WORDS_BYTES + if to == Side::Offerer { 0 } else { RING_BYTES };
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// The word with which a line of a ring begins; positions count on for ever.
    pub(crate) fn line(&self, to: Side, position: u64) -> &AtomicU64 {
        let at = (position % RING_BYTES as u64 / LINE * LINE) as usize;
        // SAFETY: within the ring, at a line, so aligned; any bytes are a value.
        unsafe { &*self.ring(to).add(at).cast::<AtomicU64>() }
    }

    /// Copies bytes into a ring, around its end if need be.
    #[inline]
    pub(crate) fn put(&self, to: Side, position: u64, bytes: &[u8]) {
        let at = (position % RING_BYTES as u64) as usize;
        assert!(bytes.len() <= RING_BYTES);
        let (first, rest) = bytes.split_at(bytes.len().min(RING_BYTES - at));
        // SAFETY: both parts lie within the ring. The other process reads them after it has seen their message's first word; one
        // that does so earlier reads rubbish and harms itself.
        unsafe {
            first.as_ptr().copy_to(self.ring(to).add(at), first.len());
            // A copy of nothing is a call all the same.
            if !rest.is_empty() {
                rest.as_ptr().copy_to(self.ring(to), rest.len());
            }
        }
    }

    /// Copies bytes out of a ring.
    ///
    /// # Safety
    /// `len` bytes from `into` on may be written.
    #[inline]
    pub(crate) unsafe fn get(&self, to: Side, position: u64, into: *mut u8, len: usize) {
        let at = (position % RING_BYTES as u64) as usize;
        assert!(len <= RING_BYTES);
        let first = len.min(RING_BYTES - at);
        // SAFETY: both parts lie within the ring. They change under the copy only if the other process breaks the rules; then they
        // are any bytes, as they may be anyhow. Where they go the caller vouches for.
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
        // SAFETY: mapped by `map`, and nobody refers to it any more. That it fails is no harm but a mapping left.
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
        here.put(Side::Taker, end, b"around the end");
        let get = |to, position| {
            let mut bytes = [0; 14];
            // SAFETY: the bytes above.
            unsafe { there.get(to, position, bytes.as_mut_ptr(), bytes.len()) };
            bytes
        };
        assert_eq!(&get(Side::Taker, end + 2 * RING_BYTES as u64), b"around the end");
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
