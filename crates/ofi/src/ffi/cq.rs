//! `struct fid_cq`.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::handle::{Handle, fid};
use super::handles::{Completions, CqHandle, DomainHandle, get_wait};
use super::{text, unsupported};
use crate::abi::eq::*;
use crate::abi::errno::FI_EINVAL;
use crate::abi::fabric::*;
use crate::abi::version;
use crate::guard::{count, refused, status};
use crate::object::queue::{Entry, Format, Queue};
use crate::object::wait::{Object, deadline};

static OPS: Ops = Ops { close, control, ..unsupported::OPS };

static CQ_OPS: OpsCq = OpsCq {
    size: size_of::<OpsCq>(),
    read,
    readfrom,
    readerr,
    sread,
    sreadfrom,
    signal,
    strerror: text::strerror,
};

pub(super) unsafe extern "C" fn open(
    domain: *mut crate::abi::domain::FidDomain,
    attr: *mut CqAttr,
    to: *mut *mut FidCq,
    context: *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the domain was made by this provider.
        let domain = unsafe { DomainHandle::here(domain) }?;
        // SAFETY: `attr` is NULL or points to an attribute structure.
        let attr = unsafe { attr.as_ref() }
            .ok_or_else(|| refused(FI_EINVAL, "the attribute of a completion queue is NULL"))?;
        if to.is_null() {
            return Err(refused(FI_EINVAL, "the place of a completion queue is NULL"));
        }
        let queue = Queue::new(Format::of(attr.format)?, Object::of(attr.wait_obj)?, domain.nap())?;
        let object = Arc::new(Completions { queue: Arc::new(queue), api_version: domain.fabric.api_version });
        let face = FidCq { fid: fid(FI_CLASS_CQ, context, &OPS), ops: &raw const CQ_OPS };
        // SAFETY: `to` is not NULL.
        unsafe { Handle::give(face, object, Some(domain.uses.begin()), to) };
        Ok(())
    })
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    // SAFETY: the completion queue was made by this provider, and the caller gives it up.
    status(|| unsafe { CqHandle::close(fid, |completions| &completions.queue.uses) })
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, arg: *mut c_void) -> c_int {
    status(|| {
        // SAFETY: the queue was made by this provider; the argument has the type that the command requires.
        unsafe { get_wait(CqHandle::here(fid)?.waiting(), command, arg) }
    })
}

/// Writes an entry in the given format.
///
/// # Safety
///
/// `to` has room for `index + 1` entries. `sources` is NULL or has room for as many numbers.
unsafe fn hand_over(entry: &Entry, format: Format, to: *mut c_void, sources: *mut u64, index: usize) {
    let whole = CqTaggedEntry {
        op_context: entry.context as *mut c_void,
        flags: entry.flags,
        len: entry.len,
        buf: entry.buf as *mut c_void,
        data: entry.data,
        tag: entry.tag,
    };
    let bytes = format.bytes();
    // SAFETY: guaranteed by the caller; every format is a prefix of the whole entry.
    unsafe {
        to.cast::<u8>().add(index * bytes).copy_from((&raw const whole).cast(), bytes);
        if !sources.is_null() {
            sources.add(index).write(entry.source);
        }
    }
}

unsafe extern "C" fn read(cq: *mut FidCq, to: *mut c_void, most: usize) -> isize {
    // SAFETY: the arguments are those of fi_cq_read.
    unsafe { readfrom(cq, to, most, ptr::null_mut()) }
}

unsafe extern "C" fn readfrom(cq: *mut FidCq, to: *mut c_void, most: usize, sources: *mut u64) -> isize {
    count(|| {
        // SAFETY: the completion queue was made by this provider.
        let queue = &unsafe { CqHandle::here(cq) }?.queue;
        // SAFETY: the caller has room for `most` entries.
        let take = |index, entry: &Entry| unsafe { hand_over(entry, queue.format, to, sources, index) };
        queue.read(most, take).map(|taken| taken as isize)
    })
}

unsafe extern "C" fn sread(
    cq: *mut FidCq,
    to: *mut c_void,
    most: usize,
    cond: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: the arguments are those of fi_cq_sread.
    unsafe { sreadfrom(cq, to, most, ptr::null_mut(), cond, timeout_ms) }
}

/// Ignores the wait condition: an earlier wake-up is allowed.
unsafe extern "C" fn sreadfrom(
    cq: *mut FidCq,
    to: *mut c_void,
    most: usize,
    sources: *mut u64,
    _: *const c_void,
    timeout_ms: c_int,
) -> isize {
    count(|| {
        // SAFETY: the queue was made by this provider. It is kept alive, because another thread may close it
        // while this one sleeps.
        let queue = unsafe { CqHandle::here(cq) }?.queue.clone();
        // SAFETY: the caller has room for `most` entries.
        let take = |index, entry: &Entry| unsafe { hand_over(entry, queue.format, to, sources, index) };
        queue.read_waiting(most, deadline(timeout_ms), take).map(|taken| taken as isize)
    })
}

unsafe extern "C" fn readerr(cq: *mut FidCq, to: *mut CqErrEntry, _: u64) -> isize {
    count(|| {
        // SAFETY: the completion queue was made by this provider.
        let completions = unsafe { CqHandle::here(cq) }?;
        let entry = completions.read_error()?;
        let trouble = entry.error.expect("read_error gives errors alone");
        // Callers pass uninitialised structures whose size depends on their version, so only single fields
        // are written.
        // SAFETY: `to` points to an entry of the caller.
        unsafe {
            (&raw mut (*to).op_context).write(entry.context as *mut c_void);
            (&raw mut (*to).flags).write(entry.flags);
            (&raw mut (*to).len).write(entry.len);
            (&raw mut (*to).buf).write(entry.buf as *mut c_void);
            (&raw mut (*to).data).write(entry.data);
            (&raw mut (*to).tag).write(entry.tag);
            (&raw mut (*to).olen).write(trouble.cut);
            (&raw mut (*to).err).write(trouble.errno);
            (&raw mut (*to).prov_errno).write(trouble.errno);
            (&raw mut (*to).err_data_size).write(0);
            if completions.api_version >= version(1, 20) {
                (&raw mut (*to).src_addr).write(entry.source);
            }
        }
        Ok(1)
    })
}

unsafe extern "C" fn signal(cq: *mut FidCq) -> c_int {
    status(|| {
        // SAFETY: the completion queue was made by this provider.
        unsafe { CqHandle::here(cq) }?.signal();
        Ok(())
    })
}
