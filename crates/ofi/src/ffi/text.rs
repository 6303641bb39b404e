//! Strings and memory that libfabric frees.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;

/// The text of a C string; `None` for NULL.
///
/// # Safety
/// `text` is NULL or a string with its end.
pub(super) unsafe fn read(text: *const c_char) -> Option<String> {
    // SAFETY: as the caller says.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// A copy that `free` takes; NULL without memory.
pub(super) fn duplicate(text: &str) -> *mut c_char {
    let bytes = text.bytes().take_while(|byte| *byte != 0);
    let to = zeroed_bytes(text.len() + 1).cast::<c_char>();
    if !to.is_null() {
        for (index, byte) in bytes.enumerate() {
            // SAFETY: there is one byte more than the text has.
            unsafe { to.add(index).write(byte as c_char) };
        }
    }
    to
}

/// Zero bytes that `free` takes; NULL without memory.
pub(super) fn zeroed_bytes(len: usize) -> *mut u8 {
    // SAFETY: calloc has no demands.
    unsafe { libc::calloc(1, len.max(1)) }.cast()
}

/// A copy of a value that `free` takes; NULL without memory.
pub(super) fn boxed<T: Copy>(value: T) -> *mut T {
    let to = zeroed_bytes(size_of::<T>()).cast::<T>();
    if !to.is_null() {
        // SAFETY: it is as large as the value, and malloc aligns for every type of C.
        unsafe { to.write(value) };
    }
    to
}

/// What queues say of an error of the provider's own, which is the same number.
pub(super) unsafe extern "C" fn strerror<Q>(
    _: *mut Q,
    _: c_int,
    _: *const c_void,
    _: *mut c_char,
    _: usize,
) -> *const c_char {
    c"see the error number".as_ptr()
}

/// Writes as much of a text as fits, with its end; returns the length with the end.
///
/// # Safety
/// `to` is NULL or has `room` bytes.
pub(super) unsafe fn write(text: &str, to: *mut c_char, room: usize) -> usize {
    if !to.is_null() && room > 0 {
        let len = text.len().min(room - 1);
        // SAFETY: that many bytes are there, as the caller says, and one for the end.
        unsafe {
            to.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len);
            to.add(len).write(0);
        }
    }
    text.len() + 1
}
