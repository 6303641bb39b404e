//! Memory mappings of the kernel.

#![allow(unsafe_code, reason = "mappings are memory behind a pointer; each block says why it is valid")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// Readable and writable mapping. It is unmapped on drop.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread. No references to its content are handed out here.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps memory filled with zeros.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: a new mapping at an address of the kernel's choice. It does not affect memory in use.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        Mapping::of(start, bytes)
    }

    /// Maps the memory of a descriptor at `offset`.
    pub(super) fn shared(descriptor: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: as above.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, descriptor, offset) }?;
        Mapping::of(start, bytes)
    }

    fn of(start: *mut c_void, bytes: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, bytes })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of `count` values of type `T` at `offset`.
    ///
    /// # Panics
    /// If they are not within the mapping, or not aligned for `T`.
    pub(super) fn address_of<T>(&self, offset: usize, count: usize) -> *mut T {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{count} values at {offset} of {} bytes",
            self.bytes
        );
        // SAFETY: the offset is within the mapping, as checked above.
        let place = unsafe { self.start.as_ptr().cast::<u8>().add(offset) };
        assert!(place.addr().is_multiple_of(align_of::<T>()), "aligned");
        place.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps this mapping only. The holder of an address in it also holds the mapping.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}
