//! `struct fid_cntr`.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::handle::{Handle, fid};
use super::handles::{CntrHandle, DomainHandle, get_wait};
use super::unsupported;
use crate::abi::domain::FidDomain;
use crate::abi::eq::*;
use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::*;
use crate::guard::{FiResult, refused, status};
use crate::object::counter::{Counter, Counts};
use crate::object::wait::{Object, deadline};

static OPS: Ops = Ops { close, control, ..unsupported::OPS };

static CNTR_OPS: OpsCntr =
    OpsCntr { size: size_of::<OpsCntr>(), read, readerr, add, set, wait, adderr, seterr };

pub(super) unsafe extern "C" fn open(
    domain: *mut FidDomain,
    attr: *mut CntrAttr,
    to: *mut *mut FidCntr,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the domain was made by this provider.
        let domain = unsafe { DomainHandle::here(domain) }?;
        // SAFETY: `attr` is NULL or points to an attribute structure.
        let (events, wait_obj) = unsafe { attr.as_ref() }
            .map_or((FI_CNTR_EVENTS_COMP, FI_WAIT_UNSPEC), |attr| (attr.events, attr.wait_obj));
        if to.is_null() || events != FI_CNTR_EVENTS_COMP {
            return Err(refused(FI_EINVAL, format_args!("a counter of events {events}, or at NULL")));
        }
        let counter = Arc::new(Counter::new(Object::of(wait_obj)?, domain.nap())?);
        let face = FidCntr { fid: fid(FI_CLASS_CNTR, context, &OPS), ops: &raw const CNTR_OPS };
        // SAFETY: `to` is not NULL.
        unsafe { Handle::give(face, counter, Some(domain.uses.begin()), to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the counter was made by this provider, and the caller gives it up.
    status(|| unsafe { CntrHandle::close(fid, |counter| &counter.uses) })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, arg: *mut c_void) -> c_int {
    status(|| {
        // SAFETY: the counter was made by this provider; the argument has the type that the command requires.
        unsafe { get_wait(CntrHandle::here(fid)?.waiting(), command, arg) }
    })
}

/// # Safety
/// `cntr` is a counter of this provider.
unsafe fn counts(cntr: *mut FidCntr) -> Counts {
    // The interface has no way to report an error here.
    let read = catch_unwind(AssertUnwindSafe(|| -> FiResult<Counts> {
        // SAFETY: guaranteed by the caller.
        Ok(unsafe { CntrHandle::here(cntr) }?.read())
    }));
    read.ok().and_then(Result::ok).unwrap_or_default()
}

unsafe extern "C" fn read(cntr: *mut FidCntr) -> u64 {
    // SAFETY: the counter was made by this provider.
    unsafe { counts(cntr) }.good
}

unsafe extern "C" fn readerr(cntr: *mut FidCntr) -> u64 {
    // SAFETY: the counter was made by this provider.
    unsafe { counts(cntr) }.bad
}

/// # Safety
/// `cntr` is a counter of this provider.
unsafe fn change(cntr: *mut FidCntr, change: impl FnOnce(&mut Counts)) -> c_int {
    status(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { CntrHandle::here(cntr) }?.change(change);
        Ok(())
    })
}

unsafe extern "C" fn add(cntr: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: the counter was made by this provider.
    unsafe { change(cntr, |counts| counts.good = counts.good.wrapping_add(value)) }
}

unsafe extern "C" fn set(cntr: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: the counter was made by this provider.
    unsafe { change(cntr, |counts| counts.good = value) }
}

unsafe extern "C" fn adderr(cntr: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: the counter was made by this provider.
    unsafe { change(cntr, |counts| counts.bad = counts.bad.wrapping_add(value)) }
}

unsafe extern "C" fn seterr(cntr: *mut FidCntr, value: u64) -> c_int {
    // SAFETY: the counter was made by this provider.
    unsafe { change(cntr, |counts| counts.bad = value) }
}

unsafe extern "C" fn wait(cntr: *mut FidCntr, threshold: u64, timeout_ms: c_int) -> c_int {
    status(|| {
        // SAFETY: the counter was made by this provider. It is kept alive, because another thread may close
        // it while this one sleeps.
        let counter = unsafe { CntrHandle::here(cntr) }?.clone();
        counter.wait(threshold, deadline(timeout_ms))
    })
}
