//! `struct fi_ops_cm`: only names. Connections are made on demand.

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

/// Sets the endpoint's address, before the endpoint is enabled.
unsafe extern "C" fn setname(fid: *mut Fid, from: *mut c_void, len: usize) -> c_int {
    status(|| {
        // SAFETY: the caller guarantees this many bytes.
        let to =
            unsafe { address::read(from, len) }.ok_or_else(|| refused(FI_EINVAL, "this is no address"))?;
        // SAFETY: the endpoint was made by this provider.
        unsafe { EpHandle::here(fid) }?.rename(to)
    })
}

/// Returns the endpoint's address. If there is too little room, or none, it still returns the length.
unsafe extern "C" fn getname(fid: *mut Fid, to: *mut c_void, len: *mut usize) -> c_int {
    status(|| {
        // SAFETY: the endpoint was made by this provider.
        let own = unsafe { EpHandle::here(fid) }?.own();
        // SAFETY: NULL or a length.
        let len =
            unsafe { len.as_mut() }.ok_or_else(|| refused(FI_EINVAL, "the length of a name is NULL"))?;
        let room = if to.is_null() { 0 } else { *len };
        let needed = address::length_of(own);
        if room > 0 {
            // SAFETY: there is enough room.
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
