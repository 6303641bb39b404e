//! Large memory on its own pages, huge ones if available.
//!
//! With pages of 4 KiB a message of 1 MiB touches 256 of them. Each must be looked up in page tables (in a virtual
//! machine, in two) once there are more than the processor's TLB holds: some 2,000. A huge page covers 512 of them.
#![allow(unsafe_code, reason = "mappings are raw memory")]

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Size of a huge page on most machines, in bytes.
pub(super) const HUGE_BYTES: usize = 2 << 20;
/// Bytes that are populated at a time, which takes some 20 ms.
const STEP_BYTES: usize = 32 * HUGE_BYTES;

/// A mapping that is unmapped when dropped.
pub(super) struct Pages {
    mapping: *mut c_void,
    mapped_bytes: usize,
    start: NonNull<u8>,
}

impl Pages {
    /// Maps at least `len` zero bytes, aligned to a huge page. Calls `between` after each part of them. Returns `None`
    /// if the system has not enough memory.
    pub(super) fn zeroed(len: usize, mut between: impl FnMut()) -> Option<Self> {
        let bytes = len.checked_next_multiple_of(HUGE_BYTES)?;
        let mapped_bytes = bytes.checked_add(HUGE_BYTES)?;
        // SAFETY: a new mapping at an address that the system chooses.
        let mapping = unsafe {
            mmap_anonymous(null_mut(), mapped_bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .ok()?;
        let skip = (mapping as usize).wrapping_neg() % HUGE_BYTES;
        // SAFETY: `skip` is less than a huge page, by which the mapping is longer than `bytes`.
        let start = unsafe { mapping.cast::<u8>().add(skip) };
        // SAFETY: within the mapping, and only a hint. If it is refused, pages have the usual size.
        let _ = unsafe { madvise(start.cast(), bytes, Advice::LinuxHugepage) };
        let pages = Pages { mapping, mapped_bytes, start: NonNull::new(start)? };
        // Pages are populated now instead of when a packet arrives, as for an RDMA adapter. A lack of memory is then
        // reported as an error instead of a signal. Before Linux 5.14 pages are populated one by one on access.
        for from in (0..bytes).step_by(STEP_BYTES) {
            let step = STEP_BYTES.min(bytes - from);
            // SAFETY: as above; populating does not change the content.
            if unsafe { madvise(start.add(from).cast(), step, Advice::LinuxPopulateWrite) }
                == Err(Errno::NOMEM)
            {
                return None;
            }
            between();
        }
        Some(pages)
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in `zeroed`, and no pointer to it is left: the memory of a region lives as long as the
        // region.
        let _ = unsafe { munmap(self.mapping, self.mapped_bytes) };
    }
}
