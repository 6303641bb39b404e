//! `struct fi_ops_cm`: names. Connections are made as they are needed.

use std::ffi::{c_int, c_void};

use super::super::address;
use super::super::handles::EpHandle;
use crate::abi::cm::OpsCm;
use crate::abi::errno::{FI_EINVAL, FI_ENOSYS, FI_ETOOSMALL};
use crate::abi::fabric::Fid;
use crate::abi::fid::Ep;
use crate::guard::{Errno, refused, status};

pub(super) static CM_OPS: OpsCm = OpsCm {
    size: size_of::<OpsCm>(),
    setname,
    getname,
    getpeer,
    connect,
    listen,
    accept,
    reject,
    shutdown,
    join,
};

/// Before the endpoint is enabled it can be given another address.
unsafe extern "C" fn setname(fid: *mut Fid, from: *mut c_void, len: usize) -> c_int {
    status(|| {
        // SAFETY: as many bytes as the caller says.
        let to =
            unsafe { address::read(from, len) }.ok_or_else(|| refused(FI_EINVAL, "this is no address"))?;
        // SAFETY: an endpoint of ours.
        unsafe { EpHandle::here(fid) }?.rename(to)
    })
}

/// With too little room, even none, the length is told.
unsafe extern "C" fn getname(fid: *mut Fid, to: *mut c_void, len: *mut usize) -> c_int {
    status(|| {
        // SAFETY: an endpoint of ours.
        let own = unsafe { EpHandle::here(fid) }?.own();
        // SAFETY: NULL or a length.
        let len =
            unsafe { len.as_mut() }.ok_or_else(|| refused(FI_EINVAL, "the length of a name is NULL"))?;
        let room = if to.is_null() { 0 } else { *len };
        let needed = address::length_of(own);
        if room > 0 {
            // SAFETY: there is so much room.
            unsafe { address::write(own, to, room) };
        }
        *len = needed;
        if room < needed { Err(Errno(FI_ETOOSMALL)) } else { Ok(()) }
    })
}

unsafe extern "C" fn getpeer(_: *mut Ep, _: *mut c_void, _: *mut usize) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn connect(_: *mut Ep, _: *const c_void, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn listen(_: *mut c_void) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn accept(_: *mut Ep, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn reject(_: *mut c_void, _: *mut Fid, _: *const c_void, _: usize) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn shutdown(_: *mut Ep, _: u64) -> c_int {
    -FI_ENOSYS
}
unsafe extern "C" fn join(
    _: *mut Ep,
    _: *const c_void,
    _: u64,
    _: *mut *mut c_void,
    _: *mut c_void,
) -> c_int {
    -FI_ENOSYS
}
