//! Memory of the application, and access to its bytes.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::slice;

use libc::iovec;
use pathweave_datapath::{Region, Slice};
use pathweave_shm::{Reader, ShmChannel};
use smallvec::{SmallVec, smallvec};

use crate::abi::errno::FI_EINVAL;
use crate::getinfo::IOV_LIMIT;
use crate::guard::{FiResult, refused};

/// Contiguous bytes of the application. The application has promised to keep them in place, and not to use
/// them while an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    len: usize,
}

/// Spans of an operation; nearly all operations have one.
pub(crate) type Spans = SmallVec<[Span; 1]>;

impl Span {
    /// Makes a span.
    ///
    /// # Errors
    ///
    /// Returns FI_EINVAL for bytes at NULL, or beyond the end of memory.
    ///
    /// # Safety
    ///
    /// The bytes stay valid until the operation that uses them is done, and only the operation uses them
    /// meanwhile.
    pub(crate) unsafe fn new(start: *const c_void, len: usize) -> FiResult<Self> {
        let start = start as usize;
        let sound =
            len == 0 || (start != 0 && start.checked_add(len).is_some() && isize::try_from(len).is_ok());
        if sound {
            Ok(Span { start, len })
        } else {
            Err(refused(FI_EINVAL, format_args!("a buffer of {len} bytes at {start:#x}")))
        }
    }

    pub(crate) fn address(self) -> usize {
        self.start
    }

    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Returns a part of the span. Panics if the part is not within it.
    pub(crate) fn part(self, offset: usize, len: usize) -> Self {
        assert!(offset <= self.len && len <= self.len - offset, "{len} bytes at {offset} of {}", self.len);
        Span { start: self.start + offset, len }
    }

    /// Copies the first bytes of the span to `to`.
    pub(crate) fn load(self, to: &mut [u8]) {
        assert!(to.len() <= self.len);
        if !to.is_empty() {
            // SAFETY: promised in `new`, and checked.
            unsafe { to.as_mut_ptr().copy_from(self.start as *const u8, to.len()) };
        }
    }

    /// Copies `from` to the first bytes of the span.
    pub(crate) fn store(self, from: &[u8]) {
        assert!(from.len() <= self.len);
        if !from.is_empty() {
            // SAFETY: promised in `new`, and checked.
            unsafe { from.as_ptr().copy_to(self.start as *mut u8, from.len()) };
        }
    }

    /// Fills the span with data from a lane.
    pub(crate) fn fill(self, from: &mut Reader<'_>) {
        // SAFETY: promised in `new`.
        unsafe { from.get_raw(self.start as *mut u8, self.len) };
    }

    /// Calls `look` with the bytes.
    pub(crate) fn show(self, look: impl FnOnce(&[u8])) {
        if self.len > 0 {
            // SAFETY: promised in `new`: the bytes are valid and do not change.
            look(unsafe { slice::from_raw_parts(self.start as *const u8, self.len) });
        }
    }

    /// Returns the bytes as a region of the datapath; `None` for zero bytes.
    pub(crate) fn region(self) -> Option<Region> {
        let start = NonNull::new(self.start as *mut u8).filter(|_| self.len > 0)?;
        // SAFETY: promised in `new`; while a request or a registration covers the bytes, nothing else uses
        // them.
        Some(unsafe { Region::from_raw(start, self.len, Box::new(())) })
    }
}

/// Returns the spans of a scattered buffer.
///
/// # Errors
///
/// Returns FI_EINVAL for more than `most` elements, or for an invalid span.
///
/// # Safety
///
/// `iov` has `count` elements, each of which meets the conditions of [`Span::new`].
pub(crate) unsafe fn spans(iov: *const iovec, count: usize, most: usize) -> FiResult<Spans> {
    if count > most || (count > 0 && iov.is_null()) {
        return Err(refused(
            FI_EINVAL,
            format_args!("{count} pieces of a buffer; offered: at most {most}, and not at NULL"),
        ));
    }
    // SAFETY: guaranteed by the caller.
    let elements = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(iov, count) } };
    // SAFETY: guaranteed by the caller.
    elements.iter().map(|element| unsafe { Span::new(element.iov_base, element.iov_len) }).collect()
}

/// Returns the memory of an operation with a contiguous buffer.
///
/// # Errors
///
/// Returns the errors of [`Span::new`].
///
/// # Safety
///
/// The conditions of [`Span::new`] apply.
pub(crate) unsafe fn one(start: *const c_void, len: usize) -> FiResult<Spans> {
    // SAFETY: guaranteed by the caller.
    Ok(smallvec![unsafe { Span::new(start, len) }?])
}

/// Returns the memory of an operation with a scattered buffer of at most [`IOV_LIMIT`] pieces.
///
/// # Errors
///
/// Returns the errors of [`spans`].
///
/// # Safety
///
/// The conditions of [`spans`] apply.
pub(crate) unsafe fn several(iov: *const iovec, count: usize) -> FiResult<Spans> {
    // SAFETY: guaranteed by the caller.
    unsafe { spans(iov, count, IOV_LIMIT) }
}

fn parts(spans: &[Span]) -> Vec<(usize, usize)> {
    spans.iter().map(|span| (span.start, span.len)).collect()
}

/// Copies memory of a peer on this host, from `address` on, to spans.
///
/// # Errors
///
/// Returns the error of the kernel.
pub(crate) fn read(lane: &ShmChannel, into: &[Span], address: u64) -> io::Result<()> {
    // SAFETY: promised in `new`.
    unsafe { lane.read(&parts(into), address) }
}

/// Returns the first bytes of a staging slot. No request uses the slot: it was taken from its stage and not
/// posted yet.
pub(crate) fn bytes_mut(place: &mut Slice, len: usize) -> &mut [u8] {
    assert!(len <= place.len());
    // SAFETY: the bytes belong to the slice, which has no other user.
    unsafe { slice::from_raw_parts_mut(place.region().as_ptr().add(place.offset()), len) }
}

/// Returns the first bytes of a staging slot whose request is complete.
pub(crate) fn bytes(place: &Slice, len: usize) -> &[u8] {
    assert!(len <= place.len());
    // SAFETY: the bytes belong to the slice, and nothing writes to them any more.
    unsafe { slice::from_raw_parts(place.region().as_ptr().add(place.offset()), len) }
}
