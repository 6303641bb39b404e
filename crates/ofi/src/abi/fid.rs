//! `struct fid` of `rdma/fabric.h`, the first member of every object.

use std::ffi::{c_char, c_int, c_void};

/// An endpoint, through its first member.
pub type Ep = Fid;

#[repr(C)]
#[derive(Debug)]
pub struct Ops {
    pub size: usize,
    pub close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub ops_open: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
    pub tostr: unsafe extern "C" fn(*const Fid, *mut c_char, usize) -> c_int,
    pub ops_set: unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut c_void, *mut c_void) -> c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: *const Ops,
}
