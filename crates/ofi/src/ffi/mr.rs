//! `struct fid_mr`.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use libc::iovec;

use super::handle::{Handle, class_of, fid};
use super::handles::{CntrHandle, DomainHandle, MrHandle, Registered};
use super::memory::{Span, spans};
use super::unsupported;
use crate::abi::domain::*;
use crate::abi::errno::{FI_EINVAL, FI_ENOSYS};
use crate::abi::fabric::*;
use crate::guard::{refused, status};
use crate::object::domain::MrCounter;

static OPS: Ops = Ops { close, bind, control, ..unsupported::OPS };

pub(super) static MR_OPS: OpsMr = OpsMr { size: size_of::<OpsMr>(), reg, regv, regattr };

/// Parameters of a registration.
struct Wish {
    access: u64,
    offset: u64,
    requested_key: u64,
}

/// # Safety
///
/// `domain` is a domain of this provider. The bytes of the spans stay valid until the region is closed.
unsafe fn register(
    domain: *mut Fid,
    spans: &[Span],
    wish: &Wish,
    to: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: guaranteed by the caller.
        let domain = unsafe { DomainHandle::here(domain) }?;
        let &[span] = spans else {
            return Err(refused(FI_EINVAL, format_args!("a region of {} pieces; offered: 1", spans.len())));
        };
        if to.is_null() {
            return Err(refused(FI_EINVAL, "the place of a region is NULL"));
        }
        let mr = domain.register(span, wish.offset, wish.access, wish.requested_key)?;
        let face =
            FidMr { fid: fid(FI_CLASS_MR, context, &OPS), mem_desc: std::ptr::null_mut(), key: mr.key };
        let object = Arc::new(Registered { mr, domain: domain.clone() });
        // SAFETY: `to` is not NULL. The descriptor is the handle itself, because some consumers only check that it is
        // not NULL.
        unsafe {
            Handle::give(face, object, Some(domain.uses.begin()), to);
            (**to).mem_desc = (*to).cast();
        }
        Ok(())
    })
}

unsafe extern "C" fn reg(
    domain: *mut Fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    _: u64,
    to: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of fi_mr_reg.
    match unsafe { Span::new(buf, len) } {
        // SAFETY: as above.
        Ok(span) => unsafe {
            register(domain, &[span], &Wish { access, offset, requested_key }, to, context)
        },
        Err(error) => -error.0,
    }
}

unsafe extern "C" fn regv(
    domain: *mut Fid,
    iov: *const iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    _: u64,
    to: *mut *mut FidMr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the arguments are those of fi_mr_regv.
    match unsafe { spans(iov, count, 1) } {
        // SAFETY: as above.
        Ok(spans) => unsafe {
            register(domain, &spans, &Wish { access, offset, requested_key }, to, context)
        },
        Err(error) => -error.0,
    }
}

unsafe extern "C" fn regattr(
    domain: *mut Fid,
    attr: *const MrAttr,
    flags: u64,
    to: *mut *mut FidMr,
) -> c_int {
    if attr.is_null() {
        return -refused(FI_EINVAL, "the attribute of a region is NULL").0;
    }
    // Only single fields are read, because the caller's structure may be shorter than [`MrAttr`].
    unsafe {
        let (iov, count) = ((&raw const (*attr).mr_iov).read(), (&raw const (*attr).iov_count).read());
        let (access, offset) = ((&raw const (*attr).access).read(), (&raw const (*attr).offset).read());
        let (key, context) = ((&raw const (*attr).requested_key).read(), (&raw const (*attr).context).read());
        // Memory of accelerators cannot be copied here.
        if (&raw const (*attr).iface).read() != 0 {
            return -refused(FI_ENOSYS, "memory of devices is not offered").0;
        }
        regv(domain, iov, count, access, offset, key, flags, to, context)
    }
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    status(|| {
        // SAFETY: the region was made by this provider, and the caller gives it up if this succeeds.
        unsafe {
            let handle = MrHandle::of(fid);
            // In the child of a fork, no peer can access the region.
            if handle.process.is_this() {
                handle.object.domain.deregister(&handle.object.mr)?;
            }
            drop(MrHandle::take(fid));
        }
        Ok(())
    })
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    status(|| {
        // SAFETY: the region was made by this provider, and `other` is a fid.
        unsafe {
            let registered = MrHandle::here(fid)?;
            match class_of(other)? {
                // All endpoints of the domain open it.
                FI_CLASS_EP => Ok(()),
                FI_CLASS_CNTR => {
                    let counter = CntrHandle::here(other)?;
                    let bound = MrCounter { flags, counter: counter.clone(), _use: counter.uses.begin() };
                    registered.domain.count_in(&registered.mr, bound);
                    Ok(())
                }
                class => Err(refused(FI_ENOSYS, format_args!("class {class} is not bound to a region"))),
            }
        }
    })
}

/// Accepts FI_ENABLE, which has no effect: a region is enabled from the start.
unsafe extern "C" fn control(_: *mut Fid, command: c_int, _: *mut c_void) -> c_int {
    if command == FI_ENABLE {
        0
    } else {
        -refused(FI_ENOSYS, format_args!("command {command} is not offered")).0
    }
}
