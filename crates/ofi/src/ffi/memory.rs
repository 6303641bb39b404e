//! Memory of the application: where it is, and how its bytes are reached.

use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;
use std::slice;

use libc::iovec;
use pathweave_datapath::{Region, Slice};
use pathweave_shm::{Lane, Reader};
use smallvec::{SmallVec, smallvec};

use crate::abi::errno::FI_EINVAL;
use crate::getinfo::IOV_LIMIT;
use crate::guard::{Answer, refused};

/// Bytes of the application that follow each other. It has promised to leave them where they are, and not to use them while
/// an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    len: usize,
}

/// The spans of an operation; nearly all have one.
pub(crate) type Spans = SmallVec<[Span; 1]>;

impl Span {
    /// # Errors
    /// FI_EINVAL for bytes at NULL, or beyond the end of memory.
    ///
    /// # Safety
    /// The bytes are there until the operation that is given them is done, and nobody but it uses them meanwhile.
    pub(crate) unsafe fn new(start: *const c_void, len: usize) -> Answer<Self> {
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

    /// Part of it, which must lie within.
    pub(crate) fn part(self, offset: usize, len: usize) -> Self {
        assert!(offset <= self.len && len <= self.len - offset, "{len} bytes at {offset} of {}", self.len);
        Span { start: self.start + offset, len }
    }

    /// Copies its first bytes to `to`.
    pub(crate) fn load(self, to: &mut [u8]) {
        assert!(to.len() <= self.len);
        if !to.is_empty() {
            // SAFETY: promised in `new`, and checked.
            unsafe { to.as_mut_ptr().copy_from(self.start as *const u8, to.len()) };
        }
    }

    /// Copies `from` to its first bytes.
    pub(crate) fn store(self, from: &[u8]) {
        assert!(from.len() <= self.len);
        if !from.is_empty() {
            // SAFETY: promised in `new`, and checked.
            unsafe { from.as_ptr().copy_to(self.start as *mut u8, from.len()) };
        }
    }

    /// Copies what comes through a lane to it.
    pub(crate) fn fill(self, from: &mut Reader<'_>) {
        // SAFETY: promised in `new`.
        unsafe { from.get_raw(self.start as *mut u8, self.len) };
    }

    /// Lets `look` see the bytes.
    pub(crate) fn show(self, look: impl FnOnce(&[u8])) {
        if self.len > 0 {
            // SAFETY: promised in `new`: they are there, and nobody changes them.
            look(unsafe { slice::from_raw_parts(self.start as *const u8, self.len) });
        }
    }

    /// The same bytes as the datapath knows them; `None` without bytes.
    pub(crate) fn region(self) -> Option<Region> {
        let start = NonNull::new(self.start as *mut u8).filter(|_| self.len > 0)?;
        // SAFETY: promised in `new`; while a request or a registration covers them nobody else uses them.
        Some(unsafe { Region::from_raw(start, self.len, Box::new(())) })
    }
}

/// The spans of a scattered buffer.
///
/// # Errors
/// FI_EINVAL for more than `most`, or for a span that cannot be.
///
/// # Safety
/// As [`Span::new`], for each of the `count` elements, which are there.
pub(crate) unsafe fn spans(iov: *const iovec, count: usize, most: usize) -> Answer<Spans> {
    if count > most || (count > 0 && iov.is_null()) {
        return Err(refused(
            FI_EINVAL,
            format_args!("{count} pieces of a buffer; offered: at most {most}, and not at NULL"),
        ));
    }
    // SAFETY: as the caller says.
    let elements = if count == 0 { &[] } else { unsafe { slice::from_raw_parts(iov, count) } };
    // SAFETY: as the caller says.
    elements.iter().map(|element| unsafe { Span::new(element.iov_base, element.iov_len) }).collect()
}

/// The bytes of an operation that has them in one piece.
///
/// # Errors
/// As [`Span::new`].
///
/// # Safety
/// As [`Span::new`].
pub(crate) unsafe fn one(start: *const c_void, len: usize) -> Answer<Spans> {
    // SAFETY: as the caller says.
    Ok(smallvec![unsafe { Span::new(start, len) }?])
}

/// The bytes of an operation that has them in as many pieces as are offered.
///
/// # Errors
/// As [`spans`].
///
/// # Safety
/// As [`spans`].
pub(crate) unsafe fn several(iov: *const iovec, count: usize) -> Answer<Spans> {
    // SAFETY: as the caller says.
    unsafe { spans(iov, count, IOV_LIMIT) }
}

fn parts(spans: &[Span]) -> Vec<(usize, usize)> {
    spans.iter().map(|span| (span.start, span.len)).collect()
}

/// Copies memory of a peer on this host, from `address` on, to spans.
///
/// # Errors
/// The kernel's.
pub(crate) fn read(lane: &Lane, into: &[Span], address: u64) -> io::Result<()> {
    // SAFETY: promised in `new`.
    unsafe { lane.read(&parts(into), address) }
}

/// The first bytes of a place of ours. No request has it: it was taken from its stage and not posted yet.
pub(crate) fn bytes_mut(place: &mut Slice, len: usize) -> &mut [u8] {
    assert!(len <= place.len());
    // SAFETY: the bytes are the slice's, and nobody else has it.
    unsafe { slice::from_raw_parts_mut(place.region().as_ptr().add(place.offset()), len) }
}

/// The first bytes of a place of ours whose request is complete.
pub(crate) fn bytes(place: &Slice, len: usize) -> &[u8] {
    assert!(len <= place.len());
    // SAFETY: the bytes are the slice's, and nobody writes them any more.
    unsafe { slice::from_raw_parts(place.region().as_ptr().add(place.offset()), len) }
}
