//! Memory from the kernel.

#![allow(unsafe_code, reason = "mappings are memory behind a pointer; each block says why it is valid")]

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping, readable and writable, until it is dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping is of the process, whichever thread holds it; nothing here hands out references to its content.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory of zeros.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: a new mapping wherever the kernel puts it; it touches no memory that is in use.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) }?;
        Mapping::of(start, bytes)
    }

    /// What a descriptor has at `offset`.
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

    /// The place of `count` values of type `T` at `offset`.
    ///
    /// # Panics
    /// They do not lie in the mapping, or not as `T` must be aligned.
    pub(super) fn place<T>(&self, offset: usize, count: usize) -> *mut T {
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        assert!(
            end.is_some_and(|end| end <= self.bytes),
            "{count} values at {offset} of {} bytes",
            self.bytes
        );
        // SAFETY: inside the mapping, as has just been checked.
        let place = unsafe { self.start.as_ptr().cast::<u8>().add(offset) };
        assert!(place.addr().is_multiple_of(align_of::<T>()), "aligned");
        place.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this mapping and no other; who holds places of it holds it, too.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}
