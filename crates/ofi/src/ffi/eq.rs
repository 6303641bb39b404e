//! `struct fid_eq`.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::handle::{Handle, fid};
use super::handles::{EqHandle, FabricHandle, get_wait};
use super::{text, unsupported};
use crate::abi::eq::*;
use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::*;
use crate::guard::{FiResult, count, refused, status};
use crate::object::events::{Event, EventQueue, Look, MOST_EVENTS};
use crate::object::wait::{Object, deadline};

static OPS: Ops = Ops { close, control, ..unsupported::OPS };

static EQ_OPS: OpsEq =
    OpsEq { size: size_of::<OpsEq>(), read, readerr, write, sread, strerror: text::strerror };

/// Largest size of an event that an application may write, bytes.
const MOST_BYTES: usize = 1 << 16;

pub(super) unsafe extern "C" fn open(
    fabric: *mut FidFabric,
    attr: *mut EqAttr,
    to: *mut *mut FidEq,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the fabric was made by this provider.
        let fabric = unsafe { FabricHandle::here(fabric) }?;
        // SAFETY: `attr` is NULL or points to an attribute structure.
        let (size, wait_obj) =
            unsafe { attr.as_ref() }.map_or((0, FI_WAIT_UNSPEC), |attr| (attr.size, attr.wait_obj));
        if size > MOST_EVENTS || to.is_null() {
            return Err(refused(FI_EINVAL, format_args!("an event queue of {size} events, or at NULL")));
        }
        let queue = Arc::new(EventQueue::new(Object::of(wait_obj)?)?);
        let face = FidEq { fid: fid(FI_CLASS_EQ, context, &OPS), ops: &raw const EQ_OPS };
        // SAFETY: `to` is not NULL.
        unsafe { Handle::give(face, queue, Some(fabric.uses.begin()), to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the event queue was made by this provider, and the caller gives it up.
    status(|| unsafe { EqHandle::close(fid, |queue| &queue.uses) })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, arg: *mut c_void) -> c_int {
    status(|| {
        // SAFETY: the event queue was made by this provider; the argument has the type that the command requires.
        unsafe { get_wait(EqHandle::here(fid)?.waiting(), command, arg) }
    })
}

fn look(flags: u64) -> Look {
    if flags & FI_PEEK == 0 { Look::Take } else { Look::Peek }
}

/// # Safety
///
/// `event` is writable, and `to` has room for the bytes.
unsafe fn hand_over(found: (u32, Vec<u8>), event: *mut u32, to: *mut c_void) -> isize {
    let (kind, bytes) = found;
    // SAFETY: guaranteed by the caller.
    unsafe {
        event.write(kind);
        to.cast::<u8>().copy_from(bytes.as_ptr(), bytes.len());
    }
    bytes.len() as isize
}

unsafe extern "C" fn read(eq: *mut FidEq, event: *mut u32, to: *mut c_void, len: usize, flags: u64) -> isize {
    // SAFETY: the event queue was made by this provider; there is room for `len` bytes.
    count(|| unsafe { Ok(hand_over(EqHandle::here(eq)?.read(len, look(flags))?, event, to)) })
}

unsafe extern "C" fn sread(
    eq: *mut FidEq,
    event: *mut u32,
    to: *mut c_void,
    len: usize,
    timeout_ms: c_int,
    flags: u64,
) -> isize {
    count(|| {
        // SAFETY: the queue was made by this provider. It is kept alive, because another thread may close it
        // while this one sleeps.
        let queue = unsafe { EqHandle::here(eq) }?.clone();
        let found = queue.read_waiting(len, look(flags), deadline(timeout_ms))?;
        // SAFETY: there is room for `len` bytes.
        Ok(unsafe { hand_over(found, event, to) })
    })
}

unsafe extern "C" fn readerr(eq: *mut FidEq, to: *mut EqErrEntry, flags: u64) -> isize {
    count(|| -> FiResult<isize> {
        // SAFETY: the event queue was made by this provider.
        let failed = unsafe { EqHandle::here(eq) }?.read_error(look(flags))?;
        let entry = EqErrEntry {
            fid: failed.fid as *mut Fid,
            context: failed.context as *mut c_void,
            data: failed.data,
            err: failed.errno,
            prov_errno: failed.errno,
            err_data: ptr::null_mut(),
            err_data_size: 0,
        };
        // SAFETY: `to` points to an entry of the caller.
        unsafe { to.write(entry) };
        Ok(size_of::<EqErrEntry>() as isize)
    })
}

unsafe extern "C" fn write(eq: *mut FidEq, event: u32, from: *const c_void, len: usize, _: u64) -> isize {
    count(|| {
        if len > MOST_BYTES {
            return Err(refused(FI_EINVAL, format_args!("an event of {len} bytes")));
        }
        let mut bytes = vec![0; len];
        // SAFETY: the caller guarantees this many bytes.
        unsafe { bytes.as_mut_ptr().copy_from(from.cast(), len) };
        // SAFETY: the event queue was made by this provider.
        unsafe { EqHandle::here(eq) }?.push(Event::Read { kind: event, bytes })?;
        Ok(len as isize)
    })
}
