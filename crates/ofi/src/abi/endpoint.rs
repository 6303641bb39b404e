//! `rdma/fi_endpoint.h`.

use std::ffi::{c_int, c_void};

use libc::iovec;

use super::atomic::OpsAtomic;
use super::cm::OpsCm;
use super::fid::{Ep, Fid};
use super::rma::OpsRma;
use super::tagged::OpsTagged;

pub const FI_OPT_ENDPOINT: c_int = 0;
pub const FI_OPT_MIN_MULTI_RECV: c_int = 0;
pub const FI_OPT_CM_DATA_SIZE: c_int = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Msg {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsEp {
    pub size: usize,
    pub cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
    pub getopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    pub setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int,
    pub tx_ctx: unsafe extern "C" fn(*mut FidEp, c_int, *mut c_void, *mut *mut FidEp, *mut c_void) -> c_int,
    pub rx_ctx: unsafe extern "C" fn(*mut FidEp, c_int, *mut c_void, *mut *mut FidEp, *mut c_void) -> c_int,
    pub rx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
    pub tx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsMsg {
    pub size: usize,
    pub recv: unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub recvv:
        unsafe extern "C" fn(*mut Ep, *const iovec, *mut *mut c_void, usize, u64, *mut c_void) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut Ep, *const Msg, u64) -> isize,
    pub send: unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, *mut c_void) -> isize,
    pub sendv:
        unsafe extern "C" fn(*mut Ep, *const iovec, *mut *mut c_void, usize, u64, *mut c_void) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut Ep, *const Msg, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64) -> isize,
    pub senddata:
        unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64) -> isize,
}

#[repr(C)]
#[derive(Debug)]
pub struct FidEp {
    pub fid: Fid,
    pub ops: *const OpsEp,
    pub cm: *const OpsCm,
    pub msg: *const OpsMsg,
    pub rma: *const OpsRma,
    pub tagged: *const OpsTagged,
    pub atomic: *const OpsAtomic,
    pub collective: *const c_void,
}
