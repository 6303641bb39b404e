//! Entries of the function tables that the provider does not implement. All of them are functions, because
//! callers do not check for NULL.

use std::ffi::{c_char, c_int, c_void};

use crate::abi::endpoint::FidEp;
use crate::abi::errno::FI_ENOSYS;
use crate::abi::fabric::{Fid, Ops};

const NO: c_int = -FI_ENOSYS;

/// Operations of every object. Each object overrides some of them.
pub(super) const OPS: Ops = Ops { size: size_of::<Ops>(), close, bind, control, ops_open, tostr, ops_set };

unsafe extern "C" fn close(_: *mut Fid) -> c_int {
    NO
}
unsafe extern "C" fn bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    NO
}
unsafe extern "C" fn control(_: *mut Fid, _: c_int, _: *mut c_void) -> c_int {
    NO
}
unsafe extern "C" fn ops_open(
    _: *mut Fid,
    _: *const c_char,
    _: u64,
    _: *mut *mut c_void,
    _: *mut c_void,
) -> c_int {
    NO
}
unsafe extern "C" fn tostr(_: *const Fid, _: *mut c_char, _: usize) -> c_int {
    NO
}
unsafe extern "C" fn ops_set(_: *mut Fid, _: *const c_char, _: u64, _: *mut c_void, _: *mut c_void) -> c_int {
    NO
}
/// Rejects a call with four pointer arguments.
pub(super) unsafe extern "C" fn open4<A, B, C, D>(_: *mut A, _: *mut B, _: *mut C, _: *mut D) -> c_int {
    NO
}
/// Rejects a call with three pointer arguments.
pub(super) unsafe extern "C" fn open3<A, B, C>(_: *mut A, _: *mut B, _: *mut C) -> c_int {
    NO
}
pub(super) unsafe extern "C" fn context(
    _: *mut FidEp,
    _: c_int,
    _: *mut c_void,
    _: *mut *mut FidEp,
    _: *mut c_void,
) -> c_int {
    NO
}
pub(super) unsafe extern "C" fn size_left(_: *mut FidEp) -> isize {
    NO as isize
}
