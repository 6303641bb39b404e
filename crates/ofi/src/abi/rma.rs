//! `rdma/fi_rma.h`.

use std::ffi::c_void;

use libc::iovec;

use super::fid::Ep;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RmaIov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MsgRma {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsRma {
    pub size: usize,
    pub read:
        unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
    pub readv: unsafe extern "C" fn(
        *mut Ep,
        *const iovec,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub readmsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
    pub write:
        unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
    pub writev: unsafe extern "C" fn(
        *mut Ep,
        *const iovec,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub writemsg: unsafe extern "C" fn(*mut Ep, *const MsgRma, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64) -> isize,
    pub writedata: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64, u64) -> isize,
}
