//! `rdma/fi_tagged.h`.

use std::ffi::c_void;

use libc::iovec;

use super::fid::Ep;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MsgTagged {
    pub msg_iov: *const iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct OpsTagged {
    pub size: usize,
    pub recv:
        unsafe extern "C" fn(*mut Ep, *mut c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
    pub recvv: unsafe extern "C" fn(
        *mut Ep,
        *const iovec,
        *mut *mut c_void,
        usize,
        u64,
        u64,
        u64,
        *mut c_void,
    ) -> isize,
    pub recvmsg: unsafe extern "C" fn(*mut Ep, *const MsgTagged, u64) -> isize,
    pub send:
        unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, *mut c_void) -> isize,
    pub sendv:
        unsafe extern "C" fn(*mut Ep, *const iovec, *mut *mut c_void, usize, u64, u64, *mut c_void) -> isize,
    pub sendmsg: unsafe extern "C" fn(*mut Ep, *const MsgTagged, u64) -> isize,
    pub inject: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64) -> isize,
    pub senddata:
        unsafe extern "C" fn(*mut Ep, *const c_void, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize,
    pub injectdata: unsafe extern "C" fn(*mut Ep, *const c_void, usize, u64, u64, u64) -> isize,
}
