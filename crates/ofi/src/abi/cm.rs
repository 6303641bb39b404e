//! `rdma/fi_cm.h`.

use std::ffi::{c_int, c_void};

use super::fid::{Ep, Fid};

#[repr(C)]
#[derive(Debug)]
pub struct OpsCm {
    pub size: usize,
    pub setname: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> c_int,
    pub getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    pub getpeer: unsafe extern "C" fn(*mut Ep, *mut c_void, *mut usize) -> c_int,
    pub connect: unsafe extern "C" fn(*mut Ep, *const c_void, *const c_void, usize) -> c_int,
    pub listen: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub accept: unsafe extern "C" fn(*mut Ep, *const c_void, usize) -> c_int,
    pub reject: unsafe extern "C" fn(*mut c_void, *mut Fid, *const c_void, usize) -> c_int,
    pub shutdown: unsafe extern "C" fn(*mut Ep, u64) -> c_int,
    pub join: unsafe extern "C" fn(*mut Ep, *const c_void, u64, *mut *mut c_void, *mut c_void) -> c_int,
}
