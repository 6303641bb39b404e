//! `rdma/fi_domain.h`, except the types and operations of atomics.

use std::ffi::{c_char, c_int, c_void};

use libc::iovec;

use super::atomic::AtomicAttr;
use super::endpoint::FidEp;
use super::eq::{CntrAttr, CqAttr, FidCntr, FidCq};
use super::fabric::Info;
use super::fid::Fid;

pub const FI_SYMMETRIC: u64 = 1 << 59;
pub const FI_SYNC_ERR: u64 = 1 << 58;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AvAttr {
    pub type_: u32,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

/// Signature of an entry of `fi_ops_av` that the provider does not implement.
pub type AvSlot = unsafe extern "C" fn(*mut FidAv, *mut c_void, *mut c_void, *mut c_void, u64) -> c_int;

#[repr(C)]
#[derive(Debug)]
pub struct OpsAv {
    pub size: usize,
    pub insert: unsafe extern "C" fn(*mut FidAv, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int,
    pub insertsvc:
        unsafe extern "C" fn(*mut FidAv, *const c_char, *const c_char, *mut u64, u64, *mut c_void) -> c_int,
    pub insertsym: unsafe extern "C" fn(
        *mut FidAv,
        *const c_char,
        usize,
        *const c_char,
        usize,
        *mut u64,
        u64,
        *mut c_void,
    ) -> c_int,
    pub remove: unsafe extern "C" fn(*mut FidAv, *mut u64, usize, u64) -> c_int,
    pub lookup: unsafe extern "C" fn(*mut FidAv, u64, *mut c_void, *mut usize) -> c_int,
    pub straddr: unsafe extern "C" fn(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char,
    pub av_set: AvSlot,
    /// Present since libfabric 1.20.
    pub insert_auth_key: AvSlot,
    /// Present since libfabric 1.20.
    pub lookup_auth_key: AvSlot,
    /// Present since libfabric 1.20.
    pub set_user_id: AvSlot,
}

#[repr(C)]
#[derive(Debug)]
pub struct FidAv {
    pub fid: Fid,
    pub ops: *const OpsAv,
}

#[repr(C)]
#[derive(Debug)]
pub struct FidMr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MrAttr {
    pub mr_iov: *const iovec,
    pub iov_count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
    pub auth_key_size: usize,
    pub auth_key: *mut u8,
    pub iface: u32,
    pub device: u64,
    /// Present since libfabric 1.20.
    pub hmem_data: *mut c_void,
    /// Present since libfabric 1.22.
    pub page_size: usize,
    /// Present since libfabric 2.0.
    pub base_mr: *const FidMr,
    /// Present since libfabric 2.0.
    pub sub_mr_cnt: usize,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsDomain {
    pub size: usize,
    pub av_open: unsafe extern "C" fn(*mut FidDomain, *mut AvAttr, *mut *mut FidAv, *mut c_void) -> c_int,
    pub cq_open: unsafe extern "C" fn(*mut FidDomain, *mut CqAttr, *mut *mut FidCq, *mut c_void) -> c_int,
    pub endpoint: unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int,
    pub scalable_ep: unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, *mut c_void) -> c_int,
    pub cntr_open:
        unsafe extern "C" fn(*mut FidDomain, *mut CntrAttr, *mut *mut FidCntr, *mut c_void) -> c_int,
    pub poll_open: unsafe extern "C" fn(*mut FidDomain, *mut c_void, *mut *mut c_void) -> c_int,
    pub stx_ctx: unsafe extern "C" fn(*mut FidDomain, *mut c_void, *mut *mut c_void, *mut c_void) -> c_int,
    pub srx_ctx: unsafe extern "C" fn(*mut FidDomain, *mut c_void, *mut *mut FidEp, *mut c_void) -> c_int,
    pub query_atomic: unsafe extern "C" fn(*mut FidDomain, u32, u32, *mut AtomicAttr, u64) -> c_int,
    pub query_collective: unsafe extern "C" fn(*mut FidDomain, u32, *mut c_void, u64) -> c_int,
    pub endpoint2:
        unsafe extern "C" fn(*mut FidDomain, *mut Info, *mut *mut FidEp, u64, *mut c_void) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsMr {
    pub size: usize,
    pub reg: unsafe extern "C" fn(
        *mut Fid,
        *const c_void,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
    pub regv: unsafe extern "C" fn(
        *mut Fid,
        *const iovec,
        usize,
        u64,
        u64,
        u64,
        u64,
        *mut *mut FidMr,
        *mut c_void,
    ) -> c_int,
    pub regattr: unsafe extern "C" fn(*mut Fid, *const MrAttr, u64, *mut *mut FidMr) -> c_int,
}

#[repr(C)]
#[derive(Debug)]
pub struct FidDomain {
    pub fid: Fid,
    pub ops: *const OpsDomain,
    pub mr: *const OpsMr,
}
