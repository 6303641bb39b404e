//! Strings and memory that libfabric frees.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;

/// Returns the text of a C string; `None` for NULL.
///
/// # Safety
///
/// `text` is NULL or a terminated string.
pub(super) unsafe fn read(text: *const c_char) -> Option<String> {
    // SAFETY: guaranteed by the caller.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Returns a copy that `free` can free; NULL without memory.
pub(super) fn duplicate(text: &str) -> *mut c_char {
    let bytes = text.bytes().take_while(|byte| *byte != 0);
    let to = zeroed_bytes(text.len() + 1).cast::<c_char>();
    if !to.is_null() {
        for (index, byte) in bytes.enumerate() {
            // SAFETY: the allocation has one byte more than the text.
            unsafe { to.add(index).write(byte as c_char) };
        }
    }
    to
}

/// Returns zeroed bytes that `free` can free; NULL without memory.
pub(super) fn zeroed_bytes(len: usize) -> *mut u8 {
    // SAFETY: calloc has no preconditions.
    unsafe { libc::calloc(1, len.max(1)) }.cast()
}

/// Returns a copy of a value that `free` can free; NULL without memory.
pub(super) fn boxed<T: Copy>(value: T) -> *mut T {
    let to = zeroed_bytes(size_of::<T>()).cast::<T>();
    if !to.is_null() {
        // SAFETY: the allocation has the size of the value, and calloc aligns for every type of C.
        unsafe { to.write(value) };
    }
    to
}

/// Returns the text of an error number of the provider, which is a plain errno.
pub(super) unsafe extern "C" fn strerror<Q>(
    _: *mut Q,
    _: c_int,
    _: *const c_void,
    _: *mut c_char,
    _: usize,
) -> *const c_char {
    c"see the error number".as_ptr()
}

/// Writes as much of a text as fits, and a terminator. Returns the length of the whole text with its
/// terminator.
///
/// # Safety
///
/// `to` is NULL or points to `room` bytes.
pub(super) unsafe fn write(text: &str, to: *mut c_char, room: usize) -> usize {
    if !to.is_null() && room > 0 {
        let len = text.len().min(room - 1);
        // SAFETY: the caller guarantees `room` bytes, which are enough for the text and the terminator.
        unsafe {
            to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
            to.add(len).write(0);
        }
    }
    text.len() + 1
}
