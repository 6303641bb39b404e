//! `rdma/fi_atomic.h`, and the types and operations of `rdma/fi_domain.h`.

use std::ffi::{c_int, c_void};

use super::fid::Ep;

pub const FI_FETCH_ATOMIC: u64 = 1 << 58;
pub const FI_COMPARE_ATOMIC: u64 = 1 << 59;

pub const FI_INT8: u32 = 0;
pub const FI_UINT8: u32 = 1;
pub const FI_INT16: u32 = 2;
pub const FI_UINT16: u32 = 3;
pub const FI_INT32: u32 = 4;
pub const FI_UINT32: u32 = 5;
pub const FI_INT64: u32 = 6;
pub const FI_UINT64: u32 = 7;
pub const FI_FLOAT: u32 = 8;
pub const FI_DOUBLE: u32 = 9;

pub const FI_MIN: u32 = 0;
pub const FI_MAX: u32 = 1;
pub const FI_SUM: u32 = 2;
pub const FI_PROD: u32 = 3;
pub const FI_LOR: u32 = 4;
pub const FI_LAND: u32 = 5;
pub const FI_BOR: u32 = 6;
pub const FI_BAND: u32 = 7;
pub const FI_LXOR: u32 = 8;
pub const FI_BXOR: u32 = 9;
pub const FI_ATOMIC_READ: u32 = 10;
pub const FI_ATOMIC_WRITE: u32 = 11;
pub const FI_CSWAP: u32 = 12;
pub const FI_CSWAP_NE: u32 = 13;
pub const FI_CSWAP_LE: u32 = 14;
pub const FI_CSWAP_LT: u32 = 15;
pub const FI_CSWAP_GE: u32 = 16;
pub const FI_CSWAP_GT: u32 = 17;
pub const FI_MSWAP: u32 = 18;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ioc {
    pub addr: *mut c_void,
    pub count: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RmaIoc {
    pub addr: u64,
    pub count: usize,
    pub key: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AtomicAttr {
    pub count: usize,
    pub size: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MsgAtomic {
    pub msg_iov: *const Ioc,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: *const RmaIoc,
    pub rma_iov_count: usize,
    pub datatype: u32,
    pub op: u32,
    pub context: *mut c_void,
    pub data: u64,
}

/// Signature of `fi_ops_atomic.writevalid` and similar functions.
pub type Valid = unsafe extern "C" fn(*mut Ep, u32, u32, *mut usize) -> c_int;

#[repr(C)]
#[derive(Debug)]
pub struct OpsAtomic {
    pub size: usize,
    pub write: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        usize,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub writev: unsafe extern "C" fn(
        *mut Ep,
        *const Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub writemsg: unsafe extern "C" fn(*mut Ep, *const MsgAtomic, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64, u32, u32) -> isize,
    pub readwrite: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        usize,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub readwritev: unsafe extern "C" fn(
        *mut Ep,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub readwritemsg:
        unsafe extern "C" fn(*mut Ep, *const MsgAtomic, *mut Ioc, *mut *mut c_void, usize, u64) -> isize,
    pub compwrite: unsafe extern "C" fn(
        *mut Ep,
        *const c_void,
        usize,
        *mut c_void,
        *const c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub compwritev: unsafe extern "C" fn(
        *mut Ep,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        u32,
        u32,
        *mut c_void,
    ) -> isize,
    pub compwritemsg: unsafe extern "C" fn(
        *mut Ep,
        *const MsgAtomic,
        *const Ioc,
        *mut *mut c_void,
        usize,
        *mut Ioc,
        *mut *mut c_void,
        usize,
        u64,
    ) -> isize,
    pub writevalid: Valid,
    pub readwritevalid: Valid,
    pub compwritevalid: Valid,
}
