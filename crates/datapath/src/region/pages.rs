//! Large memory of its own pages, huge ones where there are any.
//!
//! With pages of 4 KiB a message of 1 MiB touches 256 of them, each of which must be found in page tables (in a virtual
//! machine in two) once there are more than a processor remembers: some 2,000. A huge page is 512 of them.
#![allow(unsafe_code, reason = "mappings are raw memory")]

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes of a huge page on most machines.
pub(super) const HUGE_BYTES: usize = 2 << 20;

/// Pages that are given back with this value.
pub(super) struct Pages {
    mapping: *mut c_void,
    mapped_bytes: usize,
    start: NonNull<u8>,
}

impl Pages {
    /// At least `len` zero bytes, which begin where a huge page does. `None`: the system has not so much.
    pub(super) fn zeroed(len: usize) -> Option<Self> {
        let bytes = len.checked_next_multiple_of(HUGE_BYTES)?;
        let mapped_bytes = bytes.checked_add(HUGE_BYTES)?;
        // SAFETY: a new mapping, wherever the system puts it.
        let mapping = unsafe {
            mmap_anonymous(null_mut(), mapped_bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .ok()?;
        let skip = (mapping as usize).wrapping_neg() % HUGE_BYTES;
        // SAFETY: `skip` is less than a huge page, by which the mapping is longer than `bytes`.
        let start = unsafe { mapping.cast::<u8>().add(skip) };
        // SAFETY: within the mapping, and no more than a hint. Where it is refused pages are of the usual size.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxHugepage) };
        let pages = Pages { mapping, mapped_bytes, start: NonNull::new(start)? };
        // Now rather than when a packet arrives for it, as an adapter has it, too; and where there is no memory, an answer
        // in place of a signal. Before Linux 5.14 pages come one by one.
        // SAFETY: as above; what is written is what is there.
        match unsafe { madvise(start.cast(), bytes, Advice::LinuxPopulateWrite) } {
            Err(Errno::NOMEM) => None,
            _ => Some(pages),
        }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in `zeroed`, and nobody has a pointer to it any more: a region's memory lives as long as it.
        let _ = unsafe { munmap(self.mapping, self.mapped_bytes) };
    }
}
